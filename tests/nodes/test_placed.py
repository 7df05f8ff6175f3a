"""At stake: a worker on a node is in every respect a worker, whoever is killed at the head or there.

The node is this machine (`--runner loopback`): head and node meet in the folder of the launch alone, as on a cluster.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
from pathlib import Path

import pytest

from agentctl.adapters.taskdir import TaskDir
from agentctl.supervision.life.judging import Condition, judge, settle
from agentctl.supervision.worker.environment import store_folder
from tests.agent_steps import agent, agent_world, blocked, define, ends, plays, rebuilds_the_same
from tests.life import is_settled, living, members, passes, stands, state_of
from tests.placed import ask_engine, counting, handle_of, is_whole, launch_of, post_of, script, stand_in_of, there
from tests.snapshots import files_with
from tests.steps import Task, kill, most_at_once, new_task, row, spawn, statuses
from tests.support import is_alive, run, start, wait_until, worker
from tests.terminal import on_a_terminal

AGENTCTL = f"{sys.executable} -m agentctl"
LOOPBACK = ("--runner", "loopback")


@pytest.fixture(autouse=True)
def _quick(root: Path) -> None:
    """Have the engine asked twice a second, and a node taken for gone that is silent for a second."""
    ask_engine("loopback", pollSeconds=0.5, silenceSeconds=1)


def test_its_end_its_output_and_its_reports_are_those_of_any_worker(root: Path) -> None:
    task = new_task()
    lines = f"echo out; echo err >&2; {AGENTCTL} report progress 40 half; {AGENTCTL} report result --summary ok; exit 3"
    told = spawn(script(lines), *LOOPBACK, name="a").json
    assert (told["status"], told["pid"]) == ("queued", None)
    assert run("wait", "a", check=False).code == 7
    ended = is_settled(task, "a")
    assert (ended["status"], ended["reason"], ended["exitCode"]) == ("failed", "exit_code", 3)
    assert run("logs", "a").out == "out\nerr\n"
    assert json.loads((task.agent("a") / "progress.json").read_bytes())["text"] == "half"
    assert run("result", "a", "--json", check=False).json["summary"] == "ok"
    kinds = [event["type"] for event in task.events(of="a")]
    assert kinds == ["agent.queued", "agent.started", "agent.placed", "result.declared", "agent.failed"]
    assert not (launch_of(task, "a") / "node").exists(), "everything of it is at the head"


def test_a_start_that_fails_there_says_so(root: Path, tmp_path: Path) -> None:
    task = new_task()
    gone = tmp_path / "gone"
    gone.write_text("no program")
    gone.chmod(0o700)
    spawn([str(gone)], *LOOPBACK, name="a")
    task.ended("a")
    ended = task.exit("a") or {}
    assert (ended["status"], ended["reason"]) == ("failed", "not_started")
    assert "gone" in ended["message"]


@pytest.mark.slow
def test_no_value_of_its_environment_stays_in_a_file(root: Path, tmp_path: Path) -> None:
    task = new_task()
    secret = "s3cr3t-of-the-person"
    asks = f'test -n "$KEY" && touch {tmp_path}/had; read x < {fifo(tmp_path)}'
    run("spawn", *LOOPBACK, "--name", "a", "--", *script(asks), env={"KEY": secret})
    wait_until((tmp_path / "had").exists, what="the worker to look at its environment")
    assert files_with(root, secret) == []
    (tmp_path / "fifo").write_text("go\n")
    task.ended("a")


def fifo(folder: Path) -> Path:
    path = folder / "fifo"
    os.mkfifo(path)
    return path


def waits_at_a_gate(folder: Path) -> Path:
    """Return an interpreter for nodes which begins nothing before something is written to the FIFO."""
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nread x < {fifo(folder)}\nexec {sys.executable} "$@"\n')
    python.chmod(0o700)
    return python


def test_its_question_is_answered_at_the_head_and_its_clock_stands_still(root: Path) -> None:
    task = new_task()
    spawn(worker("asks", "--kind", "confirm", "Go on?"), *LOOPBACK, "--timeout-seconds", "3", name="a")
    assert run("wait-any", "--json").json["status"] == "blocked"
    (question,) = run("interact", "list", "--json").json
    assert (question["question"], question["waiting"]) == ("Go on?", True)
    passes(3.5)
    assert task.exit("a") is None, "its time limit does not run while it waits"
    run("interact", "respond", "a", "--id", "q1", "yes")
    run("wait", "a")
    assert "answer: yes" in run("logs", "a").out
    assert [one["type"] for one in task.events("interaction.requested", "interaction.responded")] == [
        "interaction.requested", "interaction.responded",
    ]  # fmt: skip


@pytest.mark.slow
def test_messages_reach_it_in_their_order(root: Path) -> None:
    new_task()
    spawn(script(f"for n in 1 2 3; do {AGENTCTL} inbox --wait; done"), *LOOPBACK, name="a")
    for text in ("one", "two", "three"):
        run("send", "a", text)
    run("wait", "a")
    assert [line.split()[-1] for line in run("logs", "a").out.splitlines()] == ["one", "two", "three"]


def test_a_cancel_is_told_when_nothing_of_a_stubborn_tree_is_alive(root: Path, tmp_path: Path) -> None:
    task = new_task()
    spawn(worker("stubborn", tmp_path / "pids"), *LOOPBACK, "--grace-seconds", "0.2", name="a")
    tree = members(tmp_path / "pids")
    post = post_of(task, "a")
    assert run("cancel", "a", "--json").json["cancelled"] is True
    assert living(tree.values()) == []
    wait_until(lambda: living([post]), accept=lambda left: not left, what="its post to leave")
    assert is_settled(task, "a")["status"] == "cancelled"
    assert run("cancel", "a", "--json").json["cancelled"] is False or statuses() == {"a": "cancelled"}


@pytest.mark.slow
def test_a_pause_is_told_once_its_processes_stand_there(root: Path, tmp_path: Path) -> None:
    new_task()
    spawn(worker("stubborn", tmp_path / "pids"), *LOOPBACK, "--grace-seconds", "0.1", name="a")
    tree = members(tmp_path / "pids")
    run("pause", "a")
    assert {state_of(one.pid) for one in tree.values()} == {"T"}
    assert row("a")["paused"] is True
    run("unpause", "a")
    assert row("a")["paused"] is False
    run("cancel", "a")


def test_one_that_waits_for_a_node_cannot_be_paused(root: Path, tmp_path: Path) -> None:
    ask_engine("loopback", python=str(waits_at_a_gate(tmp_path)))
    task = new_task()
    spawn(["true"], *LOOPBACK, name="a")
    wait_until(lambda: handle_of(task, "a").get("job"), what="its submission")
    refused = run("pause", "a", check=False)
    assert (refused.code, "it waits for a node" in refused.err) == (1, True), refused
    (tmp_path / "fifo").write_text("go\n")
    task.ended("a")
    assert (task.exit("a") or {})["status"] == "completed", "nothing of the pause is left"


@pytest.mark.slow
def test_one_that_waits_for_a_node_keeps_nobody_above_it_from_being_paused(root: Path, tmp_path: Path) -> None:
    ask_engine("loopback", python=str(waits_at_a_gate(tmp_path)))
    task = new_task()
    below = f"{AGENTCTL} spawn --runner loopback --name below -- true"
    spawn(script(f"{below}; until test -e {tmp_path}/gate; do sleep 0.05; done"), name="above")
    wait_until(lambda: handle_of(task, "below").get("job"), what="its submission")
    assert run("pause", "above", "--json").json["withIt"] == []
    run("unpause", "above")
    (tmp_path / "fifo").write_text("go\n")
    task.ended("below")
    (tmp_path / "gate").touch()
    task.ended("above")


@pytest.mark.slow
def test_its_time_limit_counts_there(root: Path) -> None:
    task = new_task()
    spawn(worker("sleeps", 60), *LOOPBACK, "--timeout-seconds", "1", name="a")
    task.ended("a")
    ended = is_settled(task, "a")
    assert (ended["status"], ended["reason"]) == ("failed", "timed_out")


@pytest.mark.slow
def test_it_is_tried_again_in_a_launch_of_its_own(root: Path, tmp_path: Path) -> None:
    task = new_task()
    mark = tmp_path / "mark"
    lines = f"echo attempt; test -e {mark} && exit 0; touch {mark}; exit 1"
    spawn(script(lines), *LOOPBACK, "--retries", "1", "--retry-delay-seconds", "0.1", name="a")
    run("wait", "a")
    assert run("logs", "a").out == "attempt\nattempt\n"
    assert (is_settled(task, "a")["attempt"], len(list((task.agent("a") / "launches").iterdir()))) == (2, 2)


# -- who is killed -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_stand_in_that_is_killed_is_replaced_and_nothing_is_lost_or_doubled(root: Path, tmp_path: Path) -> None:
    task = new_task()
    spawn(counting(tmp_path / "gate"), *LOOPBACK, name="a")
    task.has("agent.placed", "a")
    for _ in range(3):
        pid = stand_in_of(task, "a")
        kill(pid)
        wait_until(lambda before=pid: stand_in_of(task, "a") != before, what="another stand-in")  # type: ignore[misc]
    (tmp_path / "gate").touch()
    run("wait", "a", check=False)
    assert (is_settled(task, "a")["exitCode"], is_whole(run("logs", "a").out)) == (4, True)
    assert [event["type"] for event in task.events(of="a")] == [
        "agent.queued", "agent.started", "agent.placed", "agent.failed",
    ]  # fmt: skip


@pytest.mark.parametrize("who", ["the shim", "both"])
def test_a_shim_that_is_killed_is_replaced_by_whoever_waits(root: Path, tmp_path: Path, who: str) -> None:
    task = new_task()
    spawn(counting(tmp_path / "gate"), *LOOPBACK, name="a")
    task.has("agent.placed", "a")
    pids = [task.shim_of("a"), *([stand_in_of(task, "a")] if who == "both" else [])]
    kill(*pids)
    assert row("a")["health"] == "unfollowed"
    assert row("a")["status"] == "running"
    waiting = start("wait", "a", "--json")
    task.has("agent.adopted", "a")
    (tmp_path / "gate").touch()
    waiting.communicate()
    assert (is_settled(task, "a")["exitCode"], is_whole(run("logs", "a").out)) == (4, True)


@pytest.mark.slow
def test_it_ends_while_nobody_looks_and_is_cancelled_by_nobody(root: Path, tmp_path: Path) -> None:
    task = new_task()
    spawn(counting(tmp_path / "gate"), *LOOPBACK, name="a")
    task.has("agent.placed", "a")
    kill(task.shim_of("a"), stand_in_of(task, "a"))
    (tmp_path / "gate").touch()
    wait_until((launch_of(task, "a") / "ended.json").exists, what="its end there")
    assert statuses() == {"a": "running"}, "looking starts nothing"
    run("wait", "a", check=False)
    assert (is_settled(task, "a")["exitCode"], is_whole(run("logs", "a").out)) == (4, True)


@pytest.mark.slow
def test_a_cancel_without_a_shim_here_is_proven_there(root: Path, tmp_path: Path) -> None:
    task = new_task()
    spawn(worker("stubborn", tmp_path / "pids"), *LOOPBACK, "--grace-seconds", "0.1", name="a")
    tree = members(tmp_path / "pids")
    task.has("agent.placed", "a")
    kill(task.shim_of("a"), stand_in_of(task, "a"))
    assert run("cancel", "a", "--json").json["cancelled"] is True
    assert living(tree.values()) == []
    assert is_settled(task, "a")["status"] == "cancelled"


@pytest.mark.slow
def test_a_worker_whose_shim_there_is_killed_has_failed_and_nothing_of_it_lives(root: Path, tmp_path: Path) -> None:
    task = new_task()
    spawn(worker("stubborn", tmp_path / "pids"), *LOOPBACK, "--grace-seconds", "0.1", name="a")
    tree = members(tmp_path / "pids")
    kill(int(json.loads((there(task, "a") / "shim.json").read_bytes())["pid"]))
    task.ended("a")
    assert living(tree.values()) == []
    ended = is_settled(task, "a")
    assert (ended["status"], ended["reason"]) == ("failed", "lost")
    assert "its shim on the node was killed" in ended["message"]


@pytest.mark.slow
def test_a_node_that_is_gone_makes_it_lost_and_an_exit_that_comes_late_is_told(root: Path, tmp_path: Path) -> None:
    """Its post is held up, and the engine says that it is over: as for a node that is cut off."""
    task = new_task()
    spawn(worker("waits_for_file", tmp_path / "gate"), *LOOPBACK, name="a")
    task.has("agent.placed", "a")
    post, launch = post_of(task, "a"), launch_of(task, "a")
    os.kill(post.pid, signal.SIGSTOP)
    engine_says_gone(launch.name)
    task.ended("a")
    ended = is_settled(task, "a")
    assert (ended["status"], ended["reason"]) == ("failed", "lost")
    (tmp_path / "gate").touch()
    os.kill(post.pid, signal.SIGCONT)
    wait_until((launch / "ended.json").exists, what="the exit that comes late")
    found = row("a")
    assert (found["status"], found["reason"], found["placement"]["lateExit"]) == ("failed", "lost", "completed")
    run("list")
    assert len(task.events("agent.late_exit")) == 1


def engine_says_gone(launch_id: str) -> None:
    """Have the loopback's engine forget a launch that still runs."""
    (Path(os.environ["XDG_RUNTIME_DIR"]) / "agentctl" / "loopback" / launch_id).unlink()


