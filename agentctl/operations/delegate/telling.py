"""Tells a worker something, whatever it is by now: a live one gets a message, an ended agent is continued with it."""

from __future__ import annotations

from collections.abc import Sequence

from agentctl.adapters.taskdir import WorkerDir
from agentctl.operations.delegate.resuming import resume_worker
from agentctl.operations.start.request_keys import START, done_by_key
from agentctl.operations.start.requests import Spawned
from agentctl.operations.talk.messaging import deliver_message
from agentctl.supervision.worker.spec import is_for_agent, order_of


def tell_worker(worker: WorkerDir, text: str, *, key: str | None = None, among: Sequence[str] = ()) -> Spawned | str:
    """Return the worker that goes on with a text, or the id of the message that it has become.

    Args:
        key: The same key with the same text tells it once: also if the worker has got the message and ended since.
        among: All that the same request is about, if it is about several.

    Raises:
        Conflict: The key has done something else.
        Refused: It has ended, and it is a command or cannot be continued.
    """
    task, name = worker.task, worker.instance
    done = done_by_key(task, key)
    if done == START or (done is None and worker.has_ended and is_for_agent(order_of(worker))):
        return resume_worker(task, name, text, queue=True, key=key, among=among)
    return deliver_message(task, name, text, key=key, among=among)["messageId"]
