"""Start workers: validate, put on disk, queue or take a slot, and wait for the shim's word that it runs."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agentctl.adapters import eventlog
from agentctl.adapters.clock import now_iso
from agentctl.adapters.config import root_of_tree
from agentctl.adapters.files import (
    create_whole,
    make_folder,
    read_json,
    read_quietly,
    storage_errors,
    sync_folder,
    to_json,
    write_whole,
)
from agentctl.adapters.locks import locked
from agentctl.adapters.roster import Row, update
from agentctl.adapters.taskdir import AgentDir, TaskDir
from agentctl.domain import events as ev
from agentctl.domain.graph import check_no_cycle
from agentctl.domain.limits import BadLimit, Limits, check_limit
from agentctl.domain.names import base_name, check_name
from agentctl.domain.states import Reason, Status
from agentctl.errors import AgentctlError, NotFound, Refused, UsageError
from agentctl.operations.configuring import read_config
from agentctl.operations.locating import Caller, caller, find_root, find_task, who
from agentctl.supervision import environment, failpoints
from agentctl.supervision.dispatch import Dispatched, answers, check_free, dispatch_locked, give_orders
from agentctl.supervision.endings import Ending, decide, publish
from agentctl.supervision.spec import WorkerSpec, read_spec
from agentctl.supervision.tickets import (
    HIGHEST,
    LOWEST,
    NO_ENVIRONMENT,
    add_ticket,
    make_ticket,
    next_age,
    read_queue,
    remove_ticket,
)

_COMMAND_SHOWN = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class SpawnRequest:
    """A worker to be started; times in seconds, None takes the task's limit."""

    argv: list[str]
    name: str | None = None
    cwd: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    timeout_seconds: float | None = None
    grace_seconds: float | None = None
    priority: int = 0
    after: list[str] = field(default_factory=list)
    after_any: bool = False
    retries: int = 0
    retry_delay_seconds: float = 1.0
    key: str | None = None
    keep_children: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Spawned:
    """What became of a request."""

    agent_instance: str
    status: str
    task_id: str
    pid: int | None = None
    #: The key was known: this is the worker that has it.
    reused: bool = False
    message: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return it as `spawn --json` prints it."""
        value = {
            "agentInstance": self.agent_instance,
            "status": self.status,
            "pid": self.pid,
            "taskId": self.task_id,
            "reused": self.reused,
        }
        return value | ({"message": self.message} if self.message else {})


@dataclass(slots=True)
class _Prepared:
    """A request whose folder is on disk."""

    request: SpawnRequest
    agent: AgentDir
    spec: WorkerSpec
    environ: dict[bytes, bytes]
    environment: str = NO_ENVIRONMENT


def task_for_spawn(explicit: str | None, *, root: str | None, force: bool) -> TaskDir:
    """Return the task that `find_task` finds; where none is chosen, make one."""
    from agentctl.operations.locating import TASK_VARIABLE, current_task
    from agentctl.operations.tasks import create_task

    if explicit or os.environ.get(TASK_VARIABLE):
        return find_task(explicit, root=root, force=force)
    found = find_root(root, create=True, force=force)
    current = current_task(found)
    if current is not None and found.task(current).exists:
        return found.task(current)
    return create_task(found, "Task")


def spawn_workers(task: TaskDir, requests: list[SpawnRequest], *, queue: bool) -> list[Spawned]:
    """Start or queue workers; returns once each runs, or waits in the queue, and all of it is on disk.

    Args:
        queue: Wait for a free slot instead of being refused.

    Raises:
        NoFreeSlot: Without `queue`, fewer slots are free than requests; nothing was started.
        UsageError, NotFound, Refused: A request that cannot be meant; nothing was started.
    """
    limits = read_config(task).limits
    parent = caller()
    depth = _depth(task, parent, limits)
    _check(task, requests)
    root = root_of_tree(task)
    reused: dict[int, Spawned] = {}
    prepared: list[_Prepared] = []
    try:
        for index, request in enumerate(requests):
            found = _prepare(task, request, limits, parent, depth)
            if isinstance(found, _Prepared):
                prepared.append(found)
            else:
                reused[index] = found
        if not prepared:
            return [reused[index] for index in sorted(reused)]
        must_queue = queue or any(item.spec.after for item in prepared)
        done = _admit(root, task, prepared, queue=must_queue)
    except BaseException:
        _take_back(task, prepared)
        raise
    fresh = iter(_outcomes(task, root, prepared, done))
    return [reused[index] if index in reused else next(fresh) for index in range(len(requests))]


# -- what may be started -------------------------------------------------------------------------------------------


def _depth(task: TaskDir, parent: Caller | None, limits: Limits) -> int:
    """Return the depth of a worker started from here, as the parent's own file tells it."""
    if parent is None or parent.task.id != task.id or not parent_is_known(parent):
        return 0
    agent = parent.task.agent(parent.instance)
    if agent.has_ended or agent.cancel.exists():
        raise Refused(f"{parent.instance} has ended or is being cancelled: it starts nothing new")
    depth = read_spec(agent.spec).depth + 1
    if depth > limits.max_depth:
        raise Refused(
            f"Maximum subagent depth exceeded: {parent.instance} is at depth {depth - 1}, maxDepth is {limits.max_depth}",
            hint=f"raise maxDepth in {task.task_file}",
        )
    return depth


