"""Parking: a worker whose account takes no more requests goes back into the queue instead of failing.

Its attempt has ended. A ticket with its old place in the queue waits until the account may be used again. Its
environment waits in memory like that of every queued worker, and its slot is given away: nothing depends on this shim.
"""

from __future__ import annotations

from collections.abc import Callable

from agentctl.adapters import eventlog
from agentctl.adapters.clock import now_iso
from agentctl.adapters.files import sync_folder
from agentctl.adapters.locks import locked
from agentctl.adapters.paths import FilePath
from agentctl.adapters.taskdir import TreeDir, WorkerDir
from agentctl.adapters.taskyaml.cache import known_limits
from agentctl.domain import events as ev
from agentctl.domain.events import Event
from agentctl.domain.states import Reason
from agentctl.errors import AgentctlError
from agentctl.lean import TYPE_CHECKING, Any, NamedTuple
from agentctl.shim.retrying import WaitTooLong, put_aside
from agentctl.shim.workclock import WorkClock
from agentctl.supervision import failpoints
from agentctl.supervision.account.accounts import Account, note_held
from agentctl.supervision.queue.tickets import Ticket, remove_ticket, show_ticket, write_ticket
from agentctl.supervision.worker import environment
from agentctl.supervision.worker.endings import Decision, parked_as

if TYPE_CHECKING:
    from agentctl.supervision.account.holds import Hold

#: How often a worker is started again after rate limits without a reset time, and with one. Retries count apart.
MOST_BACK_OFFS, MOST_WINDOWS = 5, 1000
_LOCK_LIMIT_S = 3600


class ParkedTicket(NamedTuple):
    """A worker's ticket, and what has to be kept for the worker while it is parked."""

    tree: TreeDir
    #: Where environments wait.
    folder: FilePath
    ticket: Ticket
    blob: bytes


class Parking:
    """Decides whether one agent waits for its account.

    Args:
        most_s: How long the worker may be parked; None takes the limit of its tree.
    """

    def __init__(self, worker: WorkerDir, place: ParkedTicket, account: Account | None, most_s: float | None) -> None:
        self.worker, self.place, self.account = worker, place, account
        limits = known_limits(place.tree)
        self.most_s = limits.max_park_seconds if most_s is None else most_s
        self._pause_s = limits.cooldown_seconds
        #: How often it was started again after a back-off, and after a usage window.
        self.back_offs = self.windows = 0

    @property
    def times(self) -> int:
        """How many attempts were started by parking, and so do not count as its own retries."""
        return self.back_offs + self.windows

    def take_up(self, clock: WorkClock) -> int:
        """Continue where another shim parked the worker; return the number of the next attempt."""
        parked = parked_as(self.worker) if self.worker.attempt_exit(1).exists() else None
        if parked is None:
            return 1
        clock.take_up()
        self.back_offs, self.windows = _count(parked.get("backOffs")), _count(parked.get("windows"))
        return max(2, _count(parked.get("attempt")))

    def held(self) -> Hold | None:
        """Return the hold that makes the worker wait now; None if it may start."""
        if self.account is None:
            return None
        from agentctl.supervision.account.holds import hold_of  # The shim of a command has no account.

        hold = hold_of(self.account)
        return hold if hold is not None and hold.left_for(self.worker) > 0 else None

    def may_follow(self, ending: Decision) -> bool:
        """Return whether an attempt has ended so that the worker may be parked."""
        return ending.reason is Reason.RATE_LIMITED and self.account is not None and self._pause_s > 0

    def after(self, ending: Decision) -> Hold | None:
        """Return the hold for which the worker is to be parked after an attempt; None if the ending stands.

        Raises:
            WaitTooLong: The hold lasts longer than the worker may be parked.
            StorageError: It cannot be read whether there is one.
        """
        if not self.may_follow(ending) or self.account is None:
            return None
        from agentctl.supervision.account.holds import Hold, back_off, held_now

        hold = held_now(self.account)
        if (hold is None or hold.window is None) and self.back_offs < MOST_BACK_OFFS:
            try:
                back_off(self.account, self._pause_s * 2**self.back_offs)
            except (AgentctlError, OSError):
                return None  # The account's file cannot be written, so the hold cannot be shared.
            # A short pause may be over by now; the worker is started again all the same.
            hold = held_now(self.account) or Hold(self.account.name, 0.0, 0.0)
        if hold is None:
            return None
        if hold.left_s > self.most_s:
            raise WaitTooLong(f"{hold.reason}, and it may be parked for at most {self.most_s:g} s (maxParkSeconds)")
        if hold.window is None:
            self.back_offs += 1
            return hold if self.back_offs <= MOST_BACK_OFFS else None
        self.windows += 1
        return hold if self.windows <= MOST_WINDOWS else None

    def note(self) -> None:
        """Make the dispatches of the tree check accounts."""
        if self.account is not None:
            note_held(self.place.tree, self.account)

    def park(self, ending: Decision, hold: Hold, attempt: int, is_cancelled: Callable[[], bool]) -> bool:
        """Put an attempt's end aside and the worker back into the queue; return False if it is to be cancelled."""
        retry = put_aside(self.worker, ending, attempt, max(0.0, hold.left_s))
        return self.give_back(hold, attempt + 1, is_cancelled, self._event(ev.RETRYING, retry))

    def give_back(self, hold: Hold, attempt: int, is_cancelled: Callable[[], bool], *before: Event) -> bool:
        """Put the worker back into the queue; return False, with nothing done, if it is to be cancelled.

        The ticket is written under a name that does not count, then the events are appended, then the ticket gets its
        real name. If this shim is killed in between, the next look finds the worker parked and shows its ticket.

        Args:
            attempt: The number of the next attempt.
            is_cancelled: Returns whether the worker is to be cancelled.
            before: Events that are appended with it.
        """
        tree, folder, ticket, blob = self.place
        self.note()
        with locked(tree.queue_lock, limit_s=_LOCK_LIMIT_S):
            if is_cancelled():
                return False
            is_kept = environment.waits(folder, ticket.environment)
            ticket = ticket.of_one_that_ran(ticket.environment if is_kept else environment.put(blob, folder))
            write_ticket(tree, ticket, (), after_any=False)
            try:
                sync_folder(tree.queue)
                failpoints.reached("park.after-ticket")
                eventlog.append(self.worker.task.events, [*before, self._parked(hold, attempt)])
            except BaseException:
                remove_ticket(tree, ticket)
                raise
            failpoints.reached("park.after-event")
            show_ticket(tree, ticket)
            sync_folder(tree.queue)
        return True

    def _parked(self, hold: Hold, attempt: int) -> Event:
        """Return the event, which holds all that the next shim has to know."""
        counts = {"backOffs": self.back_offs, "windows": self.windows}
        return self._event(ev.PARKED, {"attempt": attempt, **hold.to_json(), **counts})

    def _event(self, kind: str, payload: dict[str, Any]) -> Event:
        return ev.make_event(now_iso(), kind, self.worker.task.id, "agentctl", payload, self.worker.instance)


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_WINDOWS * 2 else 0
