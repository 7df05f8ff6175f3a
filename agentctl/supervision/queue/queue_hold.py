"""A hold of the queue: workers of a task, or those below a paused worker, do not leave the queue to run.

`held.json` of the root task names the tasks of the tree whose queues are held, with those of the tasks below them, and
the workers below which nothing is started; and who holds each. It is written under the queue's lock, so whoever has
that lock and starts workers knows of every hold. A cap of 0 is a hold of the whole tree.
While the disk refuses to change the file, its new content waits in memory, and counts instead of the file.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Mapping

from agentctl.adapters.clock import now_iso
from agentctl.adapters.files import read_json, to_json, write_whole
from agentctl.adapters.locks import locked
from agentctl.adapters.taskdir import TaskDir, TreeDir, WorkerDir
from agentctl.adapters.taskyaml.cache import cached, known_limits
from agentctl.domain.names import is_name
from agentctl.errors import AgentctlError, AtTerminal, Damaged, Next
from agentctl.lean import TYPE_CHECKING, Any, NamedTuple
from agentctl.supervision import failpoints
from agentctl.supervision.worker import deferred
from agentctl.supervision.worker.endings import decision_of
from agentctl.supervision.worker.kinship import ancestors

if TYPE_CHECKING:
    from agentctl.domain.documents.queue import QueueHoldRow


class QueueHold(NamedTuple):
    """Why workers stay in the queue."""

    #: What is held: the queue of a task, with those of the tasks below it, or what is below a worker of that task. For
    #: a worker of another root, the path of its task.
    task_id: str
    instance: str | None
    #: Who holds it; None if the cap is 0.
    by: str | None
    at: str | None

    def in_words(self, tree: TreeDir) -> str:
        """Return what is held, by whom or by what, and since when."""
        if self.by is None:
            return f"maxConcurrentAgents is 0 in {tree.task_file}"
        since = f" since {self.at}" if self.at else ""
        if self.instance is None:
            return f"the queue of {self.task_id} is held by {self.by}{since}"
        return f"{self.instance} above it is paused{since}"

    def next_step(self) -> Next | str:
        """Return what ends the hold, as a next step."""
        if self.by is None:
            return "a number above 0 in its task.yaml ends that"
        if self.instance is None:
            return Next("let the queue go", "", "ends that", task=self.task_id)
        return Next("unpause", self.instance, "ends that", task=self.task_id)

    def to_json(self) -> QueueHoldRow:
        """Return it as rows of tasks have it."""
        if self.instance is None:
            return {"taskId": self.task_id, "by": self.by, "at": self.at}
        return {"taskId": self.task_id, "agentInstance": self.instance, "by": self.by, "at": self.at}


#: The holds of a tree by what they hold: `TASK`, `TASK/INSTANCE`, or the path of a worker of another root.
_Holds = dict[str, QueueHold]


def is_any_held(tree: TreeDir) -> bool:
    """Return whether anybody may hold something in a tree's queue: one look or two, for whoever starts workers."""
    return tree.held.exists() or deferred.are_any()


class QueueHolds:
    """The holds of a tree of tasks at one moment.

    Raises:
        AgentctlError: What is held cannot be known.
    """

    def __init__(self, tree: TreeDir) -> None:
        self._tree = tree
        held = read_holds(tree) if is_any_held(tree) else {}
        self._tasks = {key: hold for key, hold in held.items() if hold.instance is None}
        if known_limits(tree).max_concurrent_agents == 0:
            self._tasks.setdefault(tree.id, QueueHold(tree.id, None, None, None))
        # What has ended is not paused any more, whatever became of the command that was to continue it.
        self._workers = {
            key: hold for key, hold in held.items()
            if hold.instance is not None and decision_of(_worker_at(tree, key)) is None
        }  # fmt: skip
        #: Of each task that was asked for.
        self._known: dict[str, QueueHold | None] = {}

    def of(self, worker: WorkerDir) -> QueueHold | None:
        """Return the hold that keeps a worker in the queue; None if there is none."""
        if not self._tasks and not self._workers:
            return None
        return self.of_start(worker.task.id, ancestors(worker))

    def of_start(self, task_id: str, above: Iterable[WorkerDir]) -> QueueHold | None:
        """Return the hold that keeps a worker of a task in the queue that has these workers above it."""
        if (hold := self.of_task(task_id)) is not None or not self._workers:
            return hold
        return next(filter(None, (self._workers.get(_key_of(self._tree, one)) for one in above)), None)

    def of_task(self, task_id: str) -> QueueHold | None:
        """Return the hold that keeps all workers of a task in the queue: the nearest one, from the task upwards."""
        if not self._tasks:
            return None
        if task_id not in self._known:
            self._known[task_id] = self._nearest(task_id)
        return self._known[task_id]

    def _nearest(self, task_id: str) -> QueueHold | None:
        seen = set[str]()
        while task_id not in seen:
            if task_id in self._tasks:
                return self._tasks[task_id]
            if task_id == self._tree.id:
                return None
            seen.add(task_id)
            config = cached(self._tree.sibling(task_id))
            if config is None or config.parent_task_id is None:
                break
            task_id = config.parent_task_id
        # Which tasks are above it cannot be known: its workers rest while those of any task do.
        return next(iter(self._tasks.values()))


