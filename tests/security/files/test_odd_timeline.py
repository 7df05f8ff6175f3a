"""At stake: whatever the files of a stranger's task say is only text in the pictures of its timeline."""

from __future__ import annotations

import json
import re
import shutil
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.security.clones.test_foreign_tasks import forget
from tests.snapshots import snapshot
from tests.steps import Task, new_task
from tests.support import PROGRAM, run
from tests.terminal import on_a_terminal

HOSTILE = "</title></text><script>alert(1)</script>\x1b]0;x\x07\u202e\ud83d\ufffe\"' onload='x' https://example.org/"
KINDS = ("queued", "started", "blocked", "resumed", "retrying", "retried", "parked", "paused", "failed", "completed")
HUGE = 10**400


def event(kind: str, name: str, ts: Any = "2026-11-25T10:00:00.000Z", **payload: Any) -> dict[str, Any]:
    return {"ts": ts, "type": f"agent.{kind}", "taskId": "t1", "agentInstance": name, "by": "x", "payload": payload}


def hostile_log() -> Iterator[bytes]:
    """Yield the lines of a log with everything wrong that can be: kinds, order, times, names, links, bytes."""
    stamps = ["2026-11-25T10:00:00.000Z", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", HOSTILE, None, HUGE]
    names = ["w", "v", "../../x", HOSTILE, "-x", "u"]
    values: list[Any] = [HOSTILE, HUGE, None, -1, [], {}, ["w", "w", "v", 5, HOSTILE], True, float("inf")]
    for number in range(600):
        payload = {
            "agent": values[number % 9], "command": HOSTILE * 20, "driver": values[(number + 1) % 9],
            "parent": names[number % 6], "parentTaskId": values[number % 7], "parentInstance": names[number % 5],
            "after": values[(number + 6) % 9], "attempt": values[number % 9], "reason": values[(number + 2) % 9],
            "shimPid": values[(number + 1) % 9],
        }  # fmt: skip
        line = event(KINDS[number * 7 % 10], names[number * 5 % 6], stamps[number % 6], **payload)
        yield json.dumps(line).encode()
        yield (b"\xff\xfe torn", b"{}", b'{"type":5,"payload":[]}', b"\0" * 50, b"[" * 5000)[number % 5]


@pytest.fixture
def foreign(root: Path) -> Task:
    """A task of somebody else, whose log and title are hostile."""
    task = new_task()
    forget(task)
    (task.path / "events.jsonl").write_bytes(b"".join(line + b"\n" for line in hostile_log()))
    head = f"title: {json.dumps(HOSTILE.replace(chr(0xD83D), ''))}\n"
    (task.path / "task.yaml").write_text(head, encoding="utf-8")
    for name in "wvu":
        folder = task.agent(name)
        folder.mkdir(parents=True)
        (folder / "spent.json").write_text('{"input": 1e400, "output": "x", "costUsd": -5}', encoding="utf-8")
    return task


def test_every_form_of_a_hostile_timeline_is_harmless(foreign: Task, tmp_path: Path) -> None:
    before = snapshot(foreign.path)
    svg = run("timeline", "--task", "t1", "--svg", "-")
    assert "was not made here by you" in svg.err
    tree = ET.fromstring(svg.out)
    kinds = {element.tag.rpartition("}")[2] for element in tree.iter()}
    assert kinds == {"svg", "title", "desc", "style", "g", "path", "rect", "text"}
    assert not [name for element in tree.iter() for name in element.attrib if re.match(r"on|.*href|style", name)]
    page = run("timeline", "--task", "t1", "--html", "-").out
    assert not re.search(r"<(script|img|a|link|iframe|object|use|foreignObject)\b", page)
    assert "default-src 'none'" in page
    lines = run("timeline", "--task", "t1").out
    assert len(lines.splitlines()) == 3
    told = run("timeline", "--task", "t1", "--json").json
    assert {row["agentInstance"] for row in told["workers"]} == {"w", "v", "u"}
    code, sent = on_a_terminal([*PROGRAM, "timeline", "--task", "t1"], width=100, env={"NO_COLOR": "1"})
    assert code == 0
    for shown in (svg.out, page, lines, re.sub(r"\x1b\[[0-9;]*m", "", sent.decode())):
        assert not re.search("[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f\u202e\ufffe]", shown)
    assert snapshot(foreign.path) == before


def test_a_log_of_twenty_thousand_questions_is_a_small_picture(root: Path) -> None:
    task = new_task()
    forget(task)
    lines = [event("queued", "w"), event("started", "w")]
    for number in range(20_000):
        stamp = f"2026-11-25T{10 + number // 3600 % 14:02}:{number // 60 % 60:02}:{number % 60:02}.000Z"
        lines += [event("blocked", "w", stamp), event("resumed", "w", stamp)]
    data = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    (task.path / "events.jsonl").write_text(data, encoding="utf-8")
    picture = run("timeline", "--task", "t1", "--svg", "-").out
    assert len(picture) < 500_000
    ET.fromstring(picture)


def test_a_forged_ring_of_subtasks_and_parents_has_an_end(root: Path) -> None:
    task = new_task()
    names = ["t1", "t2", "t3"]
    for name in names[1:]:
        shutil.copytree(task.path, task.path.parent / name)
    forget(task)
    for name, below in zip(names, [*names[1:], "t1"], strict=True):
        folder = task.path.parent / name
        config = json.loads((folder / "config.json").read_bytes())
        above = names[names.index(name) - 1]
        config.update(parentTaskId=above, rootTaskId="t1")
        (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
        made = {"ts": "x", "type": "subtask.created", "taskId": name, "by": "x", "payload": {"taskId": below}}
        worker = event("queued", "w", parentTaskId=above, parentInstance="w", after=["w"])
        (folder / "events.jsonl").write_text(json.dumps(made) + "\n" + json.dumps(worker) + "\n", encoding="utf-8")
    told = run("timeline", "--task", "t1", "--json").json
    assert len({(row["taskId"], row["agentInstance"]) for row in told["workers"]}) == len(told["workers"]) >= 1
    assert told["criticalPath"]
