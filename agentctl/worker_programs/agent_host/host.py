"""Runs one agent program for a worker: passes each event to its dialogue, and carries out the actions it returns.

One event loop waits for the program's output, the worker's folder (answers, messages), signals and deadlines.
Everything that the program prints is on disk before it is handled.
"""

from __future__ import annotations

import asyncio
import signal
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from agentctl.adapters.lines import LineBuffer
from agentctl.adapters.taskdir import WorkerDir
from agentctl.adapters.treedir import tree_of
from agentctl.adapters.watch import SAFETY_S, SLICE_S, Watch
from agentctl.domain.agent.driver_names import COMMAND
from agentctl.domain.states import OWN, Reason
from agentctl.domain.text.plaintext import whole
from agentctl.drivers.dialogue import (
    Action,
    AgentOutcome,
    Ask,
    Expect,
    Finished,
    HangUp,
    Note,
    Progress,
    Retrying,
    Say,
    SessionIs,
    StopProgram,
    UsageReported,
    Withdraw,
)
from agentctl.drivers.order import BY_OWN_SETTINGS
from agentctl.encoding import as_utf8
from agentctl.errors import AgentctlError
from agentctl.operations.talk.messaging import next_message
from agentctl.supervision.worker.whereabouts import Whereabouts
from agentctl.worker_programs.agent_host.account_windows import OwnAccount
from agentctl.worker_programs.agent_host.answer_check import FinalAnswer
from agentctl.worker_programs.agent_host.host_questions import Decided, ProgramQuestions, decided_by
from agentctl.worker_programs.agent_host.host_rows import again_row, home_rows, policy_row, tampered_row
from agentctl.worker_programs.agent_host.program.program_process import Patience, Program
from agentctl.worker_programs.agent_host.program.program_start import HeldSignals, StartedProgram
from agentctl.worker_programs.agent_host.records.full_disk import when_there_is_room
from agentctl.worker_programs.agent_host.records.idle_place import Idle
from agentctl.worker_programs.agent_host.records.inbox_reader import Inbox, Message
from agentctl.worker_programs.agent_host.records.outbox_reader import Outbox
from agentctl.worker_programs.agent_host.records.recorder import Recorder
from agentctl.worker_programs.agent_host.worktree_turns import TurnNotes

NATURAL, UNHAPPY, INTERRUPTED = 0, 1, 130


