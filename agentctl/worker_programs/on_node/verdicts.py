"""How a worker on a node ended, as the head tells it: from its node, or because it never began or is gone."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

from agentctl.adapters.files import read_known
from agentctl.adapters.tails import read_tail
from agentctl.adapters.taskdir import LaunchDir, WorkerDir
from agentctl.domain.placement import Placement
from agentctl.domain.states import Reason, Status
from agentctl.domain.worker.sightings import EngineState
from agentctl.errors import AgentctlError, AtTerminal
from agentctl.lean import Any
from agentctl.supervision.worker import cancel_request
from agentctl.supervision.worker.endings import Decision, decision_in, decision_of
from agentctl.worker_programs.on_node.exchange.launch_record import BY_TIME
from agentctl.worker_programs.on_node.exchange.seal import known_key, opened
from agentctl.worker_programs.on_node.exchange.written_state import WRITTEN

_MOST_OF_LOG = 300


def decided(status: Status, reason: Reason | None, message: str, by: str = "agentctl") -> Decision:
    """Return a verdict of the head: the worker has ended now."""
    return Decision(status=status, reason=reason, message=message, by=by).now()


def end_on_node(launch: LaunchDir) -> tuple[Decision, Mapping[str, Any]] | None:
    """Return the end that a node has written, and what its worker had written by then; None before there is one."""
    value, key = read_known(launch.ended), known_key(launch.id)
    decision = decision_in(value if key is None else opened(key, "ended", value) or {})
    if decision is None:
        return None
    written = value.get(WRITTEN)
    return decision, written if isinstance(written, Mapping) else {}


class Verdicts:
    """The verdicts about one launch."""

    def __init__(self, worker: WorkerDir, launch: LaunchDir, placement: Placement) -> None:
        self._worker, self._launch, self._placement = worker, launch, placement
        self._runner = placement.runner

    def cancelled_there(self, ended: Decision) -> Decision:
        """Return the verdict about a worker that was cancelled on its node, and not here: its engine did that."""
        if self._placement.time_s is not None and ended.by == BY_TIME:
            why = f"its time on the node ({self._placement.time_s} s) was over: {self._runner} ended it"
            return ended._replace(status=Status.FAILED, reason=Reason.TIMED_OUT, message=why)
        return ended._replace(by=self._runner, message=f"it was cancelled in {self._runner}, not here")

    def withdrawn(self, *, is_cancelled: bool) -> Decision:
        """Return the verdict about a launch that the head has claimed, so that no node can."""
        if is_cancelled:
            by = cancel_request.asked_by(self._worker, "agentctl")
            return decided(Status.CANCELLED, None, f"it was waiting in the queue of {self._runner}", by=by)
        return self._never_began(f"{self._runner} has not started it")

    def left_behind(self, verdict: Decision, problem: str, job: str) -> Decision:
        """Return the verdict about a launch that its engine could not be told to take out of its queue."""
        has = f"still has its job {job}" if job else "may have a job for it"  # Without its name it may have refused it.
        left = f"{self._runner} {has}, which does nothing if it is started"
        next_ = AtTerminal(f"in a terminal: agentctl doctor --runner {self._runner} --fix ends it").text
        return verdict._replace(message=f"{verdict.message}; {left}: {problem}; {next_}")

    def never_began(self, words: str, reason: str) -> Decision:
        """Return the verdict about a launch that its engine has not started, and never will, as its words say."""
        said = " ".join(filter(None, (words or EngineState.ABSENT.upper(), f"({reason})" if reason else "")))
        return self._never_began(f"{self._runner} has not started it: {said}", is_cancelled=words == "CANCELLED")

    def _never_began(self, message: str, *, is_cancelled: bool = False) -> Decision:
        log = _tail_of(self._launch)
        message = f"{message}; it printed: {log}" if log else message
        if is_cancelled:
            return decided(Status.CANCELLED, None, message, by=self._runner)
        return decided(Status.FAILED, Reason.NOT_STARTED, message)

    def lost(self, words: str) -> Decision:
        """Return the verdict about a worker whose node is gone; its shim may have written its end without its post."""
        decision = decision_of(self._launch.worker_on_node(self._worker))
        if decision is not None:
            return decision
        where = read_known(self._launch.claim).get("node") or "its node"
        said = f"{self._runner} says {words or 'that there is no such job'}, and {where} is silent"
        return decided(Status.FAILED, Reason.LOST, f"{said}; the exit was not seen")


def _tail_of(launch: LaunchDir) -> str:
    """Return the last that a launch printed before it had files of its own."""
    with contextlib.suppress(AgentctlError, OSError):
        return read_tail(launch.engine_log, _MOST_OF_LOG)[0].decode(errors="replace").strip()
    return ""
