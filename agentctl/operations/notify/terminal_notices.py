"""For whoever has a terminal: what is to be told there, and what the person is looking at, of which nobody tells them.

A terminal is a target like any other: each notice is told once, by one of the processes that have one.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable

from agentctl.adapters import processes
from agentctl.adapters.clock import now_iso
from agentctl.adapters.paths import FilePath
from agentctl.adapters.personal import state_folder
from agentctl.adapters.taskdir import TaskDir
from agentctl.adapters.taskyaml.cache import cached
from agentctl.adapters.treedir import tree_of
from agentctl.domain.notice.notice_messages import NoticeMessage, message_about
from agentctl.domain.notice.notices import Notice
from agentctl.domain.notice.targets import BELL, OSC_9, OSC_777, TERMINAL, NoticeTarget
from agentctl.errors import AgentctlError
from agentctl.operations.where.calling import caller
from agentctl.supervision.notify.armed import Armed, read_armed
from agentctl.supervision.notify.book import SENT, Book
from agentctl.supervision.notify.gaze import Look, looked_at, unseen
from agentctl.supervision.notify.sender import is_quiet, notices_due
from agentctl.supervision.notify.tree_notices import TreeNotices
from agentctl.supervision.worker.environment import store_folder


class TerminalNotices:
    """What is to be told on this terminal about the tree of a task.

    Args:
        since: What happened before is not told, as events have it; by default now.
    """

    def __init__(self, task: TaskDir, since: str | None = None) -> None:
        self._tree, self._since = tree_of(task), since or now_iso()
        self._notices: TreeNotices | None = None
        self._book = Book(self._tree.notices)
        self._me = processes.identify(os.getpid())

    def tell(self, write: Callable[[str], object]) -> None:
        """Write to the terminal what is to be told there now; after that it counts as told.

        Cheap while no terminal is among the targets. Nothing fails because of it.

        Args:
            write: Gets the bell or the sequences of one message, and has them on the terminal when it returns.
        """
        with contextlib.suppress(AgentctlError, OSError):
            armed = None if caller() is not None else read_armed(self._tree, store_folder())
            targets = [] if armed is None or is_quiet(armed) else [one for one in armed.targets if one.type == TERMINAL]
            if armed is None or not targets:
                return
            self._notices = self._notices or TreeNotices(self._tree)
            notices = self._notices.look()
            for target in targets:
                self._tell(target, armed, notices, write)

    def has_left(self) -> bool:
        """Return whether a target that a sender tells has not been told something of the tree yet."""
        with contextlib.suppress(AgentctlError, OSError):
            armed = read_armed(self._tree, store_folder())
            if armed is None or is_quiet(armed):
                return False
            self._book.refresh()
            self._notices = self._notices or TreeNotices(self._tree)
            notices = self._notices.look()
            return any(notices_due(one, self._book, notices) for one in armed.targets if one.type != TERMINAL)
        return False

    def _tell(self, target: NoticeTarget, armed: Armed, notices: list[Notice], write: Callable[[str], object]) -> None:
        self._book.refresh()
        left = notices_due(target._replace(since=max(target.since, self._since)), self._book, notices)
        if not left:
            return
        left = unseen(self._tree, target, self._book, left, looked_at(FilePath(armed.state)))
        claimed = self._book.claim(target.name, [one.key for one in left], self._me)
        mine = [one for one in left if one.key in claimed.keys]
        if mine:
            config = cached(self._tree)
            message = message_about(mine, config.title if config else "", repeated=claimed.repeated)
            write("".join(sequence(way, message) for way in target.ways))
            self._book.note(target.name, claimed.keys, SENT)


def sequence(way: str, message: NoticeMessage) -> str:
    r"""Return what makes a terminal tell of a message: a bell, or a desktop notification (OSC 9, OSC 777).

    >>> sequence("osc777", NoticeMessage("test", "a;b", "c\x1b[0m", {}))
    '\x1b]777;notify;a,b;c[0m\x1b\\'
    """
    text = _printable(message.text.replace("\n", " | "))
    title = _printable(message.title).replace(";", ",")
    sequences = {BELL: "\a", OSC_9: f"\x1b]9;{title}: {text}\x1b\\", OSC_777: f"\x1b]777;notify;{title};{text}\x1b\\"}
    return sequences[way]


def _printable(text: str) -> str:
    return "".join(filter(str.isprintable, text))


def looking() -> Look:
    """Return a new look of the person: its `at(task, instance)` says at what, until it is closed or this process ends.

    Raises:
        StorageError: The person's folder of state cannot be written.
    """
    return Look(state_folder(os.environ))
