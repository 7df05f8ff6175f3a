"""A timeline in words and in characters: the coarse picture for a terminal, and the texts that all pictures share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from agentctl.domain.states import Status
from agentctl.domain.text.plaintext import plain, shortened, whole
from agentctl.domain.timeline.critical_path import Because
from agentctl.domain.timeline.timeline import Shade, runs
from agentctl.domain.timeline.timescale import DAY, Scale, scale_of
from agentctl.domain.tree.budget import Spent
from agentctl.domain.worker.ends import end_in_words
from agentctl.interfaces.words.value_words import LEAST, NOTHING, duration, short_number
from agentctl.lean import NamedTuple
from agentctl.operations.show.timeline import Timeline, TimelineRow

#: A stretch of text and how it looks: the name of a shade or status, `dim`, `critical`, or "" for plain.
Words = tuple[str, str]

_NAME_SHARE, _NARROWEST_NAME, _NARROWEST_CHART = 4, 10, 12
#: How many cells there are between two marks of the scale, at least.
_MARK_CELLS = 8
_INDENT, _DEEPEST = 2, 8
_LONGEST_END = 28
BECAUSE = {
    Because.START: "nothing is known of the time before",
    Because.DEPENDENCY: "it waited for the worker before it",
    Because.SLOT: "it waited for the slot of the worker before it",
    Because.CHILD: "it waited for its child",
    Because.PARENT: "the worker before it started it",
}


class _Glyphs(NamedTuple):
    shades: dict[Shade, str]
    again: str
    mark: str
    axis: str
    critical: str
    cut: str


_BLOCKS = _Glyphs(
    {Shade.QUEUED: "─", Shade.RUNNING: "█", Shade.BLOCKED: "▒", Shade.PARKED: "╌"}, "▐", "┬", "─", "◆", "…"
)
_ASCII = _Glyphs(
    {Shade.QUEUED: "-", Shade.RUNNING: "#", Shade.BLOCKED: "?", Shade.PARKED: "."}, "|", "+", "-", "*", "~"
)
#: Every character that is not ASCII: a stream that can print these gets blocks.
BLOCKS = "─█▒╌▐┬◆…"


def name_of(row: TimelineRow, timeline: Timeline) -> str:
    """Return the name of a worker: that of one in a sub-task is preceded by its task."""
    task_id, instance = row.bar.id
    return plain(instance if task_id == timeline.task_id else f"{task_id}/{instance}")


def cut_line(text: str, longest: int, mark: str = "…") -> str:
    """Return one line of a text, safe to show and cut to a length."""
    return shortened(plain(" ".join(whole(text[: 10 * longest + 100]).split())), longest, mark)


def time_of(row: TimelineRow) -> str:
    """Return how long a worker took from its first start to its end, waiting and pauses included."""
    return NOTHING if row.bar.started is None else duration(max(0.0, row.bar.until - row.bar.started))


def money(spent: Spent) -> str:
    """Return the cost in US dollars.

    >>> [money(Spent(cost_usd=cost)) for cost in (None, 0.0042, 1.5, 1234.0)]
    ['-', '$0.0042', '$1.50', '$1,234']
    """
    cost = spent.cost_usd
    if cost is None:
        return NOTHING
    shown = f"${cost:,.0f}" if cost >= 1000 else f"${cost:.2f}" if cost >= 0.1 or cost == 0 else f"${cost:.4f}"
    return LEAST * ("costUsd" in spent.at_least) + shown


def tokens(spent: Spent) -> str:
    """Return the number of tokens; `-` where none were reported.

    >>> tokens(Spent(1200)), tokens(Spent(1200, lacks_tokens=True)), tokens(Spent(cost_usd=0.5, lacks_tokens=True))
    ('1.2k', '≥1.2k', '-')
    """
    if not spent.knows_tokens or not (spent.tokens or spent.cost_usd is not None):
        return NOTHING
    return LEAST * ("tokens" in spent.at_least) + short_number(spent.tokens)


def has_spent(timeline: Timeline) -> bool:
    """Return whether tokens or a cost are known of any worker."""
    spent = timeline.spent
    return bool(spent.tokens) or spent.cost_usd is not None


def end_of(row: TimelineRow) -> str:
    """Return the status in words; of a failed worker with the reason, which anybody may have written."""
    return cut_line(end_in_words(row.bar.status, row.bar.reason), _LONGEST_END)


def summary(timeline: Timeline) -> str:
    """Return the whole in a line: how many workers, how long, since when, what it used."""
    count = len(timeline.rows)
    parts = [f"{count:,} worker{'' if count == 1 else 's'}", span_of(timeline.until - timeline.began)]
    parts.append(f"from {local(timeline.began, '%a %d %b %Y %H:%M')}")
    if has_spent(timeline):
        parts.append(f"{tokens(timeline.spent)} tokens")
    if timeline.spent.cost_usd is not None:
        parts.append(money(timeline.spent))
    failed = sum(row.bar.status is Status.FAILED for row in timeline.rows)
    parts += [f"{failed:,} failed"] if failed else []
    parts += ["still running"] if timeline.is_open else []
    return " · ".join(parts)


def span_of(seconds: float) -> str:
    """Return a time that may be days.

    >>> span_of(3.21), span_of(7384), span_of(3 * 86_400 + 7200)
    ('3.2s', '2h03m', '3d02h')
    """
    if seconds < DAY:
        return duration(seconds)
    return f"{int(seconds // DAY)}d{int(seconds % DAY // 3600):02}h"


def local(at: float, form: str) -> str:
    """Return an instant as the local clock shows it, in a form of strftime; `?` if no calendar has it."""
    try:
        return datetime.fromtimestamp(at, UTC).astimezone().strftime(form)
    except (ValueError, OverflowError, OSError):
        return "?"


def scale_for(timeline: Timeline, most: int) -> Scale:
    """Return the scale of a timeline, whose marks are round times of the local clock if it is long."""
    try:
        offset = datetime.fromtimestamp(timeline.began, UTC).astimezone().utcoffset()
    except (ValueError, OverflowError, OSError):
        offset = None
    return scale_of(timeline.began, timeline.until, most, offset.total_seconds() if offset else 0)


def mark_texts(scale: Scale, began: float) -> list[str]:
    """Return the texts of the marks: times since the beginning, or those of the clock with the day where it changes."""
    if not scale.is_clock:
        return [_since(mark - began, scale.step) for mark in scale.marks]
    if scale.step >= 300 * DAY:
        return [local(mark, "%b %Y") for mark in scale.marks]
    days = [local(mark, "%a %d %b") for mark in scale.marks]
    if scale.step >= DAY:
        return days
    return [
        day if number and day != days[number - 1] else local(mark, "%H:%M")
        for number, (mark, day) in enumerate(zip(scale.marks, days, strict=True))
    ]


def _since(seconds: float, step: float) -> str:
    """Return a time since the beginning, with no more precision than the steps have.

    >>> [_since(value, 0.5) for value in (0, 1.5)], [_since(value, 30) for value in (30, 60, 90, 5400)]
    (['0', '1.5s'], ['30s', '1m', '1m30s', '1h30m'])
    """
    if seconds < step / 2:
        return "0"
    if step < 1:
        return f"{seconds:.{3 if step < 0.01 else 2 if step < 0.1 else 1}f}s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    parts = ((hours, "h"), (minutes, "m"), (rest, "s"))
    return "".join(f"{value}{unit}" for value, unit in parts if value) or "0"


# -- for terminals -----------------------------------------------------------------------------------------------------


def timeline_lines(timeline: Timeline, width: int, *, blocks: bool = True) -> Iterator[list[Words]]:
    """Yield the lines of the picture for a terminal.

    Args:
        width: How many characters a line has.
        blocks: Draw with characters that are not ASCII.
    """
    glyphs = _BLOCKS if blocks else _ASCII
    yield [(cut_line(timeline.title, width, glyphs.cut), "bold")]
    text = summary(timeline)
    yield [(cut_line(text if blocks else text.replace(" · ", ", "), width, glyphs.cut), "dim")]
    if timeline.rows:
        yield []
        yield from _Picture(timeline, width, glyphs).lines()
        yield []
        yield _legend(glyphs)


def _legend(glyphs: _Glyphs) -> list[Words]:
    words: list[Words] = []
    for shade, glyph in glyphs.shades.items():
        words += [(glyph * 2, shade.value), (f" {shade}   ", "dim")]
    return [*words, (glyphs.critical, "critical"), (" critical path", "dim")]


class _Picture:
    """The rows of a timeline in characters: name, bar, end, time, tokens, cost."""

    def __init__(self, timeline: Timeline, width: int, glyphs: _Glyphs) -> None:
        self._timeline, self._glyphs = timeline, glyphs
        names = [_INDENT * min(row.bar.depth, _DEEPEST) + len(name_of(row, timeline)) for row in timeline.rows]
        self._name = min(max(names), max(_NARROWEST_NAME, width // _NAME_SHARE))
        self._right = [_right(row, timeline) for row in timeline.rows]
        self._widths = [max(map(len, column)) for column in zip(*self._right, strict=True)]
        for place in reversed(range(1, len(self._widths))):  # On a narrow terminal cost, tokens and time are left out.
            if self._left_of(width) < _NARROWEST_CHART:
                self._widths[place] = 0
        self._cells = max(_NARROWEST_CHART, self._left_of(width))

    def _left_of(self, width: int) -> int:
        """Return how many cells the columns leave for the bars."""
        return width - self._name - 4 - sum(2 + size for size in self._widths if size)

    def lines(self) -> Iterator[list[Words]]:
        """Yield the scale and the rows."""
        yield from self._axis()
        for row, right in zip(self._timeline.rows, self._right, strict=True):
            indent = " " * min(_INDENT * row.bar.depth, self._name // 2)
            name = cut_line(name_of(row, self._timeline), max(1, self._name - len(indent)), self._glyphs.cut)
            is_critical = row.is_critical
            yield [
                ((indent + name).ljust(self._name), ""),
                (f" {self._glyphs.critical} " if is_critical else "   ", "critical"),
                *self._bar(row),
                *self._columns(row, right),
            ]

    def _axis(self) -> Iterator[list[Words]]:
        span = max(self._timeline.until - self._timeline.began, 1e-6)
        scale = scale_for(self._timeline, max(2, self._cells // _MARK_CELLS))
        texts, line, free = [" "] * self._cells, [self._glyphs.axis] * self._cells, 0
        for mark, text in zip(scale.marks, mark_texts(scale, self._timeline.began), strict=True):
            cell = min(self._cells - 1, round((mark - self._timeline.began) / span * self._cells))
            line[cell] = self._glyphs.mark
            if cell >= free and cell + len(text) <= self._cells:
                texts[cell : cell + len(text)] = text
                free = cell + len(text) + 1
        left = " " * (self._name + 3)
        yield [(left + "".join(texts).rstrip(), "dim")]
        yield [(left + "".join(line), "dim")]

    def _bar(self, row: TimelineRow) -> Iterator[Words]:
        at, attempt = 0, 1
        for run in runs(row.bar, self._timeline.began, self._timeline.until, self._cells):
            yield " " * (run.first - at), ""
            drawn = self._glyphs.shades[run.shade] * (run.end - run.first)
            if run.attempt != attempt and at == run.first and len(drawn) > 1:
                drawn = self._glyphs.again + drawn[1:]
            yield drawn, run.shade.value
            at, attempt = run.end, run.attempt
        yield " " * (self._cells - at), ""

    def _columns(self, row: TimelineRow, right: Sequence[str]) -> Iterator[Words]:
        end, *figures = right
        sizes = iter(self._widths)
        size = next(sizes)
        if size:
            yield f"  {end.ljust(size)}", row.bar.status.value
        for text, size in zip(figures, sizes, strict=True):
            if size:
                yield f"  {text.rjust(size)}", ""


def _right(row: TimelineRow, timeline: Timeline) -> tuple[str, str, str, str]:
    """Return end, time, tokens and cost; what would be the same in all rows is empty."""
    end = "" if row.bar.status is Status.COMPLETED else row.bar.status.value
    used = (tokens(row.spent), money(row.spent)) if has_spent(timeline) else ("", "")
    return end, time_of(row), *used
