"""An agent starts a child with our tools, which it got over MCP: another process, under the same supervision."""

from __future__ import annotations

from tests.agents.lab import KEY, Lab
from tests.support import run


def test_child(lab: Lab) -> None:
    """A child by our own tools."""
    agent = lab.spawn("delegate=text")
    assert "The answer of the stand-in model." in lab.completed(agent)
    rows = {row["agentInstance"]: row for row in run("list", "--json").json}
    (child,) = [row for row in rows.values() if row["parent"] == agent]
    assert (child["status"], child["depth"], child["driver"]) == ("completed", 1, lab.program)
    assert lab.files_with(KEY) == []


def test_child_asks(lab: Lab) -> None:
    """A child's question, answered by a person."""
    agent = lab.spawn("delegate=ask")
    (row,) = lab.task.events("agent.queued") and [
        event for event in _children(lab, agent)
    ]
    asked = lab.question(row)
    assert asked["agentInstance"] == row
    lab.respond(row, "allow" if lab.program == "claude" else "accept")
    assert "Done: ask after 1 tool results." in lab.completed(agent)


def _children(lab: Lab, agent: str) -> list[str]:
    from tests.support import wait_until

    return wait_until(
        lambda: [e["agentInstance"] for e in lab.task.events("agent.queued") if e["payload"].get("parent") == agent],
        timeout_s=40,
        what="a child",
    )
