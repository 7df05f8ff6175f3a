"""The instructions about all tools, and the sentences that several tool descriptions share."""

from __future__ import annotations

from agentctl.domain.text.plaintext import beginning
from agentctl.tools.definition import RESULT_BYTES
from agentctl.tools.scope import Situation

_LONGEST = 200
_LONGEST_QUOTE = 1000
_STARTS = {
    "codex": "Start several with spawn_agent in one message, go on with your own work, then wait.",
    "claude": "Give several at once to task_parallel; it and task answer when all have ended.",
    "subtask": "Call several create_subtask_* in one message; each answers when its agent has ended.",
}
_LATER = "If an answer is `still_running`, pass its `ids` to wait."
_NO_STARTS = "You cannot start sub-agents from here: do the work yourself."


def instructions(dialect: str, *, may_start: bool = True) -> str:
    """Return the instructions about all tools together."""
    starts = [said for name, said in _STARTS.items() if dialect in (name, "all")]
    later = [] if dialect == "codex" else [_LATER]
    work = (
        "Delegates work to sub-agents that run in parallel, each a real process with its own history."
        f" {' '.join([*starts, *later])} Those without a free slot wait in a queue."
    )
    return (
        f"{work if may_start else _NO_STARTS} {cut_sentence()} A `blocked` agent waits with a `question`: answer it"
        " with send_input if you know the answer, otherwise ask the user. An agent's id (`id`, `task_id`, `taskId`)"
        " never changes, and no other agent gets it."
    )


def bounds(situation: Situation) -> str:
    """Return the sentence about how many agents work at once, and how deep they may nest."""
    left = situation.depth_left - 1
    deeper = "none can start agents" if left <= 0 else f"each can start agents of its own, at most {left} deep"
    return f"At most {situation.cap} work at once, others wait in a queue; {deeper}."


def cut_sentence() -> str:
    """Return the sentence about cut results."""
    return (
        f"A result over {RESULT_BYTES} bytes is cut (`truncated`); the full text is in the file at `path` and, if that"
        " has very long lines, in shorter ones at `wrapped`."
    )


def short(text: str) -> str:
    """Return a text, cut if it is long: enough to recognise it."""
    return beginning(text, _LONGEST_QUOTE, "...")


def agent_types(situation: Situation) -> str:
    """Return a list of the agents, one line each."""
    rows = []
    for agent in situation.agents:
        description = " ".join(agent.spec.description.split())
        kind = " (read-only)" if agent.spec.read_only else ""
        rows.append(f"- {agent.spec.name}{kind}: {description[:_LONGEST]}".rstrip(": "))
    return "Agent types:\n" + "\n".join(rows) if rows else ""
