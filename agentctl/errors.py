"""Every deliberate error: what the user reads, what to do next, and the exit code that scripts read.

An error is split off into a class of its own only where a caller treats it differently.
"""

from __future__ import annotations

from enum import IntEnum

from agentctl.lean import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import TypeAlias


class ExitCode(IntEnum):
    """The exit codes of every command; an interface, listed in `--help` and docs/exit-codes.md."""

    #: The command did what it says.
    DONE = 0
    #: Refused or failed; the message says why.
    REFUSED = 1
    #: Bad usage: an invalid option, name or file.
    USAGE = 2
    #: No such task or worker.
    NOT_FOUND = 3
    #: A wait reached its time limit; no worker was stopped.
    TIMED_OUT = 4
    #: Every slot is in use and `--queue` was not given.
    NO_SLOT = 5
    #: Nothing is left to wait for.
    NOTHING_LEFT = 6
    #: A worker ended without completing (`wait`, `wait-all`, `result`).
    UNSUCCESSFUL = 7
    #: The key has done something else before.
    CONFLICT = 8
    #: Ctrl-C.
    INTERRUPTED = 130


class Next(NamedTuple):
    """A next step that each surface words in its own way: as a command at a terminal, as a tool for a model."""

    step: str
    #: The worker, task or file that it is about.
    of: str = ""
    #: What the step does, in words that hold wherever it is taken.
    does: str = ""
    #: The task that this is in, if it is not the one that the caller has named.
    task: str = ""

    def worded(self, by: Mapping[str, str], in_task: str = "") -> str | None:
        """Return it in the words of a surface, which has some for each step that can be taken there.

        Args:
            in_task: How another task than the caller's is named behind these words.
        """
        words = by.get(self.step)
        if words is None:
            return None
        named = words.format(self.of) + (in_task.format(self.task) if self.task else "")
        return " ".join(filter(None, (named, self.does)))


class AtTerminal(NamedTuple):
    """A next step that only a terminal has, or that is only met there: a command line, in a sentence."""

    text: str


class Argument(NamedTuple):
    """What may be given with a call: an option at a terminal, a key over HTTP, an argument of a method."""

    #: As in Python: `max_concurrent`.
    name: str
    value: str = ""


class WithArguments(tuple["str | Argument", ...]):
    """Words that name arguments, each of which a surface spells as they are given there."""

    __slots__ = ()

    def __new__(cls, *parts: str | Argument) -> WithArguments:
        """Make it of the words, and the arguments between them."""
        return super().__new__(cls, parts)

    def __getnewargs__(self) -> tuple[str | Argument, ...]:
        """Return what a copy is made of."""
        return tuple(self)

    @property
    def arguments(self) -> list[Argument]:
        """The arguments that it names."""
        return [part for part in self if isinstance(part, Argument)]

    def worded(self, spelled: Callable[[Argument], str]) -> str:
        """Return them as a surface words them."""
        return "".join(spelled(part) if isinstance(part, Argument) else part for part in self)


#: What is wrong. A plain text names no command and no option, as with a next step.
Wrong: TypeAlias = "str | WithArguments"
#: A plain text holds on every surface, so it names no command and no option of agentctl
#: (`tests/lint/test_next_steps.py`); those of other programs are the same everywhere.
Step: TypeAlias = "str | Next | WithArguments | AtTerminal"
#: One next step, or several; all but the first may begin with `or`.
Hint: TypeAlias = "Step | tuple[Step, ...]"


def steps_in_words(steps: Iterable[Step], words: Callable[[Step], str | None]) -> str | None:
    """Return next steps as a surface words them; None if it has words for none."""
    return "; ".join(filter(None, map(words, steps))).removeprefix("or ") or None


#: The next steps as worded for a terminal. For tools: `tools/hints.py`; for HTTP: `interfaces/web/next_requests.py`,
#: which alone has `paths` and `described`; for Python: `interfaces/python/wording.py`; for the page: `next_steps.js`.
COMMANDS = {
    "another name": "choose another --name",
    "another folder": "choose another --cwd",
    "another key": "choose another --key; agentctl show {} shows what this one did",
    "another key for a task": "choose another --key; agentctl use {} chooses what this one made",
    "another driver": "its definition needs argv; or choose another --driver ({})",
    "look around": "agentctl list shows them",
    "look at questions": "agentctl interact list shows what is open",
    "read result": "agentctl result {}",
    "send": "agentctl send {} TEXT",
    "trust": "look at the file, then: agentctl trust {}",
    "take over": "if everything in it is yours: agentctl trust {}",
    "vouch": "or read it, then: agentctl trust {}",
    "ask a person": "a person answers it, in their own terminal: agentctl interact list",
    "deny": "a person answers it, in their own terminal: agentctl interact list; or deny it, and do without",
    "cancel": "agentctl cancel {}",
    "retry": "agentctl retry {}",
    "resume": "agentctl resume {} TEXT",
    "wait": "agentctl wait {}",
    "show": "agentctl show {}",
    "list": "agentctl list",
    "tasks": "agentctl tasks lists them",
    "in another task": "{} is in another task:",
    "paths": "GET /api/v1/openapi.json lists them",
    "described": "GET /api/v1/openapi.json says what {} takes",
    "use": "agentctl use {}",
    "spawn": "agentctl spawn -- COMMAND",
    "diff": "agentctl worktrees diff {}",
    "make a worktree": "agentctl spawn --worktree -- COMMAND makes one",
    "remove worktree": "agentctl worktrees remove {}",
    "look at worktree": "agentctl worktrees show {}",
    "make from template": "agentctl new --template NAME",
    "another id": "choose another --id",
    "help": "agentctl {} --help",
    "logs": "agentctl logs {}",
    "events": "agentctl events",
    "usage": "agentctl usage",
    "worktrees": "agentctl worktrees",
    "templates": "agentctl templates lists them",
    "new": 'agentctl new "TITLE"',
    "own task": 'work in a task of your own (agentctl new "TITLE")',
    "name a task": 'agentctl new "TITLE" or agentctl use TASK',
    "queue every start": (
        'queue: true in the config of {} makes every start wait (a new task: agentctl new --queue "TITLE")'
    ),
    "name a model": 'for example: agentctl spawn --driver llm --model {} "WHAT TO DO"',
    "spawn an agent": 'agentctl spawn --agent explore "WHAT TO DO"',
    "spawn above": "agentctl spawn --task {}: the task on top of the tree takes any worker",
    "subtask": 'agentctl subtask {} "TITLE"',
    "retry all": "agentctl retry {}",
    "a person resumes": "a person has it made again: agentctl resume {}",
    "wait for any": "agentctl wait-any",
    "unpause": "agentctl unpause {}",
    "let the queue go": "agentctl unpause",
}


