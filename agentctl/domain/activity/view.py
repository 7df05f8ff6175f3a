"""The tree of a folded activity: what an agent did, with its sub-agents as groups, each item exactly once.

A tree is a list of nodes, parents before their children, each with its depth: a program may nest deeper than Python
recurses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from agentctl.domain.activity.fold import ActivityFold
from agentctl.domain.activity.item import Item
from agentctl.domain.activity.row import RowType
from agentctl.domain.activity.rows import TOKENS
from agentctl.domain.text.numbers import finite
from agentctl.lean import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from agentctl.domain.documents.views import TokenCounts, TreeItem

RUNNING, INTERRUPTED, COMPLETED = "running", "interrupted", "completed"
#: What has a status; a message or a note has none.
_LASTING = frozenset({RowType.TOOL, RowType.AGENT, RowType.QUESTION})


@dataclass(kw_only=True, slots=True)
class Node:
    """One line of a tree."""

    id: str
    type: str
    parent: str | None = None
    depth: int = 0
    status: str | None = None
    agent_type: str | None = None
    name: str | None = None
    text: str | None = None
    detail: Mapping[str, Any] | None = None
    percent: float | None = None
    started_at: str | None = None
    ended_at: str | None = None
    #: A sub-agent of which more than its name is known.
    is_group: bool = False
    #: No row is about the parent that it names.
    is_orphan: bool = False
    #: Of a group with all below it: tool calls, and tokens; None if no row tells any.
    calls: int = 0
    tokens: dict[str, int] | None = None
    #: Of a group: how many ended items are not shown because there are too many.
    earlier: int = 0
    #: Of a group: the time of its latest row.
    last_at: str | None = None

    def told_tokens(self) -> TokenCounts:
        """Return the tokens as `tree --json` prints them."""
        used = self.tokens or {}
        return {"input": used.get("input"), "output": used.get("output"), "cached": used.get("cached")}

    def to_json(self) -> TreeItem:
        """Return the node as `tree --json` prints it."""
        node: TreeItem = {
            "id": self.id, "type": self.type, "parent": self.parent, "depth": self.depth, "status": self.status,
            "agentType": self.agent_type, "name": self.name, "text": self.text, "detail": self.detail,
            "startedAt": self.started_at, "endedAt": self.ended_at,
        }  # fmt: skip
        if self.percent is not None:
            node["percent"] = self.percent
        if self.is_orphan:
            node["orphan"] = True
        if self.is_group:
            node |= {"calls": self.calls, "tokens": self.told_tokens(), "earlier": self.earlier, "lastAt": self.last_at}
        return node


class _Placed(NamedTuple):
    """A node, the index of its parent in the list, and its id."""

    above: int
    id: bytes
    node: Node


def view_of(fold: ActivityFold, *, ended: bool, ended_at: str | None = None) -> list[Node]:
    """Return the tree of a worker; the first node is the worker itself.

    Args:
        ended: The worker has ended, so nothing that it did is still running.
        ended_at: When it ended, as far as that is known: what it left open took until then.
    """
    items = {item.id: item for item in fold.items()}
    placed = _walk(_children(items))
    _total(fold, placed)
    _judge(placed, ended=ended, ended_at=ended_at)
    return _shown(placed, is_expanded=bool(fold.keep))


def _children(items: Mapping[bytes, Item]) -> dict[bytes, list[Item]]:
    """Return the items below each agent, in the order in which they began; the worker's own are below b"".

    Items whose parent is unknown, or is below themselves, come after the worker's own.
    """
    below: dict[bytes, list[Item]] = {b"": []}
    orphans: list[Item] = []
    for item in items.values():
        parent = items.get(item.parent)
        if item.parent and (parent is None or parent.kind != RowType.AGENT):
            orphans.append(item)
        else:
            below.setdefault(item.parent, []).append(item)
    for found in below.values():
        found.sort(key=_age)
    orphans.sort(key=lambda item: (item.parent, _age(item)))
    below[b""] += orphans
    below[b""] += _heads_of_cycles(items, below)
    return below


def _age(item: Item) -> tuple[bytes, int]:
    return item.started, item.line


def _heads_of_cycles(items: Mapping[bytes, Item], below: dict[bytes, list[Item]]) -> list[Item]:
    """Cut each ring of parents at its smallest id; return the agents cut off, which move to the root."""
    reached = set(_reached(below, below[b""]))
    heads = []
    for id_ in sorted(id_ for id_, item in items.items() if item.kind == RowType.AGENT and id_ not in reached):
        if id_ in reached or not _is_in_ring(items, id_):
            continue
        head = items[id_]
        below[head.parent].remove(head)
        reached.update(_reached(below, [head]))
        heads.append(head)
    return heads


def _is_in_ring(items: Mapping[bytes, Item], id_: bytes) -> bool:
    """Return whether an agent is its own ancestor, and not merely below one that is."""
    seen, at = {id_}, items[id_].parent
    while at in items and at not in seen:
        seen.add(at)
        at = items[at].parent
    return at == id_


def _reached(below: Mapping[bytes, list[Item]], items: Iterable[Item]) -> Iterable[bytes]:
    left = list(items)
    while left:
        item = left.pop()
        yield item.id
        if item.kind == RowType.AGENT:
            left += below.get(item.id, ())


def _walk(below: Mapping[bytes, list[Item]]) -> list[_Placed]:
    """Return the nodes from the root down, parents first."""
    placed = [_Placed(-1, b"", Node(id="", type="worker", is_group=True))]
    left = [(0, 1, item) for item in reversed(below[b""])]
    while left:
        above, depth, item = left.pop()
        place = len(placed)
        node = _node(item, depth)
        node.is_orphan = bool(item.parent) and above == 0
        placed.append(_Placed(above, item.id, node))
        if item.kind == RowType.AGENT:
            left += [(place, depth + 1, child) for child in reversed(below.get(item.id, ()))]
    return placed


def _node(item: Item, depth: int) -> Node:
    fields = item.fields()
    percent = fields.get("percent")
    detail = fields.get("detail")
    node = Node(
        id=_text(item.id), type=item.kind, parent=_text(item.parent) or None, depth=depth,
        status=_string(fields.get("status")), agent_type=_string(fields.get("agentType")),
        name=_string(fields.get("name")), text=_string(fields.get("text")),
        detail=detail if isinstance(detail, dict) else None,
        percent=finite(percent),
        started_at=_text(item.started) or None, ended_at=_text(item.ended) or None,
    )  # fmt: skip
    if item.kind in _LASTING:
        node.status = (node.status if node.status != RUNNING else None) or COMPLETED if item.ended else RUNNING
    return node


def _text(value: bytes) -> str:
    return value.decode("utf-8", "backslashreplace")


def _string(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _total(fold: ActivityFold, placed: list[_Placed]) -> None:
    """Add up calls and tokens from the leaves to the root; those of unknown agents count as the worker's."""
    places = {id_: place for place, (_, id_, node) in enumerate(placed) if place == 0 or node.type == RowType.AGENT}
    for id_, number in fold.calls().items():
        placed[places.get(id_, 0)].node.calls += number
    for id_, used in fold.tokens().items():
        _add(placed[places.get(id_, 0)].node, used)
    for id_, group in fold.groups.items():
        node = placed[places.get(id_, 0)].node
        node.earlier += group.earlier if fold.keep else 0
        node.is_group = node.is_group or group.has_items
        node.last_at = max(node.last_at or "", _text(group.last)) or None
    for above, _, node in reversed(placed[1:]):
        parent = placed[above].node
        parent.calls += node.calls
        _add(parent, node.tokens or {})
        parent.last_at = max(parent.last_at or "", node.last_at or "") or None


