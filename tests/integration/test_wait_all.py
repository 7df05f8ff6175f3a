"""At stake: `wait` and `wait-all` wait through questions until the last end, kill no worker, and report each end."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from pathlib import Path

import pytest

from agentctl.adapters.taskdir import TaskDir
from agentctl.operations.wait.live_view import LiveTask
from tests.life import sleeps_in_wait
from tests.steps import held, kill, new_task, row, spawn, spawn_batch, statuses
from tests.support import alike, run, start, wait_until, worker


def test_wait_all_returns_at_the_last_end_and_tells_of_each(root: Path, tmp_path: Path) -> None:
    task = new_task()
    spawn_batch([held(tmp_path / "gate", "a"), {"name": "b", "argv": ["false"]}, {"name": "c", "argv": ["true"]}])
    waiter = start("wait-all")
    task.ended("b", "c")
    assert waiter.poll() is None
    (tmp_path / "gate").touch()
    out, err = waiter.communicate(timeout=30)
    assert out == "a completed\nb failed (exit_code 1)\nc completed\n"
    assert (waiter.returncode, err) == (7, "")
    assert run("wait-any").out.startswith(("b ", "c ")), "wait-all takes nothing from the consumers of wait-any"


def test_wait_of_some_does_not_wait_for_others(root: Path, tmp_path: Path) -> None:
    new_task()
    spawn_batch([held(tmp_path / "gate", "a"), {"name": "b", "argv": ["true"]}, {"name": "c", "argv": ["true"]}])
    assert run("wait", "b").out == "b completed\n"
    assert run("wait", "b", "--json").json["status"] == "completed"
    assert [end["agentInstance"] for end in run("wait", "c", "b", "--json").json] == ["b", "c"]
    (tmp_path / "gate").touch()
    assert run("wait-all").code == 0


def test_a_question_does_not_end_the_wait(root: Path) -> None:
    task = new_task()
    spawn(worker("asks", "--kind", "confirm", "Go on?"), name="a")
    waiters = [start("wait", "a"), start("wait-all")]
    task.has("agent.blocked", "a")
    assert run("wait", "a", "--timeout-seconds", "0.1", check=False).code == 4
    assert [waiter.poll() for waiter in waiters] == [None, None]
    run("interact", "respond", "a", "--id", "q1", "yes")
    assert [waiter.wait(timeout=30) for waiter in waiters] == [0, 0]


@pytest.mark.slow
def test_the_timeout_names_who_is_at_work_and_kills_nobody(root: Path, tmp_path: Path) -> None:
    new_task()
    spawn_batch([held(tmp_path / "gate", "a"), {"name": "b", "argv": ["true"]}])
    late = run("wait-all", "--timeout-seconds", "0.3", check=False)
    assert late.code == 4
    assert "still at work after 0.3 s: a\n" in late.err
    assert statuses()["a"] == "running"
    (tmp_path / "gate").touch()
    run("wait-all")


@pytest.mark.slow
def test_ctrl_c_ends_the_wait_alone(root: Path, tmp_path: Path) -> None:
    task = new_task()
    spawn_batch([held(tmp_path / "gate", "a")])
    waiter = start("wait", "a")
    sleeps_in_wait(waiter.pid)
    waiter.send_signal(signal.SIGINT)
    waiter.communicate(timeout=30)
    assert waiter.returncode == 130
    assert statuses() == {"a": "running"}
    (tmp_path / "gate").touch()
    task.ended("a")


def test_ctrl_c_between_two_steps_of_a_wait_is_still_a_ctrl_c(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It strikes right behind the system call that lets go of a worker that has ended."""
    task = new_task()
    spawn_batch([held(tmp_path / "gate", "a")])
    task.has("agent.started", "a")
    closes, watched = os.close, list[int]()

    def interrupted(fd: int) -> None:
        closes(fd)
        if fd in watched:
            raise KeyboardInterrupt

    with LiveTask(TaskDir(str(task.path))) as live_task:
        live_task.update()
        watched += live_task.sentinels()
        (tmp_path / "gate").touch()
        task.ended("a")
        monkeypatch.setattr(os, "close", interrupted)
        with pytest.raises(KeyboardInterrupt):
            live_task.update()


