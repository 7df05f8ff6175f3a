"""At stake: a test that fails is told by its name and by what it printed; nothing of one reaches the next."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import REPOSITORY, environment

_PRINTS_BYTES = r"""
import pytest


@pytest.mark.parametrize("name", ["byte \udce9"])
def test_it(name: str) -> None:
    print("printed \udce9")
    pytest.fail("there is no file caf\udce9")
"""
_LEAVES = """
import os, resource, signal, sys

def test_path():
    os.environ["PATH"] = "/nowhere:" + os.environ["PATH"]
    os.environ["OF_A_TEST"] = "1"
    del os.environ["TERM"]

def test_behind():
    assert "/nowhere" not in os.environ["PATH"]
    assert "OF_A_TEST" not in os.environ
    assert os.environ["TERM"] == "of-the-run"

def test_folder(tmp_path):
    os.chdir(tmp_path)

def test_limit():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft - 1, hard))

def test_umask():
    os.umask(0o777 & ~os.umask(0))

def test_signal():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)

def test_mask():
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGHUP])

def test_undone(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "x")
"""


def _outcome(tmp_path: Path, tests: str, *options: str) -> str:
    """Run tests as this project's are run; return what is printed. One has to fail."""
    (tmp_path / "test_it.py").write_text(tests, encoding="utf-8")
    argv = [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-rfE", *options, str(tmp_path)]
    ended = subprocess.run(
        argv,
        capture_output=True,
        encoding="utf-8",
        cwd=REPOSITORY,
        env={**environment(), "TERM": "of-the-run"},
        timeout=50,
        check=False,
    )
    assert ended.returncode == 1, ended.stdout + ended.stderr
    return ended.stdout


def test_a_failure_is_told_by_one_of_several_processes(tmp_path: Path) -> None:
    told = _outcome(tmp_path, _PRINTS_BYTES, "--numprocesses", "1")
    assert r"there is no file caf\udce9" in told
    assert r"printed \udce9" in told
    assert "1 failed" in told


@pytest.mark.slow
def test_nothing_that_programs_inherit_is_left_changed(tmp_path: Path) -> None:
    told = _outcome(tmp_path, _LEAVES, "-p", "no:xdist")
    failed = sorted(
        line.partition("::")[2].partition(" ")[0] for line in told.splitlines() if line.startswith("ERROR ")
    )
    assert failed == ["test_folder", "test_limit", "test_mask", "test_signal", "test_umask"], told
    assert "umask: 0o" in told
    assert " 8 passed" in told
