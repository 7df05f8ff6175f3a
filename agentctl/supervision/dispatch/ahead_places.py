"""Places beyond the slots, for workers that wait in an engine's queue before it is their turn here.

Such a worker has a shim and a launch, but begins on its node only once it has a slot. Its place is that of a guest
without a host, `slots/ahead-N.guest`: it gets the next free slot like any other guest, before the queue is looked at.
"""

from __future__ import annotations

from agentctl.adapters.files import read_known
from agentctl.adapters.locks import try_lock
from agentctl.adapters.taskdir import TreeDir
from agentctl.domain.names import WorkerId
from agentctl.supervision.dispatch.slots import AHEAD, GUEST, is_still_there
from agentctl.supervision.queue.places import Place, read_occupant


def ahead_place(tree: TreeDir, worker_id: WorkerId) -> Place | None:
    """Take a place beyond the slots for a worker; None if it may have none, or none is free (the queue is locked)."""
    placement = read_known(tree.worker_at(worker_id).spec).get("placement")
    many = placement.get("ahead") if isinstance(placement, dict) else 0
    for number in range(1, (many if isinstance(many, int) else 0) + 1):
        path = tree.slots / f"{AHEAD}{number}{GUEST}"
        fd = try_lock(path)
        if fd is None:
            continue
        occupant = read_occupant(path)
        if occupant is None or not is_still_there(tree, occupant):
            return Place(fd)
        Place(fd).let_go()
    return None
