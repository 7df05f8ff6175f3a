"""At stake: `doctor` names each damage and its remedy, `--fix` repairs what is safe, neither makes things worse."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agentctl.adapters.mounts import network_mount
from tests.ready import ENDED, ended_task
from tests.snapshots import snapshot
from tests.steps import Task, kill, new_task, spawn, statuses
from tests.support import alike, run, start_argv, wait_until, worker


@pytest.fixture
def task(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Task:
    return ended_task(tmp_path_factory)


def findings(*options: str) -> list[dict[str, Any]]:
    ended = run("doctor", "--json", *options, check=False)
    found: list[dict[str, Any]] = ended.json
    errors = [one for one in found if one["severity"] == "error" and not one["fixed"]]
    assert ended.code == (1 if errors else 0), str(ended)
    assert (": as told above" in found[-1]["what"]) == bool(errors)
    of_the_machine = (": as told above", "login manager", "claude: ", "codex: ", "speak ACP")
    return [one for one in found if one["severity"] != "ok" and not any(word in one["what"] for word in of_the_machine)]


def the_only(found: list[dict[str, Any]], word: str) -> dict[str, Any]:
    (one,) = found
    assert word in one["what"]
    return one


def test_where_nothing_is_wrong_it_says_so_and_changes_nothing(task: Task) -> None:
    before = snapshot(task.path)
    assert findings() == []
    assert findings("--fix") == []
    assert run("doctor").out.splitlines()[-1] == f"ok: nothing is wrong ({root_of(task)})"
    assert snapshot(task.path) == before


def root_of(task: Task) -> Path:
    return task.path.parent.parent


def test_the_verdict_about_the_root_does_not_depend_on_programs(task: Task, tmp_path: Path) -> None:
    program = tmp_path / "silent" / "claude"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nexit 3\n", encoding="utf-8")
    program.chmod(0o755)
    told = run("doctor", "--json", env={"PATH": f"{program.parent}:{os.environ['PATH']}"}).json
    (warned,) = [one for one in told if one["severity"] == "warning"]
    assert ("does not report its version" in warned["what"], "install" in warned["next"]) == (True, False)
    assert (told[-1]["severity"], told[-1]["what"]) == (
        "ok", "1 warning, nothing is broken; nothing is wrong with this root"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "content"),
    [("exit.json", b"{"), *alike(("spec.json", b""), ("worker.json", b"[]"), ("shim.json", b'"x"'))],
    ids=repr,
)
def test_a_damaged_file_of_a_worker_breaks_no_command_and_is_set_aside(task: Task, name: str, content: bytes) -> None:
    file = task.agent("a2") / name
    file.write_bytes(content)
    assert statuses() == ENDED
    for args in (["show", "a2"], ["result", "a2"], ["wait", "a2"], ["cancel", "a2"]):
        told = run(*args, check=False)
        assert "bug" not in told.err, str(told)
    damaged = [one for one in findings() if one["severity"] == "error"]
    assert the_only(damaged, str(file))["next"] == "agentctl doctor --fix sets it aside"
    assert the_only([one for one in findings("--fix") if one["severity"] == "error"], str(file))["fixed"] is True
    (aside,) = file.parent.glob(f"{name}.*.damaged")
    assert aside.read_bytes() == content
    assert statuses() == ENDED
    assert [one for one in findings() if one["severity"] == "error"] == []


@pytest.mark.parametrize("content", [b'{"status": "exploded"}', *alike(b"{}")], ids=repr)
@pytest.mark.slow
def test_a_decision_that_decides_nothing_is_damage(task: Task, content: bytes) -> None:
    """Also if the log lacks the end: no end may be made up, and no command may fail because of it."""
    (task.agent("a2") / "exit.json").write_bytes(content)
    log = task.path / "events.jsonl"
    log.write_bytes(b"".join(line for line in log.read_bytes().splitlines(True) if b"agent.failed" not in line))
    assert statuses() == ENDED
    assert run("wait-all", check=False).code == 7
    assert any("does not describe an end" in one["what"] for one in findings("--fix"))
    assert statuses() == ENDED
    assert {run("wait-any", "--json").json["agentInstance"] for _ in ENDED} == set(ENDED)


def test_an_end_that_the_log_tells_is_put_back_where_its_file_was_lost(task: Task) -> None:
    """Otherwise a later cancel would take the worker for lost, and report something false."""
    (task.agent("a1") / "exit.json").unlink()
    findings("--fix")
    told = run("cancel", "a1", "--json", check=False).json
    assert (told["status"], told["cancelled"]) == ("completed", False)
    assert statuses() == ENDED


def test_what_killed_writers_left_is_removed_and_nothing_else(task: Task) -> None:
    dead = subprocess.Popen(["true"])
    dead.wait()
    ours = task.path / f"config.json.{dead.pid}.0123abcd.tmp"
    live = task.path / f"config.json.{os.getpid()}.0123abcd.tmp"
    theirs = task.agent("a1") / f"report.{dead.pid}.final.tmp"
    for path in (ours, live, theirs):
        path.touch()
    assert the_only(findings(), "left by a writer that was killed")["where"] == str(ours)
    findings("--fix")
    assert [path.exists() for path in (ours, live, theirs)] == [False, True, True]


@pytest.mark.slow
def test_a_spawn_that_was_killed_early_leaves_a_folder_that_is_removed(root: Path) -> None:
    task = new_task()
    for point in ("spawn.after-mkdir", "spawn.after-spec"):
        assert run("spawn", "--name", "a1", "--", "true", env={"AGENTCTL_FAILPOINT": point}, check=False).code == -9
        assert the_only(findings(), "killed before it began")["where"] == str(task.agent("a1"))
        findings("--fix")
        assert not task.agent("a1").exists()
    run("spawn", "--wait", "--name", "a1", "--", "true")


def test_lost_and_unsupervised_workers_are_told_apart(root: Path, tmp_path: Path) -> None:
    task = new_task()
    for name in ("gone", "alone"):
        spawn(worker("sleeps", 100), name=name)
    pid = int(json.loads((task.agent("gone") / "worker.json").read_bytes())["pid"])
    kill(task.shim_of("gone"), task.shim_of("alone"))
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: {one["where"]: one["what"].split(":")[0] for one in findings() if one["severity"] == "warning"},
               accept=lambda told: told.get("t1/alone") == "unsupervised")  # fmt: skip
    assert statuses()["gone"] == "failed"
    assert run("cancel", "alone", "--json").json["status"] == "cancelled"


@pytest.mark.slow
def test_a_queued_worker_that_can_never_start_is_told(root: Path, tmp_path: Path) -> None:
    new_task(cap=1)
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\n", encoding="utf-8")
    program.chmod(0o755)
    spawn(worker("exits", 0, "--after-file", tmp_path / "gate"), name="a1")
    run("spawn", "--queue", "--name", "a2", "--", str(program))
    program.unlink()
    for blob in (tmp_path / "run" / "agentctl").iterdir():
        blob.unlink()
    told = {one["what"]: one["next"] for one in findings()}
    assert told["the environment is gone, as after a restart: t1/a2 is stranded"] == "agentctl resume --lost"
    assert f"queued, but its program is missing: {program}" in told
    program.write_text("#!/bin/sh\n", encoding="utf-8")
    program.chmod(0o755)
    run("resume-queue")
    (tmp_path / "gate").touch()
    assert run("wait-all").code == 0


@pytest.mark.slow
def test_a_stray_of_an_ended_worker_is_told_with_its_pid(root: Path, tmp_path: Path) -> None:
    new_task()
    run("spawn", "--wait", "--keep-children", "--name", "a1", "--", *worker("leaves_daemon", tmp_path / "pids"))
    stray = the_only([one for one in findings() if "process of an ended worker" in one["what"]], "pid")
    pid = int(stray["next"].split()[1].rstrip(","))
    assert str(pid) in stray["what"]
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not Path(f"/proc/{pid}").exists())
    assert findings() == []


def test_a_root_that_others_can_read_is_closed(task: Task, root: Path) -> None:
    root.chmod(0o755)
    (root / "tasks").chmod(0o755)
    assert the_only(findings(), "others can read")["next"] == "agentctl doctor --fix"
    findings("--fix")
    assert root.stat().st_mode & 0o077 == 0
    assert findings() == []


def test_a_runtime_folder_that_others_can_read_is_told_and_spawn_says_the_same(task: Task, tmp_path: Path) -> None:
    folder = tmp_path / "run" / "agentctl"
    folder.mkdir(mode=0o755, exist_ok=True)  # The very first test has made it, together with its tasks.
    folder.chmod(0o755)
    assert "is not private to you" in the_only(findings(), "no private place")["what"]
    assert f"{folder} is not private to you" in run("spawn", "--queue", "--", "true", check=False).err
    assert sorted(path.name for path in (task.path / "agents").iterdir()) == sorted(ENDED)


def test_without_any_root_the_machine_is_still_looked_at(root: Path) -> None:
    assert run("doctor").code == 0
    assert not root.exists()


def test_without_the_library_agents_have_no_tools_of_ours_and_that_is_told(root: Path) -> None:
    code = "import sys; sys.modules['mcp'] = None; from agentctl.interfaces.cli.app import run; run(['doctor'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "note: agents get no tools to start others with" in done.stdout
    assert f"{sys.executable} -P -m pip install 'anyio>=" in done.stdout


MOUNTS = """\
22 1 254:0 / / rw - ext4 /dev/vda rw
30 22 0:30 / /home rw shared:1 - nfs4 server:/home rw
31 30 254:1 / /home/me/local rw - xfs /dev/vdb rw
32 22 0:32 / /mnt/a\\040b rw - fuse.sshfs me@there: rw
33 22 0:33 / /data rw - tmpfs tmpfs rw
34 22 0:34 / /data rw - cifs //there/data rw
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", None), ("/tmp", None), ("/home", "nfs4"), ("/home/me", "nfs4"), ("/home/me/local/x", None),
        ("/home/me/localx", "nfs4"), ("/homestead", None), ("/mnt/a b/c", "fuse.sshfs"), ("/data/x", "cifs"),
    ],
)  # fmt: skip
def test_a_network_file_system_is_known_by_the_mount_that_is_nearest_and_newest(
    tmp_path: Path, path: str, kind: str | None
) -> None:
    table = tmp_path / "mountinfo"
    table.write_text(MOUNTS, encoding="utf-8")
    found = network_mount(path, mounts=str(table))
    assert (found and found.kind) == kind


def test_an_unreadable_mount_table_accuses_nobody(tmp_path: Path) -> None:
    (tmp_path / "mountinfo").write_bytes(b"rubbish\n\xff\n")
    assert network_mount("/x", mounts=str(tmp_path / "mountinfo")) is None
    assert network_mount("/x", mounts=str(tmp_path / "none")) is None


def test_a_cookie_in_a_strangers_environment_makes_it_no_stray(task: Task, tmp_path: Path) -> None:
    """A process is reported only if it claims to be of a worker of this root that has ended."""
    stranger = start_argv([sys.executable, "-c", "input()"], stdin=subprocess.PIPE,
                          env={"AGENTCTL_COOKIE": "x", "AGENTCTL_AGENT_DIR": str(tmp_path / "elsewhere")})  # fmt: skip
    assert findings() == []
    stranger.communicate("\n", timeout=20)