def parent_is_known(parent: Caller) -> bool:
    """Tell whether the calling worker has a folder."""
    return parent.task.agent(parent.instance).spec.exists()


def _check(task: TaskDir, requests: list[SpawnRequest]) -> None:
    names = [request.name for request in requests if request.name is not None]
    for name in names:
        check_name(name, "the instance")
        if names.count(name) > 1 if len(names) < 1000 else False:
            raise UsageError(f"{name!r} stands twice in the batch")
    known = set(names)
    for request in requests:
        _check_numbers(request)
        for name in request.after:
            check_name(name, "--after")
            if name not in known and not task.agent(name).spec.exists():
                raise NotFound(f"no worker {name!r} in task {task.id} to start after", hint="agentctl list shows them")
    check_no_cycle({request.name: request.after for request in requests if request.name is not None})


def _check_numbers(request: SpawnRequest) -> None:
    try:
        if request.timeout_seconds is not None:
            check_limit("timeoutSeconds", request.timeout_seconds)
        if request.grace_seconds is not None:
            check_limit("graceSeconds", request.grace_seconds)
    except BadLimit as error:
        raise UsageError(str(error)) from error
    if not LOWEST <= request.priority <= HIGHEST:
        raise UsageError(f"the priority must be from {LOWEST} to {HIGHEST}, not {request.priority}")
    if not 0 <= request.retries <= 1000:
        raise UsageError(f"retries must be from 0 to 1000, not {request.retries}")
    if not 0 <= request.retry_delay_seconds <= 3600:
        raise UsageError(f"the retry delay must be from 0 to 3600 s, not {request.retry_delay_seconds:g}")


def _check_program(request: SpawnRequest, cwd: str, environ: Mapping[bytes, bytes]) -> None:
    """Refuse a missing program before the name is taken."""
    if not request.argv or not request.argv[0]:
        raise UsageError("there is no command to run", hint="agentctl spawn -- COMMAND ARGUMENTS...")
    if any("\0" in part for part in request.argv):
        raise UsageError("an argument holds a NUL byte")
    if not os.path.isdir(cwd):
        raise UsageError(f"the working folder {cwd} does not exist", hint="--cwd names another")
    program = request.argv[0]
    path = os.fsdecode(environ.get(b"PATH", os.fsencode(os.defpath)))
    place = os.path.join(cwd, program) if os.sep in program else program
    if shutil.which(place, path=path) is None:
        where = "or it is not executable" if os.sep in program else "in PATH"
        raise UsageError(f"there is no program {program!r} {where}", hint="is it installed? a path must be executable")


# -- putting it on disk ----------------------------------------------------------------------------------------------


def _prepare(
    task: TaskDir, request: SpawnRequest, limits: Limits, parent: Caller | None, depth: int
) -> _Prepared | Spawned:
    cwd = _folder(request.cwd)
    environ = environment.for_worker(os.environb, request.env)
    _make_agentctl_reachable(environ)
    _check_program(request, cwd, environ)
    if request.key is not None:
        known = _by_key(task, request.key)
        if known is not None:
            return known
    agent = _take_name(task, request)
    try:
        failpoints.reached("spawn.after-mkdir")
        if request.key is not None and not create_whole(_key_path(task, request.key), to_json({"agentInstance": agent.instance})):
            _remove_folder(agent)
            return _by_key(task, request.key) or _spawned_of(agent)
        spec = WorkerSpec(
            instance=agent.instance, agent="command", argv=list(request.argv), cwd=cwd,
            env_names=sorted(os.fsdecode(name) for name in environ), umask=_umask(),
            timeout_s=limits.timeout_seconds if request.timeout_seconds is None else request.timeout_seconds,
            grace_s=limits.grace_seconds if request.grace_seconds is None else request.grace_seconds,
            max_output_bytes=limits.max_output_bytes, priority=request.priority, after=list(request.after),
            after_any=request.after_any, retries=request.retries, retry_delay_s=request.retry_delay_seconds,
            keep_children=request.keep_children, key=request.key, depth=depth,
            parent=parent.instance if parent and depth else None,
        )  # fmt: skip
        write_whole(agent.spec, to_json(spec.to_json()))
    except BaseException:
        _remove_folder(agent)
        raise
    failpoints.reached("spawn.after-spec")
    return _Prepared(request, agent, spec, environ)


