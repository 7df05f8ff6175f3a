"""Carries out `list`, however its command line was read."""

from __future__ import annotations

from itertools import chain

from agentctl.cli.invocation import Invocation
from agentctl.cli.render import fields, note, note_holds, note_questions, report_unreadable, warn
from agentctl.lean import TYPE_CHECKING
from agentctl.operations.show.listing import each_worker, list_below
from agentctl.operations.where.observed import observed_rows
from agentctl.text.worker import elapsed, progress_words, standing_words, stranded_words

if TYPE_CHECKING:
    from agentctl.domain.worker_row import WorkerRow


def print_workers(call: Invocation, *, recursive: bool = False) -> int:
    """Print the workers of a task; return the exit code."""
    task = call.task_to_show()
    found = list_below(task) if recursive else each_worker(task)
    rows = chain(found.rows, observed_rows(task))
    call.show(rows, map(_line, rows), lambda: _draw(list(rows), task.id))
    note_questions(found.asked_below, task.root)
    if found.stranded:
        from agentctl.operations.where.command_lines import command_line  # Hardly ever.

        note(stranded_words(found.stranded, command_line(task, "resume", "--lost")))
    note_holds(found.holds)
    warn(found.warnings)
    return report_unreadable(found.unreadable)


def show_across(call: Invocation, hosts: str, *, recursive: bool) -> int:
    """Print the workers of several hosts; return the exit code."""
    from agentctl.cli.across import ask_hosts, place_options, show_merged
    from agentctl.cli.tables import WORKER_HEADS, worker_cells

    argv = ["list", "--json", *["--recursive"] * recursive, *place_options(call)]
    return show_merged(
        call, ask_hosts(hosts, argv), WORKER_HEADS,
        lambda row: worker_cells({**row, "agentInstance": _named(row)}),  # type: ignore[typeddict-item]
        _line,  # type: ignore[arg-type]
        "command",
    )  # fmt: skip


def _line(row: WorkerRow) -> str:
    seconds = elapsed(row)
    shown = None if seconds is None else f"{seconds:.1f}"
    return fields(
        _named(row), row["status"], standing_words(row), shown, progress_words(row["progress"]), row["command"]
    )


def _named(row: WorkerRow) -> str:
    """Return a worker's name, with its task if the rows are of several tasks."""
    return "/".join(str(row[key]) for key in ("taskId", "agentInstance") if key in row)


def _draw(rows: list[WorkerRow], task_id: str) -> None:
    if not rows:
        note(f"no worker in {task_id} yet: agentctl spawn -- COMMAND starts one")
        return
    from agentctl.cli.tables import draw_workers

    draw_workers([{**row, "agentInstance": _named(row)} for row in rows])
