"""The post of a launch, which an engine starts on a node: it claims the launch, has the worker guarded, tells its end.

An engine may start a launch twice; the claim, a file that is made once, lets only the first one go on. Signals of the
engine (a time limit, a cancel there) lead to the same escalation as a cancel at the head.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Mapping

from agentctl.adapters import processes
from agentctl.adapters.clock import monotonic, now_iso
from agentctl.adapters.files import (
    create_whole,
    make_folder,
    make_folders,
    read_json,
    read_known,
    set_aside,
    to_json,
    write_all,
)
from agentctl.adapters.locks import is_alive_held
from agentctl.adapters.opening import read_bytes
from agentctl.adapters.taskdir import LaunchDir, WorkerDir
from agentctl.domain.states import Reason, Status
from agentctl.errors import AgentctlError, Damaged
from agentctl.lean import Any
from agentctl.operations.start.on_node import begin_on_node, make_task_on_node
from agentctl.supervision.life.judging import Condition, judge, settle
from agentctl.supervision.stop.requesting import Request, request_end
from agentctl.supervision.worker import environment
from agentctl.supervision.worker.endings import Decision, decision_of
from agentctl.supervision.worker.spec import read_spec
from agentctl.worker_programs.on_node.calls.called_files import LAUNCH_VARIABLE, OF_JOBS
from agentctl.worker_programs.on_node.exchange.file_mirror import make_holes
from agentctl.worker_programs.on_node.exchange.from_head import Deliveries
from agentctl.worker_programs.on_node.exchange.heartbeat import Heart
from agentctl.worker_programs.on_node.exchange.launch_record import BY_TIME, KEY_ENTRY, claimed, restore_folders
from agentctl.worker_programs.on_node.exchange.seal import sealed
from agentctl.worker_programs.on_node.exchange.written_state import WRITTEN, ChangesOnNode, written_by

#: What sysexits.h calls a temporary failure: somebody else carries this launch out.
REFUSED = 75
#: How often it looks: usually, after something has changed, and at the end.
_LOOK_S, _LIVELY_LOOK_S, _END_LOOK_S = 0.5, 0.1, 0.05
_LIVELY_S, _SHIM_LIMIT_S = 2.0, 10.0
#: Where the person's own files are: an engine may start a program without any of these.
_OF_THE_PERSON = (b"HOME", b"XDG_CONFIG_HOME", b"XDG_STATE_HOME", b"XDG_RUNTIME_DIR", b"TMPDIR", b"PATH")
#: An engine that ends a job by itself kills what is left after half a minute or less.
_ENGINES_GRACE_S = 5.0
_ENGINE = "the engine"


def main(folder: str) -> int:
    """Carry a launch out; return 0 if its worker completed."""
    os.umask(0o077)
    signals: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # Before the claim: whoever has it acts on them.
        signal.signal(number, lambda got, _frame: signals.append(got))
    launch = LaunchDir(folder)
    order = read_json(launch.order)
    if order is None:
        raise Damaged(f"{launch.order} is missing: is its folder on a file system that this node sees?")
    while order.get("isHeld") and not launch.inbound.go.exists() and not launch.claim.exists():
        if signals:
            return REFUSED
        os.listdir(launch.to_node)  # Over NFS: a name that was missing at the last look is looked up again.
        time.sleep(_LOOK_S)
    me = processes.identify(os.getpid())
    who = {"node": _node(), "job": os.environ.get("SLURM_JOB_ID"), "process": me.to_json() if me else None}
    if not claimed(launch, who):
        write_all(2, f"{now_iso()} {launch.id} is carried out elsewhere already\n".encode())
        return REFUSED
    return _NodePost(launch, order, signals).run()


def _node() -> str:
    return os.environ.get("SLURMD_NODENAME") or os.uname().nodename


class _NodePost:
    def __init__(self, launch: LaunchDir, order: Mapping[str, Any], signals: list[int]) -> None:
        self.launch, self.order, self._signals = launch, order, signals
        self.key, self.environ = _taken_environment(launch)
        self.heart = Heart(launch)
        #: Its shim was killed: how its program exited is not known.
        self._was_unguarded = False
        self._is_ended_by_engine = False

    def run(self) -> int:
        self.heart.tell()
        os.environb.update({name: self.environ[name] for name in _OF_THE_PERSON if name in self.environ})
        try:
            worker = self._begun()
        except (AgentctlError, OSError) as error:
            return self._say(self._seen(Decision(Status.FAILED, Reason.NOT_STARTED, message=str(error))))
        self._guard(worker)
        decision = decision_of(worker)
        if decision is None or self._was_unguarded:
            message = "its shim on the node was killed; what was left of it there was ended"
            decision = (decision or Decision(Status.FAILED))._replace(
                status=Status.FAILED, reason=Reason.LOST, message=message
            )
        return self._say(self._seen(decision), worker)

    def _seen(self, decision: Decision) -> Decision:
        """Return a failure as a cancel by the engine if its SIGTERM has come.

        That signal reaches all processes of a job: the worker, or its shim while that is being started, may have died
        of it before this process could ask for the end.
        """
        is_ended_by_engine = self._is_ended_by_engine or signal.SIGTERM in self._signals
        if decision.status is Status.FAILED and is_ended_by_engine:
            return decision._replace(status=Status.CANCELLED, reason=None, by=_ENGINE)
        return decision

    def _begun(self) -> WorkerDir:
        """Make the task of the launch, and start its worker there."""
        task = make_task_on_node(self.launch, str(self.order["taskId"]))
        worker = task.worker(str(self.order["instance"]))
        make_folder(worker.path)
        make_holes(worker, dict(self.order.get("sizes") or {}))
        self.deliveries = Deliveries(worker, self.launch, self.key)
        self.deliveries.deliver_messages()
        cancel = read_bytes(self.launch.inbound.cancel) if self.launch.inbound.cancel.exists() else None
        environ = {**self.environ, **_of_the_job(), LAUNCH_VARIABLE.encode(): os.fsencode(self.launch.path)}
        problem = begin_on_node(worker, self._spec(), environ, cancel)
        if problem and not worker.has_ended:
            raise AgentctlError(problem)
        return worker

    def _spec(self) -> Mapping[str, Any]:
        spec = self.order.get("spec")
        if not isinstance(spec, Mapping):
            raise Damaged(f"{self.launch.order} has no order for a worker")
        return spec

    def _guard(self, worker: WorkerDir) -> None:
        """Deliver what the head says, and give signs of life, until the worker has ended and its shim has left."""
        changes = ChangesOnNode(worker, self.launch)
        left_since: float | None = None
        changed = monotonic()
        while True:
            self.heart.beat()
            for step in (self.deliveries.step, lambda: self._pass_signals(worker)):
                with contextlib.suppress(AgentctlError, OSError):  # The next look tries again.
                    step()
            if changes.have_come():
                changed = monotonic()
                self.heart.tell()
            is_guarded = is_alive_held(worker.shim)
            if worker.has_ended and (not is_guarded or (left_since and monotonic() - left_since > _SHIM_LIMIT_S)):
                break
            if worker.has_ended:
                left_since = left_since or monotonic()
            elif not is_guarded:
                self._replace_guard(worker)
            is_lively = monotonic() < changed + _LIVELY_S
            time.sleep(_END_LOOK_S if worker.has_ended else _LIVELY_LOOK_S if is_lively else _LOOK_S)
        self.deliveries.close()

    def _replace_guard(self, worker: WorkerDir) -> None:
        """Its shim was killed: nobody here knows the worker's exit any more, so what is left of it is ended."""
        with contextlib.suppress(AgentctlError, OSError):
            if not worker.path.is_dir():  # It has removed its own files; its end needs a place.
                restore_folders(self.launch)
                make_folders(worker.path)  # This task on the node is the launch's own, and nobody's beside it.
            condition = judge(worker)
            self._was_unguarded = condition in (Condition.UNSUPERVISED, Condition.LOST)
            if condition is Condition.UNSUPERVISED:
                request_end(worker, Request("agentctl", 0.0))
            elif condition is Condition.LOST:
                settle(worker, condition)

    def _pass_signals(self, worker: WorkerDir) -> None:
        """Take a signal of the engine for a cancel."""
        while self._signals:
            self._pass_signal(worker, self._signals[0])
            self._signals.pop(0)

    def _pass_signal(self, worker: WorkerDir, number: int) -> None:
        if number == signal.SIGHUP:
            return
        # SIGINT comes from the head, whose request may not be seen here yet, or because the time is nearly over.
        who = ""
        with contextlib.suppress(AgentctlError):
            who = str(read_known(self.launch.inbound.cancel).get("by") or "")
        if number == signal.SIGTERM:
            self._is_ended_by_engine = True
            request_end(worker, Request(who or _ENGINE, min(read_spec(worker.spec).grace_s, _ENGINES_GRACE_S)))
        else:
            request_end(worker, Request(who or BY_TIME))

    def _say(self, decision: Decision, worker: WorkerDir | None = None) -> int:
        """Write how the worker has ended, for the head; on a full disk, until there is room."""
        written = written_by(worker) if worker is not None else {}
        value = sealed(self.key, "ended", {**decision.now().to_json(), "node": _node(), WRITTEN: written})
        while True:
            try:
                while not create_whole(self.launch.ended, to_json(value)):
                    set_aside(self.launch.ended)  # A worker has written one for itself.
                self.heart.tell()
                return 0 if decision.status is Status.COMPLETED else 1
            except (AgentctlError, OSError):
                self.heart.beat()
                time.sleep(1.0)


def _taken_environment(launch: LaunchDir) -> tuple[bytes, dict[bytes, bytes]]:
    """Return the key of the launch and the environment of its worker, and remove the file that had them."""
    data = read_bytes(launch.environment)
    os.unlink(launch.environment)
    first, _, rest = data.partition(b"\0")
    return bytes.fromhex(first.removeprefix(KEY_ENTRY).decode("ascii")), environment.unpack(rest)


def _of_the_job() -> dict[bytes, bytes]:
    """Return what the engine says to the programs of a job: where it runs, and which devices are its own."""
    prefixes = tuple(prefix.encode() for prefix in OF_JOBS if prefix != environment.OWN_PREFIX)
    return {name: value for name, value in os.environb.items() if name.startswith(prefixes)}
