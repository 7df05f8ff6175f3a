"""At stake: a screen that could not read for a moment says so, and shows what is now again: it does not stand still."""

from __future__ import annotations

import errno
from pathlib import Path

from tests import faults as layer
from tests import support
from tests.faults import Faults
from tests.steps import new_task, spawn
from tests.support import run, worker
from tests.terminal import Terminal


def test_a_disk_that_could_not_be_read_stops_it_for_that_time_only(root: Path, faulty: Faults) -> None:
    task = new_task()
    spawn(worker("sleeps", 60), name="first")
    watch = Terminal([*support.PROGRAM, "watch"])
    watch.until("first")
    fault = faulty.fail(root / "tasks", layer.SCAN | layer.OPEN, errno.EIO)
    task.path.joinpath("changed").touch()
    watch.until("out of date: ")
    assert faulty.hits(fault)
    faulty.mend()
    spawn(worker("sleeps", 60), name="second")
    watch.until("second")
    watch.write(b"q")
    assert watch.end() == 0
    run("cancel", "--all", "--grace-seconds", "0")
    assert b"bug in agentctl" not in watch.sent
