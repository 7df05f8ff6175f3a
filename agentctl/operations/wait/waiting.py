"""`wait-any` and `wait-all`: wait for the next end, given to each consumer once, or for all ends despite questions."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentctl.adapters.taskdir import TaskDir
from agentctl.adapters.treedir import tree_of
from agentctl.domain.names import first_of
from agentctl.domain.states import PARKED, TERMINAL, EndStatus, Status
from agentctl.domain.worker.projection import Deliverable, TaskView, WorkerView
from agentctl.errors import Declined, Next, NothingLeft, Refused, UsageError, WaitTimedOut
from agentctl.operations.show.askers import Askers, PendingQuestion, below_any
from agentctl.operations.show.listing import row_of
from agentctl.operations.show.unreadable import check_any_known
from agentctl.operations.wait.cursor import ClaimedEnd, Cursor, consumers_in
from agentctl.operations.wait.live_view import LiveTree
from agentctl.operations.wait.rounds import OnHeld, OnRefused, OnStranded, WaitRounds, WakeReasons
from agentctl.operations.where.calling import caller
from agentctl.operations.where.locating import find_worker
from agentctl.operations.where.task_config import usable_config
from agentctl.supervision import failpoints
from agentctl.supervision.account.accounts import folder_of_accounts
from agentctl.supervision.account.waiters import Awaited
from agentctl.supervision.worker.kinship import descendants

if TYPE_CHECKING:
    from agentctl.domain.documents.workers.ends import EndedWorker
    from agentctl.domain.documents.workers.worker import WorkerRow

DEFAULT_CONSUMER = "default"
#: The pause between two looks at an end that another waiter has claimed: it marks the end, or dies.
_PENDING_LOOK_S = 0.05
_PAUSE_PER_WORKER_S, _LONGEST_PAUSE_S = 0.0001, 0.05
_ALL: frozenset[str] = TERMINAL | {Status.BLOCKED}

#: Called periodically with the open questions that do not end the wait.
OnAsked = Callable[[list[PendingQuestion]], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class WaitedEnd:
    """A worker that has ended, is blocked, has stalled or is parked."""

    agent_instance: str
    status: EndStatus
    reason: str | None = None
    exit_code: int | None = None
    signal: str | None = None
    #: Why it failed, as recorded with its end.
    message: str | None = None
    #: If it failed: what it wrote last, in one line.
    last_line: str | None = None
    #: Its task, if the wait covers several tasks.
    task_id: str | None = None
    #: How many of the workers that it had started were still alive when it ended.
    uncollected: int = 0
    #: If it is parked: until when, and for which usage window of its account.
    until: str | None = None
    window: str | None = None
    #: An earlier waiter had claimed it, and died before it was known to have given it out.
    redelivered: bool = False

    def to_json(self) -> EndedWorker:
        """Return what `wait-any --json` prints."""
        end: EndedWorker = {
            "agentInstance": self.agent_instance, "status": self.status, "reason": self.reason,
            "exitCode": self.exit_code, "signal": self.signal,
        }  # fmt: skip
        if self.message:
            end["message"] = self.message
        if self.last_line:
            end["lastLine"] = self.last_line
        if self.until:
            end["until"] = self.until
        if self.window:
            end["window"] = self.window
        if self.task_id:
            end["taskId"] = self.task_id
        if self.uncollected:
            end["uncollected"] = self.uncollected
        if self.redelivered:
            end["redelivered"] = True
        return end


@contextlib.contextmanager
def next_end(  # noqa: PLR0913 - keyword-only but for the first two
    task: TaskDir,
    instances: Sequence[str],
    *,
    timeout_s: float | None,
    consumer: str | None,
    kinds: frozenset[str] | None,
    recursive: bool = False,
    on_asked: OnAsked | None = None,
    on_stranded: OnStranded | None = None,
    on_refused: OnRefused | None = None,
    on_held: OnHeld | None = None,
) -> Iterator[WaitedEnd]:
    """Yield the earliest end or block not yet given to this consumer; the block must print and flush it.

    It counts as given once the block is left, unless by an error.

    Args:
        instances: Only these; if empty, all of the task, or within a worker all of its descendants.
        timeout_s: None means the task's `timeoutSeconds`.
        consumer: None means `default`, or within a worker the name of that worker.
        kinds: Only these (statuses, `stalled`, `parked`); others stay undelivered. None means all ends and blocks.
        recursive: Include the workers of sub-tasks.

    Raises:
        StorageError: Nothing of those that could still end can be read.
        WaitTimedOut: Nothing came in time. Nobody was stopped.
        NothingLeft: Everything was given out, and nothing that could still end is left.
        WaitStopped: The worker that waits was cancelled or paused.
    """
    limit_s = usable_config(task).limits.timeout_seconds if timeout_s is None else timeout_s
    consumer = consumer or _own_consumer(recursive)
    names = _check_targets(task, instances, recursive=recursive)
    with (
        LiveTree(task, recursive=recursive) as live_tree,
        WaitRounds(live_tree, limit_s, on_stranded=on_stranded, on_refused=on_refused, on_held=on_held) as rounds,
    ):
        askers = Askers()
        while True:
            has_pending, live = False, list[WorkerView]()
            for live_task, view in live_tree.update():
                targets = _targets(live_task.task, view, names)
                wanted = [item for item in targets if item.status in (_ALL if kinds is None else kinds)]
                cursor = Cursor(live_task.tree, live_task.task.id, consumer)
                claim = cursor.claim(wanted)
                if claim is not None:
                    rounds.give_back()
                    with _given(cursor, claim, view, live_task.task.id if recursive else None) as end:
                        yield end
                    return
                # Claimed by another waiter: it marks them, or dies and they are given again.
                has_pending = bool(cursor.undelivered(wanted)) or has_pending
                live += _live(live_task.task, view, names)
            if not has_pending and not live:
                live_tree.top.check_there()  # A task that was just removed has no log, and so no workers.
                raise NothingLeft(_nothing_left(live_tree, names), hint=Next("list", does="shows what there is"))
            if not has_pending:
                check_any_known(live)
            if on_asked is not None:
                view = live_tree.top.view
                chosen = None if names is None else names(task, view)
                above = _whose_children(instances, chosen)
                is_given = Status.BLOCKED in (kinds or _ALL)  # Then the questions of its own workers end the wait.
                on_asked(
                    below_any(askers.below(task, view), above) if is_given else askers.asked(task, view, chosen, above)
                )
            if not rounds.next(WakeReasons(within_s=_PENDING_LOOK_S if has_pending else None)):
                raise WaitTimedOut(f"nothing ended within {limit_s:g} s", hint="no worker was stopped; wait again")


def consumers_of(task: TaskDir) -> list[str]:
    """Return the consumers that were given anything in the tree of a task."""
    return consumers_in(tree_of(task))


def _own_consumer(recursive: bool) -> str:
    """Return the default consumer: within a worker its name, with its task's name if the wait covers several tasks."""
    me = caller()
    if me is None:
        return DEFAULT_CONSUMER
    return f"{me.task.id}-{me.instance}"[-64:].lstrip("-") if recursive else me.instance


