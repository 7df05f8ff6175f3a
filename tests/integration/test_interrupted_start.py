"""At stake: Ctrl-C during a start either starts nothing, or tells what it leaves; never something in between."""

from __future__ import annotations

import json
import os
import signal
import threading
from pathlib import Path

import pytest

from agentctl.operations.start.interruption import HeldInterrupt
from tests.steps import new_task, spawn, statuses
from tests.support import alike, run, worker

AFTERWARDS = ["spawn.after-queued", *alike("spawn.after-ticket", "spawn.after-orders", "spawn.before-roster")]
NAMES = ("w0", "w1", "w2")


@pytest.fixture
def batch(tmp_path: Path) -> Path:
    """Return a batch of three workers."""
    file = tmp_path / "batch.jsonl"
    rows = [{"name": name, "argv": worker("sleeps", 60)} for name in NAMES]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


@pytest.mark.parametrize("waits", [True, *alike(False)])
@pytest.mark.parametrize("point", AFTERWARDS)
def test_who_is_in_the_queue_is_started_and_told(root: Path, batch: Path, point: str, waits: bool) -> None:
    new_task(cap=2)
    options = ["--wait"] if waits else []
    done = run("spawn", "--batch", batch, *options, check=False, env={"AGENTCTL_FAILPOINT": f"{point}:int"})
    assert (done.code, done.out) == (130, "")
    assert done.err == (
        "interrupted: w0, w1, w2 left running in t1\nhint: agentctl show w0; agentctl cancel w0 w1 w2\n"
    )
    assert statuses() == {"w0": "running", "w1": "running", "w2": "queued"}
    run("cancel", *NAMES)
    assert set(statuses().values()) == {"cancelled"}


@pytest.mark.parametrize("point", ["spawn.after-spec", *alike("spawn.after-mkdir")])
def test_before_that_nothing_is_started(root: Path, batch: Path, point: str) -> None:
    task = new_task(cap=2)
    done = run("spawn", "--batch", batch, check=False, env={"AGENTCTL_FAILPOINT": f"{point}:int"})
    assert (done.code, done.err) == (130, "interrupted\n")
    assert not any(task.path.joinpath("agents").iterdir())
    assert not task.events("agent.queued")


def test_a_retry_tells_it_too(root: Path) -> None:
    new_task()
    spawn(["false"], "--wait", name="a", check=False)
    done = run("retry", "a", check=False, env={"AGENTCTL_FAILPOINT": "spawn.after-queued:int"})
    assert (done.code, done.err.splitlines()[0]) == (130, "interrupted: a-2 left running in t1")
    run("wait", "a-2", check=False)


@pytest.mark.parametrize("point", AFTERWARDS)
def test_a_second_one_breaks_it_off_and_says_who_knows_what_is_left(root: Path, batch: Path, point: str) -> None:
    new_task(cap=2)
    done = run("spawn", "--batch", batch, check=False, env={"AGENTCTL_FAILPOINT": f"{point}:ints"})
    assert (done.code, done.out) == (130, "")
    assert done.err == "interrupted: nobody knows what the start has left in t1\nhint: agentctl list\n"
    run("cancel", "--all")
    assert run("doctor", check=False).code == 0


def test_the_second_one_counts_at_once() -> None:
    with HeldInterrupt() as interrupt:
        interrupt.hold_back()
        os.kill(os.getpid(), signal.SIGINT)
        assert interrupt.came
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_handler_of_somebody_else_stays() -> None:
    got: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: got.append(number))
    try:
        with HeldInterrupt() as interrupt:
            interrupt.hold_back()
            os.kill(os.getpid(), signal.SIGINT)
        assert (got, interrupt.came) == ([signal.SIGINT], False)
    finally:
        signal.signal(signal.SIGINT, before)


def test_another_thread_holds_nothing() -> None:
    held = HeldInterrupt()
    with held:
        thread = threading.Thread(target=held.hold_back)
        thread.start()
        thread.join()
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
