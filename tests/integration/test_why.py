"""At stake: `why` gives the true reason of each state, with evidence that is really there, and never a guess."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.agent_steps import agent, agent_world, define
from tests.life import forge, kill_shims, leader_of, orphan, read, says_ready, set_config, stands
from tests.snapshots import snapshot
from tests.steps import held, kill, new_task, row, spawn, spawn_batch, statuses
from tests.support import PROGRAM, alike, run, start, wait_until, worker


def why(instance: str) -> dict[str, Any]:
    """Return what `why` says of a worker, after a check that each piece of evidence can be looked up."""
    told: dict[str, Any] = run("why", instance, "--json").json
    for statement in told["statements"]:
        assert re.fullmatch(r"[A-Z0-9].*", statement["text"], re.DOTALL), statement
        for one in statement["evidence"]:
            is_there(one)
    shown = run("why", instance).out
    assert shown.startswith(f"{instance} is {told['state'].replace('_', ' ')}"), shown
    lines = {re.sub(r"\d+", "N", line) for line in shown.splitlines()}  # The clock has gone on.
    assert {re.sub(r"\d+", "N", statement["text"]) for statement in told["statements"]} <= lines
    return told


def is_there(evidence: dict[str, Any]) -> None:
    """Check a piece of evidence: an event has that line in the log, a pid is a number, a path is absolute."""
    where = evidence["where"]
    match evidence["kind"]:
        case "event":
            log, _, seq = where.rpartition(":")
            line = Path(log).read_bytes().splitlines()[int(seq) - 1]
            assert evidence["says"].startswith(json.loads(line)["type"]), evidence
        case "process":
            assert re.fullmatch(r"pid \d+", where), evidence
        case "file" | "lock":
            absent = ("there is no", "no process", "it is missing")
            assert Path(where).is_absolute(), evidence
            assert os.path.lexists(where) or evidence["says"].startswith(absent), evidence
        case _:
            pytest.fail(f"an unknown kind of evidence: {evidence}")


def texts(told: dict[str, Any]) -> str:
    """Return all sentences."""
    return "\n".join(statement["text"] for statement in told["statements"])


def evidence_for(told: dict[str, Any], sentence: str) -> str:
    """Return the evidence of the sentence that has these words, a line for each."""
    found = next(one for one in told["statements"] if sentence in one["text"])
    return "\n".join(f"{one['kind']} {one['where']} {one['says']}" for one in found["evidence"])


def commands(told: dict[str, Any]) -> list[str]:
    """Return the commands that would change the state."""
    return [way["command"] for way in told["waysOut"] if way["command"]]


def types(command: str) -> None:
    """Run a command as it was shown."""
    assert command.startswith("agentctl "), command
    run(*shlex.split(command)[1:])


# -- in the queue ------------------------------------------------------------------------------------------------------


def test_in_the_queue_for_a_slot_for_others_and_for_its_environment(root: Path, tmp_path: Path) -> None:
    task = new_task(cap=1)
    spawn_batch([held(tmp_path / "gate", "a"), {"name": "b", "argv": ["true"]}])
    spawn(["true"], "--queue", "--after", "a", name="c")
    spawn(["true"], "--queue", "--after", "c", "--after-any", name="d")

    told = why("b")
    assert (told["status"], told["state"], told["judged"]) == ("queued", "queued", True)
    assert told["since"] == task.events("agent.queued", of="b")[0]["ts"]
    assert "The only slot of t1 is taken, by a." in texts(told)
    proof = evidence_for(told, "only slot")
    assert f"{task.path / 'slots/1'} names t1/a" in proof
    assert f"process pid {task.shim_of('a')} the shim of a: alive" in proof
    assert "before it in the queue" not in texts(told)
    assert "agentctl cancel b" in commands(told)

    told = why("c")
    assert "It waits for a to complete." in texts(told)
    assert "One worker is before it in the queue: b." in texts(told)
    assert f"lock {task.agent('a') / 'shim.json'} a live process holds it" in evidence_for(told, "waits for a")
    assert "agentctl wait a" in commands(told)
    assert "It waits for c to end." in texts(why("d"))

    assert "environment" not in texts(why("b"))
    for file in (Path(os.environ["XDG_RUNTIME_DIR"]) / "agentctl").rglob("*"):
        if file.is_file() and not file.is_symlink():
            file.unlink()
    told = why("b")
    assert "Its environment is lost" in texts(told)
    (command,) = [one for one in commands(told) if "resume-queue" in one]
    types(command)
    assert "environment" not in texts(why("b"))
    (tmp_path / "gate").touch()
    task.ended("a", "b", "c", "d")


@pytest.mark.slow
def test_an_agent_that_is_parked_and_one_that_waits_for_the_same_account(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = agent_world(tmp_path, monkeypatch)
    agent(f"stopped 9000 {tmp_path / 'tries'}")
    task.has("agent.parked", "a")
    told, event = why("a"), task.events("agent.parked")[0]
    assert (told["status"], told["state"], told["since"]) == ("queued", "parked", event["ts"])
    assert f"may not be used until {event['payload']['until']}" in texts(told)
    assert "window five_hour" in evidence_for(told, "Its account")
    agent("say late", "--queue", name="c")
    assert (why("c")["state"], "Its account may not be used" in texts(why("c"))) == ("queued", True)
    types(next(one for one in commands(why("a")) if "--free-account" in one))
    task.ended("a", "c")
    assert statuses() == {"a": "completed", "c": "completed"}


# -- at work -----------------------------------------------------------------------------------------------------------


def test_large_numbers_of_seconds_are_told_to_the_second(root: Path) -> None:
    task = new_task()
    spawn(worker("sleeps", 60), "--timeout-seconds", "2345678", name="a")
    task.has("agent.started", "a")
    process = task.agent("a") / "worker.json"
    process.write_text(json.dumps({**json.loads(process.read_text()), "since": 1234567.25}))  # After 14 days.
    told = why("a")
    assert "its time limit of 2345678 s" in texts(told)
    assert "the clock of this attempt began at 1234567 " in evidence_for(told, "It has worked for")
    run("cancel", "a")


@pytest.mark.slow
def test_a_worker_at_work_its_output_and_what_is_left_of_its_time(root: Path, tmp_path: Path) -> None:
    task = new_task()
    spawn(worker("sleeps", 60), "--timeout-seconds", "500", name="a")
    says_ready(task, "a")
    told = why("a")
    assert (told["state"], told["since"]) == ("running", task.events("agent.started")[0]["ts"])
    assert "Its program runs." in texts(told)
    assert f"process pid {leader_of(task, 'a').pid} its first process: alive" in evidence_for(told, "program runs")
    guard = evidence_for(told, "A live shim guards it.")
    assert f"lock {task.agent('a') / 'shim.json'} a live process holds it" in guard
    assert "It last wrote output at" in texts(told)
    assert re.search(r"It has worked for \d+ s of its time limit of 500 s: \d+ s are left\.", texts(told))
    os.kill(task.shim_of("a"), signal.SIGSTOP)
    stands(task.shim_of("a"))
    told = why("a")
    assert "somebody has stopped that shim" in texts(told)
    assert f"kill -CONT {task.shim_of('a')}" in commands(told)
    os.kill(task.shim_of("a"), signal.SIGCONT)

    run("pause", "a")
    told = why("a")
    assert (told["state"], told["since"]) == ("paused", task.events("agent.paused")[0]["ts"])
    assert told["statements"][0]["text"].startswith("It is paused, by user")
    assert "its first process: alive, stopped" in evidence_for(told, "Its program is stopped")
    types(commands(told)[0])
    assert why("a")["state"] == "running"
    run("cancel", "a")


def test_blocked_with_a_live_asker_and_not_blocked_once_that_is_gone(root: Path) -> None:
    task = new_task()
    ask = f"{shlex.join(PROGRAM)} interact ask 'Shall I?'"
    spawn(["sh", "-c", f"{ask}; exec sleep 60"], name="a")
    wait_until(statuses, accept=lambda now: now == {"a": "blocked"}, what="the question")
    told, asker = why("a"), read(task.agent("a") / "interactions/q1.json")["asker"]["pid"]
    assert (told["state"], told["since"]) == ("blocked", task.events("agent.blocked")[0]["ts"])
    assert told["statements"][0]["text"] == "It asks, and its asker waits for the answer to q1: Shall I?"
    proof = evidence_for(told, "It asks")
    assert f"process pid {asker} its asker: alive" in proof
    assert f"lock {task.agent('a') / 'interactions/q1.lock'} a live process holds it" in proof
    assert commands(told)[0] == "agentctl answer a --id q1 ANSWER"

    kill(asker)
    wait_until(statuses, accept=lambda now: now == {"a": "running"}, what="it to go on")
    told = why("a")
    assert told["state"] == "running"
    assert "Its question q1 is open, but its asker has gone" in texts(told)
    proof = evidence_for(told, "asker has gone")
    assert f"process pid {asker} its asker: gone" in proof
    assert "no process holds it" in proof
    run("cancel", "a")


@pytest.mark.slow
def test_stalled_and_the_pause_before_another_attempt(root: Path) -> None:
    task = new_task()
    set_config(task, stallSeconds=0.2, graceSeconds=0.1)
    spawn(worker("sleeps", 60), name="a")
    spawn(["sh", "-c", "exit 3"], "--retries", "2", "--retry-delay-seconds", "60", name="b")
    task.has("agent.stalled", "a")
    task.has("agent.retrying", "b")
    told = why("a")
    assert (told["state"], told["since"]) == ("stalled", task.events("agent.stalled")[0]["ts"])
    assert "no output, activity or report of it for 0.2 s (stallSeconds)" in texts(told)
    assert f"file {task.agent('a') / 'stdout.log'} its output, " in evidence_for(told, "stalled")
    told = why("b")
    assert told["state"] == "retrying"
    assert "attempt 1 has failed, and the next one begins after a pause" in texts(told)
    assert f"{task.agent('b') / 'exit.1.json'} status failed, reason exit_code, exitCode 3" in evidence_for(
        told, "attempt 1"
    )
    run("cancel", "--all")


@pytest.mark.slow
def test_what_a_child_asks_comes_before_that_its_parent_is_stalled(root: Path) -> None:
    task = new_task(depth=2)
    set_config(task, stallSeconds=0.2)
    ask = [*PROGRAM, "interact", "ask", "--kind", "input", "Which branch?"]
    spawn([*PROGRAM, "spawn", "--wait", "--name", "child", "--", *ask], name="top")
    task.has("agent.stalled", "top")
    task.has("agent.blocked", "child")
    assert "a child asks" in next(line for line in run("list").out.splitlines() if line.startswith("top"))
    told = why("top")
    assert "Below it, child asks, and waits for the answer to q1: Which branch?" in texts(told)
    assert any("answer child --id q1 ANSWER" in str(way["command"]) for way in told["waysOut"]), told["waysOut"]
    run("interact", "respond", "child", "--id", "q1", "main")
    task.ended("top")


@pytest.mark.slow
def test_a_parent_that_awaits_its_children_names_them(root: Path, tmp_path: Path) -> None:
    task = new_task(depth=2)
    child = shlex.join([*PROGRAM, "spawn", "--name", "child", "--", *worker("sleeps", 60)])
    spawn(["sh", "-c", f"{child} >/dev/null; until [ -e {tmp_path / 'go'} ]; do sleep 0.05; done"], name="top")
    wait_until(statuses, accept=lambda now: now.get("child") == "running", what="the child")
    told = why("top")
    assert told["state"] == "running"
    assert "Workers that it started are alive: child." in texts(told)
    (tmp_path / "go").touch()
    task.has("agent.awaiting_children", "top")
    told = why("top")
    assert (told["state"], told["since"]) == ("awaiting_children", task.events("agent.awaiting_children")[0]["ts"])
    assert "it waits for the workers that it started: child." in texts(told)
    assert f"{task.agent('child')} child is supervised" in evidence_for(told, "it waits for")
    types("agentctl why child")
    run("cancel", "child")
    task.ended("top")
    assert "Workers that it had started were still alive at its end: t1/child" in texts(why("top"))


def test_a_cancel_under_way_says_who_asked_and_how_to_shorten_it(root: Path, tmp_path: Path) -> None:
    task = new_task(grace=60)
    spawn(worker("stubborn", tmp_path / "pids"), name="a")
    wait_until((tmp_path / "pids").exists, what="its processes")
    cancelling = start("cancel", "a")
    task.has("agent.cancel_requested", "a")
    told = why("a")
    assert (told["status"], told["state"]) == ("running", "cancelling")
    assert told["since"] == read(task.agent("a") / "cancel.json")["at"]
    assert told["statements"][0]["text"] == "It is being cancelled, as user asked."
    assert f"file {task.agent('a') / 'cancel.json'} by user" in evidence_for(told, "being cancelled")
    types(commands(told)[0])
    assert cancelling.wait(timeout=20) == 0
    told = why("a")
    assert (told["state"], "It was cancelled by user." in texts(told)) == ("cancelled", True)


# -- without a shim ----------------------------------------------------------------------------------------------------


def test_unsupervised_then_lost(root: Path) -> None:
    task = new_task()
    leader = orphan(task, "a")
    told, shim = why("a"), read(task.agent("a") / "shim.json")["pid"]
    assert (told["status"], told["state"], told["since"]) == ("running", "unsupervised", None)
    assert "since an unknown time" in run("why", "a").out.splitlines()[0]
    proof = evidence_for(told, "Its shim is gone")
    assert f"lock {task.agent('a') / 'shim.json'} no process holds it" in proof
    assert f"process pid {shim} its shim: gone" in proof
    assert f"process pid {leader.pid} its own, alive: " in proof
    assert "agentctl cancel a" in commands(told)

    kill(leader.pid)
    told = why("a")
    assert (told["state"], told["since"]) == ("failed", task.events("agent.failed")[0]["ts"])
    assert "nobody saw how it exited" in texts(told)
    assert f"process pid {leader.pid} its first process: gone" in evidence_for(told, "Neither its shim")


def test_on_another_machine_it_is_unknown_from_here(root: Path) -> None:
    task = new_task()
    leader = orphan(task, "a")
    forge(task.agent("a") / "worker.json", machine="another-machine", boot="its-boot")
    told = why("a")
    assert (told["status"], told["state"], told["since"]) == ("running", "elsewhere", None)
    assert "what has become of it is unknown from here" in told["statements"][0]["text"]
    assert "machine another-machine" in evidence_for(told, "unknown from here")
    assert all(not one.startswith("agentctl cancel") for one in commands(told))
    kill(leader.pid)


# -- ends --------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_each_end_of_a_command_has_its_reason(root: Path, tmp_path: Path) -> None:
    task = new_task()
    set_config(task, maxConcurrentAgents=9, maxOutputBytes=100_000, graceSeconds=0.1, maxDepth=2)
    own_end = shlex.join([*PROGRAM, "cancel", "victim"])
    spawn_batch(
        [
            {"name": "good", "argv": ["true"]},
            {"name": "code", "argv": worker("exits", 3, "--after-file", tmp_path / "gate")},
            {"name": "sig", "argv": worker("dies_by_signal", "SIGKILL")},
            {"name": "late", "argv": worker("sleeps", 60), "timeoutSeconds": 0.2},
            {"name": "flood", "argv": worker("floods", "--to", "both")},
            {"name": "victim", "argv": worker("sleeps", 60)},
            {"name": "heir", "argv": ["true"], "after": ["code"]},
        ]
    )
    (tmp_path / "gate").touch()
    spawn(["sh", "-c", own_end], "--wait", name="killer")
    program = tmp_path / "program"
    program.write_text(f"#!{tmp_path}/missing\n", encoding="utf-8")
    program.chmod(0o755)
    spawn([str(program)], name="never", check=False)
    said = {
        "good": ("completed", "It has ended by itself, successfully."),
        "code": ("failed", "It failed: its program exited with 3."),
        "sig": ("failed", "It failed: SIGKILL, which agentctl did not send, ended its program."),
        "late": ("failed", "It failed: its time limit passed: its time limit of 0.2 s passed."),
        "flood": ("failed", "It failed: it wrote more than it may (maxOutputBytes)"),
        "heir": (
            "failed",
            "It failed: a worker that it waited for did not complete: a dependency was not met: code failed.",
        ),
        "never": ("failed", "It failed: its work did not begin: "),
        "victim": ("cancelled", "It was cancelled by killer."),
    }
    task.ended(*said)
    for name, (status, text) in said.items():
        told, end = why(name), task.events(f"agent.{status}", of=name)[0]
        assert (told["state"], told["since"]) == (status, end["ts"]), told
        assert told["statements"][0]["text"].startswith(text), told
        assert f"file {task.agent(name) / 'exit.json'} status {status}" in evidence_for(told, text)
    assert "Its end was requested by killer." in texts(why("victim"))
    assert commands(why("good")) == ["agentctl result good"]
    types(commands(why("code"))[0])


#: What an agent program does, and how its end is explained.
AGENT_ENDS = {
    "cut": ("truncated", "It failed: its answer or its stream was cut off"),
    "retry 529": ("overloaded", "It failed: the provider is overloaded"),
    "retry 401": ("auth", "It failed: a key or login is missing or was refused"),
}


@pytest.mark.slow
def test_each_end_of_an_agent_has_its_reason(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = agent_world(tmp_path, monkeypatch, cap=4)
    set_config(task, retryCeilingSeconds=0.1, breakerFailures=1)
    for number, prompt in enumerate(AGENT_ENDS):
        run("doctor", "--close-breaker", "general", check=False)
        agent(prompt, name=f"a{number}")
        task.ended(f"a{number}")
    for number, (reason, text) in enumerate(AGENT_ENDS.values()):
        assert read(task.agent(f"a{number}") / "exit.json")["reason"] == reason
        assert why(f"a{number}")["statements"][0]["text"].startswith(text)
    told = why("a2")
    assert "The agent general has failed" in texts(told)
    types(next(one for one in commands(told) if "--close-breaker" in one))
    assert "has failed" not in texts(why("a2"))


def test_every_reason_of_a_failure_has_its_words() -> None:
    from agentctl.domain.states import Reason
    from agentctl.operations.show.end_reasons import _MEANS

    assert set(_MEANS) == set(Reason)


# -- what cannot be judged ---------------------------------------------------------------------------------------------


def test_of_somebody_elses_task_only_what_its_files_claim(root: Path) -> None:
    task = new_task()
    spawn(worker("sleeps", 60), name="a")
    shutil.copytree(root, root.parent / "clone" / ".agentctl", ignore=shutil.ignore_patterns("control", "*.tmp"))
    clone = root.parent / "clone" / ".agentctl"
    told = run("why", "a", "--root", clone, "--task", "t1", "--json").json
    assert (told["status"], told["state"], told["judged"]) == ("running", "running", False)
    assert "Its log claims that it is running. That is unproven" in texts(told)
    assert [one["command"] for one in told["waysOut"]] == [f"agentctl trust {clone / 'tasks/t1'}"]
    assert {one["kind"] for one in told["statements"][0]["evidence"]} == {"event"}
    assert "by its files alone" in run("why", "a", "--root", clone, "--task", "t1").out
    assert not (clone / "tasks/t1/agents/a/exit.json").exists()
    run("cancel", "a")
    assert statuses() == {"a": "cancelled"}
    assert task.exit("a") is not None


def test_an_observed_sub_agent_and_a_folder_that_was_never_accepted(root: Path) -> None:
    task = new_task()
    event = {"hook_event_name": "SubagentStart", "session_id": "s1", "agent_id": "agent-1", "agent_type": "Explore"}
    run("hook", stdin=json.dumps(event))
    name = run("list", "--json").json[0]["agentInstance"]
    told = why(name)
    assert (told["status"], told["state"], told["judged"]) == ("running", "observed", False)
    spawn(["true"], "--wait", name="a")
    shutil.copytree(task.agent("a"), task.agent("b"), ignore=shutil.ignore_patterns("control", "*.tmp"))
    told = why("b")
    assert (told["state"], told["since"]) == ("unknown", None)
    assert "no event in the log is about it" in texts(told)
    assert run("why", "nobody", check=False).code == 3


def test_what_a_worker_wrote_is_not_obeyed_by_the_terminal(root: Path) -> None:
    task = new_task()
    spawn(["sh", "-c", f"{shlex.join(PROGRAM)} interact ask \"$(printf 'a\\033[2Jb')\""], name="a")
    wait_until(statuses, accept=lambda now: now == {"a": "blocked"}, what="the question")
    forge(task.agent("a") / "interactions" / "q1.json", question="a\x1b[2Jb" + "x" * 5000)
    shown = run("why", "a").out
    assert "\x1b" not in shown
    assert max(map(len, shown.splitlines())) < 1000
    run("cancel", "a")


def test_a_folder_that_a_worker_has_replaced_hides_nothing_else(root: Path, tmp_path: Path) -> None:
    task = new_task()
    spawn(worker("sleeps", 60), name="a")
    says_ready(task, "a")
    (task.agent("a") / "interactions").symlink_to(tmp_path)
    told = why("a")
    assert "Part of its state is unknown" in texts(told)
    assert "interactions is not a folder: it is a link" in texts(told)
    assert "A live shim guards it." in texts(told)
    run("cancel", "a")


DEEP: Any = 0
for _ in range(700):
    DEEP = [DEEP]
#: What may stand in a file instead of what belongs there.
ODD_VALUES = {
    "deep": DEEP, "list": ["x"], "object": {"a": DEEP}, "negative": -1, "huge": 1e308, "true": True,
    "long": "\x1b[2J" + "y" * 100_000, "half": "\ud800",
}  # fmt: skip


@pytest.mark.parametrize("which", ["deep", *alike(*(name for name in ODD_VALUES if name != "deep"))])
def test_no_value_in_a_file_makes_it_fail(root: Path, which: str) -> None:
    """A worker can write anything into its own folder; `why` and `search` show that, or call it unknown."""
    task = new_task(grace=0.05)
    spawn(["sh", "-c", f"{shlex.join(PROGRAM)} interact ask x"], name="live")
    spawn(["sh", "-c", "exit 3"], "--wait", name="ended", check=False)
    wait_until(statuses, accept=lambda now: now["live"] == "blocked", what="the question")
    requests = ("by", "at", "graceSeconds")
    odd_keys = {
        "live/pause.json": requests, "live/progress.json": ("at", "text", "percent"),
        "live/worked.json": ("spans", "since", "boot"), "live/interactions/q1.json": ("question", "asker"),
        "live/spec.json": ("retries", "timeoutSeconds", "stallSeconds", "order", "argv", "priority"),
        "ended/exit.json": ("swept", "kept", "uncollected"), "ended/exit.1.json": ("reason", "exitCode"),
        "ended/cancel.json": requests, "ended/result.json": ("summary", "finalMessage", "at"),
        "ended/spec.json": ("retries", "order", "argv"), "ended/activity.jsonl": ("name", "text", "detail", "at"),
    }  # fmt: skip
    agents = task.path / "agents"
    kept = {file: file.read_bytes() for file in agents.glob("**/*.json")}
    for name, keys in odd_keys.items():
        known = json.loads(kept.get(agents / name, b'{"type": "tool"}'))
        line = json.dumps(known | dict.fromkeys(keys, ODD_VALUES[which]))
        (agents / name).write_text(f"{line}\n", encoding="utf-8")
    waiting = ["wait", "live", "--timeout-seconds", "0"]
    for command in (["why", "live"], ["why", "ended"], ["search", "exit", "--logs"], waiting):
        done = run(*command, check=False)
        assert "a bug in agentctl" not in done.err, (command, done.err)
        assert "\x1b" not in done.out, command
    (task.agent("live") / "pause.json").unlink()
    for file, data in kept.items():
        file.write_bytes(data)
    run("cancel", "live", check=False)


def test_the_commands_name_the_task_where_that_is_needed(root: Path, tmp_path: Path) -> None:
    task = new_task()
    spawn(["true"], "--wait", name="a")
    run("new", "Another", "--id", "t2")
    told = run("why", "a", "--task", "t1", "--json").json
    assert commands(told) == ["agentctl result a --task t1"]
    types(commands(told)[0])
    told = run("why", "a", "--task", "t1", "--root", root, "--json", env={"AGENTCTL_ROOT": None}, cwd=tmp_path / "work")
    assert commands(told.json) == ["agentctl result a --task t1"], "the root of the folder above is found"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    told = run("why", "a", "--task", "t1", "--root", root, "--json", env={"AGENTCTL_ROOT": str(elsewhere)})
    assert commands(told.json) == [f"agentctl result a --task t1 --root {root}"]
    assert task.exit("a") is not None


def test_a_look_starts_nothing_and_writes_nothing(root: Path, tmp_path: Path) -> None:
    """A worker that could start stays in the queue: nobody but a command that may start workers starts it."""
    task = new_task(cap=1)
    spawn_batch([held(tmp_path / "gate", "a"), {"name": "b", "argv": ["true"]}])
    kill_shims(task, "a")
    (tmp_path / "gate").touch()
    wait_until(lambda: row("a")["status"], accept=lambda status: status == "failed", what="it to be lost")
    before = snapshot(task.path)
    told = why("b")
    assert "It is stranded" in texts(told)
    assert told["state"] == "stranded"
    assert snapshot(task.path) == before
    for command in ("agentctl resume --lost", "agentctl wait b"):
        types(next(one for one in commands(told) if one == command))


def test_of_an_agent_whose_program_was_ended_by_a_signal_no_name_is_made_up(root: Path) -> None:
    new_task()
    define(root, "breaks", "kill -SEGV $$")
    run("spawn", "--agent", "breaks", "--name", "a", "--wait", "hi", check=False)
    assert "It failed: a signal, which agentctl did not send, ended its program" in texts(why("a"))
