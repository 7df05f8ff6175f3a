"""What `list` does, whoever has read its command line."""

from __future__ import annotations

import sys
from itertools import chain

from agentctl.cli.render import (
    elapsed,
    is_terminal,
    note,
    note_foreign,
    note_questions,
    out_fields,
    out_json_rows,
    progress,
    standing,
    warn,
)
from agentctl.lean import TYPE_CHECKING, Any
from agentctl.operations.show.listing import each_worker, list_below
from agentctl.operations.where.locating import find_task
from agentctl.operations.where.observed import observed_rows

if TYPE_CHECKING:
    from agentctl.operations.show.askers import PendingQuestion


def show(
    *,
    recursive: bool = False,
    task: str | None = None,
    root: str | None = None,
    force: bool = False,
    json: bool = False,
) -> None:
    """Print what the options of `list` say."""
    place = note_foreign(find_task(task, root=root, force=force))
    asked: list[PendingQuestion] = []
    if recursive:
        below, warnings = list_below(place)
        rows = chain(below, observed_rows(place))
    else:
        workers, warnings, asked = each_worker(place)
        rows = chain(workers, observed_rows(place))
    if json:
        out_json_rows(rows)
    elif is_terminal(sys.stdout):
        _draw(list(rows), place.id)
    else:
        for row in rows:
            _print(row)
    note_questions(asked)
    warn(warnings)


def _print(row: dict[str, Any]) -> None:
    seconds = elapsed(row)
    shown = None if seconds is None else f"{seconds:.1f}"
    out_fields(_named(row), row["status"], standing(row), shown, progress(row), row.get("command"))


def _named(row: dict[str, Any]) -> str:
    """Return a worker's name, told from its namesakes where the rows are of several tasks."""
    return "/".join(str(row[key]) for key in ("taskId", "agentInstance") if key in row)


def _draw(rows: list[dict[str, Any]], task_id: str) -> None:
    if not rows:
        note(f"no worker in {task_id} yet: agentctl spawn -- COMMAND starts one")
        return
    from agentctl.cli.tables import draw_workers

    draw_workers([{**row, "agentInstance": _named(row)} for row in rows])
