"""When each worker of a task was queued, at work, blocked or parked: the fold of its log into bars.

A worker is one bar, made of pieces; a retry is a further piece of the same bar.

Words:

- `bar`: one worker in a timeline
- `piece`: a time in which nothing about that worker changed
- `shade`: what a worker does in a piece: `queued running blocked parked`
- `stretch`: a time of one of the workers on the critical path
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from enum import StrEnum

from agentctl.domain import events as ev
from agentctl.domain.events import BadLine, Event
from agentctl.domain.names import is_name
from agentctl.domain.states import Status
from agentctl.domain.worker.projection import TaskView, WorkerView
from agentctl.lean import Any, NamedTuple

#: How many changes are taken up, in all logs of a timeline: thirty for each of 10,000 workers. The rest is left out.
MOST_CHANGES = 300_000
#: The indent of a forged chain of parents ends there; no honest one is as long.
DEEPEST = 64

#: A worker among those of several tasks: the id of its task, and its instance.
BarId = tuple[str, str]


class Shade(StrEnum):
    """What a worker does in a piece of its bar. A paused worker is still `running`, as in its status."""

    QUEUED = "queued"
    RUNNING = "running"
    BLOCKED = "blocked"
    PARKED = "parked"

    __hash__ = str.__hash__


class Piece(NamedTuple):
    """A time in which nothing about a worker changed; instants are seconds since 1970.

    Between two attempts there is no piece: the pause before a retry is a gap.
    """

    shade: Shade
    began: float
    until: float
    attempt: int


class Bar(NamedTuple):
    """One worker in time."""

    id: BarId
    agent: str
    driver: str | None
    command: str
    status: Status
    reason: str | None
    #: The worker that started it, which may be in another task and need not have a bar.
    parent: BarId | None
    #: The workers that it waited for before its start.
    after: tuple[BarId, ...]
    pieces: tuple[Piece, ...]
    #: From its first event to its end; an open bar lasts until now.
    began: float
    until: float
    is_open: bool
    shim_pid: int | None
    #: How many bars are above it; `in_order` sets it.
    depth: int = 0

    @property
    def started(self) -> float | None:
        """When its first attempt began; None if it never started."""
        return next((piece.began for piece in self.pieces if piece.shade is not Shade.QUEUED), None)

    @property
    def attempts(self) -> int:
        """How many attempts have begun."""
        return len({piece.attempt for piece in self.pieces if piece.shade in (Shade.RUNNING, Shade.BLOCKED)})


class _Draft:
    """A bar that is being made: its changes, as (shade or None, attempt, number of the change's stamp)."""

    def __init__(self) -> None:
        self.changes: list[tuple[Shade | None, int, int]] = []
        self.is_between = False
        self.after: Sequence[str] = ()
        self.parent: BarId | None = None
        self.has_links = False


class History:
    """The bars of one task, from the rows of its log.

    What a worker's status is, `TaskView` alone decides; here it is asked after each event, so a timeline and `list`
    never disagree. The order of the lines is right, but their stamps need not be: clocks are set, and writers are
    interrupted between stamp and append. The longest series of stamps that never goes back is believed; any other
    stamp, or one that is not a time at all, is replaced by the believed one before it (else by the first one).

    Args:
        most: How many changes are taken up.
    """

    def __init__(self, task_id: str, most: int = MOST_CHANGES) -> None:
        self.task_id = task_id
        #: Whether the log has more than `most` changes, and the rest was left out.
        self.is_cut = False
        self._most = most
        self._view = TaskView()
        self._drafts: dict[str, _Draft] = {}
        self._stamps = array("d")

    @property
    def changes(self) -> int:
        """How many changes were taken up."""
        return len(self._stamps)

    @property
    def bad_lines(self) -> int:
        """How many lines of the log do not hold an event."""
        return self._view.bad_lines

    def apply(self, rows: Iterable[tuple[int, Event] | BadLine]) -> None:
        """Fold in further rows of the log."""
        for row in rows:
            if self.changes >= self._most:
                self.is_cut = True
                return
            self._view.apply((row,))
            if not isinstance(row, BadLine):
                if row[1]["type"] == ev.REMOVED:
                    self._drafts.pop(row[1].get("agentInstance", ""), None)
                worker = self._view.workers.get(row[1].get("agentInstance", ""))
                if worker is not None:
                    self._note(worker, row[1])

    def _note(self, worker: WorkerView, event: Event) -> None:
        draft = self._drafts.setdefault(worker.instance, _Draft())
        kind = event["type"]
        if kind == ev.QUEUED and not draft.has_links:
            draft.has_links, payload = True, event["payload"]
            draft.after, draft.parent = _names(payload.get("after")), self._parent(worker, payload)
        if kind in _BETWEEN:
            draft.is_between = _BETWEEN[kind]
        change = (_shade(worker, is_between=draft.is_between), worker.attempt)
        if not draft.changes or draft.changes[-1][:2] != change:
            draft.changes.append((*change, len(self._stamps)))
            self._stamps.append(_instant(event.get("ts")))

    def _parent(self, worker: WorkerView, payload: dict[str, Any]) -> BarId | None:
        task_id, instance = payload.get("parentTaskId"), payload.get("parentInstance")
        if isinstance(task_id, str) and isinstance(instance, str):
            return task_id, instance
        return None if worker.parent is None else (self.task_id, worker.parent)

    def open_bars(self) -> list[str]:
        """Return the workers that have not ended."""
        return [name for name in self._drafts if not self._view.workers[name].is_terminal]

    def last(self, now: float) -> float:
        """Return when the last change was; `now` if no stamp says so."""
        return max(_steady(self._stamps, now)[-1:], default=now)

    def bars(self, now: float) -> list[Bar]:
        """Return the bars, in the order in which the workers were accepted.

        Args:
            now: The end of open bars, no earlier than `last`.
        """
        times = _steady(self._stamps, now)
        return [self._bar(name, draft, times, now) for name, draft in self._drafts.items()]

    def _bar(self, name: str, draft: _Draft, times: Sequence[float], now: float) -> Bar:
        worker = self._view.workers[name]
        instants = [times[number] for _, _, number in draft.changes]
        if not worker.is_terminal:
            instants.append(now)
        pieces = tuple(
            Piece(shade, began, until, attempt)
            for (shade, attempt, _), began, until in zip(draft.changes, instants, instants[1:], strict=False)
            if shade is not None
        )
        after = tuple((self.task_id, one) for one in dict.fromkeys(draft.after) if one in self._drafts and one != name)
        return Bar((self.task_id, name), worker.agent, worker.driver, worker.command, worker.status, worker.reason,
                   draft.parent, after, pieces, instants[0], instants[-1], not worker.is_terminal,
                   worker.shim_pid)  # fmt: skip


#: Events that begin or end the pause between two attempts.
_BETWEEN = {ev.RETRYING: True, ev.RETRIED: False, ev.PARKED: False}


def _shade(worker: WorkerView, *, is_between: bool) -> Shade | None:
    if worker.is_terminal:
        return None
    if worker.status is Status.QUEUED:
        return Shade.QUEUED if worker.park_seq is None else Shade.PARKED
    if worker.status is Status.BLOCKED:
        return Shade.BLOCKED
    return None if is_between else Shade.RUNNING


def _names(value: object) -> list[str]:
    return [one for one in value if isinstance(one, str) and is_name(one)] if isinstance(value, list) else []


def _instant(ts: object) -> float:
    """Return a stamp in seconds since 1970; NaN for anything else. One without a zone is taken as UTC."""
    from datetime import UTC, datetime  # Shims load the domain, and have no timeline.

    try:
        at = datetime.fromisoformat(ts)  # type: ignore[arg-type]
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _steady(stamps: Sequence[float], otherwise: float) -> Sequence[float]:
    """Return stamps that never go back: the longest such series is kept, the others are replaced.

    Args:
        otherwise: What to return for each if none of them is a time.

    >>> list(_steady([5.0, 99.0, 6.0, 7.0, float("nan"), 8.0], 0.0))
    [5.0, 5.0, 6.0, 7.0, 7.0, 8.0]
    """
    ends: list[float] = []  # ends[n]: the earliest stamp at which a series of n + 1 stamps can end ...
    numbers: list[int] = []  # ... and its number.
    before = array("q")
    for number, stamp in enumerate(stamps):
        length = bisect_right(ends, stamp) if stamp == stamp else -1  # noqa: PLR0124 - NaN is not a time
        before.append(numbers[length - 1] if length > 0 else -1)
        if length == len(ends):
            ends.append(stamp)
            numbers.append(number)
        elif length >= 0:
            ends[length], numbers[length] = stamp, number
    believed = bytearray(len(stamps))
    number = first = numbers[-1] if numbers else -1
    while number >= 0:
        believed[number], first = True, number
        number = before[number]
    last = stamps[first] if numbers else otherwise
    steady = array("d")
    for stamp, is_believed in zip(stamps, believed, strict=True):
        last = stamp if is_believed else last
        steady.append(last)
    return steady


class Run(NamedTuple):
    """A part of a bar as it is drawn: from one cell of the time axis to the one before `end`."""

    shade: Shade
    attempt: int
    first: int
    end: int


def runs(bar: Bar, began: float, until: float, cells: int, least: int = 1) -> list[Run]:
    """Return a bar as it is drawn on an axis of some cells: in order, without overlaps.

    The ends of pieces are rounded to cells, so short pieces vanish; but a bar has at least `least` cells, and so has an
    attempt after a pause that has room for it.

    Args:
        began: Where the axis begins; `until` where it ends.
    """
    span, found = max(until - began, 1e-6), list[Run]()
    for piece in bar.pieces:
        first, end = (min(cells, max(0, round((at - began) / span * cells))) for at in piece[1:3])
        last = found[-1] if found else None
        if last is not None and last[:2] == (piece.shade, piece.attempt) and last.end >= first:
            found[-1] = last._replace(end=end)
            continue
        if last is not None and last.attempt != piece.attempt and end - first < least <= end - last.end:
            first = end - least
        if end > first:
            found.append(Run(piece.shade, piece.attempt, first, end))
    if bar.pieces and (not found or found[-1].end - found[0].first < least):
        main = max(bar.pieces, key=lambda one: (one.shade is not Shade.QUEUED, one.until - one.began))
        first = found[0].first if found else min(cells, max(0, round((bar.began - began) / span * cells)))
        first = max(0, min(first, cells - least))
        found = [Run(main.shade, main.attempt, first, first + least)]
    return found


def in_order(bars: Iterable[Bar]) -> list[Bar]:
    """Return bars as an outline: each after its parent, with its depth, otherwise in the order given.

    Bars of a forged cycle of parents, which no outline contains, come at the end.
    """
    by_id = {bar.id: bar for bar in bars}
    below: dict[BarId | None, list[Bar]] = {}
    for bar in by_id.values():
        below.setdefault(bar.parent if bar.parent in by_id else None, []).append(bar)
    found: dict[BarId, Bar] = {}
    for first in [*below.get(None, []), *by_id.values()]:
        left = [(first, 0)]
        while left:
            bar, depth = left.pop()
            if bar.id not in found:
                found[bar.id] = bar._replace(depth=min(depth, DEEPEST))
                left += [(child, depth + 1) for child in reversed(below.get(bar.id, []))]
    return list(found.values())
