"""A probe of a node: started by the runner as a worker would be, answered, and removed again whatever happens."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from agentctl.adapters import processes
from agentctl.adapters.clock import monotonic
from agentctl.adapters.files import make_folders, read_known, to_json, write_whole
from agentctl.adapters.locks import hold_alive, is_alive_held
from agentctl.adapters.paths import FilePath
from agentctl.adapters.tails import read_tail
from agentctl.adapters.taskdir import ProbeDir
from agentctl.domain.placement import Placement
from agentctl.domain.text.numbers import finite
from agentctl.domain.worker.sightings import EngineState, Sighting
from agentctl.errors import AgentctlError
from agentctl.lean import NamedTuple
from agentctl.runners.program import PROBE, argv_of
from agentctl.runners.runner import EngineDown, LaunchOrder, Runner

_LOOK_S, _LONGEST_POLL_S = 0.05, 2.0
#: How often an engine has to say that the probe is over, before it is believed that nothing more is heard of it.
_MOST_GONE = 3
#: How long the probe may take to leave by itself, and how long it may wait for an answer that comes late.
_LEAVE_S, _SPARE_S = 5.0, 30.0
_TAIL = 300
_OVER = (EngineState.ENDED, EngineState.DROPPED, EngineState.ABSENT)


class ProbeFailed(AgentctlError):
    """The probe was not started, or has not told what it found."""


class ProbeAnswer(NamedTuple):
    """What was heard of a probe."""

    #: How long the engine took until it was heard.
    started_s: float
    begun: Mapping[str, Any]
    #: How long files took to the node and back.
    back_s: float
    #: By how much the node's clock is ahead, and by how much that may be wrong.
    skew_s: float
    inexact_s: float
    found: Mapping[str, Any]

    @property
    def node(self) -> str:
        """Where it ran."""
        return str(self.begun.get("node") or "the node")


class NodeProbe:
    """One probe; `with` makes its folder, and leaves neither that nor a launch behind."""

    def __init__(self, runner: Runner, placement: Placement, base: FilePath, limit_s: float) -> None:
        self.runner, self.placement, self.limit_s = runner, placement, limit_s
        self.dir = ProbeDir(base / f"{ProbeDir.PREFIX}{os.urandom(8).hex()}")
        self._until = monotonic() + limit_s
        self._pause_s = min(_LONGEST_POLL_S, placement.poll_s)
        self._last = Sighting(EngineState.UNKNOWN)
        self._is_submitted = False
        self._asker: int | None = None
        self._handler: Any = None

    def __enter__(self) -> NodeProbe:
        self._handler = signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
        make_folders(self.dir.path)
        self._asker = hold_alive(self.dir.asker)
        return self

    def __exit__(self, *_: object) -> None:
        try:
            if self._is_submitted:
                cancel_probe(self.runner, self.dir)
        finally:
            if self._asker is not None:
                os.close(self._asker)
            remove_probe(self.dir)
            signal.signal(signal.SIGTERM, self._handler)

    def ask(self, order: Mapping[str, Any], tell: Callable[[str], object]) -> ProbeAnswer:
        """Have the probe started, and return what it found.

        Args:
            order: What it is to look at.
            tell: Called with how far it has come.

        Raises:
            ProbeFailed: Nothing is known of the nodes; the message says how far it came.
        """
        limit = {"limitSeconds": self.limit_s + _SPARE_S, "machine": processes.machine_id()}
        write_whole(self.dir.order, to_json({**order, **limit}))
        began = monotonic()
        job = self._submitted()
        tell(f"{self.runner.name} has the probe{f' (job {job})' if job else ''}: waiting for a node to start it")
        begun = self._heard(self.dir.begun, self._never_began)
        started_s = monotonic() - began
        nonce, said_at, said = os.urandom(8).hex(), monotonic(), time.time()
        write_whole(self.dir.answer, to_json({"to": begun["nonce"], "nonce": nonce}), durable=False)
        seen = self._heard(self.dir.seen, lambda: "it does not see what is written here", {"to": nonce})
        back_s, half_s = monotonic() - said_at, (time.time() - said) / 2
        found = self._heard(self.dir.found, self._stuck)
        there = finite(seen.get("time"))
        skew_s = 0.0 if there is None else there - said - half_s
        return ProbeAnswer(started_s, begun, back_s, skew_s, abs(half_s), found)

    def _submitted(self) -> str:
        launch = LaunchOrder(
            id=self.dir.id, argv=argv_of(PROBE, str(self.dir.path), self.placement.python),
            log=str(self.dir.engine_log), what="agentctl doctor", placement=self.placement,
        )  # fmt: skip
        self._is_submitted = True  # From now on nobody knows: a command that was cut short may have come through.
        try:
            return self.runner.launch(launch)
        except EngineDown as error:
            raise ProbeFailed(
                f"{self.runner.name} does not answer: {error.message}", hint="try again once it does"
            ) from error

    def _heard(
        self, path: FilePath, problem: Callable[[], str], wanted: Mapping[str, object] | None = None
    ) -> dict[str, Any]:
        """Return what the node has written, once it is there."""
        asked_at, gone = -self._pause_s, 0
        while True:
            with contextlib.suppress(OSError):
                os.listdir(self.dir.path)  # Over NFS, names that were looked up before are looked up again after it.
            value = read_known(path)
            if value and all(value.get(key) == item for key, item in (wanted or {}).items()):
                return value
            now = monotonic()
            if gone >= _MOST_GONE or now >= self._until:
                raise self._failure(problem(), is_over=gone >= _MOST_GONE)
            if now - asked_at >= self._pause_s:
                asked_at = now
                gone += self._is_over()
            time.sleep(_LOOK_S)

    def _is_over(self) -> bool:
        """Ask the engine; return whether it says that the probe is over."""
        with contextlib.suppress(EngineDown):
            self._last = self.runner.poll().get(self.dir.id, Sighting(EngineState.ABSENT, "no such job"))
        return self._last.state in _OVER

    def _failure(self, problem: str, *, is_over: bool) -> ProbeFailed:
        name, last = self.runner.name, self._last
        words = f"{last.words or last.state}{f' ({last.reason})' if last.reason not in ('', 'None') else ''}"
        log = _tail_of(self.dir.engine_log)
        printed = f"; it printed: {log}" if log else ""
        if is_over:
            return ProbeFailed(f"the probe has ended ({name}: {words}) without a result: {problem}{printed}", _ENDED)
        if last.state is EngineState.QUEUED:
            return ProbeFailed(f"{name} has not started the probe within {self.limit_s:g} s: {words}", _LONGER)
        on = f" on {last.node}" if last.node else ""
        return ProbeFailed(f"{self.limit_s:g} s were over ({name}: {words}{on}): {problem}{printed}", _UNSEEN)

    def _never_began(self) -> str:
        return f"nothing that a node writes is seen in {self.dir.path.parent}"

    def _stuck(self) -> str:
        step = read_known(self.dir.step).get("step")
        return f"the node has not come back from: {step}" if step else "the node does not tell what it found"


_LONGER = "--timeout-seconds waits longer, --partition names another part of the cluster"
_UNSEEN = "do the nodes see that folder? runners.RUNNER.folder in config.yaml names one that they see"
_ENDED = (
    "are agentctl and its interpreter at the same path on the nodes, and do these see that folder?"
    " runners.RUNNER.python and .folder in config.yaml name others"
)


def leftovers(base: FilePath) -> Iterator[ProbeDir]:
    """Yield the probes of this machine in a folder that nobody waits for any more: their `doctor` was killed."""
    with contextlib.suppress(OSError):
        for name in sorted(os.listdir(base)):
            probe = ProbeDir(base / name)
            is_ours = name.startswith(ProbeDir.PREFIX) and not os.path.islink(probe.path)
            if is_ours and not is_alive_held(probe.asker):
                machine = read_known(probe.order).get("machine")
                if machine in (None, processes.machine_id()):
                    yield probe


def cancel_probe(runner: Runner, probe: ProbeDir) -> None:
    """Have the launch of a probe ended, unless it leaves by itself; if the engine is down, it does so later."""
    with contextlib.suppress(EngineDown):
        until, is_killed = monotonic() + _LEAVE_S, False
        while runner.poll().get(probe.id, Sighting(EngineState.ABSENT)).state not in _OVER and monotonic() < until:
            if not is_killed and not probe.found.exists():
                runner.kill(probe.id)
                is_killed = True
            time.sleep(_LOOK_S)
        runner.kill(probe.id)
        runner.reap(probe.id)


def remove_probe(probe: ProbeDir) -> None:
    """Remove the folder of a probe; over NFS, a file that is still open keeps a name for a moment."""
    until = monotonic() + _LEAVE_S
    while os.path.lexists(probe.path):
        shutil.rmtree(probe.path, ignore_errors=True)
        if monotonic() >= until:
            return
        if os.path.lexists(probe.path):
            time.sleep(_LOOK_S)


def _tail_of(log: FilePath) -> str:
    with contextlib.suppress(AgentctlError, OSError):
        return " ".join(read_tail(log, _TAIL)[0].decode(errors="replace").split())
    return ""
