"""Turns the updates of a session into rows of activity.

Updates of different things may interleave in any way: what the activity then shows is the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from agentctl.domain.activity.row import Phase, Row, RowType, message_text
from agentctl.drivers.acp.tools import AcpCall, own_fields, parent_in
from agentctl.drivers.acp.wire import (
    AgentMessageChunk,
    AgentPlanUpdate,
    AgentThoughtChunk,
    ToolCallUpdate,
    meta_of,
    read_as_model,
)
from agentctl.drivers.values import bounded_text, bounded_values, object_in, text_in

#: Updates that change nothing that is shown here.
_QUIET = frozenset(
    {
        "user_message_chunk",
        "available_commands_update",
        "current_mode_update",
        "config_option_update",
        "session_info_update",
        "usage_update",
    }
)
#: Updates that are work of the agent: between two turns there are none, unless it began one by itself.
WORK = frozenset({"agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update"})
#: Updates by which an agent shows that it goes on after a denial.
GOES_ON = frozenset({"agent_message_chunk", "tool_call"})
_MOST_UNKNOWN = 100
_RANK = {"in_progress": "…", "completed": "✓", "pending": " "}


class _Speech:
    """A message or a thought of which more may come."""

    def __init__(self, row_id: str) -> None:
        self.row_id, self.has_words = row_id, False
        self._parts: list[str] = []

    def add(self, piece: str) -> None:
        self._parts.append(piece)
        self.has_words = self.has_words or bool(piece.strip())

    @property
    def text(self) -> str:
        return "".join(self._parts)


class AcpTranscript:
    """Turns updates into rows, and keeps what the outcome needs.

    Args:
        earlier: The number of earlier attempts of the same worker: the activity has their rows as well.
        servers: The names of the MCP servers that the agent was given.
    """

    def __init__(self, earlier: int = 0, servers: Collection[str] = ()) -> None:
        self._earlier, self._servers = earlier, servers
        self.session = ""
        #: Unknown kinds of updates, and how often each came.
        self.unknown: Counter[str] = Counter()
        self.touched: dict[str, None] = {}
        #: The agent's newest message; joined only where it is wanted, as it may come in a million pieces.
        self._answer: _Speech | None = None
        self.rounds = 0
        self._calls: dict[str, AcpCall] = {}
        self._ended: set[str] = set()
        #: The agent's own calls that have not ended.
        self._working: set[str] = set()
        #: (parent, kind) -> what is being said; message id -> what was said in this turn.
        self._open: dict[tuple[str | None, RowType], _Speech] = {}
        self._said: dict[tuple[str | None, RowType, str], _Speech] = {}
        self._counts: Counter[str] = Counter()
        #: The sub-agents with sessions of their own -> whether they are at work.
        self._sessions: dict[str, bool] = {}
        self._last_row: dict[str, Row] = {}
        self._handlers: dict[str, Callable[[Mapping[str, Any], str | None], Iterator[Row]]] = {
            "agent_message_chunk": self._message,
            "agent_thought_chunk": self._thought,
            "tool_call": self._tool,
            "tool_call_update": self._tool,
            "plan": self._plan,
        }

    @property
    def answer(self) -> str:
        """The agent's newest message of this turn."""
        return self._answer.text if self._answer is not None else ""

    def begin_turn(self) -> None:
        """Forget the answer of the turn before: an agent that says nothing more has given none."""
        self._answer = None

    def note_unknown(self, what: str) -> None:
        """Count something that is unknown; what is new beyond the first hundred is not told apart."""
        is_told = what in self.unknown or len(self.unknown) < _MOST_UNKNOWN
        self.unknown[what if is_told else "something else"] += 1

    def rows(self, params: Mapping[str, Any]) -> list[Row]:
        """Return the rows of a `session/update`; one of another session is that of a sub-agent."""
        update, parent = object_in(params.get("update")), self._parent_of(text_in(params.get("sessionId")))
        kind = text_in(update.get("sessionUpdate"))
        handler = self._handlers.get(kind)
        if handler is None:
            if kind not in _QUIET:
                self.note_unknown(bounded_text(f"update {kind or 'without a kind'}"))
            return []
        return [*self._announced(parent), *handler(update, parent)]

    def _parent_of(self, session: str) -> str | None:
        return session if session and self.session and session != self.session else None

    def _announced(self, session: str | None) -> Iterator[Row]:
        """Yield the first row of a sub-agent that has a session of its own."""
        if session and session not in self._sessions:
            self._sessions[session] = True
            yield Row(RowType.AGENT, session, Phase.START, status="running")

    def _sessions_ended(self, status: str) -> Iterator[Row]:
        """Yield the last rows of such sub-agents: nothing tells the end of one, but it works in the agent's turn."""
        for session, is_at_work in self._sessions.items():
            if is_at_work:
                self._sessions[session] = False
                yield Row(RowType.AGENT, session, Phase.END, status=status)

    # -- words -----------------------------------------------------------------------------------------------------

    def _message(self, update: Mapping[str, Any], parent: str | None) -> Iterator[Row]:
        yield from self._chunk(read_as_model(AgentMessageChunk, update), RowType.MESSAGE, parent)

    def _thought(self, update: Mapping[str, Any], parent: str | None) -> Iterator[Row]:
        yield from self._chunk(read_as_model(AgentThoughtChunk, update), RowType.THOUGHT, parent)

    def _chunk(
        self, chunk: AgentMessageChunk | AgentThoughtChunk | None, kind: RowType, parent: str | None
    ) -> Iterator[Row]:
        if chunk is None:
            self.note_unknown(f"invalid {kind}")
            return
        parent = parent_in(own_fields(meta_of(chunk))) or parent
        other = RowType.THOUGHT if kind is RowType.MESSAGE else RowType.MESSAGE
        yield from self._close(parent, other)
        speech = self._open.get((parent, kind))
        if chunk.message_id:
            row_id = self._unique(f"{kind}:{chunk.message_id}")
            if speech is not None and speech.row_id != row_id:
                yield from self._close(parent, kind)
            speech = self._said.setdefault((parent, kind, row_id), _Speech(row_id))
        elif speech is None:
            self._counts[f"{parent or ''}{kind}"] += 1
            number = self._counts[f"{parent or ''}{kind}"]
            speech = _Speech(self._unique(f"{kind}:{parent + ':' if parent else ''}{number}"))
        self._open[parent, kind] = speech
        speech.add(text_in(getattr(chunk.content, "text", None)))
        if kind is RowType.MESSAGE and parent is None and speech.has_words:
            self._answer = speech

    def _close(self, parent: str | None, kind: RowType) -> Iterator[Row]:
        speech = self._open.pop((parent, kind), None)
        if speech is not None and speech.has_words:
            text = (
                message_text(speech.text) if kind is RowType.MESSAGE and parent is None else bounded_text(speech.text)
            )
            yield Row(kind, speech.row_id, parent=parent, text=text)

    def _fall_silent(self, parent: str | None) -> Iterator[Row]:
        yield from self._close(parent, RowType.THOUGHT)
        yield from self._close(parent, RowType.MESSAGE)

    def told(self, texts: Sequence[str]) -> list[Row]:
        """Return the rows of messages to the agent."""
        rows = []
        for text in texts:
            self._counts["user"] += 1
            row_id = self._unique(f"user:{self._counts['user']}")
            rows.append(Row(RowType.MESSAGE, row_id, name="user", text=bounded_text(text)))
        return rows

    # -- tools -----------------------------------------------------------------------------------------------------

    def asked(self, update: ToolCallUpdate, session: str) -> tuple[AcpCall, list[Row]]:
        """Return the tool call that a request of a session is about, and the rows of what it interrupts.

        One that has ended is over: a request under its id is for another call, and shows nothing of it.
        """
        if update.tool_call_id not in self._ended:
            parent = self._parent_of(session)
            was_withheld = update.tool_call_id in self._calls and update.tool_call_id not in self._last_row
            first = list(self._announced(parent))
            call, rows = self._taken(update, parent)
            return call, [*first, *rows, *(self._news(call, is_asked=True) if was_withheld else ())]
        call = AcpCall(update.tool_call_id, self._servers)
        call.take(update)
        return call, []

    def _taken(self, update: ToolCallUpdate, parent: str | None) -> tuple[AcpCall, list[Row]]:
        """Return a tool call with what is new of it; the first that is heard of it begins it, update or request."""
        is_new = update.tool_call_id not in self._calls
        call = self._calls.setdefault(update.tool_call_id, AcpCall(update.tool_call_id, self._servers))
        call.take(update)
        call.parent = call.parent or parent
        if not is_new:
            return call, []
        self._count_round(call)
        return call, list(self._fall_silent(call.parent))

    def _tool(self, update: Mapping[str, Any], parent: str | None) -> Iterator[Row]:
        said = read_as_model(ToolCallUpdate, update)
        if said is None:
            self.note_unknown("invalid tool call")
            return
        if said.tool_call_id in self._ended:
            return
        call, rows = self._taken(said, parent)
        yield from rows
        yield from self._news(call)

    def _news(self, call: AcpCall, *, is_asked: bool = False) -> Iterator[Row]:
        """Yield the row of a call, if that is not the last one of it; it begins once its arguments are written.

        Args:
            is_asked: It waits for leave, so that it has to be seen: it may well be one without arguments.
        """
        row = self._row(call)
        if (call.is_being_written and not is_asked) or self._last_row.get(call.id) == row:
            return
        is_first, self._last_row[call.id] = call.id not in self._last_row, row
        if not is_first and row.phase is Phase.START:
            row = row._replace(phase=Phase.PROGRESS)
        if call.has_ended:
            self._ended.add(call.id)
            self._working.discard(call.id)
            self.touched |= dict.fromkeys(call.touched())
            if call.is_agent:
                yield from self._fall_silent(call.id)
            del self._last_row[call.id]
            call.let_go()
        yield row

    def _count_round(self, call: AcpCall) -> None:
        """Count a round of tools: calls that begin while others are under way belong to the same round."""
        if call.parent is None:
            self.rounds += int(not self._working)
            self._working.add(call.id)

    def denied(self, call: AcpCall) -> None:
        """Take a call that was denied for over: calls that begin from now on belong to another round."""
        self._working.discard(call.id)

    def _row(self, call: AcpCall) -> Row:
        is_agent, ended = call.is_agent, call.has_ended
        return Row(
            RowType.AGENT if is_agent else RowType.TOOL,
            call.id,
            Phase.END if ended else Phase.START,
            parent=call.parent,
            status=call.status if ended else "running",
            agent_type=call.agent_type if is_agent else None,
            name=bounded_text(call.title or call.name) if is_agent else call.name,
            text=call.result() or None if ended else None,
            detail=call.sub_agent_detail() if is_agent else bounded_values(call.telling_arguments()) or None,
        )

    # -- the rest --------------------------------------------------------------------------------------------------

    def _plan(self, update: Mapping[str, Any], parent: str | None) -> Iterator[Row]:
        plan = read_as_model(AgentPlanUpdate, update)
        if plan is None:
            self.note_unknown("invalid plan")
            return
        lines = [f"[{_RANK.get(entry.status, ' ')}] {entry.content}" for entry in plan.entries]
        self._counts["plan"] += 1
        row_id = self._unique(f"plan:{self._counts['plan']}")
        yield Row(RowType.MESSAGE, row_id, parent=parent, name="plan", text=bounded_text("\n".join(lines)))

    def end_turn(self, *, is_cancelled: bool) -> list[Row]:
        """Return the last rows of a turn; calls that were still open are cancelled with it, if it was."""
        rows = [row for parent in {parent for parent, _ in self._open} for row in self._fall_silent(parent)]
        self._said.clear()
        self._working.clear()
        for call in self._calls.values() if is_cancelled else ():
            if not call.has_ended and call.id not in self._ended:
                self._ended.add(call.id)
                rows.append(self._row(call)._replace(phase=Phase.END, status="cancelled"))
        return [*rows, *self._sessions_ended("cancelled" if is_cancelled else "completed")]

    def agent_type_of(self, agent: str | None) -> str | None:
        """Return the type of a sub-agent, by its id."""
        call = self._calls.get(agent) if agent else None
        return call.agent_type if call else None

    def _unique(self, name: str) -> str:
        return f"{name}:{self._earlier}" if self._earlier else name
