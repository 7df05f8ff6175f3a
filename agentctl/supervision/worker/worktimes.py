"""When the workers of a tree were at work, as their shims measured it: time that no shim measured does not count.

For an ended worker it is in `exit.json`; for another one in `worked.json`, or before its first pause in `worker.json`.
A span that has not ended yet counts as long as the shim lives.
"""

from __future__ import annotations

from collections.abc import Mapping

from agentctl.adapters import processes
from agentctl.adapters.clock import monotonic
from agentctl.adapters.files import read_known
from agentctl.adapters.locks import is_alive_held
from agentctl.adapters.taskdir import WorkerDir
from agentctl.domain.worker.worktime import Worked, worked_from
from agentctl.lean import Any
from agentctl.supervision.worker.endings import decision_of


class WorkTimes:
    """The times of all workers that were asked for; those of an ended worker are read once."""

    def __init__(self) -> None:
        self._final: dict[str, Worked] = {}
        #: What is known better than by a worker's files, by the path of its folder.
        self.known: Mapping[str, Any] = {}

    def forget(self, worker: WorkerDir) -> None:
        """Forget the times of a worker that was removed."""
        self._final.pop(worker.path, None)

    def of(self, worker: WorkerDir) -> Worked:
        """Return when a worker was at work."""
        if worker.path in self._final:
            return self._final[worker.path]
        if worker.has_ended:
            measured = (decision.worked if (decision := decision_of(worker)) else None) or read_known(worker.worked)
            found = self._final[worker.path] = worked_from(measured, processes.boot_id(), monotonic())
            return found
        measured = self.known.get(worker.path) or _spans_by_files(worker)
        is_measured = worker.path in self.known or is_alive_held(worker.shim)
        return worked_from(measured, processes.boot_id(), monotonic(), is_at_work=is_measured)


def _spans_by_files(worker_dir: WorkerDir) -> Mapping[str, Any]:
    measured = read_known(worker_dir.worked)
    if measured:
        return measured
    worker = read_known(worker_dir.process)
    return {"boot": worker.get("boot"), "since": worker.get("since")}
