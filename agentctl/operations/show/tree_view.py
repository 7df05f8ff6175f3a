"""The tree of a task: what its workers and their sub-agents do. Starts nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from agentctl.adapters.taskdir import TaskDir
from agentctl.adapters.watch import Watch
from agentctl.domain.activity.view import Node
from agentctl.domain.states import TERMINAL
from agentctl.errors import StorageError
from agentctl.lean import TYPE_CHECKING, NamedTuple
from agentctl.operations.show.activity_nodes import KEPT, ActivityNodes, interrupted_at
from agentctl.operations.show.askers import PendingQuestion, below_any
from agentctl.operations.show.listing import each_worker
from agentctl.operations.where.locating import find_worker
from agentctl.operations.where.observed import observed_row, observed_rows

if TYPE_CHECKING:
    from agentctl.domain.documents.views import TreeWorker
    from agentctl.domain.documents.workers.worker import WorkerRow
    from agentctl.errors import Step

_TICK_S = 1.0


class WorkerTree(NamedTuple):
    """A worker in the tree: its row as in `list`, its depth, and what it does."""

    row: WorkerRow
    depth: int
    #: The first is the worker itself, with its totals.
    nodes: list[Node]
    #: How many lines of its activity are not rows, and how many rows are of each unknown type.
    bad_lines: int
    unknown_types: dict[str, int]
    is_expanded: bool

    @property
    def has_ended(self) -> bool:
        """Return whether the worker has ended."""
        return self.row["status"] in TERMINAL

    def to_json(self) -> TreeWorker:
        """Return what `tree --json` prints for the worker."""
        own = self.nodes[0]
        return {
            **self.row,
            "treeDepth": self.depth,
            "calls": own.calls,
            "tokens": own.told_tokens(),
            "earlier": own.earlier,
            "badLines": self.bad_lines,
            "unknownTypes": self.unknown_types,
            "items": [node.to_json() for node in self.nodes[1:]],
        }


class Tree:
    """The tree of a task, brought up to date by each look.

    Args:
        instance: Only this worker and its descendants.
        expand: Instances to show in full; None means all.
    """

    def __init__(self, task: TaskDir, *, instance: str | None = None, expand: Collection[str] | None = ()) -> None:
        for name in (*(expand or ()), *([] if instance is None else [instance])):
            if observed_row(task, name) is None:
                find_worker(task, name)
        self.task = task
        self._instance = instance
        self._expand = expand
        self._activities: dict[str, ActivityNodes] = {}
        self.warnings: list[Step] = []
        #: The open questions below the workers that are shown.
        self.asked_below: list[PendingQuestion] = []
        #: What keeps workers in the queue until somebody lets them go, in words.
        self.holds: list[str] = []
        #: What could not be read of the workers, at the last look.
        self.unreadable: list[StorageError] = []

    def look(self) -> list[WorkerTree]:
        """Return the workers, each after the one that started it."""
        found = each_worker(self.task)
        self.warnings, self.holds = found.warnings, found.holds
        by_name = {row["agentInstance"]: row for row in found.rows}
        self.unreadable = found.unreadable
        by_name |= {
            row["agentInstance"]: row for row in observed_rows(self.task) if row["agentInstance"] not in by_name
        }
        above = {row["parent"] for row in by_name.values()} | {self._instance}
        parents = {
            name: row["parent"]
            for name, row in by_name.items()
            if row.get("supersededBy") is None or name in above  # Another one counts, and nothing stands below it.
        }
        shown = _in_order(parents, self._instance)
        named = None if self._instance is None else [name for name, _ in shown]
        self.asked_below = below_any(found.below, named)
        return [self._tree(by_name[name], depth) for name, depth in shown]

    def _tree(self, row: WorkerRow, depth: int) -> WorkerTree:
        name = row["agentInstance"]
        is_expanded = self._expand is None or name in self._expand
        activity = self._activities.get(name)
        if activity is None:
            activity = self._activities[name] = ActivityNodes(self.task.worker(name), KEPT if is_expanded else 0)
        nodes = activity.nodes(ended=row["status"] in TERMINAL, ended_at=interrupted_at(row))
        if activity.problem:
            self.warnings.append(activity.problem)
        return WorkerTree(row, depth, nodes, activity.bad_lines, activity.unknown_types, is_expanded)

    def follow(self) -> Iterator[list[WorkerTree]]:
        """Yield the tree at each change, and every second for the times in it, until every worker has ended."""
        with Watch([self.task.events]) as watch:
            watched: set[str] = set()
            while True:
                for name in set(self.task.instances()) - watched:
                    watch.add(self.task.worker(name).path)
                    watched.add(name)
                trees = self.look()
                yield trees
                if all(tree.has_ended or tree.row.get("observed") for tree in trees):
                    return
                watch.sleep(_TICK_S)


def _in_order(parents: Mapping[str, str | None], top: str | None) -> list[tuple[str, int]]:
    """Return (worker, depth), each worker after the one that started it; if `top` is given, only `top` and below."""
    below: dict[str | None, list[str]] = {}
    for name, parent in parents.items():
        below.setdefault(parent if parent in parents else None, []).append(name)
    found: list[tuple[str, int]] = []
    first = below.get(None, []) if top is None else [top]
    left = [(name, 0) for name in reversed(first) if name in parents]
    while left:
        name, depth = left.pop()
        found.append((name, depth))
        left += [(child, depth + 1) for child in reversed(below.get(name, []))]
    return found
