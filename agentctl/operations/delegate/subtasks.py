"""Sub-tasks: a task of its own for one agent, below the caller's task, and the answer that it gives."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from agentctl.adapters import eventlog
from agentctl.adapters.clock import now_iso
from agentctl.adapters.files import read_known
from agentctl.adapters.taskdir import Root, TaskDir, WorkerDir
from agentctl.adapters.taskyaml import roster
from agentctl.adapters.treedir import tree_of
from agentctl.domain import events as ev
from agentctl.domain.names import is_name
from agentctl.domain.states import Status
from agentctl.domain.tree.limits import Limits
from agentctl.errors import (
    AgentctlError,
    Argument,
    AtTerminal,
    Next,
    NotFound,
    Refused,
    UsageError,
    WaitStopped,
    WaitTimedOut,
    WithArguments,
)
from agentctl.lean import NamedTuple
from agentctl.operations.start.request_keys import make_subtask_once, sole_started, subtask_by_key
from agentctl.operations.start.requests import AgentWork, Spawned, SpawnRequest
from agentctl.operations.start.spare_shims import shims_ahead
from agentctl.operations.start.spawning import spawn_workers
from agentctl.operations.trust.definitions import find_agent_spec
from agentctl.operations.where.calling import Caller
from agentctl.operations.where.lineage import depth_limit, limited, refuse_if_barred, tasks_above, true_caller
from agentctl.operations.where.ownership import check_own, check_rules
from agentctl.operations.where.task_config import read_config
from agentctl.supervision.worker.cancel_request import is_asked
from agentctl.supervision.worker.kinship import leaves_children
from agentctl.supervision.worker.spec import read_spec

if TYPE_CHECKING:
    from agentctl.domain.documents.workers.starts import BegunSubtask
    from agentctl.operations.show.subtask_answer import SubtaskEnd
    from agentctl.operations.wait.rounds import OnStranded
    from agentctl.operations.wait.waiting import OnAsked

USER = "user"
#: The worker of a sub-task that has a key: of several that send its request, one starts it.
_FIRST = "first of a sub-task"
#: Limits of each worker, which a sub-task takes over. Those of the whole tree belong to its root alone.
_OF_WORKERS = ("timeoutSeconds", "graceSeconds", "maxOutputBytes", "retryCeilingSeconds", "stallSeconds")

#: Called with the task of a sub-task, before it has a worker.
OnMade = Callable[[TaskDir], object]


class SubtaskRequest(NamedTuple):
    """A piece of work for one agent; None leaves it to the definition or the task."""

    agent: str
    title: str
    intent: str | None = None
    #: Paths, or `task/instance/file`.
    artifacts: Sequence[str] = ()
    priority: int = 0
    task_id: str | None = None
    #: Fields of `AgentWork`: driver, model, permissions, max_turns, ...
    agent_options: Mapping[str, Any] = MappingProxyType({})
    cwd: str | None = None
    #: As `SpawnRequest.callers_cwd`.
    callers_cwd: str | None = None
    timeout_seconds: float | None = None
    worktree: bool = False
    by_tool: bool = False
    #: The same key twice makes one sub-task.
    key: str | None = None

    def said(self) -> dict[str, Any]:
        """Return it part by part, as its caller says it; when its turn comes is not what it does."""
        aside = {"agent_options", "callers_cwd", "priority", "by_tool", "key"}
        return {**self.agent_options, **{name: getattr(self, name) for name in self._fields if name not in aside}}


class Subtask(NamedTuple):
    """A sub-task whose worker is accepted."""

    task: TaskDir
    spawned: Spawned

    @property
    def worker(self) -> WorkerDir:
        """The folder of its worker."""
        return self.task.worker(self.spawned.agent_instance)

    @property
    def agent_id(self) -> str:
        """The name of the chain of runs that its worker begins."""
        return read_spec(self.worker.spec).agent_id or self.spawned.agent_instance

    def to_json(self) -> BegunSubtask:
        """Return what `subtask --no-wait --json` prints."""
        return {"agentId": self.agent_id, **self.spawned.to_json()}


def run_subtask(parent: TaskDir, request: SubtaskRequest, *, wait_s: float | None = None) -> SubtaskEnd:
    """Make a sub-task, and wait for its end, also through its questions."""
    return await_subtask(begin_subtask(parent, request), wait_s=wait_s)


# -- making one --------------------------------------------------------------------------------------------------------


def begin_subtask(parent: TaskDir, request: SubtaskRequest, on_made: OnMade | None = None) -> Subtask:
    """Make a sub-task of `parent` and put its worker into the queue, or return what the key of the request has made.

    Whatever interrupts this leaves no sub-task, or one whose worker is accepted: tell the two apart by `instances`.

    Raises:
        UsageError: The title is empty, or an artifact does not exist.
        NotFound: There is no such agent or task.
        Refused: It would be too deep, the agent cannot be used, or the calling worker is being cancelled.
        Conflict: The key has done something else.
    """
    if not request.title.strip():
        raise UsageError("the title is empty", hint=AtTerminal('agentctl subtask explore "WHAT TO DO"'))
    check_own(parent)
    caller = _caller_in(parent)
    before = _begun_before(parent, request)
    if before is not None:
        return before
    _check_depth(parent, caller)
    with shims_ahead(tree_of(parent), 1):  # The shim gets ready while the task is made.
        return _begin(parent, request, caller, on_made)


def _begun_before(parent: TaskDir, request: SubtaskRequest) -> Subtask | None:
    """Return the sub-task that the key of a request has begun; None where it has none, or that has no worker."""
    child = subtask_by_key(parent, request.key, request.said())
    spawned = None if child is None else sole_started(child, _FIRST)
    return None if child is None or spawned is None else Subtask(child, spawned)


def _begin(parent: TaskDir, request: SubtaskRequest, caller: Caller | None, on_made: OnMade | None) -> Subtask:
    spec = find_agent_spec(parent.root, request.agent)
    agent = spec.name
    artifacts = _find_artifacts(parent.root, request.artifacts)
    made: list[TaskDir] = []

    def make() -> TaskDir:
        made.append(_make_task(parent, request, agent, caller))
        _tell_parent(parent, made[0], request.title, agent, caller)
        return made[0]

    try:
        child = make_subtask_once(parent, request.key, request.said(), make).task
        if on_made is not None:
            on_made(child)
        work = AgentWork(prompt=subtask_prompt(request, artifacts), agent=agent, spec=spec, **request.agent_options)
        wanted = SpawnRequest(
            work=work, priority=request.priority, artifacts=artifacts, cwd=request.cwd,
            callers_cwd=request.callers_cwd, timeout_seconds=request.timeout_seconds, worktree=request.worktree,
            by_tool=request.by_tool, sole=None if request.key is None else _FIRST,
        )  # fmt: skip
        spawned = spawn_workers(child, [wanted], queue=True)[0]
    except BaseException:
        for one in made:
            _take_back(parent, one)
        raise
    with contextlib.suppress(AgentctlError, OSError):  # It is a cache; the log has it.
        roster.update(parent, {}, [child.id])
    return Subtask(child, spawned)


def _caller_in(parent: TaskDir) -> Caller | None:
    """Return the calling worker, which may make sub-tasks only of its own task."""
    caller = true_caller()
    if caller is not None and caller.task.root.path == parent.root.path and caller.task.id != parent.id:
        raise Refused(
            f"{caller.instance} works on {caller.task.id}: it can make sub-tasks of that task, not of {parent.id}",
            hint=WithArguments("leave ", Argument("task"), " out"),
        )
    return caller


def _check_depth(parent: TaskDir, caller: Caller | None) -> None:
    if caller is None:
        return
    refuse_if_barred(caller.worker)
    depth, limit = read_spec(caller.worker.spec).depth, depth_limit(parent, caller)
    if depth + 1 > limit:
        raise limited(
            f"Maximum subtask nesting depth ({limit}) exceeded. Current depth: {depth}.",
            f"raise maxDepth in {tree_of(parent).task_file}",
        )


def _make_task(parent: TaskDir, request: SubtaskRequest, agent: str, caller: Caller | None) -> TaskDir:
    from agentctl.operations.start.new_task import create_task

    above = {
        "parentTaskId": parent.id,
        "parentInstance": caller.instance if caller else None,
        "rootTaskId": tree_of(parent).id,
        "author": caller.instance if caller else USER,
        "agent": agent,
    }
    head = {key: value for key, value in above.items() if value is not None}

    def is_taken(name: str) -> bool:
        return any(task.worker(name).path.exists() for task in (parent, *tasks_above(parent)))

    return create_task(
        parent.root, request.title, task_id=request.task_id, config=_inherited(parent), above=head, is_taken=is_taken
    )


def _inherited(parent: TaskDir) -> dict[str, Any]:
    """Return the config that a sub-task takes over: non-default limits, rules, and `childrenAtEnd`."""
    config = read_config(parent)
    defaults, limits = Limits().to_json(), config.limits.to_json()
    taken: dict[str, Any] = {key: limits[key] for key in _OF_WORKERS if limits[key] != defaults[key]}
    if config.permissions:
        check_rules(parent, config.permissions)
        taken["permissions"] = [dict(rule) for rule in config.permissions]
    return {**taken, "childrenAtEnd": config.children_at_end.value}


def _tell_parent(parent: TaskDir, child: TaskDir, title: str, agent: str, caller: Caller | None) -> None:
    payload = {"taskId": child.id, "title": title, "agent": agent, "origin": child.nonce()}
    by = caller.instance if caller else USER
    eventlog.append(parent.events, [ev.make_event(now_iso(), ev.SUBTASK_CREATED, parent.id, by, payload)])


def _take_back(parent: TaskDir, child: TaskDir) -> None:
    """Remove a sub-task whose worker was not accepted; if it is already queued, the sub-task stays, whatever failed."""
    if child.instances():
        return
    shutil.rmtree(child.path, ignore_errors=True)
    removed = ev.make_event(now_iso(), ev.SUBTASK_REMOVED, parent.id, "agentctl", {"taskId": child.id})
    with contextlib.suppress(AgentctlError, OSError):
        eventlog.append(parent.events, [removed])


def subtask_prompt(request: SubtaskRequest, artifacts: Sequence[str]) -> str:
    """Return the child's first prompt: the title, the intent, and the files to work with."""
    parts = [request.title.strip(), (request.intent or "").strip()]
    if artifacts:
        parts.append("Files to work with:\n" + "\n".join(f"- {path}" for path in artifacts))
    return "\n\n".join(part for part in parts if part)


