"""Draws the table that `make bench` prints."""

from __future__ import annotations

from bench.measuring import Found, Row, number

_HEAD = ("#", "figure", "measured (median)", "its neighbour (median)", "result", "goal", "met")
_NUMBERS = {0, 4, 5}
_MET = {True: "yes", False: "NO", None: "-"}


def draw(found: Found) -> str:
    """Return the table, and below it the remarks and what was not found; a ratio is the median of the rounds'."""
    rows = [_HEAD, *map(_cells, found.rows)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    lines = [_line(row, widths) for row in rows]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join([*lines, "", *found.notes, *found.missing])


def _cells(row: Row) -> tuple[str, ...]:
    neighbour = str(row.neighbour) if row.neighbour is not None else "-"
    result = f"{row.result:.2f}" if row.kind == "ratio" else f"{row.kind.split()[0]} {number(row.result)}"
    goal = "-" if row.goal is None else f"<= {row.goal:,g}"
    return (str(row.figure), row.what, str(row.subject), neighbour, result, goal, _MET[row.is_met])


def _line(row: tuple[str, ...], widths: list[int]) -> str:
    cells = [
        cell.rjust(width) if column in _NUMBERS else cell.ljust(width)
        for column, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]
    return "  ".join(cells).rstrip()