@pytest.mark.slow
def test_a_second_start_of_one_launch_is_refused_by_the_claim(root: Path, tmp_path: Path) -> None:
    task = new_task()
    spawn(counting(tmp_path / "gate"), *LOOPBACK, name="a")
    task.has("agent.placed", "a")
    launch = launch_of(task, "a")
    engine_says_gone(launch.name)
    program = Path(__file__).parents[2] / "agentctl" / "worker_programs" / "on_node" / "__main__.py"
    import subprocess

    again = subprocess.run(
        [sys.executable, "-I", program, "--post", launch], capture_output=True, text=True, check=False
    )
    assert (again.returncode, "carried out elsewhere" in again.stderr) == (75, True)
    (tmp_path / "gate").touch()
    run("wait", "a", check=False)
    assert is_whole(run("logs", "a").out)


def test_the_exit_of_a_stand_in_is_not_taken_for_that_of_its_worker(root: Path, tmp_path: Path) -> None:
    """Its shim was killed, and somebody who waits has seen the stand-in exit with 0."""
    task = new_task()
    spawn(counting(tmp_path / "gate"), *LOOPBACK, name="a")
    task.has("agent.placed", "a")
    stand_in = stand_in_of(task, "a")
    kill(task.shim_of("a"))
    (tmp_path / "gate").touch()
    wait_until(lambda: is_alive(stand_in), what="the stand-in to end", accept=lambda lives: not lives)
    folder = TaskDir(task.path).worker("a")
    # A zombie may have a thread that is still on its way out.
    wait_until(lambda: judge(folder), what="nothing of it to be alive", accept=lambda found: found is Condition.LOST)
    assert settle(folder, Condition.LOST, (os.CLD_EXITED, 0))
    ended = is_settled(task, "a")
    assert (ended["status"], ended["reason"], ended["exitCode"]) == ("failed", "exit_code", 4)


