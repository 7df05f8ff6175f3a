"""What keeps agents from being started for a while: the breakers of a tree of tasks, and held accounts."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from agentctl.adapters import eventlog
from agentctl.adapters.clock import now_iso
from agentctl.adapters.taskdir import Root, TaskDir, TreeDir
from agentctl.adapters.treedir import tree_of
from agentctl.domain import events as ev
from agentctl.domain.tree.breaker import Breaker, breakers
from agentctl.errors import AgentctlError, NotFound
from agentctl.operations.where.calling import is_from_worker
from agentctl.operations.where.command_lines import command_line
from agentctl.operations.where.findings import Finding, finding
from agentctl.operations.where.lineage import limited, shown_caller, who
from agentctl.operations.where.ownership import check_own, is_own
from agentctl.operations.where.task_config import usable_config
from agentctl.supervision.account.accounts import all_accounts, folder_of_accounts, forget
from agentctl.supervision.account.holds import held_now
from agentctl.supervision.account.ledger import Ledger
from agentctl.supervision.dispatch.dispatch import dispatch
from agentctl.supervision.worker.failures import failed_ago

_HELD_HINT = "agents in the queue start by themselves later; agentctl doctor --free-account {} lets them start now"


def examine_gates(task: TaskDir) -> Iterator[Finding]:
    """Yield a finding for each agent of a tree that has a breaker."""
    tree = tree_of(task)
    if tree.path != task.path:
        return  # The tree is examined with its root task.
    limits = usable_config(task).limits
    for breaker in _breakers(tree).values():
        if not breaker.has_tripped(limits):
            continue
        left = breaker.left(limits, failed_ago(tree, breaker.agent))
        state = f"not started for another {left:.0f} s" if left else "it may be tried again"
        what = f"the agent {breaker.agent} failed {breaker.failures} times in a row ({breaker.reason}): {state}"
        next_ = f"{command_line(task, 'doctor', '--close-breaker', breaker.agent)}, once the cause is fixed"
        yield finding("warning", what, task.id, next_)


def examine_targets(task: TaskDir) -> Iterator[Finding]:
    """Yield a finding for each target that cannot be told of the tree of a task."""
    from agentctl.operations.notify.target_report import failing  # Few tasks are told of.

    for target, number, said in () if tree_of(task).path != task.path else failing(task):
        what = f"the target {target} did not get {number} notice{'' if number == 1 else 's'}: {said}"
        yield finding("warning", what, task.id, command_line(task, "notify", "test", target))


def examine_accounts() -> Iterator[Finding]:
    """Yield a finding for each account of this user that is held after a rate limit."""
    for account in all_accounts(folder_of_accounts()):
        hold = held_now(account, any_model=True)
        if hold is not None:
            yield finding("note", hold.reason, "", _HELD_HINT.format(account.name))


def free_account(name: str, root: Root | None) -> None:
    """Forget what is known of an account, so that nobody waits for it, and start those in a root that have waited.

    Raises:
        NotFound: Nothing is known of it.
        Refused: The caller is a worker.
    """
    _refuse_workers(f"it may not free the account {name}")
    known = {account.name: account for account in all_accounts(folder_of_accounts())}
    if name not in known or not forget(known[name]):
        names = ", ".join(sorted(known)) or "none"
        raise NotFound(f"nothing is known of an account {name}", hint=f"known: {names}")
    for task in [] if root is None else map(root.task, root.task_ids()):
        with contextlib.suppress(AgentctlError, OSError):  # Its waker, if it lives, has seen the change, too.
            tree = tree_of(task)
            if tree.path == task.path and is_own(task):
                dispatch(tree)


def failed_agents(task: TaskDir) -> list[str]:
    """Return the agents with failures in a row in the tree of a task: those whose breaker can be closed."""
    return sorted(_breakers(tree_of(task)))


def close_breaker(task: TaskDir, agent: str) -> Breaker:
    """Let an agent be started again in the tree of a task; return the breaker that was closed.

    Raises:
        NotFound: The agent has no failures in a row.
        Refused: The caller is a worker.
    """
    check_own(task)
    tree = tree_of(task)
    _refuse_workers(f"it may not close a breaker of {tree.id}")
    found = _breakers(tree)
    if agent not in found:
        known = ", ".join(sorted(found)) or "none"
        raise NotFound(f"the agent {agent} has no failures in a row in the tree of {tree.id}", hint=f"known: {known}")
    event = ev.make_event(now_iso(), ev.BREAKER_CLOSED, tree.id, who(), {"agent": agent})
    eventlog.append(tree.events, [event])
    return found[agent]


def _refuse_workers(what: str) -> None:
    worker = shown_caller()
    if worker is not None or is_from_worker():
        raise limited(f"{worker.instance if worker else 'the caller'} is a worker: {what}", "")


def _breakers(tree: TreeDir) -> dict[str, Breaker]:
    return dict(breakers(Ledger(tree).update().facts.ends()))
