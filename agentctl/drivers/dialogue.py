"""The interface between a driver and its host: a driver does no I/O of its own.

A dialogue is told what happened (a line came, an answer is there, somebody interrupts) and returns what is to be done
about it. So a recording of a program's output is all that a test of a driver needs, and the activity of a worker can
be made again from its raw output.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol

from agentctl.domain.activity.row import Row
from agentctl.domain.states import Reason
from agentctl.domain.windows import Window
from agentctl.drivers.order import Order
from agentctl.lean import NamedTuple


class Say(NamedTuple):
    """Write these bytes to the program's standard input."""

    data: bytes


class HangUp(NamedTuple):
    """Close the program's standard input once everything is written."""


class Note(NamedTuple):
    """Append a row to the worker's activity."""

    row: Row


class Ask(NamedTuple):
    """The program wants an answer: a permission, or a question to the user."""

    #: The program's own name of the request.
    key: str
    #: What a person reads.
    question: str
    #: (id, label) of each answer; without any the answer is free text.
    options: Sequence[tuple[str, str]] = ()
    #: Of a permission: the tool and its arguments, for the policy and for who answers.
    tool: str | None = None
    arguments: Mapping[str, Any] | None = None
    #: The ids of `options` that say yes and no to a permission.
    allow: str = "allow"
    deny: str = "deny"
    #: What each of `options` does to a permission: ALLOW, ALLOW_ALWAYS or DENY of `domain.answers`.
    means: Mapping[str, str] | None = None
    #: The sub-agent that asks; None is the agent itself.
    asked_by: str | None = None
    asked_by_type: str | None = None
    #: More than one option may be chosen: the answer is then their ids, separated by commas.
    multiple: bool = False
    #: Free text is an answer too.
    other: bool = False


class Withdraw(NamedTuple):
    """The program no longer waits for this answer."""

    key: str


class SessionIs(NamedTuple):
    """The vendor's session has this id, which `resume` needs."""

    session: str
    model: str | None = None
    #: The tokens that it has used up in all its runs, where a later run has to know.
    used: Mapping[str, int] | None = None


class Retrying(NamedTuple):
    """The program tries again by itself; if it makes no progress in time, it is stopped for this reason."""

    reason: Reason
    message: str


class UsageReported(NamedTuple):
    """The program reported how much of its account's usage windows is used up."""

    windows: Sequence[Window]


class Progress(NamedTuple):
    """The model has answered: retries are counted anew."""


class AgentOutcome(NamedTuple):
    """How an agent ended, and its results. Without a reason it is a natural end."""

    reason: Reason | None = None
    message: str | None = None
    final_message: str | None = None
    #: Tool rounds.
    turns_used: int = 0
    #: {input, output, cached}: tokens, counted once.
    usage: Mapping[str, int] = MappingProxyType({})
    cost_usd: float | None = None
    model: str | None = None
    session: str | None = None
    touched_files: Sequence[str] = ()
    #: The conversation could not even be opened, for a cause that another way to run the program may not meet.
    is_unbegun: bool = False

    def filled(self, known: AgentOutcome) -> AgentOutcome:
        """Return it with the results that only the other one has."""
        return self._replace(**{name: getattr(self, name) or getattr(known, name) for name in _BROUGHT})


_BROUGHT = ("final_message", "turns_used", "usage", "cost_usd", "model", "session", "touched_files")


class Finished(NamedTuple):
    """The agent has answered, and nothing runs in the background: hang up, or wait for the next message."""

    outcome: AgentOutcome


class StopProgram(NamedTuple):
    """The agent cannot end well, say with a refused key: stop the program now, with this outcome."""

    outcome: AgentOutcome


Action = Say | HangUp | Note | Ask | Withdraw | SessionIs | Retrying | UsageReported | Progress | Finished | StopProgram


class Dialogue(Protocol):
    """One conversation with one agent program. Nothing in it may block or raise for anything that the program sends."""

    def begin(self) -> Sequence[Action]:
        """Open the conversation; the program has just been started."""

    def received(self, line: bytes) -> Sequence[Action]:
        """Take a line of its standard output, without the newline."""

    def complained(self, line: bytes) -> Sequence[Action]:
        """Take a line of its standard error."""

    def answered(self, key: str, answer: str, reason: str = "", *, by_rule: bool = False) -> Sequence[Action]:
        """Pass on the answer to what was asked; `answer` is an option's id (or several), or text."""

    def told(self, text: str, *, interrupt: bool) -> Sequence[Action]:
        """Pass on a message: in the agent's next turn, or now."""

    def interrupted(self) -> Sequence[Action]:
        """Cancel by the program's own means; open questions are withdrawn."""

    def ended(self, code: int) -> AgentOutcome:
        """Return how it ended: the program is gone, with this exit code (-n for signal n)."""


class Driver(NamedTuple):
    """The facts about one agent program."""

    name: str
    #: What is looked up in PATH.
    program: str
    #: Makes the program print its version.
    version_argv: Sequence[str]
    #: The version that the facts were observed with.
    tested: str
    #: How to get it.
    install: str
    #: Keys of a definition that it can honour: model effort tools readOnly maxTurns maxBudgetUsd permissions resume
    #: keep mcpServers outputSchema
    honours: frozenset[str]
    #: The program's command line.
    argv: Callable[[Order], list[str]]
    #: The environment that it gets, of the worker's own.
    environ: Callable[[Mapping[str, str]], dict[str, str]]
    dialogue: Callable[[Order], Dialogue]
    #: What its program tells that it uses up: tokens cost
    reports: frozenset[str] = frozenset()
    #: Its agents can ask the user by a tool of the program's own.
    asks: bool = False
    #: What decides which account it uses: (environment, what reads a file) -> texts; None: it has none.
    account: Callable[[Mapping[str, str], Callable[[str], bytes]], Sequence[str]] | None = None
    #: Another way to run the program, for when the conversation cannot even be opened.
    fallback: Fallback | None = None


class Fallback(NamedTuple):
    """Another way to run an agent program, which may do less."""

    driver: Driver
    #: Makes an order ready for it; raises `Refused` where it cannot keep to the order. What it has to ask the program
    #: first, it asks by the second argument: a command line goes in, the output comes out.
    ready: Callable[[Order, Callable[[list[str]], bytes]], Order]
