"""What the screen does so that the person is told: being there, it sees to senders; and it has a terminal to ring."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Callable

from agentctl.adapters.clock import monotonic
from agentctl.adapters.taskdir import TaskDir
from agentctl.errors import AgentctlError
from agentctl.operations.fleet.glance import Glance
from agentctl.operations.notify.screens import TerminalNotices, looking
from agentctl.operations.notify.senders import Senders
from agentctl.supervision.notify.looking import Look

_LEAST_S = 1.0
#: A person who has pressed no key for so long is taken to look elsewhere.
LOOKS_S = 60.0


class ScreenBell:
    """Tells what is to be told about the trees of a root; used in the thread of the reader.

    Args:
        write: Puts a bell or a notification on the terminal.
    """

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write
        self._trees: dict[str, tuple[Senders, TerminalNotices]] = {}
        self._next_s = 0.0

    def look(self, glance: Glance) -> None:
        """Tell what there is to be told now; about once a second, and never in the way of the screen."""
        if monotonic() < self._next_s:
            return
        self._next_s = monotonic() + _LEAST_S
        trees: defaultdict[str, list[TaskDir]] = defaultdict(list)
        for name, one in glance.tasks.items():
            trees[_top_of(glance, name)].append(one.task)
        for name, tasks in trees.items():
            top = glance.tasks[name]
            if top.is_own and top.parent is None:
                with contextlib.suppress(AgentctlError, OSError):
                    self._look_at(top.task, tasks)

    def _look_at(self, root_task: TaskDir, tasks: list[TaskDir]) -> None:
        tree = self._trees.get(root_task.id)
        if tree is None:
            tree = self._trees[root_task.id] = Senders(root_task), TerminalNotices(root_task)
        senders, notices = tree
        if senders.are_wanted:
            senders.look(tasks)
            notices.tell(self._write)


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
        """Say which worker is looked at; None is none. If that cannot be written, the person is told once too often."""
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
