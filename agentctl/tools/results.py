"""What a model is told of a worker: its status, and its result within bounds."""

from __future__ import annotations

from typing import Any

from agentctl.adapters.taskdir import WorkerDir
from agentctl.domain.plaintext import whole_json
from agentctl.domain.states import Status
from agentctl.operations.delegate.delegating import error_of
from agentctl.operations.show.results import WHOLE, read_result, text_of
from agentctl.supervision.worker.endings import decision_of
from agentctl.supervision.worker.inboxes import is_idle
from agentctl.supervision.worker.questions import open_questions, read_question
from agentctl.tools.definition import RESULT_BYTES
from agentctl.tools.words import short

#: All results of one answer together hold at most so many bytes, and none is cut below the least.
_TOGETHER, _LEAST = 40_000, 500
_ASKED = ("kind", "question", "options", "tool", "arguments", "isCut", "means", "askedByType", "multiple", "other")


def share_of(count: int) -> int:
    """Return how many bytes each of several results may take."""
    return max(_LEAST, min(RESULT_BYTES, _TOGETHER // max(1, count)))


def result_of(worker: WorkerDir, status: str, max_bytes: int = RESULT_BYTES) -> dict[str, Any]:
    """Return a worker's result as a parent gets it: the last words, how it ended, and where the whole is."""
    # What came with a worktree takes a look at more; for all others the worker's own files tell it all.
    has_more = worker.worktree.exists()
    found = read_result(worker.task, worker.instance, max_bytes=max_bytes) if has_more else text_of(worker, max_bytes)
    decision = decision_of(worker)
    reason = decision.get("reason")
    told: dict[str, Any] = {
        "output": found["text"],
        # One that was kept and has answered has done what it was asked to.
        "success": status == Status.COMPLETED or (status == Status.BLOCKED and is_idle(worker)),
        "turnsUsed": found.get("turnsUsed", 0),
    }
    if reason:
        told |= {"reason": reason, "error": short(error_of(worker, decision))}
    if found["truncated"]:
        told |= {"truncated": True} | {key: found[key] for key in WHOLE if found.get(key)}
    if found["summary"]:
        told |= {key: found[key] for key in ("summary", "summaryCut") if key in found}
    if found["files"]:
        told["files"] = found["files"]
    return told


def question_of(worker: WorkerDir) -> dict[str, Any] | None:
    """Return the question that a worker waits with; None where it has none."""
    for name in open_questions(worker):
        body = read_question(worker, name)
        if body:
            body = whole_json(body)
            told = {key: body[key] for key in _ASKED if body.get(key)}
            return {"id": name, **told} | ({"idle": True} if body.get("idle") else {})
    return None
