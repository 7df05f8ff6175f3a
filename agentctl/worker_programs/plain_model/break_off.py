"""Breaks off what the program is doing: a request, a running tool, a wait for an answer."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator


class Interrupted(Exception):
    """The person has broken it off."""


class BreakOff:
    """Whether the work in hand is to be broken off; what is under way says how that is done."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_broken = threading.Event()
        self._stops: list[Callable[[], object]] = []

    @property
    def is_broken(self) -> bool:
        """Whether it is to be broken off."""
        return self._is_broken.is_set()

    def trip(self) -> None:
        """Break it off; called in any thread."""
        with self._lock:  # What a stop works on may be gone once its `stopping` has ended.
            self._is_broken.set()
            for stop in self._stops:
                stop()

    def reset(self) -> None:
        """Let new work begin."""
        self._is_broken.clear()

    def check(self) -> None:
        """Raise `Interrupted` where it is to be broken off."""
        if self.is_broken:
            raise Interrupted

    def sleep(self, seconds: float) -> None:
        """Wait; raise `Interrupted` at once where it is broken off."""
        if self._is_broken.wait(seconds):
            raise Interrupted

    @contextlib.contextmanager
    def stopping(self, stop: Callable[[], object]) -> Iterator[None]:
        """Have `stop` called, in another thread, if it is broken off meanwhile; never behind the end of this."""
        with self._lock:
            self._stops.append(stop)
        try:
            if self.is_broken:
                stop()
            yield
        finally:
            with self._lock:
                self._stops.remove(stop)
