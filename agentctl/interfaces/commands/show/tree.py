"""`tree`: what the workers of a task do, with their sub-agents."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

from agentctl.adapters.taskdir import TaskDir
from agentctl.domain.text.plaintext import plain
from agentctl.errors import Argument, AtTerminal, StorageError, UsageError, WithArguments
from agentctl.interfaces.commands.model.command_model import (
    EXPANDED,
    FLAG,
    INSTANCES,
    TEXT,
    TEXTS,
    Command,
    Parameter,
    Screenful,
    Showing,
    Shown,
)
from agentctl.interfaces.commands.model.invocation import Invocation
from agentctl.interfaces.commands.model.parameters import IN_TASK, RECURSIVE
from agentctl.interfaces.commands.parts.wait_notes import questions_to_note
from agentctl.interfaces.words.activity import tree_lines
from agentctl.lean import TYPE_CHECKING
from agentctl.operations.show.askers import PendingQuestion
from agentctl.operations.show.tree_view import Tree, WorkerTree

if TYPE_CHECKING:
    from agentctl.domain.documents.views import NestedTaskTree, TaskTree

#: Where a worker is named: every one.
ALL = "all"
#: A line of which only the time changes counts as unchanged.
_CLOCK = re.compile(r"  \d[\d.]*(s|m\d\ds|h\d\dm)(?=  |$)")


def tree(
    call: Invocation,
    *,
    instance: str | None = None,
    expand: list[str] | None = None,
    follow: bool = False,
    recursive: bool = False,
) -> Showing[TaskTree | list[NestedTaskTree]]:
    """Show what the workers of a task do, and their sub-agents.

    A worker's sub-agents are groups: type, purpose, status, time, tool calls and tokens of them and all below them.
    Running items are shown; ended ones only if expanded, and then the last 200 of each group.

    On a command line:
        Groups are marked +. With --follow a terminal is redrawn at each change; to a pipe each changed line is printed.
    """
    if follow and call.json:
        worker_alone = AtTerminal("agentctl activity INSTANCE -f --json follows a worker")
        raise UsageError(
            WithArguments(Argument("follow"), " and ", Argument("json"), " exclude each other"), hint=worker_alone
        )
    task = call.task_to_show()
    wanted = None if expand and ALL in expand else expand or ()
    if recursive:
        if follow:
            raise UsageError(
                WithArguments(Argument("recursive"), " shows all tasks once"), hint=AtTerminal("leave --follow out")
            )
        if instance:
            raise UsageError(
                "one worker is named, and those of all sub-tasks are meant",
                hint=WithArguments("leave out its name, or ", Argument("recursive")),
            )
        return (yield from _show_all(call, task, wanted))
    found = Tree(task, instance=instance, expand=wanted)
    if follow:
        yield from _frames(task, found)
    else:
        workers = found.look()
        yield Shown({"taskId": task.id, "workers": [worker.to_json() for worker in workers]}, _lines(task, workers))
        call.note_all(questions_to_note(found.asked_below, task.root))
        call.note_all(found.holds)
    call.warn(found.warnings)
    return call.report_unreadable(found.unreadable)


def _show_all(call: Invocation, top: TaskDir, wanted: Collection[str] | None) -> Showing[list[NestedTaskTree]]:
    """Show a task and, as an outline, the sub-tasks below it."""
    from agentctl.operations.where.subtasks_below import nesting

    rows: list[NestedTaskTree] = []
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
        call.warn(found.warnings)
    yield Shown(rows, lines)
    call.note_all(questions_to_note(sorted(asked), top.root))
    call.note_all(holds)
    return call.report_unreadable(unreadable)


def _lines(task: TaskDir, workers: Iterable[WorkerTree]) -> Iterator[str]:
    yield plain(task.id)
    for worker in workers:
        for line in tree_lines(worker):
            yield f"  {line}"


def _frames(task: TaskDir, found: Tree) -> Iterator[Screenful]:
    for workers in found.follow():
        asked = questions_to_note(found.asked_below, task.root)
        yield Screenful([*_lines(task, workers), *asked, *found.holds], same=lambda line: _CLOCK.sub("", line))


COMMANDS = (
    Command(
        "tree",
        tree,
        IN_TASK,
        """
agentctl tree
agentctl tree explore-1 --expand explore-1
agentctl tree --expand all --follow
agentctl tree --recursive --json
""",
        (
            Parameter(
                "instance",
                TEXT,
                "Only this worker and those below it.",
                "[INSTANCE]",
                is_argument=True,
                completes=INSTANCES,
            ),
            Parameter("expand", TEXTS, "Show everything that a worker did.", "all|I", completes=EXPANDED),
            Parameter("follow", FLAG, "Keep printing what changes, until all workers have ended.", short="f"),
            RECURSIVE,
        ),
    ),
)
