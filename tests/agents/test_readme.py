"""At stake: whoever types what README shows of agents, line after line, sees what it shows."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from tests.agents.lab import Lab
from tests.readme import alike, shown_in
from tests.repositories import new_repository
from tests.terminal import on_a_terminal

#: What draws tables: how wide their columns are differs with the times in them.
_TABLES = re.compile(r"agentctl (list|wait-all|worktrees)\b")
#: What moves the cursor or colours a text: a live table is drawn before the lines that stay.
_CONTROLS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


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
    monkeypatch.chdir(folder)
    for name, value in lab.environ().items():
        monkeypatch.delenv(name, raising=False) if value is None else monkeypatch.setenv(name, value)
    typed = list(shown_in("Agents"))
    assert len(typed) > 12
    for shown in typed:
        code, sent = on_a_terminal(["bash", "-c", shown.line], width=300)
        out = _CONTROLS.sub("\n", sent.decode().replace("\r", ""))
        printed = {alike(line, folder, "/tmp/app") for line in out.splitlines()}
        expected = [] if _TABLES.search(shown.line) else [alike(line, folder, "/tmp/app") for line in shown.printed]
        missing = [line for line in expected if line not in printed]
        assert not missing, f"$ {shown.line}\n{out}\nlacks {missing}"
        assert code == 0, (program, shown.line, out)
