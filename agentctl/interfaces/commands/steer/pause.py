"""`pause`, `unpause`: stop a worker's processes and its clock, or hold the queue of a task; and let them go on."""

from __future__ import annotations

from agentctl.adapters.taskdir import TaskDir
from agentctl.interfaces.commands.model.command_model import INSTANCES, TEXT, Command, Parameter, Shown
from agentctl.interfaces.commands.model.invocation import Invocation
from agentctl.interfaces.commands.model.parameters import IN_TASK
from agentctl.lean import TYPE_CHECKING
from agentctl.operations.show.queue_holds import hold_in_words
from agentctl.operations.stop.holding import hold_task, let_task_go
from agentctl.operations.stop.pausing import pause_worker, unpause_worker
from agentctl.supervision.queue.queue_hold import QueueHold

if TYPE_CHECKING:
    from agentctl.domain.documents.workers.ends import PausedWorker, QueueStanding

_ONE_OR_QUEUE = Parameter(
    "instance",
    TEXT,
    "The worker; without one the queue of the task.",
    "[INSTANCE]",
    is_argument=True,
    completes=INSTANCES,
)


def pause(call: Invocation, *, instance: str | None = None) -> Shown[PausedWorker | QueueStanding]:
    """Stop all processes of a worker, and its clock; or hold the queue of a task.

    A paused worker keeps its slot, and nothing is started below it. It can be cancelled. While the queue of a task is
    held, nothing of the task and of its sub-tasks is started; what is at work goes on.
    """
    task = call.task()
    if instance is None:
        return _of_queue(task, hold_task(task))
    return _of_worker(pause_worker(task, instance), "paused")


def unpause(call: Invocation, *, instance: str | None = None) -> Shown[PausedWorker | QueueStanding]:
    """Let a paused worker continue, or let the queue of a task go."""
    task = call.task()
    if instance is None:
        return _of_queue(task, let_task_go(task))
    return _of_worker(unpause_worker(task, instance), "goes on")


def _of_worker(result: PausedWorker, word: str) -> Shown[PausedWorker]:
    below = result["withIt"]
    return Shown(result, [f"{result['agentInstance']} {word}" + (f", with {', '.join(below)}" if below else "")])


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
        (_ONE_OR_QUEUE,),
    ),
    Command(
        "unpause",
        unpause,
        IN_TASK,
        "agentctl unpause explore-1\nagentctl unpause\nagentctl unpause --json",
        (_ONE_OR_QUEUE,),
    ),
)
