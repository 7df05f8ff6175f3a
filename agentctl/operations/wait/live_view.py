"""Watching a task: its log, and the processes whose death writes no event.

Subscribe, then read, then sleep. What is proven meanwhile (a shim's death, a lost worker) is recorded, and the queue
is kept going.
"""

from __future__ import annotations

import contextlib
import os
import resource
import sys
from collections.abc import Collection, Iterable, Iterator
from types import TracebackType

from agentctl.adapters import eventlog, processes
from agentctl.adapters.clock import monotonic
from agentctl.adapters.files import read_known
from agentctl.adapters.processes import Identity
from agentctl.adapters.taskdir import TaskDir, WorkerDir
from agentctl.adapters.treedir import tree_of
from agentctl.adapters.watch import SAFETY_S, Watch
from agentctl.domain.names import WorkerId
from agentctl.domain.states import Status
from agentctl.domain.worker.projection import TaskView, WorkerView
from agentctl.errors import AgentctlError, NotFound
from agentctl.lean import NamedTuple
from agentctl.operations.show.live_workers import judge_workers
from agentctl.operations.show.unreadable import noting_unreadable
from agentctl.operations.where.ownership import check_may_be_stopped, is_own
from agentctl.operations.where.task_config import usable_config
from agentctl.supervision.dispatch.dispatch import dispatch
from agentctl.supervision.life.belonging import claim_of, record_of
from agentctl.supervision.life.judging import Condition
from agentctl.supervision.queue.queue_hold import QueueHold, QueueHolds

#: How many descriptors are kept free for reading the log, judging, and starting a worker or two.
_SPARE_FDS = 16


