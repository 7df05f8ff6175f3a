"""What the tools for agents answer, key by key."""

# ruff: noqa: N815 - the keys are spelled as in the JSON

from __future__ import annotations

from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from agentctl.domain.documents.workers.starts import SubtaskAnswer
from agentctl.domain.documents.workers.worker import CutText, ResultFile, WhereWhole


class FailedCall(TypedDict):
    """What went wrong with a call, and the next step for a model."""

    error: str
    hint: NotRequired[str]


class StoppedCall(TypedDict):
    """The caller is being cancelled, or was paused: the call has ended before its answer."""

    agentInstance: str
    #: `cancelled paused`.
    stopped: str
    error: str
    #: The agents that the call waited for.
    ids: NotRequired[list[str]]


class ModelOption(TypedDict):
    """One answer that can be chosen."""

    id: str
    label: str


class ModelQuestion(TypedDict):
    """An open question, as a model reads it; what it does not have is left out."""

    id: str
    kind: str
    question: NotRequired[str]
    options: NotRequired[list[ModelOption]]
    #: Of a request for permission: the tool and its arguments, as text where they were cut; what each option means.
    tool: NotRequired[str]
    arguments: NotRequired[dict[str, Any] | str]
    isCut: NotRequired[bool]
    means: NotRequired[dict[str, Any]]
    described: NotRequired[str]
    #: `own` where the person's own settings of its program count.
    permissions: NotRequired[str]
    askedByType: NotRequired[str]
    multiple: NotRequired[bool]
    #: A text is taken, too.
    other: NotRequired[bool]
    #: A kept agent that has answered waits for its next message.
    idle: NotRequired[bool]
    #: Whether the user is being asked it, in a client that shows them forms.
    asked: NotRequired[str]


class AgentResult(WhereWhole):
    """The result of an agent for its parent."""

    #: Its last words.
    output: str
    success: bool
    turnsUsed: int | None
    reason: NotRequired[str]
    error: NotRequired[str]
    summary: NotRequired[str]
    summaryCut: NotRequired[CutText]
    files: NotRequired[list[ResultFile]]


class AtRest(TypedDict):
    """Of agents in the queue that start only once a person sees to it; mostly nothing."""

    held: NotRequired[list[str]]
    stranded: NotRequired[list[str]]
    note: NotRequired[str]


class AgentsAtWork(AtRest):
    """Not all agents of the call have ended within its time; none was stopped."""

    still_running: Literal[True]
    ids: list[str]
    #: Id -> status.
    status: dict[str, str]
    questions: NotRequired[dict[str, ModelQuestion]]
    hint: str


class StartedAgent(TypedDict):
    """An agent that was started in the background."""

    id: str
    status: str
    #: The same as `id`, from the tool `task`.
    task_id: NotRequired[str]
    warnings: NotRequired[list[str]]


class EndedAgent(AgentResult):
    """An agent that has ended within the call which started it."""

    id: str
    status: str
    warnings: NotRequired[list[str]]


class InputTaken(TypedDict):
    """What became of a message to an agent: the answer to its question, a message, or its next run."""

    submission_id: str
    answered: NotRequired[str]
    id: NotRequired[str]
    instance: NotRequired[str]
    status: NotRequired[str]


class ContinuedAgent(TypedDict):
    """An ended agent that goes on."""

    id: str
    instance: str
    status: str


class ClosedAgent(TypedDict):
    """An agent that was closed."""

    previous_status: str
    status: NotRequired[str]
    closed_with_it: NotRequired[list[str]]
    note: NotRequired[str]
    survivors: NotRequired[list[dict[str, Any]]]


class WaitedAgent(AgentResult):
    """An agent that has ended, or asks."""

    instance: NotRequired[str]
    question: NotRequired[ModelQuestion]


class AgentsNews(AtRest):
    """What is new of the agents that a call waited for."""

    #: Id -> status, of those with news; `not_found` of unknown ones.
    status: dict[str, str]
    timed_out: bool
    results: NotRequired[dict[str, WaitedAgent]]
    more: NotRequired[int]
    hint: NotRequired[str]
    still_running: list[str]
    more_running: NotRequired[int]
    questions: NotRequired[dict[str, ModelQuestion]]
    cursor: NotRequired[str]


class DelegatedTask(WhereWhole):
    """The result of a task that was delegated."""

    task_id: str | None
    objective: str
    agent_type: str
    status: str
    result: str | None
    error: str | None
    #: Seconds from its start to its end.
    duration: float
    started_at: str | None
    completed_at: str | None
    summary: NotRequired[str]
    summaryCut: NotRequired[CutText]
    warnings: NotRequired[list[str]]


class DelegatedTasks(TypedDict):
    """The results of several tasks, in their order."""

    results: list[DelegatedTask]
    warnings: NotRequired[list[str]]


class UserAnswer(TypedDict):
    """What the user has answered; null if nobody did in time."""

    question_id: str
    answer: str | None
    by: NotRequired[str]
    note: NotRequired[str]


class QuestionOpen(TypedDict):
    """Nobody has answered yet."""

    still_running: Literal[True]
    question_id: str
    hint: str


class ToolReport(TypedDict):
    """What was reported: an id, or what was kept."""

    progress: NotRequired[dict[str, Any]]
    message: NotRequired[str | int]
    result: NotRequired[dict[str, Any]]


class HintedSubtask(SubtaskAnswer):
    """The answer of a sub-task; where it was refused, with the next step for a model."""

    hint: NotRequired[str]