class Host:
    """One run of an agent program, from its start to its exit code.

    Args:
        changes: The fields in which the order differs from `spec.json`.
        signals: Those that arrived while this module was being loaded.
        may_try_again: A program that is busy with another start of it is started again instead of ending.
    """

    def __init__(
        self,
        worker: WorkerDir,
        started: StartedProgram,
        changes: Mapping[str, Any],
        signals: HeldSignals,
        *,
        may_try_again: bool = False,
    ) -> None:
        self.worker, self.started, self.changes, self.signals = worker, started, changes, signals
        self.order, self.driver, self.dialogue = started.order, started.driver, started.dialogue
        self.meter = started.meter
        self.recorder = Recorder(worker)
        policy = OWN if self.order.stance == BY_OWN_SETTINGS else None
        self.questions = ProgramQuestions(worker, self.order.marks, self.order.earlier_attempts + 1, policy)
        self.idle = Idle(worker)
        self.inbox = Inbox(worker, self.idle)
        self.outbox = Outbox(worker, started.outbox)
        self.account = OwnAccount(worker, self.order)
        self.answer = FinalAnswer(self.order)
        self.turns = TurnNotes(worker)
        self.where = Whereabouts(worker, tree_of(worker.task))
        #: The worker's folder is gone, or its task: the program is stopped, and nothing is written down any more.
        self.is_removed = False
        self.is_interrupted, self._may_try_again = False, may_try_again
        #: Why the program was stopped: nothing that it prints later changes this.
        self.verdict: AgentOutcome | None = None
        self.finished: AgentOutcome | None = None
        #: What a busy program has ended with, if there is another try: no outcome is written then.
        self.busy: AgentOutcome | None = None
        #: The messages that were passed to the dialogue.
        self.messages: list[str] = []
        self._actions: deque[Action | Decided] = deque()
        self._lines = (LineBuffer(), LineBuffer())
        self.error: Exception | None = None

    async def run(self) -> int:
        """Run the program to its end; return this process's exit code."""
        if self.order.session:
            self.recorder.session(self.driver.name, SessionIs(self.order.session, self.order.model))
        if self.started.process is None:
            refusal = self.started.refusal or AgentOutcome()
            if refusal.is_busy and self._may_try_again:
                self.busy = refusal
            else:
                self.recorder.outcome(refusal)
            return UNHAPPY
        self.loop = asyncio.get_running_loop()
        self.loop.set_exception_handler(self._broken)
        handlers: dict[int, Callable[[], None]] = {signal.SIGINT: self._interrupt, signal.SIGTERM: self._terminated}
        for number, handler in handlers.items():
            self.loop.add_signal_handler(number, handler)
        self.program = Program(self.started.process, self._output, self._errors, self._silent)
        self.patience = Patience(self.program, self.driver.lingers_s)
        with Watch([self.worker.inbox, self.worker.interactions, self.worker.outbox]) as watch:
            self.turns.begin()
            self.recorder.input("begin", **self.changes)
            if "again" in self.changes:
                self.recorder.row(again_row(self.order, self.changes["again"]))
            for row in home_rows(self.order):
                self.recorder.row(row)
            self._record_said(self.started.said)
            self._do(self.started.opening)
            self.signals.hand_on(handlers)
            self.folder_watch = _FolderWatch(watch, self._look)
            self.folder_watch.begin()
            code = await self.program.ended
            self.folder_watch.stop()
        self.turns.close()
        if self.started.offering is not None:
            self.started.offering.end()
        return self._end(code)

    def _broken(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Stop the program because a callback raised: its events might no longer be handled."""
        error = context.get("exception")
        self.error = error if isinstance(error, Exception) else RuntimeError(str(context.get("message")))
        self.patience.terminate()

    # -- events --------------------------------------------------------------------------------------------------

    def _output(self, chunk: bytes) -> None:
        self.recorder.raw(1, chunk)
        for line in self._lines[0].feed(chunk):
            self._line(line, len(line) + 1)
        self.recorder.flush()

    def _line(self, line: bytes, size: int) -> None:
        self.recorder.line_of(size)
        self._do(self.dialogue.received(line.rstrip(b"\r")))

    def _errors(self, chunk: bytes) -> None:
        self.recorder.raw(2, chunk)
        for line in self._lines[1].feed(chunk):
            self._do(self.dialogue.complained(line.rstrip(b"\r")))
        self.recorder.flush()

    def _silent(self) -> None:
        """Hang up on a program that has closed its output but lives on; a command may go on like this."""
        if self.order.driver != COMMAND:
            self.patience.hang_up()

    def _look(self) -> None:
        """Pass on new answers, messages and entries of the outbox; lend the slot of an idle agent.

        What the disk does not let it see is still there at the next look.
        """
        if self._is_out_of_place():
            return
        for part in (self._hear_answers, self._hear_messages, self._see_to_outbox):
            try:
                part()
            except (AgentctlError, OSError):
                if self._actions:  # What follows from an answer or a message was done in part.
                    raise
                self._look_again()
        self.recorder.flush()

    def _hear_answers(self) -> None:
        for ask, answer, reason in self.questions.answered():
            self._pass_on(ask.key, answer, reason=reason)
        for what, question in self.questions.take_tampered():
            self.recorder.row(tampered_row(what, question))

    def _hear_messages(self) -> None:
        for message in self.inbox.messages(self._is_open, self._look_again):
            self._hear(message)
        self.idle.lend(self._look_again)

    def _see_to_outbox(self) -> None:
        self.outbox.look(self._look_again)

    def _is_out_of_place(self) -> bool:
        """Return whether the worker's folder or its task is gone; stop the program once that has been so for long."""
        if self.where.lasting_loss() is not None and not self.is_removed:
            self.is_removed = True
            self.patience.terminate()
        elif self.where.is_in_doubt and not self.is_removed:
            self._look_again()
        return self.where.is_in_doubt

    def _look_again(self) -> None:
        self.folder_watch.again()

    def _is_open(self) -> bool:
        return not self.is_interrupted and not self.program.is_hung_up

    def _hear(self, message: Message) -> None:
        if message.text.strip():
            self._tell(message.text, interrupt=message.is_now)
        if message.is_last:
            self.order = self.order._replace(keep=False)
            if self.finished is not None:
                self.recorder.outcome(self.finished)
                self.patience.hang_up()

    def _tell(self, text: str, *, interrupt: bool = False) -> None:
        if self.finished is not None:
            self.turns.begin()
        self.finished = None
        self.messages.append(text)
        text = whole(as_utf8(text))
        self.recorder.input("told", text=text, interrupt=interrupt)
        self._do(self.dialogue.told(text, interrupt=interrupt))

    def _pass_on(self, key: str, answer: str, policy: Mapping[str, Any] | None = None, reason: str = "") -> None:
        answer = whole(as_utf8(answer))
        more = {name: value for name, value in (("policy", policy), ("reason", reason)) if value}
        self.recorder.input("answered", key=key, answer=answer, **more)
        if policy:
            self.recorder.row(policy_row(key, policy))
        self._do(self.dialogue.answered(key, answer, reason, by_rule=policy is not None))

    def _interrupt(self) -> None:
        """Cancel by the protocol's own means at the first SIGINT; after the grace period the shim sends SIGTERM."""
        if self.is_interrupted:
            return
        self.is_interrupted = True
        if self.where.loss() is not None:
            self.is_removed = True
            self.patience.terminate()
            return
        was_idle = self.idle.is_idle
        self.patience.got_on()
        self.idle.end("its worker is being stopped")
        self.questions.close_all("its worker is being stopped")
        if was_idle:
            self.patience.hang_up()
        else:
            self.recorder.input("interrupted")
            actions = self.dialogue.interrupted()
            self._do(actions)
            if not actions:
                self.program.signal(signal.SIGINT)
        self.recorder.flush()

    def _terminated(self) -> None:
        """Pass SIGTERM on, and wait for the end of the program."""
        self.is_interrupted = True
        self.program.signal(signal.SIGTERM)

    # -- actions -------------------------------------------------------------------------------------------------

    def _do(self, actions: Iterable[Action | Decided]) -> None:
        """Carry out actions in order; the actions that they cause come after them."""
        if self.is_removed:
            return
        is_outermost = not self._actions
        self._actions.extend(actions)
        if not is_outermost:
            return
        while self._actions:
            action = self._actions[0]
            self._carry_out(action)
            self._actions.popleft()

    def _carry_out(self, action: Action | Decided) -> None:
        match action:
            case Say(data):
                self._record_said(data)
                self.program.say(data)
            case HangUp():
                # Only an interrupted program has to end soon: the input of a `command` program is closed at its start.
                self.patience.hang_up() if self.is_interrupted else self.program.hang_up()
            case Note(row):
                self.recorder.row(row)
                if self.meter.note(row):
                    self._look_at_budget()
            case Ask():
                self._ask(action)
            case Decided(key, answer, policy):
                self._pass_on(key, answer, policy)
            case Withdraw(key):
                self.questions.close(key, "it was withdrawn")
            case SessionIs():
                self.recorder.session(self.driver.name, action)
            case UsageReported(windows):
                self.account.report(windows)
            case _:
                self._take_report(action)

    def _record_said(self, data: bytes) -> None:
        if self.driver.is_recorded and data:
            self.recorder.input("said", data=data.decode("utf-8", "replace"))

    def _take_report(self, report: Retrying | Expect | Progress | Finished | StopProgram) -> None:
        """Carry out an action about the progress or the end of the agent."""
        match report:
            case Retrying(reason, message):
                outcome = AgentOutcome(reason=reason, message=message)
                self.patience.retrying(self.order.retry_ceiling_seconds, outcome, self._stop)
            case Expect(seconds, outcome):
                self.patience.expect(seconds, outcome, self._stop)
            case Progress():
                self.patience.got_on()
            case Finished(outcome):
                self._finish(outcome)
            case StopProgram(outcome):
                self._stop(outcome)

    def _ask(self, ask: Ask) -> None:
        """Answer a permission by the policy; ask a person if the policy leaves it open."""
        if self.is_interrupted:
            return
        decided = decided_by(self.order, ask, self.questions.lasting)
        if decided is not None:
            self._do([decided])
            return
        self.recorder.flush()  # A reader of the question finds the rows that led to it.
        self.questions.put(ask)

    def _finish(self, outcome: AgentOutcome) -> None:
        self.patience.got_on()
        self.meter.pay(outcome.cost_usd)
        self._look_at_budget()
        repair = None if self.is_interrupted or self.verdict else self.answer.repair(outcome)
        if repair is not None:
            self._tell(repair)
            return
        self.finished = self.answer.judged(outcome)
        self.recorder.flush()
        self.recorder.result(self.finished, self.meter.spent)
        # Not kept: its account would refuse any message. It continues its session when the account may be used again.
        is_stopped = outcome.reason is Reason.RATE_LIMITED and self.account.holds()
        if self.is_interrupted or is_stopped or not self.order.keep:
            # Written now, so that it holds even if the program or this process is killed before its end.
            self.recorder.outcome(self.verdict or self.finished)
            self.patience.hang_up()
        else:
            self.turns.end_turn()
            if when_there_is_room(lambda: next_message(self.worker)) is None:
                self.idle.begin()
            self.loop.call_soon(self._look)

    def _stop(self, outcome: AgentOutcome) -> None:
        """Stop the program for a reason that it does not know itself."""
        if self.verdict is None and not self.is_removed:
            self.verdict = outcome
            self.questions.close_all("its agent failed")
            self.patience.terminate()

    def _look_at_budget(self) -> None:
        """Stop if the tree has gone beyond a limit: the agent that breaks a limit is the one that is stopped."""
        excess = self.meter.excess() if self.verdict is None else None
        if excess is not None:
            self._stop(AgentOutcome(reason=Reason.BUDGET, message=excess))

    # -- the end -------------------------------------------------------------------------------------------------

    def _end(self, code: int) -> int:
        if self.where.loss() is not None:
            return UNHAPPY
        if rest := self._lines[0].rest():
            self._line(rest, len(rest))
        self._do(self.dialogue.complained(self._lines[1].rest()))
        self.idle.end("its agent has ended")
        self.questions.close_all("its agent has ended")
        self.outbox.close()
        if self.error is not None:
            raise self.error
        outcome = self.verdict or self.finished or self.answer.judged(self.dialogue.ended(code))
        self.meter.pay(outcome.cost_usd)
        self.recorder.flush()
        if outcome.is_busy and self._may_try_again and not self.is_interrupted:
            self.busy = outcome
            return UNHAPPY
        self.recorder.result(self._complete(outcome), self.meter.spent)
        self.recorder.outcome(outcome)
        return _exit_code(outcome, code, is_interrupted=self.is_interrupted)

    def _complete(self, outcome: AgentOutcome) -> AgentOutcome:
        """Return the outcome; the host's own verdict gets the results of the program's last turns."""
        return outcome.filled(self.finished or self.dialogue.ended(0)) if outcome is self.verdict else outcome


def _exit_code(outcome: AgentOutcome, code: int, *, is_interrupted: bool) -> int:
    """Return the driver's exit code; `code` is the program's."""
    if is_interrupted:
        return INTERRUPTED
    if outcome.reason is Reason.EXIT_CODE and code > 0:
        return code
    return NATURAL if outcome.reason is None else UNHAPPY


class _FolderWatch:
    """Calls `look` after each change in the worker's folder, and periodically in any case."""

    def __init__(self, watch: Watch, look: Callable[[], None]) -> None:
        self._watch, self._look = watch, look
        self._loop = asyncio.get_running_loop()
        self._next: asyncio.TimerHandle | None = None
        self._every = SAFETY_S if watch.fd is not None else SLICE_S
        if watch.fd is not None:
            self._loop.add_reader(watch.fd, self._changed)

    def begin(self) -> None:
        """Look for the first time: there may be something in the folder already."""
        self._tick()

    def again(self) -> None:
        """Look again in a moment; several calls cause one look."""
        if self._next is not None:
            self._next.cancel()
        self._next = self._loop.call_later(SLICE_S, self._tick)

    def stop(self) -> None:
        """Stop looking."""
        if self._next is not None:
            self._next.cancel()
        if self._watch.fd is not None:
            self._loop.remove_reader(self._watch.fd)

    def _changed(self) -> None:
        self._watch.drain()
        self._look()

    def _tick(self) -> None:
        self._next = self._loop.call_later(self._every, self._tick)
        self._look()
