"""Runs one agent program for a worker: does what its dialogue says, and tells the dialogue what happens.

One event loop over the program's output, the worker's folder (answers, messages), signals and deadlines. Everything
that the program prints is on disk before it is looked at.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections import deque
from collections.abc import Iterable
from typing import Any

from agentctl.adapters.files import make_folder
from agentctl.adapters.taskdir import AgentDir
from agentctl.adapters.watch import SAFETY_S, SLICE_S, Watch
from agentctl.domain.activity import Phase, Row, RowType
from agentctl.domain.permissions import decide
from agentctl.domain.states import Reason
from agentctl.drivers.dialogue import (
    Action,
    Ask,
    Driver,
    Finished,
    HangUp,
    Note,
    Outcome,
    Progress,
    Retrying,
    Say,
    SessionIs,
    Stop,
    Withdraw,
)
from agentctl.drivers.order import Order
from agentctl.driving.answers import FinalAnswer
from agentctl.driving.idling import Idle
from agentctl.driving.lines import Lines
from agentctl.driving.program import Program
from agentctl.driving.purse import Purse
from agentctl.driving.questions import OpenQuestions
from agentctl.driving.recording import Recorder
from agentctl.operations.messaging import mark_read, next_message

#: How long a program may take to end after it was hung up on, before it is sent SIGTERM, and then SIGKILL.
_HANG_UP_S = 10.0
_TERMINATE_S = 3.0
_NATURAL, _UNHAPPY, _INTERRUPTED = 0, 1, 130


class Host:
    """One run of an agent program."""

    def __init__(self, agent: AgentDir, order: Order, driver: Driver) -> None:
        self.agent, self.order, self.driver = agent, order, driver
        self.recorder = Recorder(agent)
        self.questions = OpenQuestions(agent)
        self.idle = Idle(agent)
        self.purse = Purse(agent)
        self.answer = FinalAnswer(order)
        self.dialogue = driver.dialogue(order)
        self.is_interrupted = False
        #: What no later word of the program changes: it was stopped for this.
        self.verdict: Outcome | None = None
        self.finished: Outcome | None = None
        self._retries: asyncio.TimerHandle | None = None
        self._closing: asyncio.TimerHandle | None = None
        self._actions: deque[Action] = deque()
        self._lines = (Lines(), Lines())
        self.error: Exception | None = None

    async def run(self) -> int:
        """Run it to its end; return this process's exit code."""
        make_folder(self.agent.inbox)
        make_folder(self.agent.interactions)
        if self.order.session:
            self.recorder.session(self.driver.name, self.order.session, self.order.model)
        refusal = self.purse.refusal()
        if refusal is not None:
            return self._refused(Outcome(reason=Reason.BUDGET, message=refusal))
        self.loop = asyncio.get_running_loop()
        self.loop.set_exception_handler(self._broken)
        for number, handler in ((signal.SIGINT, self._interrupt), (signal.SIGTERM, self._terminated)):
            self.loop.add_signal_handler(number, handler)
        try:
            self.program = Program(
                self.driver.argv(self.order), self.driver.environ(os.environ), self._output, self._errors
            )
        except OSError as error:
            message = f"{self.order.program} could not be started: {error.strerror}; {self.driver.install}"
            return self._refused(Outcome(reason=Reason.NOT_INSTALLED, message=message))
        with Watch([self.agent.inbox, self.agent.interactions]) as watch:
            self._watch(watch)
            self.recorder.input("begin")
            self._do(self.dialogue.begin())
            self._look()
            code = await self.program.ended
            if watch.fd is not None:
                self.loop.remove_reader(watch.fd)
        return self._end(code)

    def _refused(self, outcome: Outcome) -> int:
        """End without having started the program."""
        self.recorder.outcome(outcome)
        return _UNHAPPY

    def _broken(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """A callback raised: whatever it was, the agent is not left running without anybody who listens."""
        error = context.get("exception")
        self.error = error if isinstance(error, Exception) else RuntimeError(str(context.get("message")))
        self._terminate()

    # -- what happens --------------------------------------------------------------------------------------------

    def _output(self, chunk: bytes) -> None:
        self.recorder.raw(1, chunk)
        for line in self._lines[0].feed(chunk):
            self._line(line)
        self.recorder.flush()

    def _line(self, line: bytes) -> None:
        self.recorder.line_of(len(line))
        self._do(self.dialogue.received(line.rstrip(b"\r\n")))

    def _errors(self, chunk: bytes) -> None:
        self.recorder.raw(2, chunk)
        for line in self._lines[1].feed(chunk):
            self._do(self.dialogue.complained(line.rstrip(b"\r\n")))
        self.recorder.flush()

    def _watch(self, watch: Watch) -> None:
        """Look at answers and messages when the folders tell, and now and then in any case."""
        if watch.fd is not None:
            self.loop.add_reader(watch.fd, self._changed, watch)
        every = SAFETY_S if watch.fd is not None else SLICE_S

        def tick() -> None:
            self._look()
            self.loop.call_later(every, tick)

        self.loop.call_later(every, tick)

    def _changed(self, watch: Watch) -> None:
        watch.drain()
        self._look()

    def _look(self) -> None:
        """Pass on what has been answered and said meanwhile."""
        for ask, answer in self.questions.answered():
            self._pass_on(ask.key, answer)
        while not self.is_interrupted and self._closing is None and self._take_message():
            pass
        self.recorder.flush()

    def _take_message(self) -> bool:
        """Pass on one message; False where there is none, or the slot is not to be had yet.

        What comes too late for this run stays unread.
        """
        answer = self.idle.answer()
        message = {"text": answer} if answer is not None else next_message(self.agent)
        if message is None:
            return False
        if not self.idle.wake():
            self.loop.call_later(SLICE_S, self._look)
            return False
        text = str(message.get("text") or "")
        if text.strip():
            self._tell(text, interrupt=bool(message.get("interrupt")))
        if answer is None:
            mark_read(self.agent)
        if message.get("close"):
            self.order = self.order._replace(keep=False)
            if self.finished is not None:
                self._hang_up()
        return True

    def _tell(self, text: str, *, interrupt: bool = False) -> None:
        self.finished = None
        self.recorder.input("told", text=text, interrupt=interrupt)
        self._do(self.dialogue.told(text, interrupt=interrupt))

    def _pass_on(self, key: str, answer: str) -> None:
        self.recorder.input("answered", key=key, answer=answer)
        self._do(self.dialogue.answered(key, answer))

    def _interrupt(self) -> None:
        """SIGINT: the protocol's own cancel, once; the shim sends SIGTERM when the grace period is over."""
        if self.is_interrupted:
            return
        was_idle = self.idle.is_idle
        self.is_interrupted = True
        self._stop_retry_clock()
        self.idle.end()
        self.questions.close_all("its worker is being stopped")
        if was_idle:
            self._hang_up()
        else:
            self.recorder.input("interrupted")
            actions = self.dialogue.interrupted()
            self._do(actions)
            if not actions:
                self.program.signal(signal.SIGINT)
        self.recorder.flush()

    def _terminated(self) -> None:
        """SIGTERM goes to the whole tree; the end of the program is waited for, and told."""
        self.is_interrupted = True
        self.program.signal(signal.SIGTERM)

    # -- what is done about it -----------------------------------------------------------------------------------

    def _do(self, actions: Iterable[Action]) -> None:
        """Carry out actions in their order; those that they bring about come behind."""
        is_outermost = not self._actions
        self._actions.extend(actions)
        if not is_outermost:
            return
        while self._actions:
            action = self._actions[0]
            self._carry_out(action)
            self._actions.popleft()

    def _carry_out(self, action: Action) -> None:
        match action:
            case Say(data):
                self.program.say(data)
            case HangUp():
                self._hang_up()
            case Note(row):
                self.recorder.row(row)
                if self.purse.note(row):
                    self._look_at_budget()
            case Ask():
                self._ask(action)
            case Withdraw(key):
                self.questions.close(key, "it was taken back")
            case SessionIs(session, model):
                self.recorder.session(self.driver.name, session, model)
            case _:
                self._take_word(action)

    def _take_word(self, word: Retrying | Progress | Finished | Stop) -> None:
        """Take the dialogue's word on how the agent gets on."""
        match word:
            case Retrying(reason, message):
                self._retrying(Outcome(reason=reason, message=message))
            case Progress():
                self._stop_retry_clock()
            case Finished(outcome):
                self._finish(outcome)
            case Stop(outcome):
                self._stop(outcome)

    def _ask(self, ask: Ask) -> None:
        """Answer a permission by the policy; whatever the policy leaves open is a person's to answer."""
        if self.is_interrupted:
            return
        if ask.tool is not None:
            answer = decide(self.order.permissions, ask.tool, ask.arguments or {})
            if answer != "ask":
                row = Row(RowType.NOTE, f"policy:{ask.key}", text=f"{answer}: {ask.tool}", parent=ask.asked_by)
                self.recorder.row(row._replace(phase=Phase.END, name="permission"))
                self._pass_on(ask.key, ask.allow if answer == "allow" else ask.deny)
                return
        self.recorder.flush()  # Whoever is told of the question finds what led to it.
        self.questions.put(ask)

    def _finish(self, outcome: Outcome) -> None:
        self._stop_retry_clock()
        self.purse.pay(outcome.cost_usd)
        self._look_at_budget()
        repair = None if self.is_interrupted or self.verdict else self.answer.repair(outcome)
        if repair is not None:
            self._tell(repair)
            return
        self.finished = self.answer.judged(outcome)
        self.recorder.flush()
        self.recorder.result(outcome)
        if self.is_interrupted or not self.order.keep:
            self._hang_up()
        elif next_message(self.agent) is None:
            self.idle.begin()
        else:
            self.loop.call_soon(self._look)

    def _hang_up(self) -> None:
        """Close the program's input; one that does not end is helped."""
        self.program.hang_up()
        if self._closing is None:
            self._closing = self.loop.call_later(_HANG_UP_S, self._terminate)

    def _stop(self, outcome: Outcome) -> None:
        """Stop the program for a cause that is none of its own endings."""
        if self.verdict is None:
            self.verdict = outcome
            self.questions.close_all("its agent failed")
            self._terminate()

    def _terminate(self) -> None:
        self.program.signal(signal.SIGTERM)
        self._closing = self.loop.call_later(_TERMINATE_S, self.program.signal, signal.SIGKILL)

    def _look_at_budget(self) -> None:
        """Stop where the tree has gone beyond a limit: whoever breaks it pays for it."""
        excess = self.purse.excess() if self.verdict is None else None
        if excess is not None:
            self._stop(Outcome(reason=Reason.BUDGET, message=excess))

    # -- retries that lead nowhere -------------------------------------------------------------------------------

    def _retrying(self, outcome: Outcome) -> None:
        if self._retries is None:
            ceiling = self.order.retry_ceiling_seconds
            outcome.message = f"{outcome.message} (it tried again for {ceiling:g} s)"
            self._retries = self.loop.call_later(ceiling, self._stop, outcome)

    def _stop_retry_clock(self) -> None:
        if self._retries is not None:
            self._retries.cancel()
            self._retries = None

    # -- the end -------------------------------------------------------------------------------------------------

    def _end(self, code: int) -> int:
        for kind, lines in enumerate(self._lines):
            rest = lines.rest()
            if rest and kind == 0:
                self._line(rest)
        self.idle.end()
        self.questions.close_all("its agent has ended")
        if self.error is not None:
            raise self.error
        outcome = self.verdict or self.finished or self.answer.judged(self.dialogue.ended(code))
        self.purse.pay(outcome.cost_usd)
        self.recorder.flush()
        self.recorder.result(self._complete(outcome))
        self.recorder.outcome(outcome)
        if self.is_interrupted:
            return _INTERRUPTED
        if outcome.reason is Reason.EXIT_CODE and code > 0:
            return code
        return _NATURAL if outcome.reason is None else _UNHAPPY

    def _complete(self, outcome: Outcome) -> Outcome:
        """Give an ending that the program did not tell itself what is known of its last turns."""
        known = self.dialogue.ended(0) if outcome is self.verdict else None
        if known is not None:
            outcome.final_message = outcome.final_message or known.final_message
            outcome.usage = outcome.usage or known.usage
            outcome.turns_used = outcome.turns_used or known.turns_used
            outcome.session = outcome.session or known.session
            outcome.model = outcome.model or known.model
            outcome.cost_usd = known.cost_usd if outcome.cost_usd is None else outcome.cost_usd
        return outcome
