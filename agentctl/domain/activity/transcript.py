"""The transcript of an activity, as a person reads it: each thing once, in the order of the file."""

from __future__ import annotations

from collections import Counter
from typing import Any

from agentctl.domain.activity.row import Phase, RowType, are_arguments_told
from agentctl.domain.activity.rows import Fields, Line
from agentctl.domain.activity.seen import SeenHashes
from agentctl.lean import NamedTuple

#: Shown when it begins and again when it ends; everything else is shown only at its end.
_TWICE = frozenset({RowType.TOOL, RowType.AGENT, RowType.QUESTION})
#: Shown to begin once more where only then is told with which arguments: some programs tell them step by step.
_CALLED = frozenset({RowType.TOOL, RowType.AGENT})
_HIDDEN = frozenset({RowType.USAGE})
#: Of more sub-agents, and of more calls that are open at once, it does not remember the depth and the name.
_MOST_AGENTS, _MOST_NAMES = 20_000, 20_000
_LONGEST_TYPE = 200


class TranscriptEntry(NamedTuple):
    """One paragraph of a transcript."""

    at: str
    #: How many sub-agents are above it, and the type of the one that did it: of the second of a type `explore 2`.
    depth: int
    agent_type: str | None
    kind: str
    #: Whether it shows a beginning, an end, or both.
    begins: bool
    ends: bool
    fields: Fields


class Transcript:
    """Turns rows into paragraphs, and shows each thing once; its memory is small, whatever the rows are."""

    def __init__(self) -> None:
        #: Hashes of what has been shown to begin, and to end.
        self._shown = SeenHashes()
        #: Hash of a sub-agent's id -> (depth of what it does, its type and number).
        self._agents: dict[int, tuple[int, str | None]] = {hash(b""): (0, None)}
        #: How many sub-agents of a type there are.
        self._types: Counter[str] = Counter()
        #: Hash of the id of what has begun and not ended -> its name, which the row of the end may lack.
        self._names: dict[int, Any] = {}
        #: The same of a call -> hash of the arguments with which it was shown, and whether these were all.
        self._arguments: dict[int, tuple[int, bool]] = {}

    def take(self, line: Line) -> TranscriptEntry | None:
        """Return the paragraph of a row; None where it says nothing new."""
        if line.kind in _HIDDEN:
            return None
        depth, agent_type = self._agents.get(hash(line.parent), (1, None))
        known = {"agentType": self._remembered(line, depth)} if line.kind == RowType.AGENT else {}
        lasts, ends = line.kind in _TWICE, line.phase == Phase.END
        # The call that starts a sub-agent and the sub-agent are one thing.
        begun, ended = (hash((line.id, lasts, word)) for word in ("begun", "ended"))
        begins = begun not in self._shown and (ends or lasts)
        begins = self._tells_more(line, begins=begins, ends=ends) or begins
        if (ends and ended in self._shown) or not (begins or ends):
            return None
        self._shown.add(begun)
        if ends:
            self._shown.add(ended)
        at = line.at.decode("utf-8", "replace")
        fields = {**line.fields, **known, **self._named(line, ends=ends)}
        return TranscriptEntry(at, depth, agent_type, line.kind, begins, ends, fields)

    def _tells_more(self, line: Line, *, begins: bool, ends: bool) -> bool:
        """Return whether a row tells with which arguments it was called, of something that was shown without those."""
        if line.kind not in _CALLED:
            return False
        id_, detail = hash(line.id), line.fields.get("detail")
        given = hash(repr(detail)) if detail else 0, are_arguments_told(detail)
        known = self._arguments.pop(id_, None)
        if not ends and (begins or known is not None) and len(self._arguments) < _MOST_NAMES:
            self._arguments[id_] = given if detail or known is None else known
        return known is not None and not begins and bool(detail) and known != given and not (ends and known[1])

    def _remembered(self, line: Line, depth: int) -> str | None:
        """Remember a sub-agent; return its type as far as it is known, with its number if it is not the first."""
        id_ = hash(line.id)
        known = self._agents.get(id_, (0, None))[1]
        kind = line.fields.get("agentType")
        if known is None and isinstance(kind, str):
            known = self._numbered(kind[:_LONGEST_TYPE])
        if id_ in self._agents or len(self._agents) < _MOST_AGENTS:
            self._agents[id_] = depth + 1, known
        return known

    def _numbered(self, kind: str) -> str:
        if kind in self._types or len(self._types) < _MOST_AGENTS:
            self._types[kind] += 1
        number = self._types[kind]
        return f"{kind} {number}" if number > 1 else kind

    def _named(self, line: Line, *, ends: bool) -> Fields:
        id_ = hash(line.id)
        name = line.fields.get("name")
        if line.kind in _TWICE:
            begun = self._names.pop(id_, None)
            name = name or begun
            if not ends and name and len(self._names) < _MOST_NAMES:
                self._names[id_] = name
        return {"name": name} if name else {}
