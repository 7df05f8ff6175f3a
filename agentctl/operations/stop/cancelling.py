"""Cancels workers: a durable request, then the escalation by the worker's guardian, then proof of the end.

The request itself bars the worker, and all below it, from starting more. The guardian begins its escalation once those
below have ended; since each guardian does the same, the deepest end first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from agentctl.adapters.clock import monotonic
from agentctl.adapters.locks import locked
from agentctl.adapters.paths import FilePath
from agentctl.adapters.taskdir import TaskDir, WorkerDir
from agentctl.adapters.treedir import trees_of
from agentctl.domain.states import Status
from agentctl.domain.worker.escalation import whole_limit_s
from agentctl.domain.worker.projection import WorkerView
from agentctl.operations.show.current_state import mend_roster, read_task
from agentctl.operations.stop.holding import run_queue
from agentctl.operations.wait.live_view import LiveTask
from agentctl.operations.where.lineage import who
from agentctl.operations.where.locating import find_worker
from agentctl.operations.where.ownership import check_may_be_stopped, may_be_stopped
from agentctl.supervision.life.judging import is_unguarded
from agentctl.supervision.stop.requesting import Answer, Request, request_ends
from agentctl.supervision.worker import deferred
from agentctl.supervision.worker.cancel_request import asked_grace
from agentctl.supervision.worker.endings import decision_of, held_end
from agentctl.supervision.worker.kinship import cancelled_with, task_name
from agentctl.supervision.worker.spec import grace_of

if TYPE_CHECKING:
    from agentctl.domain.documents.workers.ends import CancelledWorker
    from agentctl.domain.documents.workers.worker import Survivor

#: What a shim may take beyond its escalation: to be scheduled, and to put the end on disk.
_SLACK_S = 30.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Cancelled:
    """What a cancel did to one worker."""

    agent_instance: str
    #: Whether this cancel (or one before it) ended the worker.
    cancelled: bool
    status: Status
    survivors: list[Survivor] = field(default_factory=list)
    note: str | None = None
    #: Its shim was gone: what is said of its processes holds for those that could be found.
    unguarded: bool = False
    #: Whether it was in the queue when the command began, and was started before the decision was on disk; None if the
    #: decision was about this worker alone.
    started_meanwhile: bool | None = None
    #: Its task, where that may differ from the one asked about; the task's path if it is in another root.
    task_id: str | None = None

    def to_json(self) -> CancelledWorker:
        """Return it as `cancel --json` prints it."""
        value: CancelledWorker = {
            "agentInstance": self.agent_instance, "cancelled": self.cancelled, "status": self.status,
            "survivors": self.survivors,
        }  # fmt: skip
        if self.started_meanwhile is not None:
            value["startedMeanwhile"] = self.started_meanwhile
        if self.note:
            value["note"] = self.note
        if self.unguarded:
            value["unguarded"] = True
        if self.task_id:
            value["taskId"] = self.task_id
        return value


def cancel_workers(
    task: TaskDir,
    instances: Sequence[str],
    *,
    all_: bool = False,
    recursive: bool = False,
    grace_s: float | None = None,
    wait: bool = True,
) -> list[Cancelled]:
    """Cancel workers and those that they started; return once each has ended, or its survivors are known.

    It is one decision about all of them: once it is on disk, none of them is started any more.

    Args:
        all_: Cancel all that have not ended.
        recursive: With `all_`, those of the sub-tasks too.
        grace_s: Replaces the worker's own grace period, for each of the two pauses.
        wait: False returns once the requests are on disk.

    Interrupting this call leaves the escalations running: shims carry them out.
    """
    check_may_be_stopped(task)
    if not all_:
        named = [find_worker(task, name) for name in dict.fromkeys(instances)]
        return cancel_found(named, seen_from=task, grace_s=grace_s, wait=wait)
    tasks = _living_tasks(task, recursive=recursive)
    named = _all_living(tasks)
    return cancel_found(named, seen_from=task, also_of=tasks, names_tasks=recursive, grace_s=grace_s, wait=wait)


def count_living(task: TaskDir, *, recursive: bool) -> int:
    """Return how many workers a cancel of all would end."""
    return len(_all_living(_living_tasks(task, recursive=recursive)))


def cancel_found(
    named: Sequence[WorkerDir],
    *,
    seen_from: TaskDir,
    also_of: Sequence[TaskDir] = (),
    names_tasks: bool = False,
    grace_s: float | None = None,
    wait: bool = True,
) -> list[Cancelled]:
    """Cancel workers of any tasks, as `cancel_workers` does.

    Args:
        seen_from: The task that the outcomes need not name.
        also_of: Tasks of which every worker is meant that is in the queue or at work, named or not.
        names_tasks: The outcomes name every task.
    """
    asked, started = _request_all(named, grace_s, also_of)
    pending = [worker for worker, answer in asked.values() if answer is None]
    ends = _await_ends(pending) if wait else {_key(worker): _on_its_way(worker) for worker in pending}
    tasks = {seen_from.path: seen_from} | {worker.task.path: worker.task for worker, _ in asked.values()}
    for task in tasks.values():
        _settle_books(task)
    for tree in trees_of(tasks.values()):
        run_queue(tree)
    names = dict.fromkeys(map(_key, named))
    done = {
        key: replace(
            answer or ends[key],
            task_id=task_name(worker.task, seen_from) or (seen_from.id if names_tasks else None),
            started_meanwhile=key in started if len(asked) > 1 else None,
        )
        for key, (worker, answer) in asked.items()
    }
    below = [key for key, (_, answer) in asked.items() if key not in names and (answer is None or answer.cancelled)]
    return [done[key] for key in [*names, *below]]


_Key = tuple[FilePath, str]


def _key(worker: WorkerDir) -> _Key:
    """Return path and instance: a task of another root may have the same name."""
    return worker.task.path, worker.instance


def _living_tasks(task: TaskDir, *, recursive: bool) -> list[TaskDir]:
    if not recursive:
        return [task]
    from agentctl.operations.where.subtasks_below import subtree  # Few look at more than one task.

    return list(filter(may_be_stopped, subtree(task)))


def _all_living(tasks: Iterable[TaskDir]) -> list[WorkerDir]:
    return [
        one.worker(worker.instance)
        for one in tasks
        for worker in read_task(one)[0].workers.values()
        if not worker.is_terminal
    ]


_Asked = dict[_Key, tuple[WorkerDir, Cancelled | None]]


def _request_all(
    named: Sequence[WorkerDir], grace_s: float | None, also_of: Sequence[TaskDir]
) -> tuple[_Asked, set[_Key]]:
    """Request the ends of workers and of all below them; None for each whose end must be waited for.

    Returns:
        Also those that were started between the call and the decision.
    """
    asked: _Asked = {}
    started: set[_Key] = set()
    # One alone is asked at once, without the queue's lock; its request bars all below it.
    is_one = len(named) == 1 and not also_of
    left = [*named, *([] if is_one else _with_all_below(named, set(map(_key, named))))]
    while left or also_of:
        ends = request_ends(left, Request(who(), grace_s), also_of=also_of)
        asked |= {_key(worker): (worker, _told(worker, answer)) for worker, answer in ends.answers}
        started |= set(map(_key, ends.started))
        also_of = ()
        if all(answer is not None for _, answer in asked.values()) and not _with_all_below(named, asked):
            break  # None of them ran, so none of them had a spawn under way.
        for tree in trees_of(worker.task for worker, _ in asked.values()):
            with locked(tree.queue_lock, is_written=False):
                pass  # A child whose spawn was under way is recorded by now; later ones are refused.
        left = _with_all_below(named, asked)
    return asked, started


def _with_all_below(named: Sequence[WorkerDir], asked: Collection[_Key]) -> list[WorkerDir]:
    """Return the workers below the named ones that have no request yet, deepest first."""
    found = {_key(below): below for worker in named for below in cancelled_with(worker)}
    return [worker for key, worker in reversed(found.items()) if key not in asked]


def _told(worker_dir: WorkerDir, answer: Answer) -> Cancelled | None:
    """Return the outcome of a request; None where it must be waited for."""
    match answer:
        case Answer.ENDED:
            return _had_ended(worker_dir)
        case Answer.ELSEWHERE:
            worker = read_task(worker_dir.task)[0].workers.get(worker_dir.instance)
            note = "it is on another machine or in another pid namespace: cancel it there"
            return _result(worker_dir, cancelled=False, status=worker.status if worker else Status.RUNNING, note=note)
        case Answer.WITHDRAWN:
            return _end_of(worker_dir)
        case Answer.BARRED:
            note = "its queue cannot be changed now; it will not start, and ends in its turn"
            return _result(worker_dir, cancelled=True, status=Status.QUEUED, note=note)
        case Answer.UNDER_WAY:
            return None


def _result(worker: WorkerDir, *, cancelled: bool, status: Status, note: str | None = None) -> Cancelled:
    return Cancelled(agent_instance=worker.instance, cancelled=cancelled, status=status, note=note)


def _on_its_way(worker: WorkerDir) -> Cancelled:
    return _result(worker, cancelled=False, status=Status.RUNNING, note="the request is on disk")


def _end_of(worker: WorkerDir) -> Cancelled:
    decision = decision_of(worker)
    end = decision or held_end(worker)
    status = Status.FAILED if end is None else end.status
    found = _result(worker, cancelled=status == Status.CANCELLED, status=status, note=_held_note(worker))
    return replace(found, unguarded=is_unguarded(worker, decision))


def _held_note(worker: WorkerDir) -> str | None:
    """Return what keeps an end from being on disk; None where it is there."""
    if worker.has_ended or held_end(worker) is None:
        return None
    return f"its end is kept in memory until the disk takes it: {deferred.standing(worker).get('problem')}"


def _had_ended(worker: WorkerDir) -> Cancelled:
    decision = decision_of(worker)
    end = decision or held_end(worker)
    status, reason = (end.status, end.reason) if end else (Status.FAILED, None)
    note = f"it had ended before as {status}{f' ({reason})' if reason else ''}; nothing changed"
    found = _result(worker, cancelled=status == Status.CANCELLED, status=status, note=note)
    return replace(found, unguarded=is_unguarded(worker, decision))


def _await_ends(agents: Sequence[WorkerDir]) -> dict[_Key, Cancelled]:
    """Wait for the ends of workers of any tasks. Those above others end last, so one time limit serves for all."""
    deadline = monotonic() + sum(sorted(map(_limit_s, agents), reverse=True)[:_LEVELS])
    done: dict[_Key, Cancelled] = {}
    for task in {str(worker.task.path): worker.task for worker in agents}.values():
        names = [worker.instance for worker in agents if worker.task.path == task.path]
        done |= {(task.path, name): end for name, end in _await_in(task, names, deadline).items()}
    return done


#: How many levels of workers, each waiting for the level below it, a cancel waits for at most.
_LEVELS = 8


def _await_in(task: TaskDir, names: list[str], deadline: float) -> dict[str, Cancelled]:
    done: dict[str, Cancelled] = {}
    with LiveTask(task) as live_task:
        if deferred.are_any():
            live_task.watch.add(deferred.place())
        for view in live_task.follow(deadline):
            for name in names:
                worker = view.workers.get(name)
                if name not in done and (_has_ended(task.worker(name)) or (worker and worker.is_terminal)):
                    done[name] = _end_of(task.worker(name))
                elif name not in done and worker and worker.survivors:
                    done[name] = _survived(worker)
            if len(done) == len(names):
                break
        workers = live_task.view.workers
    late = [name for name in names if name not in done]
    return done | {name: _too_late(task.worker(name), workers.get(name)) for name in late}


def _has_ended(worker: WorkerDir) -> bool:
    """Return whether nothing of a worker is alive, be it that the disk refuses its end."""
    return worker.has_ended or held_end(worker) is not None


def _limit_s(worker: WorkerDir) -> float:
    asked = asked_grace(worker)
    grace_s = grace_of(worker.spec) if asked is None else asked
    return whole_limit_s(grace_s) + grace_s + _SLACK_S


def _survived(worker: WorkerView) -> Cancelled:
    return Cancelled(
        agent_instance=worker.instance, cancelled=False, status=worker.status, survivors=list(worker.survivors),
        note="some of its processes survived SIGKILL; its slot stays taken and its shim keeps watching",
    )  # fmt: skip


def _too_late(worker_dir: WorkerDir, worker: WorkerView | None) -> Cancelled:
    status = worker.status if worker else Status.RUNNING
    note = "its shim has not answered in time: is it stopped? the request stays on disk"
    return _result(worker_dir, cancelled=False, status=status, note=note)


def _settle_books(task: TaskDir) -> None:
    """Bring the roster up to date: those that ended in the queue have no shim that would do it."""
    if task.stale_roster.exists():
        mend_roster(task)
