"""What a driver is, and its interface to its host: facts of a program, a dialogue, the actions that it returns. No I/O.

The host passes each event to the dialogue (a line of output, an answer, an interrupt), which returns the actions to
take. So a recording of a program's output is enough to test a driver, and the activity of a worker can be rebuilt
from its raw output.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol

from agentctl.domain.activity.row import Row
from agentctl.domain.states import Reason
from agentctl.domain.tree.windows import Window
from agentctl.drivers.complaints import Complaints
from agentctl.drivers.marks import Marks
from agentctl.drivers.order import Order
from agentctl.lean import NamedTuple

#: The message of an agent's end in which it has said nothing.
SILENT = "it ended without a word: its model may have declined to answer"


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

    #: The program's own id of the request.
    key: str
    #: The text that a person reads; of a permission, what the program or its model says about the call, if anything.
    question: str
    #: (id, label) of each possible answer; empty if the answer is free text.
    options: Sequence[tuple[str, str]] = ()
    #: For a permission: the tool and its arguments, for the policy and for the person who answers.
    tool: str | None = None
    arguments: Mapping[str, Any] | None = None
    #: For a permission: another name that the tool may have, by what only the model says. A rule for it may forbid the
    #: call; it never allows it.
    claimed: str | None = None
    #: For a permission: the program's own name of the tool, where rules have another one; they may know it by either.
    own_name: str | None = None
    #: For a permission: the program has not told all of the call. So nobody is offered to allow it, and no rule that
    #: allows it counts, unless the rules allow everything.
    is_cut: bool = False
    #: For a permission: the ids of the `options` that mean yes and no; `allow` is empty where none allows it just once.
    allow: str = "allow"
    deny: str = "deny"
    #: For a permission: the effect of each of the `options`, as ALLOW, ALLOW_ALWAYS or DENY of `domain.question`.
    means: Mapping[str, str] | None = None
    #: For a permission: the answer that leaves the call to the program and its person's own settings; empty where it
    #: cannot be left to them. Nobody is offered it.
    leave: str = ""
    #: For a permission: the paths that the call reads, if it does nothing else; None: it may do anything. Where all of
    #: them lie in the agent's folder or in one of these places, it is harmless, which has an answer of its own.
    reads: Sequence[str] | None = None
    places: Sequence[str] = ()
    harmless: str = ""
    #: For a permission: the rules which count from now on where it is allowed for good; none: its program remembers it.
    lasting: Sequence[Mapping[str, str]] = ()
    #: The sub-agent that asks; None for the agent itself.
    asked_by: str | None = None
    asked_by_type: str | None = None
    #: More than one option may be chosen: the answer is their ids, separated by commas.
    multiple: bool = False
    #: Free text is accepted too.
    other: bool = False


class Withdraw(NamedTuple):
    """The program no longer waits for this answer."""

    key: str


class SessionIs(NamedTuple):
    """The id of the vendor's session, which `resume` needs; empty where its program cannot continue one."""

    session: str
    model: str | None = None
    #: The tokens that the session has used in all its runs, if a later run needs to know.
    used: Mapping[str, int] | None = None


class Retrying(NamedTuple):
    """The program is retrying by itself; if it makes no progress in time, it is stopped for this reason."""

    reason: Reason
    message: str


class Expect(NamedTuple):
    """The program has to make progress within this time, or it is stopped with this outcome."""

    seconds: float
    outcome: AgentOutcome


class UsageReported(NamedTuple):
    """The program reported how much of each usage window of its account is used up."""

    windows: Sequence[Window]


class Progress(NamedTuple):
    """The program got on: a deadline for retries, or for what was expected of it, is cancelled."""


class AgentOutcome(NamedTuple):
    """How an agent ended, and its results. A natural end has no reason."""

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
    #: The program could not begin because another one was just beginning: a further try may do.
    is_busy: bool = False

    def filled(self, known: AgentOutcome) -> AgentOutcome:
        """Return this outcome, its missing results filled in from `known`."""
        return self._replace(**{name: getattr(self, name) or getattr(known, name) for name in _RESULTS})


_RESULTS = ("final_message", "turns_used", "usage", "cost_usd", "model", "session", "touched_files")


class Finished(NamedTuple):
    """The agent has answered, and nothing runs in the background: the host hangs up or waits for a message."""

    outcome: AgentOutcome


class StopProgram(NamedTuple):
    """The agent cannot succeed, for example because its key was refused: stop it now, with this outcome."""

    outcome: AgentOutcome


Action = (
    Say
    | HangUp
    | Note
    | Ask
    | Withdraw
    | SessionIs
    | Retrying
    | Expect
    | UsageReported
    | Progress
    | Finished
    | StopProgram
)


class Dialogue(Protocol):
    """One conversation with one agent program. Whatever the program sends, no method may block or raise."""

    #: What its program has written to its standard error.
    complaints: Complaints

    def begin(self) -> Sequence[Action]:
        """Open the conversation; the program has just been started."""

    def received(self, line: bytes) -> Sequence[Action]:
        """Handle a line of its standard output, without the newline."""

    def complained(self, line: bytes) -> Sequence[Action]:
        """Handle a line of its standard error."""

    def answered(self, key: str, answer: str, reason: str = "", *, by_rule: bool = False) -> Sequence[Action]:
        """Pass on the answer to an `Ask`; `answer` is an option's id (or several), or text."""

    def told(self, text: str, *, interrupt: bool) -> Sequence[Action]:
        """Pass on a message: in the agent's next turn or, with `interrupt`, at once."""

    def interrupted(self) -> Sequence[Action]:
        """Cancel by the program's own means; open questions are withdrawn."""

    def ended(self, code: int) -> AgentOutcome:
        """Return the outcome, now that the program has ended with this exit code (-n for signal n)."""


