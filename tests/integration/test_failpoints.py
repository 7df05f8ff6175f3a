"""At stake: whatever is killed at any moment, the state is true, nothing runs twice, and the queue goes on."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from agentctl.adapters.locks import try_lock
from agentctl.adapters.treedir import tree_at
from agentctl.supervision.dispatch.launching import await_answer, hand_over, launch
from agentctl.supervision.queue.places import Place
from agentctl.supervision.queue.tickets import make_ticket, read_queue
from agentctl.supervision.worker.environment import NO_ENVIRONMENT
from tests.life import is_settled, kill_shims, leader_of, lives, living, members, says_ready, stands, state_of
from tests.steps import Task, new_task, row, spawn, statuses
from tests.support import Completed, alike, run, start, wait_until, worker

VARIABLE = "AGENTCTL_FAILPOINT"

#: Where a spawn into the queue is killed -> (the worker's end, how often its program was executed).
STARTS = {
    # Nothing has reported the worker yet: as if it had never been requested.
    "spawn.after-mkdir": (None, 0),
    "spawn.after-spec": (None, 0),
    # On disk with its environment: the next dispatch starts it.
    "spawn.after-ticket": (None, 0),
    # In the log, but the ticket did not count yet.
    "spawn.after-queued": ("failed", 0),
    "dispatch.after-launch": ("completed", 1),
    "shim.locked": ("completed", 1),
    "shim.after-fork": ("completed", 1),
    "shim.after-identity": ("completed", 1),
    # Reported as started, so never started again. The child at the gate exited without executing anything.
    "shim.after-started": ("failed", 0),
    "shim.after-ticket": ("failed", 0),
    # Executed, and nobody saw the exit.
    "shim.after-gate": ("failed", 1),
    "shim.after-leader": ("failed", 1),
    "shim.after-sweep": ("failed", 1),
    # The decision is on disk: it is copied, not made again.
    "shim.after-exit-file": ("completed", 1),
    "shim.after-end-event": ("completed", 1),
    "shim.before-release": ("completed", 1),
}

#: One of each kind; only `make soak` tries the others, each of which is much like its neighbour.
TURNS = ("spawn.after-ticket", "shim.after-started", "shim.after-exit-file")


def marks(file: Path) -> list[str]:
    """Return the argv of a program that appends its worker's name to a file, as a sign that it was executed."""
    file.touch()

    return ["/bin/sh", "-c", f'echo "$AGENTCTL_INSTANCE" >> {file}']


def killed_spawn(failpoint: str, argv: list[str], *options: str) -> Completed:
    """Spawn `a` with a failpoint. When this returns, a spawn that the failpoint kills is dead."""
    done = run("spawn", *options, "--name", "a", "--", *argv, env={VARIABLE: failpoint}, check=False)
    assert (done.code == -signal.SIGKILL) == (not failpoint.startswith("shim.")), done
    return done


def read_all(task: Task) -> dict[str, dict[str, Any]]:
    """Run all commands that only read, at the same time; return the rows of `list`."""
    commands = {"list": ["list", "--json"], "show": ["show", "a"], "doctor": ["doctor"], "result": ["result", "a"]}
    running = {name: start(*argv) for name, argv in commands.items()}
    said = {name: (*process.communicate(timeout=30), process.returncode) for name, process in running.items()}
    for name, (_, err, code) in said.items():
        assert code in (0, 1, 7), (name, said[name])
        assert "bug in agentctl" not in err, (name, err)
    rows = {one["agentInstance"]: one for one in json.loads(said["list"][0])}
    for one in rows.values():  # A worker that is shown as running does run, or its guardian lives.
        assert one["status"] != "running" or one["health"] in ("supervised", "unsupervised"), one
    return rows


def drain() -> dict[str, str]:
    """Take every end from `wait-any`; check that none comes twice."""
    given: dict[str, str] = {}
    while (told := run("wait-any", "--json", "--timeout-seconds", "20", check=False)).code == 0:
        assert told.json["agentInstance"] not in given, told
        given[told.json["agentInstance"]] = told.json["status"]
    assert told.code == 6, told
    return given


