"""`pause`, `unpause`: stop a worker's processes and its clock, or hold the queue of a task; and let them go on."""

from __future__ import annotations

from agentctl.adapters.taskdir import TaskDir
from agentctl.interfaces.commands.model.command_model import Command, Shown
from agentctl.interfaces.commands.model.invocation import Invocation
from agentctl.interfaces.commands.model.parameters import IN_TASK, NAMED_INSTANCES
from agentctl.interfaces.commands.parts.selection import NOBODY, SELECT, Selection, one_or_all, workers_chosen
from agentctl.lean import TYPE_CHECKING
from agentctl.operations.show.queue_holds import hold_in_words
from agentctl.operations.stop.holding import hold_task, let_task_go
from agentctl.operations.stop.pausing import pause_workers, unpause_workers
from agentctl.supervision.queue.queue_hold import QueueHold

if TYPE_CHECKING:
    from agentctl.domain.documents.workers.ends import PausedWorker, QueueStanding

_SOME_OR_QUEUE = NAMED_INSTANCES._replace(help="The workers; without any the queue of the task.")


def pause(
    call: Invocation,
    *,
    instances: list[str] | None = None,
    failed: bool = False,
    status: str | None = None,
    agent: str | None = None,
    words: str | None = None,
) -> Shown[PausedWorker | list[PausedWorker] | QueueStanding]:
    """Stop all processes of a worker, and its clock; or hold the queue of a task.

    A paused worker keeps its slot, and nothing is started below it. It can be cancelled. While the queue of a task is
    held, nothing of the task and of its sub-tasks is started; what is at work goes on.
    """
    task, selection = call.task(), Selection(failed, status, agent, words)
    if not instances and selection == Selection():
        return _of_queue(task, hold_task(task))
    return _of_workers(pause_workers(task, workers_chosen(task, instances, selection)), instances, "paused")


def unpause(
    call: Invocation,
    *,
    instances: list[str] | None = None,
    failed: bool = False,
    status: str | None = None,
    agent: str | None = None,
    words: str | None = None,
) -> Shown[PausedWorker | list[PausedWorker] | QueueStanding]:
    """Let a paused worker continue, or let the queue of a task go."""
    task, selection = call.task(), Selection(failed, status, agent, words)
    if not instances and selection == Selection():
        return _of_queue(task, let_task_go(task))
    return _of_workers(unpause_workers(task, workers_chosen(task, instances, selection)), instances, "goes on")


def _of_workers(
    done: list[PausedWorker], named: list[str] | None, word: str
) -> Shown[PausedWorker | list[PausedWorker]]:
    lines = (
        f"{one['agentInstance']} {word}" + (f", with {', '.join(below)}" if (below := one["withIt"]) else "")
        for one in done
    )
    return Shown(one_or_all(done, named), lines, notes=[] if done else [NOBODY])


def _of_queue(task: TaskDir, result: QueueStanding) -> Shown[QueueStanding]:
    held = result["held"]
    if held is None:
        return Shown(result, [f"the queue of {task.id} goes on"])
    hold = QueueHold(held["taskId"], held.get("agentInstance"), held["by"], held["at"])
    stay = f" ({result['queued']} in the queue)" if result["queued"] else ""
    return Shown(result, [f"{hold_in_words(task, hold)}{stay}"])


COMMANDS = (
    Command(
        "pause",
        pause,
        IN_TASK,
        "agentctl pause explore-1\nagentctl pause\nagentctl pause --task survey-auth --json",
        (_SOME_OR_QUEUE, *SELECT),
        names_task=True,
    ),
    Command(
        "unpause",
        unpause,
        IN_TASK,
        "agentctl unpause explore-1\nagentctl unpause\nagentctl unpause --json",
        (_SOME_OR_QUEUE, *SELECT),
        names_task=True,
    ),
)
