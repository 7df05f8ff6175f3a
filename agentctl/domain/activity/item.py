"""One thing that an agent did, merged from its rows in any order."""

from __future__ import annotations

import json

from agentctl.domain.activity.row import Phase
from agentctl.domain.activity.rows import Fields, fields_of

_RANK = {Phase.START: 0, Phase.PROGRESS: 1, Phase.END: 2}
#: An item merges its rows as soon as it has more than this, and cuts longer texts: progress may be endless.
_FRAGMENTS = 8
_LONGEST_TEXT = 2000


class Item:
    """A call, a message, a sub-agent, a question."""

    __slots__ = ("_fields", "_rests", "ended", "id", "kind", "line", "parent", "started")

    def __init__(self, id_: bytes, kind: str, line: int) -> None:
        self.id, self.kind = id_, kind
        #: Its first line: the order of items that began at the same time.
        self.line = line
        #: The sub-agent that did it; empty for the worker itself.
        self.parent = b""
        self.started = self.ended = b""
        self._rests: list[tuple[int, bytes, bytes | Fields]] = []
        self._fields: dict[str, tuple[tuple[int, bytes, int, str], object]] = {}

    def take(self, at: bytes, phase: str, parent: bytes, rest: bytes | Fields) -> None:
        """Take in one of its rows; `rest` is what follows the head of the line, parsed or not."""
        if not self.started or at < self.started:
            self.started = at
        if phase == Phase.END and (not self.ended or at < self.ended):
            self.ended = at or b"-"
        self.parent = max(self.parent, parent)
        self._rests.append((_RANK[Phase(phase)], at, rest))
        if len(self._rests) > _FRAGMENTS or len(rest) > _LONGEST_TEXT:
            self._merge()

    def fields(self) -> Fields:
        """Return its merged fields."""
        self._merge()
        return {name: value for name, (_, value) in self._fields.items()}

    def _merge(self) -> None:
        for rank, at, rest in self._rests:
            for name, value in (rest if isinstance(rest, dict) else fields_of(rest) or {}).items():
                known = json.dumps(value, sort_keys=True)
                weight = (rank, at, len(known), known[:_LONGEST_TEXT])
                if name not in self._fields or weight > self._fields[name][0]:
                    self._fields[name] = weight, _cut(value)
        self._rests.clear()


def _cut(value: object) -> object:
    """Return a text cut to its limit, or a mapping with its texts cut (the arguments of a call)."""
    if isinstance(value, dict):
        return {key: item[:_LONGEST_TEXT] if isinstance(item, str) else item for key, item in value.items()}
    return value[:_LONGEST_TEXT] if isinstance(value, str) else value
