"""The answer of a sub-task: Success, Error or Cancel, with the last words of its agent, limited in size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agentctl.adapters.taskdir import WorkerDir
from agentctl.domain.ends import reason_in_words
from agentctl.domain.states import Status
from agentctl.errors import AgentctlError
from agentctl.operations.show.results import cut_of, text_fields
from agentctl.supervision.worker.endings import Decision, decision_of

SUCCESS, ERROR, CANCEL = "Success", "Error", "Cancel"
#: The status of a sub-task that had not ended when the call that asked for it gave up.
STILL_RUNNING = "still_running"
_ANSWERS = {Status.COMPLETED: SUCCESS, Status.FAILED: ERROR, Status.CANCELLED: CANCEL}


@dataclass(frozen=True, kw_only=True, slots=True)
class SubtaskEnd:
    """The answer of a sub-task."""

    #: None if there is no sub-task, since it was refused.
    task_id: str | None
    agent_id: str | None
    #: Success, Error or Cancel; None while it still runs.
    status: str | None
    #: What the worker declared in addition to its last words.
    summary: str | None = None
    #: If the summary was cut: the same keys as in `cut`.
    summary_cut: Mapping[str, Any] | None = None
    failure_reason: str | None = None
    final_message: str | None = None
    #: If the final message was cut: {truncated, size, sha256, path, wrapped} of the full text.
    cut: Mapping[str, Any] | None = None
    #: Why the call returned before the end: `paused`, `cancelled` or `timeout`.
    stopped: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the answer with the keys of the public contract."""
        head = {"taskId": self.task_id, "agentId": self.agent_id}
        if self.status is None:
            return {**head, "status": STILL_RUNNING, "stopped": self.stopped}
        value = {
            "summary": self.summary,
            "summaryCut": self.summary_cut,
            "failureReason": self.failure_reason,
            "finalAssistantMessage": self.final_message,
        }
        answer = {key: item for key, item in value.items() if item is not None}
        return {**head, "subTaskStatus": self.status, **answer, **(self.cut or {})}


def refusal(error: AgentctlError) -> SubtaskEnd:
    """Return the answer of a sub-task that was refused; nothing was created for it."""
    return SubtaskEnd(task_id=None, agent_id=None, status=ERROR, failure_reason=error.message)


def still_running(task_id: str, agent_id: str, why: str) -> SubtaskEnd:
    """Return the answer of a sub-task that a call has stopped waiting for."""
    return SubtaskEnd(task_id=task_id, agent_id=agent_id, status=None, stopped=why)


def answer_of(worker: WorkerDir, agent_id: str) -> SubtaskEnd:
    """Return the answer of a sub-task whose worker has ended."""
    decision, result = decision_of(worker), text_fields(worker)
    status = decision.status if decision else Status.FAILED
    return SubtaskEnd(
        task_id=worker.task.id, agent_id=agent_id, status=_ANSWERS[status], summary=result["summary"],
        summary_cut=result.get("summaryCut"),
        failure_reason=None if status is Status.COMPLETED else subtask_reason(decision),
        final_message=result["text"] or None, cut=cut_of(result),
    )  # fmt: skip


def subtask_reason(decision: Decision | None) -> str:
    """Return why a sub-task did not succeed: the reason with its details, or who cancelled it."""
    if decision is None:
        return ""
    if decision.status is Status.CANCELLED:
        return f"cancelled by {decision.by}"
    reason = reason_in_words(decision.reason, decision.exit_code, decision.signal)
    return ": ".join(part for part in (reason, decision.message) if part)
