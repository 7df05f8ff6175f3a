"""How an agent ended: its driver has seen more than an exit code tells."""

from __future__ import annotations

from agentctl.adapters.files import read_quietly
from agentctl.adapters.taskdir import AgentDir
from agentctl.domain.states import Reason, Status
from agentctl.shim.watching import Outcome

Verdict = tuple[Status, Reason | None, str | None]


def verdict_of(agent: AgentDir, outcome: Outcome) -> Verdict:
    """Return (status, reason, message) of an attempt of an agent.

    What agentctl stopped (a cancel, a limit) stays what it is. Otherwise the driver's word counts, if this attempt's
    driver gave one; a driver that died without a word completed nothing.
    """
    if outcome.status is Status.CANCELLED or outcome.reason not in (None, Reason.EXIT_CODE, Reason.SIGNAL):
        return outcome.status, outcome.reason, outcome.message
    told = read_quietly(agent.outcome)
    if told.get("pid") != read_quietly(agent.worker).get("pid"):
        reason = outcome.reason or Reason.TRUNCATED
        return Status.FAILED, reason, outcome.message or "its driver ended without telling how the agent did"
    if told.get("status") == Status.COMPLETED:
        return Status.COMPLETED, None, None
    return Status.FAILED, _reason(told.get("reason")), told.get("message")


def _reason(name: object) -> Reason:
    try:
        return Reason(str(name))
    except ValueError:
        return Reason.EXIT_CODE
