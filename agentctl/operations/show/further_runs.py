"""Decides which further runs of an ended worker are accepted: its work once more, or its session continued.

`retry` and `resume` refuse what is refused here, and nothing proposes it elsewhere.
"""

from __future__ import annotations

import shlex
from collections.abc import Container

from agentctl.adapters.activitylog import ActivityReader
from agentctl.adapters.files import read_known
from agentctl.adapters.paths import FilePath
from agentctl.adapters.taskdir import WorkerDir
from agentctl.domain.activity.row import RowType
from agentctl.domain.activity.rows import read_line
from agentctl.domain.names import is_name
from agentctl.domain.states import Status
from agentctl.drivers.order import order_from
from agentctl.drivers.registry import driver_for
from agentctl.errors import AgentctlError, Next, NotFound, Refused
from agentctl.lean import TYPE_CHECKING, NamedTuple
from agentctl.operations.where.folding import fold
from agentctl.operations.where.task_config import read_config
from agentctl.operations.worktree.remaking import where_begun
from agentctl.supervision.worker.spec import WorkerSpec, is_of_task, read_order, read_spec

if TYPE_CHECKING:
    from agentctl.domain.documents.workers.worker import OfferedRuns
    from agentctl.domain.worker.projection import TaskView

#: Rows that exist only once the model has answered.
_OF_THE_MODEL = frozenset({RowType.MESSAGE, RowType.THOUGHT, RowType.TOOL, RowType.AGENT, RowType.USAGE})


class FurtherRuns(NamedTuple):
    """Which further runs of an ended worker are accepted."""

    retry: bool
    resume: bool

    def to_json(self) -> OfferedRuns:
        """Return it as `show --json` prints it."""
        return {"retry": self.retry, "resume": self.resume}


def further_runs(worker: WorkerDir) -> FurtherRuns:
    """Return what views may propose for an ended worker."""
    return FurtherRuns(refusal_of_retry(worker) is None, refusal_of_resume(worker) is None)


def refusal_of_retry(worker: WorkerDir) -> AgentctlError | None:
    """Return why the work of a worker may not be started once more; None if `retry` takes it, named alone."""
    refusal = refusal_by_itself(worker)
    if refusal is not None:
        return refusal
    try:
        spec = read_spec(worker.spec)
        return unmet_dependency(worker, spec, fold(worker.task)) if spec.after and not spec.after_any else None
    except AgentctlError as error:
        return error


def refusal_by_itself(worker: WorkerDir) -> AgentctlError | None:
    """Return the same, whatever became of the workers that it waited for."""
    try:
        return _of_strangers(worker) or _of_retry(worker)
    except AgentctlError as error:  # A spec or a task that cannot be read.
        return error


def unmet_dependency(worker: WorkerDir, spec: WorkerSpec, view: TaskView, again: Container[str] = ()) -> Refused | None:
    """Return why the work of a worker cannot be started once more: it waits for one that did not complete.

    Args:
        spec: Its own; only its folder says for certain which worker it is.
        again: Workers that are tried again with it.
    """
    for name in () if spec.after_any else spec.after:
        newest = newest_try_of(view, name)
        if newest in again or not _is_in_vain(view, newest):
            continue
        became = view.workers[newest].status if newest in view.workers else "gone"
        work = view.tries.work_of(worker.instance)
        names = " ".join([*awaited_in_vain(worker, view), worker.instance])
        hint = Next("retry all", names, "starts all of them again")
        return Refused(f"{work} waits for {newest}, which is {became}", hint=hint)
    return None


def awaited_in_vain(worker: WorkerDir, view: TaskView) -> list[str]:
    """Return the newest tries of what a worker waited for, at any remove, that did not complete: the farthest first."""
    found = {worker.instance: None}
    left = [worker.instance]
    for one in left:
        after = read_known(worker.task.worker(one).spec).get("after")
        for name in filter(is_name, map(str, after if isinstance(after, list) else ())):
            newest = newest_try_of(view, name)
            if newest not in found and _is_in_vain(view, newest):
                found[newest] = None
                left.append(newest)
    return left[:0:-1]