class Replaced(NamedTuple):
    """What stands in place of a person's files."""

    files: Mapping[str, bytes]
    #: The folder of the person's databases.
    databases: str
    #: What the person should know of it.
    notes: Sequence[str]


class HomeFolder(NamedTuple):
    """The folder in which a program looks for a person's settings, and what a worker's own has in place of theirs.

    The worker's own leads to all that is in the person's, by links, except for what is replaced.
    """

    #: The variable that names it, and its path in the person's home without that.
    variable: str
    usual: str
    #: The person's files that `replaced` needs: names, and patterns of names.
    reads: Sequence[str]
    #: (order, those that there are, by name) -> the files in place of theirs. The order has its `home` by then. It
    #: raises `Refused` where there is no way.
    replaced: Callable[[Order, Mapping[str, bytes]], Replaced]
    #: To what no link leads.
    omitted: Sequence[str]
    #: Patterns of databases that are copied: the program writes into them where its folder lies, which is gone later. A
    #: new one takes it long; and the command that has it make the person's.
    copied: str
    makes_databases: Callable[[Order], list[str]]
    #: Those of the replaced files that may hold secrets: they lie in memory.
    secret: Sequence[str]
    #: What the program may make itself, in the person's folder.
    folders: Sequence[str]
    files: Sequence[str]


class Driver(NamedTuple):
    """The facts about one agent program."""

    name: str
    #: The name to look up in PATH; empty if there is no such program.
    program: str
    #: The arguments that make the program print its version.
    version_argv: Sequence[str]
    #: The version with which the facts were observed.
    tested: str
    #: How to install the program, or to update it.
    install: str
    #: The keys of a definition that it can honour, of: model effort tools readOnly maxTurns maxBudgetUsd permissions
    #: resume keep mcpServers outputSchema; delegation: its program has agentctl's own tools without a server; and
    #: ownUnderRules: it holds rules also where the person's own settings of its program allow the call
    honours: frozenset[str]
    #: The program's command line.
    argv: Callable[[Order], list[str]]
    #: The program's environment, made from the worker's.
    environ: Callable[[Order, Mapping[str, str]], dict[str, str]]
    dialogue: Callable[[Order], Dialogue]
    #: The oldest version that its dialogue understands; empty: none is known.
    oldest: str = ""
    #: The kinds of usage that its program reports, of: tokens cost
    reports: frozenset[str] = frozenset()
    #: Its agents can ask the user with a tool of the program's own.
    asks: bool = False
    #: (environment, function that reads a file) -> the texts that identify its account; None: it has no account.
    account: Callable[[Mapping[str, str], Callable[[str], bytes]], Sequence[str]] | None = None
    #: The home, its folder of settings, that an order's program is given in place of the person's; None: the person's.
    home: Callable[[Order], HomeFolder | None] = lambda _: None
    #: The extra of agentctl with the library that its dialogue imports, which has the same name; None: it needs none.
    extra: str | None = None
    #: How long the program may take to end once it was hung up on.
    lingers_s: float = 10.0
    #: The dialect of agentctl's own tools that its model knows best.
    tools: str = "codex"
    #: Names of a project's files that its program obeys without asking: it is not started where there are any.
    obeys: Sequence[str] = ()
    #: Something shows that its program asks before it acts; else it is not started where somebody is asked.
    is_known_to_ask: bool = True
    #: The command line that prints the person's own settings of its program, which are looked at before it is started;
    #: None, or an empty one: they are not.
    settings_argv: Callable[[Order], list[str]] | None = None
    #: What its program says where it cannot begin since another one of it just does: it is tried again then.
    busy: Sequence[str] = ()
    #: Variables of its program that have a new secret at each start: whoever connects to its port has to know it.
    secrets: Sequence[str] = ()
    #: Its program is told a name that is made at each start.
    needs_nonce: bool = False
    #: What a running agent has to know of its program, as the order keeps it.
    facts: Mapping[str, Any] = MappingProxyType({})
    #: What is written to the program is recorded as well: its protocol cannot be rebuilt from its output alone.
    is_recorded: bool = False
    #: Its program's sandbox makes folders where there are none, and leaves them behind if it is killed.
    leaves_mount_points: bool = False
    #: Its program runs commands in a login shell, which may set PATH anew.
    resets_path: bool = False
    #: Its program is a part of agentctl, and needs a model to be named.
    is_ours: bool = False
    #: By what its processes are known where a person has started them by hand.
    marks: Marks = Marks()
    #: session -> the command line that opens it by hand; None: none is known.
    by_hand: Callable[[str], list[str]] | None = None
    #: (environment, session) -> the file that its program locks (flock) while it writes the session; None: it has none.
    writer_lock: Callable[[Mapping[str, str], str], str] | None = None
