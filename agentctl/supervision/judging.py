"""What is so with a worker that the log does not tell the end of; and what to write down about it."""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum

from agentctl.adapters import processes, roster
from agentctl.adapters.config import root_of_tree
from agentctl.adapters.files import read_quietly
from agentctl.adapters.locks import is_alive_held
from agentctl.adapters.processes import Life
from agentctl.adapters.taskdir import AgentDir, TaskDir
from agentctl.domain.states import Reason, Status
from agentctl.supervision import tree
from agentctl.supervision.endings import Ending, decide, publish
from agentctl.supervision.tickets import read_queue


class Condition(Enum):
    """Who looks after a worker."""

    #: Its end is decided (exit.json is there).
    ENDED = "ended"
    #: A live shim guards it.
    SUPERVISED = "supervised"
    #: A ticket waits for it in the queue.
    QUEUED = "queued"
    #: Its shim is gone, something of it is alive.
    UNSUPERVISED = "unsupervised"
    #: It and its shim are proven gone; nobody saw the exit.
    LOST = "lost"
    #: On another machine or in another pid namespace: not to be judged from here.
    ELSEWHERE = "elsewhere"


def queued_instances(task: TaskDir) -> set[str]:
    """Return the workers of a task that have a ticket."""
    return {ticket.instance for ticket in read_queue(root_of_tree(task)) if ticket.task_id == task.id}


def judge(agent: AgentDir, queued: Collection[str] | None = None) -> Condition:
    """Judge a worker by its files and the kernel.

    Args:
        queued: The instances with a ticket, read before this call.

    The order of the looks is what makes it true. A ticket goes only after the shim's lock is held, and the lock only
    after exit.json is there: no ticket, then no lock, then no exit.json together prove that nobody will write one.
    """
    if agent.instance in (queued_instances(agent.task) if queued is None else queued):
        return Condition.ENDED if agent.has_ended else Condition.QUEUED
    if is_alive_held(agent.shim):
        return Condition.ENDED if agent.has_ended else Condition.SUPERVISED
    if agent.has_ended:
        return Condition.ENDED
    # A power cut may have emptied the files of identities: they are not fsynced, since it ends the process too.
    worker = read_quietly(agent.worker)
    identity = processes.identity_from(worker)
    if identity is None:
        shim = processes.identity_from(read_quietly(agent.shim))
        return Condition.ELSEWHERE if shim and processes.life_of(shim) is Life.ELSEWHERE else Condition.LOST
    life = processes.life_of(identity)
    if life is Life.ELSEWHERE:
        return Condition.ELSEWHERE
    if life is Life.ALIVE or tree.without_shim(identity, str(worker.get("cookie"))).living():
        return Condition.UNSUPERVISED
    return Condition.LOST


def settle(agent: AgentDir, condition: Condition) -> bool:
    """Write down what `condition` proves: the missing event of an end, or that a worker is lost.

    Returns:
        Whether the worker has ended.
    """
    if condition is Condition.LOST:
        decide(agent, lost_ending(agent))
    elif condition is not Condition.ENDED:
        return False
    publish(agent)
    roster.mark_stale(agent.task)  # Whoever owed the roster this row may be gone.
    return True


def lost_ending(agent: AgentDir) -> Ending:
    """Return the ending of a worker that is proven gone: it never began, or nobody saw how it ended."""
    worker = read_quietly(agent.worker)
    if processes.identity_from(worker) is None:
        message = "its shim died before the worker was started"
        return Ending(status=Status.FAILED, reason=Reason.NOT_STARTED, message=message)
    message = "worker and shim are gone (killed, or the machine was restarted); the exit was not seen"
    return Ending(
        status=Status.FAILED, reason=Reason.LOST, message=message, started_at=worker.get("startedAt"),
        attempt=int(worker.get("attempt", 1)),
    )  # fmt: skip
