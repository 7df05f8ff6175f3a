"""The rows of the activity that are not the agent program's: what was decided about it here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentctl.domain.activity.row import Row, RowType
from agentctl.drivers.order import Order


def policy_row(key: str, told: Mapping[str, Any]) -> Row:
    """Return the row of a permission that the policy has answered."""
    text = f"{told.get('answer')}: {told.get('tool')}"
    return Row(RowType.NOTE, f"policy:{key}", name="permission", text=text, parent=told.get("askedBy"))


_TAMPERED = {
    "forged": "a file that answered {} did not come through agentctl, or answers something else, and was set aside:"
    " it still waits",
    "changed": "somebody has changed what {} asks: it stands there again as it was asked",
}


def tampered_row(what: str, question: str) -> Row:
    """Return the row that tells what somebody has done to a permission beside agentctl."""
    return Row(RowType.NOTE, f"{what}:{question}", text=_TAMPERED[what].format(question))


def fallback_row(order: Order, way: str, why: str) -> Row:
    """Return the row that announces another way to run the program."""
    text = f"{why}; it runs by `{way}` instead: nobody can be asked, and it takes no messages"
    return Row(RowType.NOTE, f"fallback:{order.earlier_attempts}", name="fallback", text=text)
