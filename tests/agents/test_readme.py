"""At stake: whoever types what README shows of agents can do so with the real programs.

What is printed then `tests/drivers/test_readme_agents.py` compares.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from tests.agents.lab import Lab
from tests.readme import shown_in, typed
from tests.repositories import new_repository

#: What the stand-in for a model does for each agent, by the word with which its prompt begins.
_SCENARIOS = {"Where": "text", "Fix": "ask", "Review": "tool", "And": "recall"}
_PROMPT = re.compile(r'"(\w+)( [^"]+)"$')


@pytest.mark.slow
@pytest.mark.parametrize("program", ["claude"])
def test_what_readme_shows_of_agents_can_be_typed(
    lab: Lab, program: str, installed: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What README shows of agents can be typed."""
    path = [str(installed["codex"].parent), str(Path(sys.executable).parent), os.environ["PATH"]]
    monkeypatch.setenv("PATH", os.pathsep.join(path))
    monkeypatch.delenv("AGENTCTL_ROOT")
    folder = new_repository(tmp_path / "app")
    monkeypatch.chdir(folder)
    for name, value in lab.environ().items():
        monkeypatch.delenv(name, raising=False) if value is None else monkeypatch.setenv(name, value)
    lines = list(shown_in("Agents"))
    assert sum(bool(_PROMPT.search(shown.line)) for shown in lines) == len(_SCENARIOS)
    for shown in lines:
        line = _PROMPT.sub(lambda said: f'"{said[1]}{said[2]} SCENARIO:{_SCENARIOS[said[1]]}"', shown.line)
        code, out = typed(line)
        assert code == 0, (program, line, out)
