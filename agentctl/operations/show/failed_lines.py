"""The last lines of a failed worker, for the views that say why it failed."""

from __future__ import annotations

from agentctl.adapters.taskdir import WorkerDir
from agentctl.domain.states import Status
from agentctl.lean import TYPE_CHECKING
from agentctl.supervision.worker.output_at_end import output_lines

if TYPE_CHECKING:
    from agentctl.domain.documents.workers.worker import FailedLines


def failed_lines(worker: WorkerDir, status: str) -> FailedLines:
    """Return the last lines of both streams of a worker that has failed; nothing of another one."""
    lines = output_lines(worker) if status == Status.FAILED else {}
    return {"lastLines": lines} if lines else {}
