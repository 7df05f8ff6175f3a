"""At stake: after everything was killed, a queue that nobody moves is told everywhere, and goes on as a whole."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.advice import follow
from tests.agent_steps import agent_world, define
from tests.life import kill_shims
from tests.steps import Task, held, most_at_once, new_task, row, spawn, spawn_batch, statuses
from tests.support import Completed, run, start, start_argv, wait_until, worker

pytestmark = pytest.mark.slow

NEXT = "agentctl resume --lost"


def fall(task: Task, *instances: str) -> None:
    """SIGKILL everything that is at work in a task, shims first."""
    pids = [int(json.loads((task.agent(name) / "worker.json").read_bytes())["pid"]) for name in instances]
    shims = [task.shim_of(name) for name in instances]
    for pid in (*shims, *pids):
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: [pid for pid in (*shims, *pids) if psutil.pid_exists(pid)], accept=lambda left: not left)


def restart() -> None:
    """Lose what is only in memory, as a restart of the machine does."""
    for blob in (Path(os.environ["XDG_RUNTIME_DIR"]) / "agentctl").iterdir():
        blob.unlink()


def task_row(name: str = "t1") -> dict[str, Any]:
    return next(one for one in run("tasks", "--json").json if one["taskId"] == name)


def errors() -> list[dict[str, Any]]:
    """Return the errors of `doctor`, which has to exit with 1 if there are any."""
    told = run("doctor", "--json", check=False)
    found = [one for one in told.json if one["severity"] == "error"]
    assert told.code == (1 if found else 0)
    return found


def stranded(tmp_path: Path) -> Task:
    """Make a task in which nothing lives, and one worker could start at once."""
    task = new_task(cap=1)
    spawn(worker("sleeps", 100), name="a")
    spawn(["sh", "-c", "echo $TOLD"], "--queue", name="b")
    spawn(["true"], "--queue", "--after", "b", name="c")
    fall(task, "a")
    return task


def test_a_queue_that_stands_still_is_told_by_every_view(root: Path, tmp_path: Path) -> None:
    stranded(tmp_path)
    told = task_row()
    assert (told["state"], told["stranded"], told["failed"]) == ("stranded", 1, 1)
    assert run("tasks").out.split("\t")[1] == "stranded"
    assert (row("b")["health"], row("c")["health"]) == ("stranded", None)
    listed = run("list")
    assert "b\tqueued\tstranded" in listed.out
    assert listed.err == f"b is stranded in the queue, nothing will start it: {NEXT}\n"
    (error,) = errors()
    assert ("t1/b is stranded" in error["what"], error["next"]) == (True, NEXT)
    why = run("why", "b", "--json").json
    assert (why["state"], NEXT in [way["command"] for way in why["waysOut"]]) == ("stranded", True)
    watched = start("watch", "--plain")
    assert watched.stdout is not None
    line = next(line for line in watched.stdout if "b of t1" in line)
    watched.send_signal(signal.SIGINT)
    watched.communicate(timeout=20)
    assert line == f"b of t1 is stranded in the queue, nothing will start it: {NEXT} --task t1\n"
    assert statuses()["b"] == "queued", "looking starts nobody"


@pytest.mark.parametrize("command", [("wait", "c"), ("wait-all",), ("resume", "--lost"), ("doctor", "--fix")])
def test_what_may_start_workers_moves_it(root: Path, tmp_path: Path, command: tuple[str, ...]) -> None:
    task = stranded(tmp_path)
    run(*command, check=False)
    task.ended("b", "c")
    assert (statuses()["b"], statuses()["c"]) == ("completed", "completed")
    assert errors() == []


@pytest.mark.parametrize("command", ["wait b", "wait-any", "wait-all", "spawn --wait --queue --after b -- true"])
def test_a_wait_says_what_it_cannot_move(root: Path, tmp_path: Path, command: str) -> None:
    """Without its environment nothing may start the worker: a wait for it would have no end."""
    task = stranded(tmp_path)
    restart()
    run("wait-any", "--json")  # The loss of a.
    waiting = start(*command.split())
    assert waiting.stderr is not None
    assert waiting.stderr.readline() == f"b, c are stranded in the queue, nothing will start them: {NEXT}\n"
    (error,) = errors()
    assert error["next"] == NEXT
    assert (row("b")["health"], task_row()["stranded"]) == ("stranded", 2)
    run("resume", "--lost", env={"TOLD": "now"})
    waiting.communicate(timeout=20)
    task.ended("b", "c")
    assert (task.agent("b") / "stdout.log").read_text() == "now\n"


def calling(*calls: tuple[str, dict[str, Any]]) -> subprocess.Popen[str]:
    """Start calls of tools in a person's session."""
    return start_argv(worker("calls_tools", "all", json.dumps([(*call, 60) for call in calls])))


def answers_of(calling: subprocess.Popen[str]) -> list[Any]:
    out, _ = calling.communicate(timeout=40)
    return [json.loads(line) for line in out.splitlines()][1:]


def test_a_wait_of_a_tool_names_what_nobody_starts(root: Path, tmp_path: Path) -> None:
    stranded(tmp_path)
    restart()
    (told,) = answers_of(calling(("wait", {"ids": ["b", "c"], "timeout_ms": 50_000})))
    assert (told["stranded"], told["still_running"], told["timed_out"]) == (["b", "c"], ["b", "c"], False)
    assert "Tell the user" in told["note"]
    assert "agentctl" not in told["note"]
    run("resume", "--lost")
    run("wait", "b", "c", check=False)


