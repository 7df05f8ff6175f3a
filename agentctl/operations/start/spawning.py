"""Starts workers: checks them, puts them on disk, queues them or takes slots, and waits for their shims to answer."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from typing import Any

from agentctl.adapters import eventlog
from agentctl.adapters.clock import now_iso
from agentctl.adapters.files import make_durable, sync_folder
from agentctl.adapters.locks import locked
from agentctl.adapters.taskdir import TaskDir, TreeDir, WorkerDir
from agentctl.adapters.taskyaml.cache import TaskConfig
from agentctl.adapters.taskyaml.roster import RosterRow, enlist, mark_stale
from agentctl.adapters.treedir import tree_of
from agentctl.domain import events as ev
from agentctl.domain.names import WorkerId
from agentctl.domain.states import OWN, Reason, Status
from agentctl.domain.tree.limits import Limits
from agentctl.drivers.order import BY_OWN_SETTINGS, order_from
from agentctl.errors import AgentctlError, Argument, AtTerminal, Next, NoFreeSlot, Refused, WithArguments
from agentctl.lean import NamedTuple
from agentctl.operations.start.admission import (
    admit,
    limits_of_tree,
    refuse_broken,
    refuse_cooling,
    refuse_elsewhere,
    refuse_gone,
    refuse_unreported,
)
from agentctl.operations.start.batch_findings import Surroundings
from agentctl.operations.start.interruption import HeldInterrupt, cut_short, interrupted
from agentctl.operations.start.prepared import Prepared
from agentctl.operations.start.requests import Spawned, SpawnRequest, agent_named, check_requests, naming_the_line
from agentctl.operations.start.spare_shims import shims_ahead
from agentctl.operations.where.calling import Caller
from agentctl.operations.where.chosen_task import check_choice, refuse_foreign_choice
from agentctl.operations.where.lineage import (
    Standing,
    depth_in,
    depth_limit,
    enlist_all,
    queues_locked,
    true_caller,
    who,
)
from agentctl.operations.where.locating import find_root, find_task
from agentctl.operations.where.names_in_log import accepted_in
from agentctl.operations.where.ownership import check_own
from agentctl.operations.where.personal_config import may_be_told
from agentctl.operations.where.sandbox import refuse_in_sandbox
from agentctl.operations.where.task_config import read_config, usable_config
from agentctl.supervision import failpoints
from agentctl.supervision.dispatch.dispatch import (
    Dispatched,
    answers,
    check_free,
    complete_dispatch,
    dispatch_locked,
    give_orders,
)
from agentctl.supervision.dispatch.launching import replace_spares
from agentctl.supervision.queue.tickets import (
    forget_environment,
    make_ticket,
    next_age,
    read_queue,
    remove_ticket,
    show_ticket,
    take_out,
    tickets_of,
    write_ticket,
)
from agentctl.supervision.worker import environment
from agentctl.supervision.worker.endings import Decision, decide, decision_of, publish
from agentctl.supervision.worker.environment import NO_ENVIRONMENT
from agentctl.supervision.worker.spec import held_limits
from agentctl.world_errors import error_in_words

_COMMAND_SHOWN = 200


def task_for_spawn(explicit: str | None, *, root: str | None, force: bool, title: str = "Task") -> TaskDir:
    """Return the task that `find_task` finds; if none is chosen, make one.

    Args:
        title: That of a task that is made.

    Raises:
        NotFound: The one that was chosen in this terminal is gone.
        Refused: The chosen task is not this person's own, or was moved: what they meant is not another one.
    """
    if explicit or os.environ.get(environment.TASK_VARIABLE):
        return find_task(explicit, root=root, force=force)
    found = find_root(root, create=True, force=force)
    choice = check_choice(found)
    if choice is not None:
        return found.task(choice.task_id)
    refuse_foreign_choice(found)
    from agentctl.operations.start.new_task import create_task  # Few spawns make a task.

    return create_task(found, title)


def spawn_workers(task: TaskDir, requests: list[SpawnRequest], *, queue: bool | None) -> list[Spawned]:
    """Start or queue workers; return once each runs or is in the queue, and all of it is on disk.

    Args:
        queue: Wait for a free slot instead of being refused; None: as the root task's `config` says.

    Raises:
        NoFreeSlot: They do not wait, and fewer slots are free than requests; nothing was started.
        UsageError, NotFound, Refused: A request is not valid; nothing was started.
        KeyboardInterrupt: By Ctrl-C; nothing was started.
        StartInterrupted: By Ctrl-C; all were started, and it names them. By two, it says who knows what was.
    """
    requests = _as_said(requests)
    known = _started_before(task, requests)
    left = [request for at, request in enumerate(requests) if at not in known]
    fresh = iter(_started_now(task, left, queue=queue) if left else ())
    return [known[at] if at in known else next(fresh) for at in range(len(requests))]


def _started_before(task: TaskDir, requests: list[SpawnRequest]) -> dict[int, Spawned]:
    """Return what keys have started before, by the places of their requests.

    Nothing else of such a request is looked at: its folder, its program or what it waited for may be gone by now.
    """
    if all(request.key is None for request in requests):
        return {}
    from agentctl.operations.start.request_keys import started_by_key  # Few starts have a key.

    check_own(task)
    found: dict[int, Spawned] = {}
    for at, request in enumerate(requests):
        with naming_the_line(request):
            started = started_by_key(task, request.key, request.said)
        if started is not None:
            found[at] = started
    return found


def _started_now(task: TaskDir, requests: list[SpawnRequest], *, queue: bool | None) -> list[Spawned]:
    requests = _awaiting_the_newest(task, requests)
    start = _check_start(task, requests, queue=queue)
    unheard = _see_to_notices(start)
    with HeldInterrupt() as interrupt:
        try:
            outcomes = _started(start, requests, interrupt)
        except KeyboardInterrupt:
            if interrupt.came:  # So this is the second one.
                raise cut_short(task) from None
            raise
    if interrupt.came:
        raise interrupted(task, [one.agent_instance for one in outcomes])
    if unheard:
        outcomes[0] = outcomes[0]._replace(warnings=(*outcomes[0].warnings, *unheard))
    return outcomes


def _as_said(requests: list[SpawnRequest]) -> list[SpawnRequest]:
    """Return requests of which those with a key know what was said in them, before anything is made of that here."""
    if all(request.key is None or request.said is not None for request in requests):
        return requests
    from agentctl.operations.start.request_keys import said_of_start  # Few starts have a key.

    return [
        request if request.key is None or request.said is not None else request._replace(said=said_of_start(request))
        for request in requests
    ]


def _awaiting_the_newest(task: TaskDir, requests: list[SpawnRequest]) -> list[SpawnRequest]:
    """Return requests that wait for the newest tries of the works that they name; those in the batch are new."""
    here = {request.name for request in requests}
    if all(here.issuperset(request.after) for request in requests):
        return requests
    from agentctl.operations.where.tries_in_log import tries_of  # Few wait for workers that were there before.

    tries = tries_of(task)
    return [
        request._replace(after=[one if one in here else tries.newest(tries.work_of(one)) for one in request.after])
        for request in requests
    ]


def _started(start: _Start, requests: list[SpawnRequest], interrupt: HeldInterrupt) -> list[Spawned]:
    """Start or queue workers and return the outcomes; nothing of them is left if one is refused."""
    reused: dict[int, Spawned] = {}
    prepared: list[Prepared] = []
    try:
        with shims_ahead(start.tree, len(requests)):
            _prepare_each(start, requests, prepared, reused)
            if not prepared:
                return [reused[index] for index in sorted(reused)]
            _check_prepared(start, prepared)
            done = _admit(start, prepared, interrupt)
    except BaseException as error:
        _take_back(start.task, prepared, _in_words(error))
        raise
    failpoints.reached("spawn.after-orders")
    fresh = iter(_outcomes(start, prepared, done))
    return [reused[index] if index in reused else next(fresh) for index in range(len(requests))]


def _see_to_notices(start: _Start) -> list[str]:
    """See to it that the person is told what happens; return why that is impossible, if it is."""
    if start.parent is not None or not may_be_told(start.tree):
        return []
    from agentctl.operations.notify.applied_targets import rearm

    problem = rearm(start.tree)
    return [] if problem is None else [problem]


class _Start(NamedTuple):
    """Where a start comes from, and what applies to all of its workers."""

    task: TaskDir
    tree: TreeDir
    #: The task's limits, for each worker.
    own_limits: Limits
    #: The tree's limits, as they apply to this caller.
    limits: Limits
    standing: Standing
    #: Wait for a free slot instead of being refused.
    queue: bool

    @property
    def parent(self) -> Caller | None:
        """The worker that the start comes from."""
        return self.standing.parent


def _check_start(task: TaskDir, requests: list[SpawnRequest], *, queue: bool | None) -> _Start:
    """Refuse invalid requests, and those that may not be started here or from here, before anything is made."""
    check_own(task)
    config, parent = read_config(task), true_caller()
    depth = depth_in(task, parent)
    check_requests(task, requests)
    _check_bound(task, config, requests, parent)
    tree = tree_of(task)
    refuse_in_sandbox(tree, parent)
    refuse_elsewhere(tree, parent)
    limits = limits_of_tree(tree, task, config, parent)
    own = config.limits if parent is None else config.limits.no_looser_than(held_limits(parent.worker))
    held = limits._replace(max_depth=depth_limit(task, parent), max_output_bytes=own.max_output_bytes).of_tree()
    if queue is None:
        queue = (config if tree.path == task.path else usable_config(tree)).queueing
    if not queue:
        _refuse_more_than_slots(requests, limits.max_concurrent_agents)
    return _Start(task, tree, own, limits, Standing(parent, depth, held), queue)


def _refuse_more_than_slots(requests: list[SpawnRequest], cap: int) -> None:
    """Refuse more workers than could ever start at once before each has a folder: thousands of them take long."""
    may_be_there = any(request.key is not None or request.sole is not None or request.reuse for request in requests)
    if len(requests) > cap > 0 and not may_be_there and not any(request.after for request in requests):
        raise NoFreeSlot(
            f"{len(requests)} workers need a slot each, and there are {cap}",
            hint=WithArguments(Argument("queue"), " starts each as a slot gets free"),
        )


def _prepare_each(
    start: _Start, requests: list[SpawnRequest], prepared: list[Prepared], reused: dict[int, Spawned]
) -> None:
    """Take a name for each request and write its order; `prepared` gets all with a folder, even if one is refused."""
    from agentctl.operations.start.worker_folder import prepare  # The shims start while this is loaded.

    around = Surroundings(start.task)
    for index, request in enumerate(requests):
        with naming_the_line(request):
            found = prepare(start.task, request, start.own_limits, start.standing, around)
        if isinstance(found, Prepared):
            prepared.append(found)
        else:
            reused[index] = found


def _check_prepared(start: _Start, prepared: list[Prepared]) -> None:
    """Refuse workers that the parent's restrictions, the tree's limits or an account do not let start now."""
    if start.parent is not None:
        from agentctl.operations.start.inherited import refuse_freer  # Most starts are a person's.

        refuse_freer(start.parent, prepared)
    refuse_unreported(start.limits, prepared)
    refuse_broken(start.tree, start.limits, prepared)
    if not _must_queue(start, prepared):
        refuse_cooling(prepared)


def _must_queue(start: _Start, prepared: list[Prepared]) -> bool:
    return start.queue or any(item.spec.after for item in prepared)


def _admit(start: _Start, prepared: list[Prepared], interrupt: HeldInterrupt) -> Dispatched:
    """Put tickets and events on disk, and start what can start, under one lock, if the tree's limits leave room."""
    tree, queue = start.tree, _must_queue(start, prepared)
    blobs = _blobs_of(prepared)
    if any(item.spec.retry_of or item.spec.continues for item in prepared):
        from agentctl.operations.where.tries_in_log import note_tries  # Most starts are first ones.

        note_tries(start.task)
    make_durable([item.worker.spec for item in prepared], start.task.agents)
    if queue:
        _keep_environments(prepared, blobs)
    before = Dispatched()
    try:
        # The parent's too: behind that one a cancel looks for its children.
        with queues_locked(tree, *(() if start.parent is None else (tree_of(start.parent.task),))):
            if not queue:
                before = dispatch_locked(tree)  # Workers left waiting in the queue come first.
                parent = None if start.parent is None else start.parent.worker
                check_free(start.task, parent, len(prepared), start.limits.max_concurrent_agents)
            admit(tree, start.limits, prepared)
            enlist_all(start.parent, [item.worker for item in prepared])
            refuse_gone(start.task, prepared)
            interrupt.hold_back()
            _line_up(start, prepared)
            done = _start_locked(tree, blobs)
    finally:
        complete_dispatch(tree, before)
    give_orders(tree, done, blobs)
    replace_spares(tree)  # While the shims start their workers: the next start may come soon.
    return done


