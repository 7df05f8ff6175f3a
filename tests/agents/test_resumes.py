"""A session goes on: after its end, and after its shim, its driver or everything was killed."""

from __future__ import annotations

import pytest

from tests.agents.lab import Lab
from tests.agents.scenarios import done, recalled
from tests.steps import kill
from tests.support import run


def test_after_its_end(lab: Lab) -> None:
    """Resume after its end, with the same model and role."""
    first = lab.spawn("text", "--model", lab.facts.model)
    lab.completed(first)
    second = lab.resume(first, "recall")
    assert second != first
    assert lab.completed(second) == recalled("text", "recall")
    sessions = {lab.result(instance)["sessionId"] for instance in (first, second)}
    assert len(sessions) == 1
    asked = [lab.answered(scenario) for scenario in ("text", "recall")]
    assert [request.model for request in asked] == [lab.facts.model_sent] * 2
    assert lab.has_role(asked[-1], "general")


@pytest.mark.parametrize("victims", ["the driver", "shim, driver and program"])
def test_before_the_first_word(lab: Lab, victims: str) -> None:
    """Resume after SIGKILL of {victims} before the first word."""
    first = lab.spawn("slow")
    lab.arrived("slow")
    lab.kill(first, victims)
    second = lab.resume(first, "recall")
    assert lab.completed(second) == recalled("slow", "recall")


@pytest.mark.parametrize("victims", ["the driver", "shim, driver and program"])
def test_in_mid_tool(lab: Lab, victims: str) -> None:
    """Resume after SIGKILL of {victims} in mid-tool."""
    first = lab.spawn("slowtool", "--permissions", "allow")
    lab.in_tool(first)
    session = lab.session(first)
    lab.kill(first, victims)
    second = lab.resume(first, "recall")
    assert lab.completed(second) == recalled("slowtool", "recall")
    assert lab.result(second)["sessionId"] == session


def test_after_the_shim(lab: Lab) -> None:
    """Resume after SIGKILL of the shim: the agent went on to its end."""
    first = lab.spawn("pause=2", "--permissions", "allow")
    lab.in_tool(first)
    kill(lab.task.shim_of(first))
    lab.end(first)
    second = lab.resume(first, "recall")
    assert lab.completed(second) == recalled("pause", "recall")


def test_all_that_were_lost(lab: Lab) -> None:
    """Resume --lost continues all that a crash took."""
    first = lab.spawn("slowtool", "--permissions", "allow")
    lab.in_tool(first)
    lab.session(first)
    lab.crash()
    assert lab.failed(first) == "lost"
    told = run("resume", "--lost", "--json", env=lab.environ()).json
    assert len(told) == 1
    assert lab.completed(told[0]["agentInstance"]) == done("slowtool", 1)
    assert run("resume", "--lost", "--json", env=lab.environ()).json == []
