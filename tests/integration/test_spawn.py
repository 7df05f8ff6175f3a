"""At stake: `spawn` reports what is true, and a worker inherits nothing that it should not have."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.life import is_settled
from tests.snapshots import files_with
from tests.steps import Task, new_task, spawn, statuses
from tests.support import PROGRAM, alike, environment, run, wait_until, worker

#: Prints what a worker sees of itself, as JSON.
LOOKS = """
import json, os, sys
print(json.dumps({
    "fds": sorted(int(n) for n in os.listdir("/proc/self/fd")), "sid": os.getsid(0), "pgid": os.getpgid(0),
    "pid": os.getpid(), "stdin": os.read(0, 1).decode(), "cwd": os.getcwd(), "argv": sys.argv[1:],
    "env": {name: value for name, value in os.environ.items() if name.startswith("AGENTCTL_")},
}))
"""


def output(task: Task, instance: str) -> str:
    return (task.agent(instance) / "stdout.log").read_text(encoding="utf-8")


def looked(task: Task, *options: str, env: Mapping[str, str | None] | None = None) -> dict[str, object]:
    """Run a worker that examines itself; return what it saw."""
    argv = [sys.executable, "-c", LOOKS, "an argument", ""]
    run("spawn", "--name", "looks", "--wait", *options, "--", *argv, env=env)
    seen: dict[str, object] = json.loads(output(task, "looks"))
    return seen


def test_when_spawn_returns_the_start_is_on_disk(root: Path, tmp_path: Path) -> None:
    task = new_task()
    told = spawn(worker("waits_for_file", tmp_path / "gate"), name="a").json
    started = task.events("agent.started", of="a")
    assert told == {"agentInstance": "a", "status": "running", "pid": told["pid"], "taskId": "t1", "reused": False}
    assert [event["payload"]["pid"] for event in started] == [told["pid"]]
    assert [event["type"] for event in task.events(of="a")] == ["agent.queued", "agent.started"]
    (tmp_path / "gate").touch()
    run("wait", "a")


@pytest.mark.parametrize("program", ["no-such-program-anywhere", *alike("./no-such-file", "/etc/passwd")])
def test_a_missing_program_is_refused_and_burns_no_name(root: Path, program: str) -> None:
    task = new_task()
    before = task.events()
    refused = spawn([program], name="a", check=False)
    assert refused.code == 2
    assert program in refused.err
    assert "hint:" in refused.err
    assert task.events() == before
    assert not task.agent("a").exists()
    run("spawn", "--name", "a", "--wait", "--", "true")


@pytest.mark.parametrize("text", ["#!missing/interpreter\n", *alike("neither a script nor a program")])
def test_what_cannot_be_executed_fails_as_not_started(root: Path, tmp_path: Path, text: str) -> None:
    task = new_task(cap=1)
    program = tmp_path / "program"
    program.write_text(text, encoding="ascii")
    program.chmod(0o755)
    refused = spawn([str(program)], name="a", check=False)
    assert refused.code == 1
    assert "a could not be started" in refused.err
    assert str(program) in refused.err
    assert is_settled(task, "a")["reason"] == "not_started"
    wait_until(lambda: spawn(["true"], name="b", check=False).code, accept=lambda code: code == 0, what="the slot")
    run("wait", "b")


def test_spawn_in_a_deleted_folder_says_so(root: Path, tmp_path: Path) -> None:
    new_task()
    script = f'mkdir {tmp_path}/gone; cd {tmp_path}/gone; rmdir {tmp_path}/gone; exec "$@"'
    said = subprocess.run(
        ["/bin/sh", "-c", script, "sh", *PROGRAM, "spawn", "--", "true"],
        env=environment({"PYTHONPATH": str(Path(__file__).parents[2])}), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert said.returncode == 2
    assert "error: the working folder was removed" in said.stderr
    assert run("list", "--json").json == []


@pytest.mark.slow
def test_a_queued_worker_whose_folder_is_gone_fails_and_the_queue_goes_on(root: Path, tmp_path: Path) -> None:
    task = new_task(cap=1)
    folder = tmp_path / "place"
    folder.mkdir()
    spawn(worker("waits_for_file", tmp_path / "gate"), name="a")
    spawn(["true"], "--queue", "--cwd", folder, name="b")
    spawn(["true"], "--queue", name="c")
    folder.rmdir()
    (tmp_path / "gate").touch()
    run("wait-all", check=False)
    assert is_settled(task, "b")["reason"] == "not_started"
    assert str(folder) in is_settled(task, "b")["message"]
    assert statuses() == {"a": "completed", "b": "failed", "c": "completed"}


def test_a_pipe_of_the_caller_is_at_its_end_while_the_worker_runs(root: Path, tmp_path: Path) -> None:
    """A caller that reads its own pipe to the end must not wait for the workers."""
    new_task()
    reader, writer = os.pipe()
    argv = [*PROGRAM, "spawn", "--name", "a", "--", *worker("waits_for_file", tmp_path / "gate")]
    spawned = subprocess.run(argv, env=environment(), pass_fds=[writer], capture_output=True, text=True, check=True)
    os.close(writer)
    assert "running" in spawned.stdout
    assert os.read(reader, 1) == b""  # with a leak, this blocks until the test's limit
    os.close(reader)
    assert statuses() == {"a": "running"}
    (tmp_path / "gate").touch()
    run("wait", "a")


def test_the_worker_has_a_session_and_three_descriptors_of_its_own(root: Path, tmp_path: Path) -> None:
    task = new_task()
    seen = looked(task, "--cwd", str(tmp_path))
    assert seen["sid"] == seen["pgid"] == seen["pid"]
    assert seen["fds"] == [0, 1, 2, 3]  # 3 is the open folder that lists them
    assert seen["stdin"] == ""
    assert seen["cwd"] == str(tmp_path)
    assert seen["argv"] == ["an argument", ""]


def test_the_worker_sees_no_agentctl_name_but_its_own(root: Path) -> None:
    task = new_task()
    # No AGENTCTL_INSTANCE: with it, the caller would be taken for that worker.
    foreign = {"AGENTCTL_COOKIE": "c0ffee", "AGENTCTL_AGENT_DIR": "/elsewhere", "AGENTCTL_ANYTHING": "x"}
    seen = looked(task, env=foreign)
    env = seen["env"]
    assert isinstance(env, dict)
    assert set(env) == {
        "AGENTCTL_ROOT", "AGENTCTL_TASK", "AGENTCTL_INSTANCE", "AGENTCTL_AGENT_DIR", "AGENTCTL_COOKIE",
    }  # fmt: skip
    assert env["AGENTCTL_COOKIE"] != "c0ffee"
    assert (env["AGENTCTL_TASK"], env["AGENTCTL_INSTANCE"]) == ("t1", "looks")
    assert env["AGENTCTL_AGENT_DIR"] == str(task.agent("looks"))


def test_signals_that_the_caller_ignores_are_not_ignored_by_the_worker(root: Path) -> None:
    task = new_task()
    script = 'trap "" INT TERM HUP PIPE QUIT TSTP; exec "$@"'
    argv = [*PROGRAM, "spawn", "--name", "a", "--wait", "--", "cat", "/proc/self/status"]
    subprocess.run(["/bin/sh", "-c", script, "sh", *argv], env=environment(), capture_output=True, check=True)
    told = dict(line.split(":\t", 1) for line in output(task, "a").splitlines() if ":\t" in line)
    ignored = {number for number in range(1, 32) if int(told["SigIgn"], 16) >> (number - 1) & 1}
    assert not ignored & {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGQUIT, signal.SIGTSTP}
    assert int(told["SigBlk"], 16) == 0


def test_no_value_of_the_environment_is_in_any_file(root: Path, tmp_path: Path) -> None:
    task = new_task(cap=1)
    seen = tmp_path / "seen"
    secrets = {"TOKEN": "sesame-one", "KEY": "sesame-two"}
    check = ["/bin/sh", "-c", f'echo "$TOKEN $KEY" > {seen}']
    spawn(worker("waits_for_file", tmp_path / "gate"), name="a")
    told = run(
        "spawn",
        "--queue",
        "--name",
        "b",
        "--env",
        f"TOKEN={secrets['TOKEN']}",
        "--",
        *check,
        env={"KEY": secrets["KEY"]},
    )
    store = Path(os.environ["XDG_RUNTIME_DIR"]) / "agentctl"
    waiting = list(store.iterdir())
    assert len(waiting) == 1
    assert stat.S_IMODE(waiting[0].stat().st_mode) == 0o600
    (tmp_path / "gate").touch()
    run("wait", "b")
    assert seen.read_text(encoding="ascii") == "sesame-one sesame-two\n"
    assert (files_with(root, "sesame"), "sesame" in told.out) == ([], False)
    names = (task.agent("b") / "spec.json").read_text(encoding="utf-8")
    assert '"TOKEN"' in names
    wait_until(lambda: list(store.iterdir()), accept=lambda left: not left, what="the environment to be forgotten")


@pytest.mark.parametrize("mask", ["000", *alike("022", "077")])
def test_files_are_private_whatever_the_umask_and_the_worker_keeps_it(root: Path, tmp_path: Path, mask: str) -> None:
    work = tmp_path / "work"
    script = f'umask {mask}; exec "$@"'
    argv = [*PROGRAM, "spawn", "--wait", "--", "/bin/sh", "-c", "umask; touch made; mkdir made.d"]
    subprocess.run(["/bin/sh", "-c", script, "sh", *argv], env=environment(), cwd=work, capture_output=True, check=True)
    assert stat.S_IMODE((work / "made").stat().st_mode) == 0o666 & ~int(mask, 8)
    assert stat.S_IMODE((work / "made.d").stat().st_mode) == 0o777 & ~int(mask, 8)
    runtime = Path(os.environ["XDG_RUNTIME_DIR"]) / "agentctl"
    entries = [root, *root.rglob("*"), *runtime.rglob("*")]
    assert len(entries) > 10
    assert [str(entry) for entry in entries if _mode(entry) & 0o077] == []


def _mode(path: Path) -> int:
    """Return a file's mode; 0 if it is gone: whoever notes the end in the roster has temporary files for a moment."""
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        return 0
