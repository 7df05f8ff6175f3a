# ruff: noqa: N815 - the keys are spelled as in the JSON
"""What `tree`, `timeline`, `usage`, `search`, `logs`, `events` and `activity` show."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NotRequired, final

from typing_extensions import TypedDict

from agentctl.domain.documents.workers.worker import AwaitedAccount, UsageSoFar, WorkerRow
from agentctl.domain.states import Status

# -- tree --------------------------------------------------------------------------------------------------------------


class TokenCounts(TypedDict):
    """Tokens; null if none are told."""

    input: int | None
    output: int | None
    cached: int | None


class TreeItem(TypedDict):
    """Something that an agent did: a tool call, a message, a sub-agent."""

    id: str
    #: `message thought tool agent question note progress`, or a type that is not known here.
    type: str
    #: The id of the sub-agent that did it, null for the worker itself.
    parent: str | None
    #: 1 for the worker's own.
    depth: int
    #: Of a tool call, a sub-agent or a question: `running`, `interrupted`, or the status in the row of its end.
    status: str | None
    agentType: str | None
    name: str | None
    text: str | None
    #: The arguments of a call.
    detail: Mapping[str, Any] | None
    startedAt: str | None
    endedAt: str | None
    percent: NotRequired[float]
    #: True if no row of its parent was ever seen; other items do not have it.
    orphan: NotRequired[bool]
    #: Of a group, with all below it: how many calls it has made.
    calls: NotRequired[int]
    tokens: NotRequired[TokenCounts]
    #: Of a group that is expanded: how many ended items are left out, because there are too many.
    earlier: NotRequired[int]
    #: Of a group: when anything in it was last seen.
    lastAt: NotRequired[str | None]
    #: Over HTTP, of what an agent says: its beginning in words, where no Markdown is drawn.
    line: NotRequired[str]


class TreeWorker(WorkerRow):
    """A worker in a tree, and what it does."""

    #: How many workers are above it in the tree.
    treeDepth: int
    calls: int
    tokens: TokenCounts
    #: How many ended items are left out, because there are too many.
    earlier: int
    #: How many lines of its activity are not rows.
    badLines: int
    #: Type -> how many rows are of it.
    unknownTypes: dict[str, int]
    #: Parents come before their children.
    items: list[TreeItem]


class TaskTree(TypedDict):
    """The workers of a task, each after the one that started it."""

    taskId: str
    workers: list[TreeWorker]


class NestedTaskTree(TaskTree):
    """The workers of one of several tasks, each task before those below it."""

    #: How many of the tasks that are shown are above it.
    level: int


# -- usage and timeline ------------------------------------------------------------------------------------------------


class CountedFigures(UsageSoFar):
    """Tokens and money, with the number of tokens that count against a limit."""

    tokens: int | None


class UsageFigures(CountedFigures):
    """What some workers have used."""

    #: How many workers they are.
    workers: int


class WorkerUsage(UsageFigures):
    """What a worker has used."""

    taskId: str
    agentInstance: str
    agent: str
    status: Status
    wallSeconds: float


class AgentUsage(UsageFigures):
    """What all workers of one kind have used."""

    agent: str


class ModelUsage(UsageFigures):
    """What all agents with one model have used; null if it is not known."""

    model: str | None


class TaskUsage(UsageFigures):
    """What the workers of a task have used."""

    taskId: str
    wallSeconds: float


class TotalUsage(UsageFigures):
    """What all workers of a tree of tasks have used."""

    wallSeconds: float


class AccountWindow(TypedDict):
    """A usage window of an account, as its program last reported it."""

    window: str
    usedPercent: float | None
    resetsAt: str | None
    #: Requests are refused until it is reset.
    isRejected: bool


class AccountUsage(TypedDict):
    """What is known about an account."""

    account: str
    windows: list[AccountWindow]
    held: AwaitedAccount | None


class BreakerRow(TypedDict):
    """The latest failures of an agent in a row."""

    agent: str
    failures: int
    #: That of the last failure.
    reason: str
    #: It is not started for a while.
    open: bool


class TreeUsageReport(TypedDict):
    """What the workers of a tree of tasks have used, and what is left."""

    rootTaskId: str
    workers: list[WorkerUsage]
    agents: list[AgentUsage]
    models: list[ModelUsage]
    tasks: list[TaskUsage]
    total: TotalUsage
    #: The limits that are set, under their names in `task.yaml`, and how much of each is left.
    limits: dict[str, float]
    left: dict[str, float]
    #: What live agents may still spend from budgets of their own.
    reservedUsd: float
    #: All of your accounts about which something is known.
    accounts: list[AccountUsage]
    breakers: list[BreakerRow]


class WorkerReference(TypedDict):
    """A worker, by its task and its name."""

    taskId: str
    agentInstance: str


#: A time span: `from` cannot be declared in a class.
_TimeSpan = TypedDict("_TimeSpan", {"from": str, "to": str})


class TimelinePiece(_TimeSpan):
    """A stretch of a worker's time in which it was in one state."""

    #: `queued running blocked parked`.
    shade: str
    attempt: int


