"""The scope of a session's tools: the task in which they work, and the worker that calls them."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property

from agentctl.adapters.definitions import Origin
from agentctl.adapters.files import read_known
from agentctl.adapters.taskdir import TaskDir, WorkerDir
from agentctl.adapters.treedir import tree_of
from agentctl.domain.agent.own_tools import ours_among
from agentctl.domain.names import WorkerId, check_name, first_of
from agentctl.domain.tree.limits import Limits
from agentctl.errors import Next, NotFound, Refused, UsageError
from agentctl.lean import NamedTuple
from agentctl.operations.delegate.resuming import Chains, chains_of, newest_of
from agentctl.operations.show.current_state import read_task
from agentctl.operations.start.spawning import task_for_spawn
from agentctl.operations.trust.definitions import Agent, list_agent_specs
from agentctl.operations.where.calling import Caller, is_from_worker
from agentctl.operations.where.lineage import depth_in, depth_limit, true_caller
from agentctl.operations.where.locating import find_root, find_task
from agentctl.operations.where.ownership import is_own
from agentctl.operations.where.subtasks_below import subtree
from agentctl.operations.where.task_config import usable_config
from agentctl.supervision.worker.environment import TASK_VARIABLE
from agentctl.supervision.worker.kinship import descendants
from agentctl.supervision.worker.spec import read_order
from agentctl.tools.awaited_worker import Target


class Situation(NamedTuple):
    """The facts that the descriptions of the tools depend on."""

    task_id: str
    #: Workers of the tree that may be at work at once.
    cap: int
    #: How many further levels of workers may be started below the caller; 0: none.
    depth_left: int
    agents: Sequence[Agent] = ()
    #: The caller is a worker, not a person's own session.
    is_worker: bool = False
    #: The tools that the caller's definition grants, as patterns.
    granted: Sequence[str] = ("*",)
    #: How long a call may take; 0: without a limit; None: as long as the client is known to wait.
    call_s: float | None = None
    #: A call for a sub-task answers with its end alone, and never with a question of its agent.
    subtasks_to_the_end: bool = False


def is_for_worker() -> bool:
    """Return whether the tools are called by a worker, here or on another host."""
    return true_caller() is not None or is_from_worker()


def is_granted(tool: str, granted: Sequence[str]) -> bool:
    """Return whether a tool is among those that these patterns grant."""
    return any(fnmatchcase(tool, pattern) for pattern in granted)


class StartedWorkers:
    """The workers that one session has started."""

    def __init__(self) -> None:
        self._mine: dict[str, Target] = {}
        self._lock = threading.Lock()

    def note(self, targets: Iterable[Target]) -> None:
        """Add workers; the new run of a continued agent replaces the one before."""
        with self._lock:
            self._mine |= {target.id: target for target in targets}

    def known(self) -> list[Target]:
        """Return them, in the order of their starts."""
        with self._lock:
            return list(self._mine.values())


@dataclass(frozen=True, slots=True)
class Scope:
    """A task, and the worker of it that calls the tools; without a worker it is a person's own session."""

    task: TaskDir
    me: Caller | None = None
    #: The only agents that are offered; None leaves the choice to `offered_agents`.
    agents: tuple[str, ...] | None = None
    #: The workers that a person's session has started.
    started: StartedWorkers | None = None

    def situation(self) -> Situation:
        """Return the facts for the descriptions of the tools."""
        return Situation(
            task_id=self.task.id,
            cap=usable_config(tree_of(self.task)).limits.max_concurrent_agents,
            depth_left=self._depth_left(),
            agents=self.offered_agents(),
            is_worker=self.me is not None,
            granted=self._granted(),
        )

    def grants(self, tool: str) -> bool:
        """Return whether the caller may call a tool: a definition that lists tools grants no others."""
        return is_granted(tool, self._granted())

    def _granted(self) -> Sequence[str]:
        order = read_order(self.me.worker) if self.me is not None else None
        return ours_among((order or {}).get("tools"))

    def _depth_left(self) -> int:
        try:
            first = depth_in(self.task, self.me)
        except Refused:
            return 0
        return max(0, depth_limit(self.task, self.me) - first + 1)

    def offered_agents(self) -> list[Agent]:
        """Return the agents of the project and the shipped ones; those of the person's home folder can still be named.

        A home folder may hold dozens that are meant for other work: a tool for each would swamp a model.
        """
        found, _ = list_agent_specs(self.task.root)
        if self.agents is not None:
            chosen = set(self.agents)
            unknown = chosen - {agent.spec.name for agent in found}
            if unknown:
                raise NotFound(
                    f"Unknown agent type: {', '.join(sorted(unknown))}",
                    hint=f"known: {first_of(sorted(agent.spec.name for agent in found))}",
                )
            return [agent for agent in found if agent.spec.name in chosen]
        return [agent for agent in found if agent.usable and agent.origin is not Origin.HOME]

    @property
    def folder(self) -> str:
        """The working folder of the caller; its children get the same."""
        folder = read_known(self.me.worker.spec).get("cwd") if self.me is not None else None
        return str(folder or os.getcwd())

    def find(self, name: str) -> WorkerDir:
        """Return the worker of a name: an instance, an agent id (its newest run), or a sub-task (its first worker).

        `TASK/INSTANCE` names a worker of a sub-task.

        Raises:
            NotFound: There is none, or it is not below the caller.
        """
        return _Finder(self).find(name)

    def targets(self, names: Iterable[str]) -> tuple[list[Target], list[str]]:
        """Return the workers of these names as targets, and the names that are unknown."""
        finder, targets, unknown = _Finder(self), [], []
        for name in names:
            try:
                worker = finder.find(name)
            except (NotFound, UsageError):  # An invalid name is the name of no worker.
                unknown.append(name)
            else:
                targets.append(Target(id=name, key=worker.id))
        return targets, unknown

    def agent_of(self, key: WorkerId) -> WorkerDir:
        """Return the folder of a worker."""
        return self.task.worker_at(key)

    def below(self) -> list[WorkerDir]:
        """Return the workers that the caller has started, and those below them; for a person all of the task.

        Workers in another root are left out: they have no name here.
        """
        if self.me is not None:
            return [one for one in descendants(self.me.worker) if one.task.path.parent == self.task.path.parent]
        return [one.worker(name) for one in subtree(self.task) for name in read_task(one)[0].workers]

    def note(self, *targets: Target) -> None:
        """Note the workers that this session has started."""
        if self.me is None and self.started is not None:
            self.started.note(targets)


