"""At stake: a place that cannot be lent now is lent at the next look, and delays no cancel meanwhile."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentctl.adapters.taskdir import TaskDir
from agentctl.adapters.treedir import tree_of
from agentctl.supervision.dispatch.standby import Standby
from agentctl.supervision.worker import pause_request
from agentctl.supervision.worker.control import poke
from tests.agent_steps import agent, agent_world, plays
from tests.life import read
from tests.steps import Task, held, new_task, spawn, spawn_batch
from tests.support import alike, run, start, start_argv, wait_until

#: Half of the time limit for a lock.
SOON_S = 10.0


@contextlib.contextmanager
def queue_held(task: Task) -> Iterator[None]:
    """Let another process hold the queue's lock during the block."""
    argv = ["flock", str(task.path / "queue.lock"), "sh", "-c", "echo held; cat"]
    with start_argv(argv, stdin=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield  # After this its input is closed, and it ends.


def test_a_place_that_cannot_be_lent_now_is_lent_at_the_next_look(root: Path, tmp_path: Path) -> None:
    task = new_task(cap=1)
    spawn_batch([held(tmp_path / "a", "a"), held(tmp_path / "b", "b")])
    assert task.tickets() == ["b"]
    worker = TaskDir(str(task.path)).worker("a")
    standby = Standby(worker, tree_of(worker.task))
    with queue_held(task):
        assert not standby.lend()
        assert not standby.has_own()
    assert standby.lend()
    task.has("agent.started", "b")
    standby.end_loan()
    assert not standby.has_own(), "its guest is at work"
    (tmp_path / "b").touch()
    task.ended("b")
    wait_until(standby.has_own, what="the place to come back")
    (tmp_path / "a").touch()
    task.ended("a")


def kept_agent(tmp_path: Path) -> None:
    """Start an agent `a` that answers once the file `gate` exists, and then waits for a message."""
    gate = str(tmp_path / "gate")
    script = f"import os, time\nwhile not os.path.exists({gate!r}): time.sleep(0.02)\nme.answer('one')"
    agent(plays(tmp_path, script), "--keep")


@pytest.mark.slow
def test_an_idle_agent_that_cannot_lend_its_slot_is_cancelled_at_once(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = agent_world(tmp_path, monkeypatch, cap=1, grace=60)
    kept_agent(tmp_path)
    with queue_held(task):
        (tmp_path / "gate").touch()
        task.has("agent.blocked", "a")
        cancel = start("cancel", "a")
        decided = wait_until(lambda: task.exit("a"), what="the end of a", timeout_s=SOON_S) or {}
        assert (decided["status"], decided.get("signal")) == ("cancelled", None)
    assert cancel.wait(20) == 0


def test_an_idle_agent_lends_its_slot_once_the_queue_is_free_and_takes_it_back(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = agent_world(tmp_path, monkeypatch, cap=1)
    kept_agent(tmp_path)
    run("spawn", "--queue", "--name", "g", "--", "true")
    with queue_held(task):
        (tmp_path / "gate").touch()
        task.has("agent.blocked", "a")
    task.ended("g")
    with queue_held(task):
        run("send", "a", "say two")
    result = task.agent("a") / "result.json"
    wait_until(lambda: read(result)["finalMessage"], what="a to go on", accept=lambda said: said == "two")
    run("send", "a", "--close")
    task.ended("a")


@pytest.mark.parametrize("what", ["cancel", *alike("pause")])
def test_who_waits_for_its_children_and_cannot_lend_its_slot_meets_what_is_asked(
    root: Path, tmp_path: Path, what: str
) -> None:
    task = new_task(cap=2)
    child = f"while ! [ -e {tmp_path}/end ]; do sleep 0.05; done"
    begins = f"{sys.executable} -m agentctl spawn --name child -- sh -c '{child}'"
    spawn(["sh", "-c", f"{begins}; while ! [ -e {tmp_path}/gate ]; do sleep 0.02; done"], name="top")
    task.has("agent.started", "child")
    with queue_held(task):
        (tmp_path / "gate").touch()
        task.has("agent.awaiting_children", "top")
        if what == "cancel":
            cancel = start("cancel", "top")
            wait_until(lambda: task.exit("child"), what="the end of the child", timeout_s=SOON_S)
        else:
            cancel = None
            top = TaskDir(str(task.path)).worker("top")
            pause_request.put_pause_request(
                top, "user", paused=True
            )  # The command has the queue's lock before it asks.
            poke(top)
            wait_until(lambda: task.events("agent.paused", of="top"), what="the pause", timeout_s=SOON_S)
    if cancel is not None:
        assert cancel.wait(20) == 0
    else:
        run("unpause", "top")
        (tmp_path / "end").touch()
    task.ended("top", "child")
