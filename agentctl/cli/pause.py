"""`pause`, `unpause`: stop a worker's processes and its clock, or hold the queue of a task; and let them go on."""

from typing import Annotated, Any

import typer

from agentctl.adapters.taskdir import TaskDir
from agentctl.cli import options as opt
from agentctl.cli.invocation import Invocation
from agentctl.cli.verb import module, verb
from agentctl.operations.show.queue_holds import hold_in_words
from agentctl.operations.stop.holding import hold_task, let_task_go
from agentctl.operations.stop.pausing import pause_worker, unpause_worker
from agentctl.supervision.queue.queue_hold import QueueHold

app = module()

_OneOrQueue = Annotated[
    str | None,
    typer.Argument(
        metavar="[INSTANCE]",
        help="The worker; without one the queue of the task.",
        autocompletion=opt.complete_instances,
    ),
]


@verb(app, "pause", examples="agentctl pause explore-1\nagentctl pause\nagentctl pause --task survey-auth --json")
def pause(call: opt.InTask, instance: _OneOrQueue = None) -> None:
    """Stop all processes of a worker, and its clock; or hold the queue of a task.

    A paused worker keeps its slot, and nothing is started below it. It can be cancelled. While the queue of a task is
    held, nothing of the task and of its sub-tasks is started; what is at work goes on.
    """
    task = call.task()
    if instance is None:
        _show_queue(call, task, hold_task(task))
    else:
        _show(call, pause_worker(task, instance), "paused")


@verb(app, "unpause", examples="agentctl unpause explore-1\nagentctl unpause\nagentctl unpause --json")
def unpause(call: opt.InTask, instance: _OneOrQueue = None) -> None:
    """Let a paused worker continue, or let the queue of a task go."""
    task = call.task()
    if instance is None:
        _show_queue(call, task, let_task_go(task))
    else:
        _show(call, unpause_worker(task, instance), "goes on")


def _show(call: Invocation, result: dict[str, Any], word: str) -> None:
    below = result.get("withIt")
    call.show(result, [f"{result['agentInstance']} {word}" + (f", with {', '.join(below)}" if below else "")])


def _show_queue(call: Invocation, task: TaskDir, result: dict[str, Any]) -> None:
    held = result["held"]
    if held is None:
        call.show(result, [f"the queue of {task.id} goes on"])
        return
    hold = QueueHold(held["taskId"], held.get("agentInstance"), held["by"], held["at"])
    stay = f" ({result['queued']} in the queue)" if result["queued"] else ""
    call.show(result, [f"{hold_in_words(task, hold)}{stay}"])
