"""What `list`, `show`, `result` and `why` show of a worker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NotRequired

from typing_extensions import TypedDict

from agentctl.domain.documents.worktrees import WorktreeRecord
from agentctl.domain.states import Status
from agentctl.lean import ReadOnly


class AwaitedAccount(TypedDict):
    """An account that is on hold, and until when."""

    account: str
    until: str
    #: The usage window that was used up; null if no time was reported.
    window: str | None


class UsageSoFar(TypedDict):
    """What an agent has used up over all of its attempts; null for what its program has not told."""

    input: int | None
    output: int | None
    cached: int | None
    costUsd: float | None
    #: Which figures are the least that it was: `tokens costUsd`.
    atLeast: NotRequired[list[str]]


class LastProgress(TypedDict):
    """How far a worker was, as it last reported."""

    at: str | None
    percent: float | None
    text: str | None


class Survivor(TypedDict):
    """A process that outlived a cancel."""

    pid: int
    #: Its command line, cut.
    command: str


class NodePlacement(TypedDict):
    """Where a worker is that runs on a node, and what its engine says of it."""

    runner: str | None
    launch: str | None
    #: Once it has begun there.
    node: str | None
    #: What its engine calls it.
    job: str | None
    #: What follows from the engine's answer: `queued running ended dropped absent unknown`.
    state: str | None
    #: The engine's own words.
    words: str | None
    reason: str | None
    #: Why the engine has not taken it yet.
    problem: str | None
    #: The status that it told of after it was taken for lost.
    lateExit: str | None


class RefusedByDisk(TypedDict, total=False):
    """What the disk refuses of a worker."""

    problem: str
    #: Its start is in the log, and its program has not begun.
    start: bool
    #: How it has ended, as in `exit.json`.
    end: dict[str, Any]
    #: Whether it is paused.
    paused: bool


class WorkerRow(TypedDict):
    """A worker, or a sub-agent that is only observed, as `list`, `wait-all` and `tree` show it.

    A dict and not a named tuple, since it is made to be printed: for 10,000 workers it takes 9.0 ms, a record 16.1 ms.
    mypy checks its keys, and that nothing changes it.
    """

    #: With `--hosts`: its name in `config.yaml`, or `here`.
    host: NotRequired[ReadOnly[str]]
    #: Where rows of several tasks stand together.
    taskId: NotRequired[ReadOnly[str]]
    agentInstance: ReadOnly[str]
    agent: ReadOnly[str]
    status: ReadOnly[Status]
    reason: ReadOnly[str | None]
    message: ReadOnly[str | None]
    #: Of a failed one: what it wrote last, in one line, on stderr or else on stdout.
    lastLine: ReadOnly[str | None]
    pid: ReadOnly[int | None]
    attempt: ReadOnly[int]
    paused: ReadOnly[bool]
    stalled: ReadOnly[bool]
    parked: ReadOnly[bool]
    #: The account that it waits for in the queue.
    awaitsAccount: ReadOnly[AwaitedAccount | None]
    driver: ReadOnly[str | None]
    #: `own` where the person's own settings of its program count; null for any other policy.
    permissions: ReadOnly[str | None]
    #: Of an agent.
    usage: ReadOnly[UsageSoFar | None]
    #: That of its chain of runs, for `resume`.
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
    progress: ReadOnly[LastProgress | None]
    survivors: ReadOnly[Sequence[Survivor]]
    awaitsChildren: ReadOnly[bool]
    uncollected: ReadOnly[int]
    command: ReadOnly[str]
    #: How many questions are open below it.
    askedBelow: ReadOnly[int]
    #: The workers after which it starts, of one in the queue that was not started yet; other rows do not have it.
    after: NotRequired[ReadOnly[Sequence[str]]]
    #: Where it is, of a worker that runs on a node (`operations.show.placements`); other rows do not have it.
    placement: NotRequired[ReadOnly[NodePlacement]]
    #: What the disk refuses of it, while it does; other rows do not have it.
    refused: NotRequired[ReadOnly[RefusedByDisk]]
    #: What of it cannot be read, so that it is not known how it is; other rows do not have it.
    unreadable: NotRequired[ReadOnly[str]]
    #: The work that it belongs to, where that has several tries, by the name of the first worker; which try it is; the
    #: worker whose work it tries again, or goes on with; and the one that does so after it. Others have none of these.
    work: NotRequired[ReadOnly[str]]
    nthTry: NotRequired[ReadOnly[int]]
    retryOf: NotRequired[ReadOnly[str | None]]
    continues: NotRequired[ReadOnly[str | None]]
    supersededBy: NotRequired[ReadOnly[str | None]]
    #: True of a sub-agent of a program that a person runs by hand; other rows do not have it.
    observed: NotRequired[ReadOnly[bool]]


class OfferedRuns(TypedDict):
    """Which commands take an ended worker once more."""

    retry: bool
    resume: bool


class ShownWorker(WorkerRow):
    """Everything that is known of a worker: its row, and what its files say; of a sub-agent that is only observed, the
    row alone.
    """

    taskId: str
    #: What it was to do, and with which limits.
    spec: NotRequired[dict[str, Any]]
    #: Its first process, and its shim.
    worker: NotRequired[dict[str, Any] | None]
    shim: NotRequired[dict[str, Any] | None]
    #: Who has asked for its end, and when.
    cancel: NotRequired[dict[str, Any] | None]
    #: How it ended.
    exit: NotRequired[dict[str, Any] | None]
    #: Of an agent, as its driver wrote it; `Task.result` has it with its text.
    result: NotRequired[dict[str, Any] | None]
    #: No program is run another way than its driver's any more.
    fallback: NotRequired[None]
    worktree: NotRequired[WorktreeRecord | None]
    #: Each as in its file, with its `answer`; of an answered one `by`, `answeredAt`, and `reason` or `expired`.
    questions: NotRequired[list[dict[str, Any]]]
    #: The command that opens an agent's session by hand.
    openSession: NotRequired[str | None]
    #: Whether `retry` and `resume` take it; None until it has ended.
    furtherRuns: NotRequired[OfferedRuns | None]
    #: Paths.
    folder: NotRequired[str]
    stdout: NotRequired[str]
    stderr: NotRequired[str]


class EvidenceRow(TypedDict):
    """What proves a sentence about a worker."""

    #: `file lock process event`.
    kind: str
    #: A path; `pid N`; of an event the path of the log and `:SEQ`.
    where: str
    says: str
    #: The time of an event, or of a file's last change.
    at: str | None


class StepRow(TypedDict):
    """A next step that is about workers of a task."""

    #: What is done, by the name of its command.
    verb: str
    taskId: str
    #: About which workers of the task; none where it is about all of them.
    workers: list[str]
    #: Of `answer`.
    question: NotRequired[str]
    #: The root of the task, where it is another one than that of the worker that is explained.
    root: NotRequired[str]


class WayOutRow(TypedDict):
    """What would change a worker's state."""

    text: str
    #: What a person types for it; null if it happens by itself or elsewhere.
    command: str | None
    #: The same as a value, for whoever can do it in another way; null of what only a person can do in a terminal.
    step: StepRow | None


