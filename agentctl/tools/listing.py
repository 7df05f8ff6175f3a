"""The tool `list_agents`: the agents below the caller, a page at a time."""

from __future__ import annotations

from typing import Any

from agentctl.adapters.files import read_known
from agentctl.adapters.taskdir import WorkerDir
from agentctl.adapters.treedir import tree_of
from agentctl.domain.states import Status
from agentctl.domain.text.plaintext import beginning
from agentctl.errors import AgentctlError
from agentctl.operations.show.results import declared_summary, last_words
from agentctl.operations.show.unreadable import note_unreadable
from agentctl.operations.wait.keys import TURN
from agentctl.supervision.worker.kinship import ancestors
from agentctl.tools.agents_below import AgentBelow, agents_below
from agentctl.tools.definition import Arguments, Call, Tool, number, text
from agentctl.tools.results import question_for_model, question_of
from agentctl.tools.scope import Scope

_LAST_MESSAGE = 300
#: How much of each agent's activity is read, in bytes: an answer has many rows.
_LOOKED_BACK = 1 << 16
#: Rows of one answer: a row is a few hundred characters.
DEFAULT_ROWS, _MOST_ROWS = 50, 500


def _rank(one: AgentBelow) -> int:
    """Return its place in a list: first agents that need an answer, then those at work, then those that have ended."""
    return 0 if one.view.status is Status.BLOCKED else 2 if one.view.is_terminal else 1


def _list(scope: Scope, given: Arguments, _call: Call) -> Any:
    with TURN:
        found = agents_below(scope)
    prefix = given.get("path_prefix", "").strip("/")
    if prefix:
        found = [one for one in found if any(f"{path}/".startswith(f"{prefix}/") for path in _paths(scope, one.worker))]
    found.reverse()
    ordered = sorted(found, key=_rank)
    first, most = int(given.get("offset", 0)), int(given.get("limit", DEFAULT_ROWS))
    page = ordered[first : first + most]
    rows = [_shown(scope, one) for one in page]
    left = len(ordered) - first - len(page)
    if left > 0:
        rows.append({"more": left, "hint": f"list_agents with offset {first + len(page)} continues"})
    return rows


def _shown(scope: Scope, one: AgentBelow) -> dict[str, Any]:
    """Return the row of an agent; of one that cannot be read, what the log says and what is in the way."""
    try:
        row = _row(scope, one)
    except (AgentctlError, OSError) as error:
        note_unreadable(one.view, error)
        row = {"id": one.worker.instance, "status": str(one.view.status)}
    return row if one.view.unreadable is None else {**row, "unreadable": one.view.unreadable.message}


def _row(scope: Scope, one: AgentBelow) -> dict[str, Any]:
    worker_dir, worker, spec = one.worker, one.view, one.spec()
    row = {
        "id": one.id,
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
        "question": question_for_model(question) if question is not None else None,
        "instance": instance,
    }
    return row | {key: value for key, value in more.items() if value}


def _paths(scope: Scope, worker: WorkerDir) -> tuple[str, str]:
    """Return `a/b/c`: the ids of a worker's ancestors and its own, before those in a sub-task the sub-task's id.

    The second one has the names of their runs instead, which are understood too.
    """
    ids: list[str] = []
    runs: list[str] = []
    folder = tree_of(scope.task).path
    for one in (*reversed([*ancestors(worker)]), worker):
        above = [] if one.task.path == folder else [one.task.id]
        ids += [*above, str(read_known(one.spec).get("agentId") or one.instance)]
        runs += [*above, one.instance]
        folder = one.task.path
    return "/".join(ids), "/".join(runs)


def last_message(worker: WorkerDir) -> str | None:
    """Return the beginning of a worker's last words, otherwise of the result that it declared."""
    words = last_words(worker, _LOOKED_BACK) or declared_summary(read_known(worker.result))
    return words and beginning(words, _LAST_MESSAGE, " [cut]")


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
