"""The workers of a task, and the status of each: what `list` shows."""

from __future__ import annotations

from collections.abc import Iterator

from agentctl.adapters.files import read_to_show
from agentctl.adapters.taskdir import TaskDir, WorkerDir
from agentctl.adapters.taskyaml.cache import known_limits
from agentctl.adapters.treedir import tree_of
from agentctl.domain.names import WorkerId
from agentctl.domain.states import HELD, STRANDED
from agentctl.domain.worker.projection import TaskView, WorkerView
from agentctl.domain.worker.reports import last_progress
from agentctl.domain.worker_row import BLANK
from agentctl.errors import AgentctlError, AtTerminal, StorageError
from agentctl.lean import TYPE_CHECKING, NamedTuple
from agentctl.operations.show.askers import Below, PendingQuestion, asked_below, below_any
from agentctl.operations.show.current_state import read_task
from agentctl.operations.show.unreadable import note_unreadable, unreadable_problem
from agentctl.operations.where.ownership import may_be_stopped
from agentctl.supervision.account.accounts import folder_of_accounts
from agentctl.supervision.account.waiters import Awaited

if TYPE_CHECKING:
    from agentctl.domain.documents.workers.worker import NodePlacement, UsageSoFar, WorkerRow
    from agentctl.errors import Step
    from agentctl.supervision.life.judging import Condition

#: So many lines of a log without an event are named; `doctor` names more.
_MOST_NAMED = 20


def list_below(task: TaskDir) -> Listing:
    """Return what `each_worker` does for a task and all sub-tasks below it; each row names its task."""
    from agentctl.operations.where.subtasks_below import subtree  # Few look at more than one task.

    rows: list[WorkerRow] = []
    warnings: list[Step] = []
    stranded: list[WorkerId] = []
    holds: list[str] = []
    unreadable: list[StorageError] = []
    asked: set[PendingQuestion] = set()
    for one in subtree(task, as_far_as_readable=True):
        try:
            found = each_worker(one)
        except (AgentctlError, OSError) as error:
            unreadable.append(unreadable_problem(error))
            continue
        rows += [{"taskId": one.id, **row} for row in found.rows]
        warnings += found.warnings
        asked.update(found.asked_below)
        stranded += found.stranded
        holds += found.holds
        unreadable += found.unreadable
    return Listing(iter(rows), warnings, {"": asked}, stranded, list(dict.fromkeys(holds)), unreadable)


def list_workers(task: TaskDir) -> tuple[list[WorkerRow], list[Step]]:
    """Return a row for each worker, in the order in which they were accepted, and warnings of damaged lines."""
    found = each_worker(task)
    return list(found.rows), found.warnings


class Listing(NamedTuple):
    """The workers of a task."""

    #: Each made when it is taken.
    rows: Iterator[WorkerRow]
    #: Of damaged lines; each surface words what is a next step.
    warnings: list[Step]
    #: The questions that are open below each of them (`askers.asked_below`).
    below: Below
    #: Those that nobody starts any more.
    stranded: list[WorkerId]
    #: What keeps workers in the queue until somebody lets them go, in words.
    holds: list[str]
    #: What could not be read of them; complete once all rows are taken.
    unreadable: list[StorageError]

    @property
    def asked_below(self) -> list[PendingQuestion]:
        """The questions that are open below all of them."""
        return below_any(self.below, None)


def each_worker(task: TaskDir) -> Listing:
    """Return the same, and what else there is to be said."""
    view, conditions = read_task(task)
    awaited = Awaited(folder_of_accounts())
    below = asked_below(task, view)
    counts = {name: len(asked) for name, asked in below.items()}
    unreadable: list[StorageError] = []

    def rows() -> Iterator[WorkerRow]:
        for worker in view.workers.values():
            yield row_of(task, worker, conditions.get(worker.instance), awaited, counts.get(worker.instance, 0))
            if worker.unreadable is not None:
                unreadable.append(worker.unreadable)

    stranded = [WorkerId(task.id, name) for name, condition in conditions.items() if condition.value == STRANDED]
    held = [name for name, condition in conditions.items() if condition.value == HELD]
    return Listing(rows(), _warnings(task, view), below, stranded, _holds(task, held), unreadable)


