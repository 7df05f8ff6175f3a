"""Finds the next line with a needle, and counts them all, stretch by stretch, so that a search can be broken off."""

from __future__ import annotations

import threading
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator

from agentctl.adapters.pace import Pace
from agentctl.interfaces.screen.texts.needle import Needle
from agentctl.interfaces.screen.texts.shown import Spot
from agentctl.interfaces.screen.texts.sources import PagerSource
from agentctl.lean import NamedTuple

#: A line's number in its paragraph has so many bits; hits in later lines of one count as one.
_LINE_BITS = 20
_MOST_HITS = 100_000


class NextHit(NamedTuple):
    """The next hit, and whether the search went past the end of the text, and on from the other one."""

    spot: Spot
    is_wrapped: bool


def find_next(
    source: PagerSource, needle: Needle, start: Spot, stop: Callable[[], bool], *, backwards: bool = False
) -> NextHit | None:
    """Return the first hit behind `start`, or before it; None where there is none, or the search was broken off."""
    pace = Pace()
    for is_wrapped, (first, last) in _stretches(source, start, backwards=backwards):
        pace.keep()
        if stop():
            return None
        hits = list(source.hits(needle, first, last))
        for spot in reversed(hits) if backwards else hits:
            if is_wrapped or (spot < start if backwards else spot > start):
                return NextHit(spot, is_wrapped)
    return None


def _stretches(source: PagerSource, start: Spot, *, backwards: bool) -> Iterator[tuple[bool, tuple[int, int]]]:
    """Yield the stretches from that of `start` on to the end, then, wrapped, all up to that of `start`.

    It ends early where the text has become shorter meanwhile: then no stretch lies further on.
    """
    total = len(source)
    if not total:
        return
    at = min(max(start.paragraph, 0), total - 1)
    home = source.stretch(at)
    yield False, home
    for is_wrapped in (False, True):
        if backwards:
            at = home[0] if not is_wrapped else total
            until = 0 if not is_wrapped else home[0]
            while at > until:
                first, last = source.stretch(at - 1)
                if first >= at:
                    return
                yield is_wrapped, (first, min(last, total))
                at = first
        else:
            at = home[1] if not is_wrapped else 0
            until = total if not is_wrapped else home[1]
            while at < until:
                first, last = source.stretch(at)
                if last <= at:
                    return
                yield is_wrapped, (first, last)
                at = last


class HitCount:
    """The hits of a needle counted so far, in order."""

    def __init__(self, needle: Needle) -> None:
        self.needle = needle
        self._spots = array("Q")
        self._counted = 0
        self._lock = threading.Lock()

    def extend(self, source: PagerSource, stop: Callable[[], bool]) -> None:
        """Count on to the end of the text, or to where it now ends; a line that still grows counts as it is.

        A search that was broken off may still be counting: then this one waits until it has noticed.
        """
        with self._lock:
            total, pace = len(source), Pace()
            while self._counted < total and not self.is_full and not stop():
                _, last = source.stretch(self._counted)
                if last <= self._counted:
                    return
                hits = source.hits(self.needle, self._counted, last)
                self._spots.extend(_number_of(spot) for spot in hits)
                self._counted = last
                pace.keep()

    @property
    def is_full(self) -> bool:
        """Whether there are too many to count."""
        return len(self._spots) >= _MOST_HITS

    def place_of(self, spot: Spot) -> int:
        """Return how many hits there are up to a spot."""
        return bisect_right(self._spots, _number_of(spot))

    def __len__(self) -> int:
        return len(self._spots)

    def __str__(self) -> str:
        return f"{len(self):,}{'+' if self.is_full else ''}"


def _number_of(spot: Spot) -> int:
    return spot.paragraph << _LINE_BITS | min(spot.line, (1 << _LINE_BITS) - 1)
