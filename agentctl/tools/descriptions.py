"""Sentences that several descriptions of tools have in common."""

from __future__ import annotations

from agentctl.tools.definition import RESULT_BYTES
from agentctl.tools.scope import Situation

_LONGEST = 200
_LONGEST_QUOTE = 1000
_STARTS = {
    "codex": "Start several with spawn_agent in one message, go on with your own work, then wait.",
    "claude": "Give several at once to task_parallel; it and task answer when all have ended.",
    "subtask": "Call several create_subtask_* in one message; each answers when its agent has ended.",
}
_LATER = "Where an answer is `still_running`, take its `ids` to wait."
_NO_STARTS = "You can start no further sub-agents from here: do the work yourself."


def instructions(dialect: str, *, may_start: bool = True) -> str:
    """Return the instructions about all tools together."""
    starts = [said for name, said in _STARTS.items() if dialect in (name, "all")]
    later = [] if dialect == "codex" else [_LATER]
    work = (
        "Gives work to sub-agents that run in parallel, each a real process with a history of its own."
        f" {' '.join([*starts, *later])} Those that find no slot wait in a queue."
    )
    return (
        f"{work if may_start else _NO_STARTS} {cut()} An agent that is `blocked` waits with a `question`: answer it"
        " with send_input, where you know, else ask the user. An agent's id (`id`, `task_id`, `taskId`) is its own for"
        " good."
    )


def bounds(situation: Situation) -> str:
    """Return the sentence about how many work at once, and how deep they may nest."""
    left = situation.depth_left - 1
    deeper = "starts no agents of its own" if left <= 0 else f"can start agents of its own, {left} deep"
    return f"At most {situation.cap} work at once, more wait in a queue; each {deeper}."


def cut() -> str:
    """Return the sentence about results that are cut."""
    return (
        f"A result over {RESULT_BYTES} bytes is cut (`truncated`); the whole is in the file at `path`, and, where that"
        " has very long lines, in shorter ones at `wrapped`."
    )


def short(text: str) -> str:
    """Return the beginning of a text that only has to be recognised."""
    return text if len(text) <= _LONGEST_QUOTE else f"{text[:_LONGEST_QUOTE]}..."


def agent_types(situation: Situation) -> str:
    """Return a list of the agents, one line each."""
    rows = []
    for agent in situation.agents:
        description = " ".join(agent.spec.description.split())
        kind = " (read-only)" if agent.spec.read_only else ""
        rows.append(f"- {agent.spec.name}{kind}: {description[:_LONGEST]}".rstrip(": "))
    return "Agent types:\n" + "\n".join(rows) if rows else ""
