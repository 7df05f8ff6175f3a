"""Sentences that several descriptions have in common; they tell how things stand now."""

from __future__ import annotations

from agentctl.tools.definition import RESULT_BYTES
from agentctl.tools.place import Situation

_LONGEST = 200
_LONGEST_QUOTE = 1000


def limits(situation: Situation) -> str:
    """Return what bounds the work: the slots, the depth, the size of a result."""
    return f"{bounds(situation)} {cut()}"


def bounds(situation: Situation) -> str:
    """Return how many work at once, and how deep they may nest."""
    left = situation.depth_left - 1
    deeper = "They start no agents of their own." if left <= 0 else f"Below them, {left} more level(s) may be started."
    return f"At most {situation.cap} work at once in this tree; more wait in a queue. {deeper}"


def cut() -> str:
    """Return what becomes of a long result."""
    return (
        f"A result over {RESULT_BYTES} bytes is cut (`truncated`); the whole is in the file at `path`, and, where that"
        " has very long lines, in shorter ones at `wrapped`."
    )


def short(text: str) -> str:
    """Return the beginning of what is only to be recognised."""
    return text if len(text) <= _LONGEST_QUOTE else f"{text[:_LONGEST_QUOTE]}..."


def agent_types(situation: Situation) -> str:
    """Return a line for each agent."""
    rows = []
    for agent in situation.agents:
        told = " ".join(agent.spec.description.split())
        kind = " (read-only)" if agent.spec.read_only else ""
        rows.append(f"- {agent.spec.name}{kind}: {told[:_LONGEST]}".rstrip(": "))
    return "Agent types:\n" + "\n".join(rows) if rows else ""