class TimelineWorker(_TimeSpan, WorkerReference, CountedFigures):
    """When a worker was queued, at work, blocked or parked, and what it has used."""

    agent: str
    command: str
    status: Status
    reason: str | None
    depth: int
    #: Which worker started it.
    parent: WorkerReference | None
    #: The workers that it waited for.
    after: list[WorkerReference]
    startedAt: str | None
    #: It has not ended: `to` is now.
    open: bool
    attempts: int
    #: It is on the critical path.
    critical: bool
    pieces: list[TimelinePiece]


class CriticalStretch(_TimeSpan, WorkerReference):
    """A part of the critical path: the worker that kept the end waiting then."""

    #: Why it began then: `start dependency slot child parent`.
    because: str


class TaskTimeline(_TimeSpan):
    """The time of a task and of its sub-tasks."""

    taskId: str
    title: str
    #: A worker has not ended: `to` is now.
    open: bool
    total: UsageFigures
    #: Without holes.
    criticalPath: list[CriticalStretch]
    #: Each after the one that started it.
    workers: list[TimelineWorker]


class TimelineFile(TypedDict):
    """A file with a picture of a timeline."""

    taskId: str
    path: str
    #: How many workers it shows.
    workers: int


# -- texts and records -------------------------------------------------------------------------------------------------


class SearchHit(TypedDict):
    """A text in which something was found; or how many other hits of a worker were left out."""

    taskId: str
    #: Null for the title and the id of a task.
    agentInstance: str | None
    #: `title name agent command prompt question answer said thought received called note reported result failure stdout
    #: stderr`; null with `more`, as are the keys that follow.
    source: str | None
    at: str | None
    #: About 240 characters, white space made single spaces; what was found is `excerpt[begin:end]`.
    excerpt: str | None
    begin: int | None
    end: int | None
    #: 0 for a hit; otherwise how many hits of that worker were left out.
    more: int
    #: Where the row of the activity, or the line of the output, begins in its file; null for what lies elsewhere.
    offset: int | None


class LogPiece(TypedDict):
    """A piece of a worker's output; it may end anywhere."""

    #: `stdout stderr`; `transcript` of an agent, whose pieces are paragraphs.
    stream: str
    text: str
    #: Whose it is, where several workers are named.
    agentInstance: NotRequired[str]


@final
class EventRow(TypedDict):
    """An event of a task, as its log has it."""

    #: The number of its line, from 1.
    seq: int
    ts: NotRequired[str]
    type: str
    taskId: NotRequired[str]
    #: The worker that it is about.
    agentInstance: NotRequired[str]
    #: Who did it: a worker, `user` or `agentctl`.
    by: NotRequired[str]
    #: It depends on the type: `docs/file-formats.md` names the keys of each.
    payload: dict[str, Any]


class BadEvent(TypedDict):
    """A line of the log of a task that is not an event."""

    seq: int
    problem: str


@final
class ActivityRow(TypedDict):
    """A row of what an agent did, as its file has it."""

    #: Its number in the file, from 1.
    line: int
    at: NotRequired[str]
    #: `message thought tool agent usage question note progress`, or a type that is not known here.
    type: str
    #: Rows of one id are about one thing.
    id: NotRequired[str]
    #: `start progress end`.
    phase: NotRequired[str]
    #: The id of the sub-agent that did it; not there for the worker itself.
    parent: NotRequired[str]
    #: Of a tool call, a sub-agent or a question: `running completed failed cancelled denied answered`.
    status: NotRequired[str]
    agentType: NotRequired[str]
    name: NotRequired[str]
    text: NotRequired[str]
    #: The arguments of a tool call, the tokens of a row of usage.
    detail: NotRequired[Any]
    percent: NotRequired[float | None]


class BadActivity(TypedDict):
    """A line of a worker's activity that is not a row."""

    line: int
    problem: str


class RebuiltActivity(TypedDict):
    """How many rows were made again from the output of a worker."""

    agentInstance: str
    rows: int
    path: str
