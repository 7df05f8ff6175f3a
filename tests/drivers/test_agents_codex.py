"""At stake: Codex works as it was ordered, or says which version does; what it leaves behind is cleared away."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agentctl.drivers.codex import DRIVER
from tests.agent_steps import activity, agent_world, ends
from tests.life import kill_shims, kill_tree, leader_of
from tests.steps import Task, statuses
from tests.support import WORKERS, Completed, run, start_argv, wait_until


@pytest.fixture
def task(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    task = agent_world(tmp_path, monkeypatch)
    program = tmp_path / "bin" / "codex"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {WORKERS / "codex_program.py"} "$@"\n', encoding="utf-8")
    program.chmod(0o700)
    return task


def codex(prompt: str, *options: str | Path, agent: str = "general", check: bool = True) -> Completed:
    chosen = ["--agent", agent, "--driver", "codex", "--name", "a", *options]
    return run("spawn", *chosen, prompt, check=check)


def shown() -> dict[str, Any]:
    told: dict[str, Any] = run("show", "a", "--json").json
    return told


def works(task: Task) -> None:
    wait_until(lambda: (task.agent("a") / "activity.jsonl").exists() and "item_0" in str(activity(task)), what="work")


@pytest.mark.parametrize("found", ["0.145.0", "0.9"])
def test_an_older_version_is_refused_with_the_oldest_that_works_and_the_command_that_updates_it(
    task: Task, found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODEX_VERSION", found)
    refused = codex("say hello", check=False)
    assert refused.code == 1
    assert f"codex {found} is too old: agentctl needs {DRIVER.oldest} or newer" in refused.err
    assert f"hint: {DRIVER.install}\n" in refused.err
    assert statuses() == {}, "nothing was started"
    known = next(one for one in run("doctor", "--json", check=False).json if f"codex {found}" in one["what"])
    assert (known["severity"], known["next"]) == ("warning", DRIVER.install)
    monkeypatch.setenv("CODEX_VERSION", DRIVER.oldest)
    Path(str(shutil.which("codex"))).touch()  # Its version is asked for again.
    codex("say hello")
    assert ends()["status"] == "completed"


@pytest.mark.parametrize(
    ("old", "cause"),
    [
        ("no-server", "unrecognized subcommand 'app-server'"),
        ("older", "unknown variant `thread/start`"),
        ("no-profiles", "the permissions of an older version"),
    ],
)
def test_what_opens_no_thread_is_ended_with_the_oldest_version_that_does(
    task: Task, old: str, cause: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLD_CODEX", old)
    codex("say hello")
    end = ends()
    assert (end["status"], end["reason"]) == ("failed", "not_started")
    needed = f"agentctl needs Codex {DRIVER.oldest} or newer: {DRIVER.install}"
    assert all(part in end["message"] for part in ("`codex app-server` could not begin", cause, needed))


#: A daemon that holds the lock of a session, as Codex's does after its screen was left.
HOLDS = """
import fcntl, signal, sys
file = open(sys.argv[1], "w")
fcntl.flock(file, fcntl.LOCK_EX)
print("held", flush=True)
signal.pause()
"""


def test_a_session_that_another_codex_holds_is_named_with_its_holder_and_the_command_frees_it(
    task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    codex("say hello", "--permissions", "allow")
    ends()
    lock = tmp_path / "codex/thread-writer-locks/thread-1.lock"
    lock.parent.mkdir(parents=True)
    daemon = start_argv([sys.executable, "-c", HOLDS, str(lock)])
    assert daemon.stdout is not None
    assert daemon.stdout.readline() == "held\n"
    refused = run("resume", "a", "say more", check=False)
    assert refused.code == 1
    assert f"pid {daemon.pid} ({sys.executable} -c" in refused.err
    assert f"hint: kill {daemon.pid}\n" in refused.err
    assert list(statuses()) == ["a"], "nothing was started"
    finding = next(one for one in run("doctor", "--json", check=False).json if one["where"].endswith("/a"))
    assert (finding["severity"], finding["next"]) == ("note", f"kill {daemon.pid}")
    subprocess.run(refused.err.rpartition("hint: ")[2].split(), check=True)
    daemon.wait(20)
    run("resume", "a", "say more")
    run("wait", "a-1")
    assert run("result", "a-1").out == "more\n"


def test_the_line_that_opens_its_session_works_from_here_and_is_there_where_its_program_is(
    task: Task, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    codex("say hello", "--permissions", "allow")
    ends()
    assert shown()["openSession"] == run("result", "a", "--json").json["openSession"] == "codex resume thread-1"
    assert "\nopenSession: codex resume thread-1\n" in run("show", "a").out
    here = os.getcwd()
    (tmp_path / "else where").mkdir()
    monkeypatch.chdir(tmp_path / "else where")
    line = run("show", "a", "--root", root, "--json").json["openSession"]
    assert line == f"cd {here} && codex resume thread-1"
    (tmp_path / "bin" / "codex").unlink()
    assert run("show", "a", "--root", root, "--json").json["openSession"] is None


def test_only_what_would_be_accepted_is_proposed_for_a_run_that_continues_another(task: Task) -> None:
    codex("say hello", "--permissions", "allow")
    ends()
    run("resume", "a", "hang")
    run("cancel", "a-1")
    ways = [one["command"] for one in run("why", "a-1", "--json").json["waysOut"]]
    assert any("resume a-1" in one for one in ways)
    assert not any("retry" in one for one in ways)
    assert "continues an earlier run" in run("retry", "a-1", check=False).err


def test_its_model_is_told_where_agentctl_is_since_its_shells_set_path_anew(task: Task) -> None:
    codex("instructions", agent="explore")
    assert f"`agentctl` is {Path(sys.executable).with_name('agentctl')}: " in ends()["result"]["finalMessage"]


#: As Codex's sandbox makes them.
MOUNT_POINTS = {".agents", ".aws", ".codex", ".git"}


def _mount_points(folder: Path) -> list[str]:
    return sorted(set(os.listdir(folder)) & MOUNT_POINTS)


def _leaves_mount_points(task: Task, tmp_path: Path, *options: str) -> tuple[Path, Path]:
    """Start an agent in whose working folder there is an empty `.aws`; return that folder and its outbox."""
    folder, outbox = tmp_path / "work", task.agent("a") / "outbox"
    (folder / ".aws").mkdir(parents=True)
    codex(f"mounts {outbox}", "--permissions", "allow", "--cwd", folder, *options)
    works(task)
    assert len(_mount_points(folder)) == len(_mount_points(outbox)) == 4
    return folder, outbox


@pytest.mark.parametrize("end", ["cancel", "timeout", "kill"])
def test_what_a_killed_sandbox_leaves_is_removed_by_whoever_decides_the_end(
    task: Task, tmp_path: Path, end: str
) -> None:
    folder, outbox = _leaves_mount_points(task, tmp_path, *(["--timeout-seconds", "4"] if end == "timeout" else []))
    (folder / ".codex" / "rules").touch()
    if end == "kill":
        kill_shims(task, "a")
        kill_tree(leader_of(task, "a").pid)
    elif end == "cancel":
        run("cancel", "a")
    assert run("wait", "a", check=False).code
    assert _mount_points(folder) == [".aws", ".codex"], "what was there before, and what holds something"
    assert _mount_points(outbox) == []
    assert run("doctor", check=False).code == 0


def test_an_empty_folder_in_an_outbox_is_no_damage(task: Task) -> None:
    codex("say hello", "--permissions", "allow")
    ends()
    (task.agent("a") / "outbox" / ".git").mkdir()
    assert [one for one in run("doctor", "--json").json if one["severity"] in {"error", "warning"}] == []
    (task.agent("a") / "outbox" / "link").symlink_to(".git")
    assert "link is not a file, but a" in run("doctor", check=False).out
    (task.agent("a") / "outbox" / "link").unlink()
    (task.agent("a") / "outbox" / ".git" / "config").touch()
    assert "is not a file, but a folder" in run("doctor", check=False).out


def test_what_is_a_wall_of_another_sandbox_stays(task: Task, tmp_path: Path) -> None:
    script = 'mount --bind "$1" "$1" && echo mounted && exec sleep 60'
    folder, _ = _leaves_mount_points(task, tmp_path / "a b")
    sandbox = start_argv(["unshare", "-rm", "sh", "-c", script, "sh", str(folder / ".codex")])
    assert sandbox.stdout is not None
    if sandbox.stdout.readline() != "mounted\n":
        pytest.skip("this machine allows no mount namespace")
    run("cancel", "a")
    assert _mount_points(folder) == [".aws", ".codex"]
    sandbox.kill()
