"""What `new`, `use`, `tasks` and `templates` show of tasks."""

from __future__ import annotations

from typing import NotRequired

from typing_extensions import TypedDict

from agentctl.domain.documents.queue import QueueHoldRow
from agentctl.domain.documents.workers.starts import SpawnedWorker


class ChosenTask(TypedDict):
    """A task that was made or chosen, and its folder."""

    taskId: str
    path: str
    #: With `use` that chooses none: who says that this one is meant: `terminal folder environment`.
    chosenBy: NotRequired[str]
    #: Of a task that was made from a template: the workers that were started at once.
    workers: NotRequired[list[SpawnedWorker]]
    #: True if an earlier request with the same key has made it.
    reused: NotRequired[bool]


class ArchivedTask(TypedDict):
    """A task that was put away with those below it, brought back, or deleted."""

    #: Its name in the archive.
    name: str
    taskId: str
    title: str
    #: The task, and those below it.
    tasks: list[str]
    #: How many workers they have had.
    workers: int
    archivedAt: str
    #: When the last of these ended.
    endedAt: str | None
    #: Its folder: in the archive, or where it was brought back to, or where it was.
    path: str


class LeftOutTask(TypedDict):
    """A task that was selected and stays, and why."""

    taskId: str
    reason: str
    #: What can be done about it.
    next: str | None


class ArchiveDone(TypedDict):
    """What `archive` has done, or what was put away."""

    tasks: list[ArchivedTask]
    leftOut: list[LeftOutTask]


class SubtaskFacts(TypedDict, total=False):
    """What the row of a sub-task has besides the keys of every task."""

    #: The worker that asked for it, or `user`.
    author: str | None
    #: The only agent that works on it.
    agent: str | None
    #: What its worker declared.
    summary: str | None
    failureReason: str | None


class TaskRow(SubtaskFacts):
    """A task, and its state: that of its own workers and its sub-tasks."""

    #: With `--hosts`: its name in `config.yaml`, or `here`.
    host: NotRequired[str]
    taskId: str
    title: str
    #: `created working input-required stranded held completed failed canceled unknown`.
    state: str
    #: The same in the words of a status where one says the same:
    #: `created running blocked stranded held completed failed cancelled unknown`.
    status: str
    #: How many workers of its own it has, and how many of these have each status.
    workers: int
    queued: int
    running: int
    blocked: int
    completed: int
    failed: int
    cancelled: int
    #: How many of its workers are in a queue that nobody moves any more.
    stranded: int
    held: QueueHoldRow | None
    createdAt: str | None
    parentTaskId: str | None
    childTaskIds: list[str]
    #: How many tasks are above it.
    level: int
    #: A sub-task works or asks, or a worker has ended and waits for those that it started.
    awaitsChildren: bool
    #: How many workers of all sub-tasks below it are blocked.
    blockedBelow: int
    #: It is the one that later commands refer to.
    current: bool
    #: You made it here, or took it over by `trust`; null if that cannot be read.
    own: bool | None
    path: str
    #: What of it cannot be read, so that it is not known how it is; other rows do not have it.
    unreadable: NotRequired[str]


class TemplateRow(TypedDict):
    """A template from which `new` can make a task."""

    name: str
    #: Its folder.
    source: str
    #: It is your own, shipped, or trusted.
    usable: bool
    description: str
    #: Name -> what the template says of it: `description`, and `default` unless it must be set.
    parameters: dict[str, dict[str, str]]
