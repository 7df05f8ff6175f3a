"""Vigils over a task and the sub-tasks below it, with one sleep."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import TracebackType

from agentctl.adapters.taskdir import TaskDir
from agentctl.adapters.watch import Watch
from agentctl.domain.projection import TaskView
from agentctl.operations.vigil import Vigil
from agentctl.supervision.dispatch import Lender


class Vigils:
    """Views of tasks that are brought up to date together; sub-tasks that are made meanwhile are taken in.

    Args:
        recursive: Watch the sub-tasks too, and theirs.
        others: Some tasks of the same tree that are watched too, whatever else there is.
    """

    def __init__(self, task: TaskDir, *, recursive: bool = False, others: Iterable[TaskDir] = ()) -> None:
        self.watch = Watch()
        self.top = Vigil(task, self.watch)
        self._all = {task.id: self.top} | {other.id: Vigil(other, self.watch) for other in others}
        self._is_recursive = recursive

    def update(self) -> list[tuple[Vigil, TaskView]]:
        """Return each task's vigil with its view as of now, a task before those below it."""
        return [(vigil, vigil.view) for vigil in self._updated()]

    def _updated(self) -> Iterator[Vigil]:
        found = [self.top] if self._is_recursive else list(self._all.values())
        for vigil in found:
            view = vigil.update()
            yield vigil
            if self._is_recursive and view.subtasks:
                from agentctl.operations.subtree import subtasks_of  # Few tasks have sub-tasks.

                for below in subtasks_of(vigil.task, view.subtasks):
                    if below.id not in self._all:
                        self._all[below.id] = Vigil(below, self.watch)
                    if self._all[below.id] not in found:
                        found.append(self._all[below.id])

    def run_queue(self, lender: Lender | None) -> None:
        """Start what can start; all tasks of a tree have one queue."""
        for vigil in [self.top] if lender is not None else self._all.values():
            vigil.run_queue(lender)

    def sleep(self, timeout_s: float | None, others: Iterable[int] = ()) -> list[int]:
        """Sleep until something may have changed, or one of some `others` is readable; return what is readable."""
        limit = min(vigil.until_look() for vigil in self._all.values())
        sentinels = [fd for vigil in self._all.values() for fd in vigil.sentinels()]
        ended = self.watch.sleep(limit if timeout_s is None else min(limit, timeout_s), [*sentinels, *others])
        for vigil in self._all.values():
            vigil.woken(ended)
        return ended

    def __enter__(self) -> Vigils:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for vigil in self._all.values():
            vigil.__exit__(kind, error, trace)
