"""The row of a worker in `list --json`: its keys, and what each of them holds."""

# ruff: noqa: N815 - the keys are spelled as in the JSON

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agentctl.domain.states import Status
from agentctl.lean import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import NotRequired, TypedDict

    from typing_extensions import ReadOnly
else:
    TypedDict = dict  # A literal of such a type is a dict anyway; `typing` would take 5 ms.

    class ReadOnly:
        """Stands in for the qualifiers of a key, for programs that evaluate the annotations."""

        def __class_getitem__(cls, kind):
            return kind

    NotRequired = ReadOnly


class WorkerRow(TypedDict):
    """A worker, or a sub-agent that is only observed, as `list`, `wait-all` and `tree` show it.

    A dict and not a named tuple, since it is made to be printed: for 10,000 workers it takes 9.0 ms, a record 16.1 ms.
    mypy checks its keys, and that nothing changes it.
    """

    #: Where rows of several tasks stand together.
    taskId: NotRequired[ReadOnly[str]]
    agentInstance: ReadOnly[str]
    agent: ReadOnly[str]
    status: ReadOnly[Status]
    reason: ReadOnly[str | None]
    message: ReadOnly[str | None]
    pid: ReadOnly[int | None]
    attempt: ReadOnly[int]
    paused: ReadOnly[bool]
    stalled: ReadOnly[bool]
    parked: ReadOnly[bool]
    #: {account, until, window} of the account that it waits for in the queue.
    awaitsAccount: ReadOnly[dict[str, Any] | None]
    driver: ReadOnly[str | None]
    #: `own` where the person's own settings of its program count; null for any other policy.
    permissions: ReadOnly[str | None]
    usage: ReadOnly[dict[str, Any] | None]
    agentId: ReadOnly[str | None]
    health: ReadOnly[str | None]
    parent: ReadOnly[str | None]
    depth: ReadOnly[int]
    queuedAt: ReadOnly[str | None]
    startedAt: ReadOnly[str | None]
    endedAt: ReadOnly[str | None]
    durationSeconds: ReadOnly[float | None]
    exitCode: ReadOnly[int | None]
    signal: ReadOnly[str | None]
    #: {at, percent, text}: the last report of its progress.
    progress: ReadOnly[dict[str, Any] | None]
    survivors: ReadOnly[Sequence[dict[str, Any]]]
    awaitsChildren: ReadOnly[bool]
    uncollected: ReadOnly[int]
    command: ReadOnly[str]
    #: How many questions are open below it.
    askedBelow: ReadOnly[int]
    #: Where it is, of a worker that runs on a node (`operations.show.placements`); other rows do not have it.
    placement: NotRequired[ReadOnly[dict[str, Any]]]
    #: {problem, end, paused}: what the disk refuses of it, while it does; other rows do not have it.
    refused: NotRequired[ReadOnly[Mapping[str, Any]]]
    #: What of it cannot be read, so that it is not known how it is; other rows do not have it.
    unreadable: NotRequired[ReadOnly[str]]
    #: True of a sub-agent of a program that a person runs by hand; other rows do not have it.
    observed: NotRequired[ReadOnly[bool]]


#: A row of which nothing is known: each row is made from it. Copying it and filling in the rest is faster than
#: a literal with all keys (12.8 ms instead of 16.1 for 10,000 workers).
BLANK: WorkerRow = {
    "agentInstance": "", "agent": "", "status": Status.QUEUED, "reason": None, "message": None, "pid": None,
    "attempt": 1, "paused": False, "stalled": False, "parked": False, "awaitsAccount": None, "driver": None,
    "permissions": None,
    "usage": None, "agentId": None, "health": None, "parent": None, "depth": 0, "queuedAt": None, "startedAt": None,
    "endedAt": None, "durationSeconds": None, "exitCode": None, "signal": None, "progress": None, "survivors": (),
    "awaitsChildren": False, "uncollected": 0, "command": "", "askedBelow": 0,
}  # fmt: skip
