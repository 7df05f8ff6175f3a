"""Permissions: asked, answered from another process, and never given by accident."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agents.lab import Lab, option
from tests.agents.scenarios import done
from tests.steps import statuses
from tests.support import wait_until


def written(lab: Lab) -> list[str]:
    """Return the files in the working folder."""
    return sorted(path.name for path in Path(lab.work).iterdir())


def test_allowed(lab: Lab) -> None:
    """A permission, allowed from another process."""
    agent = lab.spawn("ask")
    question = lab.question(agent)
    assert "asked.txt" in str(question)
    assert statuses()[agent] == "blocked"
    assert written(lab) == []
    lab.respond(agent, option(question, "allow"))
    assert lab.completed(agent) == done("ask", 1)
    assert written(lab) == ["asked.txt"]


def test_denied(lab: Lab) -> None:
    """A permission, denied from another process."""
    agent = lab.spawn("ask")
    lab.respond(agent, option(lab.question(agent), "deny"))
    lab.denied(agent)
    assert written(lab) == []


@pytest.mark.parametrize("kind", ["allow", "deny"])
def test_of_sub_agent(lab: Lab, kind: str) -> None:
    """A sub-agent's permission: {kind}."""
    agent = lab.spawn("subagent=ask")
    question = lab.question_of_sub_agent(agent)
    lab.respond(agent, option(question, kind))
    assert lab.completed(agent).startswith("Done: subagent")
    assert written(lab) == (["asked.txt"] if kind == "allow" else [])


@pytest.mark.parametrize("policy", ["allow", "deny"])
def test_policy(lab: Lab, policy: str) -> None:
    """--permissions {policy} asks nobody."""
    agent = lab.spawn("ask", "--permissions", policy)
    if policy == "deny":
        lab.denied(agent)
    else:
        assert lab.completed(agent) == done("ask", 1)
    assert written(lab) == (["asked.txt"] if policy == "allow" else [])
    assert not lab.task.events("interaction.requested")


def test_writes(lab: Lab) -> None:
    """An agent that may write tries it in every way: files."""
    lab.completed(lab.spawn("write", "--permissions", "allow"))
    assert "by-shell.txt" in written(lab)
    assert len(written(lab)) == 2


@pytest.mark.parametrize(("agent", "policy"), [("explore", "ask"), ("plan", "allow")])
def test_read_only(lab: Lab, agent: str, policy: str) -> None:
    """The read-only agent {agent} with --permissions {policy} tries the same: no file."""
    instance = lab.spawn("write", "--permissions", policy, agent=agent)
    lab.end(instance)
    tried = [request for request in lab.standin.requests if request.results]
    assert tried or lab.activity(instance, "tool"), "the model never tried"
    assert written(lab) == []
    assert not lab.task.events("interaction.requested")


def test_cancelled_while_asking(lab: Lab) -> None:
    """A cancel while a permission is open."""
    agent = lab.spawn("ask")
    lab.question(agent)
    lab.cancel(agent)
    assert written(lab) == []
    wait_until(lambda: lab.open_questions(agent), accept=lambda found: found == [], what="no open question")
