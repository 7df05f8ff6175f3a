# ruff: noqa: N815 - the keys are spelled as in the JSON
"""What is shown of the ends of workers, of what stops them, and of their results together."""

from __future__ import annotations

from typing import NotRequired, TypeAlias

from typing_extensions import TypedDict

from agentctl.domain.documents.queue import QueueHoldRow
from agentctl.domain.documents.workers.worker import (
    BoundedText,
    DeclaredSummary,
    ResultFile,
    ResultUsage,
    Survivor,
    WorkerRow,
)
from agentctl.domain.states import EndStatus, Status


class EndedWorker(TypedDict):
    """A worker that has ended, or whatever else ends a wait."""

    agentInstance: str
    status: EndStatus
    reason: str | None
    exitCode: int | None
    signal: str | None
    #: Why it failed.
    message: NotRequired[str]
    #: Of a failed one: what it wrote last, in one line.
    lastLine: NotRequired[str]
    #: Of a parked one: until when, and for which usage window of its account.
    until: NotRequired[str]
    window: NotRequired[str]
    #: Where the wait is for several tasks.
    taskId: NotRequired[str]
    #: How many of the workers that it had started were alive when it ended.
    uncollected: NotRequired[int]
    #: True if an earlier waiter died before it had certainly delivered this end.
    redelivered: NotRequired[bool]


class EndedElsewhere(EndedWorker):
    """The same of a worker of one of several hosts."""

    #: Its name in `config.yaml`, or `here`.
    host: str


class StoppedWait(TypedDict):
    """A wait within a worker that is being cancelled, or was paused."""

    #: That worker.
    agentInstance: str
    #: `cancelled paused`.
    stopped: str


class TimedOutWait(TypedDict):
    """A wait over HTTP in whose time nothing has ended: not an error, and the client may wait again."""

    timedOut: bool
    #: In words.
    detail: str
    #: Those that were waited for, as `list` has them.
    workers: list[WorkerRow]


#: What `wait` shows: a list unless one worker was named.
Ends: TypeAlias = EndedWorker | StoppedWait | list[EndedWorker]


class CancelledWorker(TypedDict):
    """What a cancel did to one worker."""

    agentInstance: str
    #: False for one that had ended in another way, or has not ended.
    cancelled: bool
    status: Status
    survivors: list[Survivor]
    #: Of a decision about several: whether it was in the queue when the command began, and was started before that
    #: decision was on disk.
    startedMeanwhile: NotRequired[bool]
    note: NotRequired[str]
    #: True if its shim was gone: what it had hidden from others than its shim cannot be known.
    unguarded: NotRequired[bool]
    #: The task's path, if it is in another root.
    taskId: NotRequired[str]


class CancelledTree(CancelledWorker):
    """What a cancel did to one worker that was named, and to those below it."""

    #: Those that it had started.
    withIt: list[CancelledWorker]


class LeftOutWorker(TypedDict):
    """A worker that was selected and stays, and why."""

    agentInstance: str
    reason: str
    #: What can be done about it.
    next: str | None


class RemovedWorkers(TypedDict):
    """What was removed of a task, and what was not."""

    taskId: str
    workers: list[str]
    subtasks: list[str]
    leftOut: list[LeftOutWorker]


class PausedWorker(TypedDict):
    """A worker that is paused now, or goes on."""

    agentInstance: str
    paused: bool
    #: The workers below it; `TASK/INSTANCE` of another task.
    withIt: list[str]


class QueueStanding(TypedDict):
    """Whether the queue of a task is held."""

    taskId: str
    held: QueueHoldRow | None
    #: How many workers that keeps in the queue.
    queued: int


class ReportedQuestion(TypedDict):
    """A question of a worker, with its answer."""

    id: str
    question: str
    askedBy: str | None
    answer: str | None
    #: Who has answered.
    by: str | None


class ReportedWords(BoundedText, DeclaredSummary):
    """What a report takes of the result of a worker."""

    #: Where the text is from: `agent activity declared stdout none`.
    source: str
    #: Of an agent.
    turnsUsed: NotRequired[int | None]
    usage: NotRequired[ResultUsage]
    costUsd: NotRequired[float | None]
    model: NotRequired[str | None]


class ReportedWorker(ReportedWords):
    """The part of a worker in a report."""

    agentInstance: str
    agent: str
    status: Status
    reason: str | None
    exitCode: int | None
    signal: str | None
    parent: str | None
    startedAt: str | None
    endedAt: str | None
    durationSeconds: float | None
    #: Of a failed one.
    error: str | None
    lastLine: str | None
    questions: list[ReportedQuestion]
    files: list[ResultFile]
    #: How many questions and files there are beyond those that are listed.
    leftOut: int
    folder: str


class ResultsReport(TypedDict):
    """The results of several workers, as `report.json` has them."""

    taskId: str
    at: str
    workers: list[ReportedWorker]


class WrittenReport(ResultsReport):
    """A report, and the paths of its two files."""

    #: That for people, `report.md`.
    report: str
    #: That for programs, `report.json`.
    data: str
