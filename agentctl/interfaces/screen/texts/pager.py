"""One widget for a long text of a worker, of any size: its transcript, its raw output, its events, a diff, a result.

It draws the rows that are visible, and reads on in a thread. Its keys:

    up k, down j              one row
    page up b, page down space  one page
    home g                    the beginning
    end G                     the end, and follow what comes
    f                         follow what comes, or stop following
    left h, right l           to the side, where lines are not wrapped
    w                         wrap long lines, or do not
    /                         search; enter begins it, escape leaves it
    n N                       the next hit, the one before
    m                         draw a line: all that comes is below it
    escape                    forget the search

The mouse wheel scrolls three rows. Scrolling up stops following.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Input
from textual.worker import get_current_worker

from agentctl.domain.text.terminal_output import StyledText
from agentctl.interfaces.screen.texts.layout import head_of, usable_hang
from agentctl.interfaces.screen.texts.needle import Needle
from agentctl.interfaces.screen.texts.reading_on import FolderWatch, ReadingOn
from agentctl.interfaces.screen.texts.searching import HitCount, NextHit, find_next
from agentctl.interfaces.screen.texts.shown import DrawnForm, LookRange, Spot, Tone, text_problem
from agentctl.interfaces.screen.texts.sources import PagerSource
from agentctl.interfaces.screen.texts.window import Anchor, ShownRow, TextWindow
from agentctl.interfaces.words.looks.look import style_of

_WHEEL_ROWS = 3
_SIDE_CELLS = 8
#: Longer lines are not scrolled to.
_MOST_SIDE_CELLS = 1 << 16


class Pager(Widget, can_focus=True):
    """Shows a source, follows it, and searches it."""

    DEFAULT_CSS = """
    Pager { background: $background; color: $foreground; overflow: hidden hidden; }
    Pager > .pager--quiet { color: $text-muted; }
    Pager > .pager--stamp { color: $text-muted; }
    Pager > .pager--call { color: $text-primary; }
    Pager > .pager--question { color: $text-warning; text-style: bold; }
    Pager > .pager--problem { color: $text-error; }
    Pager > .pager--added { color: $text-success; }
    Pager > .pager--removed { color: $text-error; }
    Pager > .pager--hunk { color: $text-accent; }
    Pager > .pager--heading { text-style: bold; }
    Pager > .pager--hit { background: $warning-muted; color: $text-warning; }
    Pager > .pager--current-hit { background: $warning; color: $background; text-style: bold; }
    Pager > .pager--divider { color: $text-accent; }
    Pager > .pager--footer { background: $panel; color: $text-muted; }
    Pager:focus > .pager--footer { background: $primary-muted; color: $text; }
    Pager > Input { dock: bottom; height: 1; display: none; }
    Pager > Input.-typing { display: block; }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"pager--{name}" for name in (*Tone, "stamp", "hit", "current-hit", "divider", "footer")
    }
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "scroll_rows(-1)", "Up", show=False),
        Binding("down,j", "scroll_rows(1)", "Down", show=False),
        Binding("pageup,b", "scroll_pages(-1)", "Page up", show=False),
        Binding("pagedown,space", "scroll_pages(1)", "Page down", show=False),
        Binding("home,g", "beginning", "Beginning", show=False),
        Binding("end,G", "end", "End", show=False),
        Binding("left,h", "sideways(-1)", "Left", show=False),
        Binding("right,l", "sideways(1)", "Right", show=False),
        Binding("f", "follow", "Follow"),
        Binding("w", "wrap", "Wrap"),
        Binding("slash", "search", "Search", key_display="/"),
        Binding("n", "hit(1)", "Next hit"),
        Binding("N", "hit(-1)", "Hit before", show=False),
        Binding("m", "divide", "Draw a line"),
        Binding("escape", "forget_search", "Forget the search", show=False),
    ]

    class Grown(Message):
        """The text has grown, or was replaced."""

        def __init__(self, pager: Pager) -> None:
            super().__init__()
            self.pager = pager

        @property
        def control(self) -> Pager:
            """The pager."""
            return self.pager

        def can_replace(self, message: Message) -> bool:
            """One such message says as much as many."""
            return isinstance(message, Pager.Grown)

    class Changed(Message):
        """Its files have changed (of a pager that watches them itself)."""

        def can_replace(self, message: Message) -> bool:
            """One such message says as much as many."""
            return isinstance(message, Pager.Changed)

    class Searched(Message):
        """A search has ended: at a hit, without one, or because the text cannot be read."""

        def __init__(self, pager: Pager, count: HitCount, found: NextHit | None, problem: str | None = None) -> None:
            super().__init__()
            self.pager, self.count, self.found, self.problem = pager, count, found, problem

        @property
        def control(self) -> Pager:
            """The pager."""
            return self.pager

    class Counted(Message):
        """All hits have been counted."""

        def __init__(self, count: HitCount) -> None:
            super().__init__()
            self.count = count

    def __init__(
        self, source: PagerSource, *, watches: bool = False, follows: bool = True, empty: str = "no output yet",
        name: str | None = None, id: str | None = None, classes: str | None = None,  # noqa: A002 - as in textual
    ) -> None:  # fmt: skip
        """Show a source.

        Args:
            watches: Watch its files; otherwise the app calls `refresh_source` when something may have changed.
            follows: Begin at the end, and follow; otherwise at the beginning.
            empty: What is shown of an empty text.
        """
        super().__init__(name=name, id=id, classes=classes)
        self.source = source
        self.follows = follows
        self._empty, self._watches = empty, watches
        self._window = TextWindow(source)
        self._reading = ReadingOn(source, self._start_reading, lambda: self.post_message(self.Grown(self)))
        self._watch: FolderWatch | None = None
        self._visible: list[ShownRow] = []
        self._left = 0
        #: How many paragraphs there were when it stopped following.
        self._known = 0
        self._count: HitCount | None = None
        self._hit: Spot | None = None
        self._note = ""
        self._colours: Style | None = None
        self._is_typing = False
        self._search_line = Input(placeholder="search", compact=True)

    def compose(self) -> ComposeResult:
        """Put in the line in which a search is typed."""
        yield self._search_line

    # -- reading on ----------------------------------------------------------------------------------------------

    def refresh_source(self) -> None:
        """Take up what was appended; to be called when something may have changed, as often as one likes."""
        self._reading.ask()

    def _start_reading(self, run: Callable[[], None]) -> None:
        self.run_worker(run, thread=True, group="pager-reading")

    def on_mount(self) -> None:
        """Begin to read."""
        self.refresh_source()
        if self._watches and self.source.paths:
            self._watch = FolderWatch(self.source.paths, lambda: self.post_message(self.Changed()))

    def on_unmount(self) -> None:
        """End the threads, and close the files."""
        self._reading.stop()
        if self._watch is not None:
            self._watch.close()
            self._watch = None

    def on_pager_changed(self, message: Changed) -> None:
        """Read on."""
        message.stop()
        self.refresh_source()

    def on_pager_grown(self, message: Grown) -> None:
        """Draw what has come, if it is visible."""
        if message.pager is self:
            self._draw()

    def on_resize(self, event: events.Resize) -> None:
        """Keep the top where it is."""
        if isinstance(self.source, DrawnForm):
            self.source.fit(event.size.width)
        self._window.change(width=event.size.width, height=event.size.height - 1)
        self._draw()

    # -- drawing -------------------------------------------------------------------------------------------------

    def _draw(self) -> None:
        window = self._window
        if window.renew():
            self._known, self._hit, self._note = 0, None, ""
            self._count = None if self._count is None else HitCount(self._count.needle)
        if self.follows:
            window.top = window.lowest_top()
            self._known = len(self.source)
        else:
            window.settle()
        self._visible = list(window.rows())
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Return a row of the widget: of the text, or the footer."""
        width = self.size.width
        if y == self.size.height - 1:
            return self._footer(width)
        if not self._visible and y == 0:
            return Strip([Segment(self._state(), self._style("quiet"))]).adjust_cell_length(width, self._usual())
        if y >= len(self._visible):
            return Strip.blank(width, self._usual())
        row = self._visible[y]
        if row.divider is not None:
            return Strip([Segment(f"-- {row.divider} ".ljust(width, "-"), self._style("divider"))]).crop(0, width)
        return self._text_strip(row, width)

    def _state(self) -> str:
        return self._reading.problem or self.source.problem or self._empty

    def notify_style_update(self) -> None:
        """Compute the colours anew: the theme has changed, or the focus."""
        super().notify_style_update()
        self._colours = None

    def _usual(self) -> Style:
        """Return the style of usual text; textual computes it each time, in 0.1 ms."""
        if self._colours is None:
            self._colours = self.rich_style
        return self._colours

    def _style(self, name: str) -> Style:
        return self.get_component_rich_style(f"pager--{name}")

    def _text_strip(self, row: ShownRow, width: int) -> Strip:
        text, start, end = row.line.drawn, row.start, row.end
        hang = usable_hang(row.line.hang, width) if start else 0
        if not self._window.wraps:
            text = head_of(text, self._left + width)
            end = len(text)
        segments = [Segment(" " * hang, self._usual())] if hang else []
        segments += self._segments(row, text, start, end)
        strip = Strip(segments)
        return strip.crop_extend(self._left, self._left + width, self._usual())

    def _segments(self, row: ShownRow, text: str, start: int, end: int) -> list[Segment]:
        """Return a part of a line, its time and the hits in it drawn as such."""
        line = row.line
        usual = self._usual() if line.tone == Tone.USUAL else self._style(line.tone)
        parts = [(0, line.stamp, self._style("stamp")), (line.stamp, len(text), usual)]
        if line.looks:
            parts = [one for begin, end, style in parts for one in _with_looks(begin, end, style, line.looks)]
        if line.spans:
            parts = list(_styled(line.spans, usual))
        if self._count is not None:
            is_current = row.anchor[:2] == self._hit
            hit = self._style("current-hit" if is_current else "hit")
            parts = _with_hits(parts, self._count.needle.spans(text), hit)
        cut = ((max(begin, start), min(stop, end), style) for begin, stop, style in parts)
        return [Segment(text[begin:stop], style) for begin, stop, style in cut if begin < stop]

    # -- the footer ----------------------------------------------------------------------------------------------

    def _footer(self, width: int) -> Strip:
        left = self._note or self._search_state() or self.source.problem or self._reading.problem or ""
        right = self._position()
        room = width - len(right) - 1
        style = self._style("footer")
        return Strip([Segment(left[: max(0, room)], style)]).adjust_cell_length(max(0, room), style) + Strip(
            [Segment(f" {right}"[: max(0, width)], style)]
        )

    def _search_state(self) -> str:
        count = self._count
        if count is None:
            return ""
        place = f"{count.place_of(self._hit):,} of " if self._hit is not None else ""
        return f"/{count.needle.text}  {place}{count}"

    def _position(self) -> str:
        total = len(self.source)
        if not total or not self._visible:
            return "empty"
        bottom = min(self._visible[-1].anchor.paragraph + 1, total)
        new = total - max(self._known, bottom)
        where = "following" if self.follows else f"{new:,} new below" if new > 0 else f"{100 * bottom // total}%"
        return f"{where}  {bottom:,} of {total:,}"

    @property
    def position(self) -> str:
        """What the footer says of the position: `following  120 of 3,400`."""
        return self._position()

    @property
    def top(self) -> Anchor:
        """The first visible row."""
        return self._window.top

    @property
    def is_reading(self) -> bool:
        """Whether its source is being read on."""
        return self._reading.is_running

    # -- keys ----------------------------------------------------------------------------------------------------

    def action_scroll_rows(self, rows: int) -> None:
        """Scroll down by so many rows, or up."""
        self._stop_following(unless=rows > 0)
        self._window.move(rows)
        self._note = ""
        self._draw()

    def action_scroll_pages(self, pages: int) -> None:
        """Scroll down by so many pages, or up; a row of the page before stays visible."""
        self.action_scroll_rows(pages * max(1, self._window.height - 1))

    def _stop_following(self, *, unless: bool = False) -> None:
        if self.follows and not unless:
            self.follows, self._known = False, len(self.source)

    def action_beginning(self) -> None:
        """Show the beginning."""
        self._stop_following()
        self._window.top = self._window.first()
        self._draw()

    def action_end(self) -> None:
        """Show the end, and follow what comes."""
        self.follows = True
        self._draw()

    def action_follow(self) -> None:
        """Follow what comes, or stop following."""
        if self.follows:
            self._stop_following()
        else:
            self.follows = True
        self._draw()

    def action_wrap(self) -> None:
        """Wrap long lines, or do not."""
        self._left = 0
        self._window.change(wraps=not self._window.wraps)
        self._draw()

    def action_sideways(self, steps: int) -> None:
        """Scroll to the right, or to the left, where lines are not wrapped."""
        if not self._window.wraps:
            self._left = min(max(0, self._left + steps * _SIDE_CELLS), _MOST_SIDE_CELLS)
            self.refresh()

    def action_divide(self) -> None:
        """Draw a line below all that has come."""
        self._window.divide(time.strftime("%H:%M:%S"))
        self._draw()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Scroll down."""
        event.stop()
        self.action_scroll_rows(_WHEEL_ROWS)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Scroll up."""
        event.stop()
        self.action_scroll_rows(-_WHEEL_ROWS)

    def change_source(self) -> None:
        """Show the text as it was written, or drawn again, if it can be."""
        if isinstance(self.source, DrawnForm):
            self._hit = None  # It was in the other form.
            self._count = None if self._count is None else HitCount(self._count.needle)
            self.source.change_source()
            self._draw()

    # -- the search ----------------------------------------------------------------------------------------------

    def action_search(self) -> None:
        """Have a search typed."""
        self._is_typing = True
        self._search_line.value = ""
        self._search_line.add_class("-typing")
        self.screen.set_focus(self._search_line)  # At once: `focus` would leave the next keys to the pager.

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Search for what was typed; for nothing, for the same as before."""
        event.stop()
        self.focus()
        if event.value:
            self._count, self._hit = HitCount(Needle(event.value)), None
        self.action_hit(1)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Keep to itself what is being typed."""
        event.stop()

    def on_focus(self) -> None:
        """Leave the line of the search: the person has gone back to the text."""
        if self._is_typing and self.screen.focused is self:  # It may have left again since.
            self._is_typing = False
            self._search_line.remove_class("-typing")

    def action_forget_search(self) -> None:
        """Leave the search, and do not draw its hits any more."""
        self.workers.cancel_group(self, "pager-search")
        self.focus()
        self._count, self._hit, self._note = None, None, ""
        self._draw()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002
        """Leave escape to others where there is no search, and n where there is nothing to find."""
        if action == "forget_search":
            return self._count is not None or self._is_typing
        return action != "hit" or self._count is not None

    def action_hit(self, direction: int) -> None:
        """Show the next hit, or the one before."""
        count, rows = self._count, self._visible
        if count is None:
            return
        top = rows[0].anchor if rows else self._window.top
        start = self._hit or Spot(top.paragraph, max(top.line, 0) - (direction > 0))
        self._note = f"searching for {count.needle.text}"
        self.refresh()
        search = partial(self._search, count, start, backwards=direction < 0)
        self.run_worker(search, thread=True, group="pager-search", exclusive=True)

    def _search(self, count: HitCount, start: Spot, *, backwards: bool) -> None:
        worker = get_current_worker()

        def is_over() -> bool:
            return worker.is_cancelled

        try:
            found = find_next(self.source, count.needle, start, is_over, backwards=backwards)
            if not is_over():
                self.post_message(self.Searched(self, count, found))
            count.extend(self.source, is_over)
        except IndexError:
            return  # The text was replaced meanwhile.
        except Exception as error:  # noqa: BLE001 - whatever it is, the footer says it
            self.post_message(self.Searched(self, count, None, text_problem(error)))
            return
        if not is_over():
            self.post_message(self.Counted(count))

    def on_pager_searched(self, message: Searched) -> None:
        """Show the hit."""
        found = message.found
        if message.pager is not self or message.count is not self._count:
            return
        self._note = ""
        if found is None:
            self._note = message.problem or f"not found: {message.count.needle.text}"
        else:
            self._stop_following()
            self._hit = found.spot
            self._reveal(found.spot, message.count.needle)
            self._note = "the search went on from the other end" if found.is_wrapped else ""
        self._draw()

    def _reveal(self, spot: Spot, needle: Needle) -> None:
        lines = self._window.lines(spot.paragraph) if spot.paragraph < len(self.source) else ()
        text = lines[spot.line].drawn if spot.line < len(lines) else ""
        column = next((begin for begin, _ in needle.spans(text)), 0)
        self._window.reveal(spot, column)
        if not self._window.wraps:
            at = cell_len(text[:column])
            is_visible = self._left <= at < self._left + self.size.width - len(needle.text)
            self._left = self._left if is_visible else max(0, at - self.size.width // 3)

    def on_pager_counted(self, message: Counted) -> None:
        """Show how many hits there are."""
        message.stop()
        if message.count is self._count:
            self.refresh()


def _with_looks(begin: int, end: int, usual: Style, looks: Sequence[LookRange]) -> Iterator[tuple[int, int, Style]]:
    """Yield a part of a line, its looks laid over it."""
    at = begin
    for first, last, look in looks:
        if at <= first < end:
            yield at, first, usual
            at = min(last, end)
            yield first, at, usual + Style.parse(style_of(look))
    yield at, end, usual


def _styled(spans: Iterable[StyledText], usual: Style) -> Iterator[tuple[int, int, Style]]:
    """Yield the parts of a line that has styles of its own."""
    begin = 0
    for text, style in spans:
        yield begin, begin + len(text), usual + Style.parse(style_of(style)) if style else usual
        begin += len(text)


def _with_hits(
    parts: Sequence[tuple[int, int, Style]], hits: list[tuple[int, int]], style: Style
) -> list[tuple[int, int, Style]]:
    """Return parts of a line with hits laid over them."""
    at, found = 0, []
    for begin, end in [*hits, (parts[-1][1], parts[-1][1])]:
        found += [(max(first, at), min(last, begin), usual) for first, last, usual in parts]
        found.append((begin, end, style))
        at = end
    return found
