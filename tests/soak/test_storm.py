"""At stake: the disk fails, the clock steps, agentctl is replaced, pids are reused, all at once; the truth survives."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.test_identity import can_unshare
from tests.support import REPOSITORY, start_argv

#: The seeds of the storms, and how long each rages: ten minutes together. STORM_SEEDS and STORM_SECONDS name others.
SEEDS = [int(seed) for seed in os.environ.get("STORM_SEEDS", "1 2 3 4 5 6").split()]
SECONDS = float(os.environ.get("STORM_SECONDS", "100"))
#: Its first process reaps what is left to it. What the storm leaves behind ends with it.
_OWN_PIDS = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", "/bin/sh", "-c", '"$@"; exit $?', "sh"]


@pytest.mark.soak
@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_fails_at_once_nothing_is_lost_doubled_or_left(root: Path, seed: int) -> None:
    argv = [sys.executable, "-m", "tests.storm", "--seed", str(seed), "--seconds", str(SECONDS)]
    storm = start_argv(
        [*(_OWN_PIDS if can_unshare() else []), *argv], env={"PYTHONPATH": str(REPOSITORY)}, stderr=subprocess.STDOUT
    )
    told, _ = storm.communicate()
    print(told)
    assert storm.returncode == 0, f"see what it has said, from seed {seed} on"
