"""What a command is: its words, its parameters, and the function that carries it out and returns what it shows.

Whatever offers commands reads these values: the command line, its help and completion, `serve` and `--hosts`. So a
command is declared once, and nothing in it prints.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from functools import partial

from agentctl.errors import ExitCode
from agentctl.lean import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

if TYPE_CHECKING:
    from typing import TypeAlias

#: The kinds of values. SECONDS: a number, 0 or more. CHOICE: one of `choices`. TEXTS: an option that can be repeated,
#: or as many arguments as there are. COMMAND: all words that follow `--`. PROMPT: one text where no `--` is.
TEXT, WHOLE, NUMBER, SECONDS, FLAG, CHOICE, TEXTS, COMMAND, PROMPT = (
    "text", "whole", "number", "seconds", "flag", "choice", "texts", "command", "prompt",
)  # fmt: skip
#: What can be completed: names of these kinds. Of a LIST, which has commas between them, its last word is.
INSTANCES, TASKS, AGENTS, AGENT_LIST, TEMPLATES, HOST, HOST_LIST = (
    "instances", "tasks", "agents", "agent list", "templates", "host", "host list",
)  # fmt: skip
#: What an agent is, and where its worker runs; ENGINES: the runners that have nodes.
DRIVERS, EFFORTS, POLICIES, RUNNERS, ENGINES = "drivers", "efforts", "policies", "runners", "engines"
#: Workers where a name means all tries of a work; and tasks that were put away.
WORKS, ARCHIVED = "works", "archived"
#: EXPANDED: the workers, or all. FAILED_AGENTS: those that a breaker counts. ANSWER: who asks, then what is offered.
EXPANDED, CONSUMERS, END_LIST, QUESTIONS, ANSWER, FAILED_AGENTS, ACCOUNTS, TARGETS, DIALECTS = (
    "expanded", "consumers", "end list", "questions", "answer", "failed agents", "accounts", "targets", "dialects",
)  # fmt: skip
#: Headings of a help page.
PLACE, OUTPUT = "Place", "Output"
#: What every command that looks for a task or a worker can return, besides what every command can.
FINDS = (ExitCode.NOT_FOUND,)


class Parameter(NamedTuple):
    """A value that a command takes."""

    #: That of the keyword of `carry_out`.
    name: str
    kind: str
    help: str = ""
    metavar: str | None = None
    default: Any = None
    #: The name that is typed, with `-`; by default made from `name`.
    typed: str = ""
    #: One letter.
    short: str = ""
    #: Of a FLAG: the option that says no, without its dashes.
    off: str = ""
    is_argument: bool = False
    is_required: bool = False
    is_hidden: bool = False
    #: The heading below which it stands on the help page.
    group: str = ""
    #: Of a WHOLE.
    least: int | None = None
    most: int | None = None
    choices: tuple[str, ...] = ()
    #: Of a TEXT with commas between its words: which these may be.
    listed: tuple[str, ...] = ()
    #: Which kind of names a shell is offered for it.
    completes: str = ""

    @property
    def words(self) -> str:
        """The name as it is typed, without dashes before it."""
        return self.typed or self.name.replace("_", "-")

    @property
    def help_line(self) -> str:
        """What its help page says of it."""
        is_repeatable = self.kind == TEXTS and bool(self.help) and not self.is_argument
        return f"{self.help.removesuffix('.')}; repeatable." if is_repeatable else self.help

    @property
    def key(self) -> str:
        """The name in a JSON document."""
        return self.words.replace("-", "_")


#: The document of a command, as its function declares it.
V = TypeVar("V", covariant=True, default=Any)


class Table(NamedTuple):
    """Rows below heads; where there is no room for all, the column `wide` is cut first, and those of `kept` last.

    Args:
        heads: The columns; each has another one.
        rows: A cell for each column.
        wide: The column that is cut first.
        kept: Those that are cut when there is room for nothing else.
        gives_way: Those that are left out, one after the other, where names would be cut; by default `wide`.
        below: Those of them whose cells then stand below their rows, and so are never cut: why a worker failed.
        right: Columns of numbers.
    """

    heads: Sequence[str]
    rows: Iterable[Sequence[object]]
    wide: str | None = None
    kept: Sequence[str] = ()
    gives_way: Sequence[str] = ()
    below: Sequence[str] = ()
    right: Sequence[str] = ()


class LedCell(NamedTuple):
    """A cell whose beginning is shown even where the rest of it is cut: who does something, under which rules, what."""

    lead: str
    #: It is cut before the lead, and after the rest.
    second: str
    rest: str


class Picture(NamedTuple):
    """Lines of (text, look): a look is a status, or one of those that `tables.py` names."""

    lines: Iterable[Iterable[tuple[str, str]]]


class Shown(NamedTuple, Generic[V]):
    """What a command shows.

    Args:
        value: The JSON document; an iterator becomes a list without ever being in memory as a whole. None: the
            command has no document, or it is `null`.
        lines: For pipes; and for terminals, unless there is a `table`.
        table: Makes what a terminal shows instead of the lines.
        notes: For stderr; left out with --json, whose document says the same.
        code: The exit code of the command, if this is all that it shows.
    """

    value: V | None = None
    lines: Iterable[str] = ()
    table: Callable[[], Table | Picture | Iterable[str]] | None = None
    notes: Iterable[str] = ()
    code: int = ExitCode.DONE


class Raw(NamedTuple):
    """Bytes or a text for stdout as they are: no line is ended, and nothing is made visible."""

    data: bytes | str


class Screenful(NamedTuple):
    """Lines that take the place of those before: a terminal draws them over these, a pipe gets those that changed.

    Args:
        same: Returns of a line what has to differ before it counts as changed.
    """

    lines: list[str]
    same: Callable[[str], str] = str


if TYPE_CHECKING:
    #: What a command shows while it goes on; its return value is the exit code.
    Showing: TypeAlias = Generator[Shown[V] | Raw | Screenful, None, int]
    Carried: TypeAlias = Shown[V] | Showing[V] | int | None
else:  # Names in annotations, which are not evaluated.
    Showing = Carried = Shown


def take_each(carried: Carried[Any], take: Callable[[Shown[Any] | Raw | Screenful], None]) -> int:
    """Have each thing that a command shows taken before it goes on; return its exit code.

    What goes wrong meanwhile, a Ctrl-C too, is raised in the command: it knows what it leaves behind.
    """
    if carried is None or isinstance(carried, int):
        return carried or ExitCode.DONE
    if isinstance(carried, Shown):
        take(carried)
        return carried.code
    step: Callable[[], Shown[Any] | Raw | Screenful] = partial(next, carried)
    while True:
        try:
            item = step()
            step = partial(next, carried)
            take(item)
        except StopIteration as stop:
            return stop.value or ExitCode.DONE
        except BaseException as error:
            if carried.gi_frame is None:  # type: ignore[attr-defined] # It has ended, by this.
                raise
            step = partial(carried.throw, error)


#: In the docstring of a command: below it stands what is so only where somebody types a line, such as what that prints.
ON_COMMAND_LINES = "\n\nOn a command line:\n"


class Command(NamedTuple):
    """A command. Its help is the docstring of the function that carries it out.

    Args:
        name: Its last word: `list` of `interact list`.
        carry_out: Takes an `Invocation`, and the parameters as keywords: of those that were not given, the default is
            taken. Returns what is shown; or, as a generator, yields it, and returns the exit code. Or it returns the
            exit code alone: None is 0.
        needs: The parameters from which its `Invocation` is made.
        exits: The codes that it can return besides those of every command.
        names_task: A terminal is told which task it was about: it changes one, and its lines do not say which.
    """

    name: str
    carry_out: Callable[..., Carried]
    needs: tuple[Parameter, ...]
    examples: str
    parameters: tuple[Parameter, ...] = ()
    exits: tuple[ExitCode, ...] = FINDS
    names_task: bool = False

    @property
    def help(self) -> str:
        """What it does, for whoever has it carried out in any way."""
        return _dedented(self.carry_out.__doc__ or "").partition(ON_COMMAND_LINES)[0]

    @property
    def help_page(self) -> str:
        """The text of its help page: what it does, and what is so only on a command line."""
        does, _, typed = _dedented(self.carry_out.__doc__ or "").partition(ON_COMMAND_LINES)
        return "\n\n".join(filter(None, (does, _dedented(typed))))

    def all_parameters(self) -> tuple[Parameter, ...]:
        """Return its own parameters and those of its place and output, in the order of its help page."""
        return (*self.parameters, *self.needs)


class Family(NamedTuple):
    """Commands under one name: `interact ask`, `interact list`.

    Args:
        without: The command that is carried out where none is named.
    """

    name: str
    help: str
    examples: str
    commands: tuple[Command, ...]
    exits: tuple[ExitCode, ...] = ()
    without: Command | None = None

    def command(self, name: str) -> Command | None:
        """Return the command of a name; None if there is none."""
        return next((one for one in self.commands if one.name == name), None)


def _dedented(text: str) -> str:
    """Return a docstring without the indentation of its lines: loading `inspect` for that would take 5 ms."""
    first, *rest = text.strip().splitlines() or [""]
    indent = min((len(line) - len(line.lstrip()) for line in rest if line.strip()), default=0)
    return "\n".join([first, *(line[indent:].rstrip() for line in rest)])
