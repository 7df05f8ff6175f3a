"""Turns the rows of a worker's activity into the protocol's updates: each thing once, however often its rows come.

Calls and sub-agents are tool calls, and what a sub-agent does has the call of that sub-agent in its `_meta`. The same
rows give the same updates, whether they are read while they are written or all at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Any

from agentctl.domain.activity.row import PROMPT, Phase, RowType, are_arguments_told
from agentctl.domain.activity.rows import Line
from agentctl.domain.activity.seen import SeenHashes
from agentctl.drivers.values import bounded_values
from agentctl.interfaces.editor.updates.client_bounds import bounded_json, pieces_of_text
from agentctl.interfaces.editor.updates.contents import Content, as_said, as_written, output_content, text_content
from agentctl.interfaces.editor.updates.tool_cards import call_fields, plan_in
from agentctl.interfaces.words.activity import row_label, short_line, string
from agentctl.lean import NamedTuple

Update = dict[str, Any]
COMPLETED, FAILED, IN_PROGRESS, PENDING = "completed", "failed", "in_progress", "pending"
#: Notes about what a driver did not understand, and about what a rule has decided: nobody has to act on them.
_QUIET_NOTES = frozenset({"unknown", "permission"})
#: What a program, or its driver, says: no Markdown.
_OF_PROGRAMS = (RowType.NOTE, RowType.PROGRESS)
_LONGEST_ID = 200
#: Rows of more sub-agents are shown as if the worker itself had done them.
_MOST_AGENTS = 20_000
#: A text of which more comes is one of the newest.
_MOST_GROWING = 100


class CallPlace(NamedTuple):
    """Where in a session a worker stands."""

    #: TASK/INSTANCE: it makes the ids of calls unique in the session.
    name: str
    #: The working folder.
    cwd: str = "/"
    #: The tool call that stands for the worker; None for the worker that the session is.
    call: str | None = None
    #: How many workers and sub-agents are above what it does.
    depth: int = 0


class _CallFacts(NamedTuple):
    """What the rows of a call, or of a sub-agent, have told of it: one may lack what another had."""

    name: str | None = None
    agent_type: str | None = None
    detail: Mapping[str, Any] | None = None

    def with_row(self, line: Line) -> _CallFacts:
        """Return it with what one more row tells; arguments that are told change only while the call is under way."""
        name, agent_type = string(line.fields.get("name")), string(line.fields.get("agentType"))
        detail, is_settled = line.fields.get("detail"), line.phase != Phase.PROGRESS and are_arguments_told(self.detail)
        is_more = isinstance(detail, dict) and detail and not is_settled
        return _CallFacts(name or self.name, agent_type or self.agent_type, detail if is_more else self.detail)


class _Open(NamedTuple):
    """A tool call that has begun and not ended."""

    call: str
    facts: _CallFacts
    #: Shown as a plan, so that it has no card of its own.
    is_plan: bool = False
    #: What it would do, which stays above what comes of it: each content takes the place of the one before.
    change: tuple[Content, ...] = ()
    #: What has come of it so far.
    said: tuple[Content, ...] = ()


class _GrowingTexts:
    """How much was told of the newest texts: a program may go on with one after a thought or a call."""

    def __init__(self) -> None:
        self._seen = SeenHashes()
        #: Of the newest: key -> the length, and the hash, of what was told.
        self._heads: dict[int, tuple[int, int]] = {}

    def take(self, key: int, text: str) -> int | None:
        """Return how many characters of a text were told before, and note that all are now; None if nothing is new."""
        length, head = self._heads.get(key, (0, hash("")))
        is_known = key in self._seen
        if is_known and (key not in self._heads or len(text) <= length or hash(text[:length]) != head):
            return None
        self._seen.add(key)
        self._heads.pop(key, None)
        self._heads[key] = len(text), hash(text)
        if len(self._heads) > _MOST_GROWING:
            del self._heads[next(iter(self._heads))]
        return length


class WorkerUpdates:
    """The updates about one worker.

    Args:
        with_user: What the user said is told too, as when a conversation is loaded.
    """

    def __init__(self, place: CallPlace, *, with_user: bool = False) -> None:
        self.place, self.with_user = place, with_user
        self._open: dict[bytes, _Open] = {}
        self._over = SeenHashes()
        self._texts = _GrowingTexts()
        #: Id of a sub-agent -> its depth.
        self._agents: dict[bytes, int] = {}
        #: Messages of this session's user, which its client shows already.
        self._expected: list[str] = []
        #: Kind and id of the last piece of text: another text of the same kind is set apart from it.
        self._last = ("", b"")
        #: Whether the worker itself has said anything since this was last set to False.
        self.has_spoken = False

    def expect(self, text: str) -> None:
        """Note a message that the client shows already."""
        self._expected.append(_head_of(text))

    def take(self, line: Line) -> Iterator[Update]:
        """Yield the updates of a row."""
        match line.kind:
            case RowType.MESSAGE | RowType.THOUGHT | RowType.NOTE | RowType.PROGRESS:
                yield from self._speech(line)
            case RowType.TOOL | RowType.AGENT:
                self._last = ("", b"")
                yield from self._call(line)

    def close(self) -> Iterator[Update]:
        """Yield the ends of calls that are still open: the worker has ended, or stopped."""
        self._last = ("", b"")
        for id_, call in list(self._open.items()):
            del self._open[id_]
            self._over.add(hash(id_))
            if not call.is_plan:
                yield {"sessionUpdate": "tool_call_update", "toolCallId": call.call, "status": FAILED}

    def open_call(self, tool: str, arguments: object) -> str | None:
        """Return the id of the open call that a request for permission is about; None if that is unclear.

        It is the call of that tool with these arguments, else the only one of that tool. A program may name the tool as
        rules do (`Bash`), and its call as the model does (`shell`): without a call of that tool, the arguments tell.
        """
        calls = [one for one in self._open.values() if not one.is_plan]
        mine = [one for one in calls if one.facts.name == tool]
        same = [one for one in mine or calls if _has(one.facts.detail, arguments)] or mine
        return same[0].call if len(same) == 1 else None

    def meta_below(self, asked_by: object) -> dict[str, Any]:
        """Return the `_meta` of something that the worker does, or a sub-agent of it if one of that id is known."""
        agent_id = asked_by.encode("utf-8", "surrogatepass") if isinstance(asked_by, str) else b""
        found: dict[str, Any] = self._head(b"", agent_id if agent_id in self._agents else b"")["_meta"]
        return found

    # -- what is said --------------------------------------------------------------------------------------------

    def _speech(self, line: Line) -> Iterator[Update]:
        text, key = string(line.fields.get("text")) or "", hash((line.id, line.kind))
        text = text.removesuffix("\r")  # The other half of a line's end may come with the rest of the text.
        if line.kind == RowType.PROGRESS:
            text = row_label({**line.fields, "type": line.kind})
        before = self._texts.take(key, text) if line.phase == Phase.END and text else None
        if before is None:
            return
        if line.kind == RowType.NOTE and line.fields.get("name") in _QUIET_NOTES:
            return
        is_user = line.kind == RowType.MESSAGE and line.fields.get("name") == "user"
        if is_user and before:
            return
        if line.parent or self.place.call is not None:
            if not is_user and line.kind != RowType.THOUGHT:
                yield from self._said_below(line, as_written(text) if line.kind in _OF_PROGRAMS else text)
        elif is_user:
            yield from self._said_by_user(line, text)
        elif line.kind in _OF_PROGRAMS:
            shown = as_written(text[before:])
            is_apart = before > 0 or shown != as_said(text)
            yield from self._chunks("agent_thought_chunk", shown, line, is_apart=is_apart)
        else:
            self.has_spoken = self.has_spoken or line.kind == RowType.MESSAGE
            kind = "agent_message_chunk" if line.kind == RowType.MESSAGE else "agent_thought_chunk"
            yield from self._chunks(kind, text[before:], line)

    def _said_by_user(self, line: Line, text: str) -> Iterator[Update]:
        is_known = _head_of(text) in self._expected
        if is_known:
            self._expected.remove(_head_of(text))
        if not is_known or self.with_user:
            yield from self._chunks("user_message_chunk", text, line)

    def _chunks(self, kind: str, text: str, line: Line, *, is_apart: bool = False) -> Iterator[Update]:
        apart = "\n\n" if is_apart or (self._last[0] == kind and self._last[1] != line.id) else ""
        self._last = (kind, line.id)
        for piece in pieces_of_text(apart + as_said(text)):
            content = {"type": "text", "text": piece}
            yield {"sessionUpdate": kind, "messageId": self._call_id(line.id), "content": content}

    def _said_below(self, line: Line, text: str) -> Iterator[Update]:
        """Show what a sub-agent, or a worker below, has said last in its own card."""
        call, content = self.place.call, text_content(text)
        if line.parent:
            yield from self._known_agent(line.parent)
            agent = self._open.get(line.parent)
            call = agent.call if agent is not None else None
            if agent is not None:
                self._open[line.parent] = agent._replace(said=(*content,))
        if call is not None:
            yield {"sessionUpdate": "tool_call_update", "toolCallId": call, "content": content}

    # -- calls and sub-agents ------------------------------------------------------------------------------------

    def _call(self, line: Line) -> Iterator[Update]:
        if line.parent:
            yield from self._known_agent(line.parent)
        key, is_agent = hash(line.id), line.kind == RowType.AGENT
        if is_agent and line.id not in self._agents and len(self._agents) < _MOST_AGENTS:
            self._agents[line.id] = self._depth_of(line.parent) + 1
        if key in self._over:
            return
        known = self._open.get(line.id)
        if known is None:
            yield from self._begin(line)
        elif not known.is_plan:
            yield from self._more_of(known, line)
        if known is not None or line.phase == Phase.END:
            yield from self._go_on(line)

    def _begin(self, line: Line) -> Iterator[Update]:
        facts = _CallFacts().with_row(line)
        entries = None if line.parent or self.place.call is not None else plan_in(facts.name or "", facts.detail)
        fields, change = self._fields_of(line, facts)
        self._open[line.id] = _Open(self._call_id(line.id), facts, is_plan=entries is not None, change=change)
        if entries is not None:
            yield {"sessionUpdate": "plan", "entries": entries}
            return
        yield {"sessionUpdate": "tool_call", **self._head(line.id, line.parent), "status": IN_PROGRESS, **fields}

    def _more_of(self, known: _Open, line: Line) -> Iterator[Update]:
        """Yield what an open call is, where a row tells more of that, be it the last one."""
        facts = known.facts.with_row(line)
        if facts == known.facts:
            return
        fields, change = self._fields_of(line, facts)
        if known.said:
            fields["content"] = [*change, *known.said]
        self._open[line.id] = known._replace(facts=facts, change=change)
        yield {"sessionUpdate": "tool_call_update", "toolCallId": known.call, **fields}

    def _fields_of(self, line: Line, facts: _CallFacts) -> tuple[dict[str, Any], tuple[Content, ...]]:
        """Return the fields of a call, or of a sub-agent, and what of its content stays there."""
        if line.kind == RowType.AGENT:
            return _agent_fields(facts), ()
        fields = call_fields(facts.name or "tool", facts.detail, self.place.cwd)
        return fields, (*fields.get("content", ()),)

    def _go_on(self, line: Line) -> Iterator[Update]:
        """Yield the progress or the end of an open call."""
        call, text = self._open[line.id], string(line.fields.get("text"))
        update: Update = {"sessionUpdate": "tool_call_update", "toolCallId": call.call}
        if line.phase == Phase.END:
            del self._open[line.id]
            self._over.add(hash(line.id))
            update["status"] = COMPLETED if line.fields.get("status") in (None, COMPLETED) else FAILED
        content = (text_content if line.kind == RowType.AGENT else output_content)(text or "") if text else []
        if content:
            update["content"] = [*call.change, *content]
            if line.phase != Phase.END:
                self._open[line.id] = call._replace(said=(*content,))
        if len(update) > 2 and not call.is_plan:
            yield update

    def _known_agent(self, agent_id: bytes) -> Iterator[Update]:
        """Begin the call of a sub-agent of which no row has come yet, or which goes on after its end."""
        if agent_id in self._open or hash(agent_id) in self._over:
            return
        self._agents.setdefault(agent_id, 1)
        self._open[agent_id] = _Open(self._call_id(agent_id), _CallFacts())
        fields = _agent_fields(_CallFacts())
        yield {"sessionUpdate": "tool_call", **self._head(agent_id, b""), "status": IN_PROGRESS, **fields}

    def _head(self, id_: bytes, parent: bytes) -> dict[str, Any]:
        above = self._call_id(parent) if parent else self.place.call
        depth = self.place.depth + self._depth_of(parent)
        return {"toolCallId": self._call_id(id_), "_meta": meta(self.place.name, above, depth)}

    def _depth_of(self, agent_id: bytes) -> int:
        return self._agents.get(agent_id, 1) if agent_id else 0

    def _call_id(self, id_: bytes) -> str:
        text = id_.decode("utf-8", "replace")
        is_fit = len(text) <= _LONGEST_ID and text.isprintable() and "\N{REPLACEMENT CHARACTER}" not in text
        return f"{self.place.name}:{text if is_fit else blake2b(id_, digest_size=16).hexdigest()}"


def _has(detail: object, arguments: object) -> bool:
    """Return whether a call has these arguments; its row has long ones cut, and may have others besides."""
    if not isinstance(detail, dict) or not isinstance(arguments, dict) or not arguments:
        return detail == arguments
    return bounded_values(arguments).items() <= detail.items()


def meta(name: str, above: str | None, depth: int) -> dict[str, Any]:
    """Return the `_meta` of a call: the worker that made it, and the call of what is above it."""
    found: dict[str, Any] = {"instance": name, "depth": depth}
    return {"agentctl": {**found, "parentToolCallId": above} if above is not None else found}


def _agent_fields(facts: _CallFacts) -> dict[str, Any]:
    names = (facts.agent_type or "sub-agent", facts.name)
    found = {"title": ": ".join(short_line(part) for part in names if part), "kind": "think"}
    if facts.detail is None:
        return found
    prompt = string(facts.detail.get(PROMPT))
    return {**found, "rawInput": bounded_json(facts.detail), **({"content": text_content(prompt)} if prompt else {})}


def _head_of(text: str) -> str:
    """Return as much of a message as its row has in any case."""
    return text.strip()[:1000]
