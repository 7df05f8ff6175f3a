"""The stand-in of a worker on a node: its process at the head, which has the engine start it and follows it to the end.

Everything that it does can be done again: if it is killed, the shim starts another one, which takes up the same launch.
It ends only once it is proven how the worker has ended, and leaves that as the verdict of the launch.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
from collections.abc import Callable, Mapping

from agentctl.adapters import processes
from agentctl.adapters.clock import monotonic, since_boot
from agentctl.adapters.files import number_in, read_known, to_json, write_whole
from agentctl.adapters.opening import OddFile
from agentctl.adapters.taskdir import LaunchDir, WorkerDir
from agentctl.adapters.taskyaml.cache import root_task_of
from agentctl.domain.sightings import MOST_SUBMISSIONS, EngineState, LaunchFinding, Watched, looked
from agentctl.domain.states import Reason, Status
from agentctl.errors import AgentctlError
from agentctl.lean import Any
from agentctl.placing.board import EngineBoard
from agentctl.placing.carrying_out import CalledCommands
from agentctl.placing.engine import Engine, Said
from agentctl.placing.heartbeat import HeardFrom, pause_s
from agentctl.placing.inbound import Inbound
from agentctl.placing.launch_record import BY_TIME, claimed_by_head, is_withdrawn, placement_of, take_up
from agentctl.placing.mirroring import Mirror
from agentctl.placing.relaying import Relay, tell_placed
from agentctl.placing.sealing import forget_key, known_key, opened
from agentctl.placing.written import WRITTEN, is_all_seen
from agentctl.runners.program import POST, argv_of
from agentctl.runners.registry import load
from agentctl.runners.runner import LaunchOrder
from agentctl.shim.notes import Notes
from agentctl.supervision.dispatch.slots import place_of
from agentctl.supervision.queue.places import is_slot
from agentctl.supervision.worker import cancel_request
from agentctl.supervision.worker.control import WAKE, poke
from agentctl.supervision.worker.endings import Decision, decision_of
from agentctl.supervision.worker.engine_answers import submitted_at
from agentctl.supervision.worker.environment import AGENT_DIR

#: How often everything is looked at: while something happens here, at most while something is awaited, without a hint.
_LOOK_S, _AWAITING_LOOK_S, _UNASKED_LOOK_S = 0.1, 1.0, 300.0
_PAUSE_AFTER_FAILURE_S = 5.0
_LAST_WORDS_S = 5.0
_UNANSWERABLE = "it asks for a permission that cannot be given since this machine was restarted: cancel and resume it"


def main() -> int:
    """Follow this process's worker to its end; return an exit code that nobody needs: the verdict counts."""
    worker = WorkerDir(os.environ[AGENT_DIR])
    os.umask(0o077)
    launch = take_up(worker)
    if launch.verdict.exists():
        return 0
    try:
        stand_in = StandIn(worker, launch)
    except AgentctlError as error:  # A runner that is not installed any more, for example.
        if not claimed_by_head(launch):
            raise
        write_whole(launch.verdict, to_json(_verdict(Status.FAILED, Reason.NOT_STARTED, error.message)))
        return 0
    stand_in.run()
    return 0


