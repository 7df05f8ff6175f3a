"""What is held in the queue of a task, in a person's words, with the command that lets it go."""

from __future__ import annotations

from collections.abc import Iterable

from agentctl.adapters.taskdir import TaskDir, TreeDir, WorkerDir
from agentctl.adapters.treedir import tree_of
from agentctl.domain.text.plaintext import plain
from agentctl.errors import Next, at_terminal
from agentctl.operations.where.command_lines import command_line
from agentctl.supervision.queue.queue_hold import QueueHold, QueueHolds


def queue_holds_of(task: TaskDir, waiting: Iterable[str]) -> list[QueueHold]:
    """Return the holds of a task's queue and of its workers in the queue, each once; a task's own first."""
    holds = QueueHolds(tree_of(task))
    found = [holds.of_task(task.id), *(holds.of(task.worker(name)) for name in waiting)]
    return list(dict.fromkeys(filter(None, found)))


def queue_hold_of(worker: WorkerDir) -> QueueHold | None:
    """Return what keeps a worker in the queue until somebody lets it go."""
    return QueueHolds(tree_of(worker.task)).of(worker)


def hold_in_words(task: TaskDir, hold: QueueHold) -> str:
    """Return that nothing is started, why, and what ends that."""
    tree = tree_of(task)
    return plain(f"nothing is started: {hold.in_words(tree)}; {_way_out(tree, hold)}")


def _way_out(tree: TreeDir, hold: QueueHold) -> str | None:
    """Return what ends a hold at a terminal, with the options that the command needs there."""
    step = hold.next_step()
    if not isinstance(step, Next) or hold.task_id.startswith("/"):
        return at_terminal(step)
    return f"{command_line(tree.sibling(hold.task_id), 'unpause', *filter(None, [step.of]))} {step.does}"
