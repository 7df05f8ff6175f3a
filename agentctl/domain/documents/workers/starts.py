"""What is shown of workers that were started, and of sub-tasks."""

# ruff: noqa: N815 - the keys are spelled as in the JSON

from __future__ import annotations

from typing import NotRequired, TypeAlias

from typing_extensions import TypedDict

from agentctl.domain.documents.workers.worker import CutText, WhereWhole
from agentctl.domain.states import EndStatus, Status


class MadeWorktree(TypedDict):
    """The worktree that was made for a worker."""

    path: str
    branch: str


class StartedWorker(TypedDict):
    """A worker that a request has started, or put into the queue, or found."""

    agentInstance: str
    pid: int | None
    taskId: str
    #: It is an earlier worker: of the same key, or of the same work.
    reused: bool
    #: If there is something to say.
    message: NotRequired[str]
    #: Which options the program of an agent cannot honour; what else is not as one may want it.
    warnings: NotRequired[list[str]]
    worktree: NotRequired[MadeWorktree]


class SpawnedWorker(StartedWorker):
    """The outcome of a request to start a worker."""

    status: Status


class AwaitedWorker(StartedWorker):
    """The outcome of a request to start a worker, once it has ended."""

    status: EndStatus
    reason: str | None
    exitCode: int | None
    signal: str | None
    #: Of a failed one: what it wrote last, in one line.
    lastLine: NotRequired[str]
    #: How many of the workers that it had started were alive when it ended.
    uncollected: NotRequired[int]


#: What `spawn` and `spawn-template` show: a list for a batch and a template.
Spawns: TypeAlias = SpawnedWorker | AwaitedWorker | list[SpawnedWorker] | list[AwaitedWorker]


class BegunSubtask(StartedWorker):
    """A sub-task whose worker is accepted."""

    status: Status
    #: That of the chain of runs that its worker begins.
    agentId: str


class RunningSubtask(TypedDict):
    """A sub-task that had not ended when a call stopped waiting for it."""

    taskId: str | None
    agentId: str | None
    #: `still_running`.
    status: str
    #: Why the call has returned: `timeout paused cancelled`.
    stopped: str | None


class SubtaskAnswer(WhereWhole):
    """The answer of a sub-task; if its message was cut, also where the full text is."""

    #: Null if it was refused, so that there is none.
    taskId: str | None
    agentId: str | None
    #: `Success Error Cancel`.
    subTaskStatus: str
    summary: NotRequired[str]
    #: Of a summary that was cut.
    summaryCut: NotRequired[CutText]
    failureReason: NotRequired[str]
    finalAssistantMessage: NotRequired[str]
