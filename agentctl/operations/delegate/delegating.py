"""Work handed to sub-agents: how it is worded for them, and the result of each, with the worker that did it.

A task that cannot be started, or fails, has a result like any other, and does not affect the rest.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from agentctl.adapters.files import read_known
from agentctl.adapters.tails import read_tail
from agentctl.adapters.taskdir import TaskDir, WorkerDir
from agentctl.domain.states import TERMINAL, Reason, Status
from agentctl.domain.tree.limits import RESULT_BYTES
from agentctl.domain.worker.last_output import lines_at_end
from agentctl.errors import AgentctlError, NotFound, Refused, UsageError
from agentctl.operations.show.current_state import read_task
from agentctl.operations.show.results import cut_of, text_fields
from agentctl.operations.start.batch import KEYS, request_from
from agentctl.operations.start.requests import Delegation, Spawned, SpawnRequest, agent_named
from agentctl.operations.start.spawning import spawn_workers
from agentctl.supervision.worker.endings import Decision, decision_of

DEFAULT_AGENT = "general"
DEFAULT_SESSION = "default"
DEFAULT_TIMEOUT_S = 120.0
#: Keys of a batch that an item cannot have, and why.
_NOT_OF_A_TASK = {
    "keep": "an agent that is kept has no end that could be its result",
    "queue": "each waits for a slot where none is free",
    "shell": 'argv runs a line of a shell: ["sh", "-c", LINE]',
}
#: What an item may have.
_KEYS = (
    "objective", "subagent_type", "context", "label",
    *(key for key in KEYS if key not in ("prompt", "agent", *_NOT_OF_A_TASK)),
)  # fmt: skip
#: How much of a program's stderr is put into the error of its result.
_STDERR_BYTES = 500


class TaskStatus(StrEnum):
    """What became of a delegated task: the status of its worker, but for a time limit that has passed."""

    QUEUED = Status.QUEUED.value
    RUNNING = Status.RUNNING.value
    BLOCKED = Status.BLOCKED.value
    COMPLETED = Status.COMPLETED.value
    FAILED = Status.FAILED.value
    CANCELLED = Status.CANCELLED.value
    TIMEOUT = "timeout"


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskResult:
    """The result of a delegated task."""

    #: The worker that did it, a name for `agentctl show`; None where none could be started, so nothing can be shown.
    task_id: str | None
    objective: str
    agent_type: str
    #: `completed failed timeout cancelled`; before its end `queued running blocked`.
    status: TaskStatus
    #: Its answer, bounded: an agent's last words, or the end of a command's output.
    result: str | None = None
    error: str | None = None
    #: Seconds from its start to its end.
    duration: float = 0.0
    #: ISO 8601 in UTC, like all times of agentctl.
    started_at: str | None = None
    completed_at: str | None = None
    #: What it declared in addition to its answer.
    summary: str | None = None
    #: Whether the answer was cut; then size and hash of the full text, its file, and one with shorter lines.
    truncated: bool = False
    size: int | None = None
    sha256: str | None = None
    path: str | None = None
    wrapped: str | None = None
    #: The same about a summary that was cut.
    summary_cut: Mapping[str, Any] | None = None

    @property
    def is_ended(self) -> bool:
        """Whether the task has ended."""
        return self.status in _ENDS

    def to_dict(self) -> dict[str, Any]:
        """Return the same as `to_json`, under the name that dataclasses use."""
        return self.to_json()

    def to_json(self) -> dict[str, Any]:
        """Return it as tools answer."""
        more = {**{name: getattr(self, name) for name in _IF_THERE}, "summaryCut": self.summary_cut}
        return {name: getattr(self, name) for name in _FIELDS} | {key: value for key, value in more.items() if value}


_FIELDS = (
    "task_id", "objective", "agent_type", "status", "result", "error", "duration", "started_at", "completed_at",
)  # fmt: skip
_IF_THERE = ("summary", "truncated", "size", "sha256", "path", "wrapped")
_ENDS = frozenset({*map(TaskStatus, TERMINAL), TaskStatus.TIMEOUT})


@dataclass(frozen=True, kw_only=True, slots=True)
class Terms:
    """Settings of every item that has none of its own."""

    session_id: str = DEFAULT_SESSION
    #: How long each may work, without its time in the queue and its open questions; None: the task's own limit.
    timeout_seconds: float | None = DEFAULT_TIMEOUT_S
    model: str | None = None
    cwd: str | None = None
    by_tool: bool = False

    def renewed(self, session_id: str, timeout_seconds: float | None) -> Terms:
        """Return the terms with another session and time limit."""
        return replace(self, session_id=session_id, timeout_seconds=timeout_seconds)


@dataclass(frozen=True, kw_only=True, slots=True)
class Delegated:
    """An item that was started or queued, or could not be."""

    objective: str
    agent_type: str
    instance: str | None = None
    error: str | None = None

    def refusal(self) -> TaskResult:
        """Return the result of one that could not be started."""
        return TaskResult(
            task_id=self.instance, objective=self.objective, agent_type=self.agent_type, status=TaskStatus.FAILED,
            error=self.error,
        )  # fmt: skip


def delegated_prompt(objective: str, context: Mapping[str, Any] | str | None = None) -> str:
    """Return a sub-agent's prompt: the objective, and below it the context, an object as indented JSON.

    >>> print(delegated_prompt("Find the tests", {"path": "src"}))
    Find the tests
    <BLANKLINE>
    Context:
    {
      "path": "src"
    }
    """
    if not context:
        return objective
    text = context if isinstance(context, str) else json.dumps(context, indent=2, ensure_ascii=False)
    return f"{objective}\n\nContext:\n{text}"


def delegate(
    task: TaskDir,
    items: Sequence[Mapping[str, Any]],
    terms: Terms | None = None,
    *,
    worded: Callable[[AgentctlError], tuple[str, str | None]],
) -> list[Delegated]:
    """Start each item, or queue it where no slot is free; return the outcomes in order, once they are on disk.

    Args:
        items: {objective, subagent_type?, context?, label?}, and any key of a line of `spawn --batch` but `keep`; with
            `argv` that command is run instead of an agent.
        worded: Returns the message and the next step of an error in the caller's words.
    """
    terms = terms or Terms()
    done: dict[int, Delegated] = {}
    requests: dict[int, SpawnRequest] = {}
    for index, item in enumerate(items):
        where = f"tasks[{index}]" if len(items) > 1 else ""
        try:
            requests[index] = _request(item, terms, where)
        except AgentctlError as error:
            agent = _text(item, "subagent_type", DEFAULT_AGENT)
            done[index] = _refused(_text(item, "objective"), agent, worded(error))
    for index, outcome in zip(requests, _spawn_each(task, list(requests.values())), strict=True):
        done[index] = _delegated(requests[index], outcome, worded)
    return [done[index] for index in range(len(items))]


def _request(item: Mapping[str, Any], terms: Terms, where: str) -> SpawnRequest:
    at = f"{where}: " if where else ""
    fields = dict(item)
    objective, context = _either(fields, at, "objective", "prompt"), fields.pop("context", None)
    agent = _either(fields, at, "subagent_type", "agent_type", "agent")
    label = fields.pop("label", None)
    if objective is None and _is_command(fields.get("argv")):
        objective = shlex.join(fields["argv"])
    if not isinstance(objective, str) or not objective.strip():
        raise UsageError(f"{at}objective is missing", hint='{"objective": "...", "subagent_type": "explore"}')
    if not isinstance(context, Mapping | str | None):
        raise UsageError(f"{at}context must be an object or a text, not {context!r}")
    if not isinstance(label, str | None):
        raise UsageError(f"{at}label must be a text, not {label!r}")
    for key, why in _NOT_OF_A_TASK.items():
        if key in fields:
            raise UsageError(f"{at}{key} is not for a task: {why}")
    if "argv" not in fields:
        fields |= {"prompt": _prompt(objective, context, at), "agent": agent or DEFAULT_AGENT}
    elif agent is not None:
        raise UsageError(f"{at}subagent_type is for an agent, and argv for a command: give one of them")
    fields.setdefault("timeout_seconds", terms.timeout_seconds)
    fields = {key: value for key, value in fields.items() if value is not None}
    return _with_terms(request_from(fields, where, _KEYS)._replace(label=label), terms, objective)


def _is_command(argv: object) -> bool:
    return isinstance(argv, list) and bool(argv) and all(isinstance(part, str) for part in argv)


def _either(fields: dict[str, Any], at: str, *names: str) -> Any:
    """Take what is given under one of several names."""
    given = {name: value for name in names if (value := fields.pop(name, None)) is not None}
    if len(given) > 1:
        raise UsageError(f"{at}{' and '.join(given)} are the same: give one of them")
    return next(iter(given.values()), None)


def _prompt(objective: str, context: Mapping[str, Any] | str | None, at: str) -> str:
    try:
        return delegated_prompt(objective, context)
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"{at}the context cannot be written as JSON: {error}") from error


def _with_terms(request: SpawnRequest, terms: Terms, objective: str) -> SpawnRequest:
    work = request.work
    if work is not None and work.model is None:
        work = work._replace(model=terms.model)
    return request._replace(
        work=work, callers_cwd=terms.cwd, delegation=Delegation(terms.session_id, objective), by_tool=terms.by_tool
    )


def _spawn_each(task: TaskDir, requests: Sequence[SpawnRequest]) -> list[Spawned | AgentctlError]:
    """Start what can be started, in as few spawns as possible: a batch that is refused as a whole is halved."""
    if not requests:
        return []
    try:
        return list(spawn_workers(task, list(requests), queue=True))
    except AgentctlError as error:
        # Only these errors mean that nothing was started; after any other, a second try could start something twice.
        if len(requests) == 1 or not isinstance(error, UsageError | NotFound | Refused):
            return [error] * len(requests)
    middle = len(requests) // 2
    return [*_spawn_each(task, requests[:middle]), *_spawn_each(task, requests[middle:])]


def _delegated(
    request: SpawnRequest,
    outcome: Spawned | AgentctlError,
    worded: Callable[[AgentctlError], tuple[str, str | None]],
) -> Delegated:
    assert request.delegation is not None
    objective, agent = request.delegation.objective, agent_named(request)
    if isinstance(outcome, AgentctlError):
        return _refused(objective, agent, worded(outcome))
    return Delegated(objective=objective, agent_type=agent, instance=outcome.agent_instance)


def _refused(objective: str, agent: str, why: tuple[str, str | None]) -> Delegated:
    message, hint = why
    return Delegated(objective=objective, agent_type=agent, error=f"{message} ({hint})" if hint else message)


def _text(item: Mapping[str, Any], key: str, default: str = "") -> str:
    value = item.get(key)
    return value if isinstance(value, str) and value else default


# -- results -----------------------------------------------------------------------------------------------------------


def delegated_result(worker: WorkerDir, *, max_bytes: int = RESULT_BYTES, status: str | None = None) -> TaskResult:
    """Return the result of a worker, without reading the log.

    Args:
        max_bytes: The bound of the answer.
        status: The status of a worker that has not ended.
    """
    spec, decision = read_known(worker.spec), decision_of(worker)
    delegation = spec.get("delegation") or {}
    known: dict[str, Any] = {
        "task_id": worker.instance,
        "objective": str(delegation.get("objective") or (spec.get("order") or {}).get("prompt") or ""),
        "agent_type": str(spec.get("agent") or "command"),
    }
    if not decision:
        return TaskResult(**known, status=TaskStatus(status or Status.RUNNING))
    found = text_fields(worker, max_bytes)
    return TaskResult(
        **known,
        status=TaskStatus.TIMEOUT if decision.reason == Reason.TIMED_OUT else TaskStatus(decision.status),
        result=_answer(found),
        **_declared(found),
        **cut_of(found),
        error=None if decision.status is Status.COMPLETED else error_of(worker, decision),
        duration=decision.duration_s or 0.0,
        started_at=decision.started_at,
        completed_at=decision.ended_at,
    )


def _answer(found: Mapping[str, Any]) -> str | None:
    text = str(found["text"])
    return (text.rstrip("\n") if found["source"] == "stdout" else text) or None


def _declared(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return what it declared beside its answer; a command that declared something has that for its answer."""
    if found["source"] == "declared":
        return {}
    return {"summary": found["summary"], "summary_cut": found.get("summaryCut")}


