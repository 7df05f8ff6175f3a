"""At stake: a test that fails is told by its name and by what it printed, whatever that was."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support import REPOSITORY, environment

_FAILS = r"""
import pytest


@pytest.mark.parametrize("name", ["byte \udce9"])
def test_it(name: str) -> None:
    print("printed \udce9")
    pytest.fail("there is no file caf\udce9")
"""


def test_a_failure_is_told_by_one_of_several_processes(tmp_path: Path) -> None:
    (tmp_path / "test_fails.py").write_text(_FAILS, encoding="utf-8")
    argv = [sys.executable, "-m", "pytest", "-p", "tests.conftest", "--numprocesses", "1", "-rf", str(tmp_path)]
    ended = subprocess.run(
        argv, capture_output=True, encoding="utf-8", cwd=REPOSITORY, env=environment(), timeout=50, check=False
    )
    assert r"there is no file caf\udce9" in ended.stdout
    assert r"printed \udce9" in ended.stdout
    assert "1 failed" in ended.stdout
    assert ended.returncode == 1, ended.stdout + ended.stderr
