"""Markdown that also reads well as plain text, and that no file's name or content can break out of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from source_tree import shown


def code(text: str, limit: int = 200) -> str:
    """A code span: whatever the text holds is shown, not rendered."""
    printable = shown(text, limit).strip() or " "
    fence = "``" if "`" in printable else "`"
    padding = " " if "`" in printable else ""
    return f"{fence}{padding}{printable.replace('``', '` `')}{padding}{fence}"


def table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """An aligned table; numbers to the right. Empty without rows."""
    rows = list(rows)
    if not rows:
        return []
    body = [[_cell(value) for value in row] for row in rows]
    numeric = [all(isinstance(row[i], int | float) for row in rows) for i in range(len(headers))]
    widths = [max(3, *(len(row[i]) for row in [list(headers), *body])) for i in range(len(headers))]
    rule = ["-" * (width - 1) + ":" if right else "-" * width for width, right in zip(widths, numeric, strict=True)]
    return [_line(row, widths, numeric) for row in [list(headers), rule, *body]]


def _line(cells: Sequence[str], widths: Sequence[int], numeric: Sequence[bool]) -> str:
    padded = [
        cell.rjust(width) if right else cell.ljust(width)
        for cell, width, right in zip(cells, widths, numeric, strict=True)
    ]
    return "| " + " | ".join(padded) + " |"


def _cell(value: object) -> str:
    text = f"{value:,}" if isinstance(value, int) else str(value)
    return text.replace("|", "\\|")


def plural(number: int, one: str, many: str | None = None) -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def remarks(left_out: Mapping[str, Any]) -> list[str]:
    """What a worker's section says of the files it did not examine (`Tree.remarks()`)."""
    lines: list[str] = []
    reasons: dict[str, list[str]] = {}
    for one in left_out["skippedFolders"]:
        reasons.setdefault(one["reason"], []).append(one["folder"])
    if reasons:
        lines.append("Not entered: " + "; ".join(_folders(why, names) for why, names in reasons.items()) + ".")
    if left_out["leftOut"]:
        counts = ", ".join(f"{number:,} {kind}" for kind, number in left_out["leftOut"].items())
        lines.append(f"Not read: {counts}.")
    if unreadable := left_out["unreadable"]:
        first = unreadable[0]
        lines.append(f"Unreadable: {len(unreadable):,}, first {code(first['path'])} ({first['problem']}).")
    return ["", *lines] if lines else []


def _folders(why: str, names: Sequence[str]) -> str:
    more = f" and {len(names) - 3:,} more" if len(names) > 3 else ""
    return f"{why} {', '.join(code(name) for name in names[:3])}{more}"
