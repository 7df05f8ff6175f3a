"""The clock of one worker: it runs while the worker is at work, and stands still while it waits or is paused.

It counts only measured time: at each look, the time since the last look, by what the worker did in it. Other processes
read the clock in the worker's folder: `worker.json` says when an attempt began, `worked.json` when the clock stopped
and went on, and `exit.json` all of it. So a worker that never waits costs no file, and none is written while it works.
"""

from __future__ import annotations

import contextlib

from agentctl.adapters import processes
from agentctl.adapters.clock import monotonic
from agentctl.adapters.files import read_known, to_json, write_whole
from agentctl.adapters.taskdir import WorkerDir
from agentctl.errors import AgentctlError
from agentctl.lean import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentctl.supervision.worker.whereabouts import Whereabouts

#: More than a worker that waits for people ever has; beyond that, the shortest pauses count as work.
_MOST_SPANS = 1000


class WorkClock:
    """When a worker was at work, over all of its attempts; instants are those of the monotonic clock."""

    def __init__(self, worker: WorkerDir) -> None:
        self.worker = worker
        #: The folders of the worker, once they are held: nothing is written while they are not in their place.
        self.where: Whereabouts | None = None
        self.spans: list[tuple[float, float]] = []
        #: Since when it has been at work; None while the clock stands still.
        self.since: float | None = None
        self._noted = 0.0
        #: How long this attempt has been at work.
        self.worked_s = 0.0

    def take_up(self) -> None:
        """Continue after the attempts that another shim measured. Instants of another boot mean nothing."""
        from agentctl.domain.worker.worktime import worked_from  # Few workers are parked.

        known = worked_from(read_known(self.worker.worked), processes.boot_id(), monotonic())
        if known.boot == processes.boot_id():
            self.spans = [(span.begin, span.end) for span in known.spans]

    def begin(self, now: float) -> None:
        """Begin an attempt."""
        self.since = self._noted = now
        self.worked_s = 0.0
        if self.spans:
            self.tell()

    def note(self, now: float, *, at_work: bool) -> None:
        """Record whether the worker was at work since the last call."""
        has_run = self.since is not None
        if at_work:
            self.worked_s += now - self._noted
            self.since = self._noted if self.since is None else self.since
        elif self.since is not None:
            self._close(self.since, self._noted)
        self._noted = now
        if has_run != at_work:
            self.tell()

    def end(self) -> None:
        """End an attempt whose time has all been noted."""
        if self.since is not None:
            self._close(self.since, self._noted)

    def _close(self, begin: float, end: float) -> None:
        self.since = None
        if end > begin:
            self.spans.append((_cut(begin), _cut(end)))
        if len(self.spans) > _MOST_SPANS:
            spans = self.spans
            at = min(range(1, len(spans)), key=lambda number: spans[number][0] - spans[number - 1][1])
            spans[at - 1 : at + 1] = [(spans[at - 1][0], spans[at][1])]

    def due(self, limit_s: float) -> float:
        """Return when an attempt that goes on working will have worked for `limit_s`."""
        return self._noted + limit_s - self.worked_s

    def to_json(self) -> dict[str, Any]:
        """Return the clock in the form of `worked.json` and, once the worker has ended, of `exit.json`."""
        value = {"boot": processes.boot_id(), "spans": self.spans}
        return value if self.since is None else {**value, "since": _cut(self.since)}

    def tell(self) -> None:
        """Write `worked.json`; if the disk refuses, the next change writes it."""
        with contextlib.suppress(AgentctlError, OSError):
            if self.where is None or self.where.loss() is None:
                write_whole(self.worker.worked, to_json(self.to_json()), durable=False)


def _cut(instant: float) -> float:
    """Return an instant, rounded down to milliseconds: a reader would believe nothing that is in the future."""
    return int(instant * 1000) / 1000
