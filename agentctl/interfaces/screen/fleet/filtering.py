"""The filter of the list: words that a worker has to have, such as `s:blocked a:explore t:login`. Pure."""

from __future__ import annotations

from collections.abc import Callable

from agentctl.domain.worker.need import Need
from agentctl.interfaces.words.filter_words import filter_words, has_words, texts_of
from agentctl.operations.fleet.glance import FleetWorker, Glance

#: What each need is called, in the list and in filters.
NEEDS = {
    Need.NEEDS_YOU: "needs you", Need.REVIEW: "ready for review", Need.FAILED: "failed", Need.WORKING: "working",
    Need.QUEUED: "queued", Need.DONE: "done", Need.EARLIER: "earlier tries",
}  # fmt: skip


def scope_of(task_id: str) -> Callable[[Glance, FleetWorker], bool]:
    """Return whether a worker is of a task, or of one below it."""

    def has(glance: Glance, worker: FleetWorker) -> bool:
        name: str | None = worker.task.id
        seen: set[str] = set()
        while name is not None and name != task_id and name not in seen:  # A forged circle ends it.
            seen.add(name)
            task = glance.tasks.get(name)
            name = None if task is None else task.parent
        return name == task_id

    return has


def filter_of(text: str) -> Callable[[Glance, FleetWorker], bool] | None:
    """Return whether a worker is shown, for a filter as it was typed; None for an empty one, which shows all."""
    words = filter_words(text)
    return (lambda glance, worker: has_words(_texts(glance, worker), words)) if words else None


def _texts(glance: Glance, worker: FleetWorker) -> dict[str, str]:
    task = glance.tasks.get(worker.task.id)
    return texts_of(worker.row, need=NEEDS[worker.need], task=f"{worker.task.id} {task.title if task else ''}")
