"""One task of a fleet: its workers and their open questions, brought up to date by what was appended to its log."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator

from agentctl.adapters.eventlog import LogReader
from agentctl.adapters.files import as_storage_error, read_known
from agentctl.adapters.taskdir import TaskDir
from agentctl.adapters.taskyaml.cache import TaskConfig
from agentctl.adapters.watch import Watch
from agentctl.domain.events import BadLine, Event
from agentctl.domain.question import Question
from agentctl.domain.states import TERMINAL, Status, task_state
from agentctl.domain.worker.projection import TaskView
from agentctl.errors import AgentctlError, StorageError
from agentctl.lean import TYPE_CHECKING, NamedTuple
from agentctl.operations.show.listing import row_of as listed
from agentctl.operations.show.unreadable import noting_unreadable
from agentctl.operations.wait.live_view import LiveTask
from agentctl.operations.where.observed import observed_rows
from agentctl.operations.where.ownership import is_own
from agentctl.operations.where.task_config import usable_config
from agentctl.supervision.account.waiters import Awaited
from agentctl.supervision.life.judging import Condition
from agentctl.supervision.queue.queue_hold import QueueHold
from agentctl.supervision.worker.questions import open_questions, read_question, waiting_askers

if TYPE_CHECKING:
    from agentctl.domain.documents.workers.worker import WorkerRow

#: How often workers are judged whose death no descriptor reports: nobody watches for a second that ends on a screen.
_LOOK_EVERY_S = 5.0


class FeedRow(NamedTuple):
    """A worker of a fleet's task."""

    row: WorkerRow
    #: Its open questions whose asker waits, oldest first.
    questions: tuple[Question, ...] = ()
    #: How many files it changed in its worktree, as recorded at its end.
    changed_files: int = 0


