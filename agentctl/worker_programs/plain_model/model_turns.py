"""The loop of an agent: the model answers, its tools are carried out, and so on until it calls none."""

from __future__ import annotations

import itertools
import queue
import re
import threading
from collections.abc import Mapping
from typing import Any

from agentctl.domain.activity.row import REPORTED
from agentctl.domain.states import Reason
from agentctl.domain.text.plaintext import whole
from agentctl.lean import NamedTuple
from agentctl.worker_programs.plain_model.compaction import ASK, SYSTEM, as_text, first_kept, is_full, shrunk, size_of
from agentctl.worker_programs.plain_model.history import MESSAGES, Conversation, Record, messages_for_model
from agentctl.worker_programs.plain_model.host_channel import SharedParts
from agentctl.worker_programs.plain_model.model.answer import LENGTH, MOST_CALLS, AnswerUsage, ModelAnswer, ToolCall
from agentctl.worker_programs.plain_model.model.model_call import Model, Partial
from agentctl.worker_programs.plain_model.model.refusals import Failure
from agentctl.worker_programs.plain_model.model.request import ModelRequest
from agentctl.worker_programs.plain_model.toolbox.tool_calls import Result, ToolCalls

_MILLION = 1_000_000
_LONGEST_ID = 200
#: How the ids of messages, thoughts and notes begin.
_OURS = re.compile(r"(?:r\d+-)?(?:m\d|user-|note-)")
#: How often a conversation that a server finds too long is summed up before that counts as its end.
_MOST_SUMMARIES = 2


class Prompt(NamedTuple):
    """A message of the person; `is_now` breaks off what is under way."""

    text: str
    is_now: bool = False


class RunBounds(NamedTuple):
    """How far an agent may go, and what the ids of this run begin with: no two of one worker are the same."""

    run: str = ""
    max_turns: int | None = None
    max_budget_usd: float | None = None


class Ending(Exception):
    """The turn ends: for a reason, or (None) since it was broken off."""

    def __init__(self, reason: Reason | None, message: str) -> None:
        super().__init__(message)
        self.reason, self.message = reason, message


def is_id_of_call(text: str) -> bool:
    """Return whether a server's id of a call can stand in the activity: no other row there has it.

    >>> is_id_of_call("call_8f2"), is_id_of_call("user-1"), is_id_of_call("report-1")
    (True, False, False)
    """
    is_ours = _OURS.match(text) or text.startswith(REPORTED)
    return 0 < len(text) <= _LONGEST_ID and text.isprintable() and not is_ours


