"""Agents of different programs below one another: each starts the next by our tools, and one nest is one tree."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.agents.lab import PATIENCE_S, Lab, option
from tests.agents.scenarios import done
from tests.support import run, wait_until

#: Who starts whom: each that can start others stands above the next two of this ring.
RING = ("claude", "opencode", "llm", "codex", "claude-agent-acp", "codex-acp")
#: Has none of our tools (`cannot.py`), so it is the last of a nest.
LAST = "qwen"
NAMES = ("first", "second", "third")

pytestmark = pytest.mark.parametrize("program", RING)


@pytest.fixture
def nest(lab: Lab, installed: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    """The programs of a nest of three, all in PATH; the first is the tested one."""
    folders = [str(path.parent) for path in installed.values()]
    monkeypatch.setenv("PATH", os.pathsep.join([*folders, os.environ["PATH"]]))
    lab.configure(maxDepth=3)
    place = RING.index(lab.program)
    first, second, third = (RING * 2)[place : place + 3]
    return (first, second, LAST if first == RING[0] else third)


def begin(lab: Lab, nest: tuple[str, ...], last: str) -> None:
    """Start the first; each starts the next and waits for it, and the last one plays a scenario."""
    scenarios = [*(f"delegate={name}.json" for name in NAMES[1:]), last]
    for name, driver, scenario in zip(NAMES[1:], nest[1:], scenarios[1:], strict=True):
        order = {"scenario": scenario, "name": name, "driver": driver}
        Path(f"{name}.json").write_text(json.dumps(order), encoding="utf-8")
    lab.spawn(scenarios[0], name=NAMES[0])


def test_question_from_below(lab: Lab, nest: tuple[str, ...]) -> None:
    """The first of a nest of three programs: the last one's request is answered, and its result arrives at the top."""
    begin(lab, nest, "ask=made.txt")
    lab.task.has("agent.started", NAMES[-1], timeout_s=PATIENCE_S)
    question = lab.question(NAMES[-1])
    assert "made.txt" in str(question)
    lab.respond(NAMES[-1], option(question, "allow"))
    finals = [lab.completed(name) for name in NAMES]
    assert finals[-1] == done("ask", 1)
    assert [final.count(done("ask", 1)) >= 1 for final in finals] == [True] * 3, finals
    assert Path("made.txt").exists()
    listed = {row["agentInstance"]: (row["driver"], row["depth"], row["parent"]) for row in run("list", "--json").json}
    above = (None, *NAMES)
    assert listed == {name: (nest[depth], depth, above[depth]) for depth, name in enumerate(NAMES)}


def test_cancelled(lab: Lab, nest: tuple[str, ...]) -> None:
    """The first of a nest of three programs is cancelled: all below it, too, and nothing is alive."""
    begin(lab, nest, "mute")
    lab.arrived("mute")
    run("cancel", NAMES[0], timeout=2 * PATIENCE_S)
    statuses = {row["agentInstance"]: row["status"] for row in run("list", "--json").json}
    assert statuses == dict.fromkeys(NAMES, "cancelled")
    wait_until(lab.processes, what="nothing to be alive", accept=lambda left: not left)