def _is_in_vain(view: TaskView, instance: str) -> bool:
    worker = view.workers.get(instance)
    return worker is None or worker.status in (Status.FAILED, Status.CANCELLED)


def newest_try_of(view: TaskView, instance: str) -> str:
    """Return the newest worker that does the work of one."""
    return view.tries.newest(view.tries.work_of(instance))


def _of_retry(worker: WorkerDir) -> AgentctlError | None:
    name, task = worker.instance, worker.task
    if not worker.has_ended:
        return Refused(f"{name} has not ended", hint=Next("cancel", name, "ends it"))
    config, spec, order = read_config(task), read_spec(worker.spec), read_order(worker)
    if config.agent is not None and (spec.parent is None or spec.parent_task is not None):
        ways = [Next("subtask", config.agent, "makes another sub-task", task=config.parent_task_id or "")]
        ways += [Next("resume", name, "continues this agent")] if order is not None else []
        return Refused(f"{name} is the one worker for which the sub-task {task.id} was made", hint=(*ways,))
    if order is not None and order.get("resume") is not None:
        return Refused(
            f"{name} continues an earlier run: without that run's session its prompt means little",
            hint=Next("resume", name, "continues it once more"),
        )
    folder, is_worktree = where_begun(worker, spec.cwd)
    if not FilePath(folder).is_dir():
        if is_worktree:
            return Refused(f"the folder from which the worktree of {name} was made is gone: {folder}")
        return Refused(f"the folder in which {name} worked is gone: {folder}", hint=_made_by_hand(folder))
    return None


def _made_by_hand(folder: str) -> str:
    return f"mkdir -p {shlex.quote(folder)} makes it again, empty"


def refusal_of_resume(worker: WorkerDir) -> AgentctlError | None:
    """Return why a worker may not be continued; None if `resume` takes it."""
    try:
        return _of_strangers(worker) or _of_resume(worker)
    except AgentctlError as error:
        return error


def _of_resume(worker: WorkerDir) -> AgentctlError | None:
    name, recorded = worker.instance, read_order(worker)
    anew = None if refusal_of_retry(worker) else Next("retry", name, "does the same work once more")
    if recorded is None:
        return Refused(f"{name} is a command: only agents can be continued", hint=anew)
    order = order_from(recorded)
    if "resume" not in driver_for(order).honours:
        return Refused(f"the driver {order.driver} cannot continue an ended agent", hint=anew)
    if not worker.has_ended:
        return Refused(f"{name} has not ended", hint=Next("send", name))
    if not session_of(worker) and has_spoken(worker):
        if read_known(worker.session).get("session") == "":
            return NotFound(f"{name} runs {order.driver}, which cannot continue sessions", hint=anew)
        return NotFound(f"{name} has left no session to continue", hint="spawn it again")
    folder = read_spec(worker.spec).cwd
    if not worker.worktree.exists() and not FilePath(folder).is_dir():  # A worktree can be made again.
        return Refused(f"the folder in which {name} worked is gone: {folder}", hint=_made_by_hand(folder))
    return None


def _of_strangers(worker: WorkerDir) -> AgentctlError | None:
    if is_of_task(worker):
        return None
    return Refused(
        f"the order of {worker.instance} was not written by a spawn in {worker.task.id}: it may be somebody else's",
        hint="spawn it again",
    )


def session_of(worker: WorkerDir) -> str:
    """Return the vendor's session of a run; empty where it has none yet, or its program cannot continue any."""
    return str(read_known(worker.session).get("session") or "")


def has_spoken(worker: WorkerDir) -> bool:
    """Return whether anything of the agent itself is in its activity: a word, a tool call, tokens."""
    for block in ActivityReader(worker.activity).blocks():
        for number, line in enumerate(block.splitlines()):
            row = read_line(line, number)
            if row is not None and row.kind in _OF_THE_MODEL and row.fields.get("name") != "user":
                return True
    return False