@contextlib.contextmanager
def _given(cursor: Cursor, claim: ClaimedEnd, view: TaskView, task_id: str | None) -> Iterator[WaitedEnd]:
    """Yield a claimed end, and mark it as given after the block."""
    failpoints.reached("wait.after-claim")
    worker = view.workers[claim.deliverable.instance]
    try:
        yield _waited(worker, claim.deliverable.status, claim.redelivered, task_id)
    except Declined:
        (cursor.release if claim.redelivered else cursor.withdraw)(claim)  # A mark of an earlier waiter's death stays.
        raise
    except BaseException:
        cursor.release(claim)  # It was not given out: the next waiter gets it.
        raise
    failpoints.reached("wait.after-print")
    cursor.mark(claim, view.deliverables())


def _waited(worker: WorkerView, status: str, redelivered: bool = False, task_id: str | None = None) -> WaitedEnd:
    is_parked = status == PARKED
    return WaitedEnd(
        agent_instance=worker.instance, status=EndStatus(status), reason=worker.reason, exit_code=worker.exit_code,
        signal=worker.signal, message=worker.message, last_line=worker.last_line, redelivered=redelivered,
        task_id=task_id,
        uncollected=worker.uncollected,
        until=worker.parked_until if is_parked else None, window=worker.window if is_parked else None,
    )  # fmt: skip


