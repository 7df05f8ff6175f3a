"""What the head tells a node: a cancel, a pause, messages, each in a file that the post looks at."""

from __future__ import annotations

import contextlib
import os

from agentctl.adapters.clock import now_iso
from agentctl.adapters.files import make_folder, to_json, write_whole
from agentctl.adapters.opening import read_bytes
from agentctl.adapters.paths import FilePath
from agentctl.adapters.taskdir import LaunchDir, WorkerDir, names_in
from agentctl.errors import AgentctlError
from agentctl.lean import TYPE_CHECKING
from agentctl.supervision.worker import cancel_request, pause_request
from agentctl.supervision.worker.inboxes import message_names
from agentctl.supervision.worker.questions import open_questions, waiting_askers

if TYPE_CHECKING:
    from agentctl.supervision.dispatch.standby import Standby
    from agentctl.worker_programs.on_node.exchange.node_relay import Relay

_MOST = 10_000


class Inbound:
    """Passes on what was said to a worker here."""

    def __init__(self, worker: WorkerDir, launch: LaunchDir) -> None:
        self._worker, self._launch = worker, launch
        #: How many messages were passed on.
        self._messages = len([name for name in names_in(launch.inbound.inbox, _MOST) if name.endswith(".json")])
        self._cancel: bytes | None = None
        self._asked: list[str] | None = None
        self._place: Standby | None = None
        #: The place was lent, and the workers that may have it were started.
        self._is_lent = False
        #: Something is to be passed on, and the worker's place has yet to come back.
        self.is_held_up = False

    def step(self, relay: Relay) -> bool:
        """Pass on what has come; return whether there was anything."""
        return any([self._pass_pause(), self._pass_asked(relay), self._go_on(relay)])

    def step_early(self) -> None:
        """Pass on what a node is to find when it begins."""
        self._pass_pause()
        self._pass_messages(self._new_messages())

    @property
    def has_cancel(self) -> bool:
        """Whether a cancel was passed on."""
        return self._cancel is not None

    def cancel(self) -> None:
        """Pass a cancel on, and again if its grace period has changed."""
        if (request := cancel_request.cancel_request_of(self._worker)) is not None:
            self._write_cancel(to_json(request))
            return
        self._write_cancel(to_json({"by": "agentctl", "at": now_iso()}) if self._cancel is None else self._cancel)

    def _write_cancel(self, request: bytes) -> None:
        if request != self._cancel:
            make_folder(self._launch.to_node)
            write_whole(self._launch.inbound.cancel, request)
            self._cancel = request

    def _pass_pause(self) -> bool:
        is_wanted, is_passed = pause_request.is_wanted(self._worker), self._launch.inbound.pause.exists()
        if is_wanted and not is_passed:
            write_whole(self._launch.inbound.pause, to_json(pause_request.pause_request_of(self._worker)))
        elif is_passed and not is_wanted:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._launch.inbound.pause)
        return is_wanted != is_passed

    def _go_on(self, relay: Relay) -> bool:
        """Pass on messages and the answer to "what next?"; an agent that was kept has its place back before."""
        names = self._new_messages()
        self.is_held_up = False
        if not names and not relay.is_told_next:
            self._lend(relay)
            return False
        self._end_loan()
        if relay.may_be_idle and not self._own_place().has_own():
            self.is_held_up = True
            return False
        relay.tell_next()
        self._pass_messages(names)
        return True

    def _new_messages(self) -> list[str]:
        return message_names(self._worker)[self._messages :] if self._worker.inbox.exists() else []

    def _pass_messages(self, names: list[str]) -> None:
        """Copy messages, in their order."""
        for name in names:
            _copy(self._worker.inbox / name, self._launch.inbound.inbox / name)
            self._messages += 1

    def _lend(self, relay: Relay) -> None:
        """Lend the worker's place while its agent was kept, and goes on with nothing that was passed on."""
        if not relay.is_idle or relay.messages_read < self._messages:
            self._end_loan()
        elif not self._is_lent:
            self._is_lent = self._own_place().lend()

    def _own_place(self) -> Standby:
        if self._place is None:
            from agentctl.adapters.treedir import tree_of
            from agentctl.supervision.dispatch.standby import Standby  # Few agents are kept.

            self._place = Standby(self._worker, tree_of(self._worker.task))
        return self._place

    def _end_loan(self) -> None:
        """End the loan, also one that was begun although the rest has failed."""
        self._is_lent = False
        if self._place is not None:
            self._place.end_loan()

    def _pass_asked(self, relay: Relay) -> bool:
        """Say which questions the worker's commands have asked here, so that its clock stands still on the node."""
        asked = []
        with contextlib.suppress(AgentctlError):
            if self._worker.interactions.exists():
                asked = [
                    name for name in waiting_askers(self._worker, open_questions(self._worker)) if not relay.has(name)
                ]
        if asked == (self._asked or []):
            return False
        write_whole(self._launch.inbound.asked, to_json({"asked": asked}), durable=False)
        self._asked = asked
        return True


def _copy(source: FilePath, target: FilePath) -> None:
    write_whole(target, read_bytes(source))
