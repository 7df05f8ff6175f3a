"""Watches one attempt of a worker, from its first instruction to the end of the last process of its tree."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Mapping

from agentctl.adapters import descent, processes
from agentctl.adapters.clock import monotonic
from agentctl.adapters.taskdir import WorkerDir
from agentctl.domain import events as ev
from agentctl.domain.state_tables.attempt_state import AttemptPhase, AttemptState, Cause, Happening, advanced, after
from agentctl.domain.states import Reason, Status
from agentctl.domain.worker.escalation import Stage
from agentctl.errors import AgentctlError, StorageError
from agentctl.lean import TYPE_CHECKING, Any, NamedTuple
from agentctl.shim.deferral import Deferral
from agentctl.shim.openquestions import OpenQuestions
from agentctl.shim.outcome import Outcome, usage_from
from agentctl.shim.rosterdebt import RosterDebt
from agentctl.shim.wallclock import WallClock
from agentctl.shim.workclock import WorkClock
from agentctl.supervision import failpoints
from agentctl.supervision.life.belonging import Claim
from agentctl.supervision.life.process_tree import SupervisedTree, UnsupervisedTree
from agentctl.supervision.stop.escalating import enter_stage, stay_in_stage
from agentctl.supervision.stop.offspring import Offspring
from agentctl.supervision.worker import cancel_request, pause_request
from agentctl.supervision.worker.control import WAKE
from agentctl.supervision.worker.endings import from_wait_status
from agentctl.supervision.worker.spec import WorkerSpec, is_for_agent
from agentctl.supervision.worker.whereabouts import Whereabouts

if TYPE_CHECKING:
    from agentctl.shim.placed import NodeClock
    from agentctl.shim.waiting import Waiting
    from agentctl.shim.wakeups import Wakeups

#: How often output is measured, and the files are looked at without a wake-up.
_TICK_S = 1.0
#: The same for a worker on a node: its limits count there, and whatever changes here wakes this shim.
_AWAY_TICK_S = 60.0
#: How often a tree is looked at during its sweep; most ends in it also wake by SIGCHLD.
_SWEEP_TICK_S = 0.02
_SURVIVOR_TICK_S = 1.0


#: Appends an event about the worker.
Tell = Callable[[str, Mapping[str, Any]], object]
#: Writes down a problem that the shim survived.
Note = Callable[[object], None]


class Charge(NamedTuple):
    """A running worker, and what is needed to watch it."""

    worker: WorkerDir
    spec: WorkerSpec
    pid: int
    cookie: str
    offspring: Offspring
    clock: WorkClock
    wall: WallClock
    #: Has the person told of what was added to the log; called about once a second.
    look_for_news: Callable[[], None]
    where: Whereabouts
    deferral: Deferral


class Attempt:
    """Watches a worker's tree; `watch` returns once nothing of it is alive (or only what is to be kept)."""

    def __init__(
        self, charge: Charge, wakeups: Wakeups, control: int, debt: RosterDebt, tell: Tell, note: Note
    ) -> None:
        (
            self.worker,
            self.spec,
            self.pid,
            cookie,
            self.offspring,
            self.clock,
            self.wall,
            self.look_for_news,
            self.where,
            self.deferral,
        ) = charge
        self.wakeups, self.control, self.debt, self.tell, self.note = wakeups, control, debt, tell, note
        # Without child subreapers (macOS) as much of the tree is found as possible.
        leader = None if processes.LINUX else processes.identify(self.pid)
        self.tree = (
            SupervisedTree(self.worker, cookie.encode(), self.pid)
            if leader is None
            else UnsupervisedTree(Claim(self.worker, leader, cookie.encode(), leader.start))
        )
        self.began = monotonic()
        self.clock.begin(self.began)
        self.next_tick = self.began + _TICK_S
        self.state = AttemptState()
        #: Whether the log says that it is paused.
        self.is_told_paused = False
        #: The exit of its leader: si_code and si_status.
        self.exit: tuple[int, int] = (0, 0)
        #: What its tree does while it is blocked, which it is while an open question has a live asker; else None.
        self.waiting: Waiting | None = None
        self.questions = OpenQuestions(self.worker)
        #: Of a worker on a node; else None.
        self.node_clock = None if self.spec.placement is None else self._new_node_clock()
        #: Whether the request that it be cancelled could not be read at the last look.
        self.is_unread = False
        #: The children of this shim when it last reaped them after the exit of the leader, which stays among them.
        self.children: list[int] = []
        self.swept: list[dict[str, Any]] = []
        self.output = _OutputMeter(self.worker, self.spec.stall_s, self.began)

    def watch(self) -> Outcome:
        """Watch the attempt to its end; a step that fails does not keep the others from running."""
        self._look_at_files()
        while not self._run_safely(self._is_over):
            for step in (self._escalate, self._sleep, self._reap, self._pay_debt):
                self._run_safely(step, pause_s=_SWEEP_TICK_S)  # A pause, in case the step fails at once.
        failpoints.reached("shim.after-sweep")
        return self._outcome()

    def _is_in_place(self) -> bool:
        return self.where.loss() is None

    def _pay_debt(self) -> None:
        self.debt.pay_if_due(self._is_in_place)

    # -- what has happened ---------------------------------------------------------------------------------------

    def _reap(self) -> None:
        """Reap every ended child except the leader, which stays a zombie until the sweep is done.

        While it is a zombie, neither its pid nor its group's id can be reused.
        """
        self.children = []
        while not self.has_exited:
            ended = processes.ended_child()
            if ended is None:
                return
            if ended.pid == self.pid:
                self._leader_exited(ended.code, ended.status)
            else:
                os.waitpid(ended.pid, os.WNOHANG)
        # A program that keeps forking and exiting leaves a zombie each time: each look at the tree would take longer.
        self.children = descent.reap_all_but(self.pid)

    @property
    def has_exited(self) -> bool:
        """Whether the leader has exited."""
        return self.state.phase is AttemptPhase.SWEEPING

    def _leader_exited(self, code: int, status: int) -> None:
        self.exit = (code, status)
        # This decides between an end and a cancel: only a request that is on disk by now counts.
        loss = self.where.loss()
        is_cancelled = loss is not None or cancel_request.is_asked(self.worker)
        self._happen(Happening.EXITED, self._cancel(loss and loss.message) if is_cancelled else None)
        failpoints.reached("shim.after-leader")

    def _look_at_files(self) -> None:
        """Look at each file separately: whatever a worker puts into one, the shim still looks at the others."""
        if self._is_quiet() or not self._is_in_place():
            return  # What lies in another folder of the same name is not about this worker.
        for look in (self._look_at_cancel, self._look_at_pause, self._look_at_questions, self._look_at_deferred):
            self._run_safely(look)

    def _is_quiet(self) -> bool:
        """Return whether nobody asks for anything, and nothing is left to be done: mostly one look shows it."""
        is_at_rest = not (self.state.is_paused or self.is_told_paused or self.waiting is not None)
        return is_at_rest and self.deferral.defers_nothing() and self.worker.has_no_request()

    def _run_safely(self, look: Callable[[], object], pause_s: float = 0.0) -> object:
        try:
            return look()
        except Exception as error:  # noqa: BLE001 - the worker can have written anything; limits and cancel must work
            self.note(f"{type(error).__name__}: {error}")
            time.sleep(pause_s)
            return None

    def _look_at_cancel(self) -> None:
        if self.has_exited or not cancel_request.is_asked(self.worker):
            return
        if self.state.escalation is None and self._run_safely(self.offspring.holds_cancel):
            self._happen(Happening.CANCEL_HELD)
        else:
            self._happen(Happening.CANCELLED, self._cancel())

    def _cancel(self, message: str | None = None) -> Cause:
        asked = self._asked_grace()  # A worker on a node is stopped there.
        if asked is None or self.spec.placement is not None:
            asked = self.spec.grace_s
        return Cause(Status.CANCELLED, asked, message)

    def _asked_grace(self) -> float | None:
        """Return the grace period that is asked for. One that cannot be read at a second look keeps nobody alive."""
        was_unread, self.is_unread = self.is_unread, True
        try:
            asked = cancel_request.asked_grace(self.worker)
        except StorageError:
            if not was_unread:
                raise
            return None
        self.is_unread = False
        return asked

    def _look_at_pause(self) -> None:
        if self.spec.placement is not None:
            return  # Its processes are on a node, and stopped there.
        is_wanted = pause_request.is_wanted(self.worker)
        if is_wanted != self.state.is_paused:
            self._happen(Happening.PAUSED if is_wanted else Happening.UNPAUSED)

    def _look_at_deferred(self) -> None:
        """Write down and tell what the disk has refused; say what it refuses now."""
        problem = self._tell_pause()
        if problem is None:
            self.deferral.look(paused=self.state.is_paused)
        else:
            self.deferral.say(problem, paused=self.state.is_paused)

    def _tell_pause(self) -> AgentctlError | OSError | None:
        """Append the event of a pause or of its end, if it is not in the log yet; return why that is refused."""
        is_told = self.state.is_paused == self.is_told_paused
        if not is_told and self.state.phase in (AttemptPhase.RUNNING, AttemptPhase.HELD):
            try:
                self.tell(ev.PAUSED if self.state.is_paused else ev.UNPAUSED, {})
            except (AgentctlError, OSError) as problem:
                return problem
            self.is_told_paused = self.state.is_paused
        return None

    def _look_at_questions(self) -> None:
        """Update whether it is blocked, as it is while an open question has a live asker, whose end wakes."""
        was_blocked = self.waiting is not None
        if self.questions.look():
            self._tell(ev.RESUMED, {"reason": "asker_gone"})
        waits = self.questions.is_any
        if waits != was_blocked:
            self._note_time(ends=was_blocked)
            self.waiting = self._new_waiting() if waits else None
            self.debt.add(self.worker, self.spec.agent, Status.BLOCKED if waits else Status.RUNNING)

    def _new_waiting(self) -> Waiting:
        from agentctl.shim.waiting import Waiting  # Few workers ask.

        return Waiting(self.tree, is_for_agent(self.spec.order), monotonic())

    def _look_at_limits(self) -> None:
        """Check, about once a second, for too much output, none for long, too much time, removed folders, or news."""
        loss = self.where.lasting_loss()
        if loss is not None:
            self._happen(Happening.CANCELLED, self._cancel(loss.message))
        self._note_time()
        self._run_safely(self.look_for_news)
        size = self.output.size()
        self._look_at_stall()
        if size > self.spec.max_output_bytes:
            self._limit(Reason.OUTPUT_LIMIT, f"it wrote {size} bytes; the limit is {self.spec.max_output_bytes}")
        excess = self._run_safely(lambda: self.wall.broken(self.clock))
        if isinstance(excess, str):
            self._limit(Reason.BUDGET, excess)

    def _look_at_stall(self) -> None:
        """Append one event when it has given no sign of life for long, and one when it goes on."""
        stands = self.state.is_paused or self.waiting is not None or self.state.escalation is not None
        if self.output.has_turned(monotonic(), stands=stands):
            is_stalled = self.output.is_stalled
            self._tell(ev.STALLED if is_stalled else ev.UNSTALLED, {"seconds": self.spec.stall_s} if is_stalled else {})

    # -- what is done about it -----------------------------------------------------------------------------------

    def _happen(self, happening: Happening, cause: Cause | None = None) -> None:
        self._enter(after(self.state, happening, monotonic(), cause))

    def _limit(self, reason: Reason, message: str) -> None:
        self._happen(Happening.LIMIT, Cause(reason, self.spec.grace_s, message))

    def _escalate(self) -> None:
        now = monotonic()
        if not self.has_exited and self._is_time_over(now):
            self._limit(Reason.TIMED_OUT, f"its time limit of {self.spec.timeout_s:g} s passed")
        stage = self.state.stage
        self._enter(advanced(self.state, now, self.spec.grace_s))
        if self.state.stage is stage:
            stay_in_stage(self.tree, stage)

    def _enter(self, state: AttemptState) -> None:
        """Enter a state, and carry out its differences from the one before."""
        before = self.state
        if state.is_paused != before.is_paused:
            self._run_safely(self._note_time)  # The time until now counts by the old state.
        self.state = state
        if state.stage is not before.stage:
            if state.stage is (Stage.TERMINATE if self.has_exited else Stage.KILL):
                self._run_safely(self._note_swept)
            enter_stage(self.worker, self.tree, state.stage)
        if state.is_paused and not before.is_paused:
            self.tree.stop()
            self._tell_pause()
        elif before.is_paused and not state.is_paused:
            self.tree.proceed()
            self._tell_pause()

    def _note_swept(self) -> None:
        self.swept = self.tree.describe(with_exiting=False)

    def _tell(self, kind: str, payload: Mapping[str, Any]) -> None:
        """Append an event that may be lost: a full disk must not end the guard."""
        with contextlib.suppress(AgentctlError, OSError):
            self.tell(kind, payload)

    # -- sleeping and ending -------------------------------------------------------------------------------------

    def _sleep(self) -> None:
        now = monotonic()
        due = [self.next_tick, self._next_look(now)]
        time_over = self._time_due() if self.state.escalation is None else None
        due += [at for at in (self.debt.due(), time_over) if at is not None]
        readable = self.wakeups.rest(max(0.0, min(due) - now), self.control, list(self.questions.fds))
        is_due = monotonic() >= self.next_tick
        if self.spec.placement is not None and self.control in readable:
            is_due = True
            self._wake_stand_in()
        if is_due:  # Woken or not: a worker could write to `control` all the time.
            self._look_at_limits()
            self.next_tick = monotonic() + self._tick_s
        if is_due or any(fd != self.wakeups.fd for fd in readable):
            self._look_at_files()

    @property
    def _tick_s(self) -> float:
        if self.spec.placement is None or self.waiting is not None or self.where.is_in_doubt:
            return _TICK_S
        until = self.wall.due()
        return min(_AWAY_TICK_S, max(_TICK_S, until - monotonic()))

    def _wake_stand_in(self) -> None:
        """Have what stands in for a worker on a node look at once at what was said to it."""
        if not self.has_exited:
            os.kill(self.pid, WAKE)

    # -- its clock -----------------------------------------------------------------------------------------------

    def _note_time(self, *, ends: bool = False) -> None:
        """Count the time since the last look, unless the worker was paused or only waited in it.

        Args:
            ends: The worker has just ceased to be blocked.
        """
        now, waited = monotonic(), False
        stood = self.state.is_paused and not self.tree.stop()  # Somebody may have continued it.
        if self.node_clock is not None:
            stood = self.node_clock.stood()
        if self.waiting is not None:
            waited = bool(self._run_safely(lambda: self._did_wait(now, ends)))
        self.clock.note(now, at_work=not (stood or waited))

    def _new_node_clock(self) -> NodeClock:
        from agentctl.shim.placed import NodeClock  # Few workers run on a node.

        return NodeClock(self.worker, self._note_begun)

    def _note_begun(self) -> None:
        self.debt.add(self.worker, self.spec.agent, Status.RUNNING)

    def _did_wait(self, now: float, ends: bool) -> bool:
        if self.waiting is None:
            return False
        return self.waiting.end(now) if ends else self.waiting.look(now, self.questions.askers(), self.output.size())

    def _is_time_over(self, now: float) -> bool:
        due = self._time_due()
        return self.clock.worked_s >= self.spec.timeout_s if due is None else now >= due

    def _time_due(self) -> float | None:
        """Return when its time limit passes; None if only the next look can show whether its clock has run."""
        return None if self.state.is_paused or self.waiting is not None else self.clock.due(self.spec.timeout_s)

    def _next_look(self, now: float) -> float:
        step = self.state.escalation
        if step is None:
            return now + self._tick_s
        if step.stage is Stage.SURVIVORS:
            return now + _SURVIVOR_TICK_S
        if self.has_exited or step.stage is Stage.KILL:
            return min(step.due, now + _SWEEP_TICK_S)
        return step.due

    def _is_over(self) -> bool:
        if not self.has_exited:
            return False
        if self.spec.keep_children and self.state.cause is None:
            return True
        return self._is_childless() or self.tree.is_gone()

    def _is_childless(self) -> bool:
        """Return whether only its leader, a zombie, is left: whatever it leaves becomes a child of this shim."""
        return processes.LINUX and self.children == [self.pid]

    def _outcome(self) -> Outcome:
        cause = self.state.cause
        kept = self.tree.describe(with_exiting=False) if self.spec.keep_children and cause is None else []
        self._note_time()
        self.clock.end()
        _, _, used = os.wait4(self.pid, 0)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        self.questions.close()
        status, reason, code, name = from_wait_status(*self.exit)
        if cause is not None and isinstance(cause.why, Reason):
            status, reason = Status.FAILED, cause.why
        elif cause is not None:
            status, reason = Status.CANCELLED, None
        message = None if cause is None else cause.message
        lasted_s = monotonic() - self.began
        return Outcome(status, reason, code, name, lasted_s, message, self.swept, kept, usage_from(used))