def wait_all(  # noqa: PLR0913 - keyword-only but for the first two
    task: TaskDir,
    instances: Sequence[str],
    *,
    timeout_s: float | None,
    on_change: Callable[[list[WorkerRow]], None] | None = None,
    on_asked: OnAsked | None = None,
    on_stranded: OnStranded | None = None,
    on_refused: OnRefused | None = None,
    on_held: OnHeld | None = None,
    wakes: Callable[[], WakeReasons] = WakeReasons,
) -> list[WaitedEnd]:
    """Wait until all of `instances` have ended, even if they ask questions meanwhile; if empty, as for `next_end`.

    Args:
        timeout_s: None waits without a limit.
        on_change: Called with rows as in `list` whenever something may have changed.
        wakes: What else ends a sleep, as when `on_asked` reads answers; called before each.

    Raises:
        StorageError: Nothing of those that have not ended can be read.
        WaitTimedOut: Not all ended in time. Nobody was stopped.
        NothingLeft: There is no worker to wait for.
        WaitStopped: The worker that waits was cancelled or paused.
    """
    names = _check_targets(task, instances)
    with (
        LiveTree(task) as live_tree,
        WaitRounds(live_tree, timeout_s, on_stranded=on_stranded, on_refused=on_refused, on_held=on_held) as rounds,
    ):
        live_task, askers = live_tree.top, Askers()
        while True:
            live_tree.update()
            view = live_task.view
            chosen = None if names is None else names(task, view)
            workers = [*view.workers.values()] if instances or chosen is not None else [*view.newest()]
            if chosen is not None:
                passed = frozenset[str]() if instances else chosen  # A child that another one tries again still counts.
                workers = [one for one in workers if one.instance in chosen and one.superseded_by not in passed]
            if not workers:
                live_task.check_there()
                raise NothingLeft(_NOBODY, hint=Next("spawn", does="starts a worker"))
            if on_asked is not None:
                on_asked(askers.asked(task, view, chosen, _whose_children(instances, chosen)))
            if on_change is not None:
                awaited, below = Awaited(folder_of_accounts()), askers.below(task, view)
                on_change([
                    row_of(task, one, live_task.conditions.get(one.instance), awaited, len(below.get(one.instance, ())))
                    for one in workers
                ])  # fmt: skip
            alive = [worker for worker in workers if not worker.is_terminal]
            if not alive:
                rounds.give_back()
                return [_waited(worker, worker.status) for worker in workers]
            check_any_known(alive)
            left_alive = [worker.instance for worker in alive]
            if not rounds.next(wakes()):
                raise WaitTimedOut(
                    f"still at work after {timeout_s:g} s: {first_of(left_alive)}",
                    hint="no worker was stopped; wait again",
                )
            # With many workers, several end in this pause: one look finds them all. With one left there is almost none.
            time.sleep(min(len(left_alive) * _PAUSE_PER_WORKER_S, _LONGEST_PAUSE_S))


# -- the targets of a wait ---------------------------------------------------------------------------------------------

Names = Callable[[TaskDir, TaskView], set[str]]

_NOBODY = "there is no worker to wait for"


def _check_targets(task: TaskDir, instances: Sequence[str], *, recursive: bool = False) -> Names | None:
    """Return a function that returns the targets, or None for all workers; a worker may not wait for itself."""
    me = caller()
    is_own = me is not None and me.task.id == task.id
    if instances:
        if recursive:
            raise UsageError("a recursive wait is for all workers, but some are named", hint="leave their names out")
        for name in instances:
            find_worker(task, name)
        if me is not None and is_own and me.instance in instances:
            raise Refused(f"{me.instance} cannot wait for itself")
        chosen = set(instances)
        return lambda _task, _view: chosen
    if me is None or not is_own:
        return None
    instance = me.instance
    if recursive:
        worker = me.worker
        return lambda one, _view: {below.instance for below in descendants(worker) if below.task.path == one.path}
    return lambda _task, view: set(view.descendants(instance))


def _whose_children(instances: Sequence[str], chosen: set[str] | None) -> set[str] | None:
    """Return the workers for which questions below them are reported; None means all workers.

    A worker that waits for all of its children is one of them: it has sub-tasks too, which are not targets of the wait.
    """
    me = caller()
    return chosen if chosen is None or instances or me is None else {*chosen, me.instance}


def _targets(task: TaskDir, view: TaskView, names: Names | None) -> list[Deliverable]:
    found = view.deliverables()
    if names is None:
        return found
    chosen = names(task, view)
    return [item for item in found if item.instance in chosen]


def _live(task: TaskDir, view: TaskView, names: Names | None) -> list[WorkerView]:
    chosen = None if names is None else names(task, view)
    return [
        worker
        for worker in view.workers.values()
        if not worker.is_terminal and (chosen is None or worker.instance in chosen)
    ]


def _nothing_left(live_tree: LiveTree, names: Names | None) -> str:
    meant = any(
        view.workers if names is None else names(live_task.task, view) for live_task, view in live_tree.update()
    )
    return "nothing is left to wait for: every end was given out" if meant else _NOBODY
