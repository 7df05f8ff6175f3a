"""What a tree of tasks has used up, from its files alone: there is no separate count that could leak.

The logs say which workers were accepted, `spent.json` what an agent used up, and `worktimes` when a worker worked.
"""

from __future__ import annotations

from collections.abc import Mapping

from agentctl.adapters.eventlog import LogReader
from agentctl.adapters.files import read_known
from agentctl.adapters.taskdir import TreeDir, WorkerDir
from agentctl.adapters.taskyaml.cache import cached
from agentctl.domain.tree.budget import Spent, TreeUsage, spent_from, total
from agentctl.domain.tree.treefacts import TreeFacts
from agentctl.domain.worker.worktime import time_at_work
from agentctl.lean import Any
from agentctl.supervision.worker.spec import order_of
from agentctl.supervision.worker.worktimes import WorkTimes


class Ledger:
    """What a tree has used up; each look reads only what was added since the last one."""

    def __init__(self, tree: TreeDir) -> None:
        #: The task whose limits count, and whose logs are read with those of its sub-tasks.
        self.tree = tree
        self.facts = TreeFacts()
        self._readers: dict[str, LogReader] = {}
        #: What ended agents used up, which no longer changes.
        self._final: dict[str, Spent] = {}
        self.times = WorkTimes()
        self._removals_seen: dict[str, int] = {}

    def update(self) -> Ledger:
        """Read what was added to the logs of the tree."""
        names = dict.fromkeys(self._readers) or {self.tree.id: None}
        left = list(names)
        for name in left:
            reader = self._readers.setdefault(name, LogReader(self.tree.sibling(name).events))
            self.facts.apply(name, reader.read_new())
            self._forget_removed(name)
            new = [below for below in self.facts.views[name].subtasks if below not in names and self._is_ours(below)]
            names |= dict.fromkeys(new)
            left += new
        return self

    def _forget_removed(self, name: str) -> None:
        """Forget what removed workers of a task used up: others may have their names by now."""
        task, removed = self.tree.sibling(name), self.facts.views[name].removed
        for instance in removed[self._removals_seen.get(name, 0) :]:
            self._final.pop(task.worker(instance).path, None)
            self.times.forget(task.worker(instance))
        self._removals_seen[name] = len(removed)

    def _is_ours(self, name: str) -> bool:
        """Return whether a sub-task that a log names belongs to this tree: the sub-task must say so itself."""
        config = cached(self.tree.sibling(name))
        return config is not None and config.root_task_id == self.tree.id

    def agents(self) -> list[WorkerDir]:
        """Return the workers of the tree that are agents, in the order in which they were accepted."""
        found = [
            (worker.queued_at or "", self.tree.sibling(task_id).worker(worker.instance))
            for task_id, view in self.facts.views.items()
            for worker in view.workers.values()
            if worker.driver is not None
        ]
        return [worker for _, worker in sorted(found, key=lambda one: one[0])]

    def spent_by(self, worker: WorkerDir) -> Spent:
        """Return what an agent has used up."""
        if worker.path in self._final:
            return self._final[worker.path]
        has_ended = worker.has_ended  # Before the look, or what is written after it would never be seen.
        found = read_spent(worker)
        if has_ended:
            self._final[worker.path] = found
        return found

    def wall_s(self, agent: str | None = None, known: Mapping[str, Any] | None = None) -> float:
        """Return how long at least one worker of the tree was at work.

        Args:
            agent: The folder of a worker about which more is `known` than its files say.
        """
        self.times.known = {agent: known} if agent and known else {}
        return time_at_work(self.times.of(worker) for task_id in self.facts.views for worker in self.started(task_id))

    def wall_of(self, task_id: str) -> float:
        """Return how long at least one worker of a task was at work."""
        return time_at_work(map(self.times.of, self.started(task_id)))

    def started(self, task_id: str) -> list[WorkerDir]:
        """Return the workers of a task that were ever started."""
        task, workers = self.tree.sibling(task_id), self.facts.views[task_id].workers.values()
        return [task.worker(worker.instance) for worker in workers if worker.started_at is not None]

    def account(self) -> TreeUsage:
        """Return what the tree has used up by now, without its time: few callers need that, and it takes more files."""
        agents = self.agents()
        reserved = sum(self._reserved(worker) for worker in agents if not worker.has_ended)
        spent = total(map(self.spent_by, agents))
        return TreeUsage(spent, reserved, self.facts.workers)

    def _reserved(self, worker: WorkerDir) -> float:
        own = own_budget(worker)
        return max(0.0, own - (self.spent_by(worker).cost_usd or 0)) if own else 0.0

    def reserved_by_others(self, worker: WorkerDir) -> float:
        """Return what the other live agents may still use up of budgets of their own.

        Two agents may have asked for more than there is. Then the one that was accepted later gets the rest: for an
        agent with its own budget, only those before it count, or each would have to leave everything to the other.
        """
        agents = self.agents()
        paths = [other.path for other in agents]
        if own_budget(worker) and worker.path in paths:
            del agents[paths.index(worker.path) :]
        return sum(self._reserved(other) for other in agents if other.path != worker.path and not other.has_ended)


def read_spent(worker: WorkerDir) -> Spent:
    """Return what an agent has used up, over all of its attempts: nothing, if it was never started."""
    reported = read_known(worker.spent)
    return spent_from(reported) if reported or worker.process.exists() else Spent()


def own_budget(worker: WorkerDir) -> float | None:
    """Return what an agent may cost by itself, as it was spawned."""
    value = order_of(worker).get("maxBudgetUsd")
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None
