"""`rm`: remove ended workers for good."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from agentctl.adapters.taskdir import TaskDir
from agentctl.domain.names import WorkerId, first_of
from agentctl.domain.states import TERMINAL
from agentctl.errors import AtTerminal, ExitCode, Refused, UsageError
from agentctl.interfaces.commands.model.command_model import FINDS, FLAG, WORKS, Command, Parameter, Shown
from agentctl.interfaces.commands.model.invocation import Invocation
from agentctl.interfaces.commands.model.parameters import IN_TASK, NAMED_INSTANCES
from agentctl.interfaces.commands.parts.selection import NOBODY, SELECT, Selection, is_newest, left_out_lines
from agentctl.lean import TYPE_CHECKING
from agentctl.operations.discard.removing_workers import RemovalPlan, RemovedAll, plan_removal, remove_planned
from agentctl.operations.fleet.seen import SeenEnds
from agentctl.operations.show.listing import each_worker

if TYPE_CHECKING:
    from agentctl.domain.documents.workers.ends import RemovedWorkers

_SELECTED = AtTerminal("or select them by --ended, --failed, --status, --agent or --filter")
#: So many names are shown before somebody is asked.
_MOST_SHOWN = 20


def rm(
    call: Invocation,
    *,
    instances: list[str] | None = None,
    ended: bool = False,
    recursive: bool = False,
    yes: bool = False,
    failed: bool = False,
    status: str | None = None,
    agent: str | None = None,
    words: str | None = None,
) -> Shown[RemovedWorkers]:
    """Remove ended workers for good.

    Their folders go, with all that they wrote, and their names are free: who gets one later is another worker. A name
    means a work, and so all of its tries; NAME@1, or the name of a further try, means that one alone. A worktree goes
    with its worker if nothing in it is lost by that; if something would be, nothing of that worker is removed.

    Nothing is removed if one of the named is live, if something in the queue waits for it, or if it has started others,
    unless --recursive takes these with it. Of those that are selected, what has to stay is left out, and told. At a
    terminal a selection is shown first, and asked about. What the removed ones have used up no longer counts.
    """
    task, selection = call.task(), Selection(failed, status, agent, words)
    is_selected = ended or selection != Selection()
    if bool(instances) == is_selected:
        said = "name the workers or select them, not both" if instances else "no worker is named"
        raise UsageError(said, hint=("name them", _SELECTED))
    named = list(instances or _works_selected(task, selection, ended=ended))
    if not named:
        return _shown(RemovedAll(task, [], [], {}), nothing=f"nothing to remove: {NOBODY}")
    plan = plan_removal(task, named, recursive=recursive, as_far_as_possible=is_selected)
    if is_selected and plan.works and not yes and call.is_terminal("stdin"):
        _ask(call, plan)
    done = remove_planned(plan, as_far_as_possible=is_selected)
    SeenEnds(task.root).forget([WorkerId(task.id, name) for name in done.workers], of_tasks=done.subtasks)
    return _shown(done)


def _works_selected(task: TaskDir, selection: Selection, *, ended: bool) -> Iterable[str]:
    for row in each_worker(task).rows:
        if is_newest(row) and selection.has(row, task.id) and not (ended and row["status"] not in TERMINAL):
            yield row.get("work") or row["agentInstance"]


def _ask(call: Invocation, plan: RemovalPlan) -> None:
    call.note(f"to be removed: {first_of(plan.workers, _MOST_SHOWN)}")
    if plan.subtasks:
        call.note(f"with their sub-tasks: {first_of(plan.subtasks, _MOST_SHOWN)}")
    if plan.left_out:
        call.note_all(left_out_lines(plan.left_out))
    count = len(plan.workers)
    if not call.is_confirmed(f"Remove {count} worker{'' if count == 1 else 's'} for good?"):
        raise Refused("nothing was removed", hint=AtTerminal("--yes removes what is shown above"))


def _shown(done: RemovedAll, nothing: str | None = None) -> Shown[RemovedWorkers]:
    value: RemovedWorkers = {
        "taskId": done.task.id,
        "workers": list(done.workers),
        "subtasks": list(done.subtasks),
        "leftOut": [
            {"agentInstance": name, "reason": why.message, "next": why.hint} for name, why in done.left_out.items()
        ],
    }
    return Shown(
        value, _lines(done), notes=[nothing] if nothing else left_out_lines(done.left_out),
        code=ExitCode.REFUSED if done.left_out else ExitCode.DONE,
    )  # fmt: skip


def _lines(done: RemovedAll) -> Iterator[str]:
    yield from (f"{name} removed from {done.task.id}" for name in done.workers)
    yield from (f"sub-task {name} removed" for name in done.subtasks)


COMMANDS = (
    Command(
        "rm",
        rm,
        IN_TASK,
        """
agentctl rm build
agentctl rm build@1
agentctl rm --ended --filter n:lint --yes
""",
        (
            NAMED_INSTANCES._replace(completes=WORKS),
            Parameter("ended", FLAG, "All that have ended.", group="Instead of names"),
            *SELECT,
            Parameter("recursive", FLAG, "Remove with them what they have started: workers, whole sub-tasks."),
            Parameter("yes", FLAG, "Do not ask.", short="y"),
        ),
        exits=FINDS,
    ),
)
