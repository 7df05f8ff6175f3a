"""Whose tools these are: the task, the worker that calls them, and how things stand there."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from agentctl.adapters.config import root_of_tree
from agentctl.adapters.definitions import Origin
from agentctl.adapters.files import read_quietly
from agentctl.adapters.taskdir import AgentDir, TaskDir
from agentctl.domain.limits import Limits
from agentctl.domain.names import first_of
from agentctl.errors import Next, NotFound, Refused
from agentctl.lean import NamedTuple
from agentctl.operations.agents import Agent, list_agent_specs
from agentctl.operations.configuring import usable_config
from agentctl.operations.gathering import Key
from agentctl.operations.lineage import depth_in, depth_limit, true_caller
from agentctl.operations.listing import read_task
from agentctl.operations.locating import Caller, find_task
from agentctl.operations.resuming import newest_run
from agentctl.operations.spawning import task_for_spawn
from agentctl.operations.subtree import subtree
from agentctl.supervision.kinship import descendants
from agentctl.tools.definition import Target


class Situation(NamedTuple):
    """How things stand: what the descriptions of the tools tell."""

    task_id: str
    #: Workers of the tree that may be at work at once.
    cap: int
    #: How many further levels of workers may be started below the caller; 0: none.
    depth_left: int
    agents: Sequence[Agent] = ()
    #: A worker calls, and not a person's own session.
    is_worker: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """A task, and the worker of it whose tools these are; None is a person's own session."""

    task: TaskDir
    me: Caller | None = None
    #: The only agents that are offered; None leaves the choice to `offered_agents`.
    agents: tuple[str, ...] | None = None

    def situation(self) -> Situation:
        """Look at how things stand."""
        return Situation(
            task_id=self.task.id,
            cap=usable_config(root_of_tree(self.task)).limits.max_concurrent_agents,
            depth_left=self._depth_left(),
            agents=self.offered_agents(),
            is_worker=self.me is not None,
        )

    def _depth_left(self) -> int:
        try:
            first = depth_in(self.task, self.me)
        except Refused:
            return 0
        return max(0, depth_limit(self.task, self.me) - first + 1)

    def offered_agents(self) -> list[Agent]:
        """Return the agents of the project and the shipped ones; a person's other ones can be named all the same.

        A home folder may hold dozens that are meant for other work: a tool of each would drown a model.
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
        """The working folder of who calls: children work in it."""
        told = read_quietly(self.me.agent.spec).get("cwd") if self.me is not None else None
        return str(told or os.getcwd())

    def find(self, name: str) -> AgentDir:
        """Return the worker that a caller means: an instance, an agent id (its newest run), a sub-task.

        `TASK/INSTANCE` names a worker of a sub-task.

        Raises:
            NotFound: There is none, or it is not below the caller.
        """
        agent = self._of_subtask(name) or newest_run(self.task, name)
        if self.me is not None and not self._is_below(agent):
            raise NotFound(f"no worker {name!r} below {self.me.instance}", hint=Next("look around"))
        return agent

    def _of_subtask(self, name: str) -> AgentDir | None:
        """Return a worker of a sub-task; without its name the first one, the one that the task is bound to."""
        task_id, _, instance = name.partition("/")
        for subtask in subtree(self.task)[1:]:
            if subtask.id == task_id:
                workers = read_task(subtask)[0].workers
                first = instance or next(iter(workers), "")
                return newest_run(subtask, first) if first else None
        return None

    def _is_below(self, agent: AgentDir) -> bool:
        assert self.me is not None
        return any(one.path == agent.path for one in descendants(self.me.agent))

    def name_of(self, agent: AgentDir) -> str:
        """Return the id by which the caller knows a worker."""
        return agent.instance if agent.task.id == self.task.id else f"{agent.task.id}/{agent.instance}"

    def target(self, name: str) -> Target:
        """Return the worker that a caller means as what is waited for."""
        agent = self.find(name)
        return Target(id=name, key=Key(agent.task.id, agent.instance))

    def agent_of(self, key: Key) -> AgentDir:
        """Return the folder of a worker."""
        return self.task.sibling(key.task_id).agent(key.instance)

    def below(self) -> list[AgentDir]:
        """Return the workers that the caller has started, and those below them; a person's are all of the task.

        Those in another root have no name here.
        """
        if self.me is not None:
            return [one for one in descendants(self.me.agent) if one.task.path.parent == self.task.path.parent]
        return [one.agent(name) for one in subtree(self.task) for name in read_task(one)[0].workers]

    def children(self) -> list[AgentDir]:
        """Return the workers that the caller itself may wait for without naming them."""
        if self.me is not None:
            return [one for one in self.below() if _parent_of(one) == self.me.instance]
        return [self.task.agent(name) for name, one in read_task(self.task)[0].workers.items() if not one.parent]


def _parent_of(agent: AgentDir) -> str | None:
    parent = read_quietly(agent.spec).get("parent")
    return str(parent) if parent else None


@dataclass(frozen=True, slots=True)
class Source:
    """Where the tools of one server or session find their place: looked up for each call, since it may come to be."""

    task: str | None = None
    root: str | None = None
    agents: tuple[str, ...] | None = None

    def place(self, *, create: bool = False) -> Place:
        """Return the place: that of the worker in which this runs, else of the named task, else of the current one.

        Args:
            create: Make a task where none is chosen, as a spawn does.

        Raises:
            NotFound: There is no such task.
        """
        me = true_caller()
        if me is not None and self.task is None:
            return Place(me.task, me, self.agents)
        find = task_for_spawn if create else find_task
        found = find(self.task, root=self.root, force=False)
        return Place(found, me if me is not None and me.task.path == found.path else None, self.agents)

    def situation(self) -> Situation:
        """Look at how things stand, also where there is no task yet."""
        try:
            return self.place().situation()
        except NotFound:
            if self.task is not None:
                raise
        limits = Limits()
        agents = [one for one in list_agent_specs(None)[0] if one.usable and one.origin is not Origin.HOME]
        return Situation("", limits.max_concurrent_agents, limits.max_depth + 1, agents)
