"""At stake: a runner of another package is found by its entry point, and has to do no more than the interface says."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from tests.steps import new_task
from tests.support import REPOSITORY, environment

#: A runner that starts each launch as a process, and knows nothing of it afterwards.
ELSEWHERE = """
import subprocess

class Elsewhere:
    name = "elsewhere"
    def check(self, placement): pass
    def launch(self, launch):
        with open(launch.log, "ab") as log:
            started = subprocess.Popen(launch.argv, stdin=-3, stdout=log, stderr=log, start_new_session=True, env={})
        return str(started.pid)
    def poll(self): return {}
    def interrupt(self, launch_id): pass
    def kill(self, launch_id): pass
    def reap(self, launch_id): pass
    def reconcile(self, wanted): return []
    def remarks(self): return []

RUNNER = Elsewhere()
"""


@pytest.fixture
def program(root: Path, tmp_path: Path) -> list[str]:
    """Return the program as it is installed beside a package that declares a runner."""
    folder = tmp_path / "installed"
    venv.create(folder, with_pip=False, symlinks=True)
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(folder)}))
    (packages / "here.pth").write_text(f"{REPOSITORY}\n{sysconfig.get_path('purelib')}\n")
    info = packages / "elsewhere-1.0.dist-info"
    info.mkdir()
    (packages / "elsewhere.py").write_text(ELSEWHERE)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: elsewhere\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[agentctl.runners]\nelsewhere = elsewhere:RUNNER\n")
    return [str(folder / "bin" / "python"), "-m", "agentctl"]


def call(program: list[str], *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*program, *args], env=environment(), capture_output=True, text=True, check=False, timeout=50)


def test_a_runner_of_another_package_runs_a_worker(program: list[str]) -> None:
    task = new_task()
    assert call(program, "spawn", "--runner", "elsewhere", "--name", "a", "--", "sh", "-c", "exit 4").returncode == 0
    assert call(program, "wait", "a").returncode == 7
    assert (task.exit("a") or {})["exitCode"] == 4


def test_a_runner_that_is_gone_when_its_worker_starts_is_told(program: list[str], tmp_path: Path) -> None:
    task = new_task(cap=1)
    gate = tmp_path / "gate"
    call(program, "spawn", "--name", "first", "--", "sh", "-c", f"until test -e {gate}; do sleep 0.02; done")
    assert call(program, "spawn", "--queue", "--runner", "elsewhere", "--name", "a", "--", "true").returncode == 0
    next((tmp_path / "installed").rglob("entry_points.txt")).unlink()
    gate.touch()
    task.ended("a")
    ended = task.exit("a") or {}
    assert (ended["status"], ended["reason"]) == ("failed", "not_started")
    assert "there is no runner 'elsewhere'" in ended["message"]


def test_the_known_runners_are_named(program: list[str]) -> None:
    new_task()
    refused = call(program, "spawn", "--json", "--runner", "nope", "--", "true")
    assert (refused.returncode, "known: local, elsewhere, loopback, slurm" in refused.stderr) == (3, True)
    assert json.loads(call([sys.executable, "-m", "agentctl"], "list", "--json").stdout) == []