def _folder(cwd: str | None) -> str:
    try:
        return os.path.abspath(cwd) if cwd else os.getcwd()
    except FileNotFoundError:
        raise UsageError("the working folder was removed", hint="cd to one that exists, or give --cwd") from None


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _make_agentctl_reachable(environ: dict[bytes, bytes]) -> None:
    """Put the folder of this program at the end of PATH where `agentctl` would not be found: workers call it."""
    path = os.fsdecode(environ.get(b"PATH", os.fsencode(os.defpath)))
    folder = os.path.dirname(sys.executable)
    if shutil.which("agentctl", path=path) is None and os.path.exists(os.path.join(folder, "agentctl")):
        environ[b"PATH"] = os.fsencode(f"{path}{os.pathsep}{folder}")


def _take_name(task: TaskDir, request: SpawnRequest) -> AgentDir:
    """Take an instance's name by mkdir: of two that race, each gets its own or is refused."""
    if request.name is not None:
        agent = task.agent(request.name)
        if not _make(agent):
            raise Refused(f"the instance {request.name!r} exists already in task {task.id}", hint="choose another --name")
        return agent
    base = base_name(request.argv[0])
    number = _first_free(task, base)
    while not _make(agent := task.agent(f"{base}-{number}")):
        number += 1
    return agent


def _make(agent: AgentDir) -> bool:
    with storage_errors(agent.path, "make the folder"):
        try:
            agent.path.mkdir()
        except FileExistsError:
            return False
        except FileNotFoundError:
            make_folder(agent.path.parent)
            return _make(agent)
    return True


