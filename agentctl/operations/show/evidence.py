"""A statement about a worker, and its evidence: the file, lock, process or event from which it follows."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

from agentctl.adapters import processes
from agentctl.adapters.clock import iso_of
from agentctl.adapters.files import AnyPath
from agentctl.adapters.locks import is_alive_held
from agentctl.adapters.processes import Identity, Life
from agentctl.adapters.taskdir import TaskDir
from agentctl.domain.events import Event
from agentctl.domain.text.plaintext import beginning
from agentctl.errors import AgentctlError
from agentctl.lean import TYPE_CHECKING, Any, NamedTuple
from agentctl.operations.where.command_lines import command_line

if TYPE_CHECKING:
    from typing import TypeVar

    from agentctl.domain.documents.workers.worker import EvidenceRow, FailedLines, StatementRow, StepRow, WayOutRow

    _T = TypeVar("_T")

FILE, LOCK, PROCESS, EVENT = "file", "lock", "process", "event"
#: How much is shown of a text that a worker wrote.
LONGEST = 200
#: The letters of proc_pid_stat(5) in words.
_STATES = {"R": "running", "S": "sleeping", "D": "waiting for a disk", "T": "stopped", "t": "stopped", "I": "idle"}


class Evidence(NamedTuple):
    """Where something can be seen, and what is seen there."""

    #: `file`, `lock`, `process` or `event`.
    kind: str
    #: A path, `pid N`, or for an event the path of the log with `:SEQ`.
    where: str
    says: str
    #: When: of an event, or the last change of a file whose time counts.
    at: str | None = None

    def to_json(self) -> EvidenceRow:
        """Return it as `why --json` prints it."""
        return {"kind": self.kind, "where": self.where, "says": self.says, "at": self.at}


class FailedWorker(NamedTuple):
    """Another worker, whose failure a sentence is about."""

    #: In another root its path.
    task_id: str
    instance: str
    last_lines: FailedLines


class Statement(NamedTuple):
    """A sentence about a worker, and what proves it."""

    text: str
    evidence: Sequence[Evidence] = ()
    failed: FailedWorker | None = None

    def to_json(self) -> StatementRow:
        """Return it as `why --json` prints it."""
        evidence = [one.to_json() for one in self.evidence]
        if self.failed is None:
            return {"text": self.text, "evidence": evidence}
        return {
            "text": self.text, "evidence": evidence, "taskId": self.failed.task_id,
            "agentInstance": self.failed.instance, **self.failed.last_lines,
        }  # fmt: skip


class TypedCommand(NamedTuple):
    """What a person types; of a command of agentctl's also its parts, for whoever can do it in another way."""

    line: str
    task_id: str = ""
    words: Sequence[str] = ()
    #: That of the task, where it is another one than that of the worker that is explained.
    root: str = ""

    def step(self) -> StepRow | None:
        """Return what it does to which workers; None of what only a person can do in a terminal."""
        verb, *rest = self.words or ("",)
        if verb not in _STEPS:
            return None
        is_option = [word.startswith("-") for word in [*rest, "-"]]
        step: StepRow = {"verb": verb, "taskId": self.task_id, "workers": rest[: is_option.index(True)][: _STEPS[verb]]}
        if "--id" in rest:
            step["question"] = rest[rest.index("--id") + 1]
        if self.root:
            step["root"] = self.root
        return step


#: The commands about workers that are steps, and how many workers each names at most: what follows is something else.
_STEPS: Mapping[str, int | None] = {
    **dict.fromkeys(("logs", "result", "why", "wait", "cancel", "unpause", "send", "answer", "resume"), 1),
    "retry": None, "resume-queue": 0,
}  # fmt: skip


def typed(task: TaskDir, *words: str, seen_from: TaskDir) -> TypedCommand:
    """Return the command line about a task, which may be in another root than the one that it is seen from."""
    root = task.root.path
    return TypedCommand(
        command_line(task, *words), task.id, words, "" if root == seen_from.root.path else os.fspath(root)
    )


class WayOut(NamedTuple):
    """What would change a worker's state."""

    text: str
    #: What a person types for it; None if it happens by itself or elsewhere.
    command: TypedCommand | None = None

    def to_json(self) -> WayOutRow:
        """Return it as `why --json` prints it."""
        if self.command is None:
            return {"text": self.text, "command": None, "step": None}
        return {"text": self.text, "command": self.command.line, "step": self.command.step()}


#: What is said of one side of a worker's state.
Part = tuple[list[Statement], list[WayOut]]


def part_of(side: Callable[[_T], Part], facts: _T) -> Part:
    """Return what one side of a state says; that it is unknown, if a file cannot be read or is not one of ours."""
    try:
        return side(facts)
    except (AgentctlError, OSError) as error:
        text = f"Part of its state is unknown, because something cannot be read: {beginning(str(error), LONGEST)}"
        return [Statement(text)], []


def evidence_fields(value: Mapping[str, Any], *keys: str) -> str:
    """Return some fields of a file or an event: `by user, at 2026-...`; those that are missing are left out."""
    return ", ".join(f"{key} {shown(value[key])}" for key in keys if value.get(key) is not None)


def shown(value: object) -> str:
    """Return a value from a file on one line, cut; whatever a worker wrote there, this does not fail."""
    try:
        return beginning(" ".join(str(value).split()), LONGEST)
    except (RecursionError, ValueError):  # Lists within lists without end, a number of 5,000 digits.
        return "?"


def file_says(path: AnyPath, says: str) -> Evidence:
    """Return what a file says."""
    return Evidence(FILE, os.fspath(path), says)


def changed_at(path: AnyPath, says: str) -> Evidence:
    """Return what a file shows by its size and its last change."""
    try:
        found = os.stat(path, follow_symlinks=False)
    except OSError:
        return file_says(path, "there is no such file")
    return Evidence(FILE, os.fspath(path), f"{says}, {found.st_size} bytes", iso_of(found.st_mtime))


def lock_says(path: AnyPath) -> Evidence:
    """Return whether a process holds the liveness lock of a file."""
    try:
        is_held = is_alive_held(path)
    except OSError as error:
        return Evidence(LOCK, os.fspath(path), f"it cannot be read: {error.strerror}")
    return Evidence(LOCK, os.fspath(path), "a live process holds it" if is_held else "no process holds it")


def process_says(identity: Identity | None, what: str) -> list[Evidence]:
    """Return whether the process of an identity lives; nothing where there is no identity."""
    if identity is None:
        return []
    life = processes.life_of(identity)
    stat = processes.read_stat(identity.pid) if life is Life.ALIVE else None
    if stat is not None:
        says = f"{what}: alive, {_STATES.get(stat.state, stat.state)}"
    elif life is Life.ELSEWHERE:
        says = f"{what}: on another machine or in another pid namespace, so it is unknown whether it is alive"
    else:
        says = f"{what}: gone"
    return [Evidence(PROCESS, f"pid {identity.pid}", says)]


def event_says(log: AnyPath, row: tuple[int, Event] | None, *keys: str) -> list[Evidence]:
    """Return what an event of a log says; nothing where there is none."""
    if row is None:
        return []
    seq, event = row
    more, by, at = evidence_fields(event["payload"], *keys), event.get("by"), event.get("ts")
    says = event["type"] if by in (None, "agentctl") else f"{event['type']} by {beginning(str(by), LONGEST)}"
    at = at if isinstance(at, str) else None
    return [Evidence(EVENT, f"{os.fspath(log)}:{seq}", f"{says}: {more}" if more else says, at)]
