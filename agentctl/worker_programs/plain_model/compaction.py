"""Decides when a conversation is too long for its model, and which part of it is summed up."""

from __future__ import annotations

import json
from collections.abc import Sequence

from agentctl.worker_programs.plain_model.history import MESSAGES, Record

#: How much of the model's context may be used before the conversation is summed up, and how much the newest part keeps.
_FULL, _KEPT = 0.8, 0.25
#: As most tokenizers have it, on the careful side.
_CHARACTERS_PER_TOKEN = 3.5
#: What a context is taken for after a server has refused a conversation without saying how long one may be: this share.
_AFTER_REFUSAL = 0.6
_LONGEST_PIECE = 4000
SYSTEM = "You sum up the work of a coding agent, so that it can go on from your summary alone."
ASK = (
    "Sum up the conversation above for the agent that continues it: what was asked, what was found and decided, which"
    " files were read or changed and how, which commands were run with which results, what is left to do. Name paths,"
    " identifiers and numbers exactly. Answer with the summary alone."
)


def size_of(records: Sequence[Record]) -> int:
    """Return about how many tokens records are."""
    return int(sum(len(json.dumps(record)) for record in records) / _CHARACTERS_PER_TOKEN)


def is_full(used: int, context: int | None) -> bool:
    """Return whether a conversation of so many tokens leaves too little of a context; an unknown one is never full."""
    return context is not None and used > context * _FULL


def shrunk(used: int) -> int:
    """Return what the context is taken for where a server refused about so many tokens."""
    return max(1000, int(used * _AFTER_REFUSAL))


def first_kept(records: Sequence[Record], context: int) -> int:
    """Return how many of the messages are summed up: those before the newest ones, which are kept as they are.

    A call is never parted from its results. 0: there is nothing to sum up.
    """
    messages = [record for record in records if record["type"] in MESSAGES]
    left = context * _KEPT
    kept = len(messages)
    for number in range(len(messages) - 1, 0, -1):
        left -= size_of([messages[number]])
        if left < 0:
            break
        if messages[number]["type"] != "result":
            kept = number
    return kept if kept > 1 else 0


def as_text(records: Sequence[Record], context: int) -> str:
    """Return messages as one text for the model that sums them up, of at most about half of its context."""
    pieces = [piece for record in records for piece in _pieces(record)]
    text = "\n\n".join(pieces)
    most = int(context * _CHARACTERS_PER_TOKEN / 2)
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n\n[{len(text) - most} characters are left out here]\n\n{text[-half:]}"


def _pieces(record: Record) -> list[str]:
    if record["type"] == "user":
        return [f"USER: {_cut(record['text'])}"]
    if record["type"] == "result":
        return [f"RESULT of {record['name']} ({record['status']}): {_cut(record['text'])}"]
    calls = [f"CALL {call['name']} {_cut(json.dumps(call['arguments']))}" for call in record["calls"]]
    return [*([f"AGENT: {_cut(record['text'])}"] if record["text"] else []), *calls]


def _cut(text: str) -> str:
    half = _LONGEST_PIECE // 2
    return text if len(text) <= _LONGEST_PIECE else f"{text[:half]} [...] {text[-half:]}"