def at_terminal(step: Step) -> str | None:
    """Return a next step as worded for a terminal."""
    if isinstance(step, Next):
        return step.worded(COMMANDS, " --task {}")
    if isinstance(step, WithArguments):
        return step.worded(option)
    return step.text if isinstance(step, AtTerminal) else step


def option(argument: Argument) -> str:
    """Return an argument as it is given at a terminal.

    >>> option(Argument("max_turns")), option(Argument("runner_arg", "-n"))
    ('--max-turns', '--runner-arg=-n')
    """
    name, value = f"--{argument.name.replace('_', '-')}", argument.value
    if not value:
        return name
    return f"{name}={value}" if value.startswith("-") else f"{name} {value}"


def steps_of(hint: Hint | None) -> tuple[Step, ...]:
    """Return the next steps of a hint."""
    if isinstance(hint, str | Next | WithArguments | AtTerminal):
        return (hint,) if hint else ()
    return hint or ()


class AgentctlError(Exception):
    """An expected failure: `message` says what is wrong and where, `hint` the next step as worded for a terminal."""

    exit_code = ExitCode.REFUSED

    def __init__(self, wrong: Wrong, hint: Hint | None = None) -> None:
        #: What is wrong as a value, for each surface to word it.
        self.wrong = wrong if isinstance(wrong, WithArguments) else WithArguments(wrong)
        super().__init__(self.message)
        #: The next steps as values, for each surface to word them; whoever passes the error on passes these on.
        self.steps: tuple[Step, ...] = steps_of(hint)
        self.hint = steps_in_words(self.steps, at_terminal)

    @property
    def message(self) -> str:
        """What is wrong, as worded for a terminal; whoever puts something before it changes `wrong`."""
        return self.wrong.worded(option)

    def put_before(self, text: str) -> None:
        """Say before what is wrong what it is about."""
        self.wrong = WithArguments(text, *self.wrong)

    def __str__(self) -> str:
        return self.message  # Whoever passes it on may have put before it what it is about.


class Refused(AgentctlError):
    """The current state does not allow it; nothing was changed."""


class Conflict(AgentctlError):
    """The key of a request has done another one before; nothing was changed.

    Args:
        differs: What the two requests differ in.
        task_id: Where the first one was carried out.
        instance: The worker that it started, or sent a message to; None if it made the task, or nothing yet.
    """

    exit_code = ExitCode.CONFLICT

    def __init__(self, key: str, did: str, differs: str, *, task_id: str, instance: str | None, hint: Hint) -> None:
        super().__init__(f"the key {key!r} has {did} already, and that request differs in {differs}", hint=hint)
        self.task_id = task_id
        self.instance = instance


class Limited(Refused):
    """A limit that a person has set. Only a person can lift it: no message says how to a worker (`lineage.limited`)."""


class UsageError(AgentctlError):
    """The input is invalid: a bad name, option, file or key."""

    exit_code = ExitCode.USAGE


class Taken(UsageError):
    """What was to be made has a name that is in use already."""


class NotFound(AgentctlError):
    """No such task, worker, question or file."""

    exit_code = ExitCode.NOT_FOUND


class StartInterrupted(KeyboardInterrupt):
    """Ctrl-C came once workers had been queued or started: `message` says which are left, `hint` what stops them."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class BrokenOff(AgentctlError):
    """The caller no longer waits for the answer to its call."""


class Declined(BrokenOff):
    """What was to be delivered has certainly not been printed, and will not be."""


class WaitTimedOut(AgentctlError):
    """A wait's own time limit passed."""

    exit_code = ExitCode.TIMED_OUT


class WaitStopped(AgentctlError):
    """A wait within a worker was ended because that worker was `cancelled` or `paused`."""

    def __init__(self, wrong: Wrong, instance: str, stopped: str, hint: Hint | None = None) -> None:
        super().__init__(wrong, hint)
        self.instance = instance
        self.stopped = stopped

    def to_json(self) -> dict[str, str]:
        """Return it as the answer of a wait."""
        return {"agentInstance": self.instance, "stopped": self.stopped}


class NoFreeSlot(AgentctlError):
    """All slots are in use."""

    exit_code = ExitCode.NO_SLOT


class NothingLeft(AgentctlError):
    """No worker is left to wait for."""

    exit_code = ExitCode.NOTHING_LEFT


class LockTimeout(AgentctlError):
    """A lock could not be acquired within its time limit."""


class StorageError(AgentctlError):
    """The disk refused: full, read-only, or a short write that was taken back."""


class Damaged(AgentctlError):
    """A file that agentctl wrote is damaged: it does not have the form that it should."""
