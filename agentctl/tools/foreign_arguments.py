"""Translates arguments that have the form of other agent programs' own tools of this kind.

Claude Code's `Task`, which its model knows as `Agent`: {description, prompt, subagent_type, name, model, effort,
run_in_background, isolation, resume}, and {team_name, mode}, which it ignores itself. Codex's `spawn_agent` and
`send_input`: {message, items, fork_context, model, reasoning_effort}.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from agentctl.domain.agent.agentspec import effort_word
from agentctl.tools.definition import Arguments, flag, text

#: The keys for the address of one of Codex's `items` that is not text.
_PLACES = ("path", "image_url", "audio_url")
#: An address of more characters contains the data itself, which no prompt can carry.
_LONGEST_ADDRESS = 2000

#: Arguments that only other programs' tools have: accepted, but not listed.
OTHERS: Mapping[str, Mapping[str, Any]] = {
    "description": text("What it is about, in a few words."),
    "fork_context": flag("It starts with what the caller knows."),
    "remote": flag("It should run elsewhere."),
}
_IGNORED = frozenset({"team_name", "mode"})
_NOT_HONOURED = {
    "fork_context": "fork_context is not honoured: the agent knows only what the prompt says",
    "remote": "isolation: remote is not honoured: the agent works here",
}


def not_honoured(given: Mapping[str, Any]) -> list[str]:
    """Return a warning for each argument that has no effect here."""
    return [warning for name, warning in _NOT_HONOURED.items() if given.get(name)]


def adapted(prompt: str) -> Callable[[Arguments], Arguments]:
    """Return a function that translates the arguments of a call.

    Args:
        prompt: The name of the argument with the agent's prompt.
    """

    def adapt(given: Arguments) -> Arguments:
        found = {key: value for key, value in _with_items(given, prompt).items() if key not in _IGNORED}
        isolation = found.pop("isolation", None)
        if isolation is not None:
            found["remote" if isolation == "remote" else "worktree"] = isolation in ("remote", "worktree")
        for name in ("effort", "reasoning_effort"):
            if name in found:
                found[name] = effort_word(found[name]) or found[name]
        return found

    return adapt


def _with_items(given: Arguments, prompt: str) -> Arguments:
    """Return the arguments of a call with its `items` added to the prompt."""
    items = given.get("items")
    if not isinstance(items, list) or not all(isinstance(one, Mapping) for one in items):
        return dict(given)
    found = {key: value for key, value in given.items() if key != "items"}
    name = next((one for one in (prompt, "message", "prompt") if isinstance(found.get(one), str)), prompt)
    parts = [str(found.get(name) or ""), *map(_item_text, items)]
    return {**found, name: "\n".join(part for part in parts if part)}


def _item_text(item: Mapping[str, Any]) -> str:
    if isinstance(item.get("text"), str):
        return str(item["text"])
    place = next((item[key] for key in _PLACES if isinstance(item.get(key), str)), "")
    if len(place) > _LONGEST_ADDRESS:
        place = "(it cannot be passed on here)"
    return f"{item.get('name') or item.get('type') or 'item'}: {place}"
