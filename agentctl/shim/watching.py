"""One attempt of a worker from its first instruction to the last process of its tree."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Mapping

from agentctl.adapters import descent, processes
from agentctl.adapters.clock import monotonic
from agentctl.adapters.taskdir import WorkerDir
from agentctl.domain import events as ev
from agentctl.domain.escalation import Escalation, Stage, advance, begin, hurried
from agentctl.domain.states import Reason, Status
from agentctl.errors import AgentctlError
from agentctl.lean import TYPE_CHECKING, Any, NamedTuple
from agentctl.shim.openquestions import OpenQuestions
from agentctl.shim.outcome import Outcome, usage_from
from agentctl.shim.output import Output
from agentctl.shim.rosterdebt import RosterDebt
from agentctl.shim.waiting import Waiting
from agentctl.shim.wallclock import WallClock
from agentctl.shim.workclock import WorkClock
from agentctl.supervision import failpoints
from agentctl.supervision.life.belonging import Claim
from agentctl.supervision.life.process_tree import SupervisedTree, UnsupervisedTree
from agentctl.supervision.stop.offspring import Offspring
from agentctl.supervision.worker.endings import from_wait_status
from agentctl.supervision.worker.spec import WorkerSpec, asked_grace, is_for_agent

if TYPE_CHECKING:
    from agentctl.shim.wakeups import Wakeups

#: How often output is measured and the files are looked at without being told.
_TICK_S = 1.0
#: How often a tree that is being swept is looked at; most of its ends wake by SIGCHLD.
_SWEEP_TICK_S = 0.02
_SURVIVOR_TICK_S = 1.0


#: Appends an event about the worker.
Tell = Callable[[str, Mapping[str, Any]], None]
#: Puts down what was met and gone on in spite of.
Note = Callable[[object], None]


class Charge(NamedTuple):
    """A worker that runs."""

    worker: WorkerDir
    spec: WorkerSpec
    pid: int
    cookie: str
    offspring: Offspring
    clock: WorkClock
    wall: WallClock


class Attempt:
    """Watches a worker's tree; `watch` returns once nothing of it is alive (or only what is to be kept)."""

    def __init__(
        self, charge: Charge, wakeups: Wakeups, control: int, debt: RosterDebt, tell: Tell, note: Note
    ) -> None:
        self.worker, self.spec, self.pid, cookie, self.offspring, self.clock, self.wall = charge
        self.wakeups, self.control, self.debt, self.tell, self.note = wakeups, control, debt, tell, note
        # Without child subreapers (macOS) the tree is found as far as it can be.
        leader = None if processes.LINUX else processes.identify(self.pid)
        self.tree = (
            SupervisedTree(self.worker, cookie.encode())
            if leader is None
            else UnsupervisedTree(Claim(self.worker, leader, cookie.encode(), leader.start))
        )
        self.began = monotonic()
        self.clock.begin(self.began)
        self.next_tick = self.began + _TICK_S
        self.leader: tuple[int, int] | None = None  # si_code and si_status once it has exited
        self.cause: Reason | Status | None = None
        self.message: str | None = None
        self.step: Escalation | None = None
        #: A cancel waits for the ends of the workers that this one has started.
        self.is_held = False
        self.is_paused = False
        self.is_blocked = False
        self.waiting: Waiting | None = None
        self.questions = OpenQuestions(self.worker)
        self.swept: list[dict[str, Any]] = []
        self.output = Output(self.worker, self.spec.stall_s, self.began)

    def watch(self) -> Outcome:
        """Watch to the end: what fails at one step keeps the guardian from none of the others."""
        self._look_at_files()
        while not self._bear(self._is_over):
            for step in (self._escalate, self._sleep, self._reap, self.debt.pay_if_due):
                self._bear(step, pause_s=_SWEEP_TICK_S)  # What fails at once is not tried without a rest.
        failpoints.reached("shim.after-sweep")
        return self._outcome()

    # -- what has happened ---------------------------------------------------------------------------------------

    def _reap(self) -> None:
        """Collect every child that ended but the leader, which stays a zombie until the sweep is done.

        As long as it is one, neither its pid nor its group's id can become somebody else's.
        """
        while self.leader is None:
            ended = processes.ended_child()
            if ended is None:
                return
            if ended.pid == self.pid:
                self._leader_ended(ended.code, ended.status)
            else:
                os.waitpid(ended.pid, os.WNOHANG)
        # Who lives on from process to process leaves a zombie each time: each look at the tree would take longer.
        descent.reap_all_but(self.pid)

    def _leader_ended(self, code: int, status: int) -> None:
        self.leader = (code, status)
        # The decision between an end and a cancel: only a request that is on disk by now counts.
        if self.cause is None and self.worker.cancel.exists():
            self.cause = Status.CANCELLED
        self.is_held = False
        failpoints.reached("shim.after-leader")

    def _look_at_files(self) -> None:
        """Each look by itself: what a worker puts into one of its files keeps its guardian from none of the others."""
        for look in (self._look_at_cancel, self._look_at_pause, self._look_at_questions):
            self._bear(look)

    def _bear(self, look: Callable[[], object], pause_s: float = 0.0) -> object:
        try:
            return look()
        except Exception as error:  # noqa: BLE001 - the worker can have written anything; limits and cancel go on
            self.note(f"{type(error).__name__}: {error}")
            time.sleep(pause_s)
            return None

    def _look_at_cancel(self) -> None:
        if self.worker.cancel.exists() and self.leader is None:
            self.is_held = self.step is None and self.cause is None and bool(self._bear(self.offspring.holds_cancel))
            if not self.is_held:
                self._stop_for(Status.CANCELLED, None)
                self._hurry(asked_grace(self.worker))

    def _hurry(self, grace_s: float | None) -> None:
        if self.step is not None:
            self.step = hurried(self.step, monotonic(), grace_s)

    def _look_at_pause(self) -> None:
        wanted = self.worker.pause.exists() and self.step is None
        if wanted and not self.is_paused:
            self._note_time()
            self.tree.stop()
            self.is_paused = True
            self._tell(ev.PAUSED, {})
        elif self.is_paused and not wanted:
            self._proceed()
            if self.step is None:
                self._tell(ev.UNPAUSED, {})

    def _look_at_questions(self) -> None:
        """Blocked while an open question has a live asker; the end of the asker wakes."""
        was_blocked = self.is_blocked
        if self.questions.look():
            self._tell(ev.RESUMED, {"reason": "asker_gone"})
        self.is_blocked = waits = self.questions.is_any
        if waits != was_blocked:
            self._note_time(ends=was_blocked)
            self.waiting = Waiting(self.tree, is_for_agent(self.spec.order), monotonic()) if waits else None
            self.debt.add(self.worker, self.spec.agent, Status.BLOCKED if waits else Status.RUNNING)

    def _look_at_limits(self) -> None:
        """About once a second: too much output, none for long, or a task that somebody removed."""
        self._note_time()
        size = self.output.size()
        self._look_at_stall(size)
        if size > self.spec.max_output_bytes:
            self._stop_for(Reason.OUTPUT_LIMIT, f"it wrote {size} bytes; the limit is {self.spec.max_output_bytes}")
        excess = self._bear(lambda: self.wall.broken(self.clock))
        if isinstance(excess, str):
            self._stop_for(Reason.BUDGET, excess)
        if not self.worker.task.events.exists() and not self.worker.task.path.exists():
            self._stop_for(Status.CANCELLED, "its task was removed")

    def _look_at_stall(self, size: int) -> None:
        """Tell, once, that nothing was put out for long, and that it goes on."""
        stands = self.is_paused or self.is_blocked or self.step is not None
        if self.output.has_turned(monotonic(), size, stands=stands):
            is_stalled = self.output.is_stalled
            self._tell(ev.STALLED if is_stalled else ev.UNSTALLED, {"seconds": self.spec.stall_s} if is_stalled else {})

    # -- what is done about it -----------------------------------------------------------------------------------

    def _stop_for(self, cause: Reason | Status, message: str | None) -> None:
        """Begin the escalation; the first cause stays the reason, and a limit hurries a cancel with a longer grace."""
        if self.is_held:
            return
        if self.cause is not None:
            if cause is Status.CANCELLED and self.step is not None and self.step.stage is Stage.SURVIVORS:
                self._take(begin(monotonic(), self.step.grace_s, Stage.KILL))
            elif isinstance(cause, Reason):
                self._hurry(self.spec.grace_s)
            return
        asked = asked_grace(self.worker) if cause is Status.CANCELLED else None
        self.cause, self.message = cause, message
        if self.leader is None:
            self._take(begin(monotonic(), self.spec.grace_s if asked is None else asked))

    def _escalate(self) -> None:
        now = monotonic()
        if self.leader is None and self._is_time_over(now):
            self._stop_for(Reason.TIMED_OUT, f"its time limit of {self.spec.timeout_s:g} s passed")
        if self.leader is not None and (self.step is None or self.step.stage < Stage.TERMINATE):
            self.swept = self.tree.describe()
            grace_s = self.spec.grace_s if self.step is None else self.step.grace_s
            self._take(begin(now, grace_s, Stage.TERMINATE))
            return
        if self.step is not None:
            step = advance(self.step, now)
            if step is not self.step:
                self._take(step)
            elif step.stage is Stage.KILL:
                self.tree.kill()  # What forked since the last look.

    def _take(self, step: Escalation) -> None:
        self.step = step
        match step.stage:
            case Stage.INTERRUPT:
                self._interrupt()
            case Stage.TERMINATE:
                self.tree.terminate()
            case Stage.KILL:
                if self.leader is None:
                    self.swept = self.tree.describe()
                self.tree.kill()
            case Stage.SURVIVORS:
                self.tree.kill()
                self._tell(ev.CANCEL_FAILED, {"survivors": self.tree.describe()})
        if self.is_paused:
            self._proceed()

    def _proceed(self) -> None:
        self._note_time()
        self.is_paused = False
        self.tree.proceed()

    def _interrupt(self) -> None:
        """SIGINT to the worker's group, as Ctrl-C in a terminal; once, since some take a second one as "force quit"."""
        if self.leader is None and self.pid > 1:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGINT)
                os.killpg(self.pid, signal.SIGCONT)

    def _tell(self, kind: str, payload: Mapping[str, Any]) -> None:
        """Append an event whose loss is no harm: a full disk must not end the guard."""
        with contextlib.suppress(AgentctlError, OSError):
            self.tell(kind, payload)

    # -- sleeping and ending -------------------------------------------------------------------------------------

    def _sleep(self) -> None:
        now = monotonic()
        due = [self.next_tick, self._next_look(now)]
        due += [at for at in (self.debt.due(), self._time_due() if self.step is None else None) if at is not None]
        readable = self.wakeups.rest(max(0.0, min(due) - now), self.control, list(self.questions.fds))
        is_due = monotonic() >= self.next_tick
        if is_due:  # However often somebody wakes it: a worker could write into `control` all the time.
            self._look_at_limits()
            self.next_tick = monotonic() + _TICK_S
        if is_due or any(fd != self.wakeups.fd for fd in readable):
            self._look_at_files()

    # -- its clock -----------------------------------------------------------------------------------------------

    def _note_time(self, *, ends: bool = False) -> None:
        """Let the time since the last look count, unless the worker was paused in it or did nothing but wait.

        Args:
            ends: It has just ceased to be blocked.
        """
        now, waited = monotonic(), False
        stood = self.is_paused and not self.tree.stop()  # Somebody may have continued it.
        if self.waiting is not None:
            waited = bool(self._bear(lambda: self._did_wait(now, ends)))
        self.clock.note(now, at_work=not (stood or waited))

    def _did_wait(self, now: float, ends: bool) -> bool:
        if self.waiting is None:
            return False
        return self.waiting.end(now) if ends else self.waiting.look(now, self.questions.askers(), self.output.size())

    def _is_time_over(self, now: float) -> bool:
        due = self._time_due()
        return self.clock.worked_s >= self.spec.timeout_s if due is None else now >= due

    def _time_due(self) -> float | None:
        """Return when its time limit passes; None where only the next look can tell whether its clock has run."""
        return None if self.is_paused or self.is_blocked else self.clock.due(self.spec.timeout_s)

    def _next_look(self, now: float) -> float:
        if self.step is None:
            return now + _TICK_S
        if self.step.stage is Stage.SURVIVORS:
            return now + _SURVIVOR_TICK_S
        if self.leader is not None or self.step.stage is Stage.KILL:
            return min(self.step.due, now + _SWEEP_TICK_S)
        return self.step.due

    def _is_over(self) -> bool:
        if self.leader is None:
            return False
        if self.spec.keep_children and self.cause is None:
            return True
        return self._is_childless() or self.tree.is_gone()

    def _is_childless(self) -> bool:
        """Tell whether its leader, a zombie, is the last of its tree: all that it left became children of this shim."""
        return processes.LINUX and descent.own_children() == [self.pid]

    def _outcome(self) -> Outcome:
        assert self.leader is not None
        kept = self.tree.describe() if self.spec.keep_children and self.cause is None else []
        self._note_time()
        self.clock.end()
        _, _, used = os.wait4(self.pid, 0)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        self.questions.close()
        status, reason, code, name = from_wait_status(*self.leader)
        if isinstance(self.cause, Reason):
            status, reason = Status.FAILED, self.cause
        elif self.cause is Status.CANCELLED:
            status, reason = Status.CANCELLED, None
        lasted_s = monotonic() - self.began
        return Outcome(
            status, reason, code, name, lasted_s, self.message, self.swept, kept, usage_from(used)
        )  # fmt: skip
