"""What `notify` shows: where a person is told what happens, and whether that works."""

from __future__ import annotations

from typing import NotRequired

from typing_extensions import TypedDict


class TargetTold(TypedDict):
    """What became of the notices of a tree of tasks that were for one target: counts of them."""

    sent: int
    #: The person was looking at what they are about.
    seen: int
    #: They were not delivered, and are not tried again.
    refused: int
    #: They were not delivered.
    failing: int
    #: They are yet to be sent.
    waiting: int
    lastError: str | None


class TargetRow(TargetTold):
    """A target of a person, and what it was told of a task and its sub-tasks."""

    target: str
    #: `ntfy webhook command terminal`.
    type: str
    #: The host of a URL, a command, the ways of a terminal.
    where: str
    #: Who named it for the task: `always root task.yaml task`; null if it is not told of it.
    by: str | None
    #: Of which events it is told.
    events: list[str]
    #: The person's quiet hours, and whether it is such an hour now.
    quiet: str | None
    isQuietNow: bool


class TargetTest(TypedDict):
    """What came of a message to test a target."""

    target: str
    delivered: bool
    #: What came back.
    said: str


class TargetSwitch(TypedDict):
    """Whether a target is told of a task and its sub-tasks, or of all tasks of a root, from now on."""

    target: str
    on: bool
    #: The task; or with `--all`
    taskId: NotRequired[str]
    #: the root.
    root: NotRequired[str]
