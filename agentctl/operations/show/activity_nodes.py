"""The nodes of one worker's activity, brought up to date by the rows that were appended."""

from __future__ import annotations

from collections.abc import Callable

from agentctl.adapters.activitylog import ActivityReader
from agentctl.adapters.clock import monotonic
from agentctl.adapters.taskdir import WorkerDir
from agentctl.domain.activity.fold import ActivityFold
from agentctl.domain.activity.view import Node, view_of
from agentctl.domain.states import Reason
from agentctl.errors import Damaged
from agentctl.lean import TYPE_CHECKING

if TYPE_CHECKING:
    from agentctl.domain.documents.workers.worker import WorkerRow

#: How many ended items of an expanded group are kept; `earlier` counts the rest.
KEPT = 200
#: Whoever reads in turns gets nodes anew only after so many times as long as it took to make them: those of an activity
#: of 100 MB take 0.4 s, which at each turn of 0.05 s made reading it ten times as long as it is now.
_RESTS = 4


class ActivityNodes:
    """What a worker did, as the lines of a tree; once the worker has ended, nothing but they is kept.

    Args:
        keep: How many ended items of each group are kept; 0 for a collapsed view.
    """

    def __init__(self, worker: WorkerDir, keep: int) -> None:
        self._reader = ActivityReader(worker.activity)
        self._keep = keep
        self._fold: ActivityFold | None = ActivityFold(keep)
        self._nodes: list[Node] = []
        self.bad_lines = 0
        self.unknown_types: dict[str, int] = {}
        #: Why the activity cannot be read.
        self.problem: str | None = None
        #: Whether the time was up before everything was read.
        self.is_behind = False
        #: When nodes that lack rows which were read are due to be made anew, by the monotonic clock.
        self.due: float | None = None
        self._next_made = 0.0

    def nodes(
        self,
        *,
        ended: bool,
        ended_at: str | None = None,
        until: float | None = None,
        rest: Callable[[], object] = lambda: None,
    ) -> list[Node]:
        """Read the new rows and return the nodes; if the activity cannot be read, only the worker's own node.

        Args:
            ended: The worker has ended.
            ended_at: When that was, as far as it is known (`interrupted_at`).
            until: When to stop reading, by the monotonic clock; the next call goes on there. The nodes may be those of
                before, until `due`.
            rest: Called every millisecond or so of reading.
        """
        self.problem = None
        try:
            return self._read(ended=ended, ended_at=ended_at, until=until, rest=rest)
        except Damaged as error:
            self.problem = error.message
        except OSError as error:
            self.problem = f"{self._reader.path}: {error.strerror}"
        self.is_behind, self.due = False, None
        return view_of(ActivityFold(self._keep), ended=ended, ended_at=ended_at)

    def _read(
        self, *, ended: bool, ended_at: str | None, until: float | None, rest: Callable[[], object]
    ) -> list[Node]:
        if self._reader.is_replaced():
            self._reader.restart()
            self._fold = ActivityFold(self._keep)
        if self._fold is None:
            return self._nodes
        self.is_behind = False
        for block in self._reader.blocks():
            self._fold.feed(block)
            rest()
            if until is not None and monotonic() >= until:
                self.is_behind = True
                break
        self.bad_lines, self.unknown_types = self._fold.bad, dict(self._fold.unknown_types)
        began = monotonic()
        if until is not None and began < self._next_made:
            self.due = self._next_made
            return self._nodes
        self._nodes, self.due = view_of(self._fold, ended=ended, ended_at=ended_at), None
        self._next_made = monotonic() + _RESTS * (monotonic() - began)
        if ended and not self.is_behind:
            self._fold = None
        return self._nodes


def interrupted_at(row: WorkerRow) -> str | None:
    """Return when the end of a worker interrupted what it did; None of a lost one, whose end nobody saw."""
    return None if row["reason"] == Reason.LOST else row["endedAt"]
