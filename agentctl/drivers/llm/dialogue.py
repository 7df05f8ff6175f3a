"""A conversation with our own agent program, which asks a model and carries out its tool calls (`plain_model`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from agentctl import __version__
from agentctl.domain.activity.row import CALL_ENDS, Phase, Row, RowType, message_text
from agentctl.domain.agent.permissions import OWN_SEARCH
from agentctl.domain.answers import DENIED, DENIED_BY_RULE
from agentctl.domain.question import ALLOW, DENY
from agentctl.domain.states import Reason
from agentctl.domain.tree.windows import window_from
from agentctl.drivers.complaints import Complaining
from agentctl.drivers.dialogue import (
    SILENT,
    Action,
    AgentOutcome,
    Ask,
    Driver,
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
from agentctl.drivers.llm.opening import HONOURS, conversation_of, llm_argv, llm_environ, opening_line, run_of
from agentctl.drivers.order import Order
from agentctl.drivers.values import (
    bounded_text,
    bounded_values,
    count_in,
    line_of,
    list_in,
    money_in,
    object_in,
    parse_line,
    signal_in,
    text_in,
)

_OPTIONS = (("allow", "Allow"), ("deny", "Deny"))
_MEANS = {"allow": ALLOW, "deny": DENY}
#: The tools, as rules name them, by which it looks into folders: it leaves out what a rule forbids.
_SEARCHING = frozenset({"Glob", "Grep"})
_REASONS = {reason.value: reason for reason in Reason}
#: Of more or longer ones nobody chooses.
_MOST_OPTIONS, _LONGEST_OPTION = 50, 500


class LlmDialogue(Complaining):
    """One run of the program: one conversation, with a turn for each message that does not join one."""

    def __init__(self, order: Order) -> None:
        super().__init__()
        self.order = order
        self.session = conversation_of(order)
        provider = order.provider
        self.model = f"{provider.get('name')}/{provider.get('model')}" if provider else order.model
        self.usage = {"input": 0, "output": 0, "cached": 0}
        self.cost_usd: float | None = None
        self.answer: str | None = None
        self.touched_files: list[str] = []
        #: Messages that were passed on, and how many of them the program has taken up.
        self.sent = self.taken = 0
        self.rounds = self.notes = 0
        self.outcome: AgentOutcome | None = None
        self.has_begun = self.is_interrupted = False
        #: The open questions: key -> whether it is a permission.
        self._open: dict[str, bool] = {}
        self._handlers: dict[str, Callable[[dict[str, Any]], Iterable[Action]]] = {
            "session": self._session,
            "text": self._text,
            "thought": self._thought,
            "tool_call": self._tool_call,
            "tool_result": self._tool_result,
            "usage": self._usage,
            "windows": self._windows,
            "ask": self._ask,
            "withdraw": self._withdraw,
            "retrying": self._retrying,
            "progress": self._progress,
            "compacted": self._compacted,
            "note": self._note,
            "turn_end": self._turn_end,
            "failed": self._failed,
        }

    # -- input ---------------------------------------------------------------------------------------------------

    def begin(self) -> Sequence[Action]:
        """Open the conversation, then send the prompt."""
        return [SessionIs(self.session, self.model), _say(opening_line(self.order)), *self._message(self.order.prompt)]

    def told(self, text: str, *, interrupt: bool) -> Sequence[Action]:
        """Pass on a message: it joins the running turn, or begins one."""
        return self._message(text, now=interrupt)

    def _message(self, text: str, *, now: bool = False) -> list[Action]:
        self.sent += 1
        self.outcome = self.answer = None  # What was said before answers something else.
        row = Row(RowType.MESSAGE, f"{run_of(self.order)}user-{self.sent}", name="user", text=bounded_text(text))
        return [Note(row), _say({"type": "prompt", "text": text, "now": now})]

    def answered(self, key: str, answer: str, reason: str = "", *, by_rule: bool = False) -> Sequence[Action]:
        """Pass on an answer."""
        is_permission = self._open.pop(key, None)
        if is_permission is None:
            return ()
        if not is_permission:
            return [_say({"type": "answer", "key": key, "text": answer})]
        if answer == "allow":
            return [_say({"type": "answer", "key": key, "allow": True})]
        said = reason or ("" if answer in {"deny", ""} else answer)
        denial = DENIED_BY_RULE if by_rule else f"{DENIED} {said}".strip()
        return [_say({"type": "answer", "key": key, "allow": False, "text": denial})]

    def interrupted(self) -> Sequence[Action]:
        """Break the turn off, and close the input, so that the program ends with the turn."""
        self.is_interrupted = True
        withdrawn = [Withdraw(key) for key in self._open]
        self._open.clear()
        return [*withdrawn, _say({"type": "interrupt"}), HangUp()]

    # -- output --------------------------------------------------------------------------------------------------

    def received(self, line: bytes) -> Sequence[Action]:
        """Handle a line; one outside the protocol is noted."""
        if not line.strip():
            return ()
        value = parse_line(line)
        if value is None:
            self.complaints.stray(line)
        handler = self._handlers.get(text_in(value.get("type"))) if value is not None else None
        if value is None or handler is None:
            return [self._noted(f"an unknown line: {line[:200].decode('utf-8', 'replace')}")]
        return list(handler(value))

    def _noted(self, text: str, name: str | None = None) -> Note:
        self.notes += 1
        return Note(Row(RowType.NOTE, f"{run_of(self.order)}note-{self.notes}", name=name, text=bounded_text(text)))

    def _session(self, line: dict[str, Any]) -> Iterable[Action]:
        self.has_begun = True
        # `resume` needs the name of the worker; what continues each other is one conversation, and has one name.
        self.session = text_in(line.get("session")) or self.session
        return ()

    def _text(self, line: dict[str, Any]) -> Iterable[Action]:
        self.answer = text_in(line.get("text"))
        return [Note(Row(RowType.MESSAGE, _id(line), text=message_text(self.answer)))]

    def _thought(self, line: dict[str, Any]) -> Iterable[Action]:
        return [Note(Row(RowType.THOUGHT, _id(line), text=bounded_text(text_in(line.get("text")))))]

    def _tool_call(self, line: dict[str, Any]) -> Iterable[Action]:
        detail = bounded_values(object_in(line.get("arguments")))
        name = bounded_text(text_in(line.get("name")))
        return [Note(Row(RowType.TOOL, _id(line), Phase.START, status="running", name=name, detail=detail))]

    def _tool_result(self, line: dict[str, Any]) -> Iterable[Action]:
        file, status = text_in(line.get("file")), text_in(line.get("status"))
        if file and file not in self.touched_files:
            self.touched_files.append(file)
        status = status if status in CALL_ENDS else "failed"
        text, name = bounded_text(text_in(line.get("text"))), bounded_text(text_in(line.get("name")))
        return [Note(Row(RowType.TOOL, _id(line), Phase.END, status=status, name=name, text=text))]

    def _usage(self, line: dict[str, Any]) -> Iterable[Action]:
        tokens = {name: count_in(line.get(name)) for name in self.usage}
        self.usage = {name: self.usage[name] + number for name, number in tokens.items()}
        if (cost := money_in(line.get("cost"))) is not None:
            self.cost_usd = (self.cost_usd or 0.0) + cost
        return [Note(Row(RowType.USAGE, _id(line), detail=tokens))]

    def _windows(self, line: dict[str, Any]) -> Iterable[Action]:
        found = (
            window_from(
                row.get("window"), row.get("usedPercent"), row.get("resetsAt"), is_rejected=row.get("isRejected")
            )
            for row in map(object_in, list_in(line.get("windows")))
        )
        windows = [window for window in found if window is not None]
        return [UsageReported(windows)] if windows else ()

    def _ask(self, line: dict[str, Any]) -> Iterable[Action]:
        key, tool = text_in(line.get("key")), text_in(line.get("tool"))
        self._open[key] = bool(tool)
        if not tool:
            options = [text for option in list_in(line.get("options")) if (text := text_in(option).strip())]
            is_plain = len(set(options)) == len(options) <= _MOST_OPTIONS and all(
                one.isprintable() and "," not in one and len(one) <= _LONGEST_OPTION for one in options
            )
            question = text_in(line.get("question"))
            if not is_plain:  # They cannot be ids: the person reads them, and writes an answer.
                return [Ask(key, "\n- ".join([question, *options]))]
            return [Ask(key, question, [(option, option) for option in options], other=bool(options))]
        arguments = object_in(line.get("arguments"))
        described = bounded_text(text_in(arguments.get("description")))
        own_name = OWN_SEARCH if tool in _SEARCHING else None
        return [Ask(key, described, _OPTIONS, tool=tool, arguments=arguments, means=_MEANS, own_name=own_name)]

    def _withdraw(self, line: dict[str, Any]) -> Iterable[Action]:
        key = text_in(line.get("key"))
        return [Withdraw(key)] if self._open.pop(key, None) is not None else ()

    def _retrying(self, line: dict[str, Any]) -> Iterable[Action]:
        reason = _REASONS.get(text_in(line.get("reason")), Reason.MODEL_ERROR)
        message = bounded_text(text_in(line.get("message")))
        return [self._noted(f"{message} (try {count_in(line.get('tries'))})"), Retrying(reason, message)]

    def _progress(self, line: dict[str, Any]) -> Iterable[Action]:
        return [Progress()]

    def _compacted(self, line: dict[str, Any]) -> Iterable[Action]:
        return [self._noted(f"the conversation was summed up: {text_in(line.get('text'))}", "compacted")]

    def _note(self, line: dict[str, Any]) -> Iterable[Action]:
        return [self._noted(text_in(line.get("text")))]

    # -- the end -------------------------------------------------------------------------------------------------

    def _turn_end(self, line: dict[str, Any]) -> Iterable[Action]:
        self.taken, self.rounds = count_in(line.get("taken")), count_in(line.get("rounds"))
        if self.taken < self.sent and not self.is_interrupted:
            return ()  # A message has crossed this line: its turn follows.
        message = bounded_text(text_in(line.get("message"))) or None
        if line.get("silent") is True:  # What it said before its last tools was no answer.
            self.answer, message = None, SILENT
        said = text_in(line.get("reason"))
        reason = _REASONS.get(said, Reason.SIGNAL) if said else None
        self.outcome = self._outcome(reason, message)
        return [Finished(self.outcome)]

    def _failed(self, line: dict[str, Any]) -> Iterable[Action]:
        reason = _REASONS.get(text_in(line.get("reason")), Reason.MODEL_ERROR)
        return [StopProgram(self._outcome(reason, bounded_text(text_in(line.get("message")))))]

    def _outcome(self, reason: Reason | None, message: str | None) -> AgentOutcome:
        return AgentOutcome(
            reason=reason,
            message=message,
            final_message=self.answer,
            turns_used=self.rounds,
            usage=dict(self.usage),
            cost_usd=self.cost_usd,
            model=self.model,
            session=self.session,
            touched_files=list(self.touched_files),
        )

    def ended(self, code: int) -> AgentOutcome:
        """Return the outcome: that of the last turn, unless there was more to come."""
        if self.outcome is not None:
            return self.outcome
        if (number := signal_in(code)) is not None:
            reason, how = Reason.SIGNAL, f"the program was ended by signal {number}"
        elif self.has_begun:
            reason, how = Reason.TRUNCATED, f"the program ended in the middle of its work, with exit code {code}"
        else:
            reason, how = Reason.NOT_STARTED, f"the program ended before it began, with exit code {code}"
        return self._outcome(reason, self.complaints.explain(how))


def _id(line: Mapping[str, Any]) -> str:
    return text_in(line.get("id")) or "-"


def _say(value: Mapping[str, Any]) -> Say:
    return Say(line_of(value))


DRIVER = Driver(
    name="llm",
    program="",
    is_ours=True,
    version_argv=(),
    tested=__version__,
    install="it is a part of agentctl",
    honours=HONOURS,
    argv=llm_argv,
    environ=llm_environ,
    dialogue=LlmDialogue,
    reports=frozenset({"tokens", "cost"}),
    asks=True,
)
