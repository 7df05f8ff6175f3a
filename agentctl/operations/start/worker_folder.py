"""Makes a worker's folder: takes its name by mkdir and writes its spec, before any event mentions it."""

from __future__ import annotations

import _thread
import contextlib
import os
import shutil
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from agentctl.adapters.files import (
    make_folder,
    storage_errors,
    to_json,
    write_whole,
)
from agentctl.adapters.taskdir import TaskDir, WorkerDir
from agentctl.domain.names import base_name, slug
from agentctl.domain.tree.limits import Limits
from agentctl.errors import Next, Refused, UsageError
from agentctl.operations.start.batch_findings import Surroundings
from agentctl.operations.start.options import OF_WORKERS
from agentctl.operations.start.placing import placement_for
from agentctl.operations.start.prepared import Prepared, Site
from agentctl.operations.start.request_keys import take_key
from agentctl.operations.start.requests import NotThere, Spawned, SpawnRequest, check_program
from agentctl.operations.where.calling import Caller
from agentctl.operations.where.lineage import Standing
from agentctl.supervision import failpoints
from agentctl.supervision.worker.kinship import task_name
from agentctl.supervision.worker.spec import WorkerSpec, digest_of

if TYPE_CHECKING:
    from agentctl.operations.start.agent_order import Ordered


def prepare(
    task: TaskDir, request: SpawnRequest, limits: Limits, standing: Standing, around: Surroundings
) -> Prepared | Spawned:
    """Take a worker's name, and put on disk what it is to do.

    Returns:
        The worker, which is not in the log yet; or the one that has the request's key already.
    """
    parent = standing.parent
    keeps = request.work is not None or parent is not None
    cwd, environ = around.folder(request, keeps=keeps), around.environ(request)
    ordered = _order(task, request, environ)
    placement = placement_for(request, ordered, parent, around)
    argv = ordered.argv if ordered else list(request.argv)
    lacks = _still_lacks(task, request, partial(around.check_program, argv, cwd, environ))
    if request.reuse:
        request = _keyed(task, request, ordered, cwd)
    take = partial(_take_name, task, request, around)
    is_keyed = request.key is not None or request.sole is not None
    worker = take_key(task, request, take, remove_folder) if is_keyed else take()
    if isinstance(worker, Spawned):
        return worker
    try:
        failpoints.reached("spawn.after-mkdir")
        site = _isolate(worker, request, ordered, Site(cwd, environ, cwd), argv, parent)
        spec = WorkerSpec(
            instance=worker.instance, agent=ordered.order.agent if ordered else "command", argv=argv, cwd=site.cwd,
            env_names=around.names_in(site.environ), umask=_umask(),
            timeout_s=_time_limit(request, ordered, limits),
            grace_s=limits.grace_seconds if request.grace_seconds is None else request.grace_seconds,
            max_output_bytes=limits.max_output_bytes, depth=standing.depth, **_kept(request),
            parent=parent.instance if parent else None,
            parent_task=task_name(parent.task, task) if parent else None,
            order=ordered.of(worker, site.cwd).to_json() if ordered else None,
            agent_id=_agent_id(request, worker), stall_s=limits.stall_seconds,
            artifacts=list(request.artifacts) or None,
            delegation=request.delegation._asdict() if request.delegation else None,
            retry_of=request.retry_of, continues=request.carries_on, sole=request.sole, by_tool=request.by_tool or None,
            origin=around.origin, tree_limits=dict(standing.held), placement=placement,
        )  # fmt: skip
        data = to_json(spec.to_json())
        write_whole(worker.spec, data, durable=False)
        failpoints.reached("spawn.after-spec")
        warnings = (*(ordered.warnings if ordered else ()), *site.warnings, *lacks)
        return Prepared(request, worker, spec, digest_of(data), site._replace(warnings=warnings))
    except BaseException:
        remove_folder(worker)
        raise


def _still_lacks(task: TaskDir, request: SpawnRequest, check: Callable[[], None]) -> tuple[str, ...]:
    """Return in words what a command still lacks that waits for other workers: these may make it.

    Raises:
        NotThere: It waits for nobody, or is an agent, whose folder is looked at before it is in the queue.
    """
    try:
        check()
    except NotThere as error:
        waits = any(not task.worker(name).has_ended for name in request.after)
        if not waits or request.work is not None:
            raise
        return (f"so far, {error.message}; that is looked at again when it starts",)
    return ()


