"""Pages of a task's events: whatever the log and wherever one begins, all events come, each once and in order."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agentctl.adapters.taskdir import Root, TaskDir
from agentctl.operations.show.event_pages import page_of_events

LINES = st.lists(st.sampled_from(["a", "b", None, "bad", ""]), max_size=60)


def task_with(lines: list[str | None], folder: str) -> TaskDir:
    task = Root(Path(folder, ".agentctl")).task("t")
    for name in ("a", "b"):
        worker = Path(task.worker(name).path)
        worker.mkdir(parents=True)
        (worker / "spec.json").write_text("{}")
    texts = []
    for number, kind in enumerate(lines, 1):
        event: dict[str, Any] = {
            "ts": "2026-01-01T00:00:00.000Z",
            "type": "x.y",
            "by": "user",
            "payload": {"n": number},
        }
        named = event | ({"agentInstance": kind} if kind in {"a", "b"} else {})
        texts.append(kind if kind in {"bad", ""} else json.dumps(named, separators=(",", ":")))
    Path(task.events).write_text("".join(f"{text}\n" for text in texts) + '{"ts": "torn')
    return task


def wanted(lines: list[str | None], instance: str | None) -> list[int]:
    return [number for number, kind in enumerate(lines, 1) if instance is None or kind == instance]


@given(LINES, st.integers(1, 70), st.integers(1, 9), st.sampled_from([None, "a"]))
def test_forwards_everything_comes_once(lines: list[str | None], begin: int, limit: int, instance: str | None) -> None:
    with tempfile.TemporaryDirectory() as folder:
        task = task_with(lines, folder)
        found: list[int] = []
        page = page_of_events(task, begin=begin, limit=limit, instance=instance)
        found += [event["seq"] for event in page.events]
        while page.more:
            page = page_of_events(task, begin=page.next, limit=limit, instance=instance)
            assert page.events
            found += [event["seq"] for event in page.events]

        assert found == [seq for seq in wanted(lines, instance) if seq >= begin]


@given(LINES, st.integers(1, 70), st.integers(1, 9), st.sampled_from([None, "a"]))
def test_backwards_everything_comes_once(
    lines: list[str | None], before: int, limit: int, instance: str | None
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        task = task_with(lines, folder)
        found: list[int] = []
        page = page_of_events(task, before=before, limit=limit, instance=instance)
        assert page.more == any(seq >= before for seq in wanted(lines, instance))
        found = [event["seq"] for event in page.events]
        while page.earlier:
            page = page_of_events(task, before=page.events[0]["seq"], limit=limit, instance=instance)
            assert page.events
            found = [event["seq"] for event in page.events] + found

        assert found == [seq for seq in wanted(lines, instance) if seq < before]


def test_a_task_without_a_log_has_no_events(tmp_path: Path) -> None:
    assert page_of_events(Root(tmp_path).task("t"), limit=5).events == []