def test_one_whose_head_dies_before_any_engine_has_heard_of_it_was_not_started(root: Path, tmp_path: Path) -> None:
    task = new_task()
    armed = {"AGENTCTL_FAILPOINT": "shim.after-gate:stop"}
    spawning = start("spawn", *LOOPBACK, "--name", "a", "--", "touch", tmp_path / "ran", env=armed)
    wait_until((task.agent("a") / "worker.json").exists, what="its stand-in")
    os.kill(stand_in_of(task, "a"), signal.SIGKILL)  # It has been executed for some milliseconds, if at all.
    stands(task.shim_of("a"))
    kill(task.shim_of("a"))
    spawning.communicate()
    assert not (task.agent("a") / "launch.json").exists(), "it has come further than this test is about"
    run("wait", "a", check=False)
    ended = is_settled(task, "a")
    assert (ended["status"], ended["reason"]) == ("failed", "not_started")
    assert not (tmp_path / "ran").exists()


# -- what it starts ----------------------------------------------------------------------------------------------------


def test_what_it_starts_is_started_at_the_head_within_the_limits_of_the_tree(root: Path) -> None:
    task = new_task(cap=1, depth=1)
    inner = shlex.quote(f"{AGENTCTL} spawn --name toodeep -- true")
    lines = f"{AGENTCTL} spawn --queue --name kid -- sh -c {inner} && {AGENTCTL} wait kid; {AGENTCTL} logs kid"
    spawn(script(lines), *LOOPBACK, name="a")
    run("wait", "a")
    said = run("logs", "a").out
    assert "Maximum subagent depth exceeded: kid is at depth 1, maxDepth is 1" in said
    assert {one["agentInstance"]: one["parent"] for one in run("list", "--json").json} == {"a": None, "kid": "a"}
    assert row("kid")["placement"]["runner"] == "loopback", "a child runs where its parent does"
    assert task.tickets() == []


