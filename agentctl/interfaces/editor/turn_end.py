"""What the end of a turn means for the client: a reason to stop, or an error that says why and what to do next.

Only a natural end is `end_turn`. The protocol has no reason for a failure: it is an error of the request.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agentctl.adapters.files import read_known
from agentctl.adapters.taskdir import WorkerDir
from agentctl.domain.states import Reason, Status
from agentctl.domain.text.plaintext import beginning, plain, whole
from agentctl.domain.tree.budget import Spent, total
from agentctl.errors import AgentctlError, Refused
from agentctl.interfaces.editor.next_steps import step_in_words, why_command
from agentctl.operations.delegate.delegating import error_of
from agentctl.operations.show.current_state import read_task
from agentctl.supervision.account.ledger import read_spent
from agentctl.supervision.worker.endings import decision_of

END_TURN, CANCELLED = "end_turn", "cancelled"
_STOPS: dict[str, str] = {
    Reason.REFUSED: "refusal",
    Reason.MAX_TURNS: "max_turn_requests",
    Reason.CONTEXT: "max_tokens",
}
_LONGEST, _MOST_SURVIVORS = 2000, 10


class TurnFailed(Refused):
    """A turn ended in another way than by an answer."""

    def __init__(self, worker: WorkerDir, reason: str, message: str, hint: str) -> None:
        super().__init__(beginning(whole(message), _LONGEST), hint=hint)
        reason, step = (whole(plain(one, keep="\n\t")) for one in (reason, hint))
        self.data = {"reason": reason, "task": worker.task.id, "instance": worker.instance, "next": step}


def stop_of_end(worker: WorkerDir) -> str:
    """Return the stop reason of a worker that has ended.

    Raises:
        TurnFailed: It has failed.
    """
    decision = decision_of(worker)
    if decision is not None and decision.status is Status.COMPLETED:
        return END_TURN
    if decision is not None and decision.status is Status.CANCELLED:
        return CANCELLED
    reason = (decision.reason if decision is not None else None) or "failed"
    if reason in _STOPS:
        return _STOPS[reason]
    said = error_of(worker, decision) if decision is not None else "how it ended cannot be read"
    raise TurnFailed(worker, reason, f"{worker.instance} has failed: {said}", step_in_words(worker, reason, said))


def failed_cancel(worker: WorkerDir) -> TurnFailed:
    """Return the failure of a cancel that some processes have survived; they are listed."""
    view = read_task(worker.task)[0].workers.get(worker.instance)
    survivors = view.survivors if view is not None else ()
    named = [f"pid {one.get('pid')}: {plain(one.get('command') or '')}"[:200] for one in survivors[:_MOST_SURVIVORS]]
    more = [f"and {len(survivors) - len(named)} more"] if len(survivors) > len(named) else []
    message = f"{worker.instance} is not cancelled: these processes cannot be killed: {'; '.join([*named, *more])}"
    hint = f"agentctl goes on watching them: {why_command(worker)}"
    return TurnFailed(worker, "survivors", message, hint)


def stop_of_idle(worker: WorkerDir) -> str:
    """Return the stop reason of the last turn of an agent that was kept.

    Raises:
        TurnFailed: The turn has failed, though the program goes on.
    """
    result = read_known(worker.result)
    reason, message = result.get("reason"), result.get("message")
    if not isinstance(reason, str) or not reason:
        return END_TURN
    if reason == Reason.TRUNCATED:
        return "max_tokens"  # The program itself says so: had it died, the worker would have ended.
    if reason in _STOPS:
        return _STOPS[reason]
    said = f"{reason}: {message}" if isinstance(message, str) and message else reason
    raise TurnFailed(worker, reason, f"{worker.instance} has failed: {said}", step_in_words(worker, reason, said))


def usage_of(spent: Spent) -> dict[str, Any] | None:
    """Return tokens in the form of the protocol; None if none were reported."""
    if not spent.tokens + spent.cached:
        return None
    return {
        "totalTokens": spent.tokens + spent.cached,
        "inputTokens": spent.input,
        "outputTokens": spent.output,
        "cachedReadTokens": spent.cached,
    }


def response_of(runs: Sequence[WorkerDir], stop: str) -> dict[str, Any]:
    """Return the response to a prompt, with what all runs of the session have used up: its sums never go back.

    Args:
        runs: The runs of the session's agent; the last one has the prompt.
    """
    worker, spent = runs[-1], total(map(read_spent, runs))
    about: dict[str, Any] = {"task": worker.task.id, "instance": worker.instance}
    usage = usage_of(spent)
    return {
        "stopReason": stop,
        "_meta": {"agentctl": about | ({"costUsd": spent.cost_usd} if spent.cost_usd is not None else {})},
        **({"usage": usage} if usage is not None else {}),
    }


def error_for_client(error: AgentctlError) -> str:
    """Return an error with the next step, as a client shows it."""
    said = f"{error.message} ({error.hint})" if error.hint else error.message
    return beginning(whole(plain(said, keep="\n\t")), 2 * _LONGEST)
