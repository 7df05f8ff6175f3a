"""Messages to an agent that runs: they arrive in its conversation."""

from __future__ import annotations

from tests.agents.lab import Lab
from tests.agents.scenarios import recalled
from tests.support import wait_until


def test_follow_up(lab: Lab) -> None:
    """A follow-up: --keep, then send."""
    agent = lab.spawn("text", "--keep")
    wait_until(lambda: lab.activity(agent, "message"), timeout_s=40, what="the first answer", accept=_has_answer)
    lab.send(agent, "recall")
    wait_until(
        lambda: [row.get("text") for row in lab.activity(agent, "message")],
        timeout_s=40,
        accept=lambda texts: recalled("text", "recall") in texts,
        what="the second answer",
    )
    lab.cancel(agent)


def test_next_turn(lab: Lab) -> None:
    """A message while a tool runs."""
    agent = lab.spawn("pause=2", "--permissions", "allow")
    lab.in_tool(agent)
    lab.send(agent, "recall")
    assert lab.completed(agent) == recalled("pause", "recall")


def test_steering(lab: Lab) -> None:
    """Steering: send --interrupt in mid-stream."""
    agent = lab.spawn("slow")
    lab.arrived("slow")
    lab.send(agent, "recall", "--interrupt")
    assert lab.completed(agent) == recalled("slow", "recall")


def _has_answer(rows: list[dict[str, object]]) -> bool:
    return any("The answer of the stand-in model." in str(row.get("text")) for row in rows)
