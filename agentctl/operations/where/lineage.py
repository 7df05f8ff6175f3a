"""Which worker a start comes from, proven by the process tree rather than claimed, and how deep it is.

The environment names the caller, but can be unset or set to anything. So the process tree is checked too: every
descendant of a worker has that worker's shim above it (a child subreaper), in spite of new sessions and double forks.
Within one tree of tasks, the deepest of the claimed and the shown workers counts: a lie can only make a start deeper.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from agentctl.adapters import descent, processes
from agentctl.adapters.descent import Ancestry
from agentctl.adapters.files import read_known
from agentctl.adapters.locks import locked
from agentctl.adapters.taskdir import TaskDir, TreeDir, WorkerDir
from agentctl.adapters.taskyaml.cache import cached
from agentctl.adapters.treedir import tree_of
from agentctl.domain.tree.limits import Limits
from agentctl.errors import AgentctlError, Limited, Refused
from agentctl.lean import TYPE_CHECKING, NamedTuple
from agentctl.operations.where.calling import Caller, caller
from agentctl.operations.where.task_config import usable_config
from agentctl.supervision.life.strangers import guarded_by, is_noted, marked_by
from agentctl.supervision.worker.cancel_request import is_asked
from agentctl.supervision.worker.kinship import ancestors, barred_by, enlist_child
from agentctl.supervision.worker.spec import held_limits, read_spec

if TYPE_CHECKING:
    from agentctl.errors import Hint

#: No honest tree of tasks is as deep; a forged one may be a cycle.
_MOST_TASKS = 128
_NOT_YOURS = "do the work here, or leave it to whoever started you: only a person lifts this limit"


class Standing(NamedTuple):
    """What a start inherits from the worker that it comes from."""

    parent: Caller | None
    depth: int
    #: The limits that its own starts will be held to.
    held: Mapping[str, float]


def true_caller() -> Caller | None:
    """Return the worker in which this process runs; None outside of any worker."""
    shown = _shown_to(os.getpid())
    said = caller()
    if said is not None and (not shown or _is_of_one_tree(shown[0], said.worker)):
        return _deepest([*shown, said.worker])
    return _deepest(shown)


def shown_caller() -> Caller | None:
    """Return the worker in which this process runs, for decisions in which a lie about that must not give more power.

    What the environment claims counts only where the process tree shows nothing.
    """
    return _deepest(_shown_to(os.getpid())) or true_caller()


def shown_caller_of(pid: int) -> Caller | None:
    """Return the worker in which another process runs, as `shown_caller` does for this one; it is looked up anew.

    Raises:
        Refused: Those above it keep ending, so nobody can tell.
    """
    return _deepest(_belonging(pid)) or _claimed(processes.environment_of(pid))


def _claimed(environ: Mapping[bytes, bytes]) -> Caller | None:
    """Return the worker that an environment claims to be in, if there is such a worker."""
    try:
        said = caller({os.fsdecode(name): os.fsdecode(value) for name, value in environ.items()})
    except AgentctlError:  # One of them cannot be a name.
        return None
    return said if said is not None and said.worker.spec.exists() else None


def _deepest(found: Sequence[WorkerDir]) -> Caller | None:
    there = [worker for worker in found if worker.spec.exists()]
    if not there:
        return None
    deepest = max(there, key=_depth_of)  # Of equals the first: what is shown counts before what is claimed.
    return Caller(deepest.task, deepest.instance)


def _is_of_one_tree(one: WorkerDir, other: WorkerDir) -> bool:
    return tree_of(one.task).is_at(tree_of(other.task).path)


def who() -> str:
    """Return who acts, for the `by` of an event: the calling worker, if that is proven, else `user`.

    In a sandbox with a pid namespace of its own, the worker cannot be known: `sandbox`.
    """
    found = true_caller()
    if found is not None:
        return found.instance
    return "sandbox" if processes.is_in_sandbox() else "user"


class _Above(NamedTuple):
    """A worker above a process: by its shim, or by its first process where the shim was killed."""

    worker: WorkerDir
    tree: TreeDir
    shim: processes.Identity | None


@lru_cache(maxsize=1)  # A process stays below the worker that it was started in, whatever ends above it.
def _shown_to(pid: int) -> Sequence[WorkerDir]:
    """Return the workers that this process may belong to, looked up once; `pid` is its own, which a fork changes."""
    return _belonging(pid)


def _belonging(pid: int) -> Sequence[WorkerDir]:
    """Return the workers that a process may belong to: first one whose shim is above it, then those of its marks.

    The topmost shim is real: no worker can have made it. A shim below it may be real too, and just launched by the
    upper one, as every shim launches the next worker in the queue. Or it may be a process of the upper worker, in a
    tree of tasks that this worker has made up. It is real if each tree above proves that, by a place or by a note. Only
    the lowest real shim counts, and a mark counts only if it is of the same tree as that one.
    """
    if not processes.LINUX:
        return ()
    looked = descent.judged(pid, _above)
    if looked is None:
        raise Refused(f"the processes above process {pid} keep ending, so nobody can tell whose it is", "try again")
    above, marked = looked
    real: list[_Above] = []
    for one in reversed(above):
        if all(upper.tree.is_at(one.tree.path) or is_noted(upper.tree, one.shim) for upper in real):
            real.append(one)
    shown = [real[-1].worker] if real else []
    return (*shown, *(worker for worker in marked if not shown or _is_of_one_tree(shown[0], worker)))


def _above(line: Ancestry) -> tuple[list[_Above], list[WorkerDir]]:
    """Return the workers that seem to be in the line of a process, and those whose marks are; nearest first."""
    above, marked = [], []
    for pid, _ in line:
        guarded = guarded_by(pid)
        worker = guarded or marked_by(processes.environment_of(pid))  # Marks: for a worker whose shim was killed.
        if worker is None or not _has_readable_spec(worker):
            continue
        if guarded is not None:
            above.append(_Above(worker, tree_of(worker.task), processes.identify(pid)))
        elif read_known(worker.process).get("pid") == pid:
            # Above a worker's first process is its shim, or the process that adopted it when the shim was killed.
            above.append(_Above(worker, tree_of(worker.task), None))
        else:
            marked.append(worker)
    return above, marked


def _has_readable_spec(worker: WorkerDir) -> bool:
    """Return whether a worker's spec can be read: otherwise its depth and its parent are unknown."""
    try:
        read_spec(worker.spec)
    except AgentctlError:
        return False
    return True


