"""`show`: everything that is known of one worker."""

from __future__ import annotations

from agentctl.adapters.files import read_to_show
from agentctl.adapters.taskdir import TaskDir, WorkerDir
from agentctl.domain.worker.projection import WorkerView
from agentctl.errors import AgentctlError
from agentctl.lean import TYPE_CHECKING, Any
from agentctl.operations.show.askers import asked_below
from agentctl.operations.show.current_state import read_task
from agentctl.operations.show.further_runs import further_runs
from agentctl.operations.show.listing import row_of
from agentctl.operations.show.sessions_by_hand import opening_of
from agentctl.operations.where.locating import find_worker
from agentctl.operations.where.observed import observed_row
from agentctl.supervision.account.accounts import folder_of_accounts
from agentctl.supervision.account.waiters import Awaited
from agentctl.supervision.worker.cancel_request import cancel_request_of
from agentctl.supervision.worker.endings import decision_of
from agentctl.supervision.worker.relative_paths import from_disk, with_artifacts

if TYPE_CHECKING:
    from agentctl.domain.documents.workers.worker import ShownWorker
    from agentctl.domain.documents.worktrees import WorktreeRecord


def show_worker(task: TaskDir, instance: str) -> ShownWorker:
    """Return everything that is known of one worker, or of a sub-agent that is only observed."""
    try:
        worker_dir = find_worker(task, instance)
    except AgentctlError:
        observed = observed_row(task, instance)
        if observed is None:
            raise
        return {**observed, "taskId": task.id}  # type: ignore[typeddict-item] # Its row alone.
    view, conditions = read_task(task)
    worker = view.workers.get(instance) or WorkerView(instance)
    below = len(asked_below(task, view).get(instance, ()))
    return {
        **row_of(task, worker, conditions.get(instance), Awaited(folder_of_accounts()), below),
        "taskId": task.id,
        "spec": read_to_show(worker_dir.spec),
        "worker": read_to_show(worker_dir.process) or None,
        "shim": read_to_show(worker_dir.shim) or None,
        "cancel": cancel_request_of(worker_dir) or None,
        "exit": decision.to_json() if (decision := decision_of(worker_dir)) else None,
        "result": with_artifacts(read_to_show(worker_dir.result), from_disk, task.root.path) or None,
        "fallback": None,
        "worktree": worktree_of(worker_dir),
        "questions": [
            {**read_to_show(worker_dir.question(name)), **_answer_to(worker_dir, name)}
            for name in worker_dir.question_ids()
        ],
        "openSession": opening_of(worker_dir),
        "furtherRuns": further_runs(worker_dir).to_json() if worker_dir.has_ended else None,
        "folder": str(worker_dir.path),
        "stdout": str(worker_dir.stdout),
        "stderr": str(worker_dir.stderr),
    }


def _answer_to(worker: WorkerDir, question: str) -> dict[str, Any]:
    """Return the answer to a question, None where there is none yet; and what is known of how it was given."""
    given = read_to_show(worker.answer(question))
    found: dict[str, Any] = {"answer": given.get("answer")}
    found |= {key: given[key] for key in ("by", "reason", "expired") if key in given}
    return found | {"answeredAt": given["at"]} if "at" in given else found


def worktree_of(worker: WorkerDir) -> WorktreeRecord | None:
    """Return what is known of a worker's worktree; None if it has none."""
    if not worker.worktree.exists():
        return None
    from agentctl.operations.worktree.changes import known_worktree  # Few workers have one.

    return known_worktree(worker)
