"""The main loop of a shim: it guards one worker after another in its place, until no ticket is left for it."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable
from functools import partial

from agentctl.adapters import processes
from agentctl.adapters.files import storage_errors, write_all
from agentctl.adapters.kept_code import keep_open
from agentctl.adapters.libc import libc
from agentctl.adapters.locks import locked
from agentctl.adapters.paths import FilePath
from agentctl.adapters.patience import STORAGE_RETRY_S, patiently
from agentctl.adapters.treedir import tree_at
from agentctl.domain.state_tables.guard_state import GuardState
from agentctl.errors import AgentctlError, StorageError
from agentctl.lean import TYPE_CHECKING, Any
from agentctl.shim.guard import Guard, ShimContext
from agentctl.shim.later import SHIM
from agentctl.shim.notes import write_note
from agentctl.shim.rosterdebt import RosterDebt
from agentctl.shim.twins import await_place
from agentctl.shim.wakeups import Wakeups
from agentctl.shim.wallclock import WallClock
from agentctl.supervision import failpoints
from agentctl.supervision.dispatch.handshake import ANSWER_FD, ORDER_FD, channel_at, receive_order
from agentctl.supervision.queue.places import Place
from agentctl.supervision.queue.tickets import Ticket, forget_environment, parse_ticket, read_names
from agentctl.supervision.worker import environment
from agentctl.supervision.worker.deferred import use_folder

if TYPE_CHECKING:
    from typing import TypeVar

    from agentctl.supervision.dispatch.dispatch import Dispatched
    from agentctl.supervision.dispatch.succession import Succession

    T = TypeVar("T")

#: Others hold this lock for milliseconds, but a holder may be stopped.
_QUEUE_LOCK_LIMIT_S = 3600
#: So often, a second apart, the next worker is looked for where the disk refuses.
_MOST_TRIES = 10
_PR_SET_NAME, _PR_SET_CHILD_SUBREAPER = 15, 36


def main() -> None:
    """Guard the ordered worker, then workers from the queue; exit when none is left or the place is gone."""
    _become_alone()
    keep_open(SHIM)
    given = await_place(channel_at(ORDER_FD))
    order = receive_order(given[0]) if given else None
    if given is None or order is None:
        return
    given[0].close()
    _adopt_orphans()
    head, blob = order
    failpoints.arm(head["failpoint"])
    try:
        _Shim(Place(given[1]), head, blob).run()
    except Exception:  # noqa: BLE001 - a bug of ours: its worker is shown as unsupervised and can be cancelled.
        import traceback  # Imported only now: it loads the tokenizer and more.

        write_note(tree_at(head["root"]), f"ended unexpectedly\n{traceback.format_exc()}")
        sys.exit(1)


def _become_alone() -> None:
    """Drop what was inherited: other programs' descriptors, the working folder."""
    os.closerange(ANSWER_FD + 1, 1 << 16)
    for fd in (ORDER_FD, ANSWER_FD):
        os.set_inheritable(fd, False)
    os.chdir("/")
    os.umask(0o077)
    if processes.LINUX:
        libc("prctl", _PR_SET_NAME, b"agentctl-shim", 0, 0, 0)