def _depth_of(worker: WorkerDir) -> int:
    try:
        return read_spec(worker.spec).depth
    except AgentctlError:
        return 0


def depth_in(task: TaskDir, parent: Caller | None) -> int:
    """Return the depth of a worker that `parent` starts in a task: at least the number of tasks above that task.

    Raises:
        Refused: It is deeper than it may be, or the parent has ended or is being cancelled.
    """
    floor = sum(1 for _ in tasks_above(task))
    if parent is None:
        return floor
    refuse_if_barred(parent.worker)
    depth = max(floor, _depth_of(parent.worker) + 1)
    limit = depth_limit(task, parent)
    if depth > limit:
        raise limited(
            f"Maximum subagent depth exceeded: {parent.instance} is at depth {depth - 1}, maxDepth is {limit}",
            f"raise maxDepth in {_top_of(task).task_file}",
        )
    return depth


def limited(message: str, how: Hint) -> Limited:
    """Return the refusal at a limit; `how` says how to lift it, and is shown to a person but not to a worker."""
    return Limited(message, hint=how if true_caller() is None else _NOT_YOURS)


def depth_limit(task: TaskDir, parent: Caller | None) -> int:
    """Return how deep workers may be in a task: the limit of its root, unless a task in between is stricter.

    A worker that starts something in a tree of its own making is still held to the tree that it is in, to those of
    the workers above it, and to the limits at the time of its own start, whatever it has written into a file since.
    """
    tasks = {one.path: one for one in (task, *tasks_above(task))}
    for above in (parent.worker, *ancestors(parent.worker)) if parent is not None else ():
        if above.task.path not in tasks and above.task.exists:
            tasks |= {one.path: one for one in (above.task, *tasks_above(above.task))}
    now = min(usable_config(one).limits.max_depth for one in tasks.values())
    return now if parent is None else Limits(max_depth=now).no_looser_than(held_limits(parent.worker)).max_depth


def tasks_above(task: TaskDir) -> Iterator[TaskDir]:
    """Yield the tasks above a sub-task, nearest first."""
    for _ in range(_MOST_TASKS):
        config = cached(task)
        if config is None or not config.parent_task_id or not task.sibling(config.parent_task_id).exists:
            return
        task = task.sibling(config.parent_task_id)
        yield task


def _top_of(task: TaskDir) -> TaskDir:
    return [task, *tasks_above(task)][-1]


def refuse_if_barred(parent: WorkerDir) -> None:
    """Raise `Refused` where the parent has ended, or it or a worker above it is being cancelled."""
    if parent.has_ended or is_asked(parent):
        raise Refused(f"{parent.instance} has ended or is being cancelled: it starts nothing new")
    above = barred_by(parent)
    if above is not None:
        raise Refused(f"{above.instance}, which is above {parent.instance}, is being cancelled: nothing new is started")


@contextlib.contextmanager
def queues_locked(*trees: TreeDir) -> Iterator[None]:
    """Hold the locks of the queues of trees, in an order that is the same for all who hold several."""
    with contextlib.ExitStack() as held:
        for lock in sorted({os.path.join(os.path.realpath(one.path), one.queue_lock.name) for one in trees}):
            held.enter_context(locked(lock))
        yield


def enlist_all(parent: Caller | None, children: Sequence[WorkerDir]) -> None:
    """Record children in their parent's folder, unless the parent is barred by now (the caller holds both locks)."""
    if parent is not None:
        refuse_if_barred(parent.worker)
        for child in children:
            enlist_child(parent.worker, child)
