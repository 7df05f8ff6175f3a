"""At stake: a lent slot goes only to descendants, one at a time, and the loan ends with the wait that made it."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from pathlib import Path

import pytest

from agentctl.adapters.locks import locked
from agentctl.adapters.treedir import tree_at
from agentctl.domain.names import WorkerId
from agentctl.supervision.dispatch import launching
from agentctl.supervision.dispatch.dispatch import dispatch, dispatch_locked
from agentctl.supervision.dispatch.slots import guest_place, place_of, survey
from agentctl.supervision.queue.places import Occupant
from tests.life import set_config
from tests.steps import Task, held, kill, new_task, row, spawn, spawn_batch, statuses
from tests.support import run, text_in, wait_for_json, wait_until, worker

AGENTCTL = f"{sys.executable} -m agentctl"


def gated(gate: Path) -> str:
    """Return a shell command that completes once the file `gate` exists."""
    return shlex.join(worker("exits", 0, "--after-file", gate))


def parent_of_two(tmp_path: Path, then: str) -> list[str]:
    """Return the argv of a worker that queues `one` and `two`, writes its wait's pid down, waits, and runs `then`."""
    queue = [f"{AGENTCTL} spawn --queue --name {name} -- {gated(tmp_path / name)} || exit 1" for name in ("one", "two")]
    wait = (
        f"{AGENTCTL} wait one two & echo $! > {tmp_path / 'wait.part'}; mv {tmp_path / 'wait.part'} {tmp_path / 'wait'}"
    )
    return ["bash", "-c", "; ".join([*queue, wait, "wait $!", then])]


def started(task: Task) -> list[str]:
    """Return the workers that have started, in order."""
    return task.order("agent.started")


def open_gates(tmp_path: Path, *names: str) -> None:
    """Let these workers end."""
    for name in names:
        (tmp_path / name).touch()


def test_a_stranger_gets_no_lent_slot_whatever_its_priority(root: Path, tmp_path: Path) -> None:
    task = new_task(cap=1)
    spawn(parent_of_two(tmp_path, "true"), name="top")
    task.has("agent.started", "one")
    spawn(["true"], "--queue", "--priority", "100", name="stranger")
    open_gates(tmp_path, "one")
    task.has("agent.started", "two")
    open_gates(tmp_path, "two")
    task.ended("top", "stranger")
    assert started(task) == ["top", "one", "two", "stranger"]


@pytest.mark.slow
def test_the_loan_ends_with_a_killed_wait(root: Path, tmp_path: Path) -> None:
    """The stated exception: the guest that is running goes on beside its lender. No new one is started."""
    task = new_task(cap=1)
    spawn(parent_of_two(tmp_path, f"touch {tmp_path / 'killed'}; {gated(tmp_path / 'top')}"), name="top")
    task.has("agent.started", "one")
    os.kill(int((tmp_path / "wait").read_text()), signal.SIGKILL)
    wait_until((tmp_path / "killed").exists)
    assert statuses() == {"top": "running", "one": "running", "two": "queued"}

    open_gates(tmp_path, "one")
    task.ended("one")
    run("wait-any", "two", "--timeout-seconds", "0.05", check=False)
    assert spawn(["true"], name="x", check=False).code == 5
    assert started(task) == ["top", "one"], "no new child in a slot whose loan is over"

    open_gates(tmp_path, "top")
    task.has("agent.started", "two")
    open_gates(tmp_path, "two")
    task.ended("top", "two")


@pytest.mark.slow
def test_a_guest_whose_lender_goes_on_gets_the_next_free_slot_before_the_queue(root: Path, tmp_path: Path) -> None:
    task = new_task(cap=2)
    spawn_batch([held(tmp_path / "other", "other")])
    spawn(parent_of_two(tmp_path, gated(tmp_path / "top")), name="top")
    task.has("agent.started", "one")
    os.kill(int((tmp_path / "wait").read_text()), signal.SIGKILL)
    spawn(["true"], "--queue", "--priority", "100", name="stranger")
    open_gates(tmp_path, "other")
    task.ended("other")
    run("wait-any", "stranger", "--timeout-seconds", "0.05", check=False)
    assert statuses() == {
        "other": "completed",
        "top": "running",
        "one": "running",
        "two": "queued",
        "stranger": "queued",
    }
    open_gates(tmp_path, "one")
    task.ended("stranger")
    task.has("agent.started", "two")
    open_gates(tmp_path, "two", "top")
    task.ended("one", "two", "top")


