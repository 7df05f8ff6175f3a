"""The fold of a worker's activity: what is open, what has ended, how many calls, how many tokens.

Of two rows of one id the larger by (phase, time, length) wins, so neither their order nor a duplicate matters. Ended
items are only counted; the last few of each group are kept where they are wanted.
"""

from __future__ import annotations

from collections import Counter, deque

from agentctl.domain.activity.item import Item
from agentctl.domain.activity.row import Phase, RowType
from agentctl.domain.activity.rows import (
    HEADS,
    KINDS,
    TOKENS,
    TOKENS_OF,
    Fields,
    fields_of,
    read_line,
    rest_of,
    tokens_in,
    unknown_fields,
)

#: What a collapsed view neither shows nor counts.
_QUIET = frozenset({RowType.MESSAGE, RowType.THOUGHT, RowType.NOTE, RowType.PROGRESS})
_QUIET_BYTES = frozenset(kind.encode() for kind in _QUIET)


class Group:
    """What one agent did; the worker itself has a group too."""

    __slots__ = ("earlier", "has_items", "id", "kept", "last")

    def __init__(self, id_: bytes) -> None:
        self.id = id_
        #: Whether anything but usage and sub-agents is in it.
        self.has_items = False
        #: The time of its latest row.
        self.last = b""
        #: The ended items that are still kept, oldest first, and how many were dropped.
        self.kept: deque[bytes] = deque()
        self.earlier = 0


