"""Places of idle workers, lent to other workers: who may use one, and how its lender gets to work again.

Lenders form a chain: 1 lends 1.guest, and if its guest is idle too, that one lends 1.guest.guest. A whole chain has one
right to run, which its last worker uses. A lender that goes on is moved behind those that are idle.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from agentctl.adapters.taskdir import TreeDir
from agentctl.domain.names import WorkerId
from agentctl.supervision.dispatch.slots import GUEST, IDLE, LOAN, Survey, guest_place, survey
from agentctl.supervision.queue.places import Place


def idle_place(tree: TreeDir, found: Survey) -> Place | None:
    """Take a place that an idle worker lends; None if there is none. Under the queue's lock, like everything here."""
    return next(_idle_places(tree, found), None)


def count_idle(tree: TreeDir, found: Survey) -> int:
    """Return the number of lent places that are free."""
    count = 0
    for place in _idle_places(tree, found):
        place.let_go()
        count += 1
    return count


def come_back(tree: TreeDir, worker_id: WorkerId) -> bool:
    """Let a worker that no longer lends its place go on in it; False while a guest works in what it has lent."""
    found = survey(tree, 0, 0)
    chains = [_chain(found, place) for place in found.places_of(worker_id)]
    if not all(chains):
        return False
    for chain in chains:
        if len(chain) > 1:
            _put_behind(tree, chain)
    return True


def _chain(found: Survey, place: str) -> list[str]:
    """Return a place and those of its guests, each below the one before; empty if one of them is at work."""
    chain = [place]
    while chain[-1] + GUEST in found.guests:
        chain.append(chain[-1] + GUEST)
        if not found.lends(chain[-1], IDLE):
            return []
    # A host in the middle may just have been killed: the next dispatch moves up whoever is below it.
    has_gap = any(name.startswith(chain[-1] + GUEST) for name in found.guests)
    return [] if has_gap else chain


def _idle_places(tree: TreeDir, found: Survey) -> Iterator[Place]:
    for name in sorted((*found.taken, *found.guests)):
        if _is_lent(found, name):
            place = guest_place(tree, name, found)
            if place is not None:
                yield place


def _is_lent(found: Survey, place: str) -> bool:
    """Return whether a place is lent; a guest's place is lent only while its host lends too, and so on upwards."""
    if not found.lends(place, IDLE):
        return False
    while place.endswith(GUEST):
        place = place.removesuffix(GUEST)
        if not found.lends(place, IDLE, LOAN):
            return False
    return True


def _put_behind(tree: TreeDir, chain: list[str]) -> None:
    """Move the first of a chain behind its last, and all others up by one.

    The locks are on the files, so a worker that is moved need not know. A cut in between leaves a free place with a
    guest, which is moved there like any other.
    """
    os.rename(tree.slots / chain[0], tree.slots / (chain[-1] + GUEST))
    for above, below in zip(chain, [*chain[1:], chain[-1] + GUEST], strict=True):
        os.rename(tree.slots / below, tree.slots / above)
