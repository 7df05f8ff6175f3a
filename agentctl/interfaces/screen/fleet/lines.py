"""Which lines the list has, and in which order: workers by need, or the whole tree. Pure; it draws nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from operator import itemgetter

from agentctl.domain.activity.view import Node
from agentctl.domain.names import WorkerId
from agentctl.domain.states import TERMINAL, Status
from agentctl.domain.worker.need import Need
from agentctl.lean import NamedTuple
from agentctl.operations.fleet.glance import FleetTask, FleetWorker, Glance, parent_in_fleet

#: Deeper lines are not drawn: a forged cycle of parents ends there; no honest tree is as deep.
DEEPEST = 64
#: So many workers are read for the rows of folded tasks.
_MOST_BELOW = 200


class Mode(StrEnum):
    """How the list is arranged."""

    BY_NEED = "need"
    TREE = "tree"


class NodeId(NamedTuple):
    """An item in the activity of a worker."""

    worker: WorkerId
    node: str


#: What a line is about; it stays the same while the line moves.
Key = Need | str | WorkerId | NodeId


class ListLine(NamedTuple):
    """One line of the list. The key of a task is its id."""

    key: Key
    depth: int
    #: What is below it is hidden; None where there is nothing.
    is_folded: bool | None = None
    #: Of a heading or a task: how many lines are below it.
    size: int = 0
    #: Of a heading: how many of these have failed.
    failed: int = 0
    node: Node | None = None


class Held(NamedTuple):
    """Where the worker under the cursor stands: it does not move, whatever becomes of it, until the cursor leaves."""

    worker: WorkerId
    need: Need
    rank: tuple[object, ...]


@dataclass
class Arrangement:
    """What a person has chosen to see."""

    mode: Mode = Mode.BY_NEED
    #: The groups that were opened or closed by hand; others are as `_is_open` says.
    opened: dict[Key, bool] = field(default_factory=dict)
    #: Whether a worker is among those that are looked at, and whether a filter shows it; None is all of them.
    has: Callable[[Glance, FleetWorker], bool] | None = None
    shows: Callable[[Glance, FleetWorker], bool] | None = None
    held: Held | None = None

    def is_open(self, key: Key) -> bool:
        """Return whether what is below a line is shown: at first all headings; what is over only for a filter."""
        default = isinstance(key, Need) and (key < Need.DONE or self.shows is not None)
        return self.opened.get(key, default)

    def toggle(self, key: Key) -> None:
        """Open a line, or fold it."""
        self.opened[key] = not self.is_open(key)


def lines_of(glance: Glance, arrangement: Arrangement) -> list[ListLine]:
    """Return the lines of the list."""
    shown = workers_shown(glance, arrangement)
    if arrangement.mode is Mode.TREE:
        return list(_tree(glance, arrangement, shown))
    return list(_by_need(glance, arrangement, shown))


def rows_looked_at(glance: Glance, arrangement: Arrangement) -> Mapping[WorkerId, FleetWorker]:
    """Return the workers that are looked at, whatever a filter shows of them."""
    if (has := arrangement.has) is None:
        return glance.workers
    return {key: one for key, one in glance.workers.items() if has(glance, one)}


def workers_shown(glance: Glance, arrangement: Arrangement) -> Mapping[WorkerId, FleetWorker]:
    """Return those of them that the filter shows."""
    shown = rows_looked_at(glance, arrangement)
    if (shows := arrangement.shows) is None:
        return shown
    return {key: one for key, one in shown.items() if shows(glance, one)}


def is_shown(glance: Glance, arrangement: Arrangement, worker: FleetWorker) -> bool:
    """Return whether a worker is one of these."""
    return all(asked is None or asked(glance, worker) for asked in (arrangement.has, arrangement.shows))


def hold_row(worker: FleetWorker, arrangement: Arrangement) -> None:
    """Keep a worker where it stands; if it is held already, it stays where it was."""
    if arrangement.held is None or arrangement.held.worker != worker.id:
        arrangement.held = Held(worker.id, worker.need, rank_of(worker))


# -- by need -----------------------------------------------------------------------------------------------------------


def _by_need(glance: Glance, arrangement: Arrangement, shown: Mapping[WorkerId, FleetWorker]) -> Iterator[ListLine]:
    groups: dict[Need, list[FleetWorker]] = {need: [] for need in Need}
    for worker in shown.values():
        groups[worker.need].append(worker)
    held = arrangement.held
    kept = shown.get(held.worker) if held is not None else None
    if held is not None and kept is not None:
        groups[kept.need].remove(kept)
        groups[held.need].append(kept)
    for need, workers in groups.items():
        if not workers:
            continue
        is_open = arrangement.is_open(need)
        yield ListLine(need, 0, not is_open, len(workers), failed_among(workers))
        if not is_open:  # Most are among these, and most of these have not failed.
            workers = [one for one in workers if _has_failed(one) or one is kept]  # noqa: PLW2901
        ranked = [(held.rank if held is not None and one is kept else rank_of(one), one) for one in workers]
        ranked.sort(key=itemgetter(0))
        for _, worker in ranked:
            yield from _worker(glance, arrangement, worker, 0, ())


def _has_failed(worker: FleetWorker) -> bool:
    return worker.row["status"] == Status.FAILED and worker.need is not Need.EARLIER


def rank_of(worker: FleetWorker) -> tuple[object, ...]:
    """Return the place of a worker in its group: who waits longest is first, of the ended ones the latest."""
    since = worker.since
    return (_Latest(since) if worker.need in _LATEST_FIRST else since, worker.id)


_LATEST_FIRST = frozenset({Need.REVIEW, Need.FAILED, Need.DONE, Need.EARLIER})


class _Latest(str):
    """A time that sorts before earlier ones."""

    __slots__ = ()

    def __lt__(self, other: str) -> bool:
        return str.__gt__(self, other)

    def __gt__(self, other: str) -> bool:
        return str.__lt__(self, other)


# -- the tree ----------------------------------------------------------------------------------------------------------


def _tree(glance: Glance, arrangement: Arrangement, shown: Mapping[WorkerId, FleetWorker]) -> Iterator[ListLine]:
    below = _below(glance, shown)
    yield from _all(glance, arrangement, below.get(None, ()), 0, below)


Below = Mapping[Key | None, list[Key]]


def _below(glance: Glance, shown: Mapping[WorkerId, FleetWorker]) -> Below:
    """Return what is below each task and worker; what is below nothing comes first, the latest task on top."""
    found: defaultdict[Key | None, list[Key]] = defaultdict(list)
    for name in _needed_tasks(glance, shown):
        found[_above_task(glance.tasks[name], shown)].append(name)
    for key, worker in shown.items():
        parent = worker.row["parent"]
        near = WorkerId(key.task_id, parent) if parent is not None else None
        found[near if near in shown and near != key else key.task_id].append(key)
    _cut_circles(found)
    made = _made_at(glance)
    found[None].sort(key=lambda key: (_Latest(made.get(str(key), "~")), str(key)))
    return found


def _needed_tasks(glance: Glance, shown: Mapping[WorkerId, FleetWorker]) -> list[str]:
    """Return the tasks of the shown workers and those above them; all tasks if every worker is shown."""
    if len(shown) == len(glance.workers):
        return list(glance.tasks)
    needed: set[str] = set()
    for key in shown:
        name: str | None = key.task_id
        while name is not None and name in glance.tasks and name not in needed:
            needed.add(name)
            name = glance.tasks[name].parent
    return [name for name in glance.tasks if name in needed]


def _cut_circles(below: defaultdict[Key | None, list[Key]]) -> None:
    """Put what nothing on top leads to on top itself, without the rest of its circle: only forged files make one."""
    reached: set[Key] = set()
    left = list(below[None])
    while left:
        key = left.pop()
        if key not in reached:
            reached.add(key)
            left += below.get(key, ())
    for above in list(below):
        if above is not None and above not in reached:
            below[None] += below.pop(above)


def _above_task(task: FleetTask, shown: Mapping[WorkerId, FleetWorker]) -> Key | None:
    if task.parent is None:
        return None
    asker = WorkerId(task.parent, task.parent_instance) if task.parent_instance else None
    return asker if asker is not None and asker in shown else task.parent


def _made_at(glance: Glance) -> dict[str, str]:
    """Return when the first worker of each task was accepted."""
    found: dict[str, str] = {}
    for key, worker in glance.workers.items():
        at = worker.row["queuedAt"]
        if at is not None and at < found.get(key.task_id, "~"):
            found[key.task_id] = at
    return found


def _branch(glance: Glance, arrangement: Arrangement, task_id: str, depth: int, below: Below) -> Iterator[ListLine]:
    if depth > DEEPEST:
        return
    is_open = arrangement.is_open(task_id)
    inside = below.get(task_id, [])
    yield ListLine(task_id, depth, not is_open if inside else None, len(inside))
    if is_open:
        yield from _all(glance, arrangement, inside, depth + 1, below)


def _all(glance: Glance, arrangement: Arrangement, keys: Iterable[Key], depth: int, below: Below) -> Iterator[ListLine]:
    for key in keys:
        if isinstance(key, WorkerId):
            yield from _worker(glance, arrangement, glance.workers[key], depth, below.get(key, ()), below)
        else:
            yield from _branch(glance, arrangement, str(key), depth, below)


def _worker(
    glance: Glance,
    arrangement: Arrangement,
    worker: FleetWorker,
    depth: int,
    inside: Iterable[Key],
    below: Below | None = None,
) -> Iterator[ListLine]:
    """Yield the line of a worker; if it is open, what it does and the workers and tasks below it."""
    if depth > DEEPEST:
        return
    doing = glance.doings.get(worker.id)
    has_more = bool(inside) or worker.row["driver"] is not None or (doing is not None and len(doing.nodes) > 1)
    is_open = arrangement.is_open(worker.id)
    yield ListLine(worker.id, depth, (not is_open) if has_more else None)
    if not is_open:
        return
    if doing is not None:
        yield from _nodes(arrangement, worker.id, doing.nodes[1:], depth)
    yield from _all(glance, arrangement, inside, depth + 1, below or {})


def _nodes(arrangement: Arrangement, worker: WorkerId, nodes: Iterable[Node], depth: int) -> Iterator[ListLine]:
    """Yield the lines of an activity; what is below a folded group is left out."""
    hidden_below: int | None = None
    for node in nodes:
        if hidden_below is not None and node.depth > hidden_below:
            continue
        key = NodeId(worker, node.id)
        is_open = arrangement.is_open(key)
        hidden_below = node.depth if node.is_group and not is_open else None
        yield ListLine(key, min(depth + node.depth, DEEPEST), not is_open if node.is_group else None, node=node)


# -- what a list stands for --------------------------------------------------------------------------------------------


def failed_among(workers: Iterable[FleetWorker]) -> int:
    """Return how many of some workers have failed, and still count."""
    return sum(map(_has_failed, workers))


def counts(workers: Iterable[FleetWorker]) -> dict[Need, int]:
    """Return how many workers have each need."""
    found = dict.fromkeys(Need, 0)
    for worker in workers:
        found[worker.need] += 1
    return found


def workers_below(glance: Glance, key: WorkerId) -> list[WorkerId]:
    """Return the live workers that a worker has started, and those that they have started."""
    found: list[WorkerId] = []
    for other in glance.workers:
        seen, at = {other}, parent_in_fleet(glance.tasks, glance.workers, other)
        while at is not None and at not in seen and at != key:
            seen.add(at)
            at = parent_in_fleet(glance.tasks, glance.workers, at)
        if at == key and glance.workers[other].row["status"] not in TERMINAL:
            found.append(other)
    return found


def wanted(glance: Glance, lines: Sequence[ListLine], arrangement: Arrangement) -> dict[WorkerId, bool]:
    """Return the workers whose doings some lines show: True of those of which everything is to be seen.

    A folded task shows what its workers come to, if they are not too many.
    """
    found = {
        line.key: arrangement.is_open(line.key)
        for line in lines
        if isinstance(line.key, WorkerId) and line.key in glance.workers
    }
    folded = [line.key for line in lines if line.is_folded and isinstance(line.key, str) and line.key in glance.tasks]
    inside = _inside(glance) if folded else {}
    for key in folded:
        if glance.tasks[key].totals.workers <= _MOST_BELOW - len(found):
            found = dict.fromkeys(_workers_in(key, inside), False) | found
    return found


def _inside(glance: Glance) -> Mapping[str, Sequence[Key]]:
    """Return the workers of each task and the tasks below it: one pass for all folded tasks of a page."""
    found: defaultdict[str, list[Key]] = defaultdict(list)
    for name, task in glance.tasks.items():
        if task.parent is not None:
            found[task.parent].append(name)
    for key in glance.workers:
        found[key.task_id].append(key)
    return found


def _workers_in(task_id: str, inside: Mapping[str, Sequence[Key]]) -> Iterator[WorkerId]:
    """Yield the workers of a task and of those below it; a forged circle ends it."""
    seen = {task_id}
    left = [task_id]
    while left:
        for key in inside.get(left.pop(), ()):
            if isinstance(key, WorkerId):
                yield key
            elif str(key) not in seen:
                seen.add(str(key))
                left.append(str(key))
