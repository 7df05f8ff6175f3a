"""Tells what happens to the workers of a root, line by line: nothing that was printed changes any more."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

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


def changes(call: Invocation, root: Root, top: str | None) -> Showing:
    """Yield the state of now by need, then a line for each change, until this process is interrupted.

    Args:
        top: Only this task and those below it.
    """
    said = SaidFacts()
    with Fleet(root, SeenEnds(root)) as fleet:
        glance = fleet.look()
        while glance.is_partial:
            fleet.sleep()
            glance = fleet.look()
        workers = _chosen(glance, top)
        _note_foreign(call, glance, workers)
        for worker in workers:
            said.new(worker)
        yield Shown(None, _now(workers))
        while True:
            fleet.sleep()
            before, glance = glance, fleet.look()
            if glance is not before:
                for worker in _chosen(glance, top):
                    yield from (Shown(None, [fact.text]) for fact in said.new(worker))
                said.forget_others(glance)


def _note_foreign(call: Invocation, glance: Glance, workers: Iterable[FleetWorker]) -> None:
    shown = dict.fromkeys(worker.task.id for worker in workers)
    foreign = [name for name in shown if name in glance.tasks and not glance.tasks[name].is_own]
    if foreign:
        call.note(f"not made here by you, and shown as their files describe them: {plain(first_of(foreign))}")


def _chosen(glance: Glance, top: str | None) -> list[FleetWorker]:
    """Return the workers that are shown, those that need a person first, in the order of the screen."""
    chosen = [worker for worker in glance.workers.values() if is_at_or_below(glance, worker, top)]
    return sorted(chosen, key=lambda worker: (worker.need, rank_of(worker)))


def _now(workers: list[FleetWorker]) -> Iterator[str]:
    """Yield a heading for each need, and the facts of the workers that have it."""
    groups: defaultdict[Need, list[FleetWorker]] = defaultdict(list)
    for worker in workers:
        groups[worker.need].append(worker)
    for need in Need:
        found = groups[need]
        failed = 0 if need is Need.FAILED else failed_among(found)
        if found:
            yield f"{NEEDS[need].capitalize()}: {len(found)}" + (f" ({failed} failed)" if failed else "")
        if need < Need.DONE:
            yield from (fact.text for worker in found[:_MOST] for fact in sentences_of(worker))
            if len(found) > _MOST:
                yield f"and {len(found) - _MOST} more"
    if not workers:
        yield "No worker yet: agentctl spawn -- COMMAND starts one"
