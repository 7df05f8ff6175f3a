"""At stake: whoever types what README shows of agents, line after line, sees what it shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.agents.lab import PATIENCE_S, Lab
from tests.readme import alike, shown_in
from tests.repositories import new_repository
from tests.support import environment

#: Tables: how wide their columns are differs with the times in them.
_TABLES = re.compile(r"agentctl (list|worktrees)\b")


@pytest.mark.slow
@pytest.mark.parametrize("program", ["claude"])
def test_what_readme_shows(
    lab: Lab, program: str, installed: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What README shows of agents is what whoever types it sees."""
    path = [str(installed["codex"].parent), str(Path(sys.executable).parent), os.environ["PATH"]]
    monkeypatch.setenv("PATH", os.pathsep.join(path))
    monkeypatch.delenv("AGENTCTL_ROOT")
    folder = new_repository(tmp_path / "app")
    environ = environment(lab.environ())
    typed = list(shown_in("Agents"))
    assert len(typed) > 12
    for shown in typed:
        done = subprocess.run(
            ["bash", "-c", shown.line], env=environ, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True,
            text=True, timeout=PATIENCE_S, check=False,
        )  # fmt: skip
        assert done.returncode == 0, (program, shown.line, done)
        printed = {alike(line, folder, "/tmp/app") for line in done.stdout.splitlines()}
        expected = [] if _TABLES.search(shown.line) else [alike(line, folder, "/tmp/app") for line in shown.printed]
        missing = [line for line in expected if line not in printed]
        assert not missing, f"$ {shown.line}\n{done.stdout}{done.stderr}\nlacks {missing}"
