"""At stake: however a worker ended, the file, the log and every command report its end truthfully."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.life import is_settled, living, members, read, says_ready, set_config
from tests.steps import new_task, row, spawn, spawn_batch, statuses
from tests.support import PROGRAM, environment, run, start, wait_until, worker


@pytest.mark.slow
def test_every_ending_is_told_by_its_name(root: Path) -> None:
    task = new_task(grace=0.1)
    ways = {
        "good": worker("exits", 0),
        "bad": worker("exits", 3),
        "high": worker("exits", 255),
        "segv": worker("dies_by_signal", "SIGSEGV"),
        "kill": worker("dies_by_signal", "SIGKILL"),
        "term": worker("dies_by_signal", "SIGTERM"),
        "group": ["/bin/sh", "-c", "kill -9 0"],
        "late": ["sleep", "60"],
    }
    limits = {"late": {"timeout_seconds": 0.2}}
    spawn_batch([{"name": name, "argv": argv, **limits.get(name, {})} for name, argv in ways.items()])
    assert run("wait-all", check=False).code == 7
    told = {one["agentInstance"]: one for one in run("list", "--json").json}
    found = {name: tuple(told[name][key] for key in ("status", "reason", "exitCode", "signal")) for name in ways}
    assert found == {
        "good": ("completed", None, 0, None),
        "bad": ("failed", "exit_code", 3, None),
        "high": ("failed", "exit_code", 255, None),
        "segv": ("failed", "signal", None, "SIGSEGV"),
        "kill": ("failed", "signal", None, "SIGKILL"),
        "term": ("failed", "signal", None, "SIGTERM"),
        "group": ("failed", "signal", None, "SIGKILL"),
        "late": ("failed", "timed_out", None, "SIGINT"),
    }
    for name in ways:
        is_settled(task, name)
    assert run("cancel", "good", "--json").json["cancelled"] is False
    assert statuses()["good"] == "completed"


@pytest.mark.slow
def test_too_much_output_stops_the_worker_and_keeps_the_log(root: Path) -> None:
    task = new_task()
    set_config(task, maxOutputBytes=300_000, graceSeconds=0.2)
    spawn(worker("floods", "--to", "both"), name="a")
    assert run("wait", "a", check=False).code == 7
    decision = is_settled(task, "a")
    assert (decision["status"], decision["reason"]) == ("failed", "output_limit")
    kept = sum((task.agent("a") / name).stat().st_size for name in ("stdout.log", "stderr.log"))
    assert kept > 300_000
    assert (task.agent("a") / "stdout.log").read_bytes()[:256] == bytes(range(256))
    spawn(worker("floods", "--bytes", 100_000), name="b")
    run("wait", "b")
    assert is_settled(task, "b")["status"] == "completed"


def test_a_time_limit_ends_the_whole_tree(root: Path, tmp_path: Path) -> None:
    task = new_task()
    pids = tmp_path / "pids"
    spawn(worker("stubborn", pids), "--timeout-seconds", "3", "--grace-seconds", "0.1", name="a")
    tree = members(pids)
    run("wait", "a", check=False)
    assert living(tree.values()) == []
    decision = is_settled(task, "a")
    assert (decision["reason"], decision["signal"]) == ("timed_out", "SIGKILL")
    assert "3 s passed" in decision["message"]


@pytest.mark.slow
def test_spawn_wait_passes_the_exit_code_on(root: Path) -> None:
    new_task(grace=0.1)
    assert run("spawn", "--wait", "--", *worker("exits", 0)).code == 0
    assert run("spawn", "--wait", "--", *worker("exits", 3), check=False).code == 3
    assert run("spawn", "--wait", "--", *worker("dies_by_signal", "SIGTERM"), check=False).code == 128 + 15
    deaf = ["/bin/sh", "-c", 'trap "" INT TERM; while :; do sleep 1; done']
    assert run("spawn", "--wait", "--timeout-seconds", "1.5", "--", *deaf, check=False).code == 124
    told = run("spawn", "--wait", "--json", "--", *worker("exits", 4), check=False)
    assert (told.code, told.json["status"], told.json["exitCode"]) == (4, "failed", 4)


def test_spawn_wait_without_an_exit_code_is_7_and_never_0(root: Path, tmp_path: Path) -> None:
    """It is cancelled although it exits with 0 on SIGINT: not completed, so the exit code is not 0."""
    task = new_task()
    argv = ["/bin/sh", "-c", 'trap "exit 0" INT; echo ready; while :; do sleep 0.02; done']
    waiting = start("spawn", "--wait", "--name", "a", "--", *argv)
    says_ready(task, "a")
    run("cancel", "a")
    out, err = waiting.communicate(timeout=20)
    assert waiting.returncode == 7, (out, err)
    assert is_settled(task, "a")["exitCode"] == 0


def test_ctrl_c_on_spawn_wait_leaves_the_worker_running(root: Path, tmp_path: Path) -> None:
    """Like a terminal, the test sends SIGINT to the whole foreground process group."""
    task = new_task()
    argv = [*PROGRAM, "spawn", "--wait", "--name", "a", "--", *worker("waits_for_file", tmp_path / "gate")]
    waiting = subprocess.Popen(
        argv, env=environment(), process_group=0, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert waiting.stdout is not None
    assert "running" in waiting.stdout.readline()
    wait_until(lambda: _sleeps(waiting.pid), what="the command to wait")
    os.killpg(waiting.pid, signal.SIGINT)
    _, err = waiting.communicate(timeout=20)
    assert waiting.returncode == 130
    assert "a left running in t1" in err
    assert "agentctl cancel a\n" in err
    assert row("a")["health"] == "supervised"
    assert task.exit("a") is None
    (tmp_path / "gate").touch()
    run("wait", "a")
    assert read(task.agent("a") / "exit.json")["status"] == "completed"


def _sleeps(pid: int) -> bool:
    """Return whether a command sleeps in its poll; during everything before that, Ctrl-C has the same effect."""
    return "poll" in Path(f"/proc/{pid}/wchan").read_text(encoding="ascii")