def error_of(worker: WorkerDir, decision: Decision) -> str:
    """Return why a worker did not succeed: the decision's message, else the program's last words on stderr."""
    how, lines = told_failure(worker, decision)
    said = "\n".join(lines).strip()
    return f"{how}: {said}" if said else how


def told_failure(worker: WorkerDir, decision: Decision) -> tuple[str, list[str]]:
    """Return why a worker did not succeed; and, where only its stderr can say that, the last lines there."""
    if decision.status is Status.CANCELLED:
        return f"cancelled by {decision.by}", []
    reason = decision.reason or "failed"
    if decision.message:
        return f"{reason}: {decision.message}", []
    code, signal = decision.exit_code, decision.signal
    how = f"exit code {code}" if code is not None else f"{reason}: {signal}" if signal else reason
    return how, _tail(worker.stderr, _STDERR_BYTES)


def _tail(path: str, size: int) -> list[str]:
    try:
        return lines_at_end(*read_tail(path, size))
    except OSError:
        return []


def session_results(task: TaskDir, session_id: str, *, max_bytes: int = RESULT_BYTES) -> list[TaskResult]:
    """Return the result of every task that was delegated in a session, in the order in which they were accepted."""
    view, _ = read_task(task)
    return [
        delegated_result(worker, max_bytes=max_bytes, status=view.workers[worker.instance].status)
        for worker in map(task.worker, view.workers)
        if _session_of(worker) == session_id
    ]


def _session_of(worker: WorkerDir) -> str | None:
    session = (read_known(worker.spec).get("delegation") or {}).get("session")
    return session if isinstance(session, str) else None
