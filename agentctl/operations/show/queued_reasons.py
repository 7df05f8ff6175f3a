"""What a worker in the queue waits for: other workers, its environment, its account, a free slot, those before it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from agentctl.adapters.locks import is_alive_held
from agentctl.adapters.processes import Life, life_of
from agentctl.adapters.taskdir import TaskDir, TreeDir, WorkerDir
from agentctl.adapters.taskyaml.cache import known_limits
from agentctl.adapters.treedir import tree_of
from agentctl.domain import events as ev
from agentctl.domain.names import first_of
from agentctl.domain.states import Status
from agentctl.errors import AgentctlError
from agentctl.lean import NamedTuple
from agentctl.operations.show.evidence import (
    Evidence,
    Part,
    Statement,
    WayOut,
    evidence_fields,
    file_says,
    lock_says,
    part_of,
    process_says,
    typed,
)
from agentctl.operations.show.queue_holds import queue_hold_of
from agentctl.operations.show.worker_facts import WorkerFacts
from agentctl.supervision.dispatch.slots import held_places
from agentctl.supervision.dispatch.standstill import may_be_there
from agentctl.supervision.life.judging import Condition
from agentctl.supervision.queue.places import Occupant, is_slot
from agentctl.supervision.queue.tickets import Ticket, dependencies_of, read_queue
from agentctl.supervision.worker import environment
from agentctl.supervision.worker.endings import status_at_end
from agentctl.supervision.worker.environment import NO_ENVIRONMENT, store_folder
from agentctl.supervision.worker.spec import held_cap

#: So many other workers are looked at one by one; a slot or a dependency beyond that is only counted.
_MOST = 50


class _Waiting(NamedTuple):
    """A worker in the queue, with what the queue says."""

    facts: WorkerFacts
    tree: TreeDir
    queue: list[Ticket]
    ticket: Ticket


def queued_part(facts: WorkerFacts) -> Part:
    """Return where a worker is in the queue, and everything that it waits for."""
    tree = tree_of(facts.worker_dir.task)
    queue = read_queue(tree)
    ticket = next((one for one in queue if one.worker_id == facts.worker_dir.id), None)
    if ticket is None:  # It has left the queue since it was judged.
        text = "It was in the queue a moment ago, and has left it: look again."
        return [Statement(text, [file_says(tree.queue, "no ticket of it is left")])], []
    waiting = _Waiting(facts, tree, queue, ticket)
    parts = [part_of(reason, waiting) for reason in _REASONS]
    statements = [_place_in_queue(waiting), *(one for more, _ in parts for one in more), *_those_before(waiting)]
    ways = [way for _, out in parts for way in out]
    if not any(more for more, _ in parts):
        statements.append(Statement("It waits for nothing that can be seen: the next look at the queue starts it."))
        ways.append(WayOut("any command that waits keeps the queue going", facts.command("wait", facts.name)))
    return statements, [*ways, WayOut("a cancel takes it out of the queue", facts.command("cancel", facts.name))]


def _place_in_queue(waiting: _Waiting) -> Statement:
    facts, ticket = waiting.facts, waiting.ticket
    number, many = waiting.queue.index(ticket) + 1, len(waiting.queue)
    place = "the only one" if many == 1 else f"number {number} of {many}"
    priority = facts.number("priority")
    rank = f"; its priority is {priority:g}" if priority else ""
    evidence = [file_says(waiting.tree.queue / ticket, "its ticket"), *facts.event(ev.QUEUED)]
    return Statement(f"It is in the queue of {waiting.tree.id}, {place}{rank}.", evidence)


def _dependencies(waiting: _Waiting) -> Part:
    """Return the workers whose ends it waits for."""
    facts, path = waiting.facts, waiting.tree.queue / waiting.ticket
    try:
        names, any_end = dependencies_of(waiting.tree, waiting.ticket)
    except (AgentctlError, OSError) as error:
        return [Statement("Which workers it waits for is unknown: its ticket cannot be read.",
                          [file_says(path, str(error))])], []  # fmt: skip
    open_ones = [found for name in names[:_MOST] if (found := _unmet(facts.worker_dir.task.worker(name), any_end))]
    if not open_ones:
        return [], []
    how = "to end" if any_end else "to complete"
    evidence = [file_says(path, f"after {first_of(names)}"), *(one for _, shown in open_ones for one in shown)]
    text = f"It waits for {first_of([name for name, _ in open_ones])} {how}."
    ways = [
        WayOut(f"the end of {name}" if any_end else f"that {name} completes", facts.command("wait", name))
        for name, _ in open_ones[:3]
    ]
    return [Statement(text, evidence)], ways


def _unmet(worker: WorkerDir, any_end: bool) -> tuple[str, list[Evidence]] | None:
    """Return a dependency that is not met yet, with its state; None for one that is."""
    if not worker.has_ended:
        says = "it has not ended" if worker.path.exists() else "its folder was removed"
        return worker.instance, [file_says(worker.exit, f"there is no such file: {says}"), lock_says(worker.shim)]
    if is_alive_held(worker.shim):
        return worker.instance, [lock_says(worker.shim), file_says(worker.exit, "its shim is still finishing its end")]
    status = status_at_end(worker)
    if any_end or status is Status.COMPLETED:
        return None
    return worker.instance, [file_says(worker.exit, f"{status}: the next look at the queue ends what waits for it")]


def _environment(waiting: _Waiting) -> Part:
    """Return whether its environment is gone, without which nothing can start it."""
    facts, token = waiting.facts, waiting.ticket.environment
    path = waiting.tree.queue / waiting.ticket
    if token == NO_ENVIRONMENT:
        text = "Only the command that is starting it can start it: it was not to wait in the queue."
        says = "names no environment (0): that command has it"
        return [Statement(text, [file_says(path, says)])], [WayOut("if that command is gone, the next look ends it")]
    try:
        folder = store_folder()
    except (AgentctlError, OSError) as error:
        return [Statement("Whether its environment still waits is unknown.", [file_says(path, str(error))])], []
    if environment.waits(folder, token):
        return [], []
    text = "Its environment is lost, as after a restart of the machine or a logout; without one it is not started."
    evidence = [file_says(folder / token, "there is no such file"), file_says(path, f"names the environment {token}")]
    return [Statement(text, evidence)], [
        WayOut("your environment, given to all that lost theirs", facts.command("resume-queue"))
    ]


def _movers(waiting: _Waiting) -> Part:
    """Return whether anybody is alive who would start it."""
    facts, tree = waiting.facts, waiting.tree
    if facts.condition is not Condition.STRANDED or not environment.waits(store_folder(), waiting.ticket.environment):
        return [], []
    shown = file_says(tree.slots, "none of the places has a live shim")
    evidence = [shown, *([lock_says(tree.waker)] if facts.row["awaitsAccount"] else [])]
    text = "It is stranded: the process that would start it was killed, or the machine was restarted."
    ways = [WayOut("everything that is queued or was lost goes on", facts.command("resume", "--lost")),
            WayOut("any command that waits moves the queue too", facts.command("wait", facts.name))]  # fmt: skip
    return [Statement(text, evidence)], ways


def _hold(waiting: _Waiting) -> Part:
    """Return who holds its queue."""
    facts, tree = waiting.facts, waiting.tree
    hold = queue_hold_of(facts.worker_dir)
    if hold is None:
        return [], []
    text = f"It is held in the queue: {hold.in_words(tree)}."
    if hold.by is None:
        way = WayOut(f"a number above 0: maxConcurrentAgents in {tree.task_file}")
        return [Statement(text, [file_says(tree.task_file, "maxConcurrentAgents: 0")])], [way]
    name = [] if hold.instance is None else [hold.instance]
    where = TaskDir(hold.task_id) if hold.task_id.startswith("/") else tree.sibling(hold.task_id)
    evidence = [file_says(tree.held, f"names {'/'.join([hold.task_id, *name])}, by {hold.by}")]
    return [Statement(text, evidence)], [WayOut("to let it go", typed(where, "unpause", *name, seen_from=tree))]


def _account(waiting: _Waiting) -> Part:
    """Return until when its account is on hold."""
    held = waiting.facts.row["awaitsAccount"]
    if not held:
        return [], []
    from agentctl.supervision.account.accounts import account_of  # Few workers wait for one.

    account = account_of(waiting.facts.worker_dir)
    text = f"Its account may not be used until {held['until']}, and it waits for that."
    evidence = [file_says(account.path if account else "", evidence_fields(held, "account", "window", "until"))]
    return [Statement(text, evidence)], [
        WayOut(f"the time: it starts by itself after {held['until']}"),
        WayOut(
            "if the account can be used already",
            waiting.facts.command("doctor", "--free-account", str(held["account"])),
        ),
    ]


def _slots(waiting: _Waiting) -> Part:
    """Return who has the slots, if none is free."""
    tree, now = waiting.tree, known_limits(waiting.tree).max_concurrent_agents
    if now == 0:
        return [], []  # That is a hold.
    held = held_cap(waiting.facts.worker_dir)
    cap = now if held is None else min(now, held)
    places = list(held_places(tree))
    mine = next((one for one in places if one[1].worker_id == waiting.facts.worker_dir.id), None)
    if mine is not None and mine[1].shim is not None and life_of(mine[1].shim) is Life.ALIVE:
        evidence = [file_says(tree.slots / mine[0], "names it"), *process_says(mine[1].shim, "the shim")]
        return [Statement("A place was given to it just now: its shim is starting it.", evidence)], []
    slots = [one for one in places if is_slot(one[0])]
    taken = [(name, occupant) for name, occupant in slots[:_MOST] if may_be_there(tree, occupant)]
    if len(taken) + len(slots[_MOST:]) < cap:
        return [], []
    names = [occupant.worker_id.instance for _, occupant in taken]
    evidence = [one for name, occupant in taken for one in _of_slot(tree, name, occupant)]
    which = f"All {cap} slots of {tree.id} are" if cap > 1 else f"The only slot of {tree.id} is"
    text = f"{which} taken, by {first_of(names)}."
    end = WayOut("the end of any of these workers", waiting.facts.command("wait-any"))
    if held is not None and held <= now:  # Its parent, and what that starts, keep the cap that was there before it.
        evidence.append(file_says(waiting.facts.worker_dir.spec, f"treeLimits: maxConcurrentAgents {held}"))
        return [Statement(text, evidence)], [end]
    return [Statement(text, evidence)], [
        end, WayOut(f"more slots: maxConcurrentAgents in {tree.task_file} (now {cap})"),
    ]  # fmt: skip


def _of_slot(tree: TreeDir, name: str, occupant: Occupant) -> Iterable[Evidence]:
    worker_id = occupant.worker_id
    yield file_says(tree.slots / name, f"names {worker_id.task_id}/{worker_id.instance}")
    yield from process_says(occupant.shim, f"the shim of {worker_id.instance}")


def _those_before(waiting: _Waiting) -> list[Statement]:
    """Return the tickets that are served first."""
    before = waiting.queue[: waiting.queue.index(waiting.ticket)]
    if not before:
        return []
    names, many = first_of([ticket.instance for ticket in before]), len(before)
    text = f"{'One worker is' if many == 1 else f'{many} workers are'} before it in the queue: {names}."
    return [Statement(text, [file_says(waiting.tree.queue / before[0], "the first ticket")])]


_REASONS: tuple[Callable[[_Waiting], Part], ...] = (_dependencies, _environment, _hold, _movers, _account, _slots)
