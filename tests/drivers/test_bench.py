"""At stake: what `make bench` plays to agentctl is what programs say today; else a figure is missing unnoticed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import REPOSITORY, environment

#: An answer, a driver, one over ACP, and a plain model: each is asked by a program that the benchmark plays.
FIGURES = ("8", "9", "29", "30")


@pytest.mark.slow
def test_the_programs_that_it_plays_are_taken_for_real(root: Path) -> None:
    chosen = [word for figure in FIGURES for word in ("--only", figure)]
    told = root.parent / "told.json"
    argv = [sys.executable, str(REPOSITORY / "bench" / "run.py"), "--quick", "--json", str(told), *chosen]
    done = subprocess.run(argv, env=environment(), capture_output=True, text=True, timeout=150, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    document = json.loads(told.read_text())
    # Its notes tell of other work on the machine, which there is at times.
    assert (document["failures"], document["notFound"]) == ([], [])
    assert {str(row["figure"]) for row in document["rows"]} == set(FIGURES)
