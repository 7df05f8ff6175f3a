"""`tree`: what the workers of a task do, with their sub-agents."""

import contextlib
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Annotated, Any

import typer

from agentctl.adapters.taskdir import TaskDir
from agentctl.cli import options as opt
from agentctl.cli.activitytext import tree_lines
from agentctl.cli.render import (
    is_terminal,
    note_foreign,
    note_questions,
    out,
    out_json,
    out_now,
    plain,
    questions_open,
    warn,
)
from agentctl.cli.verb import module, verb
from agentctl.errors import UsageError
from agentctl.operations.show.tree_view import Tree, WorkerTree
from agentctl.operations.where.locating import find_task

app = module()

#: What changes with the clock alone is no change.
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
        bool, typer.Option("--follow", "-f", help="Go on with what changes, until all workers have ended.")
    ] = False,
    recursive: opt.Recursive = False,
    task: opt.Task = None,
    root: opt.Root = None,
    force: opt.Force = False,
    json: opt.Json = False,
) -> None:
    """Show what the workers of a task do, and their sub-agents.

    A worker's sub-agents are groups, marked +: type, purpose, status, time, tool calls and tokens of them and all below
    them. What runs is shown; what has ended only where it is expanded, and then the last 200 items of each
    group. With --follow a terminal is drawn again at each change; to a pipe each line is printed that changes.
    """
    if follow and json:
        raise UsageError("--follow and --json exclude each other", hint="agentctl activity -f --json follows a worker")
    place = note_foreign(find_task(task, root=root, force=force))
    wanted = None if expand and "all" in expand else expand or ()
    if recursive:
        if follow or instance:
            raise UsageError("--recursive shows all tasks once", hint="leave out the instance and --follow")
        _show_all(place, wanted, json=json)
        return
    found = Tree(place, instance=instance, expand=wanted)
    if follow:
        _follow(place, found)
    elif json:
        out_json({"taskId": place.id, "workers": [worker.to_json() for worker in found.look()]})
    else:
        for line in _lines(place, found.look()):
            out(line)
    if not follow:
        note_questions(found.asked_below)
    warn(found.warnings)


def _show_all(place: TaskDir, wanted: Collection[str] | None, *, json: bool) -> None:
    """Show a task and, as an outline, the sub-tasks below it."""
    from agentctl.operations.where.subtasks_below import nesting

    told = []
    for one, level in nesting(place):
        expand = None if wanted is None else [name for name in wanted if one.worker(name).path.exists()]
        found = Tree(one, expand=expand)
        workers = found.look()
        told.append({"taskId": one.id, "level": level, "workers": [worker.to_json() for worker in workers]})
        if not json:
            for line in _lines(one, workers):
                out("  " * level + line)
        warn(found.warnings)
    if json:
        out_json(told)


def _lines(place: TaskDir, workers: Iterable[WorkerTree]) -> Iterator[str]:
    yield plain(place.id)
    for worker in workers:
        for line in tree_lines(worker):
            yield f"  {line}"


def _follow(place: TaskDir, found: Tree) -> None:
    with _shown() as show:
        for workers in found.follow():
            asked = [questions_open(found.asked_below)] if found.asked_below else []
            show([*_lines(place, workers), *asked])


@contextlib.contextmanager
def _shown() -> Iterator[Callable[[list[str]], Any]]:
    """Give what shows the lines: on a terminal in the place of the ones before, to a pipe those that changed."""
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
                out_now(line)
        before.clear()
        before.update(now)

    yield print_changes
