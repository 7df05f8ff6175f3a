"""At stake: one ending is put together from one reading of worker.json, which the worker's processes can write."""

from __future__ import annotations

import json
import os
from pathlib import Path

from agentctl.adapters import processes
from agentctl.adapters.taskdir import WorkerDir
from agentctl.domain.states import Status
from agentctl.supervision.life.judging import lost_ending
from tests.moments import at_openings, nothing


def test_what_is_written_into_a_record_meanwhile_is_no_part_of_the_ending(tmp_path: Path) -> None:
    worker = WorkerDir(tmp_path / "tasks" / "t1" / "agents" / "w")
    os.makedirs(worker.path)
    me = processes.identify(os.getpid())
    assert me is not None

    def record(attempt: int, pid: int) -> None:
        value = {**me.to_json(), "pid": pid, "attempt": attempt, "startedAt": f"{attempt}"}
        Path(worker.process).write_text(json.dumps(value))

    record(2, me.pid)
    Path(worker.outcome).write_text(json.dumps({"pid": me.pid, "status": "completed"}))
    with at_openings(worker.process, [nothing, lambda: record(3, 4)]):
        ending = lost_ending(worker)
    assert (ending.status, ending.attempt, ending.started_at) == (Status.COMPLETED, 2, "2")
