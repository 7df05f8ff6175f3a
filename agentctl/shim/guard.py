"""The guardian of one worker: starts it, watches it, stops it, and decides its end.

It sleeps in one poll over signals, the control FIFO, the askers of open questions and the next deadline. After each
wake-up it looks at the files (`cancel.json`, `pause.json`, `interactions/`), so a lost or doubled wake-up does no harm.
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
from agentctl.adapters.taskdir import TaskDir, WorkerDir
from agentctl.domain import events as ev
from agentctl.domain.states import Reason, Status
from agentctl.errors import AgentctlError, Damaged, StorageError
from agentctl.lean import TYPE_CHECKING, Any, NamedTuple
from agentctl.shim.birth import BirthError, Unborn, fork_worker
from agentctl.shim.deferral import Deferral
from agentctl.shim.notes import Notes
from agentctl.shim.parking import ParkedTicket, Parking, WaitTooLong
from agentctl.shim.retrying import is_tried_again, pause_after, put_aside, waited
from agentctl.shim.rosterdebt import RosterDebt
from agentctl.shim.unloaded import PAUSE_S, Unloaded
from agentctl.shim.wakeups import Wakeups
from agentctl.shim.wallclock import WallClock
from agentctl.shim.workclock import WorkClock
from agentctl.supervision import failpoints
from agentctl.supervision.account.accounts import account_in
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
from agentctl.supervision.worker.whereabouts import Whereabouts

if TYPE_CHECKING:
    from typing import TypeVar

    from agentctl.shim.outcome import Outcome
    from agentctl.supervision.account.holds import Hold
    from agentctl.supervision.notify.switch import Switch

    T = TypeVar("T")

Answer = Callable[[dict[str, Any]], None]


class Post(NamedTuple):
    """The context of a shim: the root task of its tree, the folder in which environments wait, its own identity."""

    root_task: TaskDir
    folder: FilePath
    me: processes.Identity | None
    #: How long its tree has been at work.
    wall: WallClock
    #: Exists while a person is to be told what happens.
    switch: FilePath


class Guard:
    """Guards one worker, over all of its attempts."""

    def __init__(
        self, post: Post, ticket: Ticket, blob: bytes | None, wakeups: Wakeups, debt: RosterDebt, answer: Answer
    ) -> None:
        (root_task, folder, self.me, self.wall, self.switch), self.ticket = post, ticket
        self.root_task, self.folder = root_task, folder
        self.worker = root_task.worker_at(ticket.worker_id)
        self.blob, self.wakeups, self.debt, self.answer = blob, wakeups, debt, answer
        self.cookie = os.urandom(8).hex()
        #: Its end is in the log after this offset, if it is there.
        self.since = 0
        self.attempt = 1
        self.abandoned: set[tuple[str, processes.Identity | None]] = set()
        self._notes = Notes(root_task, self.worker)
        self.where: Whereabouts | None = None
        #: Its task is gone, and with it the queue: nothing is written or started in it any more.
        self.has_no_task = False
        #: The disk refused what must be written before a start: the worker is still in the queue, as before.
        self.was_refused = False
        #: The worker waits in the queue for its account.
        self.is_held = False
        self.has_left_queue = False
        #: It ran on a node already, without a shim here.
        self.is_taken_over = False
        #: The attempt whose start is in the log.
        self.logged_attempt = 0
        self.offspring = Offspring(self.worker, root_task, folder)
        self.clock = WorkClock(self.worker)
        self.teller: Switch | None = None
        self.deferral = Deferral(self.worker)
        self.unloaded = Unloaded()
        #: The FIFO that wakes this shim, once it is open.
        self.control: int | None = None

    def run(self) -> bool:
        """Guard the worker to its end; return whether any of its processes were left alive (`--keep-children`).

        Returns at once, with nothing done, if another shim guards the worker or it has ended.
        """
        try:
            with storage_errors(self.worker.shim, "lock"):
                self.where = self.clock.where = Whereabouts(self.worker, self.root_task)
                lock = hold_alive(self.worker.shim)
        except StorageError as error:
            self._close()
            self._stay_in_queue(error)
            return False
        except (FileNotFoundError, NotADirectoryError):
            self._close()
            self.answer({"error": f"the folder of {self.worker.instance} was removed"})
            self.has_no_task = not self.worker.task.exists
            return False
        if lock is None:
            self._close()
            self.answer({"error": f"{self.worker.instance} is guarded by another shim"})
            return False
        try:
            with storage_errors(self.worker.shim, "write"):
                name_holder(lock, self.me)
            failpoints.reached("shim.locked")
            with storage_errors(self.worker.path, "look into"):
                return self._guard()
        except StorageError as error:
            self._stay_in_queue(error)
            return False
        finally:
            os.close(lock)
            self._close()

    def _close(self) -> None:
        if self.where is not None:
            self.where.close()
            self.where = None

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
        self.wakeups.rest(STORAGE_RETRY_S)

    def _is_to_be_cancelled(self) -> bool:
        return self.known(partial(cancel_request.is_asked, self.worker))

    def _stay_in_queue(self, error: StorageError) -> None:
        """Leave the worker in the queue: it has not started."""
        self.was_refused = True
        self.answer({"error": error.message, "status": "queued"})

    def _guard(self) -> bool:
        if self.worker.has_ended:
            remove_ticket(self.root_task, self.ticket)
            self.answer({"status": "ended"})
            return False
        is_taken_over = self.worker.launch.exists() and is_away(self.worker)
        if not is_taken_over and self.worker.process.exists() and was_started(self.worker):
            # Started by a shim that was killed after this one was launched. The next look judges its condition.
            remove_ticket(self.root_task, self.ticket)
            self.answer({"error": f"{self.worker.instance} was already started by a shim that is gone"})
            return False
        if self.blob is None:
            self.answer({"error": f"the environment of {self.worker.instance} is gone", "status": "queued"})
            return False
        try:
            self.spec, self.digest = read_vouched(self.worker.spec, self.blob)
        except (AgentctlError, TypeError) as error:
            self._refuse(str(error))
            return False
        account = account_in(self.spec.order, self.worker)
        place = ParkedTicket(self.root_task, self.folder, self.ticket, self.blob)
        self.parking = Parking(self.worker, place, account, self.spec.max_park_s)
        self.attempt = record_of(self.worker).attempt if is_taken_over else self.parking.take_up(self.clock)
        if is_taken_over:
            self._take_over()
        try:
            control = self.control = open_control(self.worker)
            try:
                return self._attempts(control)
            finally:
                self.control = None
                os.close(control)
        except (AgentctlError, OSError) as error:  # A full disk, or something else in a file's place; nothing runs.
            if isinstance(error, StorageError) and self.known((self.root_task.queue / self.ticket).exists):
                self._stay_in_queue(error)
            else:  # Or a later attempt could not start.
                self._write_end(self._unstarted(str(error), self.attempt))
            return False

    def _take_over(self) -> None:
        """Guard a worker on a node whose shim here was killed; without its own environment it is not tried again."""
        self.is_taken_over, self.has_left_queue, self.logged_attempt = True, True, self.attempt
        self.spec = self.spec._replace(retries=0)
        self._event(ev.ADOPTED, {"shimPid": os.getpid(), "attempt": self.attempt})

    def _attempts(self, control: int) -> bool:
        while True:
            if not self.is_taken_over and self._waits():
                return False
            ending, kept = self._one_attempt(control, self.attempt)
            try:
                is_parkable = self.parking.may_follow(ending) and self._goes_on()
                hold = self.known(partial(self.parking.after, ending)) if is_parkable else None
                if hold is not None and self._is_parked(ending, hold):
                    return kept
                if hold is not None or not self._is_tried_again(control, ending):
                    break
            except WaitTooLong as why:
                ending = ending._replace(message=str(why))
                break
            except (AgentctlError, OSError):
                break  # A full disk: this attempt's end cannot be put aside, so it is the worker's end.
            self.attempt += 1
        if ending.status is Status.FAILED and self._was_put_aside() and self._is_to_be_cancelled():
            ending = self._cancelled_ending(self.attempt)  # The cancel came in the pause before another attempt.
        worked = self.clock.to_json() if self.clock.spans else None
        self._write_end(ending._replace(uncollected=self._outlast(control), worked=worked))
        return kept

    def _goes_on(self) -> bool:
        """Return whether another attempt may follow."""
        return self.is_in_place() and not self._is_to_be_cancelled()

    def _was_put_aside(self) -> bool:
        """Return whether the end of the last attempt was put aside for another one."""
        return self.known(self.worker.attempt_exit(self.attempt).exists)

    def _outlast(self, control: int) -> list[str]:
        """Do what its task says about children that outlive the worker; return those that did."""
        try:
            if not self.known(self.worker.children.exists):
                return []
            self.clock.tell()  # It has stopped working, but its end is not published yet.
            return self.offspring.outlast(partial(self.rest, control), self._event, self.known)
        except (AgentctlError, OSError) as error:  # The worker may have written anything there.
            self.note(error)
            return []

    def _refuse(self, why: str) -> None:
        """End a worker whose spec is missing, damaged or not vouched for."""
        self.note(why)
        publish(self.worker, decide(self.worker, self._unstarted(why, self.attempt)), since=self.since)
        remove_ticket(self.root_task, self.ticket)
        self.answer({"status": Status.FAILED, "reason": Reason.NOT_STARTED, "message": why})
        self._have_told()

    def rest(self, control: int, seconds: float) -> None:
        """Sleep for that many seconds, or until woken."""
        self.wakeups.rest(seconds, control)
        self.deferral.look()
        self.debt.pay_if_due(self.is_in_place)

    def _one_attempt(self, control: int, number: int) -> tuple[Decision, bool]:
        loss = self.where.loss() if self.where is not None else None
        if loss is not None:
            return Decision(status=Status.CANCELLED, message=loss.message, attempt=number), False
        if not self.is_taken_over:
            if (held_before := held_end(self.worker)) is not None:
                return held_before, False  # It was cancelled in the queue, and the disk refused that.
            if self._is_to_be_cancelled() or (self.spec.parent and self.known(self._barred_by)):
                return self._cancelled_ending(number), False
            over_budget = self._over_budget(number)
            if over_budget is not None:
                return over_budget, False
        if self.spec.placement is not None:
            from agentctl.shim.placed import followed  # Few workers run on a node.

            return followed(self, control, number), False
        return self.born_attempt(self.spec, control, number)

    def born_attempt(self, spec: WorkerSpec, control: int, number: int) -> tuple[Decision, bool]:
        """Start the process of an attempt and watch it to its end; return that, and whether it left processes.

        Args:
            spec: What is started: the worker itself, or what stands in for it here.
        """
        try:
            unborn = fork_worker(self.worker, spec, self._environ())
        except (BirthError, OSError) as error:
            return self._unstarted(str(error), number), False
        failpoints.reached("shim.after-fork")
        started_at = now_iso()
        try:
            self._write_start(unborn, number, started_at)
        except BaseException:
            unborn.abandon()
            raise
        problem = unborn.open_gate()
        failpoints.reached("shim.after-gate")
        if problem is not None:
            os.waitpid(unborn.pid, 0)
            return self._unstarted(problem, number), False
        try:
            outcome = self._watch(unborn.pid, control, spec)
        except (AgentctlError, OSError) as error:  # It runs, so this must not be taken for a failed start.
            raise RuntimeError(f"{self.worker.instance} cannot be watched any more: {error}") from error
        return self._ending_of(outcome, number, started_at), bool(outcome.kept)

    def _watch(self, pid: int, control: int, spec: WorkerSpec) -> Outcome:
        """Watch a running attempt to its end."""
        self.answer({"status": Status.RUNNING, "pid": pid})
        # Imported only now: the worker already runs while this is loaded.
        from agentctl.shim.watching import Attempt, Charge

        self.debt.add(self.worker, spec.agent, Status.QUEUED if spec.placement else Status.RUNNING)
        news = partial(self._have_told, only_news=True)
        assert self.where is not None
        charge = Charge(
            self.worker, spec, pid, self.cookie, self.offspring, self.clock, self.wall, news, self.where, self.deferral
        )
        watched = Attempt(charge, self.wakeups, control, self.debt, self._event, self.note)
        watched.questions.abandoned = self.abandoned
        return watched.watch()

    def _waits(self) -> bool:
        """Leave the worker in the queue if it must wait for its account; return whether this shim is done with it."""
        hold = self.known(self.parking.held)
        if hold is None or self._is_to_be_cancelled() or held_end(self.worker) is not None:
            return False
        if self.has_left_queue:
            return self.parking.give_back(hold, self.attempt, self._is_to_be_cancelled)
        if self.attempt == 1 and self.ticket.environment == NO_ENVIRONMENT:
            self._write_end(self._unstarted(hold.reason, self.attempt))  # Spawned without `--queue`, it must not wait.
            return True
        self.parking.note()
        self.is_held = True
        self.answer({"error": hold.reason, "status": Status.QUEUED})
        return True

    def _is_parked(self, ending: Decision, hold: Hold) -> bool:
        """Put the worker back into the queue; return False if a cancel came first."""
        self.clock.tell()
        if is_parked := self.parking.park(ending, hold, self.attempt, self._is_to_be_cancelled):
            self.debt.add(self.worker, self.spec.agent, Status.QUEUED)
        return is_parked

    def _barred_by(self) -> WorkerDir | None:
        return kinship.barred_by(self.worker)

    def _over_budget(self, number: int) -> Decision | None:
        """Return how the worker ends if its tree has used up its time; None if it may start."""
        if (excess := self.known(partial(self.wall.broken, self.clock))) is None:
            return None
        return Decision(status=Status.FAILED, reason=Reason.BUDGET, message=excess, attempt=number)

    def _write_start(self, unborn: Unborn, number: int, started_at: str) -> None:
        """Write the worker's identity to disk, then its start to the log; the gate is opened after this."""
        identity = processes.identify(unborn.pid)
        known = identity.to_json() if identity else {}
        worker = {**known, "cookie": self.cookie, "startedAt": started_at, "attempt": number, "since": monotonic()}
        write_whole(self.worker.process, to_json(worker), durable=False)
        failpoints.reached("shim.after-identity")
        born = {"pid": unborn.pid, "start": known.get("start")}
        if self.logged_attempt == number:
            return  # Another process stands in for a worker on a node, which goes on.
        if number == 1:
            runner = {"runner": self.spec.placement["runner"]} if self.spec.placement else {}
            self.since = self._event(ev.STARTED, {**born, "shimPid": os.getpid(), **runner}, started_at) or 0
        else:
            self._event(ev.RETRIED, {"attempt": number, **born}, started_at)
        self.logged_attempt = number
        failpoints.reached("shim.after-started")
        # After the event: if a full disk refuses that, the worker is still in the queue and nothing ran.
        if not self.has_left_queue:
            remove_ticket(self.root_task, self.ticket)
            self.has_left_queue = True
        failpoints.reached("shim.after-ticket")

    def _event(self, kind: str, payload: Mapping[str, Any], at: str | None = None) -> int | None:
        if not self.is_in_place():
            return None  # No log is begun again where a task was removed, or another one is in its place.
        event = ev.make_event(
            at or now_iso(), kind, self.worker.task.id, "agentctl", dict(payload), self.worker.instance
        )
        return eventlog.append(self.worker.task.events, [event])

    def _environ(self) -> dict[bytes, bytes]:
        task = self.worker.task
        environ = environment.unpack(self.blob or b"")
        environ[ROOT_VARIABLE.encode()] = os.fsencode(task.root.path)
        environ[TASK_VARIABLE.encode()] = task.id.encode()
        environ[INSTANCE_VARIABLE.encode()] = self.worker.instance.encode()
        environ[AGENT_DIR.encode()] = os.fsencode(self.worker.path)
        environ[COOKIE.encode()] = self.cookie.encode()
        if self.spec.order is not None:
            environ[SPEC_DIGEST.encode()] = self.digest.encode()
        return environ

    def _unstarted(self, problem: str, attempt: int) -> Decision:
        return Decision(status=Status.FAILED, reason=Reason.NOT_STARTED, message=problem, attempt=attempt)

    def _cancelled_ending(self, attempt: int) -> Decision:
        return Decision(status=Status.CANCELLED, by=self._canceller(), attempt=attempt)

    def _canceller(self) -> str:
        return self.known(partial(cancel_request.asked_by, self.worker))

    def _ending_of(self, outcome: Outcome, attempt: int, started_at: str) -> Decision:
        status, reason, message = outcome.status, outcome.reason, outcome.message
        if self.spec.order is not None:
            from agentctl.shim.outcome import verdict_of

            status, reason, message = self.known(partial(verdict_of, self.worker, outcome))
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
        return waited(self._is_to_be_cancelled, pause_s, partial(self.wakeups.rest, control=control), self.is_in_place)

    def _pause_after(self, ending: Decision) -> float | None:
        """Return the pause before the next attempt; None if there is none."""
        own = self.attempt - self.parking.times - self.unloaded.times
        if self.spec.order is not None:
            from agentctl.supervision.worker.driver_end import end_by_driver  # As late as its verdict.

            has_said_nothing = self.known(partial(end_by_driver, self.worker)) is None
            if has_said_nothing and self.unloaded.is_tried_again(ending):
                return PAUSE_S
        return pause_after(self.spec, own) if is_tried_again(self.spec, ending, own) else None

    def _finds_place_for_end(self) -> bool:
        """Return whether there is a place for the worker's end; in a task that was moved, this is where it lies now."""
        loss = self.where.loss() if self.where is not None else None
        if loss is None:
            return True
        self.has_no_task = not loss.has_tasks
        if loss.worker is None:
            return False
        self.worker = loss.worker
        return True

    def _write_end(self, ending: Decision) -> None:
        """Write the end, retrying while the disk refuses; meanwhile result and slot are kept and nothing new starts."""
        has_place = self._finds_place_for_end()
        if has_place and self.known(self.worker.worktree.exists):
            from agentctl.shim import patching  # Few workers have a worktree.

            patching.record(self.worker, environment.unpack(self.blob or b""), self.wakeups)
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
                if isinstance(error, Damaged) and self.known(self.worker.exit.exists):
                    self.note(error)
                    break  # The log is no longer a log. The end is on disk: the next look publishes it.
                restore_access(self.worker)
                self.answer({"error": str(error)})
                ending = ending.now()
                self.deferral.say(error, end=ending.to_json())
                self.wakeups.rest(STORAGE_RETRY_S, self.control)
                has_place = self._finds_place_for_end()
        deferred.clear(self.worker)
        self.answer({"status": ending.status, "reason": ending.reason, "message": ending.message})
        if self.has_no_task:
            return
        if not self.has_left_queue:
            remove_ticket(self.root_task, self.ticket)
        if self.spec.parent:
            wake_parent(self.worker)
        self.debt.add_ended(self.worker, self.spec.agent, decision)
        if ending.status is Status.FAILED:
            self._have_told()

    def _have_told(self, *, only_news: bool = False) -> None:
        """Have the person told what has happened, if that is wanted; nothing here waits for it."""
        if self.known(self.switch.exists):
            from agentctl.supervision.notify.switch import Switch

            self.teller = self.teller or Switch(self.root_task, self.folder)
            self.teller.look(self.worker.task) if only_news else self.teller.tell()
