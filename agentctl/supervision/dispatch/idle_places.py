"""Places of idle workers, lent to other workers: who may use one, and how its lender gets to work again.

Lenders form a chain: 1 lends 1.guest, and if its guest is idle too, that one lends 1.guest.guest. A whole chain has one
right to run, which its last worker uses. A lender that goes on is moved behind those that are idle.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from agentctl.adapters.taskdir import TreeDir
from agentctl.supervision.dispatch.slots import GUEST, IDLE, LOAN, follow_lenders, guest_place, is_lent
from agentctl.supervision.queue.places import Place


def idle_place(tree: TreeDir) -> Place | None:
    """Take a place that an idle worker lends; None if there is none. Under the queue's lock, like everything here."""
    return next(_idle_places(tree), None)


def count_idle(tree: TreeDir) -> int:
    """Return the number of lent places that are free."""
    count = 0
    for place in _idle_places(tree):
        place.let_go()
        count += 1
    return count


def come_back(tree: TreeDir, place: str) -> bool:
    """Let a worker that no longer lends its place go on in it; False while a guest works in what it has lent."""
    chain = [place]
    while (free := guest_place(tree, chain[-1])) is None:
        chain.append(chain[-1] + GUEST)
        if not is_lent(tree, chain[-1], IDLE):
            return False
    free.let_go()
    if len(chain) > 1:
        _put_behind(tree, chain)
    return True


def _idle_places(tree: TreeDir) -> Iterator[Place]:
    for name in sorted(os.listdir(tree.slots)):
        if name.endswith(IDLE) and _is_lent(tree, name.removesuffix(IDLE)):
            place = guest_place(tree, name.removesuffix(IDLE))
            if place is not None:
                yield place


def _is_lent(tree: TreeDir, place: str) -> bool:
    """Return whether a place is lent; a guest's place is lent only while its host lends too, and so on upwards."""
    if not is_lent(tree, place, IDLE):
        return False
    while place.endswith(GUEST):
        place = place.removesuffix(GUEST)
        if not is_lent(tree, place, IDLE, LOAN):
            return False
    return True


def _put_behind(tree: TreeDir, chain: list[str]) -> None:
    """Move the first of a chain behind its last, and all others up by one; their loans follow them.

    The locks are on the files, so a worker that is moved need not know. A cut in between leaves a free place with a
    guest, which is moved there like any other.
    """
    os.rename(tree.slots / chain[0], tree.slots / (chain[-1] + GUEST))
    for above, below in zip(chain, [*chain[1:], chain[-1] + GUEST], strict=True):
        os.rename(tree.slots / below, tree.slots / above)
    follow_lenders(tree)
