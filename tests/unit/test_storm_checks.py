"""At stake: the storm takes what an upgrade does to Python for that, and no fault of agentctl for it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.storm.checks import is_unexplained

#: The file is gone between the look at its folder and the opening of it.
_GONE = """
import os, sys

def watch(event, arguments):
    if event == "open" and str(arguments[0]).endswith("ours/__init__.py"):
        os.unlink(arguments[0])

sys.addaudithook(watch)
"""


def _said(folder: Path) -> str:
    environ = {**os.environ, "PYTHONPATH": str(folder)}
    argv = [sys.executable, "-B", "-m", "ours"]  # It is to read the file itself each time.
    return subprocess.run(argv, env=environ, capture_output=True, text=True, timeout=30, check=False).stderr


def test_a_package_that_goes_before_its_first_line_is_nobodys_fault(tmp_path: Path) -> None:
    package = tmp_path / "ours"
    package.mkdir()
    package.joinpath("__init__.py").touch()
    package.joinpath("__main__.py").write_text("open('/nowhere/at/all')\n", encoding="utf-8")
    ours = _said(tmp_path)
    assert "FileNotFoundError" in ours
    assert is_unexplained(ours)
    tmp_path.joinpath("sitecustomize.py").write_text(_GONE, encoding="utf-8")
    pythons = _said(tmp_path)
    assert "FileNotFoundError" in pythons
    assert "Traceback" in pythons
    assert not is_unexplained(pythons)
    assert is_unexplained("Traceback (most recent call last):\n  and nothing else")
    assert not is_unexplained("error: no such worker")
