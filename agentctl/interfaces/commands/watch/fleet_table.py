"""Draws the workers of a root by need, again at each change and each second: the screen without its library."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from rich.cells import chop_cells
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from agentctl.adapters.taskdir import Root
from agentctl.domain.answers import answers_in_words
from agentctl.domain.names import WorkerId
from agentctl.domain.question import Question, in_one_line
from agentctl.domain.text.plaintext import plain
from agentctl.interfaces.screen.fleet.drawing import draw_line
from agentctl.interfaces.screen.fleet.filtering import scope_of
from agentctl.interfaces.screen.fleet.lines import Arrangement, ListLine, lines_of
from agentctl.interfaces.words.worker import respond_command
from agentctl.lean import NoReturn
from agentctl.operations.fleet.fleet import Fleet
from agentctl.operations.fleet.glance import Glance
from agentctl.operations.fleet.seen import SeenEnds
from agentctl.operations.where.command_lines import root_words

_EVERY_S = 1.0
#: The rows that are left to what stands above it: how to get the screen.
_ABOVE = 4
#: Before what is drawn below a worker.
_INDENT = " " * 6
#: The role of a piece of a line -> how it is drawn; others are drawn as they are.
_STYLES = {
    "dim": "dim", "name": "bold", "agent": "blue", "review": "magenta", "heading": "bold",
    "heading-needs": "bold yellow", "heading-failed": "bold red", "queued": "dim", "running": "cyan",
    "blocked": "yellow", "completed": "green", "failed": "red", "cancelled": "magenta",
}  # fmt: skip


def draw_changes(root: Root, top: str | None) -> NoReturn:
    """Draw until this process is interrupted, and then leave nothing on the terminal.

    Args:
        top: Only this task and those below it.
    """
    console = Console(highlight=False)
    arrangement = Arrangement(has=None if top is None else scope_of(top))
    with (
        Fleet(root, SeenEnds(root)) as fleet,
        Live(console=console, auto_refresh=False, transient=True, vertical_overflow="crop") as live,
    ):
        while True:
            glance = fleet.look()
            lines = lines_of(glance, arrangement)
            shown = _fitting(glance, lines, console)
            live.update(Group(*shown), refresh=True)
            keys = (line.key for line in lines[: console.height])
            fleet.want({key: False for key in keys if isinstance(key, WorkerId)})
            fleet.sleep(_EVERY_S)


def _fitting(glance: Glance, lines: Sequence[ListLine], console: Console) -> list[Text]:
    """Return what fits the terminal, and how many lines are left out."""
    now, room = datetime.now(UTC), max(console.height - _ABOVE, 1)
    drawn = [text for line in lines[:room] for text in _drawn(glance, line, console.width, now)]
    if not drawn:
        return [Text("reading..." if glance.is_partial else "no worker yet: agentctl spawn -- COMMAND starts one")]
    left_out = len(drawn) + max(len(lines) - room, 0) - room
    return drawn if left_out <= 0 else [*drawn[:room], Text(f"... {left_out} lines more", style="dim")]


def _drawn(glance: Glance, line: ListLine, width: int, now: datetime) -> list[Text]:
    """Return a line of the list; below a worker that asks, its questions and the commands that answer them."""
    pieces = ((plain(text), _STYLES.get(role, "")) for text, role in draw_line(glance, line, width, now))
    found = [Text.assemble(*pieces, no_wrap=True, overflow="crop")]
    worker = glance.workers.get(line.key) if isinstance(line.key, WorkerId) else None
    if worker is None:
        return found
    for question in worker.questions:
        rows = question_rows(worker.id, question, width, root_words(worker.task.root))
        found += [Text(row, style="dim", no_wrap=True, overflow="ellipsis") for row in rows]
    return found


def question_rows(worker: WorkerId, question: Question, width: int, root: str) -> list[str]:
    """Return the rows below a worker that asks: the question on as many as it needs, then the command that answers it.

    The row of the worker cuts its first question at the end of the screen: nobody may allow what stands there alone.
    """
    seen = in_one_line(question)
    command = respond_command(worker, question.id, answers_in_words(question, seen), root)
    return [_INDENT + row for row in (*chop_cells(seen.text, max(width - len(_INDENT), 2)), command)]
