"""Starts works once more: each as a new worker that knows nothing of the first one, and belongs to its work.

It is a new start in every respect: the agent's definition is looked up again and has to be trusted, its rules and those
of the task are today's, its program is found again, and the caller's environment and restrictions count. What the old
worker was restricted to beyond that, it stays restricted to.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from agentctl.adapters.locks import locked
from agentctl.adapters.taskdir import TaskDir, WorkerDir
from agentctl.domain.agent.agentspec import AgentSpec
from agentctl.domain.names import first_free
from agentctl.domain.same_request import digests_of
from agentctl.domain.worker.projection import TaskView
from agentctl.drivers.order import Order, order_from
from agentctl.errors import AgentctlError, Next, Refused, UsageError
from agentctl.lean import NamedTuple
from agentctl.operations.show.current_state import read_task
from agentctl.operations.show.further_runs import refusal_by_itself, unmet_dependency
from agentctl.operations.start.answer_schema import ask_for
from agentctl.operations.start.placing import asked_again
from agentctl.operations.start.request_keys import each_keyed, started_by_key
from agentctl.operations.start.requests import AgentWork, Spawned, SpawnRequest
from agentctl.operations.start.spawning import spawn_workers
from agentctl.operations.trust.definitions import find_agent_spec
from agentctl.operations.where.locating import find_worker
from agentctl.operations.where.ownership import check_own
from agentctl.operations.worktree.remaking import where_begun
from agentctl.supervision.worker.spec import WorkerSpec, read_spec

#: It leaves room for a number behind it.
_LONGEST_BASE = 56


class Retried(NamedTuple):
    """What became of works that were to be tried again."""

    spawned: list[Spawned]
    #: worker -> why it was left out.
    left_out: Mapping[str, AgentctlError]


def retry_workers(
    task: TaskDir,
    named: Sequence[str],
    *,
    queue: bool | None,
    name: str | None = None,
    as_far_as_possible: bool = False,
    key: str | None = None,
    among: Sequence[str] = (),
) -> Retried:
    """Start the work of ended workers once more, each in its folder.

    It is one decision about all of them: whoever calls this meanwhile finds what was started, and starts none twice.
    Each waits for the newest tries of those that it waited for, which may be among the named ones.

    Args:
        queue: Wait for a free slot instead of being refused; None: as the task says, of several workers always.
        name: The new worker's, of one; by default the work's with a number: `build-2`.
        as_far_as_possible: Leave out those that are refused, and those that were tried again meanwhile, instead of
            starting none.
        key: The same key with the same workers tries each of them again once.
        among: All that the same request names, where some of them are not there.

    Raises:
        Conflict: The key has done something else.
        NotFound: There is no such worker.
        Refused: One has not ended, or another try of its work has not; it continues another, is what its sub-task was
            made for, or waits for one that has failed and is not named; or a new start is refused. Nothing was started.
    """
    check_own(task)
    if name is not None and len(named) > 1:
        raise UsageError("a name is for one worker", hint="leave it out, or retry them one by one")
    with locked(task.tries_lock):
        view = read_task(task)[0]  # A worker that was lost gets its end here.
        works = {find_worker(task, one).instance: view.tries.work_of(one) for one in named}
        asked = sorted({*works.values(), *map(view.tries.work_of, among)})
        said = digests_of("retry", {"worker": asked})
        keys = each_keyed(task, key, asked, said)
        known = {one: found for one in works if (found := started_by_key(task, keys[works[one]], said)) is not None}
        chosen = {work: one for one, work in works.items() if one not in known}
        if as_far_as_possible:
            chosen = {work: one for work, one in chosen.items() if view.tries.newest(work) == one}
        plan = _Plan(task, view, chosen)
        if not as_far_as_possible and plan.left_out:
            raise next(iter(plan.left_out.values()))
        requests = [
            request._replace(key=keys[works[str(request.retry_of)]], said=said if key else None)
            for request in plan.requests(name)
        ]
        queue = True if queue is None and len(named) > 1 else queue
        made = spawn_workers(task, requests, queue=queue) if requests else []
        fresh = dict(zip((str(request.retry_of) for request in requests), made, strict=True))
        return Retried([{**known, **fresh}[one] for one in named if one in {*known, *fresh}], plan.left_out)


class _Plan:
    """Which works are tried again, and which are not.

    Args:
        chosen: work -> the worker whose order is carried out again.
    """

    def __init__(self, task: TaskDir, view: TaskView, chosen: Mapping[str, str]) -> None:
        self._task, self._view = task, view
        #: work -> what its worker was to do; and that worker, whatever its spec says of its name.
        self._specs: dict[str, WorkerSpec] = {}
        self._workers = {work: task.worker(instance) for work, instance in chosen.items()}
        self.left_out: dict[str, AgentctlError] = {}
        for work, instance in chosen.items():
            try:
                self._specs[work] = self._spec_of(work)
            except AgentctlError as refusal:
                self.left_out[instance] = refusal
        while unmet := self._unmet():  # What waits for one of these is left out in the next round.
            for work, why in unmet.items():
                self.left_out[chosen[work]] = why
                del self._specs[work]

    def _spec_of(self, work: str) -> WorkerSpec:
        newest = self._view.tries.newest(work)
        if newest != work and not self._task.worker(newest).has_ended:
            raise Refused(
                f"{work} is being tried again already, as {newest}", hint=Next("wait", newest, "waits for it")
            )
        return _spec_of(self._workers[work])

    def _unmet(self) -> dict[str, AgentctlError]:
        """Return the works that wait for one that did not complete and is not tried again with them."""
        again = {self._view.tries.newest(work) for work in self._specs}
        found = (
            (work, unmet_dependency(self._workers[work], spec, self._view, again)) for work, spec in self._specs.items()
        )
        return {work: why for work, why in found if why is not None}

    def requests(self, name: str | None) -> list[SpawnRequest]:
        """Return what is to be started.

        Args:
            name: That of the new worker, where there is one.
        """
        names: dict[str, str] = {}
        taken: set[str] = set()
        for work in self._specs:
            names[work] = name or _next_name(self._task, work, taken)
            taken.add(names[work])
        return [self._request(work, spec, names) for work, spec in self._specs.items()]

    def _request(self, work: str, spec: WorkerSpec, names: Mapping[str, str]) -> SpawnRequest:
        tries, worker = self._view.tries, self._workers[work]
        awaited = [tries.work_of(one) for one in spec.after]
        after = [names.get(one) or tries.newest(one) for one in awaited]
        return _request(worker, spec)._replace(
            name=names[work], after=after, after_any=spec.after_any, retry_of=worker.instance
        )


def start_anew(
    task: TaskDir, instance: str, prompt: str, *, queue: bool, key: str | None = None,
    said: Mapping[str, str] | None = None,
) -> Spawned:  # fmt: skip
    """Start an ended agent once more with another prompt: a new run of its agent id that knows nothing of the others.

    For an agent whose program cannot continue a session. Everything else is as for `retry_workers`, but it
    waits for no other worker.

    Args:
        key: The same key with the same request starts it once.
        said: That request.

    Raises:
        Conflict: The key has done something else.
        Refused: It is a command, or not an agent that may be started once more.
    """
    check_own(task)
    worker = find_worker(task, instance)
    read_task(task)
    spec = _spec_of(worker)
    request = _request(worker, spec)
    if request.work is None:
        raise Refused(f"{instance} is a command: only agents take prompts", hint=Next("retry", instance))
    work = request.work._replace(prompt=prompt, agent_id=spec.agent_id)
    request = request._replace(work=work, carries_on=instance, key=key, said=said)
    return spawn_workers(task, [request], queue=queue)[0]


def _spec_of(worker: WorkerDir) -> WorkerSpec:
    """Return the spec of a worker whose work may be started again, as far as those that it waited for allow."""
    refusal = refusal_by_itself(worker)
    if refusal is not None:
        raise refusal
    return read_spec(worker.spec)


def _request(worker: WorkerDir, spec: WorkerSpec) -> SpawnRequest:
    """Return the request for the same work, without `key`, `after` and whoever started the old worker."""
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


def _next_name(task: TaskDir, work: str, taken: Collection[str]) -> str:
    """Return a free name for a further try: `build-2` for `build`, or `build-3` where that is taken."""
    base = work[:_LONGEST_BASE]

    def is_taken(number: int) -> bool:
        name = f"{base}-{1 + number}"
        return name in taken or task.worker(name).path.exists() or task.sibling(name).exists

    return f"{base}-{1 + first_free(is_taken)}"
