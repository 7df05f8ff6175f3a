"""The tree of a task: what its workers and their sub-agents do. Starts nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from agentctl.adapters.activitylog import ActivityReader
from agentctl.adapters.taskdir import TaskDir
from agentctl.adapters.watch import Watch
from agentctl.domain.activity.fold import ActivityFold
from agentctl.domain.activity.view import Node, view_of
from agentctl.domain.states import TERMINAL
from agentctl.domain.worker_row import WorkerRow
from agentctl.errors import Damaged
from agentctl.lean import NamedTuple
from agentctl.operations.show.askers import PendingQuestion
from agentctl.operations.show.listing import each_worker
from agentctl.operations.where.locating import find_worker
from agentctl.operations.where.observed import observed_row, observed_rows

#: How many ended items of an expanded group are kept; `earlier` counts the rest.
KEPT = 200
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

    def to_json(self) -> dict[str, Any]:
        """Return what `tree --json` prints for the worker."""
        own = self.nodes[0]
        return {
            **self.row,
            "treeDepth": self.depth,
            "calls": own.calls,
            "tokens": own.tokens,
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
        self._activities: dict[str, _Activity] = {}
        self.warnings: list[str] = []
        #: The open questions below the workers.
        self.asked_below: list[PendingQuestion] = []

    def look(self) -> list[WorkerTree]:
        """Return the workers, each after the one that started it."""
        found = each_worker(self.task)
        self.warnings, self.asked_below = found.warnings, found.asked_below
        by_name = {row["agentInstance"]: row for row in found.rows}
        by_name |= {
            row["agentInstance"]: row for row in observed_rows(self.task) if row["agentInstance"] not in by_name
        }
        parents = {name: row["parent"] for name, row in by_name.items()}
        return [self._tree(by_name[name], depth) for name, depth in _in_order(parents, self._instance)]

    def _tree(self, row: WorkerRow, depth: int) -> WorkerTree:
        name = row["agentInstance"]
        is_expanded = self._expand is None or name in self._expand
        activity = self._activities.get(name)
        if activity is None:
            activity = self._activities[name] = _Activity(self.task, name, KEPT if is_expanded else 0)
        nodes = activity.nodes(ended=row["status"] in TERMINAL)
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


class _Activity:
    """The nodes of one worker's activity; once the worker has ended, only they are kept."""

    def __init__(self, task: TaskDir, instance: str, keep: int) -> None:
        self._reader = ActivityReader(task.worker(instance).activity)
        self._keep = keep
        self._fold: ActivityFold | None = ActivityFold(keep)
        self._nodes: list[Node] = []
        self.bad_lines = 0
        self.unknown_types: dict[str, int] = {}
        #: Why the activity cannot be read.
        self.problem: str | None = None

    def nodes(self, *, ended: bool) -> list[Node]:
        """Read the new rows and return the nodes; if the activity cannot be read, only the worker's own node."""
        self.problem = None
        try:
            return self._read(ended=ended)
        except Damaged as error:
            self.problem = error.message
        except OSError as error:
            self.problem = f"{self._reader.path}: {error.strerror}"
        return view_of(ActivityFold(self._keep), ended=ended)

    def _read(self, *, ended: bool) -> list[Node]:
        if self._reader.is_replaced():
            self._reader.restart()
            self._fold = ActivityFold(self._keep)
        if self._fold is None:
            return self._nodes
        for block in self._reader.blocks():
            self._fold.feed(block)
        self.bad_lines, self.unknown_types = self._fold.bad, dict(self._fold.unknown_types)
        self._nodes = view_of(self._fold, ended=ended)
        if ended:
            self._fold = None
        return self._nodes


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
