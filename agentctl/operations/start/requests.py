"""The requests of a spawn, each checked by itself (names, program, folder, ranges) before anything is made on disk."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from agentctl.adapters.taskdir import TaskDir
from agentctl.domain.names import check_name
from agentctl.domain.states import Status
from agentctl.domain.tree.graph import check_no_cycle
from agentctl.domain.tree.limits import KEYS, BadLimit, check_limit
from agentctl.errors import AgentctlError, Argument, Next, NotFound, UsageError, WithArguments
from agentctl.lean import NamedTuple
from agentctl.operations.start.options import OF_WORKERS
from agentctl.supervision.queue.tickets import HIGHEST, LOWEST

if TYPE_CHECKING:
    from agentctl.domain.agent.agentspec import AgentSpec
    from agentctl.domain.documents.workers.starts import MadeWorktree, SpawnedWorker


class AgentWork(NamedTuple):
    """Work for an agent; None leaves it to the definition."""

    prompt: str
    agent: str = "general"
    driver: str | None = None
    model: str | None = None
    effort: str | None = None
    max_turns: int | None = None
    max_budget_usd: float | None = None
    #: `ask`, `allow`, `deny`, or rules {tool, pattern, answer}.
    permissions: str | list[dict[str, str]] | None = None
    #: Stay for more messages after the answer.
    keep: bool = False
    #: What the final answer has to fit: a JSON schema, or the path of a file with one.
    output_schema: Mapping[str, Any] | str | None = None
    #: To continue an ended worker: its order as it is to be carried out now, and the agent id of the earlier runs.
    order: Mapping[str, Any] | None = None
    agent_id: str | None = None
    #: The definition that `agent` names, where it was looked up already.
    spec: AgentSpec | None = None
    #: MCP servers that the person who starts it has chosen: name -> how it is reached, without secrets.
    mcp_servers: Mapping[str, Mapping[str, Any]] = MappingProxyType({})
    #: Denials that hold beside those of the caller and of the agents above it.
    denied_above: Sequence[list[dict[str, str]]] = ()


class Delegation(NamedTuple):
    """The session in which a task was delegated, and the wording of the task."""

    session: str
    objective: str


class SpawnRequest(NamedTuple):
    """A worker to be started: a command, or work for an agent; times in seconds, None takes the task's limit."""

    argv: Sequence[str] = ()
    work: AgentWork | None = None
    name: str | None = None
    cwd: str | None = None
    #: The folder of its caller, which counts where `cwd` is None. No request says it, and it may differ the next time.
    callers_cwd: str | None = None
    env: Mapping[str, str] = MappingProxyType({})
    timeout_seconds: float | None = None
    grace_seconds: float | None = None
    priority: int = 0
    after: Sequence[str] = ()
    after_any: bool = False
    retries: int = 0
    retry_delay_seconds: float = 1.0
    #: How long it may wait for its account after it was stopped.
    max_park_seconds: float | None = None
    key: str | None = None
    #: The request as its caller said it, by which another one with the same key is told from it.
    said: Mapping[str, str] | None = None
    #: What only one worker may be, whoever asks: `resume:a`. A second one is not started, and is `reused`.
    sole: str | None = None
    #: If the same work was done over the same files before, return the worker that did it.
    reuse: bool = False
    keep_children: bool = False
    #: It gets a git worktree and a branch of its own, made from what is checked out in `cwd`.
    worktree: bool = False
    #: What runs it, and what it needs there; None takes what its definition, its starter or its task says.
    runner: str | None = None
    cpus: int | None = None
    memory: str | None = None
    gpus: str | None = None
    time: str | None = None
    partition: str | None = None
    runner_arg: Sequence[str] = ()
    #: The files that it is given to work with.
    artifacts: Sequence[str] = ()
    #: Its subject in a few words: the stem of its name.
    label: str | None = None
    delegation: Delegation | None = None
    #: The worker whose work it tries again, or goes on with.
    retry_of: str | None = None
    carries_on: str | None = None
    #: A tool of a session asks for it, not a person.
    by_tool: bool = False
    #: What its entry in a batch says of waiting for a slot; `spawn_workers` is told for all of them.
    queue: bool | None = None
    #: The line that it comes from (`source:number`), for errors about it.
    where: str = ""

    @property
    def continues(self) -> bool:
        """Return whether it continues an agent's earlier run: by the same order, in the same folder."""
        return self.work is not None and self.work.order is not None


