"""At stake: what was looked at stays so for every screen of a person, and their file of it does not grow for ever."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentctl.adapters.taskdir import Root
from agentctl.domain.names import WorkerId
from agentctl.operations.fleet import seen
from agentctl.operations.fleet.seen import SeenEnds


def ends_of(folder: Path) -> SeenEnds:
    return SeenEnds(Root(folder / "root"), {"HOME": str(folder)})


def test_another_screen_sees_what_was_noted(tmp_path: Path) -> None:
    one, other = ends_of(tmp_path), ends_of(tmp_path)
    worker = WorkerId("t1", "a")
    one.note({worker: "2026-01-01"})
    assert not other.has(worker, "2026-01-01")
    assert other.update()
    assert other.has(worker, "2026-01-01")
    assert not other.update()
    assert not other.has(worker, "2026-01-02"), "a later end of it was not looked at"
    assert not other.has(worker, None)


def test_the_oldest_notes_go_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seen, "_MOST", 3)
    ends = ends_of(tmp_path)
    workers = {name: WorkerId("t1", name) for name in "edcba"}
    for name in "edce":
        ends.note({workers[name]: "now"})
    ends.note({workers["b"]: "now"})
    assert [name for name in "edcb" if ends.has(workers[name], "now")] == ["e", "c", "b"]


def test_a_damaged_file_counts_as_none(tmp_path: Path) -> None:
    ends = ends_of(tmp_path)
    ends.note({WorkerId("t1", "a"): "now"})
    for content in ("[]", "{", '{"ends": 1}', '{"ends": {"t1/a": 1}}'):
        Path(ends.path).write_text(content, encoding="utf-8")
        assert not ends_of(tmp_path).has(WorkerId("t1", "a"), "now")
