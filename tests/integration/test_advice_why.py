"""At stake: each way out that `why` names is one, in the state in which it names it."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.advice import follow
from tests.agent_steps import agent, agent_world, blocked, define
from tests.life import forge, kill_shims, orphan, says_ready, set_config, state_of
from tests.steps import Task, new_task, row, spawn, statuses
from tests.support import PROGRAM, Completed, run, start, wait_until, worker
from tests.terminal import on_a_terminal

pytestmark = pytest.mark.slow

PLACE = "operations/show/"


def way(instance: str, verb: str, *options: str) -> str:
    """Return the way out that is a command of this verb."""
    told: dict[str, Any] = run("why", instance, *options, "--json").json
    found = [one["command"] for one in told["waysOut"] if f" {verb}" in (one["command"] or "")]
    assert found, told
    return str(found[0])


def go(instance: str, verb: str, put: dict[str, str] | None = None, *, check: bool = True) -> Completed:
    """Follow a way out."""
    command = way(instance, verb)
    return follow(command, command, put=put, check=check)


def has_way(instance: str, verb: str) -> bool:
    return any(f" {verb}" in (one["command"] or "") for one in run("why", instance, "--json").json["waysOut"])


def stranded() -> Task:
    """Make a task in which nothing lives, and one worker could start at once."""
    task = new_task(cap=1)
    spawn(worker("sleeps", 100), name="a")
    spawn(["true"], "--queue", name="b")
    pid = run("show", "a", "--json").json["pid"]
    kill_shims(task, "a")
    os.kill(pid, 9)
    wait_until(lambda: state_of(pid), accept=lambda state: state in "gone Z")
    return task


# -- in the queue ------------------------------------------------------------------------------------------------------


@pytest.mark.follows(
    "operations/show/queued_reasons._slots: agentctl wait-any",
    "operations/show/queued_reasons._dependencies: agentctl wait",
    "operations/show/queued_reasons.queued_part: agentctl cancel",
)
def test_the_slot_and_the_worker_that_one_in_the_queue_waits_for(root: Path, tmp_path: Path) -> None:
    new_task(cap=1)
    gate = tmp_path / "gate"
    spawn(worker("exits", 0, "--after-file", gate), name="a")
    spawn(["true"], "--queue", name="slot")
    spawn(["true"], "--queue", "--after", "a", name="after")
    spawn(["true"], "--queue", "--after", "after", name="last")

    go("last", "cancel")
    assert row("last")["status"] == "cancelled"
    waits, ends = way("after", "wait a"), way("slot", "wait-any")
    gate.touch()
    follow(waits, waits)
    follow(ends, ends)

    run("wait-all", check=False)
    assert statuses() == {"a": "completed", "slot": "completed", "after": "completed", "last": "cancelled"}


@pytest.mark.follows("operations/show/queued_reasons._environment: agentctl resume-queue")
def test_an_environment_that_is_lost_is_replaced(root: Path, tmp_path: Path) -> None:
    new_task(cap=1)
    spawn(worker("exits", 0, "--after-file", tmp_path / "gate"), name="a")
    spawn(["true"], "--queue", name="b")
    for blob in (Path(os.environ["XDG_RUNTIME_DIR"]) / "agentctl").iterdir():
        blob.unlink()

    go("b", "resume-queue")

    assert not has_way("b", "resume-queue")
    (tmp_path / "gate").touch()
    run("wait-all")


@pytest.mark.parametrize(
    "verb",
    [
        pytest.param("wait", marks=pytest.mark.follows("operations/show/queued_reasons._movers: agentctl wait")),
        pytest.param(
            "resume --lost",
            marks=pytest.mark.follows("operations/show/queued_reasons._movers: agentctl resume --lost"),
        ),
    ],
)
def test_a_stranded_one_is_moved(root: Path, verb: str) -> None:
    stranded()

    go("b", verb)

    run("wait", "b")
    assert row("b")["status"] == "completed"


@pytest.mark.follows("operations/show/why._stop_order: agentctl doctor --fix")
@pytest.mark.parametrize("is_damaged", [False, True])
def test_a_decision_to_stop_that_is_left_over_is_carried_out_or_set_aside(root: Path, is_damaged: bool) -> None:
    task = new_task(cap=1)
    spawn(worker("sleeps", 60), name="a")
    spawn(["true"], "--queue", name="b")
    run("cancel", "--all", env={"AGENTCTL_FAILPOINT": "stop.after-order"}, check=False)
    if is_damaged:
        (task.path / "stop.json").write_text("{", encoding="utf-8")
    told = {name: run("why", name).out for name in ("a", "b")}
    for said in told.values():
        assert ("cannot be read" if is_damaged else "user has decided to stop it") in said

    go("b", "doctor --fix")

    assert not (task.path / "stop.json").exists()
    run("cancel", "--all", check=False)
    assert statuses() == {"a": "cancelled", "b": "cancelled"}


# -- at work -----------------------------------------------------------------------------------------------------------


@pytest.mark.follows(
    "operations/show/live_reasons._pause: agentctl unpause",
    "operations/show/live_reasons._cancelling: agentctl cancel",
)
def test_a_paused_one_continues_and_one_at_work_is_cancelled(root: Path) -> None:
    new_task()
    spawn(worker("sleeps", 60), name="a")
    run("pause", "a")

    go("a", "unpause")
    assert not has_way("a", "unpause")
    go("a", "cancel")

    assert row("a")["status"] == "cancelled"


@pytest.mark.follows("operations/show/live_reasons._process: agentctl wait")
def test_its_own_end_is_waited_for(root: Path, tmp_path: Path) -> None:
    new_task()
    spawn(worker("exits", 0, "--after-file", tmp_path / "gate"), name="a")
    command = way("a", "wait")
    (tmp_path / "gate").touch()

    follow(command, command)

    assert row("a")["status"] == "completed"


@pytest.mark.follows("operations/show/live_reasons._cancel: agentctl cancel --grace-seconds")
def test_a_slow_cancel_is_shortened(root: Path) -> None:
    task = new_task(grace=600)
    spawn(["sh", "-c", "trap '' INT TERM; echo ready; while :; do sleep 1; done"], name="a")
    says_ready(task, "a")
    run("cancel", "a", "--no-wait")

    go("a", "cancel")

    assert row("a")["status"] == "cancelled"


@pytest.mark.follows("operations/show/live_reasons._of_question: agentctl answer")
def test_a_question_is_answered(root: Path) -> None:
    new_task()
    spawn(worker("asks", "--kind", "confirm", "Go on?"), name="a")
    blocked()

    go("a", "answer", {"ANSWER": "yes"})

    run("wait", "a")


@pytest.mark.follows("operations/show/live_reasons._asked_below: agentctl answer")
def test_a_question_of_a_child_is_answered(root: Path) -> None:
    new_task()
    ask = "agentctl spawn --name child --wait -- agentctl interact ask --kind confirm 'Go on?'"
    spawn(["sh", "-c", ask], name="a")
    blocked("child")

    go("a", "answer child", {"ANSWER": "yes"})

    run("wait", "a")


@pytest.mark.parametrize(
    "verb",
    [
        pytest.param("wait", marks=pytest.mark.follows("operations/show/live_reasons._guardian: agentctl wait")),
        pytest.param("cancel", marks=pytest.mark.follows("operations/show/live_reasons._guardian: agentctl cancel")),
    ],
)
def test_one_without_a_shim_comes_to_its_end(root: Path, verb: str) -> None:
    task = new_task()
    leader = orphan(task, "a")
    command = way("a", verb)
    if verb == "wait":
        os.kill(leader.pid, 9)

    follow(command, command, check=verb == "cancel")

    assert row("a")["status"] == ("cancelled" if verb == "cancel" else "failed")


@pytest.mark.follows("operations/show/live_reasons._guardian: kill -CONT")
def test_a_stopped_shim_goes_on(root: Path) -> None:
    task = new_task()
    spawn(worker("sleeps", 60), name="a")
    shim = task.shim_of("a")
    os.kill(shim, 19)
    wait_until(lambda: state_of(shim), accept=lambda state: state == "T")

    command = next(one["command"] for one in run("why", "a", "--json").json["waysOut"] if "kill" in str(one["command"]))
    follow(command, command)

    wait_until(lambda: state_of(shim), accept=lambda state: state != "T")
    run("cancel", "a")


@pytest.mark.follows(
    "operations/show/live_reasons._of_question: agentctl send",
    "interfaces/commands/watch/sentences.sentences_of: agentctl send",
)
def test_a_kept_agent_gets_its_next_message(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agent_world(tmp_path, monkeypatch)
    agent("say one", "--keep")
    wait_until(lambda: has_way("a", "send"), accept=bool, what="its answer")

    go("a", "send", {"TEXT": "'say two'"})
    wait_until(lambda: has_way("a", "send"), accept=bool, what="its next answer")
    assert "two" in run("logs", "a").out
    run("new", "Another", "--id", "other")
    shown = on_a_terminal([*PROGRAM, "interact", "list"])[1].decode().replace("\r", "")
    follow(shown, "agentctl send a --task t1 TEXT", put={"TEXT": "'say three'"})
    wait_until(lambda: "three" in run("logs", "a", "--task", "t1").out, accept=bool, what="its third answer")
    process = start("watch", "--plain")
    assert process.stdout is not None
    told = next(line for line in process.stdout if "waits for a message" in line)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)
    follow(told, "agentctl send a --task t1 TEXT", put={"TEXT": "--close"})

    run("wait", "a", "--task", "t1")


# -- ended -------------------------------------------------------------------------------------------------------------


@pytest.mark.follows("operations/show/end_reasons._ways: agentctl result")
def test_of_a_completed_one_the_result_is_shown(root: Path) -> None:
    new_task()
    spawn(["echo", "found"], "--wait", name="a")

    assert go("a", "result").out == "found\n"


@pytest.mark.follows("operations/show/end_reasons._ways: agentctl resume")
def test_an_agent_that_failed_is_continued(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agent_world(tmp_path, monkeypatch)
    agent(f"once 529 {tmp_path / 'seen'}")
    run("wait", "a", check=False)
    assert row("a")["status"] == "failed"

    go("a", "resume")

    run("wait-all", check=False)
    assert len(statuses()) == 2


@pytest.mark.follows("operations/show/end_reasons._breaker: agentctl doctor --close-breaker")
def test_an_agent_that_failed_too_often_may_be_started_again(root: Path) -> None:
    task = new_task()
    set_config(task, breakerFailures=1, breakerCooldownSeconds=60)
    define(root, "weak", "exit 1")
    run("spawn", "--agent", "weak", "--name", "x", "--wait", "do", check=False)

    go("x", "doctor --close-breaker")

    assert not has_way("x", "doctor --close-breaker")
    assert run("spawn", "--agent", "weak", "do").code == 0
    run("wait-all", check=False)


# -- what cannot be judged ---------------------------------------------------------------------------------------------


@pytest.mark.follows("operations/show/why._claimed: agentctl trust")
def test_a_task_of_somebody_else_is_trusted(root: Path) -> None:
    new_task()
    spawn(["true"], "--wait", name="a")
    for mark in (Path(os.environ["HOME"]) / ".config" / "agentctl" / "own").iterdir():
        mark.unlink()

    command = way("a", "trust", "--task", "t1")
    follow(command, command)

    assert run("why", "a", "--task", "t1", "--json").json["judged"]


@pytest.mark.follows("operations/show/why._unaccepted: agentctl doctor --fix")
def test_a_folder_that_was_never_accepted_is_removed(root: Path) -> None:
    task = new_task()
    spawn(["true"], "--wait", name="a")
    folder = task.agent("ghost")
    folder.mkdir()
    (folder / "spec.json").write_bytes((task.agent("a") / "spec.json").read_bytes())
    forge(folder / "spec.json", agentInstance="ghost")

    go("ghost", "doctor --fix")

    assert not folder.exists()