def argv_of_shell(line: str) -> list[str]:
    """Return what is executed for a line of a shell."""
    return ["/bin/sh", "-c", line]


class Spawned(NamedTuple):
    """The outcome of a request."""

    agent_instance: str
    status: Status
    task_id: str
    pid: int | None = None
    #: The key was taken: this is the worker that has it.
    reused: bool = False
    message: str | None = None
    #: Which of its options the agent program cannot honour; what else is not as the person wants it.
    warnings: tuple[str, ...] = ()
    #: One of its own.
    worktree: MadeWorktree | None = None

    def to_json(self) -> SpawnedWorker:
        """Return it as `spawn --json` prints it."""
        value: SpawnedWorker = {
            "agentInstance": self.agent_instance, "status": self.status, "pid": self.pid, "taskId": self.task_id,
            "reused": self.reused,
        }  # fmt: skip
        if self.message:
            value["message"] = self.message
        if self.warnings:
            value["warnings"] = list(self.warnings)
        if self.worktree:
            value["worktree"] = self.worktree
        return value


@contextlib.contextmanager
def naming_the_line(request: SpawnRequest) -> Iterator[None]:
    """Put the line of a request before the message of an error about it."""
    try:
        yield
    except AgentctlError as error:
        if request.where and not error.message.startswith(request.where):
            error.put_before(f"{request.where}: ")
        raise


def agent_named(request: SpawnRequest) -> str:
    """Return the agent that a request is for."""
    if request.work is None:
        return "command"
    return str(request.work.order["agent"]) if request.work.order else request.work.agent


def check_requests(task: TaskDir, requests: list[SpawnRequest]) -> None:
    """Raise for the first request that is not valid."""
    known: set[str] = set()
    for request in requests:
        if request.name is not None:
            with naming_the_line(request):
                if check_name(request.name, "the instance") in known:
                    raise UsageError(f"the instance {request.name!r} is given twice in the batch")
            known.add(request.name)
    for request in requests:
        with naming_the_line(request):
            _check_numbers(request)
            if request.work is not None:
                _check_work(request.work)
            _check_texts(request)
            for name in request.after:
                _check_after(task, name, known)
            if request.after_any and not request.after:
                raise UsageError(WithArguments(Argument("after_any"), " goes with ", Argument("after")))
    check_no_cycle({request.name: request.after for request in requests if request.name is not None})
    _check_keys(requests)


def _check_keys(requests: list[SpawnRequest]) -> None:
    """Refuse two different workers with one key; two that are the same, as of two equal lines, are one."""
    said: dict[str, Mapping[str, str] | None] = {}
    for request in requests:
        if request.key is not None and said.setdefault(request.key, request.said) != request.said:
            with naming_the_line(request):
                raise UsageError(f"the key {request.key[:80]!r} is given to another worker of the batch, too")


def _check_after(task: TaskDir, name: str, known: set[str]) -> None:
    check_name(name, Argument("after"))
    if name not in known and not task.worker(name).spec.exists():
        raise NotFound(f"no worker {name!r} in task {task.id} to start after", hint=Next("look around"))


#: What a worker can have instead of the task's limit of that name.
_LIMITS = [option.name for option in OF_WORKERS if option.name in KEYS]


