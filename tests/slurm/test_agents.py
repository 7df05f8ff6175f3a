"""At stake: an agent on a node of a real Slurm asks the person at the head, and starts others, as anywhere else.

The program is the real Claude Code, with a stand-in for its model; where it cannot be had, these are skipped.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agents.install import Unavailable, install
from tests.agents.lab import PATIENCE_S, Lab
from tests.agents.standin import StandIn
from tests.agents.surroundings import KEY
from tests.agents.test_delegation import children_of
from tests.placed import placement
from tests.slurm.cluster import Cluster
from tests.slurm.on_nodes import SLURM
from tests.snapshots import files_with
from tests.steps import new_task
from tests.support import run, wait_until

PROGRAM = "claude"


@pytest.fixture(scope="session")
def installed() -> dict[str, Path]:
    """The agent programs; the tests are skipped where they cannot be had."""
    try:
        return install()
    except Unavailable as error:
        pytest.skip(f"no agent programs: {error}")


@pytest.fixture
def lab(installed: dict[str, Path], nodes: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    """A task, and the agent program in PATH beside a stand-in for its model."""
    monkeypatch.setenv("PATH", f"{installed[PROGRAM].parent}{os.pathsep}{os.environ['PATH']}")
    with StandIn() as standin:
        yield Lab(PROGRAM, tmp_path, new_task(cap=5, grace=3), standin)


def test_the_question_of_an_agent_on_a_node_is_answered_at_the_head(nodes: Cluster, lab: Lab) -> None:
    agent = lab.spawn("ask", *SLURM)
    asked = wait_until(lambda: lab.open_questions(agent), PATIENCE_S, what="its question")[0]
    assert asked["tool"] == "Bash"
    lab.respond(agent, asked["options"][0]["id"])
    assert "Done: ask after 1 tool results." in lab.completed(agent)
    assert placement(agent)["node"] in nodes.nodes
    assert files_with(lab.task.path, KEY) == []


def test_a_child_that_it_starts_by_our_tools_runs_on_a_node_and_asks_at_the_head(nodes: Cluster, lab: Lab) -> None:
    agent = lab.spawn("delegate=ask", *SLURM)
    (child,) = wait_until(lambda: children_of(lab, agent), PATIENCE_S, what="a child")
    asked = wait_until(lambda: lab.open_questions(child), PATIENCE_S, what="its question")[0]
    lab.respond(child, asked["options"][0]["id"])
    assert "Done: ask after 1 tool results." in lab.completed(agent)
    rows = {row["agentInstance"]: row for row in run("list", "--json").json}
    assert (rows[child]["parent"], rows[child]["status"], rows[child]["depth"]) == (agent, "completed", 1)
    assert {rows[name]["placement"]["runner"] for name in (agent, child)} == {"slurm"}
    assert rows[child]["placement"]["node"] in nodes.nodes


def test_a_cancel_of_an_agent_on_a_node_leaves_nothing_of_it(nodes: Cluster, lab: Lab) -> None:
    agent = lab.spawn("mute", *SLURM)
    lab.arrived("mute")
    assert lab.runs("--output-format")
    told = run("cancel", agent, "--json", timeout=PATIENCE_S).json
    assert (told["cancelled"], told["survivors"]) == (True, [])
    # Its post and its shims take a moment to leave; of the program itself nothing may be left.
    assert not lab.runs("--output-format")
