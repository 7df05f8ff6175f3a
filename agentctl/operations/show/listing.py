"""The workers of a task, and the status of each. Starts nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Iterator

from agentctl.adapters import eventlog
from agentctl.adapters.files import read_quietly
from agentctl.adapters.taskdir import TaskDir, WorkerDir
from agentctl.adapters.taskyaml import roster
from agentctl.adapters.taskyaml.roster import RosterRow
from agentctl.domain.projection import TaskView, WorkerView
from agentctl.domain.states import Status
from agentctl.errors import AgentctlError
from agentctl.lean import TYPE_CHECKING, Any, NamedTuple
from agentctl.operations.show.askers import PendingQuestion, asked_below, below_any
from agentctl.operations.where.folding import fold
from agentctl.operations.where.locating import find_worker
from agentctl.operations.where.observed import observed_row
from agentctl.operations.where.ownership import may_be_stopped
from agentctl.supervision.account.accounts import folder_of_accounts
from agentctl.supervision.account.waiters import Awaited
from agentctl.supervision.life.judging import Condition, judge_surely, lost_ending, queued_instances, settle
from agentctl.supervision.worker import questions
from agentctl.supervision.worker.endings import decision_of, read_decision

if TYPE_CHECKING:
    from agentctl.domain.worker_row import WorkerRow


def read_task(task: TaskDir) -> tuple[TaskView, dict[str, Condition]]:
    """Fold the log and judge the workers whose end it does not tell; what is proven of them is written down.

    Where nothing can be written (a read-only folder), the view is healed in memory. Of a task that is not this
    person's own nothing is believed but its log, and nothing is judged or written.
    """
    if not may_be_stopped(task):
        return fold(task), {}
    reader, view = eventlog.LogReader(task.events), TaskView()
    queued = queued_instances(task)
    view.apply(reader.rows())
    conditions = {}
    for worker in list(view.workers.values()):
        if not worker.is_terminal:
            worker_dir = task.worker(worker.instance)
            conditions[worker.instance] = judge_surely(worker_dir, tickets_for(worker, queued))
            with contextlib.suppress(AgentctlError, OSError):
                settle(worker_dir, conditions[worker.instance])
    view.apply(reader.rows())
    for instance, condition in conditions.items():
        heal(view.workers[instance], condition, task.worker(instance))
    if task.stale_roster.exists():
        mend_roster(task)
    return view, conditions


def mend_roster(task: TaskDir) -> None:
    """Make the roster equal to the log, if that can be done: nothing depends on it."""
    from agentctl.operations.where.task_limits import usable_config  # Only now: it may have to load YAML.

    usable_config(task)  # A head that was saved meanwhile becomes the one that was parsed last.
    with contextlib.suppress(AgentctlError, OSError):
        roster.mend(task, lambda: _roster_by_log(task))


def _roster_by_log(task: TaskDir) -> tuple[dict[str, RosterRow], Iterable[str]]:
    view = fold(task)
    rows = {worker.instance: RosterRow(worker.agent, worker.status, worker.reason) for worker in view.workers.values()}
    return rows, view.subtasks


def tickets_for(worker: WorkerView, queued: Collection[str]) -> Collection[str]:
    """Return the tickets that count in judging a worker: that of a started one is a leftover of a killed shim."""
    return queued if worker.status is Status.QUEUED else ()


def heal(worker: WorkerView, condition: Condition, worker_dir: WorkerDir) -> None:
    """Tell the truth in memory where it could not be put on disk."""
    if worker.is_terminal or condition not in (Condition.ENDED, Condition.LOST):
        if worker.status is Status.BLOCKED and not questions.waiting_askers(worker_dir):
            worker.status = Status.RUNNING
        return
    try:
        decision = read_decision(worker_dir)
    except (AgentctlError, OSError):
        decision = lost_ending(worker_dir).now()
    worker.status, worker.reason, worker.message = decision.status, decision.reason, decision.message
    worker.exit_code, worker.signal, worker.ended_at = decision.exit_code, decision.signal, decision.ended_at


def list_below(task: TaskDir) -> tuple[list[WorkerRow], list[str]]:
    """Return what `list_workers` does for a task and all sub-tasks below it; each row names its task."""
    from agentctl.operations.where.subtasks_below import subtree  # Few look at more than one task.

    rows: list[WorkerRow] = []
    warnings: list[str] = []
    for one in subtree(task):
        found, damage = list_workers(one)
        rows += [{"taskId": one.id, **row} for row in found]
        warnings += damage
    return rows, warnings


def list_workers(task: TaskDir) -> tuple[list[WorkerRow], list[str]]:
    """Return a row for each worker, in the order in which they were accepted, and a warning for each damaged line."""
    found = each_worker(task)
    return list(found.rows), found.warnings


class Listing(NamedTuple):
    """The workers of a task."""

    #: Each made when it is taken.
    rows: Iterator[WorkerRow]
    warnings: list[str]
    #: The questions that are open below them (`askers.asked_below`).
    asked_below: list[PendingQuestion]


def each_worker(task: TaskDir) -> Listing:
    """Return the same, and what else there is to be said."""
    view, conditions = read_task(task)
    awaited = Awaited(folder_of_accounts())
    below = asked_below(task, view)
    counts = {name: len(asked) for name, asked in below.items()}
    rows = (
        row_of(task, worker, conditions.get(worker.instance), awaited, counts.get(worker.instance, 0))
        for worker in view.workers.values()
    )
    return Listing(rows, [f"{task.events}:{bad.seq}: {bad.problem}" for bad in view.damage], below_any(below, None))


def row_of(
    task: TaskDir, worker: WorkerView, condition: Condition | None, awaited: Awaited, asked_below: int
) -> WorkerRow:
    """Return what `list --json` says of a worker."""
    is_live = not worker.is_terminal and condition is not Condition.QUEUED
    waits = condition is Condition.QUEUED and worker.driver is not None
    return {
        "agentInstance": worker.instance,
        "agent": worker.agent,
        "status": worker.status,
        "reason": worker.reason,
        "message": worker.message,
        "pid": worker.pid,
        "attempt": worker.attempt,
        "paused": worker.paused,
        "stalled": worker.stall_seq is not None,
        "parked": worker.park_seq is not None,
        "awaitsAccount": awaited.by(task.worker(worker.instance)) if waits else None,
        "driver": worker.driver,
        "usage": _usage_of(task.worker(worker.instance)) if worker.driver is not None else None,
        "agentId": worker.agent_id,
        "health": condition.value if is_live and condition else None,
        "parent": worker.parent,
        "depth": worker.depth,
        "queuedAt": worker.queued_at,
        "startedAt": worker.started_at,
        "endedAt": worker.ended_at,
        "durationSeconds": worker.duration_s,
        "exitCode": worker.exit_code,
        "signal": worker.signal,
        "progress": read_quietly(task.worker(worker.instance).progress) or None if is_live else None,
        "survivors": worker.survivors,
        "awaitsChildren": worker.awaits_children,
        "uncollected": worker.uncollected,
        "command": worker.command,
        "askedBelow": asked_below,
    }


def _usage_of(worker: WorkerDir) -> dict[str, Any]:
    from agentctl.supervision.account.ledger import read_spent  # No command uses anything up.

    return read_spent(worker).to_json()


def show_worker(task: TaskDir, instance: str) -> dict[str, Any]:
    """Return everything that is known of one worker, or of a sub-agent that is only observed."""
    try:
        worker_dir = find_worker(task, instance)
    except AgentctlError:
        observed = observed_row(task, instance)
        if observed is None:
            raise
        return {**observed, "taskId": task.id}
    view, conditions = read_task(task)
    worker = view.workers.get(instance) or WorkerView(instance)
    below = len(asked_below(task, view).get(instance, ()))
    return {
        **row_of(task, worker, conditions.get(instance), Awaited(folder_of_accounts()), below),
        "taskId": task.id,
        "spec": read_quietly(worker_dir.spec),
        "worker": read_quietly(worker_dir.process) or None,
        "shim": read_quietly(worker_dir.shim) or None,
        "cancel": read_quietly(worker_dir.cancel) or None,
        "exit": decision.to_json() if (decision := decision_of(worker_dir)) else None,
        "result": read_quietly(worker_dir.result) or None,
        "fallback": read_quietly(worker_dir.fallback) or None,
        "worktree": _worktree_of(worker_dir),
        "questions": [
            {**read_quietly(worker_dir.question(name)), "answer": read_quietly(worker_dir.answer(name)).get("answer")}
            for name in worker_dir.question_ids()
        ],
        "folder": str(worker_dir.path),
        "stdout": str(worker_dir.stdout),
        "stderr": str(worker_dir.stderr),
    }


def _worktree_of(worker: WorkerDir) -> dict[str, Any] | None:
    if not worker.worktree.exists():
        return None
    from agentctl.operations.worktree.changes import known_worktree  # Few workers have one.

    return known_worktree(worker)
