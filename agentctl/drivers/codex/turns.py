"""The turns of the root thread: how they are begun, steered and interrupted, and when the agent has ended."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Any

from agentctl.domain.states import Reason
from agentctl.drivers.codex import opening
from agentctl.drivers.codex.errors import INTERRUPTED, Decision, unopened
from agentctl.drivers.codex.threads import AgentThreads
from agentctl.drivers.codex.walls import link_in
from agentctl.drivers.dialogue import Action, AgentOutcome, HangUp, SessionIs, StopProgram
from agentctl.drivers.jsonrpc import Calls, RpcError, notification_of
from agentctl.drivers.order import ALLOWING, ASKING, OWN_PERMISSIONS, Order
from agentctl.drivers.signs import reason_in
from agentctl.drivers.values import object_in, text_in

Actions = list[Action]
#: How Codex answers a method that its version does not have; it also lists all methods that it has.
_UNKNOWN_METHOD = re.compile(r"unknown variant|method not found", re.IGNORECASE)
#: The ways out, where what decides cannot be set: the second one where no word of the person's would loosen it.
_OWN_HINT = f"{OWN_PERMISSIONS} start it with your settings as they are, whatever these let it do"
_ELSE_HINT = (
    "this machine's own settings (/etc/codex) or another version of Codex may be the cause; or choose another driver"
)


class TurnsStop(IntEnum):
    """Why the turns are stopped, as a table: what happens, and which value follows.

        what happens | NONE   | LIMIT              | CANCEL
        -------------|--------|--------------------|-------
        limit passed | LIMIT  |                    |
        cancelled    | CANCEL | CANCEL_AFTER_LIMIT |

    An empty cell changes nothing, and the first cause stays the cause.
    """

    NONE = 0
    #: The limit of turns was reached, so the turn is being interrupted.
    LIMIT = 1
    #: The worker is cancelled.
    CANCEL = 2
    CANCEL_AFTER_LIMIT = 3

    def after_limit(self) -> TurnsStop:
        """Return what follows when the limit of turns is passed."""
        return TurnsStop.LIMIT if self is TurnsStop.NONE else self

    def after_cancel(self) -> TurnsStop:
        """Return what follows when the worker is cancelled."""
        return TurnsStop.CANCEL if self in (TurnsStop.NONE, TurnsStop.CANCEL) else TurnsStop.CANCEL_AFTER_LIMIT


class Turns:
    """Runs the turns of the root thread. `report_end` returns the actions that report an end."""

    def __init__(
        self,
        order: Order,
        threads: AgentThreads,
        outcome: Callable[[Reason | None, str | None], AgentOutcome],
        report_end: Callable[[Reason | None, str | None], Actions],
    ) -> None:
        self.order, self.threads = order, threads
        self.calls = Calls()
        self.model = order.model
        #: The sandbox was ordered with the network; None: that is not known.
        self._has_network: bool | None = None
        self.stop = TurnsStop.NONE
        #: How the last turn ended, until that is reported.
        self.ending: Decision | None = None
        self._outcome, self._report_end = outcome, report_end
        self._is_turning = False
        #: The id of the running turn, once it is known.
        self._turn = ""
        self._waiting = [order.prompt]
        #: The number of messages sent into the turn that Codex has not accepted yet.
        self._steering = 0

    @property
    def is_interrupted(self) -> bool:
        """Whether the worker is cancelled: nothing begins any more."""
        return self.stop >= TurnsStop.CANCEL

    @property
    def is_over(self) -> bool:
        """Whether the limit of turns was reached, before any cancel."""
        return self.stop in (TurnsStop.LIMIT, TurnsStop.CANCEL_AFTER_LIMIT)

    # -- opening ---------------------------------------------------------------------------------------------------

    def open(self) -> Actions:
        """Initialise and open the thread; a permission profile needs the person's config, which is read first."""
        if (problem := link_in(self.order)) is not None:
            self.ending = (Reason.NOT_STARTED, problem)
            return [StopProgram(self._outcome(*self.ending))]
        call = self.calls.call
        actions: Actions = [
            call("initialize", opening.codex_greeting(self.order), self._greeted, self._not_understood),
            notification_of("initialized"),
        ]
        if opening.profile_of(self.order) is None:
            return [*actions, *self._open_thread({})]
        where = {"cwd": self.order.cwd or None}
        return [*actions, call("config/read", where, self._configured, self._could_not_begin)]

    def _greeted(self, result: Mapping[str, Any]) -> Actions:
        expected, found = self.order.home.get("own"), text_in(result.get("codexHome"))
        if expected is None or found == expected:
            return []
        if not found:
            return self._not_understood(RpcError("it does not say in which folder of settings it works"))
        return self._other(opening.Difference(f"it works in {found}, not in {expected}", is_in_asking=True))

    def _configured(self, result: Mapping[str, Any]) -> Actions:
        config = object_in(result.get("config"))
        self._has_network = opening.network_in(config)
        return self._open_thread(config)

    def _open_thread(self, configured: Mapping[str, Any]) -> Actions:
        method = "thread/resume" if self.order.resume else "thread/start"
        params = opening.thread_params(self.order, configured)
        return [self.calls.call(method, params, self._opened, self._could_not_begin)]

    def _opened(self, result: Mapping[str, Any]) -> Actions:
        thread = text_in(object_in(result.get("thread")).get("id"))
        if not thread:
            return self._could_not_begin(RpcError("it opened a thread without an id"))
        if opening.tells_no_profile(self.order, result):
            return self._not_understood(RpcError("its thread has the permissions of an older version, not agentctl's"))
        if (difference := self._difference(result)) is not None:
            return self._other(difference)
        self.threads.root = thread
        self.model = text_in(result.get("model")) or self.model
        return [SessionIs(thread, self.model), *([] if self.is_interrupted else self._begin())]

    def changed(self, settings: Mapping[str, Any]) -> Actions:
        """Stop if the settings of a thread, which were changed, are not those that were ordered any more."""
        difference = self._difference(settings)
        return [] if difference is None else self._other(difference)

    def _difference(self, settings: Mapping[str, Any]) -> opening.Difference | None:
        return opening.difference(self.order, settings, has_network=self._has_network)

    def _could_not_begin(self, error: RpcError) -> Actions:
        if _UNKNOWN_METHOD.search(error.message):
            return self._not_understood(error)
        self.ending = (reason_in(error.message) or Reason.NOT_STARTED, f"Codex could not begin: {error.message}")
        return [StopProgram(self._outcome(*self.ending))]

    def _other(self, difference: opening.Difference) -> Actions:
        """Stop: what was ordered would not hold, or does not hold any more."""
        is_loosened = difference.is_in_asking and self.order.stance in (ASKING, ALLOWING)
        why = f"Codex does not work as it was told: {difference.what}; {_OWN_HINT if is_loosened else _ELSE_HINT}"
        self.ending = (Reason.NOT_STARTED if self.threads.root is None else Reason.PERMISSION_DENIED, why)
        return [StopProgram(self._outcome(*self.ending))]

    def _not_understood(self, error: RpcError) -> Actions:
        """Stop: the program speaks another version of the protocol."""
        self.ending = (Reason.NOT_STARTED, unopened(error.message))
        return [StopProgram(self._outcome(*self.ending))]

    # -- messages --------------------------------------------------------------------------------------------------

    def told(self, text: str, *, interrupt: bool) -> Actions:
        """Send a message in the next turn, or into the running one."""
        if self.is_interrupted:
            return []
        if interrupt and self._turn:
            return self._steer(text)
        self._waiting.append(text)
        return [] if self._is_turning or self.threads.root is None else self._begin()

    def _begin(self) -> Actions:
        texts, self._waiting = self._waiting, []
        self._is_turning, self.ending, self._turn = True, None, ""
        params = opening.turn_params(self.order, self.threads.root or "", texts)
        return [self.calls.call("turn/start", params, self._begun, self._not_begun)]

    def _begun(self, result: Mapping[str, Any]) -> Actions:
        return self.started(text_in(object_in(result.get("turn")).get("id"))) if self._is_turning else []

    def _not_begun(self, error: RpcError) -> Actions:
        why = f"Codex did not begin a turn: {error.message}"
        return self.completed((reason_in(error.message) or Reason.MODEL_ERROR, why))

    def started(self, turn: str) -> Actions:
        """Record the id of the turn, which comes twice: from now on the turn can be steered and interrupted."""
        is_new, self._turn, self._is_turning = turn != self._turn, turn, True
        self.ending = INTERRUPTED if self.is_interrupted else None
        self.threads.get(self.threads.root or "").turns.add(turn)
        return self._interrupt_turn() if is_new and self.stop is not TurnsStop.NONE else []

    def _steer(self, text: str) -> Actions:
        self._steering += 1

        def taken(_: Mapping[str, Any]) -> Actions:
            self._steering -= 1
            return self.finish()

        def refused(_: RpcError) -> Actions:
            # The turn is over, or of a kind that takes no messages: the message waits for the next turn.
            self._steering -= 1
            self._waiting.append(text)
            return [] if self._is_turning or self.is_interrupted else self._begin()

        params = {"threadId": self.threads.root, "expectedTurnId": self._turn, "input": opening.inputs([text])}
        return [self.calls.call("turn/steer", params, taken, refused)]

    # -- ending ----------------------------------------------------------------------------------------------------

    def interrupt(self) -> Actions:
        """Interrupt the turn. Then the program's input is closed, so that running tools end with it."""
        self.stop, self.ending = self.stop.after_cancel(), INTERRUPTED
        return self._interrupt_turn() if self._is_turning else [HangUp()]

    def pass_limit(self) -> Actions:
        """Interrupt the turn because the limit of turns is reached, unless it is being stopped already."""
        before, self.stop = self.stop, self.stop.after_limit()
        return self._interrupt_turn() if self.stop is not before else []

    def _interrupt_turn(self) -> Actions:
        if not self._turn:
            return []  # Its id has not arrived yet: `started` interrupts it then.
        params = {"threadId": self.threads.root, "turnId": self._turn}
        return [self.calls.call("turn/interrupt", params, _nothing, self._not_interrupted)]

    def _not_interrupted(self, _: RpcError) -> Actions:
        # The turn had ended by itself, and its end has been reported already.
        return [HangUp()] if self.is_interrupted else []

    def completed(self, ending: Decision) -> Actions:
        """Handle the end of the turn."""
        self._is_turning, self._turn = False, ""
        if self.is_interrupted:
            return [HangUp()]
        self.ending = (Reason.MAX_TURNS, f"{self.order.max_turns} turns were used up") if self.is_over else ending
        return self._begin() if self._waiting and self.ending[0] is None else self.finish()

    def finish(self) -> Actions:
        """Return the actions that report the end: only once no turn, no sub-agent and no message is under way."""
        if self.ending is None or self._is_turning or self._steering:
            return []
        is_natural = self.ending[0] is None
        if self.is_interrupted or (is_natural and self.threads.are_children_working()):
            return []
        ending, self.ending = self.ending, None
        return self._report_end(*ending)


def _nothing(_: Mapping[str, Any]) -> Actions:
    return []
