"""The node's sign of life, and how long its stand-in pauses between two looks.

The clocks of two machines differ, so the time in the file is only compared with itself. Its length tells of news: it is
one byte longer each time that there is something on the node which the head has to look at. So a look at a worker that
runs quietly is a look at one file.
"""

from __future__ import annotations

import contextlib
import math
import os
import select
from collections.abc import Callable

from agentctl.adapters.clock import monotonic
from agentctl.adapters.files import write_whole
from agentctl.adapters.opening import open_plain
from agentctl.adapters.taskdir import LaunchDir
from agentctl.domain.worker.sightings import BEAT_S
from agentctl.worker_programs.on_node.lookout import PAUSE_S, RestingNote, look_at

#: Once it has given none for this long, the engine's answers are looked at; sooner where less is taken for silence.
_PATIENCE_S = 2.5 * BEAT_S
#: The pauses between looks: this part of the calm so far, and the shortest; up to the pause of the lookout. From there
#: it looks in the place of this process, which only looks in order to hear that the node lives.
_PART, _SHORTEST_PAUSE_S = 0.25, 0.1


def pause_s(calm_s: float) -> float:
    """Return how long to wait until the next look, when nothing has happened for so long."""
    return min(max(_PART * calm_s, _SHORTEST_PAUSE_S), PAUSE_S)


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
        self._resting = RestingNote(launch)
        self._woken = select.poll()
        self._woken.register(woken, select.POLLIN)

    def silent_s(self) -> float:
        """Return for how long the node has given no sign of life, as far as was seen from here."""
        with contextlib.suppress(OSError):
            os.listdir(self._launch.path)  # Over NFS: names that were missing at the last look are looked up again.
            self._note(look_at(self._launch.heartbeat).st_mtime_ns)
        return monotonic() - self._since

    def rest(
        self, calm_since: float, until: float, engine_due_in_s: Callable[[], float], *, has_begun: bool = True
    ) -> None:
        """Rest until the node tells of news, or this process is woken; or until a time.

        Of a node that has begun it ends, too, when that is silent for too long, and when it is time to ask the engine,
        and nobody else has.
        """
        engine_due = 0.0
        try:
            while (now := monotonic()) < until:
                pause = min(self._pause_s(now - calm_since, has_begun=has_begun), until - now)
                is_woken = self._woken.poll(1000 * pause)
                if self._has_news() or is_woken or (has_begun and self._is_silent()):
                    return
                if has_begun and (now := monotonic()) >= engine_due:
                    engine_due = now + (due_in_s := engine_due_in_s())
                    if due_in_s <= 0:
                        return
        finally:
            self._resting.take_back()

    def close(self) -> None:
        """Let go of what others may rely on, at the end of this process."""
        self._resting.hand_over()

    def _pause_s(self, calm_s: float, *, has_begun: bool) -> float:
        pause = pause_s(calm_s)
        if pause < PAUSE_S or (has_begun and self._is_silent()) or not self._resting.leave(self._length):
            return pause
        return max(pause, self._patience_s) if has_begun else math.inf

    def _has_news(self) -> bool:
        try:
            found = look_at(self._launch.heartbeat)
        except OSError:
            return True
        self._note(found.st_mtime_ns)
        is_news, self._length = found.st_size != self._length, found.st_size
        return is_news

    def _is_silent(self) -> bool:
        return monotonic() - self._since >= self._patience_s

    def _note(self, changed: int) -> None:
        if changed != self._seen:
            self._seen, self._since = changed, monotonic()


class Heart:
    """Gives signs of life, on the node."""

    def __init__(self, launch: LaunchDir) -> None:
        self._launch = launch
        self._next = 0.0
        #: There is something to look at, and the disk was full when that was to be told.
        self._is_untold = False

    def beat(self) -> None:
        """Give a sign of life, if it is time."""
        if monotonic() < self._next:
            return
        self._next = monotonic() + BEAT_S
        if self._is_untold:
            self.tell()
        with contextlib.suppress(OSError):
            if self._launch.heartbeat.exists():
                os.utime(self._launch.heartbeat, follow_symlinks=False)
            else:
                write_whole(self._launch.heartbeat, b"", durable=False)

    def tell(self) -> None:
        """Tell the head that there is something to look at."""
        self._is_untold = True
        with contextlib.suppress(OSError):
            fd = open_plain(self._launch.heartbeat, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            try:
                os.write(fd, b".")
            finally:
                os.close(fd)
            self._is_untold = False
