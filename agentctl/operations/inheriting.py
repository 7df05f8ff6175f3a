"""What an agent may not do, those that it starts may not do either, whichever way it starts them.

Looked at for every start, and by who really calls: an agent that has a shell can call the command line under any name.
Where it says to be another than it is shown to be, it is held to what both may do.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import TYPE_CHECKING, Any

from agentctl.adapters.files import read_quietly
from agentctl.domain.permissions import SHELLS, Rules, decide, denies
from agentctl.errors import Refused
from agentctl.operations.lineage import shown_caller, true_caller
from agentctl.operations.locating import Caller
from agentctl.supervision.kinship import ancestors

if TYPE_CHECKING:
    from agentctl.operations.preparing import Prepared


def refuse_freer(parent: Caller, prepared: Iterable[Prepared]) -> None:
    """Raise `Refused` for a worker that could do what the agent that starts it may not."""
    for item, (caller, order) in product(prepared, _orders_of([*_callers(), parent])):
        _refuse_outside(caller, str(order.get("cwd") or "/"), item)
        own = item.spec.order
        what = f"the agent {item.spec.agent}" if own else f"the command {item.spec.argv[0]}"
        if order.get("readOnly") and not (own and own.get("readOnly")):
            raise Refused(
                f"{caller.instance} is readOnly, and so is what it starts: {what} is not",
                hint="start an agent that is, as explore and plan are; or leave it to whoever started you",
            )
        if own is None and _is_denied(order, {"command": shlex.join(item.spec.argv)}):
            raise Refused(
                f"the permissions of {caller.instance} deny it {what}, also as a worker",
                hint="leave it to whoever started you",
            )


def _refuse_outside(caller: Caller, folder: str, item: Prepared) -> None:
    """Refuse a folder that does not lie within the agent's own: what it may do there, its child may do in its own.

    An agent that goes on in the worktree of its earlier run goes back to what was made for it.
    """
    if item.worktree is not None and item.request.continues:
        return
    # The agent's own is not looked up anew: whoever is above it may have put a link in its place.
    wanted, within = os.path.realpath(item.folder), os.path.normpath(folder)
    if os.path.commonpath([wanted, within]) != within:
        raise Refused(
            f"{caller.instance} works in {within}, and what it starts works there or below: {wanted} is elsewhere",
            hint="leave the folder out; or leave it to whoever started you",
        )


def _is_denied(order: Mapping[str, Any], arguments: Mapping[str, Any]) -> bool:
    shell = min(SHELLS)  # A rule for one of them is a rule for all.
    return any(decide(rules, shell, arguments) == "deny" for rules in _denying(order))


def denied_above() -> list[Rules]:
    """Return the rules by which the calling agent, and agents above it, are denied something."""
    found = [rules for _, order in _orders_of(_callers()) for rules in _denying(order)]
    return [rules for number, rules in enumerate(found) if rules not in found[:number]]


def _denying(order: Mapping[str, Any]) -> list[Rules]:
    own: Rules = order.get("permissions") or []
    return [*(order.get("deniedAbove") or []), *([own] if denies(own) else [])]


def refuse_allowing(wished: Rules) -> None:
    """Raise `Refused` for what an agent would allow its child beyond its own rules."""
    for me, order in _orders_of(_callers()):
        own = order.get("permissions") or []
        beyond = [rule for rule in wished if rule["answer"] == "allow" and rule not in own]
        if beyond:
            raise Refused(
                f"{me.instance} may not allow its child what it is not allowed itself: {json.dumps(beyond[0])}",
                hint="leave --permissions out: the child asks",
            )


def _callers() -> list[Caller]:
    """Return the worker in which this process is shown to run, and the one that it says to be; none for a person."""
    return [one for one in (shown_caller(), true_caller()) if one is not None]


def _orders_of(workers: Iterable[Caller]) -> Iterator[tuple[Caller, Mapping[str, Any]]]:
    """Yield what the drivers of agents were told, each once: of a command, that of the nearest agent above it."""
    for worker in dict.fromkeys(workers):
        orders = (read_quietly(agent.spec).get("order") for agent in (worker.agent, *ancestors(worker.agent)))
        order = next((one for one in orders if isinstance(one, dict)), None)
        if order is not None:
            yield worker, order
