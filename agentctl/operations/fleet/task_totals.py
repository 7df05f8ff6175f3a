"""What the workers of a task come to together: how many they are, how long it took, what they used."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from agentctl.domain.states import TERMINAL, Status
from agentctl.domain.tree.budget import spent_from, total
from agentctl.operations.fleet.glance import FleetTask, FleetWorker, TaskTotals


def totals_of(workers: Collection[FleetWorker]) -> TaskTotals:
    """Return what some workers come to together."""
    rows = [worker.row for worker in workers]
    counted = [row for row in rows if row.get("supersededBy") is None]
    spent = total(spent_from(row["usage"]) for row in rows if row["usage"])
    return TaskTotals(
        workers=len(counted),
        live=sum(row["status"] not in TERMINAL for row in rows),
        asking=sum(bool(worker.questions) for worker in workers),
        failed=sum(row["status"] == Status.FAILED for row in counted),
        tokens=spent.tokens,
        cost_usd=spent.cost_usd,
        lacks_tokens=spent.lacks_tokens,
        lacks_cost=spent.lacks_cost,
        began=min((row["startedAt"] for row in rows if row["startedAt"]), default=None),
        ended=max((row["endedAt"] for row in rows if row["endedAt"]), default=None),
    )


def with_those_below(tasks: Mapping[str, FleetTask]) -> dict[str, FleetTask]:
    """Return the tasks, each with the totals of those below it too; a forged circle of parents ends it."""
    found = dict(tasks)
    for task in tasks.values():
        name, seen = task.parent, {task.task.id}
        while name is not None and name in found and name not in seen:
            seen.add(name)
            found[name] = found[name]._replace(totals=found[name].totals.plus(task.totals))
            name = tasks[name].parent
    return found
