"""What an agent may not do, those that it starts may not do either, whichever way it starts them.

Looked at for every start, and by who really calls: an agent that has a shell can call the command line under any name.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from agentctl.adapters.files import read_quietly
from agentctl.domain.permissions import SHELLS, Rules, decide, denies
from agentctl.errors import Refused
from agentctl.operations.lineage import true_caller
from agentctl.operations.locating import Caller

if TYPE_CHECKING:
    from agentctl.operations.preparing import Prepared


def refuse_freer(parent: Caller | None, prepared: Iterable[Prepared]) -> None:
    """Raise `Refused` for a worker that could do what the agent that starts it may not."""
    order = _order_of(parent)
    if parent is None or not order:
        return
    for item in prepared:
        own = item.spec.order
        what = f"the agent {item.spec.agent}" if own else f"the command {item.spec.argv[0]}"
        if order.get("readOnly") and not (own and own.get("readOnly")):
            raise Refused(
                f"{parent.instance} is readOnly, and so is what it starts: {what} is not",
                hint="start an agent that is, as explore and plan are; or leave it to whoever started you",
            )
        if own is None and _is_denied(order, {"command": shlex.join(item.spec.argv)}):
            raise Refused(
                f"the permissions of {parent.instance} deny it {what}, also as a worker",
                hint="leave it to whoever started you",
            )


def _is_denied(order: Mapping[str, Any], arguments: Mapping[str, Any]) -> bool:
    shell = min(SHELLS)  # A rule for one of them is a rule for all.
    return any(decide(rules, shell, arguments) == "deny" for rules in _denying(order))


def denied_above() -> list[Rules]:
    """Return the rules by which the calling agent, and agents above it, are denied something."""
    return _denying(_order_of(true_caller()))


def _denying(order: Mapping[str, Any]) -> list[Rules]:
    own: Rules = order.get("permissions") or []
    return [*(order.get("deniedAbove") or []), *([own] if denies(own) else [])]


def refuse_allowing(wished: Rules) -> None:
    """Raise `Refused` for what an agent would allow its child beyond its own rules."""
    me = true_caller()
    order = _order_of(me)
    beyond = [rule for rule in wished if rule["answer"] == "allow" and rule not in (order.get("permissions") or [])]
    if me is not None and order and beyond:
        raise Refused(
            f"{me.instance} may not allow its child what it is not allowed itself: {json.dumps(beyond[0])}",
            hint="leave --permissions out: the child asks",
        )


def _order_of(worker: Caller | None) -> Mapping[str, Any]:
    """Return what the driver of an agent was told; {} for a command, and where a person calls."""
    order = read_quietly(worker.agent.spec).get("order") if worker is not None else None
    return order if isinstance(order, dict) else {}
