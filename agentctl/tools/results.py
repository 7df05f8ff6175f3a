"""A worker's result and its open question, as the answers of tools show them to a model."""

from __future__ import annotations

from typing import Any

from agentctl.adapters.taskdir import WorkerDir
from agentctl.domain.question import Question
from agentctl.domain.states import Status
from agentctl.operations.delegate.delegating import error_of
from agentctl.operations.show.one_worker import worktree_of
from agentctl.operations.show.results import cut_of, text_fields
from agentctl.operations.worktree.changes import kept_files
from agentctl.supervision.worker.endings import decision_of
from agentctl.supervision.worker.inboxes import is_idle
from agentctl.supervision.worker.questions import open_questions, read_question
from agentctl.tools.definition import RESULT_BYTES
from agentctl.tools.descriptions import short

#: The most bytes of all results in one answer, and the least that each of them gets.
_TOGETHER, _LEAST = 40_000, 500
#: What of a question is not for a model.
_NOT_TOLD = ("default", "askedAt", "deadlineSeconds", "askedBy")


def share_of(count: int) -> int:
    """Return how many bytes each of several results may take."""
    return max(_LEAST, min(RESULT_BYTES, _TOGETHER // max(1, count)))


def result_of(worker: WorkerDir, status: str, max_bytes: int = RESULT_BYTES) -> dict[str, Any]:
    """Return a worker's result for its parent: the last words, how it ended, and where the full text is."""
    found = text_fields(worker, max_bytes)
    found["files"] = [*found["files"], *kept_files(worktree_of(worker))]
    decision = decision_of(worker)
    result: dict[str, Any] = {
        "output": found["text"],
        # A kept agent that has answered has done its work.
        "success": status == Status.COMPLETED or (status == Status.BLOCKED and is_idle(worker)),
        "turnsUsed": found.get("turnsUsed", 0),
    }
    if decision is not None and decision.reason:
        result |= {"reason": decision.reason, "error": short(error_of(worker, decision))}
    result |= cut_of(found)
    if found["summary"]:
        result |= {key: found[key] for key in ("summary", "summaryCut") if key in found}
    if found["files"]:
        result["files"] = found["files"]
    return result


def question_of(worker: WorkerDir) -> Question | None:
    """Return the open question of a worker; None if it has none."""
    found = (read_question(worker, name) for name in open_questions(worker))
    return next((question for question in found if question is not None), None)


def question_for_model(question: Question) -> dict[str, Any]:
    """Return a question as a model reads it."""
    return {key: value for key, value in question.to_json().items() if value and key not in _NOT_TOLD}
