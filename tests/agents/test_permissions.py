"""Permissions: asked, answered from another process, and never given by accident."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.agents.lab import Lab
from tests.agents.scenarios import done
from tests.steps import statuses
from tests.support import wait_until


def answer(question: dict[str, Any], kind: str) -> str:
    """Return the vendor's option that allows or denies once."""
    words = {"allow": ("allow", "accept", "yes"), "deny": ("deny", "decline", "no")}[kind]
    ids = [str(option["id"]) for option in question["options"]]
    return next(option for word in words for option in ids if option == word)


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
    lab.respond(agent, answer(question, "allow"))
    assert lab.completed(agent) == done("ask", 1)
    assert written(lab) == ["asked.txt"]


def test_denied(lab: Lab) -> None:
    """A permission, denied from another process."""
    agent = lab.spawn("ask")
    lab.respond(agent, answer(lab.question(agent), "deny"))
    assert lab.completed(agent) == done("ask", 1)
    assert written(lab) == []


@pytest.mark.parametrize("kind", ["allow", "deny"])
def test_of_sub_agent(lab: Lab, kind: str) -> None:
    """A sub-agent's permission: {kind}."""
    agent = lab.spawn("subagent=ask")
    question = lab.question(agent)
    assert question["askedBy"]
    lab.respond(agent, answer(question, kind))
    assert lab.completed(agent).startswith("Done: subagent")
    assert written(lab) == (["asked.txt"] if kind == "allow" else [])


@pytest.mark.parametrize("policy", ["allow", "deny"])
def test_policy(lab: Lab, policy: str) -> None:
    """--permissions {policy} asks nobody."""
    agent = lab.spawn("ask", "--permissions", policy)
    assert lab.completed(agent) == done("ask", 1)
    assert written(lab) == (["asked.txt"] if policy == "allow" else [])
    assert not lab.task.events("interaction.requested")


@pytest.mark.parametrize("agent", ["explore", "plan"])
def test_read_only(lab: Lab, agent: str) -> None:
    """The read-only agent {agent} tries to write: no file."""
    instance = lab.spawn("write", agent=agent)
    lab.end(instance)
    assert [request for request in lab.standin.requests if request.results], "the model never tried"
    assert written(lab) == []
    assert not lab.task.events("interaction.requested")


def test_cancelled_while_asking(lab: Lab) -> None:
    """A cancel while a permission is open."""
    agent = lab.spawn("ask")
    lab.question(agent)
    lab.cancel(agent)
    assert written(lab) == []
    wait_until(lambda: lab.open_questions(agent), accept=lambda found: found == [], what="no open question")