def _holds(task: TaskDir, held: list[str]) -> list[str]:
    tree = tree_of(task)
    if not held and not tree.held.exists() and known_limits(tree).max_concurrent_agents > 0:
        return []
    if not may_be_stopped(task):
        return []
    from agentctl.operations.show.queue_holds import hold_in_words, queue_holds_of  # Few queues are held.

    try:
        return [hold_in_words(task, hold) for hold in queue_holds_of(task, held)]
    except AgentctlError as error:
        return [f"{error.message}; {error.hint}" if error.hint else error.message]


def _warnings(task: TaskDir, view: TaskView) -> list[Step]:
    named: list[Step] = [f"{task.events}:{bad.seq}: {bad.problem}" for bad in view.damage[:_MOST_NAMED]]
    more = view.bad_lines - len(named)
    return [*named, AtTerminal(f"{task.events}: {more} more of such lines: agentctl doctor")] if more else named


def row_of(
    task: TaskDir, worker: WorkerView, condition: Condition | None, awaited: Awaited, asked_below: int
) -> WorkerRow:
    """Return what `list --json` says of a worker."""
    row: WorkerRow = {
        **BLANK, "agentInstance": worker.instance, "agent": worker.agent, "status": worker.status,
        "reason": worker.reason, "message": worker.message, "lastLine": worker.last_line, "pid": worker.pid,
        "attempt": worker.attempt, "parent": worker.parent, "depth": worker.depth, "queuedAt": worker.queued_at,
        "startedAt": worker.started_at, "endedAt": worker.ended_at, "durationSeconds": worker.duration_s,
        "exitCode": worker.exit_code, "signal": worker.signal, "uncollected": worker.uncollected,
        "command": worker.command, "askedBelow": asked_below,
    }  # fmt: skip
    if worker.is_terminal:
        worker.unreadable = None  # What of it could not be read while it lived says nothing any more.
    if worker.driver is not None:
        row = {**row, "driver": worker.driver, "permissions": worker.permissions, "agentId": worker.agent_id}
    is_queued = condition is not None and condition.is_queued
    try:
        row = _with_files(row, worker, task, awaited if is_queued else None)
    except (AgentctlError, OSError) as error:
        note_unreadable(worker, error)
    if worker.unreadable is not None:
        row = {**row, "unreadable": worker.unreadable.message}
    if worker.work is not None:
        row = {
            **row, "work": worker.work, "nthTry": worker.nth_try, "retryOf": worker.retry_of,
            "continues": worker.continues, "supersededBy": worker.superseded_by,
        }  # fmt: skip
    if worker.is_terminal:
        return row
    if worker.after and worker.started_at is None:
        row = {**row, "after": worker.after}
    if worker.refused:
        row = {**row, "refused": worker.refused}
    progress = None if is_queued else last_progress(read_to_show(task.worker(worker.instance).progress))
    return {
        **row, "paused": worker.is_paused, "stalled": worker.stall_seq is not None,
        "parked": worker.park_seq is not None, "survivors": worker.survivors,
        "awaitsChildren": worker.awaits_children,
        "health": condition.value if condition and condition is not condition.QUEUED else None,
        "progress": progress,
    }  # fmt: skip


def _with_files(row: WorkerRow, worker: WorkerView, task: TaskDir, awaited: Awaited | None) -> WorkerRow:
    """Return a row with what only the worker's files say; `awaited` if the worker is in the queue."""
    if worker.driver is not None:
        worker_dir = task.worker(worker.instance)
        account = awaited.by(worker_dir) if awaited is not None else None
        row = {**row, "usage": _usage_of(worker_dir), "awaitsAccount": account}
    if worker.runner is not None:
        row = {**row, "placement": _placement_of(worker, task.worker(worker.instance))}
    return row


def _placement_of(worker: WorkerView, worker_dir: WorkerDir) -> NodePlacement:
    from agentctl.operations.show.placements import placement_facts  # Few workers run on nodes.

    return placement_facts(worker, worker_dir)


def _usage_of(worker: WorkerDir) -> UsageSoFar:
    from agentctl.supervision.account.ledger import read_spent  # No command uses anything up.

    return read_spent(worker).to_json()