class TurnLoop:
    """One agent: its conversation, its model, its tools.

    Args:
        template: A request without its messages.
        provider: As an order has it: context and prices of the model.
    """

    def __init__(
        self, shared: SharedParts, model: Model, tools: ToolCalls, conversation: Conversation, template: ModelRequest,
        provider: Mapping[str, Any], bounds: RunBounds,
    ) -> None:  # fmt: skip
        self._prompts: queue.SimpleQueue[Prompt | None] = queue.SimpleQueue()
        #: Held while a message is put or taken, so that it never breaks off the turn that begins with it.
        self._lock = threading.Lock()
        self._is_busy = self._is_cancelled = False
        self._host, self._breaker, _ = shared
        self._model, self._tools = model, tools
        self._conversation, self._template, self._bounds, self._run = conversation, template, bounds, bounds.run
        self._context: int | None = provider.get("context")
        self._prices: Mapping[str, float] = provider.get("prices") or {}
        self._answers = self._taken = self._rounds = self._uncounted = 0
        #: The tokens of the conversation as the last answer counted them.
        self._used = size_of(messages_for_model(conversation.records))
        self._spent: float | None = None
        self._ids = {call["id"] for one in conversation.records if one["type"] == "assistant" for call in one["calls"]}

    def tell(self, prompt: Prompt) -> None:
        """Take a message, from another thread: for the next request to the model, or a turn of its own."""
        with self._lock:
            self._prompts.put(prompt)
            if prompt.is_now and self._is_busy:
                self._breaker.trip()

    def cancel(self) -> None:
        """Break off what is under way, from another thread; no turn begins any more."""
        with self._lock:
            self._is_cancelled = True
            self._prompts.put(None)
            self._breaker.trip()

    def run(self) -> None:
        """Take turns until nothing more comes."""
        while (prompt := self._prompts.get()) is not None:
            with self._lock:
                if self._is_cancelled:
                    return
                self._is_busy = True
                self._breaker.reset()
            self._turn(prompt)
            with self._lock:
                self._is_busy = False

    def _turn(self, prompt: Prompt) -> None:
        reason, message, is_silent = None, None, False
        try:
            try:
                self._take(prompt)
                is_silent = not self._rounds_of_turn().text.strip()
            finally:
                self._conversation.sync()
        except Ending as ending:
            reason, message = ending.reason or "interrupted", ending.message
        except Failure as failure:
            reason, message = failure.reason, failure.message
        fields = {"taken": self._taken, "rounds": self._rounds, "silent": is_silent}
        self._host.say("turn_end", reason=reason, message=message, **fields)

    def _rounds_of_turn(self) -> ModelAnswer:
        """Return the last answer."""
        while True:
            try:
                answer = self._answer()
            except Partial as partial:
                self._keep_partial(partial.answer)
                self._go_on_or_end()
                self._check_budget()
                continue
            calls = self._note_answer(answer)
            if answer.finish == LENGTH:
                raise Ending(Reason.TRUNCATED, "the answer was cut off: the model reached the most that it may answer")
            if calls:
                self._rounds += 1
                self._tools.run_all(calls, self._note_result)
                self._conversation.sync()
                if self._breaker.is_broken:
                    self._go_on_or_end()
                else:
                    self._take_all()
                self._check_turns()
            elif not self._take_all():
                return answer

    def _check_budget(self) -> None:
        most = self._bounds.max_budget_usd
        if most is not None and self._spent is not None and self._spent >= most:
            raise Ending(Reason.BUDGET, f"it has used up its limit of {most:g} US dollars")

    def _check_turns(self) -> None:
        most = self._bounds.max_turns
        if most is not None and self._rounds >= most:
            raise Ending(Reason.MAX_TURNS, f"it has used up its {most} turns")

    # -- what the person says ------------------------------------------------------------------------------------

    def _take(self, prompt: Prompt) -> None:
        self._taken += 1
        self._add({"type": "user", "text": whole(prompt.text)})

    def _take_all(self) -> bool:
        """Take the messages that have come, which break nothing off any more; return whether there were any."""
        taken = []
        with self._lock:
            if self._is_cancelled:
                return False
            while not self._prompts.empty():
                taken.append(self._prompts.get())
            if taken:
                self._breaker.reset()
        for prompt in taken:
            if prompt is not None:
                self._take(prompt)
        return bool(taken)

    def _go_on_or_end(self) -> None:
        """Go on with the message for which it was broken off; end the turn where there is none."""
        if not self._take_all():
            raise Ending(None, "it was interrupted in the middle of its turn")

    # -- the model -----------------------------------------------------------------------------------------------

    def _answer(self) -> ModelAnswer:
        """Ask the model; sum the conversation up where it is too long."""
        if is_full(self._used + self._uncounted, self._context):
            self._sum_up()
        for tries in range(_MOST_SUMMARIES + 1):
            self._conversation.sync()
            try:
                return self._model.answer(self._template._replace(records=self._view()), self._count)
            except Failure as failure:
                if failure.reason is not Reason.CONTEXT or tries == _MOST_SUMMARIES:
                    raise
                self._context = failure.limit or shrunk(max(self._used, size_of(self._view())))
                if not self._sum_up():
                    raise
        raise AssertionError("the last try returns or raises")

    def _view(self) -> list[Record]:
        return messages_for_model(self._conversation.records)

    def _sum_up(self) -> bool:
        """Have the model sum up the older part of the conversation; return whether there was any."""
        context = self._context or 0
        view = self._view()
        kept = first_kept(view, context)
        if kept == 0:
            return False
        text = f"{as_text(view[:kept], context)}\n\n{ASK}"
        request = self._template._replace(system=SYSTEM, tools=(), records=[{"type": "user", "text": text}])
        try:
            answer = self._model.answer(request, self._count)
        except Partial as partial:
            # Half a summary is nothing that the agent has said.
            raise Partial(ModelAnswer(usage=partial.answer.usage)) from None
        self._count(answer.usage)
        if not answer.text.strip():
            return False
        messages = sum(record["type"] in MESSAGES for record in self._conversation.records)
        self._conversation.add({"type": "summary", "text": answer.text, "kept": messages - (len(view) - kept)})
        self._conversation.sync()
        self._used, self._uncounted = size_of(self._view()), 0
        self._host.say("compacted", id=self._next_id(), text=answer.text)
        return True

    def _next_id(self) -> str:
        self._answers += 1
        return f"{self._run}m{self._answers}"

    def _note_answer(self, answer: ModelAnswer) -> list[ToolCall]:
        """Write an answer down, and tell of it; return its calls, each with an id of its own."""
        at = self._next_id()
        calls = [] if answer.finish == LENGTH else [
            call._replace(id=self._own_id(call.id, f"{at}-{number}"))
            for number, call in enumerate(answer.calls[:MOST_CALLS])
        ]  # fmt: skip
        if len(answer.calls) > MOST_CALLS:
            self._host.say("note", text=f"more than {MOST_CALLS} calls in one answer: the others are left out")
        self._add(
            {
                "type": "assistant", "text": answer.text, "thought": answer.thought, "model": self._template.model,
                "calls": [_call_record(call) for call in calls], "sealed": list(answer.sealed),
            }
        )  # fmt: skip
        self._conversation.sync()
        self._tell(at, answer)
        self._count(answer.usage, at)
        if answer.usage is not None:
            self._used, self._uncounted = answer.usage.total, 0
        return calls

    def _tell(self, at: str, answer: ModelAnswer) -> None:
        if answer.thought.strip():
            self._host.say("thought", id=f"{at}-thought", text=answer.thought)
        if answer.text.strip():
            self._host.say("text", id=at, text=answer.text)

    def _own_id(self, call_id: str, other: str) -> str:
        """Return an id that no other call of the conversation has, which may be older than this run."""
        counted = (f"{other}.{number}" for number in itertools.count(2))
        ids = itertools.chain([call_id] if is_id_of_call(call_id) else [], [other], counted)
        found = next(one for one in ids if one not in self._ids)
        self._ids.add(found)
        return found

    def _keep_partial(self, answer: ModelAnswer) -> None:
        """Write down what the model had said before it was broken off, without calls that were never made."""
        self._note_usage(answer.usage)
        if answer.text.strip():
            at = self._next_id()
            self._add({"type": "assistant", "text": answer.text, "thought": "", "calls": [], "sealed": []})
            self._tell(at, answer._replace(thought=""))

    def _count(self, usage: AnswerUsage | None, at: str | None = None) -> None:
        """Count what an answer has cost; end the turn where that was the last of the money."""
        self._note_usage(usage, at)
        self._check_budget()

    def _note_usage(self, usage: AnswerUsage | None, at: str | None = None) -> None:
        if usage is None:
            return
        cost = usage.cost if usage.cost is not None else self._cost(usage.input, usage.output, usage.cached)
        if cost is not None:
            self._spent = (self._spent or 0.0) + cost
        fields = {"input": usage.input, "output": usage.output, "cached": usage.cached}
        self._host.say("usage", id=at or self._next_id(), **fields, cost=cost)

    def _cost(self, fresh: int, output: int, cached: int) -> float | None:
        if "input" not in self._prices or "output" not in self._prices:
            return None
        of_cached = self._prices.get("cached", self._prices["input"])
        return (fresh * self._prices["input"] + output * self._prices["output"] + cached * of_cached) / _MILLION

    def _note_result(self, call: ToolCall, result: Result) -> None:
        self._add({"type": "result", "call": call.id, "name": call.name, "text": result.text, "status": result.status})

    def _add(self, record: Record) -> None:
        self._conversation.add(record)
        self._uncounted += size_of([record])


def _call_record(call: ToolCall) -> Record:
    arguments = dict(call.arguments) if call.arguments is not None else {}
    return {"id": call.id, "name": call.name, "arguments": arguments, "extra": dict(call.extra)}
