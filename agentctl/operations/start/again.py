"""Starts the work of an ended worker once more, as a new worker that knows nothing of the first one.

It is a new start in every respect: the agent's definition is looked up again and has to be trusted, its rules and those
of the task are today's, its program is found again, and the caller's environment and restrictions count. What the old
worker was restricted to beyond that, it stays restricted to.
"""

from __future__ import annotations

from collections.abc import Sequence

from agentctl.adapters.taskdir import TaskDir, WorkerDir
from agentctl.domain.agent.agentspec import AgentSpec
from agentctl.domain.names import first_free
from agentctl.drivers.order import Order, order_from
from agentctl.errors import Refused
from agentctl.operations.show.current_state import read_task
from agentctl.operations.show.further_runs import refusal_of_retry
from agentctl.operations.start.answer_schema import ask_for
from agentctl.operations.start.placing import asked_again
from agentctl.operations.start.requests import AgentWork, Spawned, SpawnRequest
from agentctl.operations.start.spawning import spawn_workers
from agentctl.operations.trust.definitions import find_agent_spec
from agentctl.operations.where.locating import find_worker
from agentctl.operations.where.ownership import check_own
from agentctl.operations.worktree.remaking import where_begun
from agentctl.supervision.worker.spec import WorkerSpec, read_spec

#: It leaves room for a number behind it.
_LONGEST_BASE = 56


def retry_worker(task: TaskDir, instance: str, *, queue: bool, name: str | None = None) -> Spawned:
    """Start the work of an ended worker once more, in its folder, without the workers that it waited for.

    Args:
        queue: Wait for a free slot instead of being refused.
        name: The new worker's; by default the old one's with a number: `build-2`.

    Raises:
        NotFound: There is no such worker.
        Refused: It has not ended, continues another, or is what its sub-task was made for; or a new start is refused.
    """
    check_own(task)
    worker = find_worker(task, instance)
    read_task(task)  # A worker that was lost gets its end here.
    spec = _spec_of(worker)
    request = _request(worker, spec)._replace(name=name or _next_name(task, instance))
    return spawn_workers(task, [request], queue=queue)[0]


def start_anew(task: TaskDir, instance: str, prompt: str, *, queue: bool) -> Spawned:
    """Start an ended agent once more with another prompt: a new run of its agent id that knows nothing of the others.

    For an agent whose program cannot continue a session. Everything else is as for `retry_worker`.

    Raises:
        Refused: It is a command, or not an agent that may be started once more.
    """
    check_own(task)
    worker = find_worker(task, instance)
    read_task(task)
    spec = _spec_of(worker)
    request = _request(worker, spec)
    if request.work is None:
        raise Refused(f"{instance} is a command: only agents take prompts", hint=f"agentctl retry {instance}")
    work = request.work._replace(prompt=prompt, agent_id=spec.agent_id)
    return spawn_workers(task, [request._replace(work=work)], queue=queue)[0]


def _spec_of(worker: WorkerDir) -> WorkerSpec:
    """Return the spec of a worker whose work may be started again."""
    refusal = refusal_of_retry(worker)
    if refusal is not None:
        raise refusal
    return read_spec(worker.spec)


def _request(worker: WorkerDir, spec: WorkerSpec) -> SpawnRequest:
    """Return the request for the same work; `key`, `after`, and whoever started the old worker are left out."""
    folder, worktree = where_begun(worker, spec.cwd)
    work = None if spec.order is None else _work(worker, order_from(spec.order))
    return SpawnRequest(
        argv=() if work else spec.argv, work=work, cwd=folder, worktree=worktree,
        timeout_seconds=spec.timeout_s, grace_seconds=spec.grace_s, priority=spec.priority, retries=spec.retries,
        retry_delay_seconds=spec.retry_delay_s, max_park_seconds=spec.max_park_s, keep_children=spec.keep_children,
        artifacts=spec.artifacts or (), **asked_again(spec.placement),
    )  # fmt: skip


def _work(worker: WorkerDir, order: Order) -> AgentWork:
    task, schema = worker.task, order.output_schema
    now = find_agent_spec(task.root, order.agent)
    return AgentWork(
        prompt=order.prompt.removesuffix(f"\n\n{ask_for(schema)}") if schema else order.prompt,
        agent=order.agent, driver=order.driver, model=order.model, effort=order.effort, max_turns=order.max_turns,
        max_budget_usd=order.max_budget_usd, keep=order.keep, output_schema=schema,
        permissions=order.given_rules or None, denied_above=order.denied_above,
        spec=_no_freer(now, order),
    )  # fmt: skip


def _no_freer(now: AgentSpec, order: Order) -> AgentSpec:
    """Return a definition with the restrictions that the old worker had, where they are tighter."""
    tools: Sequence[str] | None = order.tools
    if tools is None or now.tools is None:
        tools = now.tools if tools is None else tools
    else:
        tools = [tool for tool in tools if tool in now.tools]
    disallowed = [*now.disallowed_tools, *(tool for tool in order.disallowed_tools if tool not in now.disallowed_tools)]
    return now._replace(
        read_only=now.read_only or order.read_only, tools=None if tools is None else list(tools),
        disallowed_tools=disallowed,
    )  # fmt: skip


def _next_name(task: TaskDir, instance: str) -> str:
    """Return a free name: `build-2` for `build`, and for `build-2`, where that is `build` once more, `build-3`."""
    stem, mark, number = instance.rpartition("-")
    is_again = bool(mark) and number.isdecimal() and task.worker(stem).path.exists()
    base = (stem if is_again else instance)[:_LONGEST_BASE]
    return f"{base}-{1 + first_free(lambda number: _is_taken(task, f'{base}-{1 + number}'))}"


def _is_taken(task: TaskDir, name: str) -> bool:
    return task.worker(name).path.exists() or task.sibling(name).exists