class _Finder:
    """Finds workers by their names; reads each log once, however many are looked for."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._chains: dict[str, Chains] = {}

    @cached_property
    def _subtasks(self) -> dict[str, TaskDir]:
        return {subtask.id: subtask for subtask in subtree(self._scope.task)[1:]}

    @cached_property
    def _below(self) -> set[str]:
        return {one.path for one in self._scope.below()}

    def find(self, name: str) -> WorkerDir:
        task_id, _, instance = name.partition("/")
        subtask = self._subtasks.get(task_id)
        first = instance or (_first_in(subtask) if subtask is not None else "")
        worker = self._newest(subtask, first) if subtask is not None and first else self._newest(self._scope.task, name)
        me = self._scope.me
        if me is not None and worker.path not in self._below:
            raise NotFound(f"no worker {name!r} below {me.instance}", hint=Next("look around"))
        return worker

    def _newest(self, task: TaskDir, name: str) -> WorkerDir:
        if task.id not in self._chains:
            self._chains[task.id] = chains_of(task)
        return newest_of(task, self._chains[task.id], name)


def _first_in(task: TaskDir) -> str:
    """Return the first worker of a sub-task: the one for which it was made; empty if it has none."""
    return next(iter(read_task(task)[0].workers), "")


@dataclass(frozen=True, slots=True)
class ScopeSource:
    """The task and agents that a session was given; its scope is looked up when it is needed."""

    task: str | None = None
    root: str | None = None
    agents: tuple[str, ...] | None = None

    def scope(self, *, create: bool = False) -> Scope:
        """Return the scope of the named task, else of the worker in which this runs, else of the current task.

        Args:
            create: Make a task if none is chosen, as a spawn does.

        Raises:
            NotFound: There is no such task.
        """
        me = true_caller()
        if me is not None and self.task is None:
            return Scope(me.task, me, self.agents)
        find = task_for_spawn if create else find_task
        found = find(self.task, root=self.root, force=False)
        return Scope(found, me if me is not None and me.task.path == found.path else None, self.agents)

    def at(self, task_id: str) -> Scope:
        """Return the scope of a task of the root, whichever task is current.

        Raises:
            NotFound: There is no such task, or it is not this person's own.
        """
        me = true_caller()
        root = me.task.root if me is not None and self.task is None else find_root(self.root)
        task = root.task(check_name(task_id, "the task"))
        if not task.exists or not is_own(task):
            raise NotFound(f"no task {task_id!r} of yours in {root.path}")
        return Scope(task, me if me is not None and me.task.path == task.path else None, self.agents)

    @property
    def is_named(self) -> bool:
        """Whether a task was named, by an option or by the environment."""
        return self.task is not None or bool(os.environ.get(TASK_VARIABLE))

    def situation(self) -> Situation:
        """Return the facts for the descriptions of the tools, even if there is no task yet."""
        try:
            return self.scope().situation()
        except NotFound:
            if self.task is not None:
                raise
        limits = Limits()
        agents = [one for one in list_agent_specs(None)[0] if one.usable and one.origin is not Origin.HOME]
        return Situation("", limits.max_concurrent_agents, limits.max_depth + 1, agents)