@pytest.mark.slow
def test_a_command_that_it_calls_gets_its_input_and_its_exit_code(root: Path, tmp_path: Path) -> None:
    new_task(depth=2)
    batch = tmp_path / "batch"
    batch.write_text('{"name": "kid", "argv": ["sh", "-c", "exit 5"]}\n')
    spawn(script(f"{AGENTCTL} spawn --batch - < {batch}; {AGENTCTL} wait kid; echo code $?"), *LOOPBACK, name="a")
    run("wait", "a")
    assert run("logs", "a").out.splitlines()[-1] == "code 7"


@pytest.mark.slow
def test_a_cancel_of_its_starter_ends_the_children_first(root: Path, tmp_path: Path) -> None:
    task = new_task(depth=2)
    sleeps = shlex.join(worker("sleeps", 60))
    spawn(script(f"{AGENTCTL} spawn --name kid -- {sleeps} && {AGENTCTL} wait-all"), *LOOPBACK, name="a")
    task.has("agent.placed", "kid")
    run("cancel", "a")
    assert statuses() == {"a": "cancelled", "kid": "cancelled"}
    assert task.order("agent.cancelled") == ["kid", "a"]


# -- where it is said --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--cpus", "2"], "is for a worker on a node"),
        (["--runner", "nope"], "there is no runner 'nope'"),
        (["--runner", "slurm", "--time", "90"], "time must be like 90m"),
        (["--runner", "loopback", "--memory", "lots"], "memory must be like 500M"),
    ],
)
def test_a_mistake_is_told_and_burns_nothing(root: Path, options: list[str], says: str) -> None:
    task = new_task()
    refused = spawn(["true"], *options, name="a", check=False)
    assert refused.code != 0
    assert says in refused.err
    assert not task.agent("a").exists()


