"""Starts on a node the worker that was placed there: in a task of its own, which lies in the folder of its launch.

The order was checked at the head, when it was spawned. What depends on the machine (where marks are, what a sandbox has
to close) is found again here.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from agentctl.adapters import eventlog
from agentctl.adapters.clock import now_iso
from agentctl.adapters.files import create_whole, make_folder, to_json, write_whole
from agentctl.adapters.locks import locked
from agentctl.adapters.taskdir import LaunchDir, Root, TaskDir, WorkerDir
from agentctl.adapters.treedir import tree_of
from agentctl.domain import events as ev
from agentctl.errors import Damaged
from agentctl.operations.start.new_task import create_task
from agentctl.supervision.dispatch.dispatch import Dispatched, answers, dispatch_locked, give_orders
from agentctl.supervision.queue.tickets import make_ticket, show_ticket, write_ticket
from agentctl.supervision.worker import environment
from agentctl.supervision.worker.environment import NO_ENVIRONMENT
from agentctl.supervision.worker.spec import digest_of, read_spec

#: The task on a node has one worker. What that one starts is started at the head, and never here; and where it waits
#: for its account is the queue of the head.
_CONFIG = {"maxConcurrentAgents": 1, "maxDepth": 0, "cooldownSeconds": 0}
_OWN = environment.OWN_PREFIX.encode()


def make_task_on_node(launch: LaunchDir, task_id: str) -> TaskDir:
    """Make the one task of a launch, with nothing in it."""
    for folder in (launch.node, launch.calls):
        make_folder(folder)
    return create_task(Root(launch.node), "on a node", task_id=task_id, config=_CONFIG, is_chosen=False)


def begin_on_node(
    worker: WorkerDir, spec: Mapping[str, Any], environ: Mapping[bytes, bytes], cancel: bytes | None
) -> str:
    """Start the worker of a launch; return "" once it runs or has ended, else why its start is not known.

    Args:
        cancel: The content of a request to cancel it that was there before.
    """
    task, tree = worker.task, tree_of(worker.task)
    make_folder(worker.path)
    own = {os.fsdecode(name): os.fsdecode(value) for name, value in environ.items() if name.startswith(_OWN)}
    data = to_json(_adapted(worker, spec, own))
    write_whole(worker.spec, data)
    read_spec(worker.spec)
    if cancel is not None:
        create_whole(worker.cancel, cancel)
    blob = environment.with_orders(environment.pack(environ), [digest_of(data)])
    ticket = make_ticket(task.id, worker.instance, 0, 1, NO_ENVIRONMENT, waits=False)
    given = {worker.id: blob}
    with locked(tree.queue_lock):
        write_ticket(tree, ticket, (), after_any=False)
        payload = {"agent": spec.get("agent", "command"), "command": ""}
        event = ev.make_event(now_iso(), ev.QUEUED, task.id, "agentctl", payload, worker.instance)
        eventlog.append(task.events, [event])
        show_ticket(tree, ticket)
        done = dispatch_locked(tree, given=given)
    give_orders(tree, done, given)
    return _problem_of(done, worker)


def _problem_of(done: Dispatched, worker: WorkerDir) -> str:
    answer = answers(done).get(worker.instance, {"error": done.problem or "no shim could be started"})
    return "" if answer.get("status") else str(answer.get("error") or "its shim died before it was started")


def _adapted(worker: WorkerDir, spec: Mapping[str, Any], server: Mapping[str, str]) -> dict[str, Any]:
    """Return the spec as it counts on this node; `server` are variables for the agent's own server."""
    adapted = {**spec, "origin": worker.task.nonce()}
    if spec.get("order") is not None:
        if not isinstance(spec["order"], Mapping) or not isinstance(spec.get("cwd"), str):
            raise Damaged(f"the order of {worker.instance} is damaged", hint="spawn it again")
        from agentctl.drivers.order import order_from  # A command starts 30 ms sooner without all that is about agents.
        from agentctl.operations.start.agent_order import Ordered
        from agentctl.operations.start.agent_server import with_identity
        from agentctl.operations.start.walls import joined_walls

        of_head = order_from(spec["order"])
        order = Ordered(of_head).of(worker, spec["cwd"])
        launches = LaunchDir(worker.task.root.path.parent).path.parent
        order = order._replace(walls=joined_walls(order.walls, of_head.walls, launches))
        adapted["order"] = with_identity(order, worker, server).to_json()
    return adapted
