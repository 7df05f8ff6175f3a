"""Which workers have a descendant that asks a question: a parent that waits for the answer would look busy."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Set

from agentctl.adapters.clock import monotonic
from agentctl.adapters.taskdir import TaskDir
from agentctl.adapters.taskyaml.cache import cached
from agentctl.domain.projection import TaskView
from agentctl.domain.states import Status
from agentctl.lean import NamedTuple
from agentctl.operations.where.folding import fold
from agentctl.operations.where.ownership import is_own
from agentctl.operations.where.subtasks_below import subtasks_of
from agentctl.supervision.worker.questions import open_questions, read_question

#: A forged circle of tasks ends there; no honest tree is as deep.
_DEEPEST = 64


class PendingQuestion(NamedTuple):
    """An open question, by where it stands."""

    task_id: str
    instance: str
    id: str


#: The questions that are open below each worker. Below "" stand all of them but those of workers that the person has
#: started in the task itself: these are `blocked` in plain sight.
Below = Mapping[str, Set[PendingQuestion]]


def asked_below(task: TaskDir, view: TaskView) -> Below:
    """Return the questions that are open below the workers of a task, in its sub-tasks too."""
    found: defaultdict[str, set[PendingQuestion]] = defaultdict(set)
    for worker in view.workers.values():
        if worker.status is Status.BLOCKED and worker.parent:
            _add(found, view, worker.parent, _open(task, worker.instance))
    for below in subtasks_of(task, view.subtasks):
        parent = cached(below)
        _add(found, view, parent.parent_instance if parent else None, _in_all_of(below, _DEEPEST))
    return found


def _add(
    found: defaultdict[str, set[PendingQuestion]], view: TaskView, name: str | None, asked: Iterable[PendingQuestion]
) -> None:
    """Put questions down for a worker and those that it descends from."""
    questions = set(asked)
    if not questions:
        return
    found[""] |= questions
    seen: set[str] = set()
    while name is not None and name not in seen:
        seen.add(name)
        found[name] |= questions
        above = view.workers.get(name)
        name = above.parent if above is not None else None


def _in_all_of(task: TaskDir, depth: int) -> Iterator[PendingQuestion]:
    """Yield the questions that are open in a task and all below it."""
    view = fold(task)
    for worker in view.workers.values():
        if worker.status is Status.BLOCKED:
            yield from _open(task, worker.instance)
    for below in subtasks_of(task, view.subtasks) if depth else ():
        yield from _in_all_of(below, depth - 1)


def _open(task: TaskDir, instance: str) -> Iterator[PendingQuestion]:
    """Yield the open questions of a worker; what a kept agent waits with for its next message is none."""
    worker = task.worker(instance)
    for name in open_questions(worker) if is_own(task) else ():
        body = read_question(worker, name)
        if body is not None and not body.get("idle"):
            yield PendingQuestion(task.id, instance, name)


class Askers:
    """The same for a wait: no event of the task itself tells of its sub-tasks, so it is looked at now and then."""

    def __init__(self) -> None:
        self._next_look = 0.0
        self._found: Below = {}

    def below(self, task: TaskDir, view: TaskView) -> Below:
        """Return the questions that are open below the workers of a task, as of the last look."""
        if monotonic() >= self._next_look:
            from agentctl.adapters.watch import SAFETY_S  # Whoever waits has it; `list` waits for nothing.

            self._found = asked_below(task, view)
            self._next_look = monotonic() + SAFETY_S
        return self._found

    def asked(self, task: TaskDir, view: TaskView, instances: Collection[str] | None) -> list[PendingQuestion]:
        """Return the questions that are open below some workers, for None below all of them, and their own."""
        blocked = [one.instance for one in view.workers.values() if one.status is Status.BLOCKED]
        own = [asked for name in blocked if instances is None or name in instances for asked in _open(task, name)]
        return sorted({*own, *below_any(self.below(task, view), instances)})


def below_any(below: Below, instances: Iterable[str] | None) -> list[PendingQuestion]:
    """Return the questions that are open below some workers, below all of a task for None; in a fixed order."""
    found = below.get("", ()) if instances is None else {one for name in instances for one in below.get(name, ())}
    return sorted(found)
