"""At stake: the head takes for an end what the node has written, and nothing else, and says whose doing it was."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentctl.adapters.taskdir import LaunchDir, TaskDir
from agentctl.domain.placement import placement_from
from agentctl.domain.states import Reason, Status
from agentctl.supervision.worker.endings import Decision
from agentctl.worker_programs.on_node.exchange.launch_record import BY_TIME
from agentctl.worker_programs.on_node.exchange.seal import forget_key, new_key, sealed
from agentctl.worker_programs.on_node.exchange.written_state import WRITTEN
from agentctl.worker_programs.on_node.verdicts import Verdicts, end_on_node

ENDED = {"status": "completed", "exitCode": 0, "attempt": 1, "node": "n1", WRITTEN: {"stdout": 3}}


@pytest.fixture
def launch(tmp_path: Path) -> LaunchDir:
    """Return a launch whose key is gone, as after a restart of the head."""
    (tmp_path / "5eed0dc7e1d90001").mkdir()
    return LaunchDir(str(tmp_path / "5eed0dc7e1d90001"))


@pytest.fixture
def key(launch: LaunchDir) -> Iterator[bytes]:
    yield new_key(launch.id)
    forget_key(launch.id)


def write_end(launch: LaunchDir, value: Any) -> None:
    Path(launch.ended).write_text(json.dumps(value), encoding="utf-8")


def verdicts(launch: LaunchDir, **placed: Any) -> Verdicts:
    worker = TaskDir(launch.path / "task").worker("w1")
    return Verdicts(worker, launch, placement_from({"runner": "slurm", **placed}))


def test_before_there_is_an_end_there_is_none(launch: LaunchDir) -> None:
    assert end_on_node(launch) is None


def test_an_end_comes_with_what_was_written_by_then(launch: LaunchDir, key: bytes) -> None:
    write_end(launch, sealed(key, "ended", ENDED))
    assert end_on_node(launch) == (Decision(Status.COMPLETED, exit_code=0), {"stdout": 3})


def test_without_its_seal_it_is_none_as_long_as_there_is_a_key(launch: LaunchDir, key: bytes) -> None:
    for value in (ENDED, sealed(key, "answer 1", ENDED), {**sealed(key, "ended", ENDED), "exitCode": 1}):
        write_end(launch, value)
        assert end_on_node(launch) is None


@pytest.mark.parametrize(
    "value", [{}, {"status": "running"}, {"status": ["failed"]}, {**ENDED, "exitCode": "0"}, {**ENDED, "swept": 1}]
)
def test_what_describes_no_end_ends_nothing_once_the_key_is_gone(launch: LaunchDir, value: dict[str, Any]) -> None:
    write_end(launch, ENDED)
    assert end_on_node(launch) is not None
    write_end(launch, value)
    assert end_on_node(launch) is None


def test_a_cancel_that_nobody_asked_for_here_was_the_engines(launch: LaunchDir) -> None:
    found = verdicts(launch).cancelled_there(Decision(Status.CANCELLED, by="the engine", exit_code=0))
    assert (found.status, found.by, found.exit_code) == (Status.CANCELLED, "slurm", 0)
    assert found.message == "it was cancelled in slurm, not here"


def test_a_time_that_was_over_on_the_node_is_a_failure(launch: LaunchDir) -> None:
    ended = Decision(Status.CANCELLED, by=BY_TIME)
    found = verdicts(launch, time_s=60).cancelled_there(ended)
    assert (found.status, found.reason) == (Status.FAILED, Reason.TIMED_OUT)
    assert found.message == "its time on the node (60 s) was over: slurm ended it"
    assert verdicts(launch).cancelled_there(ended).status is Status.CANCELLED


def test_one_that_never_began_says_why_and_what_it_printed(launch: LaunchDir) -> None:
    Path(launch.engine_log).write_text("no such file\n", encoding="utf-8")
    found = verdicts(launch).never_began("FAILED", "NonZeroExitCode")
    said = "slurm has not started it: FAILED (NonZeroExitCode); it printed: no such file"
    assert (found.status, found.reason, found.message) == (Status.FAILED, Reason.NOT_STARTED, said)
    assert found.ended_at is not None
    assert verdicts(launch).never_began("CANCELLED", "").status is Status.CANCELLED


def test_one_whose_node_is_gone_is_lost_unless_its_shim_has_decided(launch: LaunchDir) -> None:
    Path(launch.claim).write_text(json.dumps({"node": "n1"}), encoding="utf-8")
    found = verdicts(launch).lost("")
    assert (found.status, found.reason) == (Status.FAILED, Reason.LOST)
    assert found.message == "slurm says that there is no such job, and n1 is silent; the exit was not seen"
    worker = launch.worker_on_node(TaskDir(launch.path / "task").worker("w1"))
    Path(worker.path).mkdir(parents=True)
    Path(worker.exit).write_text(json.dumps({"status": "failed", "reason": "exit_code", "exitCode": 3}), "utf-8")
    assert verdicts(launch).lost("").exit_code == 3