def test_nobody_to_wait_for_is_told(root: Path) -> None:
    new_task()
    assert run("wait-all", check=False).code == 6
    assert run("wait", "nobody", check=False).code == 3
    assert run("wait", "../x", check=False).code == 2


@pytest.mark.slow
def test_a_wait_also_for_workers_that_come_later(root: Path, tmp_path: Path) -> None:
    task = new_task()
    spawn_batch([held(tmp_path / "gate", "a")])
    waiter = start("wait-all", "--json")
    spawn(worker("exits", 0, "--after-file", tmp_path / "later"), name="b")
    (tmp_path / "gate").touch()
    task.ended("a")
    assert waiter.poll() is None
    (tmp_path / "later").touch()
    assert [end["agentInstance"] for end in json.loads(waiter.communicate(timeout=30)[0])] == ["a", "b"]


@pytest.mark.parametrize("point", ["shim.after-exit-file", *alike("shim.after-leader")])
def test_a_wait_tells_the_end_that_a_killed_shim_could_not(root: Path, tmp_path: Path, point: str) -> None:
    """Decided but not in the log, or seen but not decided: the wait finds what is proven, records it and returns."""
    task = new_task()
    run(
        "spawn",
        "--name",
        "a",
        "--",
        *worker("exits", 0, "--after-file", tmp_path / "gate"),
        env={"AGENTCTL_FAILPOINT": point},
    )
    waiter = start("wait", "a", "--json")
    (tmp_path / "gate").touch()
    told = json.loads(waiter.communicate(timeout=30)[0])
    assert told["status"] == (task.exit("a") or {})["status"]
    if point == "shim.after-exit-file":
        assert told["status"] == "completed"
    assert len(task.events("agent.completed", "agent.failed")) == 1


def test_the_queue_goes_on_under_a_wait_though_all_shims_die(root: Path, tmp_path: Path) -> None:
    new = new_task(cap=2)
    spawn_batch(
        [held(tmp_path / "never", name) for name in "ab"] + [{"name": name, "argv": ["true"]} for name in "cdef"]
    )
    waiter = start("wait-all", "--json")
    kill(new.shim_of("a"), new.shim_of("b"), row("a")["pid"], row("b")["pid"])
    ends = {end["agentInstance"]: end["status"] for end in json.loads(waiter.communicate(timeout=30)[0])}
    assert ends == {"a": "failed", "b": "failed", **dict.fromkeys("cdef", "completed")}


@pytest.mark.slow
@pytest.mark.parametrize("command", ["wait", *alike("wait-all", "wait-any")])
def test_a_wait_in_a_task_that_is_removed_says_so(root: Path, tmp_path: Path, command: str) -> None:
    task = new_task(grace=0)
    spawn_batch([held(tmp_path / "never", "a")])
    waiter = start(command, *(["a"] if command == "wait" else []), "--timeout-seconds", "30")
    wait_until(lambda: sleeps_on(waiter.pid, task.path / "events.jsonl"), what="the wait to watch")
    task.path.rename(tmp_path / "removed")  # At once: the wait may look for the first time between two files.
    _, err = waiter.communicate(timeout=30)
    assert waiter.returncode == 3, err
    assert f"the task {task.path.name} has been removed" in err


def sleeps_on(pid: int, file: Path) -> bool:
    """Return whether a process watches a file (proc(5), inotify)."""
    inode = f"ino:{file.stat().st_ino:x} "
    for info in Path(f"/proc/{pid}/fdinfo").iterdir():
        with contextlib.suppress(FileNotFoundError):  # The process may have closed it meanwhile.
            if inode in info.read_text(encoding="ascii"):
                return True
    return False
