"""What `interact` shows of the questions of workers, and of answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from typing_extensions import TypedDict


class QuestionOption(TypedDict):
    """One answer that can be chosen."""

    id: str
    label: str


class QuestionDetails(TypedDict, total=False):
    """What only some questions have."""

    #: Of a request for permission: the call; its arguments are a text where they were cut.
    tool: str
    arguments: Mapping[str, Any] | str
    #: The request is longer than what is shown here.
    isCut: bool
    #: The id of each option of a permission -> `allow allow_always deny`.
    means: Mapping[str, Any]
    #: What the program or its model says about the call, which may be wrong.
    described: str
    #: `own` where the person's own settings of the program count too.
    permissions: str
    #: The sub-agent that asks, and its kind.
    askedBy: str
    askedByType: str
    #: More than one option may be chosen: the answer is their ids, with commas between them.
    multiple: bool
    #: A text is taken, too.
    other: bool
    #: An agent that was kept has answered, and waits for a message.
    idle: bool


class QuestionBody(QuestionDetails):
    """A question of a worker."""

    id: str
    #: `select confirm input`.
    kind: str
    question: str
    options: list[QuestionOption]
    #: The answer that is taken at the deadline.
    default: str | None
    askedAt: str | None
    deadlineSeconds: float | None


class QuestionRow(QuestionBody):
    """An open question, and who asks it."""

    taskId: str
    agentInstance: str
    #: Its asker is alive.
    waiting: bool


class HostQuestionRow(QuestionRow):
    """An open question on one of several hosts."""

    #: Its name in `config.yaml`, or `here`.
    host: str


class GivenAnswer(TypedDict):
    """The answer to a question, as its asker gets it."""

    id: str
    answer: str
    #: Who gave it; `agentctl` if the default was taken at the deadline.
    by: str


class AcceptedAnswer(TypedDict):
    """The answer that was given to a question."""

    taskId: str
    agentInstance: str
    id: str
    #: As the asker gets it: an option's id, `yes` or `no`, the text.
    answer: str
    #: The asker was alive.
    waiting: bool
