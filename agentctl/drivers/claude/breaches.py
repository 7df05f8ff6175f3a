"""Sees where Claude Code does not keep to its order: a looser mode, a hook that is not called, a call made unasked."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from agentctl.domain.agent.permissions import denies
from agentctl.domain.text.versions import parts
from agentctl.drivers.claude.asks import ClaudeRequests
from agentctl.drivers.claude.start import INSTALL, MODES, TESTED, asks_before_calls
from agentctl.drivers.order import ALLOWING, ASKING, BY_OWN_SETTINGS, OWN_PERMISSIONS, Order
from agentctl.drivers.values import bounded_text, list_in, object_in, text_in

_OWN = f"{OWN_PERMISSIONS} let your own settings of Claude Code decide"
_TRIED = f"`{INSTALL}@{TESTED}` is the one that was tried"


class Breaches:
    """What one run of the program does against its order.

    Args:
        seen: The ids of the calls that it has asked about before it made them.
    """

    def __init__(self, order: Order, seen: Collection[str]) -> None:
        self._seen = seen
        self._is_pinned = order.stance != BY_OWN_SETTINGS
        self._asks = asks_before_calls(order)
        self._way_out = _way_out(order)

    def looser_mode(self, line: Mapping[str, Any]) -> str | None:
        """Return what is wrong with the mode that a line tells; None if nothing is, or it tells none."""
        mode = line.get("permissionMode")
        if not self._is_pinned or mode is None or mode in MODES:
            return None
        return bounded_text(
            f"Claude Code says that it works in the mode {mode!r}, in which it may do things without asking:"
            f" it was stopped ({self._way_out})"
        )

    def unhooked(self, line: Mapping[str, Any], asks: ClaudeRequests) -> str | None:
        """Return what is wrong with a release that nobody has tried: it begins a turn, and no hook of ours was called.

        By then the hook for the prompt has been called (2.1.332). A release that drops hooks would make its first call
        unasked.
        """
        version = text_in(line.get("claude_code_version"))
        if not self._asks or asks.are_hooks_called or parts(version) <= parts(TESTED):
            return None
        return (
            f"Claude Code {bounded_text(version)} has not called agentctl's hook, so it may not ask before it makes a"
            f" call: it was stopped ({self._way_out})"
        )

    def unasked_in(self, line: Mapping[str, Any]) -> str | None:
        """Return what is wrong with the results of a `user` line: a call was made that was never asked about."""
        if not self._asks:
            return None
        accepted = {
            meta.get("id")
            for meta in map(object_in, list_in(line.get("tool_result_meta")))
            if object_in(meta.get("permission_decision")).get("decision") == "accept"
        }
        for block in map(object_in, list_in(object_in(line.get("message")).get("content"))):
            call = text_in(block.get("tool_use_id"))
            was_made = block.get("is_error") is not True or call in accepted
            if block.get("type") == "tool_result" and was_made and call not in self._seen:
                return (
                    f"Claude Code made the call {call} without having asked agentctl: it was stopped ({self._way_out})"
                )
        return None


def _way_out(order: Order) -> str:
    """Return what a person can do about it: `own` loosens no agent that only reads, nor what an agent above is denied.

    Nor does it where it has been said already.
    """
    is_loosened = order.stance in {ASKING, ALLOWING} and not any(map(denies, order.denied_above))
    return f"{_OWN}; {_TRIED}" if is_loosened else _TRIED
