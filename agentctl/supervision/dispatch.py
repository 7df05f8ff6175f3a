"""Who starts next: the one function that turns free slots and tickets into running workers.

It runs at every spawn, end, cancel, answer, wait and raised cap; `list` and `show` never call it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from agentctl.adapters import eventlog, processes
from agentctl.adapters.config import known_limits
from agentctl.adapters.files import read_json
from agentctl.adapters.locks import locked
from agentctl.adapters.paths import FilePath
from agentctl.adapters.roster import Row, update
from agentctl.adapters.taskdir import AgentDir, TaskDir
from agentctl.domain import events as ev
from agentctl.domain.states import Reason, Status
from agentctl.errors import AgentctlError, Damaged, NoFreeSlot
from agentctl.supervision import environment
from agentctl.supervision.endings import Ending, decide, publish
from agentctl.supervision.launching import Launch, await_answer, hand_over, launch
from agentctl.supervision.slots import (
    Occupant,
    Place,
    Survey,
    describe_taken,
    guest_place,
    guests_of,
    move_guests,
    survey,
)
from agentctl.supervision.spec import read_spec
from agentctl.supervision.tickets import (
    NO_ENVIRONMENT,
    Ticket,
    dependencies_of,
    forget_environment,
    read_queue,
    remove_ticket,
)

Blobs = Mapping[tuple[str, str], bytes]


class Lender(NamedTuple):
    """A worker whose wait lends its place to its descendants."""

    task_id: str
    instance: str
    place: str


class Dispatched:
    """What a dispatch began; shims still to be given their orders."""

    def __init__(self) -> None:
        self.launches: list[Launch] = []
        #: What the calling shim takes itself.
        self.mine: tuple[Ticket, Place] | None = None
        #: Workers that ended because one they were to start after did not complete, and their tickets.
        self.refused: list[AgentDir] = []
        self.hopeless: set[Ticket] = set()
        #: Why no more could be started: a full disk, no process left.
        self.problem: str | None = None


def dispatch(root: TaskDir, *, given: Blobs | None = None, lender: Lender | None = None) -> Dispatched:
    """Start what can start, and give every shim its order. Returns without waiting for their answers."""
    if not read_queue(root) and not guests_of(root):
        return Dispatched()
    with locked(root.queue_lock):
        done = dispatch_locked(root, given=given, lender=lender)
    give_orders(root, done, given)
    for launched in done.launches:
        os.close(launched.answer_fd)
    tell_refused(done)
    return done


def tell_refused(done: Dispatched) -> None:
    """Put the workers that a dispatch ended into the roster; the queue's lock must be free again."""
    for agent in done.refused:
        with contextlib.suppress(AgentctlError, OSError):  # The roster is a cache; the log has it.
            row = Row(read_spec(agent.spec).agent, Status.FAILED, Reason.DEPENDENCY)
            update(agent.task, {agent.instance: row})


def give_orders(root: TaskDir, done: Dispatched, given: Blobs | None = None, folder: FilePath | None = None) -> None:
    """Hand over the orders of what was launched; the queue's lock must be free again."""
    if done.launches:
        folder = folder or environment.store_folder()
        for launched in done.launches:
            key = (launched.ticket.task_id, launched.ticket.instance)
            hand_over(launched, root, (given or {}).get(key), str(folder))


def answers(done: Dispatched) -> dict[str, dict[str, object]]:
    """Wait until every launched worker runs or could not be started; instance -> the shim's answer."""
    return {launched.ticket.instance: await_answer(launched) for launched in done.launches}


def dispatch_locked(
    root: TaskDir,
    *,
    given: Blobs | None = None,
    lender: Lender | None = None,
    shim: processes.Identity | None = None,
    folder: FilePath | None = None,
) -> Dispatched:
    """Do what `dispatch` says, under the queue's lock that the caller holds.

    Args:
        given: Environments that do not wait in memory, by task and instance.
        lender: Whose place may be given to a descendant when no slot is free.
        shim: The calling shim, which takes the first place and ticket itself.
        folder: Where environments wait; a shim, whose own environment is empty, was told.
    """
    done = Dispatched()
    queue = read_queue(root)
    found = survey(root, known_limits(root).max_concurrent_agents, len(queue) + len(guests_of(root)))
    try:
        move_guests(root, found)
        folder = folder or environment.store_folder()
        for ticket in _ready(root, queue, found, done):
            if not _has_environment(ticket, folder, given):
                continue
            place = found.free.pop(0) if found.free else _lent(root, ticket, lender)
            if place is None and lender is None:
                break
            if place is None:
                continue
            try:
                _give_place(root, ticket, place, shim, done)
            except OSError as error:
                place.let_go()
                done.problem = f"it could not be started: {error.strerror}"
                break
        for ticket in done.hopeless:
            forget_environment(root, ticket.environment, folder)
    finally:
        found.release()
    return done


def _give_place(
    root: TaskDir, ticket: Ticket, place: Place, shim: processes.Identity | None, done: Dispatched
) -> None:
    if shim is not None and done.mine is None:
        place.occupy(Occupant(ticket.task_id, ticket.instance, shim))
        done.mine = (ticket, place)
    else:
        done.launches.append(launch(root, ticket, place))


