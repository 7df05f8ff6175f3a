"""The turns of the root thread: begun with what is to be said, steered, interrupted; when the agent has ended."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from agentctl.domain.states import Reason
from agentctl.drivers.codex import opening
from agentctl.drivers.codex.errors import INTERRUPTED, Ending, reason_in
from agentctl.drivers.codex.items import as_dict, as_text
from agentctl.drivers.codex.threads import Threads
from agentctl.drivers.codex.walls import link_in
from agentctl.drivers.codex.wire import Calls, tell
from agentctl.drivers.dialogue import Action, HangUp, Outcome, SessionIs, Stop
from agentctl.drivers.order import Order

_Actions = list[Action]
#: How Codex answers a method that this version of it does not have: with the names of all that it has.
_UNKNOWN_METHOD = re.compile(r"unknown variant|method not found", re.IGNORECASE)
_LONGEST = 500


class Turns:
    """What is said to the root thread. `tell_end` makes the actions of an end."""

    def __init__(
        self,
        order: Order,
        threads: Threads,
        outcome: Callable[[Reason | None, str | None], Outcome],
        tell_end: Callable[[Reason | None, str | None], _Actions],
    ) -> None:
        self.order, self.threads = order, threads
        self.calls = Calls()
        self.model = order.model
        self.is_interrupted = False
        #: The limit of turns was reached, and the turn is being interrupted for it.
        self.is_over = False
        #: How the last turn ended, as long as that has not been told.
        self.ending: Ending | None = None
        self._outcome, self._tell_end = outcome, tell_end
        self._is_turning = False
        #: The running turn, as soon as its id is known.
        self._turn = ""
        self._waiting = [order.prompt]
        #: Messages said into the turn that Codex has not taken yet.
        self._steering = 0

    # -- opening ---------------------------------------------------------------------------------------------------

    def open(self) -> _Actions:
        """Greet and open the thread; first ask what the person has configured, of which its profile is made."""
        if (problem := link_in(self.order)) is not None:
            self.ending = (Reason.NOT_STARTED, problem)
            return [Stop(self._outcome(*self.ending))]
        call = self.calls.call
        actions: _Actions = [
            call("initialize", opening.greeting(self.order), _nothing, self._not_understood),
            tell("initialized"),
        ]
        if opening.profile_of(self.order) is None:
            return [*actions, *self._open_thread({})]
        where = {"cwd": self.order.cwd or None}
        return [*actions, call("config/read", where, self._configured, self._could_not_begin)]

    def _configured(self, result: Mapping[str, Any]) -> _Actions:
        return self._open_thread(as_dict(result.get("config")))

    def _open_thread(self, configured: Mapping[str, Any]) -> _Actions:
        method = "thread/resume" if self.order.resume else "thread/start"
        params = opening.thread_params(self.order, configured)
        return [self.calls.call(method, params, self._opened, self._could_not_begin)]

    def _opened(self, result: Mapping[str, Any]) -> _Actions:
        thread = as_text(as_dict(result.get("thread")).get("id"))
        if not thread:
            return self._could_not_begin("it opened a thread without an id")
        told = as_text(as_dict(result.get("activePermissionProfile")).get("id"))
        if self.order.walls and told != opening.profile_of(self.order):
            return self._not_understood(f"its thread has the permissions {told or 'of an older version'}, not ours")
        self.threads.root = thread
        self.model = as_text(result.get("model")) or self.model
        return [SessionIs(thread, self.model), *([] if self.is_interrupted else self._begin())]

    def _could_not_begin(self, message: str) -> _Actions:
        if _UNKNOWN_METHOD.search(message):
            return self._not_understood(message)
        self.ending = (reason_in(message) or Reason.NOT_STARTED, f"Codex could not begin: {message}")
        return [Stop(self._outcome(*self.ending))]

    def _not_understood(self, message: str) -> _Actions:
        """It speaks another version of the protocol."""
        self.ending = (Reason.NOT_STARTED, message)
        return [Stop(unbegun(self._outcome(*self.ending)))]

    # -- saying ----------------------------------------------------------------------------------------------------

    def told(self, text: str, *, interrupt: bool) -> _Actions:
        """Say a message in the next turn, or into the one that runs."""
        if self.is_interrupted:
            return []
        if interrupt and self._turn:
            return self._steer(text)
        self._waiting.append(text)
        return [] if self._is_turning or self.threads.root is None else self._begin()

    def _begin(self) -> _Actions:
        texts, self._waiting = self._waiting, []
        self._is_turning, self.ending, self._turn = True, None, ""
        params = opening.turn_params(self.order, self.threads.root or "", texts)
        return [self.calls.call("turn/start", params, self._begun, self._not_begun)]

    def _begun(self, result: Mapping[str, Any]) -> _Actions:
        return self.started(as_text(as_dict(result.get("turn")).get("id"))) if self._is_turning else []

    def _not_begun(self, message: str) -> _Actions:
        return self.completed((reason_in(message) or Reason.MODEL_ERROR, f"Codex began no turn: {message}"))

    def started(self, turn: str) -> _Actions:
        """Take the id of the turn, which is told twice: from now on it can be steered and interrupted."""
        is_news, self._turn, self._is_turning = turn != self._turn, turn, True
        self.ending = INTERRUPTED if self.is_interrupted else None
        self.threads.get(self.threads.root or "").turns.add(turn)
        return self._interrupt_turn() if is_news and (self.is_interrupted or self.is_over) else []

    def _steer(self, text: str) -> _Actions:
        self._steering += 1

        def taken(_: Mapping[str, Any]) -> _Actions:
            self._steering -= 1
            return self.finish()

        def refused(_: str) -> _Actions:
            # The turn is over, or of a kind that takes nothing: it is a message for the next.
            self._steering -= 1
            self._waiting.append(text)
            return [] if self._is_turning or self.is_interrupted else self._begin()

        params = {"threadId": self.threads.root, "expectedTurnId": self._turn, "input": opening.inputs([text])}
        return [self.calls.call("turn/steer", params, taken, refused)]

    # -- ending ----------------------------------------------------------------------------------------------------

    def interrupt(self) -> _Actions:
        """Interrupt the turn. What a tool of it has running ends with the program, so that is hung up on then."""
        self.is_interrupted, self.ending = True, INTERRUPTED
        return self._interrupt_turn() if self._is_turning else [HangUp()]

    def stop_over(self) -> _Actions:
        """Interrupt the turn because the limit of turns is reached."""
        self.is_over = True
        return self._interrupt_turn()

    def _interrupt_turn(self) -> _Actions:
        if not self._turn:
            return []  # Its id is on its way.
        params = {"threadId": self.threads.root, "turnId": self._turn}
        return [self.calls.call("turn/interrupt", params, _nothing, self._not_interrupted)]

    def _not_interrupted(self, _: str) -> _Actions:
        # The turn had ended by itself; whoever waits for its end has been told of it.
        return [HangUp()] if self.is_interrupted else []

    def completed(self, ending: Ending) -> _Actions:
        """The turn has ended."""
        self._is_turning, self._turn = False, ""
        if self.is_interrupted:
            return [HangUp()]
        self.ending = (Reason.MAX_TURNS, f"{self.order.max_turns} turns were used up") if self.is_over else ending
        return self._begin() if self._waiting and self.ending[0] is None else self.finish()

    def finish(self) -> _Actions:
        """Tell the end: the turn's, with no sub-agent at work and nothing being said."""
        if self.ending is None or self._is_turning or self._steering:
            return []
        is_natural = self.ending[0] is None
        if self.is_interrupted or (is_natural and self.threads.are_children_working()):
            return []
        ending, self.ending = self.ending, None
        return self._tell_end(*ending)


def unbegun(outcome: Outcome) -> Outcome:
    """Return the outcome of an app-server that never came to open a thread."""
    message = f"`codex app-server` could not begin: {outcome.message}"[:_LONGEST]
    return outcome._replace(is_unbegun=True, message=message)


def _nothing(_: Mapping[str, Any]) -> _Actions:
    return []