class LastLines(TypedDict, total=False):
    """What a failed worker wrote last, at most 20 lines of each stream: without what a terminal would obey."""

    stderr: list[str]
    stdout: list[str]


class FailedLines(TypedDict, total=False):
    """The last lines of a failed worker that wrote something; nothing of another one."""

    lastLines: LastLines


class StatementRow(FailedLines):
    """A sentence about a worker; of one about the failure of another worker also that one's last lines."""

    text: str
    evidence: list[EvidenceRow]
    #: The task of the other worker: its id, or its path in another root.
    taskId: NotRequired[str]
    agentInstance: NotRequired[str]


class WorkerReasons(FailedLines):
    """Why a worker is in its state."""

    taskId: str
    agentInstance: str
    status: str
    #: The status, or what is more pressing.
    state: str
    since: str | None
    #: Whether locks and processes were looked at, and not only its files.
    judged: bool
    statements: list[StatementRow]
    waysOut: list[WayOutRow]


class WrappedText(TypedDict, total=False):
    """A text of which some lines are long."""

    #: A copy of the full text with shorter lines.
    wrapped: str


class CutText(WrappedText):
    """Whether a text was cut, and where the full text is."""

    truncated: bool
    #: Of the full text, in bytes.
    size: int
    #: Of the full text; null of a text that is empty, or far too long.
    sha256: str | None
    #: The file that has the full text and nothing else; null if nothing was cut, or no file could be written.
    path: str | None


class WhereWhole(TypedDict, total=False):
    """Where the full text is of one that was cut; nothing of one that was not."""

    truncated: bool
    size: int
    sha256: str
    path: str
    wrapped: str


class BoundedText(CutText):
    """A text that is limited in size."""

    text: str


class ResultFile(TypedDict):
    """A file of a result."""

    path: str
    size: NotRequired[int]
    sha256: NotRequired[str]
    #: In `result`, what has become of it since: `same changed gone`; `not compared`, where it is large, or elsewhere.
    now: NotRequired[str]


class ResultUsage(TypedDict):
    """The tokens that an agent has used up; null for what its program has not told."""

    input: int | None
    output: int | None
    cached: int | None
    #: Which figures are the least that it was: `tokens costUsd`.
    atLeast: NotRequired[list[str]]


class ToldByAgent(TypedDict, total=False):
    """What the program of an agent has told of its work, and whether it came to a natural end."""

    success: bool
    turnsUsed: int | None
    usage: ResultUsage
    costUsd: float | None
    model: str | None
    sessionId: str | None
    touchedFiles: list[str]


class CutSummary(TypedDict, total=False):
    """A summary that was cut."""

    summaryCut: CutText


class DeclaredSummary(CutSummary):
    """The summary that a worker has declared, if it has declared one."""

    summary: str | None


class LastWords(BoundedText, DeclaredSummary, ToldByAgent):
    """What a worker has said last, or printed, and what it declared."""

    #: Where the text is from: `agent activity declared stdout none`.
    source: str
    #: The patch of a worktree comes last.
    files: list[ResultFile]


class WorkerResult(LastWords, FailedLines):
    """The result of a worker, limited in size."""

    agentInstance: str
    status: Status
    reason: str | None
    exitCode: int | None
    signal: str | None
    message: str | None
    lastLine: str | None
    worktree: WorktreeRecord | None
    #: The command that opens an agent's session by hand.
    openSession: str | None
