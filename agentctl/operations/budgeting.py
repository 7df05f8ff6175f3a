"""Whether a tree of tasks may start more workers: its limits, and the breakers of its agents.

All of it is asked under the queue's lock of the tree's root task, which every start in the tree needs, and counted from
the logs, in which every worker stands that was ever accepted. So of any number of spawns at once no one gets past a
limit, and one that is killed on its way leaves nothing counted that was not begun.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from agentctl.adapters.config import TaskConfig, root_of_tree
from agentctl.adapters.taskdir import TaskDir
from agentctl.domain.budget import REPORTED
from agentctl.domain.limits import KEYS, Limits
from agentctl.errors import Refused
from agentctl.operations.configuring import usable_config
from agentctl.operations.locating import Caller

if TYPE_CHECKING:
    from agentctl.operations.preparing import Prepared
    from agentctl.supervision.ledger import Ledger


def limits_of_tree(root: TaskDir, task: TaskDir, config: TaskConfig) -> Limits:
    """Return the limits that hold for the whole tree: those of its root task."""
    return config.limits if root.path == task.path else usable_config(root).limits


def refuse_elsewhere(root: TaskDir, parent: Caller | None) -> None:
    """Raise `Refused` where a worker of a limited tree starts something outside of it, where nobody would count."""
    if parent is None:
        return
    own = root_of_tree(parent.task)
    if own.path != root.path and usable_config(own).limits.has_budget:
        raise Refused(
            f"{parent.instance} is held to the limits of {own.id}: it can start nothing in {root.path}",
            hint="agentctl subtask makes a task below its own",
        )


def refuse_unreported(limits: Limits, prepared: Iterable[Prepared]) -> None:
    """Raise `Refused` for an agent whose program does not tell of what the tree is limited in."""
    from agentctl.drivers.registry import load  # Only for agents.

    for name in {str(item.spec.order["driver"]) for item in prepared if item.spec.order}:
        for unit, field in REPORTED.items():
            if getattr(limits, field) and unit not in load(name).reports:
                raise Refused(
                    f"the driver {name} does not tell the {unit} that its program uses: {KEYS[field]} could not hold",
                    hint=f"take {KEYS[field]} out of the root task's config, or choose another --driver",
                )


def admit(root: TaskDir, limits: Limits, prepared: Sequence[Prepared]) -> None:
    """Raise `Refused` for workers that the tree's limits or a breaker leave no room for (under the queue's lock)."""
    agents = sorted({item.spec.agent for item in prepared if item.spec.order})
    if not limits.has_budget and not (agents and limits.breaker_failures):
        return
    from agentctl.supervision.ledger import Ledger  # Many tasks are not limited.

    ledger = Ledger(root).update()
    _refuse_broken(root, limits, ledger, agents)
    if limits.has_budget:
        # A command uses no model: what is used up of tokens and money does not concern it.
        fields = ["max_workers", "max_wall_seconds", *(REPORTED.values() if agents else ())]
        why = ledger.account().excess(limits, fields, more_workers=len(prepared))
        if why is not None:
            raise Refused(f"the tree of {root.id} is at its limit: {why}", hint=f"agentctl usage; {root.task_file}")


def _refuse_broken(root: TaskDir, limits: Limits, ledger: Ledger, agents: Iterable[str]) -> None:
    from agentctl.domain.breaker import breakers

    found, now = breakers(ledger.facts.ends()), time.time()
    for agent in agents:
        breaker = found.get(agent)
        if breaker is not None and breaker.is_open(limits, now):
            left = (breaker.opens_at(limits) or now) - now
            raise Refused(
                f"the agent {agent} failed {breaker.failures} times in a row in the tree of {root.id}, last with"
                f" {breaker.reason}: it is not started for another {left:.0f} s",
                hint=f"agentctl doctor --close-breaker {agent}, once the cause is mended",
            )
