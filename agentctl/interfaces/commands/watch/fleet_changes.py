"""Tells what happens to the workers of a root, line by line: nothing that was printed changes any more."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator

from agentctl.adapters.taskdir import Root
from agentctl.domain.names import first_of
from agentctl.domain.text.plaintext import plain
from agentctl.domain.worker.need import Need
from agentctl.interfaces.commands.model.command_model import Shown
from agentctl.interfaces.commands.model.invocation import Invocation
from agentctl.interfaces.commands.watch.sentences import SaidFacts, is_at_or_below, sentences_of
from agentctl.interfaces.screen.fleet.filtering import NEEDS
from agentctl.interfaces.screen.fleet.lines import failed_among, rank_of
from agentctl.lean import TYPE_CHECKING
from agentctl.operations.fleet.fleet import Fleet
from agentctl.operations.fleet.glance import FleetWorker, Glance
from agentctl.operations.fleet.seen import SeenEnds

if TYPE_CHECKING:
    from agentctl.interfaces.commands.model.command_model import Showing

#: How many workers are named at first in each group; those that have ended are only counted.
_MOST = 100
NO_WORKER = "No worker yet: agentctl spawn -- COMMAND starts one"


def changes(call: Invocation, root: Root, top: str | None) -> Showing:
    """Yield the state of now by need, then a line for each change, until this process is interrupted.

    Args:
        top: Only this task and those below it.
    """
    said = SaidFacts()
    with Fleet(root, SeenEnds(root)) as fleet:
        glance = whole_glance(fleet)
        workers = workers_of_view(glance, top)
        note_foreign(call, glance, workers)
        for worker in workers:
            said.new(worker)
        yield Shown(None, _now(workers))
        while True:
            fleet.sleep()
            before, glance = glance, fleet.look()
            if glance is not before:
                for worker in workers_of_view(glance, top):
                    yield from (Shown(None, [fact.text]) for fact in said.new(worker))
                said.forget_others(glance)


def whole_glance(fleet: Fleet) -> Glance:
    """Return what there is, once all of it was read."""
    glance = fleet.look()
    while glance.is_partial:
        fleet.sleep()
        glance = fleet.look()
    return glance


def note_foreign(call: Invocation, glance: Glance, workers: Iterable[FleetWorker]) -> None:
    """Tell which of the tasks that are shown are not this person's own."""
    shown = dict.fromkeys(worker.task.id for worker in workers)
    foreign = [name for name in shown if name in glance.tasks and not glance.tasks[name].is_own]
    if foreign:
        call.note(f"not made here by you, and shown as their files describe them: {plain(first_of(foreign))}")


def workers_of_view(glance: Glance, top: str | None) -> list[FleetWorker]:
    """Return the workers of a task and those below it, by default all: as on the screen, who needs a person first."""
    chosen = [worker for worker in glance.workers.values() if is_at_or_below(glance, worker, top)]
    return sorted(chosen, key=lambda worker: (worker.need, rank_of(worker)))


def _now(workers: list[FleetWorker]) -> Iterator[str]:
    for need, found in by_need(workers).items():
        yield heading(need, found)
        if need < Need.DONE:
            yield from facts_of_first(found, _MOST)
    if not workers:
        yield NO_WORKER


def by_need(workers: Iterable[FleetWorker]) -> dict[Need, list[FleetWorker]]:
    """Return the workers by their need, the most pressing one first."""
    groups: defaultdict[Need, list[FleetWorker]] = defaultdict(list)
    for worker in workers:
        groups[worker.need].append(worker)
    return {need: groups[need] for need in Need if groups[need]}


def heading(need: Need, found: Collection[FleetWorker]) -> str:
    """Return the heading of those that have a need, with their number, and how many of them have failed."""
    failed = 0 if need is Need.FAILED else failed_among(found)
    return f"{NEEDS[need].capitalize()}: {len(found)}" + (f" ({failed} failed)" if failed else "")


def facts_of_first(found: list[FleetWorker], most: int) -> Iterator[str]:
    """Yield what there is to say of the first workers, and how many more there are."""
    yield from (fact.text for worker in found[:most] for fact in sentences_of(worker))
    if len(found) > most:
        yield f"and {len(found) - most} more"
