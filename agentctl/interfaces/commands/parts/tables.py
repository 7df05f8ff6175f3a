"""Tables for terminals: the only module that loads rich, and only when a table is drawn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from agentctl.domain.states import HELD
from agentctl.domain.text.plaintext import plain, shortened_inside
from agentctl.interfaces.commands.model.command_model import LedCell
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
WORKER_HEADS = ("instance", "status", "reason", "time", "progress", "command")
#: How a worker stands, and why, is never cut.
WORKER_KEPT = ("status", "reason", "time")
_ENDED = frozenset({"completed", "failed", "cancelled"})
#: Names are cut in their middle: often they differ at the end. Others are cut there.
_NAMES = frozenset({"host", "instance", "task", "name"})
#: A column is as narrow as this at the least, unless not even that fits; one that is kept as narrow as `_LEAST_KEPT`.
_LEAST, _LEAST_OF, _LEAST_KEPT = 8, {"progress": 4, "workers": 12}, 30
#: And a column with led cells shows so much of what leads them.
_MOST_LED = 20
#: What rich puts between two columns.
_GAP = 3


def table(
    heads: Sequence[str],
    rows: Iterable[Sequence[object]],
    width: int,
    *,
    wide: str | None = None,
    kept: Sequence[str] = (),
) -> Table:
    """Return a table of at most this width.

    Args:
        wide: The column that is cut first.
        kept: Those that are cut last, when there is room for nothing else.
    """
    cells = [[_text_of_cell(value) for value in row] for row in rows]
    columns = [[head, *(row[at] for row in cells)] for at, head in enumerate(heads)]
    widths = widths_of(columns, width, wide, kept)
    drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for head, cells_wide in zip(heads, widths, strict=True):
        drawn.add_column(head, no_wrap=True, overflow="ellipsis", width=cells_wide)
    for row in cells:
        drawn.add_row(*(_cell(*one) for one in zip(heads, row, widths, strict=True)))
    return drawn


def widths_of(
    columns: Sequence[Sequence[str | LedCell]], width: int, wide: str | None, kept: Sequence[str]
) -> list[int]:
    """Return how wide each column is; the first cell of each is its head."""
    heads = [str(column[0]) for column in columns]
    widths = [min(width, max(_cells_of(cell) for cell in column)) for column in columns]
    least = [_least(column, head in kept) for head, column in zip(heads, columns, strict=True)]
    narrow = [
        low if head in kept else min(low, max(_LEAST, _led(column)))
        for head, low, column in zip(heads, least, columns, strict=True)
    ]
    stages = (
        [low if head == wide else one for head, low, one in zip(heads, least, widths, strict=True)],
        least,
        narrow,
        [low if head in kept else 1 for head, low in zip(heads, least, strict=True)],
        [1] * len(heads),
    )
    room = width - _GAP * (len(heads) - 1)
    for floors in stages:
        while sum(widths) > room:
            wider = [at for at, (one, low) in enumerate(zip(widths, floors, strict=True)) if one > low]
            if not wider:
                break
            widths[max(wider, key=widths.__getitem__)] -= 1
    return widths


def _least(column: Sequence[str | LedCell], is_kept: bool) -> int:
    """Return how narrow a column may become while others can still be cut."""
    least = _LEAST_KEPT if is_kept else _LEAST_OF.get(str(column[0]), _LEAST)
    second = max((len(cell.second) for cell in column if isinstance(cell, LedCell)), default=0)
    return max(least, _led(column) + second)


def _led(column: Sequence[str | LedCell]) -> int:
    """Return the width in which what leads the cells of a column can be read; 0 if nothing does."""
    led = max((len(cell.lead) for cell in column if isinstance(cell, LedCell)), default=0)
    return min(led + 1, _MOST_LED) if led else 0


def _text_of_cell(value: object) -> str | LedCell:
    if isinstance(value, LedCell):
        return LedCell(*map(plain, value))
    return NOTHING if value is None or value == "" else plain(value)


def _cells_of(cell: str | LedCell) -> int:
    return cell_len("".join(cell))


def _cell(head: str, cell: str | LedCell, width: int) -> Text:
    """Return a cell: a Text, so that no bracket in it is taken for markup, and one line, cut where it is too long."""
    text = "".join(cell)
    if isinstance(cell, LedCell) and cell.lead and cell_len(text) > width <= cell_len(cell.lead):
        text = shortened_inside(cell.lead, width)
    elif head in _NAMES and cell_len(text) > width:
        text = shortened_inside(text, width)
    style = _COLOURS.get(text.partition(" ")[0], "") if head in _COLOURED else ""
    drawn = Text(text, style=style, no_wrap=True, overflow="ellipsis")
    if head == "workers":
        drawn.highlight_regex(r"\b\d+ failed", _COLOURS["failed"])
    return drawn


def draw(
    heads: Sequence[str], rows: Iterable[Sequence[object]], *, wide: str | None = None, kept: Sequence[str] = ()
) -> None:
    """Print a table on stdout."""
    console = Console(highlight=False)
    console.print(table(heads, rows, console.width, wide=wide, kept=kept))


def workers(rows: Sequence[WorkerRow], width: int) -> Table:
    """Return the table of the workers of a task."""
    return table(WORKER_HEADS, (worker_cells(row) for row in rows), width, wide="command", kept=WORKER_KEPT)


def worker_cells(row: WorkerRow) -> tuple[object, ...]:
    """Return the cells of a worker, one for each of `WORKER_HEADS`."""
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
        room = max(self._console.height - 4, 3)
        shown = rows
        if len(rows) > room:
            kept = {id(row) for row in sorted(rows, key=lambda row: row["status"] in _ENDED)[:room]}
            shown = [row for row in rows if id(row) in kept]
        drawn = workers(shown, self._console.width)
        ended = sum(row["status"] in _ENDED for row in rows)
        failed = sum(row["status"] == "failed" for row in rows)
        asked = f"; {questions_open(self._asked, self._root)}" if self._asked else ""
        lost = f"; {stranded_words(self._stranded, self._lost_command)}" if self._stranded else ""
        held = "".join(f"; {hold}" for hold in self._holds) if any(row["health"] == HELD for row in rows) else ""
        # As a text, in which no bracket is markup.
        drawn.caption = Text.assemble(
            f"{ended} of {len(rows)} ended",
            (f", {failed} failed" if failed else "", _COLOURS["failed"]),
            f"{asked}{lost}{held}",
            style="table.caption",
        )
        self._live.update(drawn, refresh=True)


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