def hold_queue(tree: TreeDir, held: TaskDir | WorkerDir, by: str) -> bool:
    """Hold the queue of a task of a tree, or what is below a worker; return False if that was held already.

    Raises:
        LockTimeout: The queue's lock was not free in time; nothing was changed.
        StorageError: The disk refused, and so did memory.
    """
    key = _key_of(tree, held)

    def with_this(holds: _Holds) -> _Holds:
        return holds if key in holds else {**holds, key: _hold_from(key, {"by": by, "at": now_iso()})}

    return _change(tree, with_this)


def end_hold(tree: TreeDir, held: TaskDir | WorkerDir) -> bool:
    """End a hold; return whether there was one. The caller has the queue looked at afterwards.

    Raises:
        LockTimeout: The queue's lock was not free in time; nothing was changed.
        StorageError: The disk refused, and so did memory.
    """
    key = _key_of(tree, held)
    return is_any_held(tree) and _change(tree, lambda holds: {one: hold for one, hold in holds.items() if one != key})


def forget_holds(tree: TreeDir, workers: Iterable[WorkerDir]) -> None:
    """Forget what is held below workers that are removed (the caller holds the queue's lock)."""
    keys = {_key_of(tree, worker) for worker in workers}
    if is_any_held(tree):
        _change_locked(tree, lambda holds: {one: hold for one, hold in holds.items() if one not in keys})


def _change(tree: TreeDir, change: Callable[[_Holds], _Holds]) -> bool:
    with locked(tree.queue_lock, is_written=False):
        return _change_locked(tree, change)


def _change_locked(tree: TreeDir, change: Callable[[_Holds], _Holds]) -> bool:
    before = read_holds(tree)
    after = change(before)
    if after == before:
        return False
    _put(tree, after)
    failpoints.reached("hold.after-write")
    return True


def write_deferred(tree: TreeDir) -> None:
    """Write what waits in memory to the disk, if it takes it by now (the caller holds the queue's lock)."""
    body = deferred.request(tree, deferred.HOLD)
    if body is not None:
        with contextlib.suppress(AgentctlError, OSError):
            _write(tree, _parsed(tree, body))
            deferred.forget_request(tree, deferred.HOLD, body)


def read_holds(tree: TreeDir) -> _Holds:
    """Return what somebody holds in a tree.

    Raises:
        Damaged: The file cannot be understood.
        StorageError: It cannot be read.
    """
    waiting = deferred.request(tree, deferred.HOLD)
    return _parsed(tree, read_json(tree.held) if waiting is None else waiting)


def _key_of(tree: TreeDir, held: TaskDir | WorkerDir) -> str:
    if isinstance(held, TaskDir):
        return held.id
    return str(held.id) if held.task.path.parent == tree.path.parent else str(held.path)


def _worker_at(tree: TreeDir, key: str) -> WorkerDir:
    if key.startswith("/"):
        return WorkerDir(key)
    task_id, _, instance = key.partition("/")
    return tree.sibling(task_id).worker(instance)


def _parsed(tree: TreeDir, value: Mapping[str, Any] | None) -> _Holds:
    held = {} if value is None else value.get("held")
    if not isinstance(held, dict) or not all(_is_key(key) and isinstance(one, dict) for key, one in held.items()):
        hint = AtTerminal("nothing is started until it is gone: agentctl doctor --fix sets it aside")
        raise Damaged(f"{tree.held} does not say what is held", hint=hint)
    return {key: _hold_from(key, one) for key, one in held.items()}


def _is_key(key: str) -> bool:
    if key.startswith("/"):
        return is_name(os.path.basename(key)) and "\0" not in key
    task_id, slash, instance = key.partition("/")
    return is_name(task_id) and (not slash or is_name(instance))


def _hold_from(key: str, value: Mapping[str, Any]) -> QueueHold:
    by, at = (one if isinstance(one, str) else None for one in (value.get("by"), value.get("at")))
    if key.startswith("/"):
        worker = WorkerDir(key)
        return QueueHold(str(worker.task.path), worker.instance, by or "user", at)
    task_id, _, instance = key.partition("/")
    return QueueHold(task_id, instance or None, by or "user", at)


def _put(tree: TreeDir, holds: _Holds) -> None:
    try:
        _write(tree, holds)
    except (AgentctlError, OSError) as problem:
        try:
            deferred.defer_request(tree, deferred.HOLD, _body_of(holds))
        except (AgentctlError, OSError):
            raise problem from None
        return
    if deferred.are_any():
        deferred.forget_request(tree, deferred.HOLD)


def _write(tree: TreeDir, holds: _Holds) -> None:
    if holds:
        write_whole(tree.held, to_json(_body_of(holds)))
    else:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(tree.held)


def _body_of(holds: _Holds) -> dict[str, Any]:
    return {"held": {key: {"by": hold.by, "at": hold.at} for key, hold in holds.items()}}