@pytest.mark.parametrize("failpoint", [*TURNS, *alike(*(name for name in STARTS if name not in TURNS))])
@pytest.mark.slow
def test_a_spawn_into_the_queue_killed_at_any_turn(root: Path, tmp_path: Path, failpoint: str) -> None:
    task = new_task(cap=1)
    ran = tmp_path / "ran"
    killed_spawn(failpoint, marks(ran), "--queue")
    wait_for_the_killed(task, failpoint)
    read_all(task)
    run("spawn", "--queue", "--wait", "--name", "b", "--", *marks(ran), timeout=40)
    status, times = STARTS[failpoint]
    assert drain() == {"b": "completed"} | ({"a": status} if status else {})
    assert ran.read_text(encoding="ascii").split().count("a") == times
    if status:
        assert is_settled(task, "a")["status"] == status
        assert len(task.events("agent.started", of="a")) == (failpoint != "spawn.after-queued")
        assert run("cancel", "a", "--json").json["cancelled"] is False
    else:
        assert "a" not in statuses()
        assert run("doctor", "--fix", check=False).code in (0, 1)
        run("spawn", "--wait", "--name", "a", "--", "true")  # its name is free again
    assert task.tickets() == []


def wait_for_the_killed(task: Task, failpoint: str) -> None:
    """Wait until the shim that the failpoint kills is dead."""
    if failpoint.startswith("shim."):
        wait_until(lambda: not _shim_lives(task), what="the shim to die")