# -- its answer --------------------------------------------------------------------------------------------------------


def find_subtask(task: TaskDir) -> Subtask:
    """Return a sub-task that was begun before, by its first worker."""
    if read_config(task).agent is None:
        raise Refused(f"{task.id} is not a sub-task")
    first = min((task.worker(name) for name in task.instances()), key=_begun_at, default=None)
    if first is None:
        raise NotFound(f"the sub-task {task.id} has no worker", hint=Next("events", task=task.id))
    return Subtask(task, Spawned(agent_instance=first.instance, status=Status.QUEUED, task_id=task.id))


def _begun_at(worker: WorkerDir) -> float:
    try:
        return os.stat(worker.spec).st_mtime
    except OSError:
        return float("inf")


def await_subtask(
    subtask: Subtask,
    *,
    wait_s: float | None = None,
    on_asked: OnAsked | None = None,
    on_stranded: OnStranded | None = None,
) -> SubtaskEnd:
    """Wait for the end of a sub-task, also through its questions; within a worker, its slot is lent meanwhile.

    If the calling worker is cancelled, the child is too, unless its task leaves children. A child that succeeds at
    that moment still answers with Success.

    Args:
        wait_s: After this time, the answer is that it still runs.
        on_asked: Called with the open questions of the child and of all below it.
        on_stranded: Called with the workers that stay in the queue for ever, if there are any.
    """
    # The child already works while these are loaded.
    from agentctl.operations.show.subtask_answer import still_running
    from agentctl.operations.wait.waiting import wait_all

    instance = subtask.spawned.agent_instance
    try:
        wait_all(subtask.task, [instance], timeout_s=wait_s, on_asked=on_asked, on_stranded=on_stranded)
    except WaitTimedOut:
        return still_running(subtask.task.id, subtask.agent_id, "timeout")
    except WaitStopped as stop:
        end = end_with_caller(subtask) if stop.stopped == "cancelled" else None
        return end or still_running(subtask.task.id, subtask.agent_id, stop.stopped)
    return subtask_end(subtask)


