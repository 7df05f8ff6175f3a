"""The agents below a caller: the newest run of each, and the one id by which all tools know it."""

from __future__ import annotations

from typing import Any

from agentctl.adapters.files import read_known
from agentctl.adapters.taskdir import WorkerDir
from agentctl.domain.names import WorkerId
from agentctl.domain.worker.projection import TaskView, WorkerView
from agentctl.lean import NamedTuple
from agentctl.operations.show.current_state import read_task
from agentctl.tools.awaited_worker import Target
from agentctl.tools.scope import Scope


class AgentBelow(NamedTuple):
    """An agent, by its newest run, and what the event log says about that."""

    id: str
    worker: WorkerDir
    view: WorkerView

    @property
    def target(self) -> Target:
        """Return what a wait needs to know of it."""
        return Target(id=self.id, key=self.worker.id)

    def spec(self) -> dict[str, Any]:
        """Return its spec."""
        return read_known(self.worker.spec)


def agents_below(scope: Scope) -> list[AgentBelow]:
    """Return the agents below the caller, in the order in which their newest runs were started.

    Each log is read once.
    """
    views: dict[str, TaskView] = {}
    found: dict[str, AgentBelow] = {}
    for worker in scope.below():
        if worker.task.id not in views:
            views[worker.task.id] = read_task(worker.task)[0]
        workers = views[worker.task.id].workers
        view = workers.get(worker.instance)
        if view is not None:
            name = _id_of(scope, worker, view, next(iter(workers)))
            found.pop(name, None)  # The newest run also takes the newest place.
            found[name] = AgentBelow(name, worker, view)
    return list(found.values())


def _id_of(scope: Scope, worker: WorkerDir, view: WorkerView, first: str) -> str:
    """Return the id of an agent; for the one for which a sub-task was made, its first, it is that of the sub-task."""
    task, name = worker.task, view.agent_id or worker.instance
    if task.id == scope.task.id:
        return name
    return task.id if name == first else str(WorkerId(task.id, name))


def started_agents(scope: Scope) -> list[Target]:
    """Return the agents that the caller has started itself: it waits for them if it names none.

    Those that a person starts by hand do not belong to their session. A session that has started nothing (its client
    was restarted, for example) gets what earlier sessions have started in the task and its sub-tasks.
    """
    if scope.me is not None:
        me = scope.me.instance
        return [one.target for one in agents_below(scope) if one.spec().get("parent") == me]
    known = scope.started.known() if scope.started is not None else []
    return known or [one.target for one in agents_below(scope) if _is_of_a_session(one.spec())]


def _is_of_a_session(spec: dict[str, Any]) -> bool:
    return spec.get("byTool") is True and not spec.get("parent")
