"""The transcript of an activity, as a person reads it: each thing once, in the order of the file."""

from __future__ import annotations

from typing import Any

from agentctl.domain.activity.row import Phase, RowType
from agentctl.domain.activity.rows import Fields, Line
from agentctl.lean import NamedTuple

#: Shown when it begins and again when it ends; everything else is shown only at its end.
_TWICE = frozenset({RowType.TOOL, RowType.AGENT, RowType.QUESTION})
_HIDDEN = frozenset({RowType.USAGE})


class TranscriptEntry(NamedTuple):
    """One paragraph of a transcript."""

    at: str
    #: How many sub-agents are above it, and the type of the one that did it.
    depth: int
    agent_type: str | None
    kind: str
    #: Whether it shows a beginning, an end, or both.
    begins: bool
    ends: bool
    fields: Fields


class Transcript:
    """Turns rows into paragraphs, and shows each thing once."""

    def __init__(self) -> None:
        self._shown: set[int] = set()
        #: Sub-agent -> (depth of what it does, its type).
        self._agents: dict[bytes, tuple[int, str | None]] = {b"": (0, None)}
        #: Id of what has begun and not ended -> its name, which the row of the end may lack.
        self._names: dict[bytes, Any] = {}

    def take(self, line: Line) -> TranscriptEntry | None:
        """Return the paragraph of a row; None where it says nothing new."""
        if line.kind in _HIDDEN:
            return None
        depth, agent_type = self._agents.get(line.parent, (1, None))
        if line.kind == RowType.AGENT:
            known = line.fields.get("agentType") or self._agents.get(line.id, (0, None))[1]
            self._agents[line.id] = depth + 1, known if isinstance(known, str) else None
        lasts, ends = line.kind in _TWICE, line.phase == Phase.END
        # The call that starts a sub-agent and the sub-agent are one thing.
        begun, ended = (hash((line.id, lasts, word)) for word in ("begun", "ended"))
        begins = begun not in self._shown and (ends or lasts)
        if (ends and ended in self._shown) or not (begins or ends):
            return None
        self._shown |= {begun, ended} if ends else {begun}
        at = line.at.decode("utf-8", "replace")
        return TranscriptEntry(at, depth, agent_type, line.kind, begins, ends, self._named(line, ends=ends))

    def _named(self, line: Line, *, ends: bool) -> Fields:
        known = {"agentType": self._agents[line.id][1]} if line.kind == RowType.AGENT else {}
        name = line.fields.get("name") or self._names.pop(line.id, None)
        if not ends and name and line.kind in _TWICE:
            self._names[line.id] = name
        return {**line.fields, **known, **({"name": name} if name else {})}