def _shim_lives(task: Task) -> bool:
    try:
        line = Path(f"/proc/{task.shim_of('a')}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):  # the latter if it ends between open and read
        return False
    return b"shim/__main__.py" in line


@pytest.mark.parametrize("failpoint", ["dispatch.after-launch", *alike("spawn.after-queued")])
@pytest.mark.slow
def test_a_spawn_killed_with_its_environment_leaves_a_worker_that_is_told_as_not_started(
    root: Path, tmp_path: Path, failpoint: str
) -> None:
    """Its environment was only in the memory of the killed command, so nothing can start it any more."""
    task = new_task(cap=1)
    ran = tmp_path / "ran"
    killed_spawn(failpoint, marks(ran))
    read_all(task)
    spawn(marks(ran), "--wait", name="b")
    run("wait", "a", check=False)
    ended = is_settled(task, "a")
    assert (ended["status"], ended["reason"]) == ("failed", "not_started")
    assert ran.read_text(encoding="ascii").split() == ["b"]
    assert task.tickets() == []


@pytest.mark.parametrize("failpoint", ["shim.after-identity", *alike("shim.locked", "shim.after-fork")])
@pytest.mark.slow
def test_a_shim_killed_before_the_start_is_told_by_spawn(root: Path, tmp_path: Path, failpoint: str) -> None:
    task = new_task(cap=1)
    ran = tmp_path / "ran"
    refused = killed_spawn(failpoint, marks(ran))
    assert refused.code == 1
    assert "a could not be started: its shim died" in refused.err
    assert read_all(task)["a"]["reason"] == "not_started"
    assert is_settled(task, "a")["reason"] == "not_started"
    spawn(["true"], "--wait", name="b")
    assert ran.read_text(encoding="ascii") == ""
    assert drain() == {"a": "failed", "b": "completed"}


@pytest.mark.parametrize("failpoint", ["shim.after-ticket", *alike("shim.after-started")])
def test_spawn_does_not_say_running_of_what_was_never_executed(root: Path, tmp_path: Path, failpoint: str) -> None:
    task = new_task(cap=1)
    said = killed_spawn(failpoint, marks(tmp_path / "ran"))
    assert said.code != 0 or "running" not in said.out, said
    assert read_all(task)["a"]["status"] == "failed"
    spawn(["true"], "--wait", name="b")
    assert (tmp_path / "ran").read_text(encoding="ascii") == ""


@pytest.mark.slow
def test_what_was_told_as_started_is_never_started_again(root: Path, tmp_path: Path) -> None:
    """Its ticket is still there, and nothing has judged it before the queue goes on."""
    task = new_task(cap=1)
    ran = tmp_path / "ran"
    killed_spawn("shim.after-started", marks(ran), "--queue")
    run("spawn", "--queue", "--wait", "--name", "b", "--", *marks(ran))
    assert ran.read_text(encoding="ascii").split() == ["b"]
    assert len(task.events("agent.started", of="a")) == 1
    assert statuses() == {"a": "failed", "b": "completed"}
    assert task.tickets() == []


@pytest.mark.parametrize("failpoint", ["shim.after-gate", *alike("shim.after-started")])
def test_a_second_shim_that_was_on_its_way_starts_nothing_again(root: Path, tmp_path: Path, failpoint: str) -> None:
    """The process that launched it had read the queue before the first shim was there, and was killed."""
    task = new_task(cap=2)
    ran = tmp_path / "ran"
    killed_spawn(failpoint, marks(ran), "--queue")
    pid = task.events("agent.started", of="a")[0]["payload"]["pid"]
    wait_until(lambda: state_of(pid), accept=lambda state: state in ("gone", "Z"), what="the worker to end")
    before = ran.read_text(encoding="ascii")
    tree = tree_at(str(task.path))
    fd = try_lock(tree.slots / "2")
    assert fd is not None
    ticket = next(iter(read_queue(tree)), make_ticket(tree.id, "a", 0, 1, NO_ENVIRONMENT, waits=False))
    late = launch(tree, ticket, Place(fd))
    hand_over(late, tree, b"", str(tmp_path))
    assert "was already started" in await_answer(late)["error"]
    assert ran.read_text(encoding="ascii") == before
    assert len(task.events("agent.started", of="a")) == 1
    assert drain() == {"a": "failed"}
    assert is_settled(task, "a")["reason"] == "lost"
    assert task.tickets() == []


@pytest.mark.slow
def test_a_spawn_with_a_key_killed_before_it_told_anybody_burns_no_key(root: Path, tmp_path: Path) -> None:
    task = new_task()
    ran = tmp_path / "ran"
    for failpoint in ("spawn.after-mkdir", "spawn.after-spec"):
        killed_spawn(failpoint, marks(ran), "--key", failpoint)
        again = spawn(marks(ran), "--key", failpoint, "--wait").json
        assert again["reused"] is False
        assert again["status"] == "completed"
    assert len(ran.read_text(encoding="ascii").split()) == 2
    assert task.tickets() == []


def test_a_shim_killed_at_the_gate_with_a_tree_to_come_leaves_nothing_alive(root: Path, tmp_path: Path) -> None:
    """An orphan at the gate never executes its program."""
    task = new_task()
    killed_spawn("shim.after-ticket", worker("stubborn", tmp_path / "pids"), "--queue")
    pid = task.events("agent.started", of="a")[0]["payload"]["pid"]
    wait_until(lambda: state_of(pid), accept=lambda state: state in ("gone", "Z"), what="its exit")
    assert read_all(task)["a"]["status"] == "failed"
    assert not (tmp_path / "pids").exists()


@pytest.mark.parametrize("supervised", [False, *alike(True)], ids=["unsupervised", "supervised"])
def test_a_cancel_killed_after_its_request_takes_effect_or_can_be_said_again(
    root: Path, tmp_path: Path, supervised: bool
) -> None:
    task = new_task(cap=1, grace=0.1)
    pids = tmp_path / "pids"
    spawn(worker("stubborn", pids), name="a")
    spawn(["true"], "--queue", name="b")
    tree = members(pids)
    if not supervised:
        kill_shims(task, "a")
    assert run("cancel", "a", env={VARIABLE: "cancel.after-request"}, check=False).code == -signal.SIGKILL
    assert (task.agent("a") / "cancel.json").exists()
    if not supervised:
        assert row("a")["health"] == "unsupervised"
        assert run("cancel", "a", "--json").json["cancelled"] is True
    task.ended("a")
    assert living(tree.values()) == []
    assert is_settled(task, "a")["status"] == "cancelled"
    run("wait", "b")


@pytest.mark.slow
def test_a_guardian_killed_in_the_middle_of_an_escalation_is_replaced(root: Path, tmp_path: Path) -> None:
    """First the shim is killed, then the undertaker that replaced it: each cancel continues the escalation."""
    task = new_task(grace=0.3)
    pids = tmp_path / "pids"
    spawn(worker("stubborn", pids), "--grace-seconds", "60", name="a")
    tree = members(pids)
    run("cancel", "a", "--no-wait")
    kill_shims(task, "a")
    run("cancel", "a", "--no-wait")
    undertaker = task.shim_of("a")
    assert row("a")["health"] == "supervised"
    os.kill(undertaker, signal.SIGKILL)
    wait_until(lambda: row("a")["health"], accept=lambda health: health == "unsupervised", what="it to be alone")
    assert run("cancel", "a", "--grace-seconds", "0.05", "--json").json["cancelled"] is True
    assert living(tree.values()) == []
    assert is_settled(task, "a")["status"] == "cancelled"


@pytest.mark.slow
def test_a_responder_killed_after_its_answer_has_answered(root: Path) -> None:
    task = new_task()
    spawn(worker("asks", "--kind", "input", "What?"), name="a")
    task.has("agent.blocked", "a")
    killed = run("interact", "respond", "a", "--id", "q1", "this", env={VARIABLE: "respond.after-answer"}, check=False)
    assert killed.code == -signal.SIGKILL
    assert run("interact", "respond", "a", "--id", "q1", "that", check=False).code != 0
    run("wait", "a")
    assert (task.agent("a") / "stdout.log").read_text(encoding="utf-8") == "answer: this\n"
    assert [event["type"] for event in task.events(of="a")][-1] == "agent.completed"
    assert run("interact", "list", "--json").json == []


@pytest.mark.parametrize("failpoint", ["wait.after-print", *alike("wait.after-claim")])
@pytest.mark.slow
def test_a_wait_killed_before_it_marked_gives_the_end_again(root: Path, failpoint: str) -> None:
    new_task()
    spawn(["true"], "--wait", name="a")
    killed = run("wait-any", "--json", env={VARIABLE: failpoint}, check=False)
    assert killed.code == -signal.SIGKILL
    assert ("completed" in killed.out) == (failpoint == "wait.after-print")
    again = run("wait-any", "--json").json
    assert (again["agentInstance"], again["redelivered"]) == ("a", True)
    assert run("wait-any", check=False).code == 6


@pytest.mark.slow
def test_a_trust_that_was_killed_is_given_whole_when_it_is_said_again(root: Path) -> None:
    """The orders of a task are valid only with its `origin`: none may be left with another one."""
    task = new_task()
    for name in "ab":
        spawn(["true"], "--wait", name=name)
    moved = task.path.rename(task.path.with_name("t2"))
    killed = run("trust", moved, env={VARIABLE: "trust.after-order"}, check=False)
    assert killed.code == -signal.SIGKILL
    assert run("spawn", "--task", "t2", "--", "true", check=False).code == 1
    run("trust", moved)
    nonce = (moved / "origin").read_text(encoding="ascii").strip()
    orders = [json.loads((moved / "agents" / name / "spec.json").read_bytes()) for name in "ab"]
    assert [order["origin"] for order in orders] == [nonce, nonce]
    run("spawn", "--task", "t2", "--wait", "--", "true")


def test_a_killed_shim_of_a_worker_that_goes_on_loses_nothing_of_its_files(root: Path, tmp_path: Path) -> None:
    task = new_task()
    spawn(worker("waits_for_file", tmp_path / "gate"), name="a")
    says_ready(task, "a")
    leader = leader_of(task, "a")
    kill_shims(task, "a")
    (tmp_path / "gate").touch()
    wait_until(lambda: lives(leader), accept=lambda alive: not alive, what="its own end")
    assert statuses() == {"a": "failed"}
    assert is_settled(task, "a")["reason"] == "lost"
    assert (task.agent("a") / "stdout.log").read_bytes() == b"ready\ndone\n"
    assert "done" in run("result", "a", check=False).out


def test_a_look_that_began_before_its_start_calls_no_worker_lost(root: Path) -> None:
    """`list` sees the worker in the log before its ticket counts, and is stopped until the worker runs."""
    task = new_task()
    spawning = start("spawn", "--name", "a", "--", *worker("sleeps", 60), env={VARIABLE: "spawn.after-queued:stop"})
    stands(spawning.pid)
    listing = start("list", "--json", env={VARIABLE: "judge.seems-lost:stop"})
    stands(listing.pid)
    spawning.send_signal(signal.SIGCONT)
    assert spawning.wait(timeout=20) == 0
    says_ready(task, "a")
    listing.send_signal(signal.SIGCONT)
    [one] = json.loads(listing.communicate(timeout=20)[0])
    assert (one["status"], one["health"]) == ("running", "supervised")
    assert task.events("agent.failed") == []
    run("cancel", "a")
