"""The node's sign of life: the time at which its heartbeat last changed, on the clock of this machine.

The clocks of two machines differ, so the time in the file is only compared with itself. Its length tells of news: it is
one byte longer each time that there is something on the node which the head has to look at. So a look at a worker that
runs quietly is a look at one file.
"""

from __future__ import annotations

import contextlib
import os
import select
from collections.abc import Callable

from agentctl.adapters.clock import monotonic
from agentctl.adapters.files import write_whole
from agentctl.adapters.opening import open_plain
from agentctl.adapters.taskdir import LaunchDir
from agentctl.domain.sightings import BEAT_S

#: Once it has given none for this long, the engine's answers are looked at; sooner where less is taken for silence.
_PATIENCE_S = 2.5 * BEAT_S
#: The pauses between looks: this part of the calm so far, the shortest, and the longest. Half of that is the median
#: time from the end of a worker that was calm to the moment at which the head sees it.
_PART, _SHORTEST_PAUSE_S, _LONGEST_PAUSE_S = 0.25, 0.1, 2.25
#: Those of rests end at a multiple of this on the monotonic clock.
_MOMENTS_S = 0.125
_LOOK = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC


def pause_s(calm_s: float) -> float:
    """Return how long to wait until the next look, when nothing has happened for so long."""
    return min(max(_PART * calm_s, _SHORTEST_PAUSE_S), _LONGEST_PAUSE_S)


class HeardFrom:
    """Notes when the heartbeat of a node changes, and rests until the node tells of news.

    Args:
        woken: A descriptor that is readable once this process is to wake.
        silence_s: How long a node has to be silent that is taken for gone.
    """

    def __init__(self, launch: LaunchDir, woken: int, silence_s: float) -> None:
        self._launch, self._patience_s = launch, min(silence_s, _PATIENCE_S)
        self._seen: int | None = None
        self._since = monotonic()
        self._length = -1
        self._woken = select.poll()
        self._woken.register(woken, select.POLLIN)

    def silent_s(self) -> float:
        """Return for how long the node has given no sign of life, as far as was seen from here."""
        with contextlib.suppress(OSError):
            os.listdir(self._launch.path)  # Over NFS: names that were missing at the last look are looked up again.
            fd = os.open(self._launch.heartbeat, _LOOK)  # What a stat says there may be half a minute old.
            try:
                self._note(os.fstat(fd).st_mtime_ns)
            finally:
                os.close(fd)
        return monotonic() - self._since

    def rest(self, calm_since: float, until: float, engine_due_in_s: Callable[[], float]) -> None:
        """Rest until the node tells of news, is silent for too long, or this process is woken; or until a time.

        It ends, too, when it is time to ask the engine, and nobody else has.

        A look that finds nothing runs for 15 us, and takes four to seven times as long in a process that was asleep:
        the rest is code and data coming back into the processor's cache. So it is one loop that calls little, and all
        stand-ins look at the same moments, when each finds warm what they have in common. The file is opened since that
        asks the server of NFS; what a stat says there may be half a minute old.
        """
        path, open_, size_of, close, clock = self._launch.heartbeat, os.open, os.lseek, os.close, monotonic
        length, next_beat, engine_due = self._length, 0.0, 0.0
        while (now := clock()) < until:
            moment = _MOMENTS_S * ((now + pause_s(now - calm_since)) // _MOMENTS_S + 1)
            if self._woken.poll(1000 * (moment - now)):
                return
            try:
                fd = open_(path, _LOOK)
            except OSError:
                return
            try:
                size = size_of(fd, 0, os.SEEK_END)
                if now >= next_beat:
                    next_beat = now + self._patience_s / 2
                    self._note(os.fstat(fd).st_mtime_ns)
            except OSError:  # Something that is no file: nothing is learnt from it.
                return
            finally:
                close(fd)
            if size != length:
                self._length = size
                return
            if now - self._since > self._patience_s:
                return
            if now >= engine_due:
                engine_due = now + (due_in_s := engine_due_in_s())
                if due_in_s <= 0:
                    return

    def _note(self, changed: int) -> None:
        if changed != self._seen:
            self._seen, self._since = changed, monotonic()


class Heart:
    """Gives signs of life, on the node."""

    def __init__(self, launch: LaunchDir) -> None:
        self._launch = launch
        self._next = 0.0

    def beat(self) -> None:
        """Give a sign of life, if it is time."""
        if monotonic() >= self._next:
            self._next = monotonic() + BEAT_S
            with contextlib.suppress(OSError):
                if self._launch.heartbeat.exists():
                    os.utime(self._launch.heartbeat, follow_symlinks=False)
                else:
                    write_whole(self._launch.heartbeat, b"", durable=False)

    def tell(self) -> None:
        """Tell the head that there is something to look at."""
        with contextlib.suppress(OSError):
            fd = open_plain(self._launch.heartbeat, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            try:
                os.write(fd, b".")
            finally:
                os.close(fd)