def _isolate(
    worker: WorkerDir, request: SpawnRequest, ordered: Ordered | None, here: Site, argv: Sequence[str],
    parent: Caller | None,
) -> Site:  # fmt: skip
    """Return where a worker is to run: its own worktree, that of the run that it continues, or `here`."""
    if not request.continues and not request.worktree and not (ordered and ordered.wants_worktree):
        return here
    from agentctl.operations.worktree.making import (
        adopt_worktree,
        find_origin,
        make_worktree,
        refuse_repository_within,
    )

    if request.continues:
        record = adopt_worktree(worker, here.cwd)
        if record is None:
            return here
    else:
        origin = find_origin(here.cwd)
        if parent is not None:
            from agentctl.operations.start.inherited import orders_above

            refuse_repository_within(orders_above(parent), origin)
        record = make_worktree(worker, origin)
    failpoints.reached("spawn.after-worktree")
    cwd = record["cwd"]
    try:
        lacks = _still_lacks(worker.task, request, partial(check_program, argv, cwd, here.environ))
    except UsageError as error:  # A relative path to a file that is not committed.
        raise Refused(f"in the worktree {error.message}", hint="commit it first") from error
    warnings = (*record["warnings"], *lacks)
    return Site(cwd, here.environ, here.cwd, warnings, {"path": record["path"], "branch": record["branch"]})


def _order(task: TaskDir, request: SpawnRequest, environ: dict[bytes, bytes]) -> Ordered | None:
    if request.work is None:
        return None
    from agentctl.operations.start.agent_order import make_order  # YAML and the definitions: only for agents.

    return make_order(task, request.work, environ)


def _stem(request: SpawnRequest) -> str:
    if request.work is None:
        return base_name(request.argv[0])
    own = request.work.agent_id or request.work.agent
    return slug(request.label, fallback=base_name(own)) if request.label else base_name(own)


#: The umask can only be read by setting it: if two threads did so at once, one would read what the other set.
_UMASK_LOCK = _thread.allocate_lock()


def _keyed(task: TaskDir, request: SpawnRequest, ordered: Ordered | None, cwd: str) -> SpawnRequest:
    """Return a request with a key that is the same for the same work over the same files."""
    from agentctl.operations.start.reuse import work_key  # It runs git.

    return request._replace(key=work_key(task.root, request, ordered.order if ordered else None, cwd))


def _kept(request: SpawnRequest) -> dict[str, Any]:
    """Return the fields of a spec that keep options of the request unchanged."""
    return {option.kept: getattr(request, option.name) for option in OF_WORKERS if option.kept is not None}


def _umask() -> int:
    with _UMASK_LOCK:
        mask = os.umask(0o077)
        os.umask(mask)
    return mask


def _take_name(task: TaskDir, request: SpawnRequest, around: Surroundings) -> WorkerDir:
    """Take an instance's name by mkdir: if two race, each gets a name of its own or is refused."""
    if request.name is not None:
        worker = task.worker(request.name)
        if around.is_subtask(worker.instance):
            raise Refused(f"{request.name!r} is a sub-task's id already", hint=Next("another name"))
        if not _make(worker):
            raise Refused(f"the instance {request.name!r} exists already in task {task.id}", hint=Next("another name"))
        return worker
    base = _stem(request)
    while around.is_subtask(name := f"{base}-{around.first_free(base)}") or not _make(task.worker(name)):
        pass  # Another spawn has taken it.
    return task.worker(name)


def _time_limit(request: SpawnRequest, ordered: Ordered | None, limits: Limits) -> float:
    if request.timeout_seconds is not None:
        return request.timeout_seconds
    own = ordered.timeout_seconds if ordered else None
    return limits.timeout_seconds if own is None else own


def _agent_id(request: SpawnRequest, worker: WorkerDir) -> str | None:
    """Return the name of the chain of runs that an agent's worker begins or continues."""
    return (request.work.agent_id or worker.instance) if request.work else None


def _make(worker: WorkerDir) -> bool:
    with storage_errors(worker.path, "make the folder"):
        try:
            worker.path.mkdir()
        except FileExistsError:
            return False
        except FileNotFoundError:
            make_folder(worker.path.parent)
            return _make(worker)
    return True


def remove_folder(worker: WorkerDir) -> None:
    """Remove the folder and the worktree of a worker that was never accepted."""
    if worker.worktree.exists():
        from agentctl.operations.worktree.making import take_back

        take_back(worker)
    with contextlib.suppress(OSError):
        shutil.rmtree(worker.path)
