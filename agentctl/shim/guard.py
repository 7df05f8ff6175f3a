"""The guardian of one worker: starts it, watches it, stops it, and decides its end.

It sleeps in one poll over signals, the control FIFO, the askers of open questions and the next deadline. After each
wake-up it looks at the files (`cancel.json`, `pause.json`, `interactions/`), so a lost or doubled wake-up does no harm.
Its states are the table in `domain/state_tables/guard_state.py`; each is entered once its files are written.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial

from agentctl.adapters import eventlog, processes
from agentctl.adapters.clock import monotonic, now_iso
from agentctl.adapters.files import storage_errors, to_json, write_whole
from agentctl.adapters.locks import hold_alive
from agentctl.adapters.paths import FilePath
from agentctl.adapters.patience import STORAGE_RETRY_S, patiently
from agentctl.adapters.taskdir import TreeDir, WorkerDir
from agentctl.domain import events as ev
from agentctl.domain.state_tables.guard_state import GuardHappening, GuardState, following
from agentctl.domain.states import Reason, Status
from agentctl.errors import AgentctlError, Damaged, StorageError
from agentctl.lean import TYPE_CHECKING, Any, NamedTuple
from agentctl.shim.birth import BirthError, Unborn, fork_worker
from agentctl.shim.deferral import Deferral
from agentctl.shim.notes import Notes
from agentctl.shim.retrying import WaitTooLong, is_tried_again, pause_after, put_aside, waited
from agentctl.shim.rosterdebt import RosterDebt
from agentctl.shim.unloaded import PAUSE_S, Unloaded
from agentctl.shim.wakeups import Wakeups
from agentctl.shim.wallclock import WallClock
from agentctl.shim.workclock import WorkClock
from agentctl.supervision import failpoints
from agentctl.supervision.life.belonging import record_of
from agentctl.supervision.queue.tickets import Ticket, remove_ticket
from agentctl.supervision.stop.offspring import Offspring, wake_parent
from agentctl.supervision.worker import cancel_request, deferred, environment, kinship
from agentctl.supervision.worker.control import name_holder, open_control
from agentctl.supervision.worker.endings import (
    Decision,
    decide,
    held_end,
    publish,
    restore_access,
    was_started,
)
from agentctl.supervision.worker.environment import (
    AGENT_DIR,
    COOKIE,
    INSTANCE_VARIABLE,
    NO_ENVIRONMENT,
    ROOT_VARIABLE,
    TASK_VARIABLE,
)
from agentctl.supervision.worker.placed import is_away
from agentctl.supervision.worker.spec import SPEC_DIGEST, WorkerSpec, read_vouched
from agentctl.supervision.worker.whereabouts import Loss, Whereabouts

if TYPE_CHECKING:
    from typing import TypeVar

    from agentctl.shim.outcome import Outcome
    from agentctl.shim.parking import Parking
    from agentctl.supervision.account.holds import Hold
    from agentctl.supervision.notify.switch import Switch

    T = TypeVar("T")

Answer = Callable[[dict[str, Any]], None]


class ShimContext(NamedTuple):
    """What a shim has for all workers that it guards, one after the other."""

    tree: TreeDir
    #: Where environments wait.
    folder: FilePath
    me: processes.Identity | None
    #: How long its tree has been at work.
    wall: WallClock
    #: Exists while a person is to be told what happens.
    switch: FilePath
    wakeups: Wakeups
    debt: RosterDebt
    #: Answers the launcher, once.
    answer: Answer


class Guard:
    """Guards one worker: holds its lock and its folders, keeps its state, and looks at its files with patience.

    Args:
        blob: The environment of the worker; None if it is gone.
    """

    def __init__(self, shim: ShimContext, ticket: Ticket, blob: bytes | None) -> None:
        self.shim, self.ticket, self._blob = shim, ticket, blob
        self.worker = shim.tree.worker_at(ticket.worker_id)
        self.state = GuardState.QUEUED
        self.where: Whereabouts | None = None
        self._notes = Notes(shim.tree, self.worker)
        self._teller: Switch | None = None

    def run(self) -> bool:
        """Guard the worker to its end; return whether any of its processes were left alive (`--keep-children`).

        Returns at once, with nothing done, if another shim guards the worker or it has ended.
        """
        try:
            with storage_errors(self.worker.shim, "lock"):
                self.where = Whereabouts(self.worker, self.shim.tree)
                lock = hold_alive(self.worker.shim)
        except StorageError as error:
            self._close()
            self.stay_in_queue(error)
            return False
        except (FileNotFoundError, NotADirectoryError):
            self._close()
            self.shim.answer({"error": f"the folder of {self.worker.instance} was removed"})
            if not self.worker.task.exists:
                self.happen(GuardHappening.TASK_GONE)
            return False
        if lock is None:
            self._close()
            self.shim.answer({"error": f"{self.worker.instance} is guarded by another shim"})
            return False
        try:
            with storage_errors(self.worker.shim, "write"):
                name_holder(lock, self.shim.me)
            failpoints.reached("shim.locked")
            with storage_errors(self.worker.path, "look into"):
                return self._guard()
        except StorageError as error:
            self.stay_in_queue(error)
            return False
        finally:
            os.close(lock)
            self._close()

    def _close(self) -> None:
        if self.where is not None:
            self.where.close()
            self.where = None

    def _guard(self) -> bool:
        if self.worker.has_ended:
            remove_ticket(self.shim.tree, self.ticket)
            self.happen(GuardHappening.ENDED)
            self.shim.answer({"status": "ended"})
            return False
        is_taken_over = self.worker.launch.exists() and is_away(self.worker)
        if not is_taken_over and self.worker.process.exists() and was_started(self.worker):
            # Started by a shim that was killed after this one was launched. The next look judges its condition.
            remove_ticket(self.shim.tree, self.ticket)
            self.shim.answer({"error": f"{self.worker.instance} was already started by a shim that is gone"})
            return False
        if self._blob is None:
            self.shim.answer({"error": f"the environment of {self.worker.instance} is gone", "status": "queued"})
            return False
        try:
            spec, digest = read_vouched(self.worker.spec, self._blob)
        except (AgentctlError, TypeError) as error:
            self._refuse(str(error))
            return False
        return _Attempts(self, self._blob, spec, digest, is_taken_over=is_taken_over).run()

    def _refuse(self, why: str) -> None:
        """End a worker whose spec is missing, damaged or not vouched for."""
        self.note(why)
        publish(self.worker, decide(self.worker, _unstarted(why)), since=0)
        remove_ticket(self.shim.tree, self.ticket)
        self.shim.answer({"status": Status.FAILED, "reason": Reason.NOT_STARTED, "message": why})
        self.have_told()
        self.happen(GuardHappening.ENDED)

    def happen(self, happening: GuardHappening) -> None:
        """Enter the state that follows when something happens."""
        self.state = following(self.state, happening)

    def loss(self) -> Loss | None:
        """Return what became of the folders of the worker and its tasks; None if all of them are there."""
        return self.where.loss() if self.where is not None else None

    def is_in_place(self) -> bool:
        """Return whether the folders of the worker and its tasks are there: nothing is written otherwise."""
        return self.where is not None and self.where.loss() is None

    def note(self, problem: object) -> None:
        """Write down a problem that this shim survived; what fails because the task is gone is left out."""
        if self.is_in_place():
            self._notes(problem)

    def known(self, look: Callable[[], T]) -> T:
        """Return what a look at the worker's files says: one that fails is made again."""
        try:
            return look()
        except (StorageError, OSError):
            return patiently(look, self.worker.path, self._await_disk)

    def _await_disk(self, error: StorageError) -> None:
        restore_access(self.worker)
        self.note(error)
        self.shim.wakeups.rest(STORAGE_RETRY_S)

    def stay_in_queue(self, error: StorageError) -> None:
        """Leave the worker in the queue: it has not started."""
        self.happen(GuardHappening.DISK_REFUSED)
        self.shim.answer({"error": error.message, "status": "queued"})

    def have_told(self, *, only_news: bool = False) -> None:
        """Have the person told what has happened, if that is wanted; nothing here waits for it."""
        if self.known(self.shim.switch.exists):
            from agentctl.supervision.notify.switch import Switch

            self._teller = self._teller or Switch(self.shim.tree, self.shim.folder)
            self._teller.look(self.worker.task) if only_news else self._teller.tell()