def _add(node: Node, used: Mapping[str, int]) -> None:
    if used:
        before = node.tokens or dict.fromkeys(TOKENS, 0)
        node.tokens = {name: before[name] + used[name] for name in TOKENS}


def _judge(placed: list[_Placed], *, ended: bool, ended_at: str | None) -> None:
    """Mark what an ended worker or sub-agent left open as interrupted: it ended no later than that."""
    over: list[tuple[bool, str | None]] = [(ended, ended_at)]
    for above, _, node in placed[1:]:
        is_over, at = over[above]
        if node.status == RUNNING and is_over:
            node.status, node.ended_at = INTERRUPTED, at
        has_ended = node.type == RowType.AGENT and node.status != RUNNING
        over.append((True, node.ended_at or at) if has_ended else over[above])


def _shown(placed: list[_Placed], *, is_expanded: bool) -> list[Node]:
    """Return the nodes that are shown.

    Left out are sub-agents of which only an id is known, and, unless the view is expanded, interrupted items.
    """
    shown = [True] * len(placed)
    for place in range(len(placed) - 1, 0, -1):
        above, _, node = placed[place]
        if node.type == RowType.AGENT:
            is_known = node.agent_type is not None or node.name is not None
            shown[place] = node.is_group or node.ended_at is not None or is_known
        else:
            shown[place] = is_expanded or node.status != INTERRUPTED
        if shown[place]:
            placed[above].node.is_group = True
    return [node for (_, _, node), is_shown in zip(placed, shown, strict=True) if is_shown]
