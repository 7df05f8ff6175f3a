"""A cancel ends everything that an agent has started, whatever it is in the middle of."""

from __future__ import annotations

from tests.agents.lab import Lab


def test_in_mid_stream(lab: Lab) -> None:
    """Cancel in mid-stream: nothing alive after 1 s."""
    agent = lab.spawn("slow")
    lab.arrived("slow")
    lab.cancel(agent)


def test_in_mid_tool(lab: Lab) -> None:
    """Cancel in mid-tool: nothing alive after 1 s."""
    agent = lab.spawn("slowtool", "--permissions", "allow")
    lab.in_tool(agent)
    lab.cancel(agent)


def test_in_sub_agent(lab: Lab) -> None:
    """Cancel while a sub-agent runs a tool: nothing alive after 1 s."""
    agent = lab.spawn("subagent=slowtool", "--permissions", "allow")
    lab.in_tool(agent)
    lab.cancel(agent)
    # What was open when the parent was cancelled has not completed.
    assert set(lab.ends_of_sub_agents(agent).values()) <= {"cancelled", "failed"}
