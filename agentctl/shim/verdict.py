"""How an agent ended: its driver has seen more than an exit code tells."""

from __future__ import annotations

from agentctl.adapters.taskdir import AgentDir
from agentctl.domain.states import Reason, Status
from agentctl.shim.outcome import Outcome
from agentctl.supervision.toldends import ToldEnd, told_end


def verdict_of(agent: AgentDir, outcome: Outcome) -> ToldEnd:
    """Return how an attempt of an agent ended.

    What agentctl stopped (a cancel, a limit) stays what it is. Otherwise the driver's word counts, if this attempt's
    driver gave one; a driver that died without a word completed nothing.
    """
    if outcome.status is Status.CANCELLED or outcome.reason not in (None, Reason.EXIT_CODE, Reason.SIGNAL):
        return ToldEnd(outcome.status, outcome.reason, outcome.message)
    message = outcome.message or "its driver ended without telling how the agent did"
    return told_end(agent) or ToldEnd(Status.FAILED, outcome.reason or Reason.TRUNCATED, message)
