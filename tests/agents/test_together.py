"""Several at once in one task, of several programs: each asks, each is answered, none gets another's answer."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.agents.install import AGENTS
from tests.agents.lab import Lab, option
from tests.agents.scenarios import done
from tests.support import run


def test_side_by_side(lab: Lab, installed: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Three side by side with one of each vendor's own, each with a permission of its own."""
    others = [package.program for package in AGENTS if package.program != lab.program]
    folders = [str(installed[name].parent) for name in (lab.program, *others) if name in installed]
    monkeypatch.setenv("PATH", os.pathsep.join([*folders, os.environ["PATH"]]))
    drivers = [lab.program] * 3 + others
    agents = [lab.spawn(f"ask=file{number}", name=f"a{number}", driver=driver) for number, driver in enumerate(drivers)]
    for number, agent in enumerate(agents):
        question = lab.question(agent)
        assert f"file{number}" in str(question)
        lab.respond(agent, option(question, "allow"))
    assert [lab.completed(agent) for agent in agents] == [done("ask", 1)] * len(agents)
    assert sorted(path.name for path in lab.work.iterdir()) == [f"file{number}" for number in range(len(agents))]


@pytest.mark.parametrize("program", ["opencode"])
def test_first_starts(lab: Lab) -> None:
    """Five at once are the first of all in a home: they make what the program keeps there."""
    row = {"agent": "general", "driver": lab.program, "prompt": "SCENARIO:text"}
    rows = [{**row, "name": f"a{number}"} for number in range(5)]
    run("spawn", "--batch", "-", stdin="\n".join(map(json.dumps, rows)), env=lab.environ())
    assert {lab.completed(row["name"]) for row in rows} == {"The answer of the stand-in model."}
