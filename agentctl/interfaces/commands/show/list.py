"""`list`, `show`: the workers of a task, and everything about one of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from agentctl.interfaces.commands.model.command_model import FLAG, Command, Parameter, Showing, Shown, Table
from agentctl.interfaces.commands.model.invocation import Invocation
from agentctl.interfaces.commands.model.parameters import HOSTS, IN_TASK, NAMED_INSTANCES, RECURSIVE
from agentctl.interfaces.commands.parts.selection import (
    NOBODY,
    SELECT,
    Selection,
    headed,
    is_newest,
    one_or_all,
    selected_rows,
    workers_chosen,
)
from agentctl.interfaces.commands.parts.wait_notes import questions_to_note
from agentctl.interfaces.words.outline import fields, outline
from agentctl.interfaces.words.worker import elapsed, said_words, standing_words, stranded_words
from agentctl.lean import TYPE_CHECKING
from agentctl.operations.show.listing import each_worker, list_below
from agentctl.operations.where.observed import observed_rows

if TYPE_CHECKING:
    from agentctl.domain.documents.hosts import FailedHost
    from agentctl.domain.documents.workers.worker import ShownWorker, WorkerRow

#: How much of a value, such as the arguments of a worker, `show` shows to a person.
_LONGEST = 4000


def list_task(
    call: Invocation,
    *,
    recursive: bool = False,
    hosts: str | None = None,
    everyone: bool = False,
    failed: bool = False,
    status: str | None = None,
    agent: str | None = None,
    words: str | None = None,
) -> Showing[Iterable[WorkerRow | FailedHost]]:
    """List the workers of a task and their status.

    Starts nothing and waits for nothing.

    On a command line:
        To a pipe, one line each: instance, status, reason, seconds, progress (if it failed, what it wrote last),
        command, separated by tabs, with `-` for nothing; with --recursive the instance is written as task/instance;
        with --hosts the host comes first. Of a work that was tried again, that is its newest worker; --json has a row
        for each worker.
    """
    selection = Selection(failed, status, agent, words)
    if hosts is not None:
        return (yield from _list_across(call, hosts, selection, recursive=recursive, everyone=everyone))
    task = call.task_to_show()
    found = list_below(task) if recursive else each_worker(task)
    rows = selected_rows(chain(found.rows, observed_rows(task)), selection, task.id)
    if not (everyone or call.json):
        rows = filter(is_newest, rows)
    if call.draws:
        rows = list(rows)
        if not rows and selection != Selection():
            call.note(NOBODY)
        elif not rows:
            call.note(f"no worker in {task.id} yet: agentctl spawn -- COMMAND starts one")
    yield Shown(rows, map(_line, rows), lambda: _table(rows))
    call.note_all(questions_to_note(found.asked_below, task.root))
    if found.stranded:
        from agentctl.operations.where.command_lines import command_line  # Hardly ever.

        call.note(stranded_words(found.stranded, command_line(task, "resume", "--lost")))
    call.note_all(found.holds)
    call.warn(found.warnings)
    return call.report_unreadable(found.unreadable)


def _list_across(
    call: Invocation, hosts: str, selection: Selection, *, recursive: bool, everyone: bool
) -> Showing[list[WorkerRow | FailedHost]]:
    from agentctl.interfaces.commands.model.far_line import far_line
    from agentctl.interfaces.commands.parts.merged_rows import ask_hosts, show_merged
    from agentctl.interfaces.commands.parts.tables import WORKERS, worker_cells

    argv = far_line("list", call, recursive=recursive, everyone=everyone, **selection._asdict(), json=True)
    return (yield from show_merged(
        call, ask_hosts(hosts, argv), WORKERS.heads,
        lambda row: worker_cells({**row, "agentInstance": _named(row)}),
        _line,
        "command",
        WORKERS.kept,
        gives_way=WORKERS.gives_way,
        below=WORKERS.below,
        shows=(lambda _: True) if everyone else is_newest,
    ))  # fmt: skip


def _line(row: WorkerRow) -> str:
    seconds = elapsed(row)
    shown = None if seconds is None else f"{seconds:.1f}"
    return fields(_named(row), row["status"], standing_words(row), shown, said_words(row), row["command"])


def _named(row: WorkerRow) -> str:
    """Return a worker's name, with its task if the rows are of several tasks."""
    return "/".join(str(row[key]) for key in ("taskId", "agentInstance") if key in row)


def _table(rows: Iterable[WorkerRow]) -> Table | Iterator[str]:
    from agentctl.interfaces.commands.parts.tables import workers

    named: list[WorkerRow] = [{**row, "agentInstance": _named(row)} for row in rows]
    return workers(named) if named else iter(())


def show_workers(
    call: Invocation,
    *,
    instances: list[str] | None = None,
    failed: bool = False,
    status: str | None = None,
    agent: str | None = None,
    words: str | None = None,
) -> Shown[ShownWorker | list[ShownWorker]]:
    """Show everything that is known about one worker.

    Its status, what it was started with, its processes, its questions, how it ended, and where its files are.

    On a command line:
        Of a long value the beginning is shown; --json has all of it.
    """
    from agentctl.operations.show.one_worker import show_worker  # `list` does not need it.

    task = call.task_to_show()
    chosen = workers_chosen(task, instances, Selection(failed, status, agent, words))
    found = [show_worker(task, one) for one in chosen]
    lines = (
        line
        for name, worker in zip(chosen, found, strict=True)
        for line in (*filter(None, [headed(name, instances)]), *outline(worker, longest=_LONGEST))
    )
    return Shown(one_or_all(found, instances), lines)


COMMANDS = (
    Command(
        "list",
        list_task,
        IN_TASK,
        """
agentctl list
agentctl list --recursive
agentctl list --json --task survey-auth
agentctl list --failed
agentctl list --hosts all
""",
        (RECURSIVE, HOSTS, Parameter("everyone", FLAG, "Earlier tries of a work too.", typed="all"), *SELECT),
    ),
    Command(
        "show",
        show_workers,
        IN_TASK,
        "agentctl show explore-1\nagentctl show explore-1 --json",
        (NAMED_INSTANCES, *SELECT),
    ),
)