class LiveTask:
    """A view of a task that can be brought up to date, and a sleep that ends when something may have changed.

    Args:
        watch: Shared by several tasks; None makes one.
        reader: Reads the task's log; None makes one.
        look_every_s: How often all live workers are judged, whatever woke the sleep.
    """

    def __init__(
        self,
        task: TaskDir,
        watch: Watch | None = None,
        *,
        reader: eventlog.LogReader | None = None,
        look_every_s: float = SAFETY_S,
    ) -> None:
        check_may_be_stopped(task)
        self.task = task
        self.tree = tree_of(task)
        self.watch = watch or Watch()
        self.watch.add(task.events)
        self._reader = reader or eventlog.LogReader(task.events)
        self._look_every_s = look_every_s
        self.view = TaskView()
        self.conditions: dict[str, Condition] = {}
        self._sentinels: dict[int, str] = {}
        #: si_code and si_status of workers without a shim whose exit this wait saw.
        self._exits: dict[str, tuple[int, int]] = {}
        self._next_look = 0.0
        self._unguarded: dict[str, Identity] = {}
        self._queue_may_stall = True
        self._removals_seen = 0
        #: The workers that were stranded even after the last look at the queue.
        self.stranded: list[str] = []
        #: What held the queue of the task at the last look.
        self.hold: QueueHold | None = None
        self._holds_told = 0
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._most_fds = soft - _SPARE_FDS if soft != resource.RLIM_INFINITY else sys.maxsize

    def update(self) -> TaskView:
        """Bring the view up to date and return it."""
        self.view.apply(self._reader.rows())
        self._forget_removed()
        if monotonic() >= self._next_look or self.view.hold_changes != self._holds_told:
            self._holds_told = self.view.hold_changes
            self._look([worker for worker in self.view.workers.values() if not worker.is_terminal])
            self._next_look = monotonic() + self._look_every_s
            self._queue_may_stall = True
        self._set_sentinels()
        return self.view

    def _forget_removed(self) -> None:
        """Forget what is known of workers that were removed: others may have their names by now."""
        for instance in self.view.removed[self._removals_seen :]:
            self.conditions.pop(instance, None)
            self._exits.pop(instance, None)
            self._unguarded.pop(instance, None)
            for fd in [fd for fd, name in self._sentinels.items() if name == instance]:
                self._drop(fd)
        self._removals_seen = len(self.view.removed)

    def _look(self, workers: list[WorkerView]) -> None:
        """Judge workers, record what is proven, and read it back.

        Raises:
            NotFound: Somebody has removed the task.
        """
        try:
            self.conditions |= judge_workers(self.task, self.view, self._reader, workers, self._exits)
            self.hold = QueueHolds(self.tree).of_task(self.task.id)
            self._look_for_late_exits()
        except FileNotFoundError:
            self.check_there()
            raise

    def _look_for_late_exits(self) -> None:
        if any(worker.runner is not None for worker in self.view.workers.values()):
            from agentctl.operations.show.late_exits import note_late_exits  # Few workers run on nodes.

            if note_late_exits(self.task, self.view.workers.values()):
                self.view.apply(self._reader.rows())

    def check_there(self) -> None:
        """Raise `NotFound` if somebody has removed the task."""
        for task in (self.task, self.tree):
            if not task.exists:
                raise NotFound(
                    f"the task {task.id} has been removed: {task.path} no longer exists",
                    hint="whatever still ran in it is being cancelled",
                )

    def _set_sentinels(self) -> None:
        """For each live worker, watch the process whose end must wake the wait: its shim, else the worker itself."""
        watched = set(self._sentinels.values())
        for fd, instance in list(self._sentinels.items()):
            if self.view.workers[instance].is_terminal:
                self._drop(fd)
        for worker in self.view.workers.values():
            if worker.status in (Status.RUNNING, Status.BLOCKED) and worker.instance not in watched:
                with noting_unreadable(worker):
                    self._set_sentinel(worker.instance)

    def _set_sentinel(self, instance: str) -> None:
        worker = self.task.worker(instance)
        for is_shim in (True, False):
            identity = processes.identity_from(read_known(worker.shim)) if is_shim else _proven_leader(worker)
            if identity is not None and not is_shim:
                self._unguarded[instance] = identity
            # If no descriptor can be spared, the periodic look finds the end of this worker.
            with contextlib.suppress(OSError):
                fd = processes.open_pidfd(identity) if identity else None
                if fd is not None and fd < self._most_fds:
                    self._sentinels[fd] = instance
                    return
                if fd is not None:
                    os.close(fd)

    def _note_exit(self, fd: int) -> None:
        """Keep the exit of a worker without a shim: nobody else may have seen it."""
        instance = self._sentinels[fd]
        worker = self._unguarded.get(instance)
        seen = processes.exit_of(worker, fd) if worker else None
        if seen is not None:
            self._exits[instance] = seen

    def _drop(self, fd: int) -> str:
        instance = self._sentinels.pop(fd)  # First: if Ctrl-C strikes behind it, nobody closes the descriptor again.
        os.close(fd)
        return instance

    def run_queue(self, lender: WorkerId | None = None) -> None:
        """Start the workers that can start: at first, when a shim has died, at each periodic look; for a lender always.

        Otherwise the shims keep the queue going; a wait that did so too at every event would only be in their way.
        """
        if lender is None and not self._queue_may_stall:
            return
        self._queue_may_stall = False
        if not is_own(self.tree):
            return
        self._take_over()
        usable_config(self.tree)  # Makes a raised cap known to all that dispatch.
        # A full disk, a strange runtime folder, too few descriptors: the wait goes on.
        with contextlib.suppress(AgentctlError, OSError):
            dispatch(self.tree, lender=lender)
        self.stranded = self._still_stranded()

    def _still_stranded(self) -> list[str]:
        if Condition.STRANDED not in self.conditions.values():
            return []
        from agentctl.supervision.dispatch.standstill import standstill_of  # Only after a restart.

        return [ticket.instance for ticket in standstill_of(self.tree).tickets if ticket.task_id == self.task.id]

    def holds(self) -> list[str]:
        """Return what keeps workers of the task in the queue until somebody lets them go, in words."""
        held = [name for name, condition in self.conditions.items() if condition is Condition.HELD]
        held = [name for name in held if self.view.workers[name].status is Status.QUEUED]
        if not held:
            return []
        from agentctl.operations.show.queue_holds import hold_in_words, queue_holds_of  # Few queues are held.

        return [hold_in_words(self.task, hold) for hold in queue_holds_of(self.task, held)]

    def _take_over(self) -> None:
        """Give shims to workers on nodes that have lost theirs."""
        for name in [name for name, condition in self.conditions.items() if condition is Condition.UNFOLLOWED]:
            from agentctl.supervision.dispatch.taking_over import take_over  # Hardly ever.

            with contextlib.suppress(AgentctlError, OSError):
                take_over(self.task.worker(name))

    def follow(self, deadline: float) -> Iterator[TaskView]:
        """Yield the view at each look, until the monotonic clock has reached `deadline`."""
        while True:
            yield self.update()
            left = deadline - monotonic()
            if left <= 0:
                return
            self.sleep(left)

    def sleep(self, timeout_s: float | None) -> None:
        """Sleep until something may have changed."""
        limit = self.until_look()
        self.woken(self.watch.sleep(limit if timeout_s is None else min(limit, timeout_s), self._sentinels))

    def look_anew(self) -> None:
        """Have all live workers judged by the next update."""
        self._next_look = 0.0

    def until_look(self) -> float:
        """Return the seconds until the next look at everything."""
        return max(0.0, self._next_look - monotonic())

    def sentinels(self) -> list[int]:
        """Return the descriptors of the watched processes, whose end must wake the sleep."""
        return list(self._sentinels)

    def woken(self, fds: Iterable[int]) -> None:
        """Look at the workers whose watched process has ended; `fds` are the readable descriptors."""
        ended = [fd for fd in fds if fd in self._sentinels]
        if ended:
            self._queue_may_stall = True
            for fd in ended:
                self._note_exit(fd)
            names = {self._drop(fd) for fd in ended}
            self.view.apply(self._reader.rows())
            self._forget_removed()
            known = (self.view.workers[name] for name in names if name in self.view.workers)
            self._look([worker for worker in known if not worker.is_terminal])

    def drop_sentinels(self) -> None:
        """Close the descriptors of the watched processes; the watch, which others may share, stays open."""
        for fd in list(self._sentinels):
            self._drop(fd)

    def __enter__(self) -> LiveTask:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.drop_sentinels()
        self.watch.close()