def _check_bound(task: TaskDir, config: TaskConfig, requests: list[SpawnRequest], parent: Caller | None) -> None:
    """Refuse another agent in a sub-task, which is bound to one; that agent itself may start any worker there."""
    if config.agent is None or (parent is not None and parent.task.path == task.path):
        return
    for agent in map(agent_named, requests):
        if agent != config.agent:
            another, top = Next("subtask", agent, "makes a sub-task for it"), Next("spawn above", tree_of(task).id)
            raise Refused(
                f"the sub-task {task.id} is bound to the agent {config.agent}: {agent} cannot be started in it",
                hint=top if agent == "command" else another,
            )


def _line_up(start: _Start, prepared: list[Prepared]) -> None:
    """Put all workers into the queue and the log, or none: a full disk may stop this anywhere."""
    tree, task = start.tree, start.task
    tickets = [
        make_ticket(
            task.id, item.worker.instance, item.spec.priority, age, item.environment_token, bool(item.spec.after)
        )
        for age, item in enumerate(prepared, next_age(read_queue(tree)))
    ]
    try:
        for item, ticket in zip(prepared, tickets, strict=True):
            write_ticket(tree, ticket, item.spec.after, item.spec.after_any)
        failpoints.reached("spawn.after-ticket")
        eventlog.append(task.events, [_queued_event(task, item) for item in prepared])
        failpoints.reached("spawn.after-queued")
        # Only now do the tickets count, so a worker that starts is always in the log, whatever is killed in between.
        for ticket in tickets:
            show_ticket(tree, ticket)
        sync_folder(tree.queue)
    except BaseException:
        for ticket in tickets:
            remove_ticket(tree, ticket)
        raise