def _first_free(task: TaskDir, base: str) -> int:
    """Return a number behind those in use, in a few looks: the 5,000th name costs what the 5th did."""

    def is_taken(number: int) -> bool:
        return task.agent(f"{base}-{number}").path.exists()

    high = 1
    while is_taken(high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_taken(middle) else (low, middle)
    return high


def _key_path(task: TaskDir, key: str) -> Any:
    import hashlib

    make_folder(task.keys)
    return task.keys / hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()[:32]


def _by_key(task: TaskDir, key: str) -> Spawned | None:
    """Return the worker that a key has started; None where there is none, or it was refused and taken back."""
    known = read_json(_key_path(task, key))
    agent = task.agent(str(known["agentInstance"])) if known else None
    if agent is None or not agent.path.exists():
        if known:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(_key_path(task, key))
        return None
    return _spawned_of(agent)


def _spawned_of(agent: AgentDir) -> Spawned:
    decision, worker = read_quietly(agent.exit), read_quietly(agent.worker)
    status = decision.get("status") or (Status.RUNNING if worker else Status.QUEUED)
    return Spawned(
        agent_instance=agent.instance, status=str(status), task_id=agent.task.id, pid=worker.get("pid"), reused=True
    )


# -- queue and start -------------------------------------------------------------------------------------------------


def _admit(root: TaskDir, task: TaskDir, prepared: list[_Prepared], *, queue: bool) -> Dispatched:
    """Put tickets and events on disk, and start what can start, under one lock."""
    blobs = {(task.id, item.agent.instance): environment.pack(item.environ) for item in prepared}
    if queue:
        _keep_environments(task, prepared, blobs)
    with locked(root.queue_lock):
        if not queue:
            check_free(root, len(prepared))
        age = next_age(read_queue(root))
        for item in prepared:
            ticket = make_ticket(task.id, item.agent.instance, item.spec.priority, age, item.environment, bool(item.spec.after))
            add_ticket(root, ticket, item.spec.after, item.spec.after_any)
            age += 1
        sync_folder(root.queue)
        sync_folder(task.agents)
        failpoints.reached("spawn.after-ticket")
        eventlog.append(task.events, [_queued_event(task, item) for item in prepared])
        failpoints.reached("spawn.after-queued")
        done = dispatch_locked(root, given=blobs)
    give_orders(root, done, blobs)
    return done


def _keep_environments(task: TaskDir, prepared: list[_Prepared], blobs: Mapping[tuple[str, str], bytes]) -> None:
    tokens: dict[bytes, str] = {}
    for item in prepared:
        blob = blobs[task.id, item.agent.instance]
        if blob not in tokens:
            tokens[blob] = environment.put(blob)
        item.environment = tokens[blob]


def _queued_event(task: TaskDir, item: _Prepared) -> ev.Event:
    spec = item.spec
    payload: dict[str, Any] = {"agent": spec.agent, "command": " ".join(spec.argv)[:_COMMAND_SHOWN]}
    for key, value in (("parent", spec.parent), ("depth", spec.depth), ("after", spec.after)):
        if value:
            payload[key] = value
    return ev.make_event(now_iso(), ev.QUEUED, task.id, who(), payload, spec.instance)


def _take_back(task: TaskDir, prepared: list[_Prepared]) -> None:
    """Remove the folders of what was refused as a whole; nobody has been told of them.

    One whose ticket is on disk is left: the worker is in the queue, whatever interrupted the rest.
    """
    queued = {ticket.instance for ticket in read_queue(root_of_tree(task)) if ticket.task_id == task.id}
    for item in prepared:
        if item.agent.instance not in queued and not item.agent.shim.exists():
            _remove_folder(item.agent)


def _remove_folder(agent: AgentDir) -> None:
    with contextlib.suppress(OSError):
        shutil.rmtree(agent.path)


def _outcomes(task: TaskDir, root: TaskDir, prepared: list[_Prepared], done: Dispatched) -> list[Spawned]:
    said = answers(done)
    rows, found = {}, []
    for item in prepared:
        instance = item.agent.instance
        spawned = _outcome(root, item, said[instance]) if instance in said else _spawned(item, Status.QUEUED)
        found.append(spawned)
        rows[instance] = Row(item.spec.agent, *_row_of(item.agent, spawned))
    with contextlib.suppress(AgentctlError, OSError):  # The roster is a cache; the log has it all.
        update(task, rows)
    return found


def _row_of(agent: AgentDir, spawned: Spawned) -> tuple[Status, str | None]:
    """Return what the roster says of a worker that may have ended meanwhile."""
    decision = read_quietly(agent.exit)
    return Status(decision.get("status", spawned.status)), decision.get("reason")


def _spawned(item: _Prepared, status: str, pid: int | None = None, message: str | None = None) -> Spawned:
    return Spawned(
        agent_instance=item.agent.instance, status=status, task_id=item.agent.task.id, pid=pid, message=message
    )


def _outcome(root: TaskDir, item: _Prepared, answer: Mapping[str, Any]) -> Spawned:
    if not answer:
        return _abandoned(root, item)
    status = answer.get("status")
    if status == "ended" or status is None:
        decision = read_quietly(item.agent.exit)
        return _spawned(item, str(decision.get("status", Status.QUEUED)), message=str(answer.get("error") or "") or None)
    if status == Status.FAILED and answer.get("reason") == Reason.NOT_STARTED:
        raise Refused(
            f"{item.agent.instance} could not be started: {answer.get('message')}",
            hint=f"its name is taken; agentctl show {item.agent.instance}",
        )
    return _spawned(item, str(status), answer.get("pid"), answer.get("error") or answer.get("message"))


def _abandoned(root: TaskDir, item: _Prepared) -> Spawned:
    """Tell the truth of a shim that died before it answered.

    With its ticket still there nothing has run, and one with its environment in memory is started by the next
    dispatch. One without could only wait for ever: it is ended.
    """
    if item.environment != NO_ENVIRONMENT or not _withdraw(root, item):
        return _spawned(item, str(_row_of(item.agent, _spawned(item, Status.RUNNING))[0]))
    raise Refused(f"the shim of {item.agent.instance} died before the worker was started", hint="try again; agentctl doctor")


def _withdraw(root: TaskDir, item: _Prepared) -> bool:
    with locked(root.queue_lock):
        mine = [ticket for ticket in read_queue(root) if ticket.instance == item.agent.instance]
        if not mine:
            return False
        message = "its shim died before the worker was started"
        decide(item.agent, Ending(status=Status.FAILED, reason=Reason.NOT_STARTED, message=message))
        remove_ticket(root, mine[0])
    publish(item.agent)
    return True


def resume_queue(task: TaskDir) -> list[str]:
    """Give this process's environment to queued workers whose own is gone, and start what can start."""
    from agentctl.supervision.dispatch import dispatch

    root, blob = root_of_tree(task), environment.pack(environment.for_worker(os.environb, {}))
    folder, token, resumed = environment.store_folder(), "", []
    with locked(root.queue_lock):
        for ticket in read_queue(root):
            if (folder / ticket.environment).exists():
                continue
            token = token or environment.put(blob)
            os.rename(root.queue / ticket, root.queue / ticket.with_environment(token))
            resumed.append(ticket.instance)
        sync_folder(root.queue)
    dispatch(root)
    return resumed


def read_batch(lines: Iterable[str], source: str) -> list[SpawnRequest]:
    """Return the requests in JSON lines with the options' names; empty lines and those that begin with # are skipped.

    Raises:
        UsageError: A line that is no request; it names source and line.
    """
    from agentctl.operations.batch import parse_request

    found = []
    for number, line in enumerate(lines, 1):
        if line.strip() and not line.lstrip().startswith("#"):
            found.append(parse_request(line, f"{source}:{number}"))
    if not found:
        raise UsageError(f"{source} holds no worker", hint='a line each: {"name": "a1", "argv": ["true"]}')
    return found
