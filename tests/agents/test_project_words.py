"""What a project tells every agent that works in it."""

from __future__ import annotations

import subprocess

import pytest

from tests.agents.lab import Lab


@pytest.mark.parametrize(("agent", "place"), [("general", "."), ("explore", "."), ("general", "below")])
def test_the_projects_own_words(lab: Lab, agent: str, place: str) -> None:
    """What a repository tells its agents reaches {agent} in folder {place}, as docs/agents.md has it."""
    subprocess.run(["git", "init", "--quiet"], cwd=lab.work, check=True)
    (lab.work / lab.facts.projects_words).write_text("Say teapot.\n", encoding="utf-8")
    folder = lab.work / place
    folder.mkdir(exist_ok=True)
    lab.completed(lab.spawn("text", "--cwd", str(folder), agent=agent))
    first = lab.answered("text")
    is_told = "Say teapot." in first.system or any("Say teapot." in turn.text for turn in first.turns)
    assert is_told is (place == "." or lab.facts.reads_words_above)