@pytest.mark.slow
def test_the_command_the_definition_the_task_and_config_yaml_say_where(root: Path) -> None:
    """What is nearer counts; a new task gets what the person's config.yaml says."""
    new_task()
    config = Path(os.environ["HOME"]) / ".config" / "agentctl" / "config.yaml"
    config.write_text("config: {runner: loopback, resources: {cpus: 2}}\n")
    run("new", "B", "--id", "b")
    run("spawn", "--name", "of-person", "--", "true")
    file = root / "tasks" / "b" / "task.yaml"
    file.write_text(file.read_text().replace("runner: loopback", "runner: local"))
    define(root, "placed", "true")
    definition = root / "agents" / "placed.md"
    placed = '{"runner": "loopback", "resources": {"cpus": 3}, "name"'
    definition.write_text(definition.read_text().replace('{"name"', placed))
    run("trust", definition)
    run("spawn", "--name", "of-task", "--", "true")
    run("spawn", "--agent", "placed", "--name", "of-definition", "go")
    run("spawn", "--agent", "placed", "--runner", "local", "--name", "of-command", "go")
    run("spawn", "--batch", "-", stdin='{"name": "of-batch", "argv": ["true"], "runner": "loopback", "cpus": 4}\n')
    run("wait-all")
    runners = {one["agentInstance"]: one.get("placement", {}).get("runner") for one in run("list", "--json").json}
    assert {name for name, runner in runners.items() if runner is None} == {"of-task", "of-command"}
    cpus = {
        name: run("show", name, "--json").json["spec"]["placement"]["cpus"]
        for name in ("of-person", "of-definition", "of-batch")
    }
    assert cpus == {"of-person": 2, "of-definition": 3, "of-batch": 4}


# -- agents ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def programs(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    return agent_world(tmp_path, monkeypatch)


def test_an_agent_asks_for_permission_and_is_answered_at_the_head(programs: Task, tmp_path: Path) -> None:
    asks = 'me.ask("Bash", {"command": "make"}, lambda answer: me.answer(answer["behavior"]))'
    agent(plays(tmp_path, asks), *LOOPBACK)
    question = blocked()
    assert (question["tool"], question["arguments"]) == ("Bash", {"command": "make"})
    run("interact", "respond", "a", "--id", "q1", "allow")
    end = ends()
    assert (end["status"], end["result"]["finalMessage"]) == ("completed", "allow")
    rebuilds_the_same(programs)


@pytest.mark.slow
def test_an_answer_that_did_not_come_through_the_head_allows_nothing(programs: Task, tmp_path: Path) -> None:
    asks = 'me.ask("Bash", {"command": "make"}, lambda answer: me.answer(answer["behavior"]))'
    agent(plays(tmp_path, asks), *LOOPBACK)
    question = blocked()
    answers = launch_of(programs, "a") / "to-node" / "answers"
    forged = {"id": question["id"], "answer": "allow", "by": "user", "at": "2026-01-01T00:00:00.000Z"}
    for more in ({}, {"seal": "00" * 32}):
        (answers / f"{question['id']}.json").write_text(json.dumps({**forged, **more}))
        passes(1.2)
        assert statuses() == {"a": "blocked"}
    run("interact", "respond", "a", "--id", "q1", "deny")
    assert ends()["result"]["finalMessage"] == "deny"


@pytest.mark.slow
def test_a_permission_cannot_be_given_once_the_key_is_gone_and_that_is_said(programs: Task, tmp_path: Path) -> None:
    """As after a restart of the head: what it has in memory is lost."""
    asks = f"""
import os, time
while not os.path.exists({str(tmp_path / "gate")!r}): time.sleep(0.02)
me.ask("Bash", {{"command": "make"}}, lambda answer: me.answer(answer["behavior"]))
"""
    agent(plays(tmp_path, asks), *LOOPBACK)
    programs.has("agent.placed", "a")
    for key in (Path(os.environ["XDG_RUNTIME_DIR"]) / "agentctl").glob("launch-*.key"):
        key.unlink()
    (tmp_path / "gate").touch()
    wait_until(
        lambda: str(row("a")["placement"]["problem"]), accept=lambda said: "cancel and resume" in said, what="it"
    )
    assert run("interact", "list", "--json").json == []
    run("cancel", "a")


@pytest.mark.slow
def test_an_agent_that_was_kept_lends_its_slot_and_goes_on_with_a_message(programs: Task, tmp_path: Path) -> None:
    programs.set_cap(1)
    agent("hello", "--keep", *LOOPBACK)
    blocked()
    spawn(["true"], "--queue", name="guest")
    run("wait", "guest")
    run("send", "a", "again")
    wait_until(
        lambda: len(programs.events("agent.blocked", of="a")), accept=lambda times: times == 2, what="its answer"
    )
    run("send", "a", "--close", "")
    assert ends()["status"] == "completed"


# -- before its turn ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_workers_are_submitted_ahead_and_begin_only_with_a_slot(root: Path, tmp_path: Path) -> None:
    config = Path(os.environ["HOME"]) / ".config" / "agentctl" / "config.yaml"
    config.write_text("runners: {loopback: {pollSeconds: 0.5, submitAhead: 2}}\n")
    task = new_task(cap=1)
    notes = tmp_path / "notes"
    spawn(counting(tmp_path / "gate"), *LOOPBACK, name="first")
    for name in "abcd":
        spawn(worker("overlaps", notes), "--queue", *LOOPBACK, name=name)
    for name in "ab":
        claimed = launch_of(task, name) / "claim.json"
        assert not claimed.exists(), "it has a launch, and no slot"
    assert (task.tickets(), notes.exists()) == (["c", "d"], False)
    (tmp_path / "gate").touch()
    run("wait-all", check=False, timeout=60)
    assert most_at_once(notes) == 1
    assert {statuses()[name] for name in "abcd"} == {"completed"}
    assert task.tickets() == []