class _Attempts:
    """The attempts of one worker, one after the other, until it has ended or is parked.

    Args:
        blob: The environment of the worker.
        spec: What that environment vouches for, and its digest.
        is_taken_over: It runs on a node, and its shim here was killed. Without its own environment it is not retried.
    """

    def __init__(self, guard: Guard, blob: bytes, spec: WorkerSpec, digest: str, *, is_taken_over: bool) -> None:
        self.guard, self.shim, self.ticket, self.worker = guard, guard.shim, guard.ticket, guard.worker
        self.blob, self.digest, self.is_taken_over = blob, digest, is_taken_over
        self.spec = spec._replace(retries=0) if is_taken_over else spec
        self.cookie = os.urandom(8).hex()
        #: Its end is in the log after this offset, if it is there.
        self.since = 0
        self.abandoned: set[tuple[str, processes.Identity | None]] = set()
        self.offspring = Offspring(self.worker, self.shim.tree, self.shim.folder)
        self.clock = WorkClock(self.worker)
        self.clock.where = guard.where
        self.deferral = Deferral(self.worker)
        self.unloaded = Unloaded()
        self.parking = self._parking() if spec.order is not None else None
        self.attempt = record_of(self.worker).attempt if is_taken_over else self._next_attempt()
        #: The FIFO that wakes this shim, while it is open.
        self.control: int | None = None

    def _parking(self) -> Parking:
        from agentctl.shim.parking import ParkedTicket, Parking  # A command has no account, and never waits for one.
        from agentctl.supervision.account.accounts import account_in

        place = ParkedTicket(self.shim.tree, self.shim.folder, self.ticket, self.blob)
        return Parking(self.worker, place, account_in(self.spec.order, self.worker), self.spec.max_park_s)

    def _next_attempt(self) -> int:
        return 1 if self.parking is None else self.parking.take_up(self.clock)

    def run(self) -> bool:
        """Run all attempts; return whether processes of the last one were left alive (`--keep-children`)."""
        if self.is_taken_over:
            self.guard.happen(GuardHappening.TAKEN_OVER)
            self._event(ev.ADOPTED, {"shimPid": os.getpid(), "attempt": self.attempt})
        try:
            control = self.control = open_control(self.worker)
            try:
                return self._run(control)
            finally:
                self.control = None
                os.close(control)
        except (AgentctlError, OSError) as error:  # A full disk, or something else in a file's place; nothing runs.
            if isinstance(error, StorageError) and self.guard.known((self.shim.tree.queue / self.ticket).exists):
                self.guard.stay_in_queue(error)
            else:  # Or a later attempt could not start.
                self._write_end(_unstarted(str(error), self.attempt))
            return False

    def _run(self, control: int) -> bool:
        while True:
            if not self.is_taken_over and self._waits():
                return False
            ending, kept = self._one_attempt(control, self.attempt)
            try:
                hold = self._hold_after(ending)
                if hold is not None and self._is_parked(ending, hold):
                    return kept
                if hold is not None or not self._is_tried_again(control, ending):
                    break
            except WaitTooLong as why:
                ending = ending._replace(message=str(why))
                break
            except (AgentctlError, OSError):
                break  # A full disk: this attempt's end cannot be put aside, so it is the worker's end.
            self.guard.happen(GuardHappening.RETRIED)
            self.attempt += 1
        if ending.status is Status.FAILED and self._was_put_aside() and self._is_to_be_cancelled():
            ending = self._cancelled_ending(self.attempt)  # The cancel came in the pause before another attempt.
        worked = self.clock.to_json() if self.clock.spans else None
        self._write_end(ending._replace(uncollected=self._outlast(control), worked=worked))
        return kept

    def _hold_after(self, ending: Decision) -> Hold | None:
        """Return the hold for which it is to be parked after an attempt; None if it is not."""
        if self.parking is None or not self.parking.may_follow(ending) or not self._goes_on():
            return None
        return self.guard.known(partial(self.parking.after, ending))

    def _goes_on(self) -> bool:
        """Return whether another attempt may follow."""
        return self.guard.is_in_place() and not self._is_to_be_cancelled()

    def _is_to_be_cancelled(self) -> bool:
        return self.guard.known(partial(cancel_request.is_asked, self.worker))

    def _was_put_aside(self) -> bool:
        """Return whether the end of the last attempt was put aside for another one."""
        return self.guard.known(self.worker.attempt_exit(self.attempt).exists)

    def _outlast(self, control: int) -> list[str]:
        """Do what its task says about children that outlive the worker; return those that did."""
        try:
            if not self.guard.known(self.worker.children.exists):
                return []
            self.clock.tell()  # It has stopped working, but its end is not published yet.
            return self.offspring.outlast(partial(self._rest, control), self._event, self.guard.known)
        except (AgentctlError, OSError) as error:  # The worker may have written anything there.
            self.guard.note(error)
            return []

    def _rest(self, control: int, seconds: float) -> None:
        """Sleep for that many seconds, or until woken."""
        self.shim.wakeups.rest(seconds, control)
        self.deferral.look()
        self.shim.debt.pay_if_due(self.guard.is_in_place)

    def _one_attempt(self, control: int, number: int) -> tuple[Decision, bool]:
        if (loss := self.guard.loss()) is not None:
            return _lost_its_place(loss, number), False
        if not self.is_taken_over:
            if (held_before := held_end(self.worker)) is not None:
                return held_before, False  # It was cancelled in the queue, and the disk refused that.
            if self._is_to_be_cancelled() or (self.spec.parent and self.guard.known(self._barred_by)):
                return self._cancelled_ending(number), False
            over_budget = self._over_budget(number)
            if over_budget is not None:
                return over_budget, False
        if self.spec.placement is not None:
            from agentctl.shim.placed import followed  # Few workers run on a node.

            born = partial(self._born_attempt, control=control, number=number)
            return followed(self.guard, self.spec, number, born, partial(self._rest, control)), False
        return self._born_attempt(self.spec, control, number)

    def _born_attempt(self, spec: WorkerSpec, control: int, number: int) -> tuple[Decision, bool]:
        """Start the process of an attempt and watch it to its end; return that, and whether it left processes.

        Args:
            spec: What is started: the worker itself, or what stands in for it here.
        """
        try:
            unborn = fork_worker(self.worker, spec, self._environ())
        except (BirthError, OSError) as error:
            return _unstarted(str(error), number), False
        failpoints.reached("shim.after-fork")
        started_at = now_iso()
        try:
            doubt = self._write_start(unborn, number, started_at)
            called_off = None if doubt is None else self._flushed(doubt, unborn, control, number)
        except BaseException:
            unborn.abandon()
            raise
        if called_off is not None:
            unborn.abandon()
            return called_off, False
        problem = unborn.open_gate()
        failpoints.reached("shim.after-gate")
        if problem is not None:
            os.waitpid(unborn.pid, 0)
            return _unstarted(problem, number), False
        try:
            outcome = self._watch(unborn.pid, control, spec)
        except (AgentctlError, OSError) as error:  # It runs, so this must not be taken for a failed start.
            raise RuntimeError(f"{self.worker.instance} cannot be watched any more: {error}") from error
        return self._ending_of(outcome, number, started_at), bool(outcome.kept)

    def _watch(self, pid: int, control: int, spec: WorkerSpec) -> Outcome:
        """Watch a running attempt to its end."""
        self.shim.answer({"status": Status.RUNNING, "pid": pid})
        # Imported only now: the worker already runs while this is loaded.
        from agentctl.shim.watching import Attempt, Charge

        self.shim.debt.add(self.worker, spec.agent, Status.QUEUED if spec.placement else Status.RUNNING)
        news = partial(self.guard.have_told, only_news=True)
        where = self.guard.where
        assert where is not None
        charge = Charge(
            self.worker, spec, pid, self.cookie, self.offspring, self.clock, self.shim.wall, news, where, self.deferral
        )
        watched = Attempt(charge, self.shim.wakeups, control, self.shim.debt, self._event, self.guard.note)
        watched.questions.abandoned = self.abandoned
        return watched.watch()

    def _waits(self) -> bool:
        """Leave the worker in the queue if it must wait for its account; return whether this shim is done with it."""
        if self.parking is None:
            return False
        hold = self.guard.known(self.parking.held)
        if hold is None or self._is_to_be_cancelled() or held_end(self.worker) is not None:
            return False
        if self.guard.state is not GuardState.QUEUED:
            is_parked = self.parking.give_back(hold, self.attempt, self._is_to_be_cancelled)
            if is_parked:
                self.guard.happen(GuardHappening.ACCOUNT_ON_HOLD)
            return is_parked
        if self.attempt == 1 and self.ticket.environment == NO_ENVIRONMENT:
            self._write_end(_unstarted(hold.reason))  # Spawned without `--queue`, it must not wait.
            return True
        self.parking.note()
        self.guard.happen(GuardHappening.ACCOUNT_ON_HOLD)
        self.shim.answer({"error": hold.reason, "status": Status.QUEUED})
        return True

    def _is_parked(self, ending: Decision, hold: Hold) -> bool:
        """Put the worker back into the queue; return False if a cancel came first."""
        assert self.parking is not None
        self.clock.tell()
        is_parked = self.parking.park(ending, hold, self.attempt, self._is_to_be_cancelled)
        if is_parked:
            self.guard.happen(GuardHappening.ACCOUNT_ON_HOLD)
            self.shim.debt.add(self.worker, self.spec.agent, Status.QUEUED)
        return is_parked

    def _barred_by(self) -> WorkerDir | None:
        return kinship.barred_by(self.worker)

    def _over_budget(self, number: int) -> Decision | None:
        """Return how the worker ends if its tree has used up its time; None if it may start."""
        if (excess := self.guard.known(partial(self.shim.wall.broken, self.clock))) is None:
            return None
        return Decision(status=Status.FAILED, reason=Reason.BUDGET, message=excess, attempt=number)

    def _write_start(self, unborn: Unborn, number: int, started_at: str) -> eventlog.NotFlushed | None:
        """Write the worker's identity to disk, then its start to the log; the gate is opened after this.

        Returns:
            Why it is not known whether the start would survive a power cut; None if it would.
        """
        identity = processes.identify(unborn.pid)
        known = identity.to_json() if identity else {}
        worker = {**known, "cookie": self.cookie, "startedAt": started_at, "attempt": number, "since": monotonic()}
        write_whole(self.worker.process, to_json(worker), durable=False)
        failpoints.reached("shim.after-identity")
        born = {"pid": unborn.pid, "start": known.get("start")}
        if self.guard.state is GuardState.STARTED:
            return None  # Another process stands in for a worker on a node, which goes on.
        doubt = None
        try:
            if number == 1:
                runner = {"runner": self.spec.placement["runner"]} if self.spec.placement else {}
                self.since = self._event(ev.STARTED, {**born, "shimPid": os.getpid(), **runner}, started_at) or 0
            else:
                self._event(ev.RETRIED, {"attempt": number, **born}, started_at)
        except eventlog.NotFlushed as error:
            doubt = error
        failpoints.reached("shim.after-started")
        # After the event: if a full disk refuses that, the worker is still in the queue and nothing ran.
        if self.guard.state is GuardState.QUEUED:
            remove_ticket(self.shim.tree, self.ticket)
        self.guard.happen(GuardHappening.STARTED)
        failpoints.reached("shim.after-ticket")
        return doubt

    def _flushed(self, doubt: eventlog.NotFlushed, unborn: Unborn, control: int, number: int) -> Decision | None:
        """Wait until a start that is in the log is on disk, too; return how the worker ends if it is called off.

        To all who read the log it has started, so it is not put back. It is let go once the disk has its start: after a
        power cut it would run a second time otherwise. Meanwhile it keeps its slot: nothing else begins on this disk.
        """
        self.shim.answer({"status": Status.RUNNING, "pid": unborn.pid})
        problem: StorageError = doubt
        while (loss := self.guard.loss()) is None and not self._is_to_be_cancelled():
            self.guard.note(problem)
            self.deferral.say(problem, start=True)
            self.shim.wakeups.rest(STORAGE_RETRY_S, control)
            try:
                eventlog.flush_again(self.worker.task.events, doubt)
            except StorageError as again:
                problem = again
            else:
                self.deferral.look()
                return None
        return self._cancelled_ending(number) if loss is None else _lost_its_place(loss, number)

    def _event(self, kind: str, payload: Mapping[str, Any], at: str | None = None) -> int | None:
        if not self.guard.is_in_place():
            return None  # No log is begun again where a task was removed, or another one is in its place.
        event = ev.make_event(
            at or now_iso(), kind, self.worker.task.id, "agentctl", dict(payload), self.worker.instance
        )
        return eventlog.append(self.worker.task.events, [event])

    def _environ(self) -> dict[bytes, bytes]:
        task = self.worker.task
        environ = environment.unpack(self.blob)
        environ[ROOT_VARIABLE.encode()] = os.fsencode(task.root.path)
        environ[TASK_VARIABLE.encode()] = task.id.encode()
        environ[INSTANCE_VARIABLE.encode()] = self.worker.instance.encode()
        environ[AGENT_DIR.encode()] = os.fsencode(self.worker.path)
        environ[COOKIE.encode()] = self.cookie.encode()
        if self.spec.order is not None:
            environ[SPEC_DIGEST.encode()] = self.digest.encode()
        return environ

    def _cancelled_ending(self, attempt: int) -> Decision:
        return Decision(status=Status.CANCELLED, by=self._canceller(), attempt=attempt)

    def _canceller(self) -> str:
        return self.guard.known(partial(cancel_request.asked_by, self.worker))

    def _ending_of(self, outcome: Outcome, attempt: int, started_at: str) -> Decision:
        status, reason, message = outcome.status, outcome.reason, outcome.message
        if self.spec.order is not None:
            from agentctl.shim.outcome import agent_verdict

            status, reason, message = self.guard.known(partial(agent_verdict, self.worker, outcome))
        return Decision(
            status=status, reason=reason, by=self._canceller() if status is Status.CANCELLED else "agentctl",
            exit_code=outcome.exit_code, signal=outcome.signal, message=message, started_at=started_at,
            duration_s=round(outcome.duration_s, 3), attempt=attempt, swept=outcome.swept, kept=outcome.kept,
            usage=outcome.usage,
        )  # fmt: skip

    def _is_tried_again(self, control: int, ending: Decision) -> bool:
        """Return whether another attempt follows, after waiting for its time."""
        if (pause_s := self._pause_after(ending)) is None or not self._goes_on():
            return False
        retry = put_aside(self.worker, ending, self.attempt, pause_s)
        self.clock.tell()
        self._event(ev.RETRYING, retry)
        rest = partial(self.shim.wakeups.rest, control=control)
        return waited(self._is_to_be_cancelled, pause_s, rest, self.guard.is_in_place)

    def _pause_after(self, ending: Decision) -> float | None:
        """Return the pause before the next attempt; None if there is none."""
        own = self.attempt - (0 if self.parking is None else self.parking.times) - self.unloaded.times
        if self.spec.order is not None:
            from agentctl.supervision.worker.driver_end import end_by_driver  # As late as its verdict.

            has_said_nothing = self.guard.known(partial(end_by_driver, self.worker)) is None
            if has_said_nothing and self.unloaded.is_tried_again(ending):
                return PAUSE_S
        return pause_after(self.spec, own) if is_tried_again(self.spec, ending, own) else None

    def _finds_place_for_end(self) -> bool:
        """Return whether there is a place for the worker's end; in a task that was moved, this is where it lies now."""
        loss = self.guard.loss()
        if loss is None:
            return True
        if not loss.has_tasks:
            self.guard.happen(GuardHappening.TASK_GONE)
        if loss.worker is None:
            return False
        self.worker = self.guard.worker = loss.worker
        return True

    def _write_end(self, ending: Decision) -> None:
        """Write the end, retrying while the disk refuses; meanwhile result and slot are kept and nothing new starts."""
        has_place = self._finds_place_for_end()
        if has_place and self.guard.known(self.worker.worktree.exists):
            from agentctl.shim import patching  # Few workers have a worktree.

            patching.record_patch(self.worker, environment.unpack(self.blob), self.shim.wakeups)
            has_place = self._finds_place_for_end()
        decision = None
        while has_place:
            try:
                decision = decide(self.worker, ending)
                failpoints.reached("shim.after-exit-file")
                publish(self.worker, decision, since=self.since)
                failpoints.reached("shim.after-end-event")
                break
            except (AgentctlError, OSError) as error:
                if isinstance(error, Damaged) and self.guard.known(self.worker.exit.exists):
                    self.guard.note(error)
                    break  # The log is no longer a log. The end is on disk: the next look publishes it.
                restore_access(self.worker)
                self.shim.answer({"error": str(error)})
                ending = ending.now()
                self.deferral.say(error, end=ending.to_json())
                self.shim.wakeups.rest(STORAGE_RETRY_S, self.control)
                has_place = self._finds_place_for_end()
        deferred.clear(self.worker)
        self.shim.answer({"status": ending.status, "reason": ending.reason, "message": ending.message})
        if self.guard.state is GuardState.GONE:
            return
        if self.guard.state is GuardState.QUEUED:
            remove_ticket(self.shim.tree, self.ticket)
        if self.spec.parent:
            wake_parent(self.worker)
        self.shim.debt.add_ended(self.worker, self.spec.agent, decision)
        if ending.status is Status.FAILED:
            self.guard.have_told()
        self.guard.happen(GuardHappening.ENDED)


def _lost_its_place(loss: Loss, attempt: int) -> Decision:
    """Return the end of a worker whose folders were taken away before it was let go."""
    return Decision(status=Status.CANCELLED, message=loss.message, attempt=attempt)


def _unstarted(problem: str, attempt: int = 1) -> Decision:
    """Return the end of a worker that could not be started."""
    return Decision(status=Status.FAILED, reason=Reason.NOT_STARTED, message=problem, attempt=attempt)
