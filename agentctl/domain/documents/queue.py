"""What is told of a queue."""

from __future__ import annotations

from typing import NotRequired

from typing_extensions import TypedDict


class QueueHoldRow(TypedDict):
    """What holds a queue."""

    #: The task itself, or one above it.
    taskId: str
    #: The worker below which nothing is started; not there where the queue of a task is held.
    agentInstance: NotRequired[str]
    #: Who holds it; null if `maxConcurrentAgents` is 0.
    by: str | None
    at: str | None