def end_with_caller(subtask: Subtask) -> SubtaskEnd | None:
    """Cancel a sub-task whose caller is being cancelled, and return its answer; None where the caller is not.

    A sub-task with `childrenAtEnd: leave` lives on. The answer is `Cancel` then too, since this caller has lost it.
    """
    caller = true_caller()
    if caller is None or not is_asked(caller.worker):
        return None
    if leaves_children(caller.worker) and not subtask.worker.has_ended:
        from agentctl.operations.show.subtask_answer import CANCEL, SubtaskEnd

        why = f"{caller.instance} is being cancelled; {subtask.task.id} goes on (childrenAtEnd: leave)"
        return SubtaskEnd(task_id=subtask.task.id, agent_id=subtask.agent_id, status=CANCEL, failure_reason=why)
    from agentctl.operations.stop.cancelling import cancel_workers

    cancel_workers(subtask.task, [subtask.spawned.agent_instance])
    return subtask_end(subtask) if subtask.worker.has_ended else None


def subtask_end(subtask: Subtask) -> SubtaskEnd:
    """Return the answer of a sub-task whose worker has ended."""
    from agentctl.operations.show.subtask_answer import answer_of

    return answer_of(subtask.worker, subtask.agent_id)


# -- artifacts: paths, or files that another worker has left (`task/instance/file`) ------------------------------------