def _check_numbers(request: SpawnRequest) -> None:
    try:
        for name in _LIMITS:
            if getattr(request, name) is not None:
                check_limit(KEYS[name], getattr(request, name))
    except BadLimit as error:
        raise UsageError(str(error)) from error
    if not LOWEST <= request.priority <= HIGHEST:
        raise UsageError(f"the priority must be from {LOWEST} to {HIGHEST}, not {request.priority}")
    if not 0 <= request.retries <= 1000:
        raise UsageError(f"retries must be from 0 to 1000, not {request.retries}")
    check_key(request.key)
    if request.reuse and request.key is not None:
        raise UsageError("reuse and a key exclude each other: each says what counts as the same")
    if not 0 <= request.retry_delay_seconds <= 3600:
        raise UsageError(f"the retry delay must be from 0 to 3600 s, not {request.retry_delay_seconds:g}")


_LONGEST_KEY = 10_000


class KeyOfOne(str):
    """The key of one of several workers that a request is about; no caller can give it, since it has a NUL.

    Args:
        whole: The key of the request.
        said: The request.
    """

    __slots__ = ("said", "whole")
    whole: str
    said: Mapping[str, str]

    def __new__(cls, whole: str, name: str, said: Mapping[str, str]) -> KeyOfOne:
        """Return the key of the one of this name."""
        self = super().__new__(cls, f"{whole}\0{name}")
        self.whole, self.said = whole, said
        return self


def check_key(key: str | None) -> None:
    """Refuse a caller's key that is empty, too long, no text, or has a NUL."""
    if key is None or isinstance(key, KeyOfOne):
        return
    if not 0 < len(key) <= _LONGEST_KEY or not _is_text(key):
        raise UsageError(f"a key has 1 to {_LONGEST_KEY} characters, and no NUL; this one is {key[:80]!r}")


def _check_work(work: AgentWork) -> None:
    from agentctl.domain.agent.agentspec import EFFORTS  # Commands do not need it.

    if work.max_turns is not None and work.max_turns < 1:
        raise UsageError(WithArguments(Argument("max_turns"), f" must be at least 1, not {work.max_turns}"))
    if work.max_budget_usd is not None and not 0 < work.max_budget_usd < 1e9:
        raise UsageError(
            WithArguments(Argument("max_budget_usd"), f" must be more than 0, not {work.max_budget_usd:g}")
        )
    if work.effort is not None and work.effort not in EFFORTS:
        raise UsageError(f"effort must be one of {', '.join(EFFORTS)}, not {work.effort!r}")


def _check_texts(request: SpawnRequest) -> None:
    """Refuse text that the system cannot take: a NUL would end it, and half a surrogate pair cannot be encoded."""
    cwd = request.cwd or request.callers_cwd or ""
    texts = {"argv": request.argv, "env": [*request.env, *request.env.values()], "cwd": [cwd],
             "prompt": [request.work.prompt if request.work else ""]}  # fmt: skip
    for what, parts in texts.items():
        for part in parts:
            if not _is_text(part):
                raise UsageError(f"{what} cannot be passed to a program: {part[:80]!r}")
    if any(not name or "=" in name for name in request.env):
        raise UsageError("env has a name that is empty or contains a =")


def _is_text(part: str) -> bool:
    try:
        return b"\0" not in os.fsencode(part)
    except UnicodeEncodeError:
        return False


class NotThere(UsageError):
    """Something that a worker needs does not exist by now."""


def check_program(argv: Sequence[str], cwd: str, environ: Mapping[bytes, bytes]) -> None:
    """Refuse a missing program before the name is taken.

    Raises:
        UsageError: There is no command at all.
        NotThere: Its program, or the folder that it is to run in, does not exist.
    """
    if not argv or not argv[0]:
        raise UsageError("there is no command to run", hint=Next("spawn"))
    if not os.path.isdir(cwd):
        raise NotThere(f"the working folder {cwd} does not exist", hint=Next("another folder"))
    program = argv[0]
    path = os.fsdecode(environ.get(b"PATH", os.fsencode(os.defpath)))
    place = os.path.join(cwd, program) if os.sep in program else program
    if shutil.which(place, path=path) is None:
        where = "or it is not executable" if os.sep in program else "in PATH"
        raise NotThere(f"there is no program {program!r} {where}", hint="is it installed? a path must be executable")
