"""What the server answers at paths of its own, beside the documents of the commands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NotRequired

from typing_extensions import TypedDict

from agentctl.domain.documents.workers.worker import Survivor, WorkerRow


class ServerAbout(TypedDict):
    """Which server this is."""

    version: str
    #: The folder whose tasks it serves.
    root: str
    #: Where it is reached.
    url: str
    #: Nothing can be started, stopped or answered here.
    readOnly: bool


class EventsPage(TypedDict):
    """Some events of a task."""

    #: Each with its `seq`, as `events` prints them; {seq, problem, taskId} for a line that is not an event.
    events: list[dict[str, Any]]
    #: The seq from which on those behind these are.
    next: int
    #: Whether there are any behind these, and any before them.
    more: bool
    earlier: bool


class _Page(TypedDict):
    """A part of a file of a worker: where it is, in bytes."""

    begin: int
    end: int
    #: That of the file.
    size: int
    #: Whether the worker has ended, so that nothing follows.
    ended: bool


class ActivityPage(_Page):
    """Some rows of the activity of a worker."""

    #: As `activity` prints them, each with its `offset`, a `label` of one line, and `cut` if a text in it was cut;
    #: `cutAt`: each field of which a part is missing, or a field and what is in it. {offset, problem} for a line that
    #: is not a row. `shown`: what a call returned in rows, as a terminal shows it.
    rows: list[dict[str, Any]]


class OutputRow(TypedDict):
    """A row of an output as a terminal would show it."""

    #: Where it begins, in bytes of the file.
    at: int
    #: Its parts, each a text, and behind it its style if it has one: words of `bold dim italic underline inverse
    #: strike`, `f1` for colour 1 of 256 of the text, `b1` for one behind it, `f#0a0b0c` for any colour.
    spans: list[list[str]]
    #: It goes on with the row above, which was full.
    continued: NotRequired[bool]


class OutputStream(TypedDict):
    """What there is of a stream."""

    #: `stdout stderr`.
    stream: str
    #: In bytes.
    size: int
    #: When something was written to it last; null if nothing was.
    writtenAt: str | None


class OutputPage(_Page):
    """A part of what a worker printed."""

    #: `stdout stderr`.
    stream: str
    #: Bytes that are not UTF-8 are `\\xNN` in it; empty where rows were asked for.
    text: str
    #: All rows from `begin` to `end`, where rows were asked for.
    rows: list[OutputRow]
    #: Both.
    streams: list[OutputStream]


class OutputHit(TypedDict):
    """A row in which words were found."""

    #: Where it begins, in bytes of the file.
    at: int
    #: The number of its line; the first is 1.
    line: int


class OutputHits(TypedDict):
    """What was found in a part of an output."""

    hits: list[OutputHit]
    #: How far was looked, in bytes, and the number of the line that begins there.
    looked: int
    line: int
    #: That of the file.
    size: int
    #: There is output behind what was looked at.
    more: bool


class RecordedAnswer(TypedDict):
    """The answer to a question, as its asker gets it."""

    taskId: str
    agentInstance: str
    id: str
    #: The id of an option, `yes` or `no`, or a text.
    answer: str


class LookNoted(TypedDict):
    """That somebody has looked at the end of a worker, or at the answer of an agent that was kept."""

    agentInstance: str
    #: The time of what was looked at.
    seen: str


class WorkerOutcome(TypedDict):
    """What became of one of the workers that a request was about."""

    taskId: str
    agentInstance: str
    #: Whether it is as was asked.
    done: bool
    #: Why it was refused, or what else there is to say; and the next step.
    detail: str | None
    hint: str | None
    #: The next step as data, where each surface words it by itself.
    next: NotRequired[NextStep]
    steps: NotRequired[list[NextStep]]
    #: Of a cancel its own status; of a new try, or of an agent that is continued, that of the new worker.
    status: NotRequired[str]
    #: The new worker.
    startedAs: NotRequired[str]
    #: True where the key of the request has done another one to it before.
    conflict: NotRequired[bool]
    #: What is alive of it after a cancel.
    survivors: NotRequired[list[Survivor]]


class WorkerOutcomes(TypedDict):
    """What became of the workers that a request was about."""

    #: Each once, in the order of the request.
    workers: list[WorkerOutcome]
    #: The workers below them that were cancelled, paused or continued with them.
    below: list[WorkerOutcome]


class TaskFigures(TypedDict):
    """The workers of a task and of the tasks below it, taken together."""

    workers: int
    #: How many of them have not ended, and how many ask.
    live: int
    asking: int
    #: How many have failed.
    failed: int
    #: Input and output, without cached ones.
    tokens: int
    #: Whether the tokens, and the cost, are the least that it was: those of some worker are not known.
    lacksTokens: bool
    lacksCost: bool
    #: Null if no cost is known.
    costUsd: float | None
    #: When the first one was started.
    began: str | None
    #: When the last one ended, which counts only if none is live.
    ended: str | None


class FleetTaskRow(TypedDict):
    """A task as the stream tells of it."""

    taskId: str
    title: str
    #: `created working input-required stranded held completed failed canceled unknown`.
    state: str
    #: The same in the words of a status where one says the same, as in `tasks`.
    status: str
    #: It was made here by the person, or taken over.
    own: bool
    #: {taskId, by, at} of what holds its queue.
    held: Mapping[str, Any] | None
    #: The task above it that exists, and the worker there that asked for it.
    parent: str | None
    parentInstance: str | None
    totals: TaskFigures


class TaskSnapshot(FleetTaskRow):
    """A task with its workers."""

    #: As `list` has them.
    workers: list[WorkerRow]


class ServerHealth(TypedDict):
    """Whether the server can read the tasks."""

    #: `ok failing`.
    status: str
    #: Why it cannot.
    problem: str | None


class DoneBefore(TypedDict):
    """What a key has done: the task that it made, or the worker that it started or sent a message to."""

    taskId: str
    agentInstance: str | None


class NextStep(TypedDict):
    """A next step that each surface words in its own way."""

    #: Such as `retry`, `send`, `look around`; empty where there are only words.
    step: str
    #: The worker, task or file that it is about; empty if it is about none.
    of: str
    #: The task that it is in, if that is not the one of the request.
    task: str
    #: As a request, or as what a person does.
    words: str


class ProblemDocument(TypedDict):
    """The error of a command."""

    #: `urn:agentctl:` and the name of the exit code.
    type: str
    title: str
    #: That of the response.
    status: int
    #: What is wrong.
    detail: str
    #: The next steps, as requests or in words; as data, the first that each surface words by itself, and all of them.
    hint: str | None
    next: NextStep | None
    steps: list[NextStep]
    #: The exit code of the command, and its name.
    code: int
    name: str
    #: Of a request whose key has done another one: what that was.
    done: NotRequired[DoneBefore]
