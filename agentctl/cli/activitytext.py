"""How the rows of an activity read: one line each in a tree, as paragraphs in a transcript."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from agentctl.cli.render import NOTHING, as_json, duration, elapsed, how_it_ended, plain, progress, standing
from agentctl.domain.activity.row import RowType
from agentctl.domain.activity.view import INTERRUPTED, RUNNING, Node
from agentctl.operations.show.tree_view import WorkerTree

#: The arguments that tell most about a call, the first that is there.
_TELLING = ("command", "cmd", "file_path", "path", "pattern", "query", "url", "description", "prompt", "message")
_LONGEST = 100
_STEP = "  "
_DEEPEST_INDENT = 30


def tree_lines(tree: WorkerTree) -> Iterator[str]:
    """Yield the lines of a worker's tree."""
    indent = _STEP * tree.depth
    yield indent + worker_line(tree)
    if tree.bad_lines:
        yield f"{indent}{_STEP}({_count(tree.bad_lines, 'line')} of its activity cannot be read)"
    if tree.unknown_types:
        told = ", ".join(f"{plain(kind)} {number}" for kind, number in sorted(tree.unknown_types.items()))
        yield f"{indent}{_STEP}(rows of a type that is not known: {told})"
    for node in tree.nodes:
        deep = indent + _STEP * min(node.depth, _DEEPEST_INDENT)
        if node.depth:
            yield deep + node_line(node, is_expanded=tree.is_expanded)
        if tree.is_expanded and node.earlier:
            more = _count(node.earlier, "earlier item")
            yield f"{deep}{_STEP}... {more}: agentctl activity {plain(tree.row['agentInstance'])}"


def worker_line(tree: WorkerTree) -> str:
    """Return the line of a worker: name, kind, status, time, what it did or runs."""
    row, own = tree.row, tree.nodes[0]
    status = how_it_ended(row["status"], row["reason"], row["exitCode"], row["signal"])
    unusual = None if row["reason"] else standing(row)
    agent = row["agent"]
    parts = [
        plain(row["agentInstance"]),
        None if agent == "command" else f"[{plain(agent)}]",
        status,
        unusual,
        _known(duration(elapsed(row))),
        progress(row) and plain(progress(row)),
        *_totals(own),
        short(row["command"]) if agent == "command" else None,
    ]
    return "  ".join(part for part in parts if part)


def node_line(node: Node, *, is_expanded: bool) -> str:
    """Return the line of an item; a group is marked by whether its items follow."""
    mark = ("- " if is_expanded else "+ ") if node.is_group else ""
    badge = f"[{short(node.agent_type or 'agent')}]" if node.type == RowType.AGENT else None
    parts = [
        badge,
        label(node.type, node.name, node.text, node.detail, node.percent),
        None if node.status is None else plain(node.status),
        _known(duration(_seconds(node))) if node.status else None,
        *(_totals(node) if node.is_group else ()),
        f"(of {short(node.parent)}, which is not known)" if node.is_orphan and node.parent else None,
    ]
    return mark + "  ".join(part for part in parts if part)


def label(
    kind: str, name: str | None, text: str | None, detail: Mapping[str, Any] | None, percent: float | None
) -> str:
    """Return in one line what an item is."""
    match kind:
        case RowType.TOOL:
            return " ".join(part for part in (short(name or "tool"), short(telling(detail))) if part)
        case RowType.AGENT:
            return short(name or text)
        case RowType.PROGRESS:
            return short(progress({"progress": {"percent": percent, "text": text}}) or kind)
        case RowType.MESSAGE:
            return f"{short(name)}: {short(text)}" if name else short(text)
        case _:
            return f"{short(kind)}: {short(' '.join(part for part in (name, text) if part) or telling(detail))}"


def label_of(row: Mapping[str, Any]) -> str:
    """Return in one line what a row of an activity is about."""
    detail, percent = row.get("detail"), row.get("percent")
    return label(
        str(row.get("type")),
        string(row.get("name")),
        string(row.get("text")),
        detail if isinstance(detail, dict) else None,
        percent if isinstance(percent, int | float) else None,
    )


def string(value: object) -> str | None:
    """Return a text, or None where it is none: anybody may have written the row."""
    return value if isinstance(value, str) else None


def telling(detail: Mapping[str, Any] | None) -> str:
    """Return the argument that says most about a call; else all of them."""
    if not detail:
        return ""
    for key in _TELLING:
        value = detail.get(key)
        if isinstance(value, str) and value:
            return value
        if isinstance(value, list) and value and all(isinstance(part, str) for part in value):
            return " ".join(value)
    return as_json(detail, shown=True)


def short(text: object) -> str:
    """Return one line of a text, cut and safe to show."""
    told = plain(" ".join(str(text or "").split()))
    return told if len(told) <= _LONGEST else told[: _LONGEST - 3] + "..."


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _known(text: str) -> str | None:
    return None if text == NOTHING else text


def _totals(node: Node) -> Iterator[str]:
    if node.calls:
        yield _count(node.calls, "call")
    tokens = node.tokens["input"] + node.tokens["output"]
    if tokens:
        yield f"{short_number(tokens)} tokens"


def short_number(value: int) -> str:
    """Return a number as a person says it.

    >>> [short_number(value) for value in (0, 950, 9097, 125_476, 3_400_000)]
    ['0', '950', '9.1k', '125k', '3.4M']
    """
    for unit, size in (("M", 1_000_000), ("k", 1000)):
        if value >= size:
            told = value / size
            return f"{told:.1f}{unit}" if told < 100 else f"{told:.0f}{unit}"
    return str(value)


def _seconds(node: Node) -> float | None:
    """Return how long an item took, or has been running."""
    end = node.ended_at or (node.last_at if node.status == INTERRUPTED else None)
    if end is None and node.status != RUNNING:
        return None
    try:
        began = datetime.fromisoformat(node.started_at or "")
        until = datetime.now(UTC) if end is None else datetime.fromisoformat(end)
        return max(0.0, (until - began).total_seconds())
    except (TypeError, ValueError):
        return None