class StandIn:
    """Follows one launch."""

    def __init__(self, worker: WorkerDir, launch: LaunchDir) -> None:
        self.worker, self.launch = worker, launch
        self.note = Notes(root_task_of(worker.task), worker)
        self.placement = placement_of(worker)
        self.runner = load(self.placement.runner)
        self._woken, wakes = os.pipe()
        for fd in (self._woken, wakes):
            os.set_blocking(fd, False)
        self._is_asked_to_end = False
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._note_signal)
        for number in (signal.SIGCHLD, WAKE):
            signal.signal(number, lambda _number, _frame: None)
        signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT, signal.SIGTERM))  # Its shim has blocked them.
        self.engine = Engine(wakes)
        self.board = EngineBoard(self.runner, launch.id, self.placement.poll_s)
        self.mirror = Mirror(worker, launch.worker_on_node(worker))
        self.relay = Relay(worker, launch)
        self.inbound = Inbound(worker, launch)
        self.calls = CalledCommands(worker, launch)
        self.heard = HeardFrom(launch, self._woken, self.placement.silence_s)
        self.watched = Watched()
        #: Only stand-ins write it, and of these there is one.
        self._handle = read_known(launch.handle)
        self.submissions = int(number_in(launch.handle, "submissions") or 0)
        self._next_submission = 0.0
        self._has_begun = False
        self._is_place_logged = False
        self._is_cancel_passed_on = False
        self._is_held = self.placement.ahead > 0 and not launch.inbound.go.exists()
        self._has_failed = False
        self._happened = monotonic()
        #: What the node has written by the worker's end; and when that was asked for first, and not all of it was seen.
        self._written: Mapping[str, Any] = {}
        self._unseen_since: float | None = None

    def _note_signal(self, number: int, _frame: object) -> None:
        self._is_asked_to_end = self._is_asked_to_end or number != signal.SIGHUP

    def run(self) -> None:
        """Follow the launch until its verdict is on disk."""
        while True:
            self._has_failed = False
            if self._safely(self._is_over):
                break
            self._sleep()
        self.heard.close()

    def _is_over(self) -> bool:
        """Look at everything once; return whether the verdict is on disk."""
        verdict = self._look()
        return verdict is not None and self._end(verdict)

    def _sleep(self) -> None:
        """Sleep until the next look."""
        now = monotonic()
        if self._is_calm:
            longest_s = _UNASKED_LOOK_S if self._has_begun else self._apart_s
            self.heard.rest(self._happened, now + longest_s, self.board.due_in_s, has_begun=self._has_begun)
        else:
            longest_s = _LOOK_S if self.calls.is_lively else _AWAITING_LOOK_S if self._has_begun else math.inf
            processes.wait_readable([self._woken], min(pause_s(now - self._happened), longest_s))
        with contextlib.suppress(BlockingIOError):
            os.read(self._woken, 4096)

    @property
    def _apart_s(self) -> float:
        """How far apart two answers of the engine lie that prove something."""
        return min(30.0, 2 * self.placement.poll_s)

    @property
    def _is_calm(self) -> bool:
        """Whether nothing is awaited here: its node tells if the worker begins or does something, and its shim here."""
        return (
            (self._has_begun or (self.submissions > 0 and not self._is_held))
            and not self._has_failed
            and self.watched.finding in (LaunchFinding.WAITING, LaunchFinding.RUNNING)
            and not (self._is_asked_to_end or self.inbound.has_cancel or self.relay.has_open or self.calls.is_any)
        )

    # -- one look ----------------------------------------------------------------------------------------------------

    def _look(self) -> dict[str, Any] | None:
        """Look at everything once; return the verdict if there is one."""
        for said in self.engine.take():
            self._hear(said)
        if not self._has_begun and self._is_claimed():
            if is_withdrawn(self.launch):
                return self._withdrawn()
            self._has_begun, self._happened = True, monotonic()
            self.watched = Watched()  # What the engine said of a launch that had not begun means something else now.
            poke(self.worker)  # Its shim counts its time from now on.
        if not self._has_begun:
            self.inbound.step_early()
            self._let_go()
        else:
            self._follow()
            verdict = self._ended()
            if verdict is not None:
                return verdict
        if self._is_asked_to_end or cancel_request.is_asked(self.worker):
            verdict = self._cancel()
            if verdict is not None:
                return verdict
        return self._ask_engine()

    def _is_claimed(self) -> bool:
        with contextlib.suppress(OSError):
            os.listdir(self.launch.path)  # Over NFS: a name that was missing at the last look is looked up again.
        return self.launch.claim.exists()

    def _let_go(self) -> None:
        """Let a launch that was submitted ahead begin once its worker has a slot."""
        if self._is_held:
            place = place_of(root_task_of(self.worker.task), self.worker.id)
            if place is not None and is_slot(place):
                write_whole(self.launch.inbound.go, b"")
                self._is_held = False

    def _follow(self) -> None:
        """Bring the files here up to date with those of the node."""
        if not self._is_place_logged:
            self._is_place_logged = tell_placed(self.worker, self.launch, self.placement.runner)
        is_relayed = self._safely(self.relay.step)
        if is_relayed:
            poke(self.worker)  # Its shim has a person told what happened.
        steps = (self.mirror.step, lambda: self.inbound.step(self.relay), self.calls.step)
        if any([is_relayed, *map(self._safely, steps)]):
            self._happened = monotonic()
        if self.relay.has_unanswerable:
            self._note_handle(problem=_UNANSWERABLE)

    def _safely(self, step: Callable[[], bool]) -> bool:
        """Take a step; whatever a worker has put into a file, the other steps are taken too."""
        try:
            return step()
        except (AgentctlError, OSError):  # A full disk, a file system that does not answer: the next look goes on.
            pass
        except Exception as error:  # noqa: BLE001 - the worker can have written anything; a cancel must work
            self.note(f"{type(error).__name__}: {error}")
        self._has_failed = True
        return False

    def _ended(self) -> dict[str, Any] | None:
        """Return the verdict that the node has written."""
        value, key = read_known(self.launch.ended), known_key(self.launch.id)
        plain = (
            opened(key, "ended", value) if key is not None else {name: value[name] for name in value if name != "seal"}
        )
        if not value or not plain or plain.get("status") not in tuple(Status):
            return None
        written = plain.pop(WRITTEN, None)
        self._written = written if isinstance(written, dict) else {}
        return self._as_asked(plain)

    def _as_asked(self, ended: dict[str, Any]) -> dict[str, Any]:
        """Return an end as the head sees it: a cancel that nobody asked for here came from the engine."""
        if ended["status"] != Status.CANCELLED or cancel_request.is_asked(self.worker) or self._is_asked_to_end:
            return ended
        if self.placement.time_s is not None and ended.get("by") == BY_TIME:
            why = f"its time on the node ({self.placement.time_s} s) was over: {self.placement.runner} ended it"
            return {**ended, "status": Status.FAILED, "reason": Reason.TIMED_OUT, "message": why}
        return {
            **ended,
            "by": self.placement.runner,
            "message": f"it was cancelled in {self.placement.runner}, not here",
        }

    def _end(self, verdict: dict[str, Any]) -> bool:
        """Take over the last that the node has written, and write the verdict; return whether that is done."""
        is_whole = is_all_seen(self.mirror.there, self._written)  # Before it is copied.
        self._follow()
        if not is_whole and self._is_awaited():
            return False
        try:
            self.mirror.finish()
        except OddFile as error:  # Something else is in the place of one of its files: no later try would go better.
            self.note(error)
        self.relay.close("its worker has ended")
        self.calls.close()
        write_whole(self.launch.verdict, to_json(verdict))
        self.engine.do("reap", lambda: self.runner.reap(self.launch.id))
        until = monotonic() + _LAST_WORDS_S
        while self.engine.has("reap") or self.engine.has("interrupt"):
            self.engine.take()
            if monotonic() >= until:
                break
            processes.wait_readable([self._woken], _LOOK_S)
        self._tidy(is_over=is_whole and verdict.get("reason") != Reason.LOST)
        return True

    def _is_awaited(self) -> bool:
        """Return whether to wait on for what the node has written and is not seen here: a file system may be late."""
        if self._unseen_since is None:
            self._unseen_since = monotonic()
        if monotonic() < self._unseen_since + self.placement.silence_s:
            self._has_failed = True  # The next look is not to wait for a hint.
            return True
        self.note(f"what its node has written is still not all seen here, {self.placement.silence_s:g} s after its end")
        return False

    def _tidy(self, *, is_over: bool) -> None:
        """Remove what nobody needs any more; of a worker that is lost, its node may tell more yet."""
        with contextlib.suppress(OSError):
            os.unlink(self.launch.environment)
        if is_over:
            forget_key(self.launch.id)
            import shutil  # With it come three compressors; only now.

            for folder in (self.launch.node, self.launch.calls, self.launch.to_node):
                shutil.rmtree(folder, ignore_errors=True)

    # -- a cancel ----------------------------------------------------------------------------------------------------

    def _cancel(self) -> dict[str, Any] | None:
        """Pass a cancel on; return the verdict if nothing has begun, and nothing will."""
        with contextlib.suppress(AgentctlError, OSError):  # The engine is told all the same; the next look tries again.
            self.inbound.cancel()
        if not self._is_cancel_passed_on:
            self._is_cancel_passed_on = True
            self._happened = monotonic()
            self.engine.do("interrupt", self._interrupt)
        if self._has_begun:
            return None
        # Whoever claims it first decides: a node that begins now finds that it must not.
        return self._withdrawn() if claimed_by_head(self.launch) else None

    def _withdrawn(self) -> dict[str, Any]:
        """Return the verdict about a launch that the head has claimed, so that no node can."""
        if self._is_asked_to_end or cancel_request.is_asked(self.worker):
            by = cancel_request.asked_by(self.worker, "agentctl")
            return _verdict(Status.CANCELLED, None, f"it was waiting in the queue of {self.placement.runner}", by=by)
        return self._never_began(f"{self.placement.runner} has not started it")

    def _interrupt(self) -> str | None:
        self.runner.interrupt(self.launch.id)
        return None

    # -- the engine --------------------------------------------------------------------------------------------------

    def _hear(self, said: Said) -> None:
        match said.what:
            case "submit" if said.problem:
                self._next_submission = monotonic() + _PAUSE_AFTER_FAILURE_S
                self._note_handle(problem=said.problem, isFinal=said.is_final)
            case "submit":
                self._happened = monotonic()
                self.submissions += 1
                self.watched = Watched()
                self._note_handle(job=said.answer, at=since_boot(), boot=processes.boot_id(), problem=None, engine=None)
            case "interrupt" if said.problem:
                self._is_cancel_passed_on = False  # The request stands in a file, too; this is only faster.

    def _note_handle(self, **more: Any) -> None:
        """Note what is known of the launch in the engine, if that is news; a key without a value is removed."""
        own = {"runner": self.runner.name, "answers": self.board.name, "submissions": self.submissions}
        value = {**self._handle, **own, **more}
        value = {key: item for key, item in value.items() if item is not None}
        if value != self._handle:
            with contextlib.suppress(AgentctlError, OSError):
                write_whole(self.launch.handle, to_json(value), durable=False)
                self._handle = value

    def _ask_engine(self) -> dict[str, Any] | None:
        if not self.submissions and not self._has_begun:
            return self._submit()
        if self.board.is_due:
            self.engine.do("ask", self._ask)
        answer = self.board.last()
        if answer.at <= submitted_at(self._handle):
            return None  # From before it was submitted.
        silent_s = self.heard.silent_s() if self._has_begun else 0.0
        seen = answer.seen
        self._note_handle(engine={"state": seen.state, "words": seen.words, "reason": seen.reason or answer.problem})
        self.watched = looked(
            self.watched, seen, answer.at, has_begun=self._has_begun, silent_s=silent_s, apart_s=self._apart_s,
            silence_s=self.placement.silence_s,
        )  # fmt: skip
        return self._concluded(seen.words, seen.reason)

    def _ask(self) -> str | None:
        self.board.ask()
        return None

    def _concluded(self, words: str, reason: str) -> dict[str, Any] | None:
        """Return the verdict that follows from what the engine says, if one does."""
        match self.watched.finding:
            case LaunchFinding.LOST:
                return self._lost(words)
            case LaunchFinding.FORGOTTEN if self.submissions < MOST_SUBMISSIONS:
                self.watched = Watched()
                return self._submit()
            case LaunchFinding.FORGOTTEN | LaunchFinding.NEVER_BEGAN if claimed_by_head(self.launch):
                said = " ".join(filter(None, (words or EngineState.ABSENT.upper(), f"({reason})" if reason else "")))
                return self._never_began(f"{self.placement.runner} has not started it: {said}", words)
        return None

    def _never_began(self, message: str, words: str = "") -> dict[str, Any]:
        log = _tail_of(self.launch)
        message = f"{message}; it printed: {log}" if log else message
        if words == "CANCELLED":
            return _verdict(Status.CANCELLED, None, message, by=self.placement.runner)
        return _verdict(Status.FAILED, Reason.NOT_STARTED, message)

    def _lost(self, words: str) -> dict[str, Any]:
        """Return the verdict about a worker whose node is gone; its shim may have written its end without its post."""
        decision = decision_of(self.launch.worker_on_node(self.worker))
        if decision is not None:
            return decision.to_json()
        where = read_known(self.launch.claim).get("node") or "its node"
        said = f"{self.placement.runner} says {words or 'that there is no such job'}, and {where} is silent"
        return _verdict(Status.FAILED, Reason.LOST, f"{said}; the exit was not seen")

    def _submit(self) -> dict[str, Any] | None:
        """Have the engine start it; return the verdict if the engine never will."""
        if self._handle.get("isFinal"):
            if claimed_by_head(self.launch):
                return _verdict(Status.FAILED, Reason.NOT_STARTED, str(self._handle.get("problem")))
            return None
        if monotonic() >= self._next_submission:
            order = self._order()
            self.engine.do("submit", lambda: self.runner.launch(order))
        return None

    def _order(self) -> LaunchOrder:
        """Return what the engine is given to start: the post of the launch."""
        return LaunchOrder(
            id=self.launch.id,
            argv=argv_of(POST, str(self.launch.path), self.placement.python),
            log=str(self.launch.engine_log),
            what=f"{self.worker.task.id}/{self.worker.instance}",
            placement=self.placement,
        )


def _verdict(status: Status, reason: Reason | None, message: str, by: str = "agentctl") -> dict[str, Any]:
    return Decision(status=status, reason=reason, message=message, by=by).now().to_json()


def _tail_of(launch: LaunchDir, most: int = 300) -> str:
    """Return the last that a launch printed before it had files of its own."""
    with contextlib.suppress(AgentctlError, OSError):
        return launch.engine_log.read_bytes()[-most:].decode(errors="replace").strip()
    return ""
