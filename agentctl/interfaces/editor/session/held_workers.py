"""Which workers a client's process holds; an idle one whose process was killed is ended by the next process.

Editors kill the programs that they have started. Without this, an agent that was kept would stay for ever.
"""

from __future__ import annotations

from agentctl.adapters.locks import hold_alive, is_alive_held
from agentctl.adapters.taskdir import Root, WorkerDir
from agentctl.errors import AgentctlError
from agentctl.interfaces.editor.session.prompt_delivery import SESSION_PREFIX, leave_alone
from agentctl.operations.where.lineage import true_caller
from agentctl.operations.where.ownership import is_own
from agentctl.supervision.worker.inboxes import is_idle


def hold_worker(worker: WorkerDir) -> int | None:
    """Hold a worker for as long as the returned descriptor is open; None if another process holds it already."""
    try:
        return hold_alive(worker.editor)
    except (AgentctlError, OSError):
        return None  # A full disk, for example: it is only not let end by itself.


def let_abandoned_end(root: Root) -> None:
    """Let the idle workers of a root end whose process is gone; only a person's own process does so."""
    if true_caller() is not None:
        return
    for task in map(root.task, root.task_ids()):
        names = [name for name in task.instances() if name.startswith(SESSION_PREFIX)]
        if names and is_own(task):
            leave_alone(worker for worker in map(task.worker, names) if _is_abandoned(worker))


def _is_abandoned(worker: WorkerDir) -> bool:
    """Return whether an editor has held a worker, and does no longer; without the file none has: it is a terminal's."""
    was_held = worker.editor.exists() and not is_alive_held(worker.editor)
    return was_held and not worker.has_ended and is_idle(worker)