def check_free(root: TaskDir, wanted: int) -> None:
    """Raise `NoFreeSlot` unless `wanted` more workers could start now; the caller holds the queue's lock."""
    cap = known_limits(root).max_concurrent_agents
    queue = read_queue(root)
    found = survey(root, cap, wanted + len(queue) + len(guests_of(root)))
    try:
        move_guests(root, found)
        folder = environment.store_folder()
        ready = (
            ticket for ticket in _ready(root, queue, found, Dispatched())
            if _has_environment(ticket, folder, None)
        )  # fmt: skip
        spoken_for = sum(1 for _ in islice(ready, len(found.free)))
        if len(found.free) - spoken_for < wanted:
            names = describe_taken(found.taken)
            raise NoFreeSlot(
                f"{len(found.taken)} of {cap} slots are in use: {names}"
                if names
                else f"all {cap} slots are spoken for",
                hint="--queue waits for a free one; agentctl wait-any waits for the next to end",
            )
    finally:
        found.release()


def _ready(root: TaskDir, queue: list[Ticket], found: Survey, done: Dispatched) -> Iterator[Ticket]:
    """Yield the tickets that may start, in order, looking no further than is asked for.

    Those whose dependencies failed are ended first, and those behind them too.
    """
    starting = {(occupant.task_id, occupant.instance) for occupant in found.taken}
    held_back = _end_hopeless(root, [ticket for ticket in queue if ticket.waits], done)
    for ticket in queue:
        if ticket in held_back or (ticket.task_id, ticket.instance) in starting:
            continue
        agent = root.sibling(ticket.task_id).agent(ticket.instance)
        if agent.worker.exists() and _is_over(agent):
            remove_ticket(root, ticket)
        else:
            yield ticket


def _end_hopeless(root: TaskDir, waiting: list[Ticket], done: Dispatched) -> set[Ticket]:
    """End the workers whose dependencies did not complete; return the tickets that may not start now."""
    held_back: set[Ticket] = set()
    again = bool(waiting)
    while again:
        again = False
        for ticket in [ticket for ticket in waiting if ticket not in done.hopeless]:
            failed, is_met = _look_at_dependencies(root, ticket)
            if failed:
                agent = root.sibling(ticket.task_id).agent(ticket.instance)
                _refuse(root, ticket, agent, failed)
                done.refused.append(agent)
                done.hopeless.add(ticket)
                again = True
            if failed or not is_met:
                held_back.add(ticket)
            else:
                held_back.discard(ticket)
    return held_back


def _is_over(agent: AgentDir) -> bool:
    """Tell whether a ticket came back from the dead: its worker was started, or has ended.

    A power cut may bring back the name of a removed ticket; starting it again would run the worker twice.
    """
    if agent.has_ended:
        return True
    rows = eventlog.LogReader(agent.task.events).read_new()
    return any(
        not isinstance(row, ev.BadLine)
        and row[1]["type"] == ev.STARTED
        and row[1].get("agentInstance") == agent.instance
        for row in rows
    )


def _look_at_dependencies(root: TaskDir, ticket: Ticket) -> tuple[str | None, bool]:
    """Return (the worker that did not complete, whether all have ended as wished)."""
    try:
        names, any_end = dependencies_of(root, ticket)
    except Damaged as error:
        return error.message, False
    is_met = True
    for name in names:
        agent = root.sibling(ticket.task_id).agent(name)
        try:
            decision = read_json(agent.exit)
        except Damaged:
            decision = {}
        if decision is None and not agent.path.exists():
            decision = {"status": "is gone: its folder was removed"}
        if decision is None:
            is_met = False
        elif decision.get("status") != Status.COMPLETED and not any_end:
            return f"{name} {decision.get('status', 'failed')}", False
    return None, is_met


def _refuse(root: TaskDir, ticket: Ticket, agent: AgentDir, why: str) -> None:
    decide(agent, Ending(status=Status.FAILED, reason=Reason.DEPENDENCY, message=f"it was to start after {why}"))
    remove_ticket(root, ticket)
    publish(agent)


def _has_environment(ticket: Ticket, folder: FilePath, given: Blobs | None) -> bool:
    if given and (ticket.task_id, ticket.instance) in given:
        return True
    return ticket.environment != NO_ENVIRONMENT and (folder / ticket.environment).exists()


def _lent(root: TaskDir, ticket: Ticket, lender: Lender | None) -> Place | None:
    """Return the lender's guest place if `ticket` descends from the lender and nobody is there."""
    if lender is None or not _descends(root, ticket, lender):
        return None
    return guest_place(root, lender.place)


def _descends(root: TaskDir, ticket: Ticket, lender: Lender) -> bool:
    task, name, seen = root.sibling(ticket.task_id), ticket.instance, set()
    while name not in seen:
        seen.add(name)
        try:
            parent = read_spec(task.agent(name).spec).parent
        except AgentctlError:
            return False
        if parent is None:
            return False
        if (task.id, parent) == (lender.task_id, lender.instance):
            return True
        name = parent
    return False
