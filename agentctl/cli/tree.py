"""`tree`: what the workers of a task do, with their sub-agents."""

import contextlib
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Annotated, Any

import typer

from agentctl.adapters.taskdir import TaskDir
from agentctl.cli import options as opt
from agentctl.cli.invocation import Invocation
from agentctl.cli.render import is_terminal, note_holds, note_questions, plain, report_unreadable, warn
from agentctl.cli.verb import module, verb
from agentctl.errors import StorageError, UsageError
from agentctl.operations.show.askers import PendingQuestion
from agentctl.operations.show.tree_view import Tree, WorkerTree
from agentctl.operations.where.command_lines import root_words
from agentctl.text.activity import tree_lines
from agentctl.text.worker import questions_open

app = module()

#: A line of which only the time changes counts as unchanged.
_CLOCK = re.compile(r"  \d[\d.]*(s|m\d\ds|h\d\dm)(?=  |$)")


@verb(
    app,
    "tree",
    examples="""
agentctl tree
agentctl tree explore-1 --expand explore-1
agentctl tree --expand all --follow
agentctl tree --recursive --json
""",
)
def tree(
    call: opt.InTask,
    instance: Annotated[
        str | None,
        typer.Argument(
            metavar="[INSTANCE]", help="Only this worker and those below it.", autocompletion=opt.complete_instances
        ),
    ] = None,
    expand: Annotated[
        list[str] | None,
        typer.Option("--expand", metavar="all|I", help="Show everything that a worker did; repeatable."),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Keep printing what changes, until all workers have ended.")
    ] = False,
    recursive: opt.Recursive = False,
) -> int:
    """Show what the workers of a task do, and their sub-agents.

    A worker's sub-agents are groups, marked +: type, purpose, status, time, tool calls and tokens of them and all below
    them. Running items are shown; ended ones only if expanded, and then the last 200 of each group. With
    --follow a terminal is redrawn at each change; to a pipe each changed line is printed.
    """
    if follow and call.json:
        worker_alone = "agentctl activity INSTANCE -f --json follows a worker"
        raise UsageError("--follow and --json exclude each other", hint=worker_alone)
    task = call.task_to_show()
    wanted = None if expand and "all" in expand else expand or ()
    if recursive:
        if follow or instance:
            raise UsageError("--recursive shows all tasks once", hint="leave out the instance and --follow")
        return _show_all(call, task, wanted)
    found = Tree(task, instance=instance, expand=wanted)
    if follow:
        _follow(task, found)
    else:
        workers = found.look()
        call.show({"taskId": task.id, "workers": [worker.to_json() for worker in workers]}, _lines(task, workers))
        note_questions(found.asked_below, task.root)
        note_holds(found.holds)
    warn(found.warnings)
    return report_unreadable(found.unreadable)


def _show_all(call: Invocation, top: TaskDir, wanted: Collection[str] | None) -> int:
    """Show a task and, as an outline, the sub-tasks below it; return the exit code."""
    from agentctl.operations.where.subtasks_below import nesting

    rows: list[dict[str, Any]] = []
    lines: list[str] = []
    asked: set[PendingQuestion] = set()
    holds: dict[str, None] = {}
    unreadable: list[StorageError] = []
    for task, level in nesting(top):
        expand = None if wanted is None else [name for name in wanted if task.worker(name).path.exists()]
        found = Tree(task, expand=expand)
        workers = found.look()
        rows.append({"taskId": task.id, "level": level, "workers": [worker.to_json() for worker in workers]})
        lines += ["  " * level + line for line in _lines(task, workers)]
        asked.update(found.asked_below)
        holds.update(dict.fromkeys(found.holds))
        unreadable += found.unreadable
        warn(found.warnings)
    call.show(rows, lines)
    note_questions(sorted(asked), top.root)
    note_holds(holds)
    return report_unreadable(unreadable)


def _lines(task: TaskDir, workers: Iterable[WorkerTree]) -> Iterator[str]:
    yield plain(task.id)
    for worker in workers:
        for line in tree_lines(worker):
            yield f"  {line}"


def _follow(task: TaskDir, found: Tree) -> None:
    with _printing() as show:
        for workers in found.follow():
            asked = [questions_open(found.asked_below, root_words(task.root))] if found.asked_below else []
            show([*_lines(task, workers), *asked, *found.holds])


@contextlib.contextmanager
def _printing() -> Iterator[Callable[[list[str]], Any]]:
    """Yield a function that prints lines: on a terminal over the previous ones, to a pipe those that changed."""
    if is_terminal(sys.stdout):
        from agentctl.cli.tables import LiveLines

        with LiveLines() as live:
            yield live.show
        return
    before: set[str] = set()

    def print_changes(lines: list[str]) -> None:
        now = {_CLOCK.sub("", line): line for line in lines}
        for known, line in now.items():
            if known not in before:
                print(line, flush=True)
        before.clear()
        before.update(now)

    yield print_changes