class _OutputMeter:
    """What a worker writes, measured about once a second: its output, and what it reports or does."""

    def __init__(self, worker: WorkerDir, stall_s: float, now: float) -> None:
        self._worker, self._stall_s = worker, stall_s
        self._signs: tuple[object, ...] = ()
        self._quiet_since = now
        self.is_stalled = False

    def size(self) -> int:
        """Return the number of bytes written so far."""
        return sum(_size_of(path) for path in (self._worker.stdout, self._worker.stderr))

    def _signs_of_life(self) -> tuple[object, ...]:
        """Return what changes with any sign of life: output, a row of its activity, a report."""
        worker = self._worker
        return (*map(_size_of, (worker.stdout, worker.stderr, worker.activity)),
                *map(_version_of, (worker.progress, worker.result)))  # fmt: skip

    def has_turned(self, now: float, *, stands: bool) -> bool:
        """Return whether it has stalled or resumed since the last look: `is_stalled` says which.

        Args:
            stands: It waits, is paused or is being stopped, and so does not count as stalled.
        """
        signs = self._signs_of_life()
        if signs != self._signs or stands:
            self._signs, self._quiet_since = signs, now
        was_stalled, self.is_stalled = self.is_stalled, now - self._quiet_since >= self._stall_s
        return was_stalled != self.is_stalled


def _version_of(path: str) -> tuple[int, int] | None:
    """Return which file is there: each report replaces it by another one."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


def _size_of(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