class TaskFeed:
    """A task and its workers; of a foreign task no more than its files claim.

    Args:
        watch: Gets the files whose changes matter.
        awaited: The accounts for which workers wait.
    """

    def __init__(self, task: TaskDir, watch: Watch, awaited: Awaited) -> None:
        self.task = task
        self._identity = _identity_of(task)
        self.is_own = is_own(task)
        self.config: TaskConfig = usable_config(task)
        self._reader = _NotingReader(task.events)
        self.live: LiveTask | None = None
        if self.is_own:
            self.live = LiveTask(task, watch, reader=self._reader, look_every_s=_LOOK_EVERY_S)
        else:
            watch.add(task.events)
        self.view: TaskView = TaskView() if self.live is None else self.live.view
        self._awaited = awaited
        self._size = self._observed_size = -1
        self._conditions: dict[str, Condition] = {}
        #: The workers and, after them, the observed sub-agents.
        self.workers: dict[str, FeedRow] = {}
        self._observed: dict[str, FeedRow] = {}
        self._removals_seen = 0
        self._just_removed: set[str] = set()

    def update(self) -> list[str]:
        """Read what is new; return the workers and observed sub-agents that have changed, in the order of `names`.

        Raises:
            AgentctlError, OSError: The task has been removed, or cannot be read.
        """
        size = _size_of(self.task.events)
        is_due = self.live is not None and self.live.until_look() == 0 and self._has_live_workers()
        touched: set[str] = set()
        if size != self._size or is_due:
            if self.live is None:
                self.view.apply(self._reader.rows())
            else:
                if self.live.hold is not None:
                    self.live.look_anew()  # What has just come into a held queue is held, too.
                self.live.update()
            self._size = size
            touched = self._reader.take_touched() | self._forget_removed()
        if self.live is not None and (is_due or self._conditions != self.live.conditions):  # A sleep may have judged.
            touched |= self._judged_anew()
        touched |= self._tries_of(touched)  # What counted until now does so no more.
        changed = [name for name in self.view.workers if name in touched] if touched else []
        for name in changed:
            self._refresh(name)
        gone = [name for name in touched if name not in self.view.workers]
        return [*gone, *changed, *self._read_observed()]

    def _forget_removed(self) -> set[str]:
        """Forget the workers that were removed since the last look; return those whose rows are no longer true."""
        removed = self.view.removed[self._removals_seen :]
        self._removals_seen = len(self.view.removed)
        for name in removed:
            self.workers.pop(name, None)
            self._conditions.pop(name, None)
        self._just_removed.update(removed)
        return {*removed, *self.view.workers} if removed else set()  # The tries that are left are counted anew.

    def take_removed(self) -> set[str]:
        """Return the names of workers that were removed since the last call: others may have them by now."""
        found, self._just_removed = self._just_removed, set()
        return found

    def _tries_of(self, names: Iterable[str]) -> set[str]:
        known = (self.view.workers[name] for name in names if name in self.view.workers)
        return {one for worker in known if worker.work is not None for one in self.view.tries.of_work(worker.work)}

    @property
    def is_replaced(self) -> bool:
        """Return whether another task lies in its place now: nothing that is known of it is true of that one."""
        return _identity_of(self.task) != self._identity

    def _has_live_workers(self) -> bool:
        return not self.workers or any(one.row["status"] not in TERMINAL for one in self.workers.values())

    def _judged_anew(self) -> set[str]:
        """Return the workers about which the last look found something that no event says."""
        assert self.live is not None
        found = {name for name, one in self.live.conditions.items() if self._conditions.get(name) is not one}
        self._conditions = dict(self.live.conditions)
        views = self.view.workers
        return found | {
            name for name, one in self.workers.items() if name in views and views[name].status != one.row["status"]
        }

    def _refresh(self, name: str) -> None:
        worker, condition = self.view.workers[name], None
        worker_dir = self.task.worker(name)
        if self.live is not None and not worker.is_terminal:
            condition = self.live.conditions.get(name)
        row = listed(self.task, worker, condition, self._awaited, 0)
        questions, changed_files = tuple[Question, ...](), 0
        with noting_unreadable(worker):
            questions, changed_files = tuple(self._asked(name)), _changed_files(worker_dir.worktree, row)
        if worker.unreadable is not None:
            row = {**row, "unreadable": worker.unreadable.message}
        self.workers[name] = FeedRow(row, questions, changed_files)

    def _asked(self, name: str) -> Iterator[Question]:
        """Yield the open questions of a worker whose asker waits: of a foreign task none, since nobody may answer."""
        if not self.is_own or self.view.workers[name].status is not Status.BLOCKED:
            return
        worker = self.task.worker(name)
        for id_ in waiting_askers(worker, open_questions(worker)):
            question = read_question(worker, id_)
            if question is not None:
                yield question

    def refresh_reports(self, name: str) -> bool:
        """Read what a live worker reports without an event, its progress and usage; return whether that has changed."""
        one = self.workers.get(name)
        if one is None or one.row["status"] in TERMINAL or name not in self.view.workers:
            return False
        before = one.row
        self._refresh(name)
        return self.workers[name].row != before

    def _read_observed(self) -> set[str]:
        size = _size_of(self.task.observed)
        if size == self._observed_size:
            return set()
        self._observed_size = size
        before, self._observed = (
            self._observed,
            {row["agentInstance"]: FeedRow(row) for row in observed_rows(self.task)},
        )
        return before.keys() | self._observed.keys()

    def names(self) -> list[str]:
        """Return the workers, in the order in which they were accepted, and then the observed sub-agents."""
        return [*self.workers, *self._observed]

    def row_of(self, name: str) -> FeedRow | None:
        """Return a worker, or an observed sub-agent; None if there is none of that name any more."""
        return self.workers.get(name) or self._observed.get(name)

    def state(self) -> str:
        """Return the state of the task's own workers: `working`, `input-required`, `completed`, ..."""
        found = {one for name, one in self._conditions.items() if not self.view.workers[name].is_terminal}
        at_rest = next((one.value for one in (Condition.STRANDED, Condition.HELD) if one in found), None)
        return task_state((worker.status for worker in self.view.newest()), at_rest=at_rest)

    def hold(self) -> QueueHold | None:
        """Return what holds the queue of the task; None if nothing does, or if the task is foreign."""
        return None if self.live is None else self.live.hold

    def close(self) -> None:
        """Close the descriptors of its processes; the shared watch stays."""
        if self.live is not None:
            self.live.drop_sentinels()


class _NotingReader(LogReader):
    """A reader of a log that notes which workers its events are about."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(path)
        self._touched: set[str] = set()

    def rows(self) -> Iterator[tuple[int, Event] | BadLine]:
        for row in super().rows():
            if not isinstance(row, BadLine):
                instance = row[1].get("agentInstance")
                if instance:
                    self._touched.add(instance)
            yield row

    def take_touched(self) -> set[str]:
        """Return the workers that events were about since the last call."""
        found, self._touched = self._touched, set()
        return found


def _identity_of(task: TaskDir) -> tuple[object, str]:
    try:
        found = os.stat(task.path)
    except OSError:
        return None, ""
    return (found.st_dev, found.st_ino), task.nonce()


def _size_of(path: str | os.PathLike[str]) -> int:
    with contextlib.suppress(OSError):
        return os.stat(path).st_size
    return 0


def _changed_files(worktree: str | os.PathLike[str], row: WorkerRow) -> int:
    if row["status"] not in TERMINAL or not os.path.exists(worktree):
        return 0
    changes = read_known(worktree).get("changes")
    files = changes.get("files") if isinstance(changes, dict) else None
    return len(files) if isinstance(files, dict) else 0


def open_feed(task: TaskDir, watch: Watch, awaited: Awaited) -> TaskFeed | StorageError | None:
    """Return the feed of a task, or why it cannot be read; None if there is nothing that could be."""
    try:
        feed = TaskFeed(task, watch, awaited)
        feed.update()
    except (AgentctlError, OSError) as error:
        return as_storage_error(error)
    return feed
