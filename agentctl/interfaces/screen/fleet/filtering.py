"""The filter of the list: words that a worker has to have, such as `s:blocked a:explore t:login`. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Callable

from agentctl.domain.worker.need import Need
from agentctl.interfaces.words.worker import full_standing
from agentctl.lean import NamedTuple
from agentctl.operations.fleet.glance import FleetWorker, Glance

#: What each need is called, in the list and in filters.
NEEDS = {
    Need.NEEDS_YOU: "needs you", Need.REVIEW: "ready for review", Need.FAILED: "failed", Need.WORKING: "working",
    Need.QUEUED: "queued", Need.DONE: "done",
}  # fmt: skip


class Word(NamedTuple):
    """One word of a filter: where it is looked for (empty: anywhere), and whether it must be missing."""

    where: str
    text: str
    is_negated: bool


def words_of(text: str) -> list[Word]:
    """Return the words of a filter. One with spaces stands in quotes; one after `-` must be missing.

    >>> words_of("s:blocked -a:explore 'log in'")
    [Word(where='s', text='blocked', is_negated=False), Word(where='a', text='explore', is_negated=True), \
Word(where='', text='log in', is_negated=False)]
    """
    try:
        parts = shlex.split(text)
    except ValueError:  # A quote that is not closed yet.
        parts = text.split()
    found = []
    for part in parts:
        is_negated = part.startswith("-") and len(part) > 1
        word = part[1:] if is_negated else part
        where, colon, rest = word.partition(":")
        is_known = bool(colon) and where in _PLACES
        found.append(Word(where if is_known else "", (rest if is_known else word).lower(), is_negated))
    return found


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
    words = words_of(text)
    if not words:
        return None

    def shows(glance: Glance, worker: FleetWorker) -> bool:
        return all(_has(glance, worker, word) is not word.is_negated for word in words)

    return shows


def _has(glance: Glance, worker: FleetWorker, word: Word) -> bool:
    places = [_PLACES[word.where]] if word.where else list(_PLACES.values())
    return any(word.text in place(glance, worker).lower() for place in places)


def _state(glance: Glance, worker: FleetWorker) -> str:
    return f"{worker.row['status']} {NEEDS[worker.need]} {full_standing(worker.row) or ''}"


def _agent(glance: Glance, worker: FleetWorker) -> str:
    return f"{worker.row['agent']} {worker.row['driver'] or ''}"


def _task(glance: Glance, worker: FleetWorker) -> str:
    task = glance.tasks.get(worker.task.id)
    return f"{worker.task.id} {task.title if task else ''}"


def _name(glance: Glance, worker: FleetWorker) -> str:
    return f"{worker.row['agentInstance']} {worker.row['command']}"


#: The letter before the colon, and what it looks at.
_PLACES: dict[str, Callable[[Glance, FleetWorker], str]] = {"s": _state, "a": _agent, "t": _task, "n": _name}
