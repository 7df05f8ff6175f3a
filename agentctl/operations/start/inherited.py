"""Inherited restrictions: a worker cannot get around its own by starting another worker.

They are checked at every start, for the real caller: an agent with a shell can call the command line under any name.
If it claims to be another worker than it is shown to be, it may do only what both may do.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import product
from typing import Any

from agentctl.adapters.taskdir import TaskDir, WorkerDir
from agentctl.domain.agent.permissions import SHELLS, Rules, answer_by, denies, first_beyond
from agentctl.errors import Argument, Refused, WithArguments
from agentctl.operations.start.prepared import Prepared
from agentctl.operations.where.calling import Caller
from agentctl.operations.where.lineage import shown_caller, true_caller
from agentctl.operations.where.ownership import are_vouched_for
from agentctl.operations.where.task_config import usable_config
from agentctl.supervision.worker.kinship import ancestors
from agentctl.supervision.worker.spec import read_order


def refuse_freer(parent: Caller, prepared: Iterable[Prepared]) -> None:
    """Raise `Refused` for a worker that could do what the agent that starts it may not."""
    for item, (caller, order) in product(prepared, orders_above(parent)):
        _refuse_outside(caller, str(order.get("cwd") or "/"), item)
        own = item.spec.order
        what = f"the agent {item.spec.agent}" if own else f"the command {item.spec.argv[0]}"
        if order.get("readOnly") and not (own and own.get("readOnly")):
            raise Refused(
                f"{caller.instance} is readOnly, and can only start what is readOnly too: {what} is not",
                hint="start an agent that is, as explore and plan are; or leave it to whoever started you",
            )
        if own is None and _is_denied(order, {"command": shlex.join(item.spec.argv)}):
            raise Refused(
                f"the permissions of {caller.instance} deny it {what}, also as a worker",
                hint="leave it to whoever started you",
            )


def orders_above(parent: Caller) -> list[tuple[Caller, Mapping[str, Any]]]:
    """Return the callers whose restrictions apply to a start by a worker, each with the order of its agent."""
    return [(caller, order) for caller, _, order in _orders_of([*_callers(), parent])]


def _refuse_outside(caller: Caller, folder: str, item: Prepared) -> None:
    """Refuse a folder outside of the agent's own: a child could do there what the agent may do only in its own folder.

    An agent that continues in the worktree of its earlier run is not refused: that was made for it.
    """
    if item.worktree is not None and item.request.continues:
        return
    # Links in the agent's own folder are not followed: a worker above it may have put one in its place.
    wanted, within = os.path.realpath(item.folder), os.path.normpath(folder)
    if os.path.commonpath([wanted, within]) != within:
        raise Refused(
            f"{caller.instance} works in {within}, and what it starts works there or below: {wanted} is elsewhere",
            hint="leave the folder out; or leave it to whoever started you",
        )


def _is_denied(order: Mapping[str, Any], arguments: Mapping[str, Any]) -> bool:
    shell = min(SHELLS)  # A rule for one of them is a rule for all.
    return any(answer_by(rules, shell, arguments) == "deny" for rules in _denying(order))


def denied_above() -> list[Rules]:
    """Return the rules by which the calling agent, and agents above it, are denied something."""
    found = [rules for _, _, order in _orders_of(_callers()) for rules in _denying(order)]
    return [rules for number, rules in enumerate(found) if rules not in found[:number]]


def _denying(order: Mapping[str, Any]) -> list[Rules]:
    own: Rules = order.get("permissions") or []
    return [*(order.get("deniedAbove") or []), *([own] if denies(own) else [])]


def refuse_allowing(rules: Rules, granted: Callable[[], Iterable[Rules]] = tuple) -> None:
    """Raise `Refused` where an agent would start a child whose rules allow more than its own rules or its task's.

    Args:
        granted: Returns what else a person allows such a child; called only if an agent starts it.
    """
    for me, worker, order in _orders_of(_callers()):
        own = [rule for rule in order.get("permissions") or [] if rule["answer"] != "deny"]  # Denials are inherited.
        beyond = first_beyond(rules, own, _rules_in(worker.task), *granted())
        if beyond is not None:
            raise Refused(
                f"{me.instance} may not allow its child what it is not allowed itself: {json.dumps(beyond)}",
                hint=(
                    WithArguments("spawn one in your own task, without ", Argument("permissions"), ": it asks"),
                    "or leave it to whoever started you",
                ),
            )


def _rules_in(task: TaskDir) -> Rules:
    rules = [dict(rule) for rule in usable_config(task).permissions]
    return rules if are_vouched_for(task, rules) else []


def _callers() -> list[Caller]:
    """Return the worker in which this process is shown to run, and the one that it claims to be in; [] for a person."""
    return [one for one in (shown_caller(), true_caller()) if one is not None]


def _orders_of(workers: Iterable[Caller]) -> Iterator[tuple[Caller, WorkerDir, Mapping[str, Any]]]:
    """Yield each worker once, with its agent (for a command, the nearest above it) and that agent's order."""
    for worker in dict.fromkeys(workers):
        for worker_dir in (worker.worker, *ancestors(worker.worker)):
            order = read_order(worker_dir)
            if order is not None:
                yield worker, worker_dir, order
                break