def _start_locked(tree: TreeDir, blobs: Mapping[WorkerId, bytes]) -> Dispatched:
    """Start the workers that can start; if the disk refuses, all of them stay in the queue."""
    try:
        return dispatch_locked(tree, given=blobs)
    except (AgentctlError, OSError) as error:
        done = Dispatched()
        done.problem = str(error)
        return done


def _blobs_of(prepared: list[Prepared]) -> dict[WorkerId, bytes]:
    """Return the environments of the workers; each vouches for the orders of all workers that share it."""
    packed = [(item, environment.pack(item.environ)) for item in prepared]
    digests: dict[bytes, list[str]] = {}
    for item, blob in packed:
        digests.setdefault(blob, []).append(item.digest)
    vouching = {blob: environment.with_orders(blob, found) for blob, found in digests.items()}
    return {item.worker.id: vouching[blob] for item, blob in packed}


def _keep_environments(prepared: list[Prepared], blobs: Mapping[WorkerId, bytes]) -> None:
    tokens: dict[bytes, str] = {}
    for item in prepared:
        blob = blobs[item.worker.id]
        if blob not in tokens:
            tokens[blob] = environment.put(blob)
        item.environment_token = tokens[blob]


def _queued_event(task: TaskDir, item: Prepared) -> ev.Event:
    spec = item.spec
    command = " ".join(spec.argv) if item.request.work is None else item.request.work.prompt
    payload: dict[str, Any] = {"agent": spec.agent, "command": command[:_COMMAND_SHOWN]}
    kin = {"parentInstance": spec.parent, "parentTaskId": spec.parent_task}
    more = {
        "agentId": spec.agent_id,
        "driver": (spec.order or {}).get("driver"),
        "permissions": OWN if spec.order and order_from(spec.order).stance == BY_OWN_SETTINGS else None,
        **({"parent": spec.parent} if spec.parent_task is None else kin),
        "depth": spec.depth,
        "retryOf": spec.retry_of,
        "continues": spec.continues,
        "after": spec.after,
    }
    payload |= {key: value for key, value in more.items() if value}
    return ev.make_event(now_iso(), ev.QUEUED, task.id, who(), payload, spec.instance)