def _proven_leader(worker: WorkerDir) -> Identity | None:
    return claim_of(worker, record_of(worker)).leader


class LiveTree:
    """Views of tasks that are brought up to date together; sub-tasks made meanwhile are included.

    Args:
        recursive: Watch all sub-tasks below the task too.
        others: Tasks of the same tree to watch too.
    """

    def __init__(self, task: TaskDir, *, recursive: bool = False, others: Iterable[TaskDir] = ()) -> None:
        self.watch = Watch()
        self.top = LiveTask(task, self.watch)
        self._all = {task.id: self.top} | {other.id: LiveTask(other, self.watch) for other in others}
        self._is_recursive = recursive

    def update(self) -> list[tuple[LiveTask, TaskView]]:
        """Return each live task with its view, brought up to date; a task before those below it."""
        return [(live_task, live_task.view) for live_task in self._updated()]

    def _updated(self) -> Iterator[LiveTask]:
        found = [self.top] if self._is_recursive else list(self._all.values())
        for live_task in found:
            view = live_task.update()
            yield live_task
            if self._is_recursive and view.subtasks:
                from agentctl.operations.where.subtasks_below import subtasks_of  # Few tasks have sub-tasks.

                for below in subtasks_of(live_task.task, view.subtasks):
                    if below.id not in self._all:
                        self._all[below.id] = LiveTask(below, self.watch)
                    if self._all[below.id] not in found:
                        found.append(self._all[below.id])

    def tasks(self) -> list[TaskDir]:
        """Return the tasks that are watched."""
        return [live_task.task for live_task in self._all.values()]

    def stranded(self) -> list[WorkerId]:
        """Return the workers that nobody starts: the environment is gone that they need."""
        return [WorkerId(one.task.id, instance) for one in self._all.values() for instance in one.stranded]

    def holds(self) -> list[str]:
        """Return what keeps workers in the queue until somebody lets them go, in words."""
        return list(dict.fromkeys(hold for one in self._all.values() for hold in one.holds()))

    def refused(self) -> dict[WorkerId, DiskRefusal]:
        """Return the workers of which a disk refuses to take an end, or to give the files."""
        return {
            WorkerId(one.task.id, worker.instance): refusal
            for one in self._all.values() for worker in one.view.workers.values()
            if (refusal := _refusal_of(worker)) is not None
        }  # fmt: skip

    def run_queue(self, lender: WorkerId | None) -> None:
        """Start the workers that can start; all tasks of a tree share one queue."""
        for live_task in [self.top] if lender is not None else self._all.values():
            live_task.run_queue(lender)

    def sleep(self, timeout_s: float | None, others: Iterable[int] = ()) -> list[int]:
        """Sleep until something may have changed or one of `others` is readable; return the readable descriptors."""
        return sleep_over(list(self._all.values()), self.watch, timeout_s, others)

    def __enter__(self) -> LiveTree:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for live_task in self._all.values():
            live_task.__exit__(kind, error, trace)


class DiskRefusal(NamedTuple):
    """What a disk refuses of a worker that has no end in the log."""

    problem: str
    #: It has ended, and its end cannot be written; otherwise its files cannot be read.
    is_end: bool


def _refusal_of(worker: WorkerView) -> DiskRefusal | None:
    if worker.is_terminal:
        return None
    if "end" in worker.refused:
        return DiskRefusal(str(worker.refused.get("problem")), is_end=True)
    return None if worker.unreadable is None else DiskRefusal(worker.unreadable.message, is_end=False)


def sleep_over(
    live_tasks: Collection[LiveTask], watch: Watch, timeout_s: float | None, others: Iterable[int] = ()
) -> list[int]:
    """Sleep until something of these tasks may have changed or one of `others` is readable; return what is readable."""
    limits = [live_task.until_look() for live_task in live_tasks]
    limit = min(limits if timeout_s is None else [*limits, timeout_s], default=None)
    sentinels = [fd for live_task in live_tasks for fd in live_task.sentinels()]
    readable = watch.sleep(limit, [*sentinels, *others])
    for live_task in live_tasks:
        live_task.woken(readable)
    return readable
