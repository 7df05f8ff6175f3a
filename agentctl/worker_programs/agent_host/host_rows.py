"""Makes the rows of activity that the host adds itself: decisions of the policy, tampering, further starts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agentctl.domain.activity.row import Row, RowType
from agentctl.drivers.order import Order


def policy_row(key: str, policy: Mapping[str, Any]) -> Row:
    """Return the row about a permission that the policy has answered."""
    text = f"{policy.get('answer')}: {policy.get('tool')}"
    return Row(RowType.NOTE, f"policy:{key}", name="permission", text=text, parent=policy.get("askedBy"))


_TAMPERED = {
    "forged": "an answer file for {} did not come through agentctl, or answers something else, and was set aside:"
    " the question is still open",
    "changed": "somebody had changed the question {}: it was restored",
}


def tampered_row(what: str, question: str) -> Row:
    """Return the row about a request for permission that somebody has tampered with."""
    return Row(RowType.NOTE, f"{what}:{question}", text=_TAMPERED[what].format(question))


def again_row(order: Order, number: int) -> Row:
    """Return the row that says that a program is started again, by how often it was."""
    text = "it could not begin, since another one of it was just beginning: it was started once more"
    return Row(RowType.NOTE, f"again:{order.earlier_attempts}:{number}", name="again", text=text)


def home_rows(order: Order) -> Iterator[Row]:
    """Yield the rows that say what is different in the settings that the program is given."""
    for number, text in enumerate(order.home.get("notes") or ()):
        yield Row(RowType.NOTE, f"home:{number}:{order.earlier_attempts}", name="home", text=str(text))
