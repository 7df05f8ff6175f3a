"""The children of a worker, which it has started: what becomes of them when it is cancelled, and when it ends.

A shim publishes its worker's end only when there are no more children to wait for (`childrenAtEnd` in task.yaml). It
begins an escalation only when the children have been cancelled: so the deepest go first, since each shim does the same.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from functools import partial

from agentctl.adapters.clock import monotonic
from agentctl.adapters.paths import FilePath
from agentctl.adapters.taskdir import TreeDir, WorkerDir
from agentctl.domain import events as ev
from agentctl.domain.states import ChildrenAtEnd
from agentctl.errors import AgentctlError
from agentctl.lean import TYPE_CHECKING, Any
from agentctl.supervision.worker import cancel_request, kinship, pause_request
from agentctl.supervision.worker.spec import valid_grace

#: How often the children are looked at; the end of each also wakes.
_TICK_S = 1.0
#: A worker whose processes survive SIGKILL must not hold up those above it for ever.
_LONGEST_HOLD_S = 120.0
#: Appends an event about the parent.
Tell = Callable[[str, Mapping[str, Any]], object]

if TYPE_CHECKING:
    from typing import Protocol, TypeVar

    T = TypeVar("T")

    class Known(Protocol):
        """Returns what a look at the files says; it is made again while that cannot be known."""

        def __call__(self, look: Callable[[], T]) -> T:
            """Make the look."""


class Offspring:
    """The children of one worker.

    Args:
        folder: Where the environments of queued workers wait.
    """

    def __init__(self, worker: WorkerDir, tree: TreeDir, folder: FilePath) -> None:
        self.worker, self.tree, self.folder = worker, tree, folder
        self._held_since: float | None = None
        self._is_paused = False

    def _policy(self) -> ChildrenAtEnd:
        """Return what is to become of the children."""
        return kinship.children_at_end(self.worker.task)

    def living(self) -> list[WorkerDir]:
        """Return the children that have not ended; record those proven lost, since nobody else may do it."""
        if not self.worker.children.exists():
            return []
        return [child for child in kinship.children_of(self.worker) if not child.has_ended and _lives(child)]

    def holds_cancel(self) -> bool:
        """Pass a cancel of the parent on to its children; return whether it has to wait for their ends."""
        if self._policy() is ChildrenAtEnd.LEAVE:
            return False
        if not (living := self.living()):
            return False
        now = monotonic()
        self._held_since = now if self._held_since is None else self._held_since
        self._pass_on(living)
        return now - self._held_since < _LONGEST_HOLD_S

    def _pass_on(self, living: list[WorkerDir]) -> None:
        from agentctl.supervision.stop.requesting import (  # Few workers have children to be cancelled.
            Request,
            request_ends,
        )

        asked = cancel_request.cancel_request_of(self.worker) or {}
        request = Request(str(asked.get("by", "agentctl")), valid_grace(asked), self.folder)
        new = [child for child in living if not cancel_request.is_asked(child)]
        again = ([child] for child in living if cancel_request.is_asked(child))  # Each is only woken, or buried.
        for children in (new, *again) if new else again:
            with contextlib.suppress(AgentctlError, OSError):  # The next look tries again.
                request_ends(children, request)

    def outlast(self, rest: Callable[[float], None], tell: Tell, known: Known) -> list[str]:
        """Do what the task says about children that outlive their parent; return them, as `task/instance`,
        with the path of a task in another root.

        Args:
            rest: Sleeps for that many seconds, or until woken.
            tell: Appends an event about the parent.
            known: Returns what a look at the files says, however often it has to be made.
        """
        living = known(self.living)
        here = self.worker.task
        names = [f"{kinship.task_name(child.task, here) or here.id}/{child.instance}" for child in living]
        if not living or known(self._policy) is ChildrenAtEnd.LEAVE:
            return names
        from agentctl.supervision.dispatch.standby import Standby  # Imported only now: it loads the dispatch.

        with contextlib.suppress(AgentctlError, OSError):
            tell(ev.AWAITING_CHILDREN, {"children": names})
        standby, is_lent = Standby(self.worker, self.tree, self.folder), False
        try:
            while known(self.worker.task.path.exists) and living:
                is_asked = partial(cancel_request.is_asked, self.worker)
                is_cancelled = known(self._policy) is ChildrenAtEnd.CANCEL or known(is_asked)
                if is_cancelled and not known(self.holds_cancel):
                    break
                if not is_cancelled:
                    self._let_go(living)
                is_lent = is_lent or standby.lend()  # Nothing of the parent is at work any more.
                rest(_TICK_S)
                self._tell_pause(tell)
                living = known(self.living)
        finally:
            standby.end_loan()
        return names

    def _let_go(self, living: list[WorkerDir]) -> None:
        """Let children end that were kept and have answered: the parent, which could have said more, has ended."""
        from agentctl.supervision.worker.inboxes import let_go

        for child in living:
            with contextlib.suppress(AgentctlError, OSError):  # The next look tries again.
                let_go(child, self.worker.instance)

    def _tell_pause(self, tell: Tell) -> None:
        """Append the event of a pause. Nothing of the parent is left to stop; the children's shims stop these."""
        with contextlib.suppress(AgentctlError, OSError):  # What the disk refuses now is told at the next look.
            if self._is_paused != pause_request.is_wanted(self.worker):
                tell(ev.UNPAUSED if self._is_paused else ev.PAUSED, {})
                self._is_paused = not self._is_paused


def _lives(child: WorkerDir) -> bool:
    from agentctl.supervision.life.judging import Condition, judge_surely, settle

    with contextlib.suppress(AgentctlError, OSError):
        condition = judge_surely(child)
        if condition is Condition.ELSEWHERE:
            return False
        return not settle(child, condition)
    return not child.has_ended


def wake_parent(worker: WorkerDir) -> None:
    """Wake the shim of a worker's parent: the worker has ended."""
    from agentctl.supervision.worker.control import poke

    with contextlib.suppress(AgentctlError, OSError):  # It looks once a second by itself.
        parent = kinship.parent_of(worker)
        if parent is not None:
            poke(parent)
