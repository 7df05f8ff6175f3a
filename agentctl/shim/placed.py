"""An attempt of a worker that runs on a node: here, a stand-in follows it, and is replaced if it is killed.

What is true of the worker is decided on its node, and the stand-in's verdict tells it. So nothing is escalated here: a
cancel interrupts the stand-in, which passes it on; only the shim on the node can prove that the worker's processes are
gone.
"""

from __future__ import annotations

import math
import os
import sys
from functools import partial

import agentctl
from agentctl.adapters.paths import FilePath
from agentctl.domain.placement import OWN_RUNNERS
from agentctl.domain.states import Reason, Status
from agentctl.lean import TYPE_CHECKING
from agentctl.supervision.worker import pause_request
from agentctl.supervision.worker.endings import Decision
from agentctl.supervision.worker.placed import has_begun, is_away, verdict_of
from agentctl.supervision.worker.spec import WorkerSpec

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol, TypeVar

    from agentctl.adapters.taskdir import WorkerDir

    T = TypeVar("T")

    class Guardian(Protocol):
        """What is needed here of a worker's guard."""

        worker: WorkerDir

        def known(self, look: Callable[[], T]) -> T:
            """Return what a look at the worker's files says: one that fails is made again."""

        def note(self, problem: object) -> None:
            """Write down a problem."""


_STAND_IN = FilePath(os.path.realpath(agentctl.__file__)).parent / "worker_programs/on_node/__main__.py"
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 30.0
#: How often a stand-in is started that does not even get as far as a launch.
_MOST_USELESS = 3
#: Why a worker is ended from here, whatever its node says then.
_OURS = (Reason.BUDGET, Reason.OUTPUT_LIMIT)


def stand_in_of(spec: WorkerSpec) -> WorkerSpec:
    """Return what is started here for a worker on a node. Its limits count there, where it is at work."""
    runner = (spec.placement or {}).get("runner")
    lean = ["-I", "-S"] if runner in OWN_RUNNERS else ["-I"]  # A runner of another package is found by its entry point.
    return spec._replace(
        argv=[sys.executable, *lean, str(_STAND_IN)], cwd="/", umask=0o077, grace_s=math.inf, timeout_s=math.inf,
        stall_s=math.inf, keep_children=False, order=None, parent=None,
    )  # fmt: skip


def followed(
    guard: Guardian,
    spec: WorkerSpec,
    number: int,
    born: Callable[[WorkerSpec], tuple[Decision, bool]],
    rest: Callable[[float], object],
) -> Decision:
    """Follow an attempt on a node to its end.

    Args:
        number: That of the attempt.
        born: Starts what stands in for the worker here, and returns how that has ended.
        rest: Sleeps for so many seconds, or until woken.
    """
    worker, pause_s, useless = guard.worker, _FIRST_PAUSE_S, 0
    while True:
        ending, _ = born(stand_in_of(spec))
        verdict = guard.known(partial(verdict_of, worker, number))
        if verdict is not None:
            return _joined(verdict, ending)
        useless = 0 if guard.known(partial(is_away, worker)) else useless + 1
        if useless >= _MOST_USELESS or not guard.known(worker.task.path.exists):
            message = ending.message or f"its stand-in here ends at once: see {worker.stderr}"
            return ending._replace(status=Status.FAILED, reason=Reason.NOT_STARTED, message=message)
        guard.note(f"{worker.instance}: its stand-in ended without a verdict ({ending.signal or ending.exit_code})")
        rest(pause_s)
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)


class NodeClock:
    """Whether the clock of a worker on a node stands still: while it is paused, and until a node has begun it.

    Args:
        note_begun: Called once a node has begun it.
    """

    def __init__(self, worker: WorkerDir, note_begun: Callable[[], None]) -> None:
        self._worker, self._note_begun = worker, note_begun
        self._has_begun, self._stands = False, True

    def stood(self) -> bool:
        """Return whether it stood still since the last look, as that look has found."""
        stands = pause_request.is_wanted(self._worker) or not self._is_begun()
        stood, self._stands = self._stands, stands
        return stood

    def _is_begun(self) -> bool:
        if not self._has_begun and has_begun(self._worker):
            self._has_begun = True
            self._note_begun()
        return self._has_begun


def _joined(verdict: Decision, here: Decision) -> Decision:
    """Return the end that its node has proven, for a reason of ours if it was ended from here."""
    ending = verdict._replace(
        attempt=here.attempt, worked=None, started_at=verdict.started_at or here.started_at, ended_at=None
    )
    if verdict.status is not Status.COMPLETED and here.status is Status.CANCELLED:
        return ending._replace(status=here.status, reason=None, by=here.by)  # Its own exit may have been faster.
    if verdict.status is Status.CANCELLED and here.reason in _OURS:
        return ending._replace(status=here.status, reason=here.reason, message=here.message, by=here.by)
    return ending
