"""The open questions below each worker: without them, a parent that waits for an asking descendant looks busy."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Set

from agentctl.adapters.clock import monotonic
from agentctl.adapters.taskdir import TaskDir
from agentctl.adapters.taskyaml.cache import cached
from agentctl.domain.states import Status
from agentctl.domain.worker.projection import TaskView
from agentctl.lean import NamedTuple
from agentctl.operations.show.unreadable import noting_unreadable
from agentctl.operations.where.folding import fold
from agentctl.operations.where.ownership import is_own
from agentctl.operations.where.subtasks_below import subtasks_of

#: A forged cycle of tasks is followed this far; no genuine tree is as deep.
_DEEPEST = 64


class PendingQuestion(NamedTuple):
    """An open question: its task, its worker and its id."""

    task_id: str
    instance: str
    id: str
    #: What it asks, on one line, cut.
    text: str = ""
    #: Which answers whoever reads that line may give.
    answers: str = ""


#: The open questions below each worker. The key "" has all of them except those of workers that the user started in
#: the task itself: these are visibly `blocked`.
Below = Mapping[str, Set[PendingQuestion]]


def asked_below(task: TaskDir, view: TaskView) -> Below:
    """Return the open questions below the workers of a task, also in its sub-tasks."""
    found: defaultdict[str, set[PendingQuestion]] = defaultdict(set)
    for worker in view.workers.values():
        if worker.status is Status.BLOCKED and worker.parent:
            with noting_unreadable(worker):
                _add(found, view, worker.parent, _open(task, worker.instance))
    for below in subtasks_of(task, view.subtasks):
        parent = cached(below)
        _add(found, view, parent.parent_instance if parent else None, _in_all_of(below, _DEEPEST))
    return found


def _add(
    found: defaultdict[str, set[PendingQuestion]], view: TaskView, name: str | None, asked: Iterable[PendingQuestion]
) -> None:
    """Add questions for a worker and its ancestors."""
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
    """Yield the open questions of a task and of all tasks below it."""
    view = fold(task)
    for worker in view.workers.values():
        if worker.status is Status.BLOCKED:
            yield from _open(task, worker.instance)
    for below in subtasks_of(task, view.subtasks) if depth else ():
        yield from _in_all_of(below, depth - 1)


def _open(task: TaskDir, instance: str) -> Iterator[PendingQuestion]:
    """Yield the open questions of a worker, but not the one with which an idle agent waits for its next message."""
    from agentctl.domain.answers import answers_in_words  # Mostly nobody asks.
    from agentctl.domain.question import in_one_line
    from agentctl.supervision.worker.questions import open_questions, read_question

    worker = task.worker(instance)
    for name in open_questions(worker) if is_own(task) else ():
        question = read_question(worker, name)
        if question is not None and not question.idle:
            line = in_one_line(question)
            yield PendingQuestion(task.id, instance, name, line.text, answers_in_words(question, line))


class Askers:
    """The open questions for a wait. A task's log has no event for those of its sub-tasks, so it looks periodically."""

    def __init__(self) -> None:
        self._next_look = 0.0
        self._found: Below = {}

    def below(self, task: TaskDir, view: TaskView) -> Below:
        """Return the open questions below the workers of a task, as of the last look."""
        if monotonic() >= self._next_look:
            from agentctl.adapters.watch import SAFETY_S  # Not above: only a wait has it loaded, `list` does not.

            self._found = asked_below(task, view)
            self._next_look = monotonic() + SAFETY_S
        return self._found

    def asked(
        self,
        task: TaskDir,
        view: TaskView,
        instances: Collection[str] | None,
        above: Collection[str] | None,
    ) -> list[PendingQuestion]:
        """Return the open questions of some workers, and below some; None means all workers."""
        own = list[PendingQuestion]()
        for worker in view.workers.values():
            if worker.status is Status.BLOCKED and (instances is None or worker.instance in instances):
                with noting_unreadable(worker):
                    own += _open(task, worker.instance)
        return sorted({*own, *below_any(self.below(task, view), above)})


def below_any(below: Below, instances: Iterable[str] | None) -> list[PendingQuestion]:
    """Return the open questions below some workers, in a fixed order; None means all workers of the task."""
    found = below.get("", ()) if instances is None else {one for name in instances for one in below.get(name, ())}
    return sorted(found)
