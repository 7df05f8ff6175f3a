"""What a definition or a call restricts holds; a restriction that a program cannot honour refuses the spawn."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentctl.domain.agent.own_tools import PREFIX
from tests.agents.lab import Lab
from tests.agents.scenarios import done
from tests.support import run

TURNS = 12
#: Stands for tools that could be loaded; calling it does nothing.
PLACEHOLDER = "DeferredToolPlaceholder"


def test_max_turns(lab: Lab) -> None:
    """--max-turns, reached after as many rounds of tools."""
    agent = lab.spawn("endless", "--permissions", "allow", "--max-turns", str(TURNS))
    assert lab.failed(agent) == "max_turns"
    assert lab.result(agent)["turnsUsed"] in {TURNS - 1, TURNS}
    commands = [row["id"] for row in lab.activity(agent, "tool") if row["phase"] == "start"]
    assert len(commands) == len(set(commands)) >= TURNS - 1


def test_max_budget(lab: Lab) -> None:
    """--max-budget-usd."""
    options = ["--permissions", "allow", "--max-budget-usd", "0.002"]
    if "maxBudgetUsd" in lab.facts.refuses:
        refused(lab, "maxBudgetUsd", "--agent", "general", *options)
    agent = lab.spawn("endless", *options)
    assert lab.failed(agent) == "budget"


def test_tools_of_a_definition(lab: Lab) -> None:
    """A definition's own list of tools: no other one runs."""
    define(lab, "reader", "Read, Grep")
    agent = lab.spawn("write", "--permissions", "allow", agent="reader")
    lab.completed(agent)
    assert set(lab.standin.requests[-1].tools) - {PLACEHOLDER} == lab.facts.readers
    assert list(lab.work.iterdir()) == []


def test_one_of_our_tools(lab: Lab) -> None:
    """A definition that names one of agentctl's own tools: no other one of them."""
    define(lab, "waiter", f"Read, {PREFIX}wait")
    starting = [["ours:task", {"objective": "SCENARIO:text"}], ["ours:spawn_agent", {"instruction": "SCENARIO:text"}]]
    Path("steps.json").write_text(json.dumps([starting, [["ours:wait", {"timeout_ms": 1}]]]), encoding="utf-8")
    agent = lab.spawn("steps", agent="waiter")
    assert lab.completed(agent) == done("steps", 3)
    ours = [name.removeprefix(PREFIX) for name in lab.standin.requests[-1].tools]
    assert {"wait", "task", "spawn_agent", "send_input"} & {*ours} == {"wait"}
    assert [row["agentInstance"] for row in run("list", "--json").json] == [agent]


def define(lab: Lab, agent: str, tools: str) -> None:
    """Define an agent with a list of tools; a program without such lists refuses it."""
    folder = lab.task.path.parent.parent / "agents"
    folder.mkdir()
    text = f"---\nname: {agent}\ndescription: Of a test.\ntools: {tools}\n---\nYou work.\n"
    (folder / f"{agent}.md").write_text(text, encoding="utf-8")
    if "tools" in lab.facts.refuses:
        refused(lab, "tools", "--agent", agent)


def refused(lab: Lab, key: str, *options: str) -> None:
    """See that the spawn is refused and the key named; the row of the matrix says that it cannot be done."""
    told = run("spawn", "--driver", lab.program, *options, "SCENARIO:text", env=lab.environ(), check=False)
    assert told.code == 1
    assert f"cannot honour {key}" in told.err
    assert not lab.standin.requests
    pytest.xfail(f"it has no such limit of its own; the spawn is refused, and names {key}")