@pytest.mark.slow
def test_a_worker_that_was_submitted_ahead_does_not_begin_while_its_queue_is_held(root: Path, tmp_path: Path) -> None:
    config = Path(os.environ["HOME"]) / ".config" / "agentctl" / "config.yaml"
    config.write_text("runners: {loopback: {pollSeconds: 0.5, submitAhead: 1}}\n")
    task = new_task(cap=1)
    spawn(counting(tmp_path / "gate"), *LOOPBACK, name="first")
    for name in "ab":
        spawn(script(f"touch {tmp_path}/{name}"), "--queue", *LOOPBACK, name=name)
    launch_of(task, "a")
    run("pause")
    (tmp_path / "gate").touch()
    run("wait", "first", check=False)
    assert run("wait-any", "a", "b", "--timeout-seconds", "2", check=False).code == 4
    assert (task.tickets(), (tmp_path / "a").exists()) == (["b"], False)
    run("unpause")
    run("wait-all", check=False, timeout=60)
    assert ((tmp_path / "a").exists(), (tmp_path / "b").exists()) == (True, True)


@pytest.mark.slow
def test_a_worker_that_was_submitted_ahead_is_cancelled_before_it_begins(root: Path, tmp_path: Path) -> None:
    config = Path(os.environ["HOME"]) / ".config" / "agentctl" / "config.yaml"
    config.write_text("runners: {loopback: {pollSeconds: 0.5, submitAhead: 1}}\n")
    task = new_task(cap=1)
    spawn(counting(tmp_path / "gate"), *LOOPBACK, name="a")
    spawn(script(f"touch {tmp_path}/ran"), "--queue", *LOOPBACK, name="b")
    launch_of(task, "b")
    assert run("cancel", "b", "--json").json["cancelled"] is True
    (tmp_path / "gate").touch()
    run("wait", "a", check=False)
    assert (statuses()["b"], (tmp_path / "ran").exists()) == ("cancelled", False)


@pytest.mark.slow
def test_a_worker_passes_no_options_to_the_engine(root: Path) -> None:
    task = new_task(depth=2)
    lines = f"{AGENTCTL} spawn --runner slurm --runner-arg=--output=/tmp/x --name kid -- true"
    spawn(script(lines), *LOOPBACK, name="a")
    run("wait", "a", check=False)
    assert "only a person may pass options to the engine" in run("logs", "a").out
    assert not task.agent("kid").exists()


@pytest.mark.slow
def test_the_tools_of_an_agent_on_a_node_are_those_of_the_head(root: Path) -> None:
    """A child is started at the head, a question there has a name of its own, what is reported is kept on the node."""
    task = new_task(depth=2)
    define(root, "echo", "echo said: $1")
    calls = [
        ["report", {"percent": 50, "text": "half"}],
        ["task", {"prompt": "hello", "subagent_type": "echo"}],
        ["ask_user", {"question": "Which colour?"}],
        ["report", {"summary": "all of it"}],
    ]
    asks = shlex.join(worker("calls_mcp", "claude", json.dumps(calls)))
    spawn(
        script(f"{AGENTCTL} report progress 10 begun; {asks}; {AGENTCTL} interact ask --kind input Here?"),
        *LOOPBACK,
        name="a",
    )
    for number, answer in enumerate(("red", "yes"), 1):
        run("wait-any", "--for", "blocked", "a", "--timeout-seconds", "30")
        (question,) = [one["id"] for one in run("interact", "list", "--json").json]
        run("interact", "respond", "a", "--id", question, answer)
        task.has("agent.resumed", "a", times=number)
    run("wait", "a")
    said = run("logs", "a").out
    assert "said: hello" in said
    assert '"answer": "red"' in said
    assert said.splitlines()[-1] == "yes"
    assert [one["payload"]["id"][0] for one in task.events("interaction.requested", of="a")] == ["h", "q"]
    assert run("result", "a", "--json").json["summary"] == "all of it"
    texts = [one.get("text") for one in map(json.loads, (task.agent("a") / "activity.jsonl").read_text().splitlines())]
    assert texts == ["begun", "half"], "no row is lost or doubled"


def test_doctor_finds_nothing_odd_in_a_worker_that_ran_on_a_node(root: Path) -> None:
    task = new_task()
    spawn(["true"], *LOOPBACK, name="a")
    run("wait", "a")
    before = sorted(path.name for path in launch_of(task, "a").iterdir())
    assert [one for one in run("doctor", "--fix", "--json", check=False).json if "launch" in str(one)] == []
    assert sorted(path.name for path in launch_of(task, "a").iterdir()) == before


