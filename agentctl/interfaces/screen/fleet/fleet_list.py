"""The list: one widget that draws the lines that are visible, however many there are.

Keys: arrows, `j` `k`, Page Up, Page Down, Home `g`, End `G`; Right `l` opens a line and Left `h` folds it. Nothing
moves under the cursor: it stays on its worker, and on its row of the screen.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from agentctl.domain.names import WorkerId
from agentctl.domain.worker.need import Need
from agentctl.interfaces.screen.fleet.drawing import Piece, draw_line, fit
from agentctl.interfaces.screen.fleet.filtering import NEEDS
from agentctl.interfaces.screen.fleet.lines import (
    Arrangement,
    Held,
    Key,
    ListLine,
    NodeId,
    hold_row,
    is_shown,
    lines_of,
    wanted,
    workers_shown,
)
from agentctl.operations.fleet.glance import FleetWorker, Glance

_ROLES = (
    "text", "dim", "name", "agent", "review", "heading", "heading-needs", "heading-failed", "queued", "running",
    "blocked", "completed", "failed", "cancelled", "node",
)  # fmt: skip
_CURSOR: Piece = ("", "cursor")
_EMPTY = (
    "Nothing here yet: write what to start in the line below; n opens it.",
    "  general WHAT TO DO   an agent and its prompt; Tab completes names",
    "  ! COMMAND            a command",
    "",
    "What you start stands here, below what it needs:",
    f"  {NEEDS[Need.NEEDS_YOU]:<19}it asks, and a digit answers",
    f"  {NEEDS[Need.REVIEW]:<19}it has answered or changed files: Enter opens it",
    f"  {NEEDS[Need.FAILED]:<19}nobody has looked yet: y says why, r starts it again",
    f"  {NEEDS[Need.WORKING]}, {NEEDS[Need.QUEUED]}, {NEEDS[Need.DONE]}",
    "",
    "Esc closes the line; then ? shows the keys, q leaves. Workers go on.",
)
_NOTHING_FITS = "Nothing fits the filter: press Escape to see everything."


class FleetList(ScrollView, can_focus=True):
    """The workers of a root, by need or as a tree."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"list--{role}" for role in _ROLES} | {"list--cursor", "list--marked"}
    DEFAULT_CSS = """
    FleetList { height: 1fr; scrollbar-size-horizontal: 0; scrollbar-size-vertical: 1; }
    FleetList > .list--dim { text-style: dim; }
    FleetList > .list--name { text-style: bold; }
    FleetList > .list--agent { color: $secondary; }
    FleetList > .list--review { color: $accent; }
    FleetList > .list--heading { text-style: bold; }
    FleetList > .list--heading-needs { text-style: bold; color: $warning; }
    FleetList > .list--heading-failed { text-style: bold; color: $error; }
    FleetList > .list--queued { text-style: dim; }
    FleetList > .list--running { color: $secondary; }
    FleetList > .list--blocked { color: $warning; }
    FleetList > .list--completed { color: $success; }
    FleetList > .list--failed { color: $error; }
    FleetList > .list--cancelled { color: $primary; }
    FleetList > .list--cursor { text-style: reverse; }
    FleetList > .list--marked { text-style: underline; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "Up", show=False),
        Binding("down,j", "move(1)", "Down", show=False),
        Binding("pageup,ctrl+b", "page(-1)", "Page up", show=False),
        Binding("pagedown,ctrl+f", "page(1)", "Page down", show=False),
        Binding("home,g", "end(False)", "First line", show=False),
        Binding("end,G", "end(True)", "Last line", show=False),
        Binding("right,l", "unfold", "Open", show=False),
        Binding("left,h", "fold", "Fold", show=False),
        Binding("tab", "app.next_need", "Next who needs you", show=False),
    ]

    class Moved(Message):
        """The cursor is on another line, or what is on its line has changed."""

    class Scrolled(Message):
        """Other lines are visible."""

    class Focused(Message):
        """The keys go to the list."""

    class Chosen(Message):
        """The line under the cursor is to be opened."""

    def __init__(self, arrangement: Arrangement) -> None:
        super().__init__()
        self.arrangement = arrangement
        self.glance = Glance({}, {}, {}, is_partial=True)
        self.lines: list[ListLine] = []
        self._places: dict[Key, int] = {}
        self._cursor = 0
        #: Workers that were marked: a key acts on those of them that the filter shows.
        self.marked: set[WorkerId] = set()
        self._now = datetime.now(UTC)
        #: How many rows it had when its size was last looked at.
        self._height = 0
        #: What each row of the screen shows.
        self._drawn: dict[int, tuple[Piece, ...]] = {}

    # -- what is shown -------------------------------------------------------------------------------------------------

    def show(self, glance: Glance) -> None:
        """Show a new glance."""
        self._hold()  # As it stood until now.
        self.glance = glance
        self.marked &= glance.workers.keys()
        self.rearrange()

    def rearrange(self) -> None:
        """Make the lines anew; the cursor stays on its line, and that line on its row of the screen."""
        before, row = self.line, self._cursor - self.scroll_offset.y
        self.lines = lines_of(self.glance, self.arrangement)
        self._places = {line.key: place for place, line in enumerate(self.lines)}
        if before is not None:
            self._cursor = self._place_of(before.key)
        else:  # The first worker, and not the heading above it.
            self._cursor = next((at for at, line in enumerate(self.lines) if isinstance(line.key, WorkerId)), 0)
        self._cursor = max(0, min(self._cursor, len(self.lines) - 1))
        self.virtual_size = Size(self._width, len(self.lines))
        if before is not None:
            self.scroll_to(y=max(0, self._cursor - row), animate=False, immediate=True)
        self.tick()
        self.post_message(self.Moved())

    @property
    def _width(self) -> int:
        """Return the width of a line: the bar beside the list takes a column of its own."""
        return self.scrollable_content_region.width

    def _hold(self) -> None:
        """Keep the worker under the cursor where it stands, and no other."""
        if self.worker is None:
            self.arrangement.held = None
        else:
            hold_row(self.worker, self.arrangement)

    def _has_moved(self, held: Held) -> bool:
        """Return whether a worker would stand elsewhere, if it had not been held."""
        worker = self.glance.workers.get(held.worker)
        return worker is not None and worker.need is not held.need

    def _place_of(self, key: Key) -> int:
        """Return where a line is; if it is no longer there, where it was, or the line of its worker."""
        if key in self._places:
            return self._places[key]
        if isinstance(key, NodeId) and key.worker in self._places:
            return self._places[key.worker]
        return self._cursor

    def tick(self) -> None:
        """Draw what has changed of the visible lines, the times among them: a line over ssh takes its time."""
        self._now = datetime.now(UTC)
        for y in range(self.size.height):
            if self._drawn.get(y) != self._drawing(y):
                self.refresh(Region(0, y, self._width, 1))

    def wanted(self) -> dict[WorkerId, bool]:
        """Return the workers of the visible lines, and a page around them: True of those that are open."""
        height = max(1, self.size.height)
        first = max(0, self.scroll_offset.y - height // 2)
        return wanted(self.glance, self.lines[first : self.scroll_offset.y + height + height // 2], self.arrangement)

    # -- the cursor ----------------------------------------------------------------------------------------------------

    @property
    def line(self) -> ListLine | None:
        """Return the line under the cursor."""
        return self.lines[self._cursor] if 0 <= self._cursor < len(self.lines) else None

    @property
    def worker(self) -> FleetWorker | None:
        """Return the worker that the cursor is on, or in whose activity it is."""
        key = None if self.line is None else self.line.key
        if isinstance(key, NodeId):
            key = key.worker
        return self.glance.workers.get(key) if isinstance(key, WorkerId) else None

    @property
    def task_id(self) -> str | None:
        """Return the task that the cursor is in."""
        if self.worker is not None:
            return self.worker.task.id
        key = None if self.line is None else self.line.key
        return key if isinstance(key, str) else None

    def go_to(self, place: int) -> None:
        """Move the cursor; what was held where it stood may move now."""
        was_held, was_at = self.arrangement.held, self._cursor
        self._cursor = max(0, min(place, len(self.lines) - 1))
        self._hold()
        if was_held is not None and was_held != self.arrangement.held and self._has_moved(was_held):
            self.rearrange()
        self.scroll_to_region(Region(0, self._cursor, 1, 1), animate=False, immediate=True, force=True)
        # A scrolled list draws itself. Otherwise no more than two rows change: to draw all 60 takes 10 ms.
        for changed in (was_at, self._cursor):
            self.refresh(Region(0, changed - self.scroll_offset.y, self._width, 1))
        self.post_message(self.Moved())

    def go_to_key(self, key: Key) -> bool:
        """Move the cursor to a line; return whether there is such a line."""
        if key in self._places:
            self.go_to(self._places[key])
        return key in self._places

    def action_move(self, by: int) -> None:
        """Move by lines."""
        self.go_to(self._cursor + by)

    def action_page(self, by: int) -> None:
        """Move by pages."""
        self.go_to(self._cursor + by * max(1, self.size.height - 1))

    def action_end(self, last: bool) -> None:
        """Move to the first or the last line."""
        self.go_to(len(self.lines) - 1 if last else 0)

    def action_unfold(self) -> None:
        """Open what is below the line; if it is open, go there."""
        line = self.line
        if line is None or line.is_folded is None:
            return
        if line.is_folded:
            self.toggle()
        else:
            self.action_move(1)

    def action_fold(self) -> None:
        """Fold the line; if it is folded, go to the line that it is below."""
        line = self.line
        if line is None:
            return
        if line.is_folded is False:
            self.toggle()
            return
        above = next((place for place in range(self._cursor - 1, -1, -1) if self.lines[place].depth < line.depth), None)
        if above is not None:
            self.go_to(above)

    def toggle(self) -> None:
        """Open the line, or fold it."""
        if self.line is not None and self.line.is_folded is not None:
            self.arrangement.toggle(self.line.key)
            self.rearrange()

    def toggle_mark(self) -> None:
        """Mark the worker under the cursor, or take its mark away."""
        if self.worker is not None:
            self.marked ^= {self.worker.id}
            self.action_move(1)

    def marked_workers(self) -> list[FleetWorker]:
        """Return the marked workers that the filter shows, in the order of their names."""
        workers = self.glance.workers
        marked = (workers[key] for key in sorted(self.marked) if key in workers)
        return [worker for worker in marked if is_shown(self.glance, self.arrangement, worker)]

    def toggle_all_marks(self) -> None:
        """Mark all workers that the filter shows, but for earlier tries; if they are, take the marks away."""
        shown = workers_shown(self.glance, self.arrangement)
        counting = {key for key, worker in shown.items() if worker.need is not Need.EARLIER}
        self.marked = set() if counting <= self.marked else self.marked | counting
        self.refresh()

    def unmark(self) -> None:
        """Take all marks away."""
        self.marked.clear()
        self.refresh()

    # -- the mouse -----------------------------------------------------------------------------------------------------

    def on_click(self, event: events.Click) -> None:
        """Move the cursor to the line that was clicked; a click on its mark, or a second one, opens it."""
        place = event.y + self.scroll_offset.y
        if place >= len(self.lines):
            return
        is_second, line = place == self._cursor and event.chain > 1, self.lines[place]
        self.go_to(place)
        if line.is_folded is not None and event.x < 2 * line.depth + 2:
            self.toggle()
        elif is_second:
            self.post_message(self.Chosen())

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Say that other lines are visible: a wheel does not move the cursor."""
        super().watch_scroll_y(old_value, new_value)
        self.post_message(self.Scrolled())

    def on_focus(self) -> None:
        """Say that nothing is being written any more."""
        self.post_message(self.Focused())

    # -- drawing -------------------------------------------------------------------------------------------------------

    def render_line(self, y: int) -> Strip:
        """Draw one row of the screen."""
        drawing = self._drawn[y] = self._drawing(y)
        is_cursor = bool(drawing) and drawing[0] == _CURSOR
        return self._strip(drawing[1:] if is_cursor else drawing, self._width, is_cursor=is_cursor)

    def _drawing(self, y: int) -> tuple[Piece, ...]:
        """Return the pieces of a row of the screen; those of the row with the cursor follow a mark."""
        width, place = self._width, y + self.scroll_offset.y
        if place >= len(self.lines):
            lines = () if self.lines else (_NOTHING_FITS,) if self.glance.workers else _EMPTY
            text = lines[y - 1] if 0 < y <= len(lines) else ""
            is_known = not self.glance.is_partial
            return tuple(fit([(f"  {text}" if is_known else "", "dim")], width))
        line = self.lines[place]
        pieces = draw_line(self.glance, line, width, self._now)
        if line.key in self.marked:
            pieces = [(text, "marked" if role in ("text", "name") else role) for text, role in pieces]
        return (_CURSOR, *pieces) if place == self._cursor and self.has_focus else tuple(pieces)

    def _strip(self, pieces: Sequence[Piece], width: int, *, is_cursor: bool) -> Strip:
        base = self.rich_style
        cursor = self.get_component_rich_style("list--cursor", partial=True) if is_cursor else None
        segments = []
        for text, role in pieces:
            style = self.get_component_rich_style(f"list--{role}", partial=True)
            # Colours that were reversed piece by piece would make the line of the cursor hard to read.
            segments.append(Segment(text, base + (style if cursor is None else Style(bold=style.bold) + cursor)))
        return Strip(segments, width)

    def on_resize(self) -> None:
        """Keep the cursor visible; but whoever has scrolled away from it reads something else."""
        was_visible = 0 <= self._cursor - self.scroll_offset.y < self._height
        self._height = self.size.height
        self.virtual_size = Size(self._width, len(self.lines))
        if self.lines and was_visible:
            self.scroll_to_region(Region(0, self._cursor, 1, 1), animate=False, immediate=True, force=True)
        self.post_message(self.Moved())
