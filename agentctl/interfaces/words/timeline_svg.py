"""A timeline as a picture: one SVG that needs nothing else, for a browser, a README or a report.

Whatever a worker, a title or a log says is text in it, escaped and cut. The number of elements is bounded, so a log
that was written to be large makes no large picture.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from itertools import pairwise

from agentctl.domain.states import Status
from agentctl.domain.text.plaintext import plain
from agentctl.domain.timeline.critical_path import Stretch
from agentctl.domain.timeline.timeline import BarId, Run, Shade, runs
from agentctl.interfaces.words.timeline import (
    cut_line,
    end_of,
    has_spent,
    mark_texts,
    money,
    name_of,
    scale_for,
    span_of,
    summary,
    time_of,
    tokens,
)
from agentctl.interfaces.words.value_words import duration
from agentctl.lean import NamedTuple
from agentctl.operations.show.timeline import Timeline, TimelineRow

#: How many rows, pieces and lines of dependencies are drawn.
MOST_ROWS = 2000
_MOST_RUNS, _MOST_LINES = 20_000, 3000
WIDTH = 1200
_MARGIN, _TOP, _GAP = 28, 112, 18
#: The width of a character of the font of 12 px in which names and numbers are set, in px.
_CHARACTER = 7.3
_LONGEST_NAME, _LONGEST_TITLE, _LONGEST_TIP = 30, 70, 400
_INDENT, _DEEPEST = 12, 8
#: The axis has a cell for each half of a px, and a mark at most each 90 px.
_CELL, _MARK = 0.5, 90
_LEAST_CELLS = 6
#: A shorter stretch of the critical path is only a part of the stroke that joins its neighbours, in px.
_LEAST_OUTLINE = 3
#: From so many rows on, the scale is repeated at the bottom.
_TALL = 40
#: The space for a column at the right, in px.
_COLUMN = 62
#: Part of the height of a bar that a piece has: the shades differ without colours too.
_HEIGHTS = {Shade.QUEUED: 0.3, Shade.RUNNING: 1.0, Shade.BLOCKED: 1.0, Shade.PARKED: 0.55}

_LIGHT: Mapping[str, str] = {
    "page": "fill:#ffffff", "ink": "fill:#1f2328", "dim": "fill:#57606a", "grid": "stroke:#e4e8ec",
    "rule": "stroke:#c9d1d9", "queued": "fill:#b4bec9", "running": "fill:#3a76b5", "blocked": "fill:#f5c04f",
    "parked": "fill:#ad97d8", "rim": "stroke:#c08a10", "on": "fill:#ffffff", "critical": "stroke:#cf2c6b",
    "tie": "stroke:#8c96a0", "tip": "fill:#8c96a0", "pause": "stroke:#8c96a0", "end": "stroke:#57606a",
    "bad": "stroke:#c9251c",
}  # fmt: skip
_DARK: Mapping[str, str] = {
    "page": "fill:#0d1117", "ink": "fill:#e6edf3", "dim": "fill:#9aa4af", "grid": "stroke:#1f252d",
    "rule": "stroke:#39424d", "queued": "fill:#56616d", "running": "fill:#4a8fd8", "blocked": "fill:#f7d489",
    "parked": "fill:#8468c4", "rim": "stroke:#f7d489", "on": "fill:#0d1117", "critical": "stroke:#ff77ab",
    "tie": "stroke:#6e7883", "tip": "fill:#6e7883", "pause": "stroke:#6e7883", "end": "stroke:#9aa4af",
    "bad": "stroke:#ff7b72",
}  # fmt: skip
_FONTS = (
    ".t{font-family:ui-sans-serif,system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}"
    ".m{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace}"
    ".r{text-anchor:end}.c{text-anchor:middle}"
    ".grid,.rule,.pause,.tie,.critical,.bad,.end,.rim{fill:none}.bad,.end,.critical{stroke-linecap:round}"
    ".grid,.tie,.rim{stroke-width:1}.rule{stroke-width:1}.tie{opacity:.75}.critical{stroke-width:1.7}"
    ".bad,.end{stroke-width:1.8}.pause{stroke-width:1.2;stroke-dasharray:1 3}.now{stroke-dasharray:3 3}"
)


class DrawnRows(NamedTuple):
    """The rows that are drawn, and how many are left out."""

    rows: Sequence[TimelineRow]
    left_out: int


def shown_rows(timeline: Timeline, most: int = MOST_ROWS) -> DrawnRows:
    """Return the rows to draw: those of the critical path, then the first ones, in their order."""
    if len(timeline.rows) <= most:
        return DrawnRows(timeline.rows, 0)
    first = sorted(range(len(timeline.rows)), key=lambda number: not timeline.rows[number].is_critical)[:most]
    return DrawnRows([timeline.rows[number] for number in sorted(first)], len(timeline.rows) - most)


def svg_of(timeline: Timeline) -> str:
    """Return the picture as an SVG document, without an XML declaration: it can be a part of a page."""
    return "\n".join(_Drawing(timeline).parts()) + "\n"


def escaped(text: object, longest: int = _LONGEST_TIP) -> str:
    """Return a text for XML or HTML: one line, cut, nothing in it counts as markup or obeys anything."""
    shown = cut_line(str(text), longest)
    return escape("".join(one if one < "\ufffe" or one > "\uffff" else "\ufffd" for one in shown))


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _text(x: float, y: float, text: object, *, look: str, size: float = 12, weight: int = 0) -> str:
    bold = f' font-weight="{weight}"' if weight else ""
    return (
        f'<text x="{_number(x)}" y="{_number(y)}" class="{look}" font-size="{_number(size)}"{bold}>'
        f"{escaped(text)}</text>"
    )


def _box(x: float, y: float, width: float, height: float, look: str, round_by: float) -> str:
    return (
        f'<rect x="{_number(x)}" y="{_number(y)}" width="{_number(width)}" height="{_number(height)}" '
        f'rx="{_number(round_by)}" class="{look}"/>'
    )


def _path(steps: str, look: str) -> str:
    return f'<path d="{steps}" class="{look}"/>'


class _Drawing:
    """Where everything is: the rows below each other, names at the left, figures at the right, bars between them."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._rows, self._left_out = shown_rows(timeline)
        count = len(self._rows)
        self._pitch = 26 if count <= 12 else 22 if count <= 60 else 18 if count <= 300 else 15
        self._bar = round(self._pitch * 0.52)
        self._size = 12 if self._pitch > 18 else 11 if self._pitch > 15 else 10
        longest = max((len(name_of(row, timeline)) + self._indent(row) / _CHARACTER for row in self._rows), default=6)
        self._x = _MARGIN + min(_LONGEST_NAME, max(8, longest)) * _CHARACTER + _GAP
        self._columns = 3 if has_spent(timeline) else 1
        self._end = WIDTH - _MARGIN - self._columns * _COLUMN - 10
        self._cells = int((self._end - self._x) / _CELL)
        self._line = {row.bar.id: number for number, row in enumerate(self._rows)}
        self._bottom = _TOP + count * self._pitch
        self._height = self._bottom + 22 + (18 if self._left_out else 0) + 20

    @staticmethod
    def _indent(row: TimelineRow) -> float:
        return _INDENT * min(row.bar.depth, _DEEPEST)

    def _at(self, instant: float) -> float:
        """Return the x of an instant, on the same cells as the bars."""
        span = max(self._timeline.until - self._timeline.began, 1e-6)
        cell = round((instant - self._timeline.began) / span * self._cells)
        return self._x + min(self._cells, max(0, cell)) * _CELL

    def _middle(self, number: int) -> float:
        return _TOP + (number + 0.5) * self._pitch

    def parts(self) -> Iterator[str]:
        """Yield the lines of the document."""
        title, width, height = escaped(self._timeline.title or self._timeline.task_id), WIDTH, _number(self._height)
        yield (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
            'role="img" aria-labelledby="timeline-title timeline-words">'
        )
        yield f'<title id="timeline-title">Timeline of {title}</title>'
        yield f'<desc id="timeline-words">{escaped(self._description(), 4000)}</desc>'
        yield f"<style>{_style()}</style>"
        yield _box(0, 0, width, self._height, "page", 10)
        yield from self._head()
        yield from self._axis()
        yield from self._ties()
        for number, row in enumerate(self._rows):
            yield from self._row(number, row)
        yield from self._critical()
        yield from self._foot()
        yield "</svg>"

    def _description(self) -> str:
        path = [self._row_of(one.bar) for one in self._timeline.path]
        names = list(dict.fromkeys(name_of(row, self._timeline) for row in path if row is not None))
        more = f" and {len(names) - 20} more" if len(names) > 20 else ""
        return f"{summary(self._timeline)}. The critical path: {', then '.join(names[:20])}{more}."

    def _row_of(self, one: BarId) -> TimelineRow | None:
        number = self._line.get(one)
        return None if number is None else self._rows[number]

    def _head(self) -> Iterator[str]:
        title = cut_line(self._timeline.title or self._timeline.task_id, _LONGEST_TITLE)
        yield _text(_MARGIN, 40, title, look="t ink", size=18, weight=600)
        yield _text(_MARGIN, 62, summary(self._timeline), look="t dim", size=12.5)
        x = WIDTH - _MARGIN - 464
        for shade in Shade:
            yield from self._piece(x, x + 20, 58, 11, shade.value, _HEIGHTS[shade])
            yield _text(x + 26, 62, shade.value, look="t dim", size=12)
            x += 90
        yield _box(x, 52, 20, 12, "critical", 3)
        yield _text(x + 26, 62, "critical path", look="t dim", size=12)

    def _axis(self) -> Iterator[str]:
        timeline, bottom = self._timeline, self._bottom
        scale = scale_for(timeline, max(2, int((self._end - self._x) / _MARK)))
        lines = []
        for mark, text in zip(scale.marks, mark_texts(scale, timeline.began), strict=True):
            x = self._at(mark)
            lines.append(f"M{_number(x)} {_TOP - 6}V{_number(bottom)}")
            for y in (_TOP - 12, *([bottom + 20] if len(self._rows) >= _TALL else [])):
                yield _text(min(x, self._end - len(text) * 3), y, text, look="m dim c", size=11)
        yield _path("".join(lines), "grid")
        yield _text(_MARGIN, _TOP - 12, "worker", look="t dim", size=11)
        for x, text in zip(self._edges(), ("time", "tokens", "cost"), strict=False):
            yield _text(x, _TOP - 12, text, look="t dim r", size=11)
        yield _path(f"M{_MARGIN} {_TOP - 4}H{WIDTH - _MARGIN}", "rule")
        if timeline.is_open:
            yield _path(f"M{_number(self._end)} {_TOP - 4}V{_number(bottom)}", "tie now")

    def _edges(self) -> list[float]:
        """Return the right edges of the columns."""
        first = self._columns - 1
        return [WIDTH - _MARGIN - (first - column) * _COLUMN for column in range(self._columns)]

    # -- a row ---------------------------------------------------------------------------------------------------------

    def _row(self, number: int, row: TimelineRow) -> Iterator[str]:
        y, indent = self._middle(number), self._indent(row)
        yield f"<g><title>{escaped(self._tip(row))}</title>"
        if row.bar.depth and number:
            above = self._line.get(row.bar.parent) if row.bar.parent else None
            top = y - self._pitch / 2 if above is None else self._middle(above) + self._pitch * 0.3
            x = _MARGIN + indent - 8
            yield _path(f"M{_number(x)} {_number(top)}V{_number(y)}h5", "rule")
        name = name_of(row, self._timeline)
        room = int((self._x - _GAP - _MARGIN - indent) / _CHARACTER + 0.5)
        yield _text(_MARGIN + indent, y + 4, cut_line(name, max(3, room)), look="m ink", size=self._size)
        drawn = self._runs(row)
        yield from self._pauses(drawn, y)
        for run, after in pairwise([*drawn, None]):
            if run is not None:
                yield from self._run(run, after, y)
        yield from self._end_mark(row, drawn, y)
        for x, text in zip(self._edges(), (time_of(row), tokens(row.spent), money(row.spent)), strict=False):
            yield _text(x, y + 4, text, look="m dim r", size=self._size)
        yield "</g>"

    def _tip(self, row: TimelineRow) -> str:
        bar = row.bar
        words = [name_of(row, self._timeline), end_of(row), f"{time_of(row)} since its first start"]
        seconds = dict.fromkeys(Shade, 0.0)
        for piece in bar.pieces:
            seconds[piece.shade] += piece.until - piece.began
        words += [f"{shade} {duration(spent)}" for shade, spent in seconds.items() if spent]
        words += [f"{bar.attempts} attempts"] if bar.attempts > 1 else []
        words += [f"after {len(bar.after)} workers"] if bar.after else []
        words += ["on the critical path"] if row.is_critical else []
        return plain(f"{', '.join(words)}: {bar.command if bar.driver is None else bar.agent}")

    def _runs(self, row: TimelineRow) -> list[Run]:
        """Return the parts of a bar on the finest cells on which there are not too many."""
        most = max(8, _MOST_RUNS // max(1, len(self._rows)))
        if len(row.bar.pieces) > 4 * most:
            return self._runs_on(row, most)
        found = self._runs_on(row, self._cells)
        return found if len(found) <= most else self._runs_on(row, most)

    def _runs_on(self, row: TimelineRow, cells: int) -> list[Run]:
        """Return the parts of a bar that is drawn on some cells, of which it has at most as many; in cells of ours."""
        share, timeline = self._cells / cells, self._timeline
        found = runs(row.bar, timeline.began, timeline.until, cells, max(1, round(_LEAST_CELLS / share)))
        return [one._replace(first=round(one.first * share), end=round(one.end * share)) for one in found]

    def _pauses(self, drawn: Sequence[Run], y: float) -> Iterator[str]:
        """Yield the dotted line through the pauses between attempts: they are pieces of one bar."""
        pauses = [(one.end, after.first) for one, after in pairwise(drawn) if after.first > one.end]
        ends = [(self._x + begin * _CELL, self._x + end * _CELL) for begin, end in pauses]
        if ends:
            yield _path("".join(f"M{_number(begin)} {_number(y)}H{_number(end)}" for begin, end in ends), "pause")

    def _run(self, run: Run, after: Run | None, y: float) -> Iterator[str]:
        begin, end = self._x + run.first * _CELL, self._x + run.end * _CELL
        touches = after is not None and after.first == run.end and after.attempt != run.attempt
        if touches and end - begin > 2:
            end -= 1
        yield from self._piece(begin, end, y, self._bar, run.shade.value, _HEIGHTS[run.shade])
        if run.shade is Shade.RUNNING and run.attempt > 1 and end - begin > 8 + 6 * len(str(run.attempt)):
            yield _text((begin + end) / 2, y + 3.5, run.attempt, look="m on c", size=min(10, self._bar - 1), weight=600)

    @staticmethod
    def _piece(begin: float, end: float, y: float, bar: float, shade: str, share: float) -> Iterator[str]:
        height = max(2, bar * share)
        round_by = min(2.5, height / 2, (end - begin) / 2)
        yield _box(begin, y - height / 2, end - begin, height, shade, round_by)
        if shade == Shade.BLOCKED and end - begin > 3:
            yield _box(begin + 0.5, y - height / 2 + 0.5, end - begin - 1, height - 1, "rim", 2)

    def _end_mark(self, row: TimelineRow, drawn: Sequence[Run], y: float) -> Iterator[str]:
        """Mark the end of a failed worker by a cross and that of a cancelled one by a stroke."""
        x = (self._x + drawn[-1].end * _CELL if drawn else self._at(row.bar.until)) + 4
        if row.bar.status is Status.FAILED:
            yield _path(f"M{_number(x)} {_number(y - 3)}l6 6m0 -6l-6 6", "bad")
        elif row.bar.status is Status.CANCELLED:
            yield _path(f"M{_number(x)} {_number(y)}h6", "end")

    # -- what joins the rows -------------------------------------------------------------------------------------------

    def _ties(self) -> Iterator[str]:
        """Yield the lines of the dependencies: from an end along its row, then down to the start that it allowed."""
        lines, tips, left = [], [], _MOST_LINES
        for number, row in enumerate(self._rows):
            above = [one for one in row.bar.after if one in self._line][: max(0, left)]
            left -= len(above)
            if row.bar.started is None and row.bar.is_open:
                continue
            for one in above:
                other = self._line[one]
                end = self._at(self._rows[other].bar.until)
                x = max(end, self._at(row.bar.until if row.bar.started is None else row.bar.started))
                side = 1 if other < number else -1
                y, goal = self._middle(other), self._middle(number) - side * self._bar / 2
                bend = min(5.0, x - end, abs(goal - y))
                lines.append(
                    f"M{_number(end)} {_number(y)}H{_number(x - bend)}"
                    f"Q{_number(x)} {_number(y)} {_number(x)} {_number(y + side * bend)}V{_number(goal)}"
                )
                tips.append(f"M{_number(x - 2.5)} {_number(goal - 4 * side)}h5l-2.5 {_number(4 * side)}z")
        if lines:
            yield _path("".join(lines), "tie")
            yield _path("".join(dict.fromkeys(tips)), "tip")

    def _critical(self) -> Iterator[str]:
        """Yield the outline of the critical path, and the strokes from each of its rows to the next."""
        half = self._bar / 2 + 2
        path = [one for one in self._timeline.path if one.bar in self._line]
        for one in path:
            begin, end = self._at(one.began), self._at(one.until)
            if end - begin >= _LEAST_OUTLINE:
                y = self._middle(self._line[one.bar])
                yield _box(begin - 1, y - half, end - begin + 2, 2 * half, "critical", 4)
        steps = "".join(self._stroke(one, after, half) for one, after in pairwise(path))
        if steps:
            yield _path(steps, "critical")

    def _stroke(self, one: Stretch, after: Stretch, half: float) -> str:
        """Return the stroke between two stretches of the critical path."""
        here, there = self._middle(self._line[one.bar]), self._middle(self._line[after.bar])
        side = 1 if there > here else -1
        x = self._at(one.until)
        return f"M{_number(x)} {_number(here + side * half)}V{_number(there - side * half)}"

    def _foot(self) -> Iterator[str]:
        y, timeline = self._bottom, self._timeline
        yield _path(f"M{_MARGIN} {_number(y + 4)}H{WIDTH - _MARGIN}", "rule")
        yield _text(_MARGIN, y + 20, "all", look="m ink", size=self._size, weight=600)
        figures = (span_of(timeline.until - timeline.began), tokens(timeline.spent), money(timeline.spent))
        for x, text in zip(self._edges(), figures, strict=False):
            yield _text(x, y + 20, text, look="m ink r", size=self._size, weight=600)
        if self._left_out:
            text = f"{self._left_out:,} more workers are not drawn: agentctl timeline --json has all of them"
            yield _text(_MARGIN, y + 40, text, look="t dim", size=12)


def _style() -> str:
    return _FONTS + _rules(_LIGHT.items()) + f"@media (prefers-color-scheme:dark){{{_rules(_DARK.items())}}}"


def _rules(looks: Iterable[tuple[str, str]]) -> str:
    return "".join(f".{name}{{{look}}}" for name, look in looks)
