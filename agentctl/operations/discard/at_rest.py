"""Whether workers have ended with all that belongs to them, and nothing waits for them: only then they may go."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator

from agentctl.adapters import processes
from agentctl.adapters.clock import monotonic
from agentctl.adapters.locks import is_alive_held
from agentctl.adapters.taskdir import TaskDir, WorkerDir
from agentctl.adapters.treedir import tree_of
from agentctl.domain.worker.projection import TaskView
from agentctl.errors import AtTerminal, Refused
from agentctl.operations.where.calling import is_from_worker
from agentctl.operations.where.command_lines import command_line
from agentctl.operations.where.lineage import shown_caller
from agentctl.supervision.queue.tickets import Ticket, dependencies_of, read_queue
from agentctl.supervision.worker import deferred
from agentctl.supervision.worker.kinship import descendants

#: How long a shim may take, once the end of its worker is told, to do the rest: the roster, the queue, its lock.
_SHIM_S, _PAUSE_S = 10.0, 0.02


def refuse_for_workers(what: str) -> None:
    """Raise `Refused` where a worker calls: what it has used up would no longer count, nor what it was asked.

    Args:
        what: What it may not do.
    """
    if shown_caller() is not None or is_from_worker() or processes.is_in_sandbox():
        raise Refused(f"a worker may not {what}", hint="only a person can, in their own terminal")


def refusal_of_live(task: TaskDir, view: TaskView, instance: str) -> Refused | None:
    """Return why a worker may not go by what it does itself; None if it has ended, and its shim is done with it."""
    worker, one = task.worker(instance), view.workers.get(instance)
    if one is None:
        if not worker.path.exists():
            return Refused(f"{instance} was removed meanwhile")
        return Refused(f"{instance} was never begun: its spawn was killed, or is under way", hint=_DOCTOR)
    if not one.is_terminal:
        said = "paused" if one.is_paused else str(one.status)
        return Refused(f"{instance} is {said}", hint=AtTerminal(f"{command_line(task, 'cancel', instance)} ends it"))
    if is_alive_held(worker.shim):
        return Refused(
            f"the shim of {instance} is still at work",
            hint=AtTerminal(f"{command_line(task, 'why', instance)} says why"),
        )
    if is_alive_held(worker.editor):
        return Refused(f"an editor has the session of {instance} open", hint="close it there")
    if deferred.are_any() and deferred.standing(worker):
        return Refused(f"something of {instance} waits in memory for the disk", hint="make the disk take files again")
    return None


_DOCTOR = AtTerminal("agentctl doctor --fix removes what killed ones leave")


def live_below(worker: WorkerDir) -> Iterator[WorkerDir]:
    """Yield the workers below one, in any task, that have not ended."""
    return (below for below in descendants(worker) if not below.has_ended or is_alive_held(below.shim))


def awaited_in_queue(task: TaskDir, names: Collection[str]) -> dict[str, str]:
    """Return which of some workers of a task somebody in the queue waits for: worker -> who waits."""
    tree = tree_of(task)
    found: dict[str, str] = {}
    for ticket in read_queue(tree):
        if ticket.task_id == task.id and ticket.waits:
            for name in _awaited(task, ticket):
                if name in names:
                    found.setdefault(name, ticket.instance)
    return found


def _awaited(task: TaskDir, ticket: Ticket) -> Iterable[str]:
    try:
        return dependencies_of(tree_of(task), ticket)[0]
    except FileNotFoundError:  # It was started meanwhile.
        return ()


def await_shims(workers: Iterable[WorkerDir]) -> None:
    """Wait until the shims of workers that have ended are done with them, as long as that usually takes."""
    until = monotonic() + _SHIM_S
    for worker in workers:
        while worker.has_ended and is_alive_held(worker.shim) and monotonic() < until:
            time.sleep(_PAUSE_S)