def _take_back(task: TaskDir, prepared: list[Prepared], why: str) -> None:
    """Remove the folders of a start that was refused as a whole, and end those workers that the log already has.

    A worker whose ticket is on disk is left: it is in the queue, whatever interrupted the rest.
    """
    from agentctl.operations.start.worker_folder import remove_folder

    tree = tree_of(task)
    queue = read_queue(tree)
    queued = {ticket.instance for ticket in queue if ticket.task_id == task.id}
    left = [item for item in prepared if item.worker.instance not in queued and not item.worker.shim.exists()]
    logged = accepted_in(task.events) if left else frozenset()
    for item in left:
        if item.worker.instance in logged:
            _end_unstarted(item.worker, f"its spawn failed: {why}")
        else:
            remove_folder(item.worker)
        if item.environment_token != NO_ENVIRONMENT:
            forget_environment(item.environment_token, environment.store_folder(), queue)


def _in_words(error: BaseException) -> str:
    return error_in_words(error) if isinstance(error, OSError) else str(error) or type(error).__name__


def _end_unstarted(worker: WorkerDir, why: str) -> None:
    """End a worker that has no ticket and no shim; without this, it counts as not started all the same."""
    with contextlib.suppress(AgentctlError, OSError):  # The disk may refuse it.
        publish(worker, decide(worker, Decision(status=Status.FAILED, reason=Reason.NOT_STARTED, message=why)))
    mark_stale(worker.task)


