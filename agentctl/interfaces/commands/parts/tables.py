"""Tables for terminals: the only module that loads rich, and only when a table is drawn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from agentctl.domain.states import HELD
from agentctl.domain.text.plaintext import plain
from agentctl.interfaces.words.value_words import NOTHING, duration
from agentctl.interfaces.words.worker import (
    agent_with_policy,
    elapsed,
    progress_words,
    questions_open,
    standing_words,
    stranded_words,
)

if TYPE_CHECKING:
    from agentctl.domain.documents.workers.worker import WorkerRow
    from agentctl.domain.names import WorkerId
    from agentctl.operations.show.askers import PendingQuestion

_COLOURS = {
    "queued": "dim", "running": "cyan", "blocked": "yellow", "completed": "green", "failed": "red",
    "cancelled": "magenta", "working": "cyan", "input-required": "yellow", "canceled": "magenta",
    "stranded": "yellow", "held": "yellow",
}  # fmt: skip
#: Looks that are not statuses, in pictures of characters.
_LOOKS = {"dim": "dim", "bold": "bold", "parked": "magenta", "critical": "bold red"}
_COLOURED = ("status", "state")
WORKER_HEADS = ("instance", "status", "reason", "time", "progress", "command")
_ENDED = frozenset({"completed", "failed", "cancelled"})


def table(heads: Sequence[str], rows: Iterable[Sequence[object]], *, wide: str | None = None) -> Table:
    """Return a table; the column `wide` gets the room that is left and is cut where there is none."""
    drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for head in heads:
        drawn.add_column(head, no_wrap=head != wide)  # rich takes the room from those that may wrap
    for row in rows:
        drawn.add_row(*(_cell(head, value) for head, value in zip(heads, row, strict=True)))
    return drawn


def _cell(head: str, value: object) -> Text:
    """Return a cell: a Text, so that no bracket in it is taken for markup, and one line, cut at its end."""
    text = NOTHING if value is None or value == "" else plain(value)
    style = _COLOURS.get(text.partition(" ")[0], "") if head in _COLOURED else ""
    return Text(text, style=style, no_wrap=True, overflow="ellipsis")


def draw(heads: Sequence[str], rows: Iterable[Sequence[object]], *, wide: str | None = None) -> None:
    """Print a table on stdout."""
    Console(highlight=False).print(table(heads, rows, wide=wide))


def workers(rows: Sequence[WorkerRow]) -> Table:
    """Return the table of the workers of a task."""
    return table(WORKER_HEADS, (worker_cells(row) for row in rows), wide="command")


def worker_cells(row: WorkerRow) -> tuple[object, ...]:
    """Return the cells of a worker, one for each of `WORKER_HEADS`."""
    time = duration(elapsed(row))
    command = f"{agent_with_policy(row)}: {row['command']}" if row["driver"] else row["command"]
    return row["agentInstance"], row["status"], standing_words(row), time, progress_words(row["progress"]), command


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
        self._live = Live(console=self._console, auto_refresh=False, transient=True)
        self._asked: Sequence[PendingQuestion] = ()

    def __enter__(self) -> LiveWorkers:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
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
        room = max(self._console.height - 4, 3)
        shown = rows
        if len(rows) > room:
            kept = {id(row) for row in sorted(rows, key=lambda row: row["status"] in _ENDED)[:room]}
            shown = [row for row in rows if id(row) in kept]
        drawn = workers(shown)
        ended = sum(row["status"] in _ENDED for row in rows)
        asked = f"; {questions_open(self._asked, self._root)}" if self._asked else ""
        lost = f"; {stranded_words(self._stranded, self._lost_command)}" if self._stranded else ""
        held = "".join(f"; {hold}" for hold in self._holds) if any(row["health"] == HELD for row in rows) else ""
        # As a text, in which no bracket is markup.
        drawn.caption = Text(f"{ended} of {len(rows)} ended{asked}{lost}{held}", style="table.caption")
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
    """Print lines of (text, look) on stdout; a look is a status, or one of `_LOOKS`."""
    console = Console(highlight=False)
    for line in lines:
        text = Text(no_wrap=True, overflow="crop")
        for part, look in line:
            text.append(part, _LOOKS.get(look) or _COLOURS.get(look, ""))
        console.print(text)
