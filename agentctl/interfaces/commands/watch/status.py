"""`status`, and `agentctl` alone: what needs a person, what has failed and what runs, in a few lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from agentctl.domain.names import first_of
from agentctl.domain.states import STRANDED, UNKNOWN, Status
from agentctl.domain.text.plaintext import plain
from agentctl.domain.worker.need import Need
from agentctl.errors import AgentctlError
from agentctl.interfaces.commands.model.command_model import FINDS, Command, Shown
from agentctl.interfaces.commands.model.invocation import Invocation
from agentctl.interfaces.commands.model.parameters import FORCE, ONE_TASK, ROOT
from agentctl.interfaces.commands.watch.fleet_changes import (
    by_need,
    facts_of_first,
    heading,
    note_foreign,
    whole_glance,
    workers_of_view,
)
from agentctl.interfaces.words.worker import stranded_words
from agentctl.operations.fleet.fleet import Fleet
from agentctl.operations.fleet.glance import FleetWorker, Glance
from agentctl.operations.fleet.seen import SeenEnds
from agentctl.operations.where.command_lines import line_with, root_option
from agentctl.operations.where.locating import RootAbove

#: So many workers of each need are named, and so many tasks.
_MOST = 5
#: What wants a person, and is named; the others are only counted.
_NAMED = (Need.NEEDS_YOU, Need.REVIEW, Need.FAILED)
_COUNTED = (Status.RUNNING, Status.BLOCKED, Status.QUEUED, UNKNOWN)


def status(call: Invocation) -> Shown:
    """Show what needs you, what has failed and what runs, in all tasks.

    This is what `agentctl` shows without a command. First come the open questions, each with the line that answers it,
    then what is ready for review and what has failed since you looked, then how many workers of each task run and
    wait. Where nothing was started yet, it says how to begin. The lines are the same to a pipe; for programs there are
    the documents of `tasks --json` and `interact list --json`.
    """
    try:
        root = call.root(absent=True)
    except RootAbove as above:
        return Shown(None, [plain(above.message), *[plain(above.hint)] * bool(above.hint)])
    task = call.named_task()
    if not root.path.is_dir():
        return Shown(None, _beginning())
    listed = root.task_ids()
    with Fleet(root, SeenEnds(root)) as fleet:
        glance = whole_glance(fleet)
    unknown = [name for name in listed if _is_unknown(glance, name) and root.task(name).exists]
    workers = workers_of_view(glance, None if task is None else task.id)
    note_foreign(call, glance, workers)
    if not workers and not unknown:
        return Shown(None, _beginning())
    return Shown(None, _lines(glance, workers, unknown))


def _is_unknown(glance: Glance, name: str) -> bool:
    return name not in glance.tasks or glance.tasks[name].state == UNKNOWN


def _lines(glance: Glance, workers: list[FleetWorker], unknown: list[str]) -> Iterator[str]:
    groups = by_need(workers)
    for need in (one for one in _NAMED if one in groups):
        yield heading(need, groups[need])
        yield from facts_of_first(groups[need], _MOST)
    live = [*groups.get(Need.WORKING, ()), *groups.get(Need.QUEUED, ())]
    yield from _stranded([worker for worker in live if worker.row["health"] == STRANDED])
    yield from _counted(glance, live)
    if Need.DONE in groups:
        yield heading(Need.DONE, groups[Need.DONE])
    if unknown:
        yield plain(f"Unknown, as they cannot be read: {first_of(unknown)}; agentctl doctor says why")


def _stranded(workers: list[FleetWorker]) -> Iterator[str]:
    if workers:
        step = line_with(root_option(workers[0].task.root), "resume", "--lost")
        yield stranded_words([worker.id for worker in workers], step)


def _counted(glance: Glance, workers: Iterable[FleetWorker]) -> Iterator[str]:
    """Yield a line for each task with what runs and waits in it."""
    found: dict[str, Counter[str]] = {}
    for worker in workers:
        found.setdefault(worker.task.id, Counter())[_state(worker)] += 1
    for name, count in list(found.items())[:_MOST]:
        held = " (held)" if name in glance.tasks and glance.tasks[name].hold is not None else ""
        yield plain(f"{name}: {', '.join(f'{count[one]} {one}' for one in _COUNTED if count[one])}{held}")
    if len(found) > _MOST:
        yield f"and {len(found) - _MOST} tasks more"


def _state(worker: FleetWorker) -> str:
    return UNKNOWN if worker.row["health"] == UNKNOWN else worker.row["status"]


def _beginning() -> Iterator[str]:
    """Yield lines that work in any folder."""
    driver = _installed_driver()
    yield "Nothing was started here yet. To begin:"
    yield "  agentctl spawn -- du -sh ."
    if driver is not None:
        yield f'  agentctl spawn --driver {driver} "Say what is in this folder"'
    yield "  agentctl watch"
    if driver is None:
        yield "  agentctl help"


def _installed_driver() -> str | None:
    """Return the agent program that a start would take; None if none is installed, or what is cannot be told."""
    from agentctl.drivers.registry import TESTED_DRIVERS, choose  # Only where nothing was started yet.

    try:
        driver = choose(None, TESTED_DRIVERS)
    except AgentctlError:
        return None
    return None if driver.is_ours else driver.name


COMMANDS = (
    Command(
        "status",
        status,
        (ONE_TASK, ROOT, FORCE),
        """
agentctl status
agentctl status --task survey-auth
""",
        exits=FINDS,
    ),
)
