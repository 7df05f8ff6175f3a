"""The answer of a sub-task: Success, Error or Cancel, with the last words of its agent, limited in size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentctl.adapters.taskdir import WorkerDir
from agentctl.domain.states import Status
from agentctl.domain.worker.ends import reason_in_words, said_at_end
from agentctl.errors import AgentctlError
from agentctl.operations.show.results import cut_of, text_fields
from agentctl.supervision.worker.endings import Decision, decision_of

if TYPE_CHECKING:
    from agentctl.domain.documents.workers.starts import RunningSubtask, SubtaskAnswer
    from agentctl.domain.documents.workers.worker import CutText, WhereWhole

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
    #: If the summary was cut.
    summary_cut: CutText | None = None
    failure_reason: str | None = None
    final_message: str | None = None
    #: If the final message was cut: where the full text is.
    cut: WhereWhole | None = None
    #: Why the call returned before the end: `paused`, `cancelled` or `timeout`.
    stopped: str | None = None

    def to_json(self) -> SubtaskAnswer | RunningSubtask:
        """Return the answer with the keys of the public contract."""
        if self.status is None:
            return {
                "taskId": self.task_id, "agentId": self.agent_id, "status": STILL_RUNNING, "stopped": self.stopped,
            }  # fmt: skip
        answer: SubtaskAnswer = {
            "taskId": self.task_id, "agentId": self.agent_id, "subTaskStatus": self.status,
        }  # fmt: skip
        if self.summary is not None:
            answer["summary"] = self.summary
        if self.summary_cut is not None:
            answer["summaryCut"] = self.summary_cut
        if self.failure_reason is not None:
            answer["failureReason"] = self.failure_reason
        if self.final_message is not None:
            answer["finalAssistantMessage"] = self.final_message
        return answer if self.cut is None else {**answer, **self.cut}


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
    return ": ".join(part for part in (reason, *said_at_end(decision.message, decision.last_line)) if part)
