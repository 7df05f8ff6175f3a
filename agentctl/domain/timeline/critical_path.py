"""The critical path of a timeline: the chain of workers that determined when the whole ended.

It is walked back from the end of the bar that ended last (of several: one that was not in the queue). At each instant,
the first of these rules that applies says whose time comes before:

1. `child`: the worker has children that ended by then. It is taken to have waited for the last of them, and the path
   goes on at that child's end. (A log does not say for whom a worker waits; this is the rule of tracing tools.)
2. Before its start, a worker waited in the queue: for the last end of a worker that it was to start after
   (`dependency`), or for a slot (`slot`), whichever came later. The slot is that of the worker that the same shim
   guarded before. Where no shim did, a wait of more than `AT_ONCE_S` is taken to have ended by the last end or parking
   in it.
3. `parent`: before it was accepted, the path is that of the worker that started it.
4. `start`: nothing is known of the time before.

Every worker's own time counts, whatever it did: at work, blocked, parked, or between two attempts. So the stretches
are contiguous: each begins where the one before it ends, and the last one ends with the whole.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from enum import StrEnum
from itertools import pairwise

from agentctl.domain.timeline.timeline import Bar, BarId, Shade
from agentctl.lean import NamedTuple

#: A worker with a free slot is started sooner than after this time in the queue.
AT_ONCE_S = 0.5
#: How many ends before a start are looked at: more end at one instant only in a forged log.
_MOST_LOOKS = 16


class Because(StrEnum):
    """Why a stretch of the path did not begin earlier; what the stretch before it has to do with it."""

    START = "start"
    DEPENDENCY = "dependency"
    SLOT = "slot"
    CHILD = "child"
    PARENT = "parent"


class Stretch(NamedTuple):
    """A part of the critical path: a time of one worker."""

    bar: BarId
    began: float
    until: float
    because: Because


class _Release(NamedTuple):
    """A worker gave back its slot: it ended, or was parked."""

    at: float
    bar: Bar


class _Before(NamedTuple):
    """What comes before a stretch, and when it begins."""

    because: Because
    at: float
    bar: Bar | None


def critical_path(bars: Iterable[Bar]) -> list[Stretch]:
    """Return the critical path, in the order of time; [] where there is no bar."""
    bars = list(bars)
    return _Walk(bars).back(max(bars, key=_lateness)) if bars else []


def _lateness(bar: Bar) -> tuple[float, bool, bool]:
    return bar.until, bar.started is not None, not bar.is_open


class _Walk:
    """The walk back. It enters no bar at its end twice, and none again whose beginning it has passed; so it ends."""

    def __init__(self, bars: Sequence[Bar]) -> None:
        self._bars = {bar.id: bar for bar in bars}
        self._children: dict[BarId, list[Bar]] = {}
        for bar in sorted(bars, key=lambda one: one.until):
            if bar.parent in self._bars:
                self._children.setdefault(bar.parent, []).append(bar)
        self._releases = sorted((one for bar in bars for one in _releases(bar)), key=lambda one: one.at)
        self._by_shim: dict[int, list[_Release]] = {}
        for one in self._releases:
            if one.bar.shim_pid is not None:
                self._by_shim.setdefault(one.bar.shim_pid, []).append(one)
        #: Bars that were entered at their end, and those whose beginning was passed.
        self._entered: set[BarId] = set()
        self._left: set[BarId] = set()

    def back(self, last: Bar) -> list[Stretch]:
        """Return the path that ends with `last`."""
        found: list[Stretch] = []
        bar, at = last, last.until
        self._entered.add(bar.id)
        while True:
            before = self._before(bar, at)
            found.append(Stretch(bar.id, before.at, at, before.because))
            if before.bar is None:
                return found[::-1]
            if before.because is Because.PARENT:
                self._left.add(bar.id)
            else:
                self._entered.add(before.bar.id)
            bar, at = before.bar, before.at

    def _before(self, bar: Bar, at: float) -> _Before:
        return self._child(bar, at) or self._queue(bar, at) or self._parent(bar)

    def _may_enter(self, one: BarId) -> bool:
        return one not in self._entered and one not in self._left

    def _child(self, bar: Bar, at: float) -> _Before | None:
        children = self._children.get(bar.id, [])
        while children and (children[-1].until > at or not self._may_enter(children[-1].id)):
            children.pop()  # The walk never comes back to a later time.
        while children and children[-1].began < bar.began:
            children.pop()  # A forged one: no worker is older than its parent.
        return _Before(Because.CHILD, children[-1].until, children[-1]) if children else None

    def _queue(self, bar: Bar, at: float) -> _Before | None:
        moment = min(at, bar.until if bar.started is None else bar.started)
        awaited = [self._bars[one] for one in bar.after if one in self._bars and self._may_enter(one)]
        dependency = max(
            (one for one in awaited if bar.began <= one.until <= moment), key=lambda one: one.until, default=None
        )
        ready = bar.began if dependency is None else dependency.until
        slot = None if bar.started is None else self._slot(bar, ready, moment)
        if slot is not None and (dependency is None or slot.at > ready):
            return _Before(Because.SLOT, slot.at, slot.bar)
        return None if dependency is None else _Before(Because.DEPENDENCY, ready, dependency)

    def _slot(self, bar: Bar, ready: float, moment: float) -> _Release | None:
        same = [] if bar.shim_pid is None else self._by_shim.get(bar.shim_pid, [])
        found = self._last_of(same, bar, ready, moment)
        if found is None and moment - ready > AT_ONCE_S:
            found = self._last_of(self._releases, bar, ready, moment)
        return found

    def _last_of(self, releases: Sequence[_Release], bar: Bar, since: float, until: float) -> _Release | None:
        end = bisect_right(releases, until, key=lambda one: one.at)
        for one in reversed(releases[max(0, end - _MOST_LOOKS) : end]):
            if one.at >= since and one.bar.id != bar.id and self._may_enter(one.bar.id):
                return one
        return None

    def _parent(self, bar: Bar) -> _Before:
        parent = None if bar.parent is None else self._bars.get(bar.parent)
        if parent is None or parent.id in self._left or not parent.began <= bar.began <= parent.until:
            return _Before(Because.START, bar.began, None)
        return _Before(Because.PARENT, bar.began, parent)


def _releases(bar: Bar) -> list[_Release]:
    """Return when a bar's worker gave a slot back."""
    found = [
        _Release(piece.until, bar)
        for piece, after in pairwise(bar.pieces)
        if piece.shade is not Shade.PARKED and after.shade is Shade.PARKED
    ]
    if bar.started is not None and not bar.is_open and bar.pieces[-1].shade is not Shade.PARKED:
        found.append(_Release(bar.until, bar))
    return found
