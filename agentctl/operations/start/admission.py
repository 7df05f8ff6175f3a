"""Whether a tree of tasks may start more workers: its limits, the breakers of its agents, accounts on hold.

The limits are checked under the lock of the root task's queue, which every start in the tree needs. The figures come
from the logs, which name every worker that was ever accepted. So no spawn gets past a limit, however many run at once;
and a worker that was not accepted yet when its spawn was killed does not count.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agentctl.adapters.taskdir import TaskDir, TreeDir
from agentctl.adapters.taskyaml.cache import TaskConfig
from agentctl.adapters.treedir import tree_of
from agentctl.domain.tree.budget import REPORTED, unheld
from agentctl.domain.tree.limits import Limits
from agentctl.errors import Argument, AtTerminal, Next, Refused, WithArguments
from agentctl.operations.start.prepared import Prepared
from agentctl.operations.where.calling import Caller
from agentctl.operations.where.lineage import limited
from agentctl.operations.where.locating import is_in_log
from agentctl.operations.where.task_config import usable_config
from agentctl.supervision.worker.spec import held_limits


def limits_of_tree(tree: TreeDir, task: TaskDir, config: TaskConfig, parent: Caller | None) -> Limits:
    """Return the limits of the whole tree: those of its root task, for a worker no looser than at its own start."""
    now = config.limits if tree.path == task.path else usable_config(tree).limits
    if parent is None or tree_of(parent.task).path != tree.path:
        return now
    return now.no_looser_than(held_limits(parent.worker))


def refuse_elsewhere(tree: TreeDir, parent: Caller | None) -> None:
    """Raise `Refused` where a worker of a limited tree starts something outside of it, which would not be counted."""
    if parent is None:
        return
    own = tree_of(parent.task)
    limits = usable_config(own).limits.no_looser_than(held_limits(parent.worker))
    if own.path != tree.path and limits.has_budget:
        raise Refused(
            f"{parent.instance} is held to the limits of {own.id}: it can start nothing in {tree.path}",
            hint=Next("subtask", "AGENT", "makes a task below its own", task=parent.task.id),
        )


def refuse_unreported(limits: Limits, prepared: Iterable[Prepared]) -> None:
    """Raise `Refused` for an agent whose program does not report something that the tree limits."""
    orders = {str(item.spec.order["driver"]): item.spec.order for item in prepared if item.spec.order}
    if not orders:
        return
    from agentctl.drivers.order import order_from  # Only for agents.
    from agentctl.drivers.registry import driver_for

    for name, order in orders.items():
        found = unheld(limits, driver_for(order_from(order)).reports)
        if found is not None:
            unit, key = found
            raise limited(
                f"the driver {name} does not report the {unit} that its program uses: {key} could not be enforced",
                WithArguments(f"take {key} out of the root task's config, or choose another ", Argument("driver")),
            )


def admit(tree: TreeDir, limits: Limits, prepared: Sequence[Prepared]) -> None:
    """Raise `Refused` for workers that the tree's limits leave no room for (under the queue's lock)."""
    if not limits.has_budget:
        return
    from agentctl.supervision.account.ledger import Ledger  # Many tasks have no limits.

    # A command uses no model: limits of tokens and money do not concern it.
    of_models = REPORTED.values() if any(item.spec.order for item in prepared) else ()
    fields = ["max_workers", "max_wall_seconds", *of_models]
    ledger = Ledger(tree).update()
    account = ledger.account()._replace(wall_s=ledger.wall_s() if limits.max_wall_seconds else 0)
    # The last one may get what is left, as if the workers were requested one by one.
    asked = sum((item.spec.order or {}).get("maxBudgetUsd") or 0 for item in prepared[:-1])
    account = account._replace(reserved_usd=account.reserved_usd + asked)
    why = account.excess(limits, fields, more_workers=len(prepared))
    if why is not None:
        raise limited(
            f"the tree of {tree.id} is at its limit: {why}",
            (Next("usage", does="shows who used it up"), f"{tree.task_file} has the limit"),
        )


def refuse_gone(task: TaskDir, prepared: Sequence[Prepared]) -> None:
    """Raise `Refused` where what a start builds on was removed or put away meanwhile (under the queue's lock)."""
    if not prepared[0].worker.spec.exists() or not task.exists:
        raise Refused(f"the task {task.id} was put away or removed meanwhile", hint=Next("tasks"))
    here = {item.worker.instance for item in prepared}
    needed = {
        name: item.worker.instance
        for item in prepared
        for name in (*item.spec.after, item.spec.retry_of, item.spec.continues)
        if name is not None and name not in here
    }
    for name, instance in needed.items():
        worker = task.worker(name)
        if not worker.path.exists() and not is_in_log(worker):
            raise Refused(f"{name}, on which {instance} builds, was removed meanwhile", hint=Next("look around"))


def refuse_cooling(prepared: Iterable[Prepared]) -> None:
    """Raise `Refused` for an agent whose account is on hold (a used-up window or a back-off): only the queue waits."""
    from agentctl.supervision.account.accounts import account_in
    from agentctl.supervision.account.holds import held_now

    for account in {account_in(item.spec.order, item.worker) for item in prepared}:
        hold = held_now(account) if account is not None else None
        if hold is not None:
            raise Refused(hold.reason, hint=WithArguments(Argument("queue"), " waits until it may be used again"))


def refuse_broken(tree: TreeDir, limits: Limits, prepared: Iterable[Prepared]) -> None:
    """Raise `Refused` for an agent that failed too often in a row."""
    named = {item.spec.agent for item in prepared if item.spec.order} if limits.breaker_failures else set()
    if not named:
        return
    from agentctl.supervision.worker.failures import failed_ago

    ages = {agent: failed_ago(tree, agent) for agent in sorted(named)}
    agents = [agent for agent, age in ages.items() if age is not None and age < limits.breaker_cooldown_seconds]
    if not agents:
        return
    from agentctl.domain.tree.breaker import breakers
    from agentctl.supervision.account.ledger import Ledger

    found = breakers(Ledger(tree).update().facts.ends())
    for agent in agents:
        breaker = found.get(agent)
        left = breaker.left(limits, ages[agent]) if breaker is not None else 0
        if breaker is not None and left:
            raise limited(
                f"the agent {agent} failed {breaker.failures} times in a row in the tree of {tree.id}, last with"
                f" {breaker.reason}: it is not started for another {left:.0f} s",
                AtTerminal(f"agentctl doctor --close-breaker {agent}, once the cause is fixed"),
            )