@pytest.mark.slow
def test_a_guest_without_its_shim_still_counts_when_its_lender_is_gone(root: Path, tmp_path: Path) -> None:
    task = new_task(cap=1)
    set_config(task, maxConcurrentAgents=1, graceSeconds=0.2, childrenAtEnd="leave")
    spawn(worker("nests", 1, 1, "--leaf-waits-for", tmp_path / "gate", "--file", tmp_path / "children"), name="top")
    (child,) = wait_for_json(tmp_path / "children")
    task.has("agent.started", child)
    # A worker that is reported as started may still be at its gate, and would die there with its shim.
    program = Path(f"/proc/{row(child)['pid']}/cmdline")
    wait_until(
        lambda: text_in(program),
        what="the child's own program",
        accept=lambda line: line and "shim/__main__" not in line,
    )
    kill(task.shim_of(child))
    os.kill(row("top")["pid"], signal.SIGKILL)
    task.ended("top")
    assert row(child)["health"] == "unsupervised"
    assert spawn(["true"], name="x", check=False).code == 5
    (tmp_path / "gate").touch()
    wait_until(lambda: spawn(["true"], name="x", check=False).code, accept=lambda code: code == 0)
    run("wait", "x")


@pytest.mark.slow
def test_a_wait_with_a_time_limit_takes_the_slot_back(root: Path, tmp_path: Path) -> None:
    task = new_task(cap=1)
    script = (
        f"{AGENTCTL} spawn --queue --name one -- {gated(tmp_path / 'one')};"
        f"{AGENTCTL} spawn --queue --name two -- true; {AGENTCTL} wait one --timeout-seconds 1; echo code $?;"
        f"touch {tmp_path / 'back'}; {gated(tmp_path / 'top')}"
    )
    spawn(["sh", "-c", script], name="top")
    wait_until((tmp_path / "back").exists)
    assert "code 4" in (task.agent("top") / "stdout.log").read_text()
    assert "one" in started(task)
    open_gates(tmp_path, "one")
    task.ended("one")
    run("wait-any", "two", "--timeout-seconds", "0.05", check=False)
    assert "two" not in started(task)
    open_gates(tmp_path, "top")
    task.ended("top", "two")


@pytest.mark.slow
def test_a_grandchild_is_a_guest_of_the_guest(root: Path, tmp_path: Path) -> None:
    """At a cap of one, three levels deep: cancelling the middle worker gives its place back to the top's child."""
    task = new_task(cap=1, depth=2)
    spawn(worker("nests", 2, 1, "--leaf-waits-for", tmp_path / "gate"), name="top")
    wait_until(lambda: started(task), accept=lambda names: len(names) == 3, what="three levels")
    top, middle, leaf = started(task)
    assert top == "top"
    run("cancel", middle)
    task.ended("top", middle, leaf)
    assert statuses() == {"top": "failed", middle: "cancelled", leaf: "cancelled"}
    assert spawn(["true"], name="next").json["status"] == "running"
    task.ended("next")


@pytest.mark.slow
def test_a_queued_grandchild_is_started_by_the_wait_of_the_grandparent(root: Path, tmp_path: Path) -> None:
    """The child queues a worker and ends; only the top still waits for everything below it."""
    task = new_task(cap=1, depth=2)
    inner = f"{AGENTCTL} spawn --queue --name leaf -- true"
    spawn(
        ["sh", "-c", f"{AGENTCTL} spawn --queue --name child -- sh -c {shlex.quote(inner)}; {AGENTCTL} wait-all"],
        name="top",
    )
    task.ended("top", "child", "leaf")
    assert set(statuses().values()) == {"completed"}


def test_a_guest_on_its_way_is_not_started_by_another_lender_too(root: Path, tmp_path: Path) -> None:
    """Its shim may be slow, and until it is there the ticket stays in the queue."""
    task = new_task(cap=2, depth=2)
    inner = f"{AGENTCTL} spawn --queue --name leaf -- true; {gated(tmp_path / 'gate')}"
    spawn(
        ["sh", "-c", f"{AGENTCTL} spawn --name child -- sh -c {shlex.quote(inner)}; {gated(tmp_path / 'gate')}"],
        name="top",
    )
    task.has("agent.queued", "leaf")
    tree = tree_at(str(task.path))
    top = WorkerId(tree.id, "top")
    place = place_of(tree, WorkerId(tree.id, "child"))
    assert place is not None
    guest = guest_place(tree, place, survey(tree, 0, 0))
    assert guest is not None
    guest.occupy(Occupant(WorkerId(tree.id, "leaf")))
    with locked(tree.queue_lock):
        assert not dispatch_locked(tree, lender=top).launches
    guest.let_go()
    done = dispatch(tree, lender=top)
    assert [launched.ticket.instance for launched in done.launches] == ["leaf"]
    task.ended("leaf")
    open_gates(tmp_path, "gate")
    task.ended("top", "child")


def test_a_start_that_fails_leaves_no_name_in_its_place(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that is started in another place afterwards would have two, and lend one that is somebody else's."""
    task = new_task(cap=1)
    tree = tree_at(str(task.path))
    taken = survey(tree, 1, 1)
    spawn(["true"], "--queue", name="next")
    taken.release()
    with monkeypatch.context() as patch:
        patch.setattr(launching, "SHIM_SCRIPT", str(tmp_path / "removed meanwhile"))
        done = dispatch(tree)
    assert done.problem == "it could not be started: agentctl is just being replaced, or was removed"
    assert (done.launches, place_of(tree, WorkerId(tree.id, "next"))) == ([], None)
    assert [launched.ticket.instance for launched in dispatch(tree).launches] == ["next"]
    task.ended("next")
