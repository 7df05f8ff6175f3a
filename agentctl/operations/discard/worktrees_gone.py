"""The worktrees of workers that are to go: they are removed where nothing is lost, and else keep their workers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from agentctl.adapters.taskdir import WorkerDir
from agentctl.errors import AgentctlError
from agentctl.operations.worktree.removing import check_removable, remove_worktree
from agentctl.supervision.worktree.record import known_record


class GoingWorktrees:
    """The worktrees that only workers have which are to go; one that another worker has too stays where it is.

    Args:
        going: The workers that are to go.
    """

    def __init__(self, going: Sequence[WorkerDir]) -> None:
        leaving = {worker.path for worker in going}
        kept: set[str | None] = set()
        for task in {worker.task.path: worker.task for worker in going}.values():
            others = (worker for worker in map(task.worker, task.instances()) if worker.path not in leaving)
            kept.update(map(_path_of, others))
        found = {worker.path: worker for worker in going}.values()
        self._workers = [worker for worker in found if (path := _path_of(worker)) is not None and path not in kept]

    def refusals(self) -> dict[str, AgentctlError]:
        """Return why worktrees hold what is nowhere else, and what to do about it, by the folders of their workers."""
        found: dict[str, AgentctlError] = {}
        for worker in self._workers:
            try:
                check_removable(worker.task, worker.instance)
            except AgentctlError as error:
                found[worker.path] = error
        return found

    def remove(self, but: Iterable[WorkerDir] = ()) -> None:
        """Remove them, except for those of some workers.

        Raises:
            Refused: One of them has changed since.
        """
        left = {worker.path for worker in but}
        for worker in self._workers:
            if worker.path not in left and _path_of(worker) is not None:
                remove_worktree(worker.task, worker.instance)


def _path_of(worker: WorkerDir) -> str | None:
    """Return where the worktree of a worker is; None if it has none, or nothing is left of it and its repository."""
    record = known_record(worker) if worker.worktree.exists() else {}
    path, repository = record.get("path"), record.get("commonDir")
    if not isinstance(path, str) or record.get("removed"):
        return None
    is_any_left = os.path.lexists(path) or not isinstance(repository, str) or os.path.isdir(repository)
    return path if is_any_left else None