@pytest.mark.slow
@pytest.mark.follows("interfaces/commands/start/subtask._stay: agentctl resume --lost")
def test_a_call_for_a_subtask_at_a_terminal_says_what_it_cannot_move(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = agent_world(tmp_path, monkeypatch, cap=1)
    define(root, "echo", 'echo "said: $1"')
    spawn(worker("sleeps", 100), name="a")
    calling = start("subtask", "echo", "Sub", "--intent", "hello")
    wait_until(lambda: run("list", "--task", "sub", check=False).out, accept=lambda out: "queued" in out)
    restart()
    fall(task, "a")
    assert calling.stderr is not None
    line = calling.stderr.readline()
    follow(line, f"{NEXT} --task sub")
    calling.communicate(timeout=40)
    assert calling.returncode == 0


def test_a_call_for_a_subtask_ends_when_nobody_starts_it(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = agent_world(tmp_path, monkeypatch, cap=1)
    define(root, "echo", 'echo "said: $1"')
    spawn(worker("sleeps", 100), name="a")
    call = calling(("create_subtask_echo", {"title": "Sub", "intent": "hello"}))
    wait_until(lambda: run("list", "--task", "sub", check=False).out, accept=lambda out: "queued" in out)
    restart()
    fall(task, "a")
    (told,) = answers_of(call)
    assert (told["still_running"], told["stranded"], "Tell the user" in told["note"]) == (True, ["sub"], True)


def test_what_only_waits_is_not_stranded(root: Path, tmp_path: Path) -> None:
    task = new_task(cap=1)
    spawn_batch([held(tmp_path / "gate", "a"), {"name": "b", "argv": ["true"]}])
    assert (row("b")["health"], task_row()["state"], errors()) == (None, "working", [])

    kill_shims(task, "a")  # It is at work, and has the only slot.
    assert (row("b")["health"], task_row()["stranded"], errors()) == (None, 0, [])

    task.set_cap(2)
    run("list")
    wait_until(lambda: task_row()["stranded"], accept=lambda many: many == 1, what="a free slot to count")
    assert task_row()["state"] == "working", "a is"
    (tmp_path / "gate").touch()
    run("wait-all", check=False)


def test_one_command_moves_all_queues_of_a_root_and_keeps_their_limits(root: Path, tmp_path: Path) -> None:
    """Both queues go on by one command, each as one queue: there are never more at work than may be."""
    first = new_task(cap=2)
    run("new", "Another", "--id", "t2", "--max-concurrent", "2", "--no-use")
    second = Task(root / "tasks" / "t2")
    names = [f"w{number}" for number in range(8)]
    for task in (first, second):
        rows = [held(tmp_path / "never", "a"), held(tmp_path / "never", "b"),
                *({"name": name, "argv": worker("overlaps", tmp_path / task.path.name)} for name in names)]  # fmt: skip
        lines = "".join(json.dumps(one) + "\n" for one in rows)
        run("spawn", "--task", task.path.name, "--batch", "-", stdin=lines)
    for task in (first, second):
        fall(task, "a", "b")
    restart()
    told = run("resume", "--lost", "--json").json
    assert sorted((one["taskId"], one["agentInstance"]) for one in told) == [
        (task, name) for task in ("t1", "t2") for name in names
    ]
    for task in (first, second):
        task.ended(*names)
        assert most_at_once(tmp_path / task.path.name) <= 2
        assert sorted(task.order("agent.started")) == ["a", "b", *names], "each was started once"


def test_only_the_task_that_is_named_goes_on(root: Path, tmp_path: Path) -> None:
    task = stranded(tmp_path)
    run("new", "Another", "--id", "t2", "--no-use")
    assert run("resume", "--lost", "--json", "--task", "t2").json == []
    assert statuses()["b"] == "queued"
    assert [one["agentInstance"] for one in run("resume", "--lost", "--json", "--task", "t1").json] == ["b"]
    task.ended("b", "c")


def test_where_nothing_was_lost_nothing_is_said(root: Path, tmp_path: Path) -> None:
    def silent() -> Completed:
        told = run("resume", "--lost")
        assert (told.out, told.err) == ("", "")
        return told

    run("new", "A task", "--id", "t1", "--no-use")
    silent()  # Not even a task is chosen.
    run("use", "t1")
    spawn(["true"], "--wait", name="a")
    silent()
    spawn_batch([held(tmp_path / "gate", "b")])
    silent()
    (tmp_path / "gate").touch()
    run("wait", "b")


def test_a_task_that_cannot_go_on_holds_up_no_other(root: Path, tmp_path: Path) -> None:
    task = stranded(tmp_path)
    run("new", "Another", "--id", "t0", "--no-use")
    (root / "tasks" / "t0" / "events.jsonl").unlink()
    (root / "tasks" / "t0" / "events.jsonl").mkdir()
    told = run("resume", "--lost", check=False)
    assert (told.code, "b queued in t1" in told.out, "error: " in told.err) == (1, True, True)
    task.ended("b", "c")


def test_a_wait_of_a_tool_names_what_is_held(root: Path) -> None:
    new_task(cap=1)
    run("pause")
    spawn(["true"], "--queue", name="a")
    (told,) = answers_of(calling(("wait", {"ids": ["a"], "timeout_ms": 10})))
    assert (told["held"], told["still_running"], told["timed_out"]) == (["a"], ["a"], True)
    assert "until their queue is let go" in told["note"]
    run("unpause")
    (told,) = answers_of(calling(("wait", {"ids": ["a"], "timeout_ms": 50_000})))
    assert told["status"] == {"a": "completed"}
