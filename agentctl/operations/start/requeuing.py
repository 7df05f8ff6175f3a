"""Gives the caller's environment to queued workers that lost theirs in a reboot or a logout."""

from __future__ import annotations

import os

from agentctl.adapters.files import sync_folder
from agentctl.adapters.locks import locked
from agentctl.adapters.opening import read_bytes
from agentctl.adapters.taskdir import TaskDir, TreeDir
from agentctl.adapters.treedir import tree_of
from agentctl.operations.notify.applied_targets import rearm
from agentctl.operations.where.folding import fold
from agentctl.operations.where.ownership import check_own
from agentctl.supervision.dispatch.dispatch import dispatch
from agentctl.supervision.queue.tickets import Ticket, read_queue, remove_ticket
from agentctl.supervision.worker import environment
from agentctl.supervision.worker.endings import is_over
from agentctl.supervision.worker.spec import digest_of, is_of_task


def _in_log(tree: TreeDir, queue: list[Ticket]) -> list[Ticket]:
    """Return the tickets that a spawn has put into the queue: a cloned repository may bring others."""
    views = {task_id: fold(tree.sibling(task_id)) for task_id in {ticket.task_id for ticket in queue}}
    logged = [ticket for ticket in queue if ticket.instance in views[ticket.task_id].workers]
    return [ticket for ticket in logged if is_of_task(tree.worker_at(ticket.worker_id))]


def requeue_workers(task: TaskDir) -> list[str]:
    """Give this process's environment to queued workers whose own is gone, and start what can start.

    By this, a person vouches for the orders as they are now: what vouched for them is lost with the environment.
    """
    check_own(task)
    rearm(task)
    tree, blob = tree_of(task), environment.pack(environment.for_worker(os.environb, {}))
    folder, digests = environment.store_folder(), {}
    with locked(tree.queue_lock):
        for ticket in _in_log(tree, read_queue(tree)):
            worker = tree.worker_at(ticket.worker_id)
            if environment.waits(folder, ticket.environment):
                continue
            if is_over(worker):
                remove_ticket(tree, ticket)
                continue
            digests[ticket] = digest_of(read_bytes(worker.spec))
        token = environment.put(environment.with_orders(blob, digests.values())) if digests else ""
        for ticket in digests:
            os.rename(tree.queue / ticket, tree.queue / ticket.with_environment(token))
        sync_folder(tree.queue)
    dispatch(tree)
    return [ticket.instance for ticket in digests]