@pytest.mark.slow
def test_whatever_a_worker_puts_into_the_folder_of_its_launch_it_can_be_cancelled(root: Path, tmp_path: Path) -> None:
    task = new_task()
    spawn(worker("stubborn", tmp_path / "pids"), *LOOPBACK, "--grace-seconds", "0.1", name="a")
    tree = members(tmp_path / "pids")
    task.has("agent.placed", "a")
    launch = launch_of(task, "a")
    rubbish = {
        "handle.json": '{"submissions": ["x"], "at": {"a": 1}, "engine": 7, "boot": []}',
        "mirrored.json": '{"events": 1.5}',
        "to-node/asked.json": '{"asked": {"a": 1}}', "calls/x/call.json": '{"argv": 7, "cwd": [], "set": [1]}',
        "to-node/reports/1.json": "[", "to-node/answers/q1.json": "null",
    }  # fmt: skip
    for name, content in rubbish.items():
        (launch / name).parent.mkdir(parents=True, exist_ok=True)
        (launch / name).write_text(content)
    with (there(task, "a").parent.parent / "events.jsonl").open("a") as log:
        log.write('{"type": "agent.blocked", "agentInstance": "a", "payload": {"id": {"x": 1}}}\nnot JSON\n')
    kill(stand_in_of(task, "a"))
    passes(1.0)
    assert run("cancel", "a", "--json").json["cancelled"] is True
    assert living(tree.values()) == []
    assert is_settled(task, "a")["status"] == "cancelled"


def _kills_stand_in(task: Task) -> None:
    before = stand_in_of(task, "a")
    kill(before)
    wait_until(lambda: stand_in_of(task, "a"), accept=lambda pid: pid != before, what="another stand-in")


@pytest.mark.slow
@pytest.mark.parametrize("what", ["to-node", "to-node/inbox", "node"])
@pytest.mark.parametrize("how", ["removed", "link", "file"])
def test_a_worker_that_removes_what_the_head_tells_it_can_be_cancelled(
    root: Path, tmp_path: Path, what: str, how: str
) -> None:
    task = new_task()
    spawn(worker("stubborn", tmp_path / "pids"), *LOOPBACK, "--grace-seconds", "0.1", name="a")
    tree = members(tmp_path / "pids")
    task.has("agent.placed", "a")
    place = launch_of(task, "a") / what
    place.rename(tmp_path / "away")
    if how == "link":
        place.symlink_to(tmp_path)
    elif how == "file":
        place.touch()
    _kills_stand_in(task)
    run("cancel", "a", check=False)
    wait_until(lambda: living(tree.values()), accept=lambda alive: not alive, what="the end of its tree")
    assert is_settled(task, "a")["status"] in ("cancelled", "failed")


@pytest.mark.slow
def test_an_end_that_a_worker_has_written_does_not_keep_its_own_from_being_told(root: Path, tmp_path: Path) -> None:
    ask_engine("loopback", pollSeconds=0.5, silenceSeconds=600)
    task = new_task()
    spawn(script(f"read x < {fifo(tmp_path)}; echo out; exit 3"), *LOOPBACK, name="a")
    task.has("agent.placed", "a")
    (launch_of(task, "a") / "ended.json").write_text('{"status": "completed", "seal": "00"}')
    (tmp_path / "fifo").write_text("go\n")
    task.ended("a")
    ended = task.exit("a") or {}
    assert (ended["status"], ended["reason"], ended["exitCode"]) == ("failed", "exit_code", 3)


@pytest.mark.slow
@pytest.mark.parametrize("claim", ['{"by": "head"}', None])
def test_a_worker_cannot_say_that_it_has_not_begun(root: Path, tmp_path: Path, claim: str | None) -> None:
    """It would count as over, with its slot free, while it goes on."""
    ask_engine("loopback", pollSeconds=0.5, silenceSeconds=600, python=str(waits_at_a_gate(tmp_path)))
    task = new_task()
    spawn(worker("stubborn", tmp_path / "pids"), *LOOPBACK, "--grace-seconds", "0.1", name="a")
    wait_until(lambda: handle_of(task, "a").get("job"), what="its submission")
    follower = stand_in_of(task, "a")
    os.kill(follower, signal.SIGSTOP)
    (tmp_path / "fifo").write_text("go\n")
    tree = members(tmp_path / "pids")
    file = launch_of(task, "a") / "claim.json"
    file.unlink()
    if claim is not None:
        file.write_text(claim)
    os.kill(follower, signal.SIGCONT)
    passes(1.5)
    assert task.exit("a") is None
    run("cancel", "a")
    assert living(tree.values()) == []
    assert is_settled(task, "a")["status"] == "cancelled"


@pytest.mark.slow
def test_one_that_waits_long_for_a_node_is_seen_as_soon_as_one_begins_it(root: Path, tmp_path: Path) -> None:
    """Its stand-in looks seldom meanwhile, and has somebody look at the file that tells."""
    ask_engine("loopback", pollSeconds=600, silenceSeconds=600, python=str(waits_at_a_gate(tmp_path)))
    task = new_task()
    spawn(["true"], *LOOPBACK, "--timeout-seconds", "3", name="a")
    wait_until(lambda: list(Path(store_folder()).glob("resting-*/*")), what="its stand-in to rest")
    (tmp_path / "fifo").write_text("go\n")
    task.has("agent.placed", "a")
    task.ended("a")
    assert (task.exit("a") or {})["status"] == "completed", "the time in which it waits does not count"


