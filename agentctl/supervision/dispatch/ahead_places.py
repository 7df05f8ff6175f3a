"""Places beyond the slots, for workers that wait in an engine's queue before it is their turn here.

Such a worker has a shim and a launch, but begins on its node only once it has a slot. Its place is that of a guest
without a host, `slots/ahead-N.guest`: it gets the next free slot like any other guest, before the queue is looked at.
"""

from __future__ import annotations

from agentctl.adapters.files import read_known
from agentctl.adapters.taskdir import TreeDir
from agentctl.domain.names import WorkerId
from agentctl.supervision.dispatch.slots import AHEAD, Survey, guest_place
from agentctl.supervision.queue.places import Place


def ahead_place(tree: TreeDir, worker_id: WorkerId, found: Survey) -> Place | None:
    """Take a place beyond the slots for a worker; None if it may have none, or none is free (the queue is locked)."""
    placement = read_known(tree.worker_at(worker_id).spec).get("placement")
    many = placement.get("ahead") if isinstance(placement, dict) else 0
    for number in range(1, (many if isinstance(many, int) else 0) + 1):
        place = guest_place(tree, f"{AHEAD}{number}", found)
        if place is not None:
            return place
    return None
