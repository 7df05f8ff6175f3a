"""A worker's result and its question, as a model reads them."""

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
from agentctl.tools.descriptions import short

#: All results of one answer together hold at most so many bytes, and none is cut below the least.
_TOGETHER, _LEAST = 40_000, 500
_ASKED = ("kind", "question", "options", "tool", "arguments", "isCut", "means", "askedByType", "multiple", "other")


def share_of(count: int) -> int:
    """Return how many bytes each of several results may take."""
    return max(_LEAST, min(RESULT_BYTES, _TOGETHER // max(1, count)))


def result_of(worker: WorkerDir, status: str, max_bytes: int = RESULT_BYTES) -> dict[str, Any]:
    """Return a worker's result for its parent: the last words, how it ended, and where to find the whole."""
    # What came with a worktree takes a look at more; for all others the worker's own files tell it all.
    has_more = worker.worktree.exists()
    found = read_result(worker.task, worker.instance, max_bytes=max_bytes) if has_more else text_of(worker, max_bytes)
    decision = decision_of(worker)
    result: dict[str, Any] = {
        "output": found["text"],
        # One that was kept and has answered has done what it was asked to.
        "success": status == Status.COMPLETED or (status == Status.BLOCKED and is_idle(worker)),
        "turnsUsed": found.get("turnsUsed", 0),
    }
    if decision is not None and decision.reason:
        result |= {"reason": decision.reason, "error": short(error_of(worker, decision))}
    if found["truncated"]:
        result |= {"truncated": True} | {key: found[key] for key in WHOLE if found.get(key)}
    if found["summary"]:
        result |= {key: found[key] for key in ("summary", "summaryCut") if key in found}
    if found["files"]:
        result["files"] = found["files"]
    return result


def question_of(worker: WorkerDir) -> dict[str, Any] | None:
    """Return the open question of a worker; None if it has none."""
    for name in open_questions(worker):
        body = read_question(worker, name)
        if body:
            body = whole_json(body)
            question = {key: body[key] for key in _ASKED if body.get(key)}
            return {"id": name, **question} | ({"idle": True} if body.get("idle") else {})
    return None