@pytest.mark.slow
def test_a_sign_of_life_that_is_a_fifo_stops_nobody(root: Path, tmp_path: Path) -> None:
    task = new_task()
    spawn(script(f"read x < {fifo(tmp_path)}; exit 3"), *LOOPBACK, name="a")
    task.has("agent.placed", "a")
    passes(2.5)
    follower, beat = stand_in_of(task, "a"), launch_of(task, "a") / "heartbeat"
    beat.unlink()
    os.mkfifo(beat)
    passes(3.0)
    assert stand_in_of(task, "a") == follower
    (tmp_path / "fifo").write_text("go\n")
    task.ended("a")
    assert (task.exit("a") or {})["exitCode"] == 3


@pytest.mark.slow
@pytest.mark.parametrize(
    "order", ["{}", '{"argv": ["list"]}', '{"argv": ["list"], "cwd": "/"}', '{"argv": ["a\\u0000b"], "cwd": "/"}', "["]
)
def test_a_call_that_is_none_is_refused_and_does_not_hang(root: Path, tmp_path: Path, order: str) -> None:
    task = new_task()
    spawn(script(f"read x < {fifo(tmp_path)}"), *LOOPBACK, name="a")
    task.has("agent.placed", "a")
    launch = launch_of(task, "a")
    if order.startswith('{"argv": ["list"], '):
        (launch / "to-node" / "replies" / "c1").mkdir()
        os.mkfifo(launch / "to-node" / "replies" / "c1" / "stdout")
    (launch / "calls" / "c1").mkdir()
    (launch / "calls" / "c1" / "call.json").write_text(order)
    told = launch / "to-node" / "replies" / "c1" / "ended.json"
    wait_until(told.exists, what="its answer")
    assert b"cannot be carried out at the head" in (told.parent / "stderr").read_bytes()
    (tmp_path / "fifo").write_text("go\n")
    task.ended("a")


@pytest.mark.slow
def test_a_terabyte_without_content_takes_no_room_and_no_time_at_the_head(root: Path, tmp_path: Path) -> None:
    task = new_task()
    spawn(script(f"read x < {fifo(tmp_path)}; echo end; exit 3"), *LOOPBACK, name="a")
    task.has("agent.placed", "a")
    worker_there = there(task, "a")
    (worker_there / "texts" / "x").mkdir(parents=True)
    (worker_there / "texts" / "x" / "kept").write_text("text")
    for file in (worker_there / "stdout.log", worker_there / "activity.jsonl", worker_there / "texts" / "x" / "long"):
        file.touch()
        os.truncate(file, 1 << 40)
    os.mkfifo(worker_there / "texts" / "x" / "fifo")
    (tmp_path / "fifo").write_text("go\n")
    task.ended("a")
    assert (task.exit("a") or {})["exitCode"] == 3
    here = task.agent("a")
    with (here / "stdout.log").open("rb") as output:
        output.seek(1 << 40)
        assert output.read() == b"end\n"
    assert (here / "texts" / "x" / "kept").read_text() == "text"
    taken = [path.stat() for path in here.rglob("*") if path.is_file()]
    assert sum(one.st_blocks * 512 for one in taken) < 64 << 20


@pytest.mark.slow
def test_no_escape_in_what_is_said_of_a_node_reaches_the_terminal(root: Path, tmp_path: Path) -> None:
    """The worker can write the claim and the heartbeat; names of nodes and reasons come from the cluster."""
    task = new_task()
    spawn(script(f"read x < {fifo(tmp_path)}; exit 3"), *LOOPBACK, name="a")
    task.has("agent.placed", "a")
    launch, evil = launch_of(task, "a"), "\x1b]0;title\x07\x9b31m\u202e\n|"
    claim = json.loads((launch / "claim.json").read_bytes())
    (launch / "claim.json").write_text(json.dumps({**claim, "node": f"n1{evil}", "job": evil}))
    kill(stand_in_of(task, "a"))
    engine = {"state": "running", "words": f"RUN{evil}", "reason": f"why{evil}"}
    (launch / "handle.json").write_text(json.dumps({"job": evil, "engine": engine, "problem": f"no{evil}"}))
    for argv in (["list"], ["show", "a"], ["why", "a"], ["tree"], ["tasks"], ["list", "--json"], ["timeline"]):
        _, sent = on_a_terminal([sys.executable, "-m", "agentctl", *argv])
        shown = sent.decode()
        assert "\x1b]0" not in shown, argv
        assert not {"\x07", "\x9b", "\u202e"} & set(shown), argv
    (tmp_path / "fifo").write_text("go\n")
    task.ended("a")
