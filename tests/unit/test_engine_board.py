"""One stand-in asks the engine for all."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from agentctl.adapters.clock import since_boot
from agentctl.adapters.locks import try_lock
from agentctl.adapters.processes import boot_id
from agentctl.domain.worker.sightings import EngineState, Sighting
from agentctl.runners.loopback import Loopback
from agentctl.supervision.worker.engine_answers import answer_for
from agentctl.worker_programs.on_node.engine_questions import EngineBoard

LAUNCH = "0123456789abcdef"


class CountingEngine(Loopback):
    """Counts how often it is asked."""

    name = "counting"

    def __init__(self) -> None:
        self.asked = 0

    def poll(self) -> Mapping[str, Sighting]:
        """See `Runner.poll`."""
        self.asked += 1
        return {LAUNCH: Sighting(EngineState.RUNNING, "RUNNING", "n1")}


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CountingEngine:
    """An engine whose answers lie in a folder of this test."""
    runtime = tmp_path / "run"
    runtime.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    return CountingEngine()


def test_one_question_serves_all_who_follow_launches(engine: CountingEngine) -> None:
    boards = [EngineBoard(engine, launch_id, every_s=60) for launch_id in (LAUNCH, "f" * 16)]
    for board in boards:
        assert board.is_due == (engine.asked == 0)
        board.ask()
    assert engine.asked == 1
    assert [board.last().seen.state for board in boards] == [EngineState.RUNNING, EngineState.ABSENT]


def test_who_finds_that_somebody_else_asks_does_not_try_again_at_once(engine: CountingEngine) -> None:
    board = EngineBoard(engine, LAUNCH, every_s=60)
    other = EngineBoard(engine, LAUNCH, every_s=60)
    lock = try_lock(f"{board._path}.lock")
    assert lock is not None
    try:
        assert board.is_due
        board.ask()
        assert not board.is_due, "its stand-in would ask again as fast as it can, and so would 999 others"
        assert other.is_due
    finally:
        os.close(lock)
    assert engine.asked == 0


def test_not_all_find_the_last_answer_too_old_at_the_same_moment(engine: CountingEngine) -> None:
    boards = [EngineBoard(engine, f"{number:04x}{'0' * 12}", every_s=60) for number in range(0, 0x10000, 0x1000)]
    boards[0].ask()
    due = [board.due_in_s() for board in boards]
    assert due == sorted(due)
    assert 55 < due[0] <= 60
    assert 80 < due[-1] <= 90


def test_what_is_shown_is_the_last_answer_since_it_was_submitted(engine: CountingEngine) -> None:
    board = EngineBoard(engine, LAUNCH, every_s=60)
    handle = {"answers": board.name, "at": since_boot(), "boot": boot_id()}
    assert answer_for(handle, LAUNCH) is None, "nobody has asked"
    board.ask()
    answer = answer_for(handle, LAUNCH)
    assert answer is not None
    assert answer.seen.node == "n1"
    assert answer_for({**handle, "at": since_boot() + 1}, LAUNCH) is None, "that was before"
    assert answer_for({**handle, "boot": "another"}, LAUNCH) is not None


@pytest.mark.parametrize("name", [None, 7, "", "../../etc/passwd", "engine-x-0123456789ab.jsonl/..", "launch-0.key"])
def test_nobody_can_have_another_file_shown(engine: CountingEngine, name: object) -> None:
    EngineBoard(engine, LAUNCH, every_s=60).ask()
    assert answer_for({"answers": name, "at": 0, "boot": ""}, LAUNCH) is None
