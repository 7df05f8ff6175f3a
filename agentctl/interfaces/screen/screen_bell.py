"""What the screen does so that a person is told: it starts senders, rings its terminal, says what is looked at."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Callable

from agentctl.adapters.clock import monotonic, now_iso
from agentctl.adapters.taskdir import TaskDir, TreeDir
from agentctl.adapters.treedir import tree_of
from agentctl.errors import AgentctlError
from agentctl.operations.fleet.glance import FleetTask, Glance
from agentctl.operations.notify.senders import Senders, is_armed
from agentctl.operations.notify.terminal_notices import TerminalNotices, looking
from agentctl.supervision.notify.gaze import Look

_LEAST_S = 1.0
#: How many senders are started at one look: each is a Python process, and a root may have any number of trees.
_MOST_STARTS = 3
#: A person who has pressed no key for so long is taken to look elsewhere.
LOOKS_S = 60.0


class ScreenBell:
    """Tells what is to be told about the trees of a root; used in the thread of the reader.

    Args:
        write: Puts a bell or a notification on the terminal.
    """

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write
        self._means: dict[str, _Means] = {}
        self._since = now_iso()
        self._next_s = 0.0
        self._may_start = 0

    def look(self, glance: Glance) -> None:
        """Tell what there is to be told now; about once a second, and never in the way of the screen."""
        if monotonic() < self._next_s:
            return
        self._next_s, self._may_start = monotonic() + _LEAST_S, _MOST_STARTS
        trees: defaultdict[str, list[TaskDir]] = defaultdict(list)
        for name, one in glance.tasks.items():
            trees[_top_of(glance, name)].append(one.task)
        for name in self._means.keys() - trees.keys():
            del self._means[name]
        for name, tasks in trees.items():
            top = glance.tasks[name]
            if top.is_own and top.parent is None:
                with contextlib.suppress(AgentctlError, OSError):
                    self._look_at(top, tasks)

    def _look_at(self, top: FleetTask, tasks: list[TaskDir]) -> None:
        tree = tree_of(top.task)
        means, nonce = self._means.get(tree.id), tree.nonce()
        if means is None or means.nonce != nonce:  # Another task may have taken the name.
            self._means.pop(tree.id, None)
            if not top.totals.live and not is_armed(tree):
                return  # Whoever starts a worker there names the targets.
            means = self._means[tree.id] = _Means(tree, nonce, self._since)
        if means.senders.are_wanted:
            self._see_to_sender(means, is_live=top.totals.live > 0, tasks=tasks)
            means.notices.tell(self._write)

    def _see_to_sender(self, means: _Means, *, is_live: bool, tasks: list[TaskDir]) -> None:
        """Start a sender where one is due; where nothing lives any more, only if something is left to be told."""
        means.is_due = means.senders.are_due(tasks) or means.is_due
        if means.is_due and self._may_start:
            means.is_due = False
            if is_live or means.notices.has_left():
                self._may_start -= 1
                means.senders.start()


class _Means:
    """What tells of one tree of tasks."""

    def __init__(self, tree: TreeDir, nonce: str, since: str) -> None:
        self.nonce = nonce
        self.senders, self.notices = Senders(tree), TerminalNotices(tree, since)
        #: A sender is to be started, at this look or at a later one.
        self.is_due = False


def _top_of(glance: Glance, name: str) -> str:
    """Return the task on top of a task's tree; a forged circle ends it."""
    seen: set[str] = set()
    while name not in seen and (task := glance.tasks.get(name)) is not None and task.parent is not None:
        seen.add(name)
        name = task.parent
    return name


class Gaze:
    """What the person looks at on this screen: of that nobody has to tell them."""

    def __init__(self) -> None:
        self._look: Look | None = None
        self._at: tuple[TaskDir, str] | None = None

    def rest_on(self, at: tuple[TaskDir, str] | None) -> None:
        """Say which worker is looked at, if any. If that cannot be written, the person is told once too often."""
        if at == self._at:
            return
        with contextlib.suppress(AgentctlError, OSError):
            self._look = self._look or looking()
            self._look.at(*(at or (None,)))
            self._at = at

    def close(self) -> None:
        """Look at nothing any more."""
        if self._look is not None:
            self._look.close()
            self._look = None
