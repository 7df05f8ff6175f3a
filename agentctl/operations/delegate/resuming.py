"""Continues an ended agent from its vendor's session, as a new worker of the same agent id."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agentctl.adapters.files import read_known
from agentctl.adapters.git import GitError
from agentctl.adapters.paths import FilePath
from agentctl.adapters.taskdir import TaskDir, WorkerDir
from agentctl.domain.same_request import digests_of
from agentctl.domain.states import Reason
from agentctl.domain.worker.projection import WorkerView
from agentctl.drivers.order import order_from
from agentctl.errors import AgentctlError, Next, Refused
from agentctl.operations.show.current_state import read_task
from agentctl.operations.show.further_runs import has_spoken, refusal_of_resume, refusal_of_retry, session_of
from agentctl.operations.show.sessions_by_hand import held_by
from agentctl.operations.start.continuation import continued
from agentctl.operations.start.placing import asked_again
from agentctl.operations.start.request_keys import started_once, work_named
from agentctl.operations.start.requests import AgentWork, Spawned, SpawnRequest
from agentctl.operations.start.spawning import spawn_workers
from agentctl.operations.talk.messaging import unread
from agentctl.operations.where.calling import caller
from agentctl.operations.where.locating import find_worker
from agentctl.operations.where.ownership import check_own
from agentctl.operations.worktree.remaking import make_again
from agentctl.supervision.worker.spec import read_order

#: agent id -> its runs, oldest first
Chains = Mapping[str, list[str]]
_CRASHES = frozenset({Reason.LOST, Reason.SIGNAL})


def resume_worker(  # noqa: PLR0913 - keyword-only, each known to a caller
    task: TaskDir,
    instance: str,
    prompt: str | None,
    *,
    queue: bool | None,
    name: str | None = None,
    by_tool: bool = False,
    key: str | None = None,
    among: Sequence[str] = (),
) -> Spawned:
    """Continue an ended agent: its newest run, whichever run (or agent id) was named.

    Args:
        key: The same key with the same prompt continues it once.
        among: All that the same request is about, if it is about several.

    Raises:
        Conflict: The key has done something else.
        NotFound: There is no such worker or agent id.
        Refused: It is not an agent, it has not ended, or its program cannot continue sessions.
    """
    check_own(task)
    said = said_of_resume(among or work_named(task, instance), prompt) if key else {}

    def start() -> Spawned:
        worker = newest_run(task, instance)
        request = _request(worker, prompt, name)
        request = request._replace(by_tool=by_tool or request.by_tool, key=key, said=said or None)
        spawned = spawn_workers(task, [request], queue=queue)[0]
        if spawned.reused:  # If two continue one session at the same time, only one succeeds.
            other = spawned.agent_instance
            raise Refused(f"{worker.instance} has been continued already, as {other}", hint=Next("send", other))
        return spawned

    return started_once(task, key, said, start)


def said_of_resume(works: str | Sequence[str], prompt: str | None) -> dict[str, str]:
    """Return what whoever continues an agent has said, as the record of a key has it.

    Args:
        works: The work of the worker that was named, or all that the request is about.
    """
    return digests_of("resume", {"worker": works, "prompt": prompt})


def lost_agents(task: TaskDir) -> Iterator[WorkerView]:
    """Yield the agents that a crash or a reboot ended, that nobody has continued yet, and that can be continued."""
    newest = {chain[-1] for chain in chains_of(task).values()}
    for worker in read_task(task)[0].workers.values():
        worker_dir = task.worker(worker.instance)
        is_lost = worker.reason in _CRASHES and worker.driver is not None and worker.instance in newest
        if is_lost and (session_of(worker_dir) or not has_spoken(worker_dir)):
            yield worker


def resume_lost(task: TaskDir, lost: Sequence[WorkerView]) -> tuple[list[Spawned], list[AgentctlError]]:
    """Queue lost agents again; each says which one it continues, and since when that was lost.

    Returns them, and why others cannot be continued.
    """
    check_own(task)
    requests: list[SpawnRequest] = []
    messages: list[str] = []
    problems: list[AgentctlError] = []
    for one in lost:
        try:
            requests.append(_request(task.worker(one.instance), None, None))
            messages.append(f"continues {one.instance}, lost since {one.ended_at}")
        except Refused as error:
            problems.append(error)
    spawned = spawn_workers(task, requests, queue=True) if requests else []
    continued = (one._replace(message=one.message or what) for one, what in zip(spawned, messages, strict=True))
    return [one for one in continued if not one.reused], problems


def newest_run(task: TaskDir, name: str) -> WorkerDir:
    """Return the newest run of the chain that an instance or an agent id names."""
    return newest_of(task, chains_of(task), name)


def newest_of(task: TaskDir, chains: Chains, name: str) -> WorkerDir:
    """Return what `newest_run` returns, from chains that were read before: to look up many runs, read them once."""
    if name in chains:
        return task.worker(chains[name][-1])
    worker = find_worker(task, name)
    chain = chains.get(str(read_known(worker.spec).get("agentId")), [name])
    return task.worker(chain[-1])


def chains_of(task: TaskDir) -> Chains:
    """Return the runs of each agent id of a task, oldest first."""
    found: dict[str, list[str]] = {}
    for worker in read_task(task)[0].workers.values():
        if worker.agent_id is not None:
            found.setdefault(worker.agent_id, []).append(worker.instance)
    return found


def _request(worker: WorkerDir, prompt: str | None, name: str | None) -> SpawnRequest:
    """Return the request that continues a run: the same order, the vendor's session, another prompt."""
    refusal = refusal_of_resume(worker)
    if refusal is not None:
        raise refusal
    if (held := held_by(worker)) is not None:
        raise Refused(f"{worker.instance} cannot be continued now: {held.said}", hint=held.way)
    spec, session, recorded = read_known(worker.spec), session_of(worker), read_order(worker)
    assert recorded is not None, "only agents are continued"
    cwd = str(spec.get("cwd"))
    _see_to_folder(worker, cwd)
    order = order_from(recorded)
    order = continued(worker, order, session, [*unread(worker), *([prompt] if prompt else [])])
    work = AgentWork(prompt=order.prompt, agent=order.agent, order=order.to_json(), agent_id=str(spec.get("agentId")))
    fields: dict[str, Any] = {"timeout_seconds": spec.get("timeoutSeconds"), "grace_seconds": spec.get("graceSeconds")}
    fields |= {"max_park_seconds": spec.get("maxParkSeconds"), "sole": f"resume:{worker.instance}"}
    fields |= {"retries": int(spec.get("retries", 0)), "by_tool": spec.get("byTool") is True}
    fields |= {"carries_on": worker.instance}
    return SpawnRequest(work=work, name=name, cwd=cwd, **fields, **asked_again(spec.get("placement")))


def _see_to_folder(worker: WorkerDir, cwd: str) -> None:
    """Have the worktree of an agent made again if it is gone; for an agent that asks, nothing is run outside of it."""
    if FilePath(cwd).is_dir():
        return
    if caller() is not None:
        raise Refused(
            f"the worktree of {worker.instance} is gone",
            hint=Next("a person resumes", worker.instance),
        )
    try:
        make_again(worker)
    except GitError as error:
        again = None if refusal_of_retry(worker) else Next("retry", worker.instance, "begins anew in a new one")
        raise Refused(
            f"the worktree of {worker.instance} is gone and cannot be made again: {error.message}",
            hint=error.steps or again,
        ) from error
    if not FilePath(cwd).is_dir():
        raise Refused(f"{cwd} is not in the worktree", hint=f"mkdir -p {shlex.quote(cwd)} makes it again, empty")