def _find_artifacts(root: Root, references: Sequence[str]) -> list[str]:
    """Return the path of each artifact.

    Raises:
        UsageError: One does not exist.
    """
    return [_find_artifact(root, reference) for reference in references]


def _find_artifact(root: Root, reference: str) -> str:
    """Return the path of an artifact: a file or folder, else a file in a worker's folder, else one that it declared."""
    if reference and os.path.exists(reference):
        return os.path.abspath(reference)
    worker, name = _worker_in(root, reference)
    if worker is not None:
        place = os.path.normpath(worker.path / name)
        if place.startswith(f"{worker.path}/") and os.path.exists(place):
            return place
        for declared in _declared_by(worker):
            if name in (declared, os.path.basename(declared)) and os.path.exists(declared):
                return declared
    raise UsageError(
        f"there is no artifact {reference!r}",
        hint="name a path that exists, or TASK/INSTANCE/FILE for a file that a worker has left",
    )


def _worker_in(root: Root, reference: str) -> tuple[WorkerDir | None, str]:
    task_id, _, rest = reference.partition("/")
    instance, _, name = rest.partition("/")
    if not (is_name(task_id) and is_name(instance) and name):
        return None, ""
    worker = root.task(task_id).worker(instance)
    return (worker if worker.path.exists() else None), name


def _declared_by(worker: WorkerDir) -> list[str]:
    from agentctl.operations.show.results import artifacts_in  # It imports git; few sub-tasks need it.

    return [one["path"] for one in artifacts_in(read_known(worker.result), worker)]