class ActivityFold:
    """The fold of an activity, in little more memory than its open items take.

    Args:
        keep: How many ended items of each group are kept; 0 for a collapsed view.
    """

    def __init__(self, keep: int = 0) -> None:
        self.keep = keep
        self.lines = self.bad = 0
        self.unknown_types: Counter[str] = Counter()
        #: Only those of parsed rows, which are few in a collapsed view.
        self.unknown_fields: Counter[str] = Counter()
        self.groups: dict[bytes, Group] = {b"": Group(b"")}
        self._items: dict[bytes, Item] = {}
        #: Calls with only a first row so far: (group, time, rest, line number).
        self._starts: dict[bytes, tuple[Group, bytes, bytes, int]] = {}
        #: The calls that have ended: hash of an id -> group. Hashes, because there may be a million of them.
        self._calls: dict[int, Group] = {}
        #: Hashes of the ids of everything else that has ended and is not kept.
        self._gone: set[int] = set()
        #: Usage: hash of an id -> time and rest of its last row, and its group if that is not the worker's own.
        self._usage: dict[int, bytes] = {}
        self._used_by: dict[int, Group] = {}

    def feed(self, data: bytes) -> None:
        """Fold in whole lines, each with its newline."""
        number, skips = self.lines, not self.keep  # Local names instead of attributes: faster.
        groups, starts, calls, usage = self.groups, self._starts, self._calls, self._usage
        for at, kind, id_, phase, parent, rest, other in HEADS.findall(data):
            number += 1
            if not kind:
                self._read(other, number)
                continue
            group = groups.get(parent) or self._group(parent)
            if at > group.last:  # noqa: PLR1730 - a call of max() takes three times as long
                group.last = at
            if kind == b"usage":
                key = hash(id_)
                usage[key] = at + rest if key not in usage else max(usage[key], at + rest, key=_weight)
                if parent:
                    self._used_by[key] = group
            elif skips and kind == b"tool" and phase == b"end" and (start := starts.pop(id_, None)):
                group.has_items = True
                calls[hash(id_)] = group if parent > start[0].id else start[0]  # As in `Item.take`.
            elif skips and kind == b"tool" and phase == b"start" and self._is_new(id_):
                group.has_items = True
                starts[id_] = group, at, rest, number
            elif skips and kind in _QUIET_BYTES:
                group.has_items = True
            else:
                self._take(at, kind.decode(), id_, phase.decode(), parent, rest, number)
        self.lines = number

    def items(self) -> list[Item]:
        """Return the open items, all sub-agents, and the ended items that are kept."""
        for id_ in list(self._starts):
            self._promote(id_)
        return list(self._items.values())

    def calls(self) -> Counter[bytes]:
        """Return how many tool calls each agent made, by its id."""
        found = Counter(group.id for group in self._calls.values())
        found.update(start[0].id for start in self._starts.values())
        for item in self._items.values():
            if item.kind == RowType.TOOL:
                found[item.parent] += 1
            elif item.kind == RowType.AGENT and hash(item.id) in self._calls:
                found[self._calls[hash(item.id)].id] -= 1  # The call that started it is not counted as well.
        return found

    def tokens(self) -> dict[bytes, dict[str, int]]:
        """Return the tokens that each agent used, by its id."""
        found: dict[bytes, list[int]] = {}
        own, used_by, match = self.groups[b""], self._used_by, TOKENS_OF.match
        for key, last in self._usage.items():
            id_ = used_by.get(key, own).id
            total = found.get(id_) or found.setdefault(id_, [0, 0, 0])
            usual = match(last)
            given, made, cached = usual.groups() if usual else _tokens(last)
            total[0] += int(given)
            total[1] += int(made)
            total[2] += int(cached)
        return {id_: dict(zip(TOKENS, total, strict=True)) for id_, total in found.items()}

    # -- the rows that take longer -------------------------------------------------------------------------------

    def _group(self, id_: bytes) -> Group:
        group = self.groups.get(id_)
        if group is None:
            group = self.groups[id_] = Group(id_)
        return group

    def _is_new(self, id_: bytes) -> bool:
        return id_ not in self._starts and id_ not in self._items and hash(id_) not in self._calls

    def _promote(self, id_: bytes) -> None:
        group, at, rest, number = self._starts.pop(id_)
        item = self._items[id_] = Item(id_, RowType.TOOL, number)
        item.take(at, Phase.START, group.id, rest)

    def _read(self, line: bytes, number: int) -> None:
        """Fold in a line that does not have the form of `encode_row`."""
        row = read_line(line, number)
        if row is None:
            self.bad += 1
            return
        group = self._group(row.parent)
        group.last = max(group.last, row.at)
        if row.kind == RowType.USAGE:
            key, last = hash(row.id), row.at + rest_of(row.fields)
            self._usage[key] = max(self._usage.get(key, last), last, key=_weight)
            if row.parent:
                self._used_by[key] = group
        else:
            self._take(row.at, row.kind, row.id, row.phase, row.parent, row.fields, number)

    def _take(
        self, at: bytes, kind: str, id_: bytes, phase: str, parent: bytes, rest: bytes | Fields, number: int
    ) -> None:
        group = self._group(parent)
        group.has_items = group.has_items or kind != RowType.AGENT
        if kind not in KINDS:
            self.unknown_types[kind] += 1
        if not self.keep and (kind in _QUIET or kind not in KINDS):
            return
        if self.keep:
            self.unknown_fields.update(unknown_fields(rest if isinstance(rest, dict) else fields_of(rest) or {}))
        if id_ in self._starts:
            self._promote(id_)
        item = self._items.get(id_) or self._begin(id_, kind, group, number)
        if item is None:
            return
        if kind == RowType.AGENT:
            item.kind = kind
        was_open = not item.ended
        item.take(at, phase, parent, rest)
        if item.ended and was_open and item.kind != RowType.AGENT:
            self._let_go(item)

    def _begin(self, id_: bytes, kind: str, group: Group, number: int) -> Item | None:
        """Return a new item; None for a late row of an ended item that is not kept."""
        key = hash(id_)
        if key in self._gone:
            return None
        if key in self._calls and kind != RowType.AGENT:
            if group.id > self._calls[key].id:
                self._calls[key] = group
            return None
        item = self._items[id_] = Item(id_, kind, number)
        return item

    def _let_go(self, item: Item) -> None:
        """Keep an ended item among the last of its group; the one that it displaces is only counted."""
        group = self._group(item.parent)
        group.kept.append(item.id)
        if len(group.kept) <= self.keep:
            return
        old = self._items.get(group.kept.popleft())
        if old is None or old.kind == RowType.AGENT:
            return
        del self._items[old.id]
        group.earlier += 1
        if old.kind == RowType.TOOL:
            self._calls[hash(old.id)] = group
        else:
            self._gone.add(hash(old.id))


def _tokens(last: bytes) -> list[int]:
    found = tokens_in(fields_of(last[last.find(b",") :]) or {})
    return [found.get(name, 0) for name in TOKENS]


def _weight(last: bytes) -> tuple[bytes, int, bytes]:
    """Return the key that orders usage rows of one id: the later counts; of two at one time, the larger."""
    return last[: last.find(b",")], sum(_tokens(last)), last
