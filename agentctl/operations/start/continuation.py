"""The order of a resumed agent: to go on in its session, or to begin again where it had not said anything yet."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from agentctl.adapters.files import read_known
from agentctl.adapters.taskdir import WorkerDir
from agentctl.domain.states import Status
from agentctl.drivers.order import Order
from agentctl.operations.show.further_runs import has_spoken
from agentctl.supervision.worker.endings import status_at_end

_GO_ON = "Go on from where you were."
_INTERRUPTED = f"You were interrupted before you had finished. {_GO_ON}"


def continued(worker: WorkerDir, order: Order, session: str, texts: Sequence[str] = ()) -> Order:
    """Return the order of the run that continues where this agent's last one ended.

    A program saves its session a moment after it got a prompt. One that was killed before the first word of its model
    may have no session yet: then the next run gets all prompts again, and nothing is lost.

    Args:
        session: The vendor's session of that run.
        texts: The new prompts. Without any, the agent is told to go on, and whether it was interrupted.
    """
    if has_spoken(worker):
        used = read_known(worker.session).get("used")
        had_finished = status_at_end(worker) is Status.COMPLETED
        prompt = "\n\n".join(texts or [_GO_ON if had_finished else _INTERRUPTED])
        return order._replace(prompt=prompt, session=None, resume=session, used_before=used)
    anew = None if order.resume else str(uuid.uuid4())
    return order._replace(prompt="\n\n".join([order.prompt, *texts]), session=anew)
