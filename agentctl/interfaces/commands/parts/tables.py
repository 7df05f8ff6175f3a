"""Tables for terminals: the only module that loads rich, and only when a table is drawn."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from agentctl.domain.states import HELD
from agentctl.domain.text.plaintext import plain, shortened_inside
from agentctl.interfaces.commands.model.command_model import LedCell, Table
from agentctl.interfaces.words.looks.look import style_of
from agentctl.interfaces.words.value_words import NOTHING, duration
from agentctl.interfaces.words.worker import (
    agent_with_policy,
    agent_words,
    elapsed,
    full_standing,
    name_with_try,
    questions_open,
    said_words,
    stranded_words,
)
from agentctl.lean import NamedTuple

if TYPE_CHECKING:
    from agentctl.domain.documents.workers.worker import WorkerRow
    from agentctl.domain.names import WorkerId
    from agentctl.operations.show.askers import PendingQuestion

_COLOURS = {
    "queued": "dim", "running": "cyan", "blocked": "yellow", "completed": "green", "failed": "red",
    "cancelled": "magenta",
    "stranded": "yellow", "held": "yellow",
}  # fmt: skip
#: Looks that are not statuses, in pictures of characters.
_LOOKS = {"parked": "magenta", "critical": "bold red"}
_COLOURED = ("status", "state")
#: The table of workers. How one stands is never cut; its name and why it failed, which can stand below it, are last.
WORKERS = Table(
    ("instance", "status", "reason", "time", "progress", "command"),
    (),
    wide="command",
    kept=("status", "reason", "time"),
    gives_way=("progress", "time", "command", "reason"),
    below=("progress", "reason"),
)
_ENDED = frozenset({"completed", "failed", "cancelled"})
#: Names are cut in their middle: often they differ at the end. Others are cut there.
_NAMES = frozenset({"host", "instance", "task", "name", "target"})
#: A column is as narrow as this at the least, unless not even that fits: a name, one that is kept, others.
_LEAST_NAME, _LEAST_KEPT, _LEAST, _LEAST_OF = 28, 30, 8, {"host": 12, "workers": 12}
#: And a column with led cells shows so much of what leads them.
_MOST_LED = 20
#: What stands between two columns, and before a line below a row; there is room for so many of these.
_GAP, _INDENT, _MOST_BELOW = "   ", "  ", 3


class Lines(NamedTuple):
    """The lines of a table: those of its heads, and of each row its own with those below it."""

    heads: list[Text]
    rows: list[list[Text]]

    def drawn(self, *foot: Text) -> Group:
        """Return all of them, and what stands at the foot, as something that can be printed."""
        return Group(*self.heads, *(line for row in self.rows for line in row), *foot)


class Layout(NamedTuple):
    """The columns that are drawn, with how wide each is; and those whose cells stand below the rows."""

    widths: dict[str, int]
    below: list[str]


def lines_of_table(made: Table, width: int, most_below: int = _MOST_BELOW) -> Lines:
    """Return the lines of a table of at most this width.

    Args:
        made: The table.
        width: In cells.
        most_below: How many lines may stand below a row.
    """
    rows = [dict(zip(made.heads, map(_text_of_cell, row), strict=True)) for row in made.rows]
    widths, below = layout_of({head: [row[head] for row in rows] for head in made.heads}, width, made)
    drawn = []
    for row in rows:
        line = _line(_cell(head, row[head], cells_wide, made) for head, cells_wide in widths.items())
        said = "; ".join(text for head in below if (text := "".join(row[head])) != NOTHING)
        drawn.append([line, *_below(said, width, most_below)])
    heads = _line(
        _fitted(Text(head, "table.header"), cells_wide, is_right=head in made.right)
        for head, cells_wide in widths.items()
    )
    return Lines([heads, Text("─" * _wide_of(widths.values()))], drawn)


def layout_of(columns: Mapping[str, Sequence[str | LedCell]], width: int, made: Table) -> Layout:
    """Return what of a table is drawn in a width: columns give way, in their order, until the others have room."""
    left, below = dict(columns), []
    for head in made.gives_way or filter(None, [made.wide]):
        goes_below = head in made.below  # Nothing is lost by that, so not even what comes behind a lead is cut first.
        least = {one: _least(one, cells, made) + _seconds(cells) * goes_below for one, cells in left.items()}
        if _wide_of([min(_most(one, cells), least[one]) for one, cells in left.items()]) <= width:
            break
        del left[head]
        if goes_below:
            below.append(head)
    return Layout(_widths_of(left, width, made), below)


def _widths_of(columns: Mapping[str, Sequence[str | LedCell]], width: int, made: Table) -> dict[str, int]:
    """Return how wide each column is: the widest that has more than its least gives a cell, until all fit."""
    widths = {head: min(width, _most(head, cells)) for head, cells in columns.items()}
    least = {head: _least(head, cells, made) for head, cells in columns.items()}
    second = {head: least[head] + _seconds(cells) for head, cells in columns.items()}
    stages = (
        {head: second[head] if head == made.wide else one for head, one in widths.items()},
        second,
        least,
        {head: low if head in made.kept else 1 for head, low in least.items()},
        dict.fromkeys(columns, 1),
    )
    for floors in stages:
        while _wide_of(widths.values()) > width:
            wider = [head for head, one in widths.items() if one > floors[head]]
            if not wider:
                break
            widths[max(wider, key=widths.__getitem__)] -= 1
    return widths


def _wide_of(widths: Collection[int]) -> int:
    return sum(widths) + len(_GAP) * max(len(widths) - 1, 0)


def _most(head: str, cells: Iterable[str | LedCell]) -> int:
    return max(cell_len("".join(cell)) for cell in (head, *cells))


def _least(head: str, cells: Sequence[str | LedCell], made: Table) -> int:
    """Return how narrow a column may become while others can still be cut, or give way."""
    if head in made.kept:
        return _LEAST_KEPT
    if head in made.below or head in made.right:
        return _most(head, cells)  # What can stand below its row is not cut, and no number is.
    least = _LEAST_OF.get(head, _LEAST_NAME if head in _NAMES else _LEAST)
    led = max((len(cell.lead) for cell in cells if isinstance(cell, LedCell)), default=0)
    return max(least, min(led + 1, _MOST_LED) if led else 0)


def _seconds(cells: Iterable[str | LedCell]) -> int:
    return max((len(cell.second) for cell in cells if isinstance(cell, LedCell)), default=0)


def _text_of_cell(value: object) -> str | LedCell:
    if isinstance(value, LedCell):
        return LedCell(*map(plain, value))
    return NOTHING if value is None or value == "" else plain(value)


def _cell(head: str, cell: str | LedCell, width: int, made: Table) -> Text:
    """Return a cell: a Text, so that no bracket in it is taken for markup, and one line, cut where it is too long."""
    text = "".join(cell)
    if isinstance(cell, LedCell) and cell.lead and cell_len(text) > width <= cell_len(cell.lead):
        text = shortened_inside(cell.lead, width)
    elif head in _NAMES and cell_len(text) > width:
        text = shortened_inside(text, width)
    style = _COLOURS.get(text.partition(" ")[0], "") if head in _COLOURED else ""
    drawn = Text(text, style=style)
    if head == "workers":
        drawn.highlight_regex(r"\b\d+ failed", _COLOURS["failed"])
    return _fitted(drawn, width, is_right=head in made.right)


def _fitted(text: Text, width: int, *, is_right: bool) -> Text:
    text.truncate(width, overflow="ellipsis")
    text.align("right" if is_right else "left", width)
    return text


def _line(cells: Iterable[Text]) -> Text:
    line = Text(_GAP).join(cells)
    line.rstrip()
    line.no_wrap, line.overflow = True, "crop"
    return line


def _below(said: str, width: int, most: int) -> list[Text]:
    """Return what stands below a row, on as many lines as it needs and may have."""
    room = max(width - len(_INDENT), 2)
    lines = [line.plain for line in Text(said).wrap(Console(width=room), room)] if said else []
    if len(lines) > most:
        lines[most - 1 :] = [f"{lines[most - 1].rstrip()}…"]
    return [_line([_fitted(Text(f"{_INDENT}{line}"), width, is_right=False)]) for line in lines]


def draw(made: Table) -> None:
    """Print a table on stdout."""
    console = Console(highlight=False)
    console.print(lines_of_table(made, console.width).drawn())


def workers(rows: Iterable[WorkerRow]) -> Table:
    """Return the table of the workers of a task."""
    return WORKERS._replace(rows=[worker_cells(row) for row in rows])


def worker_cells(row: WorkerRow) -> tuple[object, ...]:
    """Return the cells of a worker, one for each of the heads of `WORKERS`."""
    time = duration(elapsed(row))
    command: object = row["command"]
    if row["driver"]:
        agent = agent_words(row)
        command = LedCell(agent, agent_with_policy(row).removeprefix(agent), f": {row['command']}")
    return name_with_try(row), row["status"], full_standing(row), time, said_words(row), command


class LiveWorkers:
    """The table of workers on stderr, drawn again at each change and removed at the end.

    Args:
        lost_command: The command line that has stranded workers started.
    """

    def __init__(self, lost_command: str, root: str) -> None:
        self._lost_command, self._root = lost_command, root
        self._stranded: Sequence[WorkerId] = ()
        self._holds: Sequence[str] = ()
        self._console = Console(stderr=True, highlight=False)
        self._live = self._new_live()
        self._asked: Sequence[PendingQuestion] = ()

    def _new_live(self) -> Live:
        return Live(console=self._console, auto_refresh=False, transient=True)

    def __enter__(self) -> LiveWorkers:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._live.stop()

    def hide(self) -> None:
        """Take the table away until the next `show`."""
        self._live.stop()

    def note_asked(self, asked: Sequence[PendingQuestion]) -> None:
        """Keep the open questions below the workers for the next `show`."""
        self._asked = asked

    def note_stranded(self, stranded: Sequence[WorkerId]) -> None:
        """Keep the workers that nobody starts for the next `show`."""
        self._stranded = stranded

    def note_held(self, holds: Sequence[str]) -> None:
        """Keep what holds workers in the queue for the next `show`."""
        self._holds = holds

    def show(self, rows: list[WorkerRow]) -> None:
        """Draw the rows that fit; if not all of them do, ended workers are left out first."""
        if not self._live.is_started:
            self._live = self._new_live()  # A stopped one would draw over what was printed since.
            self._live.start()
        made = lines_of_table(workers(rows), self._console.width, most_below=1)
        drawn = made._replace(rows=self._fitting(rows, made.rows))
        ended = sum(row["status"] in _ENDED for row in rows)
        failed = sum(row["status"] == "failed" for row in rows)
        asked = f"; {questions_open(self._asked, self._root)}" if self._asked else ""
        lost = f"; {stranded_words(self._stranded, self._lost_command)}" if self._stranded else ""
        held = "".join(f"; {hold}" for hold in self._holds) if any(row["health"] == HELD for row in rows) else ""
        # As a text, in which no bracket is markup.
        foot = Text.assemble(
            f"{ended} of {len(rows)} ended",
            (f", {failed} failed" if failed else "", _COLOURS["failed"]),
            f"{asked}{lost}{held}",
            style="table.caption",
        )
        self._live.update(drawn.drawn(foot), refresh=True)

    def _fitting(self, rows: Sequence[WorkerRow], lines: list[list[Text]]) -> list[list[Text]]:
        """Return the lines of as many rows as the terminal has room for."""
        room = max(self._console.height - 4, 3)
        kept = set[int]()
        for at in sorted(range(len(rows)), key=lambda at: rows[at]["status"] in _ENDED):
            room -= len(lines[at])
            if room < 0:
                break
            kept.add(at)
        return [lines[at] for at in sorted(kept)]


class LiveLines:
    """Lines on stdout, drawn again at each change; the last ones stay."""

    def __init__(self) -> None:
        self._console = Console(highlight=False)
        self._live = Live(console=self._console, auto_refresh=False)
        self._lines: list[str] = []

    def __enter__(self) -> LiveLines:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._live.update(_text_of(self._lines), refresh=True)
        self._live.stop()

    def show(self, lines: list[str]) -> None:
        """Draw the last lines that fit: the current activity is mostly there."""
        self._lines = lines
        room = max(self._console.height - 2, 3)
        more = len(lines) - room
        shown = lines if more <= 0 else [lines[0], f"  ... {more + 1} lines more", *lines[more + 2 :]]
        self._live.update(_text_of(shown), refresh=True)


def _text_of(lines: Sequence[str]) -> Text:
    return Text("\n".join(lines), no_wrap=True, overflow="ellipsis")


def width_of_terminal() -> int:
    """Return how many characters a line on stdout has."""
    return Console().width


def draw_looks(lines: Iterable[Iterable[tuple[str, str]]]) -> None:
    """Print lines of (text, look) on stdout; a look is a status, one of `_LOOKS`, or a look of `looks/look.py`."""
    console = Console(highlight=False)
    for line in lines:
        text = Text(no_wrap=True, overflow="crop")
        for part, look in line:
            text.append(part, _LOOKS.get(look) or _COLOURS.get(look) or style_of(look))
        console.print(text)