def _adopt_orphans() -> None:
    """Become a child subreaper: adopt all orphans below from now on. No twin of this shim is below it."""
    if processes.LINUX:
        libc("prctl", _PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


class _Shim:
    def __init__(self, place: Place, head: dict[str, Any], blob: bytes) -> None:
        self.tree = tree_at(head["root"])
        self.folder = FilePath(head["environmentFolder"])
        use_folder(self.folder)
        self.ticket = parse_ticket(head["ticket"])
        self.blob = blob if head["hasEnvironment"] else None
        #: The token of the environment that was read last, and that: the workers of a queue mostly share one.
        self.known: tuple[str, bytes | None] = ("", None)
        self.place = place
        self.wakeups = Wakeups()
        self.debt = RosterDebt()
        #: The state in which it left the last worker.
        self.left_in = GuardState.QUEUED
        self.me = processes.identify(os.getpid())
        self.succession: Succession | None = None
        self.switch = environment.switch_of(self.folder, self._known(self.tree.nonce))
        wall, answer = WallClock(self.tree), _Answer()
        self.context = ShimContext(self.tree, self.folder, self.me, wall, self.switch, self.wakeups, self.debt, answer)

    def run(self) -> None:
        ticket: Ticket | None = self.ticket
        while ticket is not None:
            leaves_children = self._guard(ticket)
            if self.left_in is GuardState.GONE:
                return  # There is no queue any more, and nobody to be told.
            ticket = self._next(takes_more=not leaves_children)
        if self._known(self.switch.exists):  # All workers may have ended.
            from agentctl.supervision.notify.switch import Switch

            Switch(self.tree, self.folder).tell()
        self.debt.pay_all()

    def _guard(self, ticket: Ticket) -> bool:
        """Guard one worker to its end; return whether it leaves processes that the next sweep must not meet."""
        guard = Guard(self.context, ticket, self._environment(ticket))
        leaves_children = guard.run()
        self.left_in = guard.state
        return leaves_children

    def _environment(self, ticket: Ticket) -> bytes | None:
        if self.blob is not None:
            blob, self.blob = self.blob, None
            return blob
        if self.known[0] != ticket.environment:
            found = self._known(partial(environment.get, self.folder, ticket.environment))
            self.known = ticket.environment, found
        return self.known[1]

    def _next(self, takes_more: bool) -> Ticket | None:
        """Give the place back and take the next ticket, under one lock."""
        from agentctl.supervision.dispatch.dispatch import (  # Only now: the first worker need not wait for it.
            complete_dispatch,
        )

        failpoints.reached("shim.before-release")
        done, has_place, is_refused = None, True, self.left_in is GuardState.REFUSED
        for _ in range(_MOST_TRIES):
            try:
                with (
                    storage_errors(self.tree.path, "look into"),
                    locked(self.tree.queue_lock, limit_s=_QUEUE_LOCK_LIMIT_S),
                ):
                    if has_place:
                        following = self._follow(takes_more)
                        if following is not None:
                            self.ticket = following
                            return following
                        self._give_back()
                        has_place = False
                    # By a full disk: others may try; this shim tries again when there may be room.
                    done, is_refused = None if is_refused else self._dispatch(takes_more), False
            except StorageError:
                pass  # The disk may answer again, or have room: or the queue would stand still until somebody looks.
            except (AgentctlError, OSError):
                return None  # A removed task: nothing new is started.
            if done is not None and (done.mine is not None or done.launches or done.problem is None):
                break
            self.wakeups.pause(STORAGE_RETRY_S)
        if done is None:
            return None
        complete_dispatch(self.tree, done, folder=self.folder)
        for ticket in done.removed:
            self.debt.add_ended(self.tree.worker_at(ticket.worker_id))
        if done.mine is None:
            return None
        self.ticket, self.place = done.mine
        return self.ticket

    def _give_back(self) -> None:
        if self.ticket is not None:
            forget_environment(self.ticket.environment, self.folder, read_names(self.tree))
        self.place.vacate(self.me)

    def _known(self, look: Callable[[], T]) -> T:
        return patiently(look, self.tree.path, lambda _: self.wakeups.rest(STORAGE_RETRY_S))

    def _follow(self, takes_more: bool) -> Ticket | None:
        stays = self.left_in in (GuardState.REFUSED, GuardState.WAITING)
        if self.ticket is None or stays or not takes_more or self.wakeups.is_told_to_end:
            return None
        return self._succession().follow(self.ticket, self.place, self.me)

    def _succession(self) -> Succession:
        from agentctl.supervision.dispatch.succession import Succession  # As late as the dispatch.

        self.succession = self.succession or Succession(self.tree, self.folder)
        return self.succession

    def _dispatch(self, takes_more: bool) -> Dispatched:
        from agentctl.supervision.dispatch.dispatch import dispatch_locked

        takes_more = takes_more and not self.wakeups.is_told_to_end
        done = dispatch_locked(self.tree, shim=self.me if takes_more else None, folder=self.folder)
        self._succession().looked()
        return done


class _Answer:
    """Answers the launcher once, then closes the descriptor, whose number may be reused afterwards."""

    def __init__(self) -> None:
        self._is_open = True

    def __call__(self, answer: dict[str, Any]) -> None:
        if self._is_open:
            self._is_open = False
            with contextlib.suppress(OSError):  # The launcher is gone: the files say it all.
                write_all(ANSWER_FD, json.dumps(answer).encode())
            os.close(ANSWER_FD)