def _outcomes(start: _Start, prepared: list[Prepared], done: Dispatched) -> list[Spawned]:
    """Return the outcome of each start, and put it into the roster."""
    answered = answers(done)
    rows, found = {}, []
    for item in prepared:
        instance = item.worker.instance
        try:
            if instance in answered:
                spawned = _outcome(start.tree, item, answered[instance])
            else:
                spawned = _not_begun(start.tree, item, done.problem) if done.problem else _queued(item)
        except Refused as error:
            if len(prepared) == 1:
                raise
            spawned = _spawned(item, Status.FAILED, message=error.message)  # The others of the batch have begun.
        found.append(spawned)
        rows[instance] = _row_of(item, spawned)
    failpoints.reached("spawn.before-roster")
    with contextlib.suppress(AgentctlError, OSError):  # The roster is a cache; the log has it all.
        enlist(start.task, rows)
    return found


def _queued(item: Prepared) -> Spawned:
    """Return the outcome of a worker in the queue, which may have ended there because one that it waits for failed.

    One that has left the queue meanwhile was queued all the same, whether it still runs or has ended: the outcome, and
    the exit code with it, would depend on how fast this process is.
    """
    decision = decision_of(item.worker)
    if decision is None or decision.started_at is not None:
        return _spawned(item, Status.QUEUED)
    return _spawned(item, decision.status, message=decision.message)


def _row_of(item: Prepared, spawned: Spawned) -> RosterRow:
    """Return the roster's row of a worker, which may have ended meanwhile."""
    decision = decision_of(item.worker)
    if decision is None:
        return RosterRow(item.spec.agent, spawned.status, None)
    return RosterRow(item.spec.agent, decision.status, decision.reason)


def _spawned(item: Prepared, status: Status, pid: int | None = None, message: str | None = None) -> Spawned:
    return Spawned(
        agent_instance=item.worker.instance, status=status, task_id=item.worker.task.id, pid=pid, message=message,
        warnings=item.warnings, worktree=item.worktree,
    )  # fmt: skip


def _outcome(tree: TreeDir, item: Prepared, answer: Mapping[str, Any]) -> Spawned:
    status, why = answer.get("status"), str(answer.get("error") or "its shim died before the worker was started")
    if status == Status.FAILED and answer.get("reason") == Reason.NOT_STARTED:
        raise Refused(
            f"{item.worker.instance} could not be started: {answer.get('message')}",
            hint=Next("show", item.worker.instance, "says what became of it; its name is taken"),
        )
    if status == Status.RUNNING and item.spec.placement is not None:
        return _spawned(item, Status.QUEUED, message=f"{item.spec.placement['runner']} is starting it")
    if status in (Status.RUNNING, Status.CANCELLED, Status.FAILED):
        return _spawned(item, Status(status), answer.get("pid"), answer.get("message"))
    return _not_begun(tree, item, why)


def _not_begun(tree: TreeDir, item: Prepared, why: str) -> Spawned:
    """Return the outcome of a worker whose shim did not report that it runs.

    While its ticket exists, nothing of it has run. If its environment waits in memory, the next dispatch starts it. If
    not, it would wait forever, so it is ended.
    """
    if item.environment_token == NO_ENVIRONMENT and _withdraw(tree, item, why):
        again = "try again, under another name", AtTerminal("agentctl doctor shows what shims have noted")
        raise Refused(f"{item.worker.instance} could not be started: {why}", hint=again)
    decision = decision_of(item.worker)
    return _spawned(item, decision.status if decision else Status.QUEUED, message=why)


def _withdraw(tree: TreeDir, item: Prepared, why: str) -> bool:
    with locked(tree.queue_lock):
        mine = tickets_of(tree, item.worker)
        if not mine:
            return False
        with contextlib.suppress(AgentctlError):  # A full disk: without ticket and shim it counts as not started, too.
            decide(item.worker, Decision(status=Status.FAILED, reason=Reason.NOT_STARTED, message=why))
        take_out(tree, mine, environment.store_folder())
    with contextlib.suppress(AgentctlError):
        publish(item.worker)
    mark_stale(item.worker.task)
    return True
