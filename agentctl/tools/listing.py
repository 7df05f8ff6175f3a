"""The tool `list_agents`: the agents below the caller, a page at a time."""

from __future__ import annotations

from typing import Any

from agentctl.adapters.files import read_quietly
from agentctl.adapters.taskdir import WorkerDir
from agentctl.adapters.taskyaml.cache import root_task_of
from agentctl.domain.projection import TaskView, WorkerView
from agentctl.domain.states import Status
from agentctl.lean import NamedTuple
from agentctl.operations.show.current_state import read_task
from agentctl.operations.show.results import declared_summary, last_words
from agentctl.operations.wait.keys import TURN
from agentctl.supervision.worker.kinship import ancestors
from agentctl.tools.definition import Arguments, Call, Tool, number, text
from agentctl.tools.results import for_model, question_of
from agentctl.tools.scope import Scope

_LAST_MESSAGE = 300
#: How much of each agent's activity is read, in bytes: an answer has many rows.
_LOOKED_BACK = 1 << 16
#: Rows of one answer: a row is a few hundred characters.
DEFAULT_ROWS, _MOST_ROWS = 50, 500


class _ListedAgent(NamedTuple):
    """A worker, and what the event log says about it."""

    worker: WorkerDir
    view: WorkerView
    #: It is what its sub-task was made for: the sub-task's id is its own.
    is_subtask: bool = False

    @property
    def rank(self) -> int:
        """The order in a list: first agents that need an answer, then those at work, then those that have ended."""
        return 0 if self.view.status is Status.BLOCKED else 2 if self.view.is_terminal else 1


def _list(scope: Scope, given: Arguments, _call: Call) -> Any:
    with TURN:
        found = _newest_runs(scope)
    prefix = given.get("path_prefix", "").strip("/")
    if prefix:
        found = [one for one in found if any(f"{path}/".startswith(f"{prefix}/") for path in _paths(scope, one.worker))]
    found.reverse()
    ordered = sorted(found, key=lambda one: one.rank)
    first, most = int(given.get("offset", 0)), int(given.get("limit", DEFAULT_ROWS))
    page = ordered[first : first + most]
    rows = [_row(scope, one) for one in page]
    left = len(ordered) - first - len(page)
    if left > 0:
        rows.append({"more": left, "hint": f"list_agents with offset {first + len(page)} continues"})
    return rows


def _newest_runs(scope: Scope) -> list[_ListedAgent]:
    """Return the newest run of each agent below the caller, in the order of their starts.

    Each log is read once.
    """
    views: dict[str, TaskView] = {}
    found: dict[tuple[str, str], _ListedAgent] = {}
    for worker in scope.below():
        if worker.task.id not in views:
            views[worker.task.id] = read_task(worker.task)[0]
        view = views[worker.task.id].workers.get(worker.instance)
        if view is not None:
            key = (worker.task.id, view.agent_id or worker.instance)
            found.pop(key, None)  # The newest run also takes the newest place.
            first = next(iter(views[worker.task.id].workers))
            is_subtask = worker.task.id != scope.task.id and key[1] == first
            found[key] = _ListedAgent(worker, view, is_subtask)
    return list(found.values())


def _row(scope: Scope, one: _ListedAgent) -> dict[str, Any]:
    worker_dir, worker, is_subtask = one
    spec = read_quietly(worker_dir.spec)
    named = worker_dir.task.worker(worker.agent_id or worker_dir.instance)
    name = worker_dir.task.id if is_subtask else scope.name_of(named)
    row = {
        "id": name,
        "agent_type": spec.get("agent", "command"),
        "status": str(worker.status),
        "parent": spec.get("parent"),
        "path": _paths(scope, worker_dir)[0],
        "last_message": last_message(worker_dir),
    }
    question = None if worker_dir.has_ended else question_of(worker_dir)
    instance = worker_dir.instance if worker.agent_id and worker.agent_id != worker_dir.instance else None
    more = {
        "reason": worker.reason,
        "question": for_model(question) if question is not None else None,
        "instance": instance,
    }
    return row | {key: value for key, value in more.items() if value}


def _paths(scope: Scope, worker: WorkerDir) -> tuple[str, str]:
    """Return `a/b/c`: the ids of a worker's ancestors and its own, before those in a sub-task the sub-task's id.

    The second one has the names of their runs instead, which are understood too.
    """
    ids: list[str] = []
    runs: list[str] = []
    task = root_task_of(scope.task)
    for one in (*reversed([*ancestors(worker)]), worker):
        above = [] if one.task.path == task.path else [one.task.id]
        ids += [*above, str(read_quietly(one.spec).get("agentId") or one.instance)]
        runs += [*above, one.instance]
        task = one.task
    return "/".join(ids), "/".join(runs)


def last_message(worker: WorkerDir) -> str | None:
    """Return the beginning of a worker's last words, otherwise of the result that it declared."""
    words = last_words(worker, _LOOKED_BACK) or declared_summary(read_quietly(worker.result))
    return words if not words or len(words) <= _LAST_MESSAGE else f"{words[:_LAST_MESSAGE]} [cut]"


LIST_AGENTS = Tool(
    name="list_agents",
    describe=lambda _situation: (
        "List the agents below you: id, status, parent, question, last message. First those that need an answer, then"
        f" those at work, then the latest ended. {DEFAULT_ROWS} at once; a last row `more` says how many are left."
    ),
    properties={
        "path_prefix": text("Only the agent with this `path`, such as `a/b`, and those below it."),
        "limit": number(f"How many rows, {_MOST_ROWS} at most.", low=1, high=_MOST_ROWS, whole=True),
        "offset": number("How many rows to skip.", low=0, high=1_000_000, whole=True),
    },
    without_task=lambda _given: [],
    run=_list,
    read_only=True,
)
