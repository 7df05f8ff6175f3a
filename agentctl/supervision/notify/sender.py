"""The sender of a tree of tasks: a short-lived process that tells its targets what the logs say, and leaves.

Nothing waits for it. A tree has at most one at a time, by a lock. Whoever starts one is not asked whether there is
anything to tell: a sender reads the logs and the book. It looks once more after it has given its lock back, so no event
is lost between two senders. One that is killed leaves claims; the next one sends those notices again, and says so.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from agentctl.adapters import processes
from agentctl.adapters.clock import monotonic
from agentctl.adapters.locks import hold_alive
from agentctl.adapters.paths import FilePath
from agentctl.adapters.taskdir import TreeDir
from agentctl.adapters.taskyaml.cache import cached
from agentctl.adapters.treedir import tree_at
from agentctl.adapters.watch import Watch
from agentctl.domain.notice.notice_messages import message_about
from agentctl.domain.notice.notices import ENDED, Notice
from agentctl.domain.notice.targets import TERMINAL, NoticeTarget
from agentctl.errors import AgentctlError
from agentctl.lean import NamedTuple
from agentctl.supervision import failpoints
from agentctl.supervision.notify.armed import Armed, read_armed
from agentctl.supervision.notify.book import FAILED, Book
from agentctl.supervision.notify.delivery import deliver
from agentctl.supervision.notify.gaze import LookedAt, looked_at, unseen
from agentctl.supervision.notify.links import with_links
from agentctl.supervision.notify.switch import LOCK_FD
from agentctl.supervision.notify.tree_notices import TreeNotices
from agentctl.supervision.worker.control import name_holder

#: How long it stays when nothing happens: events that follow need no sender of their own.
_LINGER_S = 0.5
#: How long no worker may have been there before all have ended: a script may start the next one.
_SETTLE_S = 0.5
#: The least time between two looks, however much happens.
_LEAST_S = 0.1
#: The longest life of a sender; whoever is there then starts another.
_LONGEST_S = 600.0
#: How often one sender tries a target in a row, with a pause that doubles.
_MOST_TRIES, _FIRST_PAUSE_S = 4, 1.0
#: After that many, over all senders, a notice rests: a minute at first, then twice as long each time.
_FIRST_REST_S, _LONGEST_REST_S = 60.0, 3600.0
#: What is older is not told any more.
_OLDEST = timedelta(hours=24)
#: More at once are told in one message.
_MOST_SINGLE = 5

_NOBODY = Armed(())


class _Pause(NamedTuple):
    """After a failure: how often it was tried, and when it is tried again (monotonic)."""

    tries: int = 0
    until: float = 0.0


def main(folder: str, root: str) -> None:
    """Run as the sender: drop what was inherited, tell what there is to tell, leave."""
    os.closerange(LOCK_FD + 1, 1 << 16)
    os.set_inheritable(LOCK_FD, False)
    os.chdir("/")
    os.umask(0o077)
    with contextlib.suppress(AgentctlError, OSError):
        _Sender(tree_at(root), FilePath(folder)).run()
    os._exit(0)  # A target that hangs has a thread of its own, which nobody waits for.


class _Sender:
    def __init__(self, tree: TreeDir, folder: FilePath) -> None:
        self.tree, self.folder = tree, folder
        self.notices, self.book = TreeNotices(tree), Book(tree.notices)
        self.me = processes.identify(os.getpid())
        #: The targets to which a thread is sending. While one is among them, only its thread touches its pause.
        self.busy: set[str] = set()
        self.pauses: dict[str, _Pause] = {}
        self.until = monotonic() + _LONGEST_S
        #: The notice that all have ended, and since when nothing has come after it.
        self.over: tuple[str, float] = ("", 0.0)

    def run(self) -> None:
        """Work until there is nothing left to tell, and nothing has come while the lock was given back."""
        # Where a lock is the process's own (macOS), it was not handed over with the descriptor.
        lock = LOCK_FD if processes.LINUX else hold_alive(self.tree.sender)
        while self.tree.exists and lock is not None:
            try:
                name_holder(lock, self.me)
                sizes = self._work()
            finally:
                os.close(lock)
            if sizes == self.notices.sizes() or monotonic() >= self.until:
                return
            lock = hold_alive(self.tree.sender)

    def _work(self) -> dict[str, int]:
        """Tell until nothing is left; return the sizes of the logs as they were at the last look."""
        with Watch() as watch:
            watched: set[str] = set()
            calm_since = monotonic()
            while True:
                for name in self.notices.tasks.keys() - watched:
                    watch.add(self.notices.tasks[name].events)
                    watched.add(name)
                sizes = self.notices.sizes()
                armed = read_armed(self.tree, self.folder) or _NOBODY
                if not armed.targets and not self.busy:
                    return sizes
                _live_in_zone_of(armed)
                has_told = self._tell(armed, self._settled(self.notices.look()))
                now = monotonic()
                is_busy = has_told or bool(self.busy)
                calm_since = now if is_busy else calm_since
                due = self._next(armed)
                if now >= self.until or (due is None and now >= calm_since + _LINGER_S):
                    return sizes
                time.sleep(_LEAST_S)
                linger_until = calm_since + _LINGER_S
                # While a target is busy, it looks again and again whether it still is.
                wake_at = linger_until if due is None else min(due, linger_until) if is_busy else due
                watch.sleep(max(0.0, wake_at - monotonic()))

    def _next(self, armed: Armed) -> float | None:
        """Return when something is to be done without any news; None where nothing is."""
        free = [self.pauses.get(one.name, _Pause()) for one in armed.targets if one.name not in self.busy]
        times = [pause.until for pause in free if 0 < pause.tries < _MOST_TRIES]
        if self.over[0] and monotonic() < self.over[1]:
            times.append(self.over[1])
        return min(times, default=None)

    def _settled(self, notices: list[Notice]) -> list[Notice]:
        """Return what is to be told now; that all have ended only when that has been so for a moment."""
        over = next((one for one in notices if one.kind == ENDED), None)
        if over is None:
            self.over = ("", 0.0)
            return notices
        if self.over[0] != over.key:
            self.over = (over.key, monotonic() + _SETTLE_S)
        return notices if monotonic() >= self.over[1] else [one for one in notices if one is not over]

    def _tell(self, armed: Armed, notices: list[Notice]) -> bool:
        """Have each target that is not busy told what it has not been told; return whether there was anything.

        None waits for another: each has a thread of its own, and what comes meanwhile is told by a later look.
        """
        free = [one for one in armed.targets if one.name not in self.busy]
        self.book.refresh()  # Only now: it has all that was sent to those that are free.
        seen = looked_at(FilePath(armed.state)) if armed.state else set()
        has_told = False
        for target in free:
            left = self._pending(target, armed, notices, seen)
            if left:
                has_told = True
                self.busy.add(target.name)
                threading.Thread(target=self._send, args=(target, armed, left), daemon=True).start()
        return has_told

    def _pending(self, target: NoticeTarget, armed: Armed, notices: list[Notice], seen: set[LookedAt]) -> list[Notice]:
        """Return what a target is to be told now; what the person is looking at is noted as seen."""
        left = [] if target.type == TERMINAL or is_quiet(armed) else notices_due(target, self.book, notices)
        left = [one for one in unseen(self.tree, target, self.book, left, seen) if not self._rests(target, one)]
        if not left:
            self.pauses.pop(target.name, None)
        pause = self.pauses.get(target.name, _Pause())
        return left if pause.tries < _MOST_TRIES and monotonic() >= pause.until else []

    def _rests(self, target: NoticeTarget, notice: Notice) -> bool:
        """Return whether a notice failed so often, also with earlier senders, that it is left alone for a while."""
        step = self.book.last(target.name, notice.key)
        is_of_others = target.name not in self.pauses
        return step.tries >= _MOST_TRIES and is_of_others and 0 <= _age_s(step.at) < rest_s(step.tries)

    def _send(self, target: NoticeTarget, armed: Armed, notices: Sequence[Notice]) -> None:
        try:
            self._send_all(target, armed, notices)
        finally:
            self.busy.discard(target.name)

    def _send_all(self, target: NoticeTarget, armed: Armed, notices: Sequence[Notice]) -> None:
        groups = [notices] if len(notices) > _MOST_SINGLE else [[one] for one in notices]
        for group in groups:
            try:
                is_done = self._send_group(target, armed, group)
            except Exception:  # noqa: BLE001 - a full disk, or a fault of ours: without a pause it would send for ever
                is_done = False
            if not is_done:
                tries = self.pauses.get(target.name, _Pause()).tries + 1
                self.pauses[target.name] = _Pause(tries, monotonic() + _FIRST_PAUSE_S * 2 ** (tries - 1))
                return
            self.pauses.pop(target.name, None)

    def _send_group(self, target: NoticeTarget, armed: Armed, group: Sequence[Notice]) -> bool:
        """Send notices as one message; return whether nothing is left to do about them.

        Raises:
            StorageError, OSError: The book cannot be written.
        """
        book = Book(self.tree.notices)  # Of this thread alone.
        claimed = book.claim(target.name, [one.key for one in group], self.me)
        mine = [one for one in group if one.key in claimed.keys]
        if not mine:
            return False  # As the book has it, another process is about to send them.
        config = cached(self.tree)
        message = message_about(mine, config.title if config else "", repeated=claimed.repeated)
        message = with_links(message, mine, target, self.tree, self.folder)
        failpoints.reached("notify.before-send")
        answered = deliver(target, armed, message)
        failpoints.reached("notify.after-send")
        book.note(target.name, claimed.keys, answered.step, answered.said, maybe=answered.maybe)
        return answered.step != FAILED


def notices_due(target: NoticeTarget, book: Book, notices: Sequence[Notice]) -> list[Notice]:
    """Return which notices a target wants and has not been told, except those that are too old by now."""
    oldest = _iso(datetime.now(UTC) - _OLDEST)
    return [
        one
        for one in notices
        if one.kind in target.events and one.at >= max(target.since, oldest) and not book.is_done(target.name, one.key)
    ]


def rest_s(tries: int) -> float:
    """Return how long a notice rests after so many failures.

    >>> [rest_s(tries) for tries in (4, 5, 9, 99)]
    [60.0, 120.0, 1920.0, 3600.0]
    """
    return min(_LONGEST_REST_S, _FIRST_REST_S * 2.0 ** min(tries - _MOST_TRIES, 10))


def _age_s(at: str) -> float:
    """Return the seconds since a time as a book has it; what is not a time is long ago."""
    try:
        return (datetime.now(UTC) - datetime.fromisoformat(at)).total_seconds()
    except (ValueError, TypeError):
        return _LONGEST_REST_S


def _live_in_zone_of(armed: Armed) -> None:
    """Take over the person's time zone: this process was started by a shim, which does not have their environment."""
    zone = armed.environ.get("TZ")
    if zone != os.environ.get("TZ"):
        if zone is None:
            del os.environ["TZ"]
        else:
            os.environ["TZ"] = zone
        time.tzset()


def is_quiet(armed: Armed) -> bool:
    """Return whether these are quiet hours in the zone of this process."""
    if armed.quiet is None:
        return False
    now = time.localtime()
    return armed.quiet.covers(now.tm_hour * 60 + now.tm_min)


def _iso(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%S.000Z")
