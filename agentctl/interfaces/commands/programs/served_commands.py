"""Which commands `serve` offers over HTTP, and how: each is carried out as on a command line.

The parameters of an endpoint are those of the command, so there is one declaration of both. Nothing here reads a file
or starts anything but by such a command.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from agentctl.adapters.taskdir import Root
from agentctl.interfaces.commands.model.catalogue import command_by_words
from agentctl.interfaces.commands.model.command_model import (
    CHOICE,
    FLAG,
    NUMBER,
    SECONDS,
    TEXTS,
    WHOLE,
    Carried,
    Command,
    Parameter,
    Shown,
    take_each,
)
from agentctl.interfaces.commands.model.invocation import Invocation
from agentctl.interfaces.commands.model.surface import Unseen
from agentctl.interfaces.web.endpoint import (
    BODY,
    NAME,
    PATH,
    QUERY,
    CheckedRequest,
    Deliver,
    Endpoint,
    Input,
    JsonAnswer,
)
from agentctl.lean import NamedTuple
from agentctl.operations.wait.rounds import ending_with

#: Parameters that are for command lines alone.
_NEVER = frozenset({"follow", "hosts", "yes", "plain_text", "raw"})
#: How long a call waits that does not say it, and how long it may: proxies cut off what is silent for minutes.
_WAIT_S, _LONGEST_WAIT_S = 30, 300
_WORKER = "/tasks/{task}/workers/{instance}"


class Served(NamedTuple):
    """A command at a path."""

    method: str
    path: str
    #: Its words: `interact list`.
    command: str
    #: Parameters that are not offered.
    without: frozenset[str] = frozenset()
    #: Path parameter -> the argument that it is, if it is not called so.
    named: Mapping[str, str] = {}
    waits: bool = False
    #: Values that it always gets.
    always: Mapping[str, Any] = {}
    #: Of several endpoints of one command: what tells this one from the others.
    suffix: str = ""
    #: The type of what it answers, where that is less than what the command can show.
    answers: str = ""


def _one(method: str, verb: str, command: str | None = None, **more: Any) -> Served:
    """Return the endpoint of a command about one worker."""
    return Served(method, f"{_WORKER}/{verb}", command or verb, **more)


_INSTANCES = {"instance": "instances"}
#: What selects workers, where one is named.
_SELECTION = frozenset({"failed", "status", "agent", "filter"})
SERVED = (
    Served("GET", "/tasks", "tasks", answers="list[TaskRow]"),
    Served("POST", "/tasks", "new", without=frozenset({"no_use"}), always={"no_use": True}),
    Served("GET", "/templates", "templates"),
    Served("GET", "/agents", "agents list"),
    Served("GET", "/agents/{agent}", "agents show", named={"agent": "name"}),
    Served(
        "GET",
        "/interact",
        "interact list",
        without=frozenset({"recursive"}),
        suffix="of all",
        answers="list[QuestionRow]",
    ),
    Served("GET", "/search", "search", without=frozenset({"regex"}), waits=True, suffix="of all"),
    Served("GET", "/tasks/{task}/search", "search", without=frozenset({"regex"}), waits=True),
    Served("GET", "/tasks/{task}/list", "list", answers="list[WorkerRow]"),
    Served("GET", "/tasks/{task}/tree", "tree"),
    Served("GET", "/tasks/{task}/usage", "usage"),
    Served(
        "GET", "/tasks/{task}/timeline", "timeline", without=frozenset({"svg", "html", "named"}), answers="TaskTimeline"
    ),
    Served("GET", "/tasks/{task}/worktrees", "worktrees list"),
    Served("GET", "/tasks/{task}/interact", "interact list", answers="list[QuestionRow]"),
    Served("GET", "/tasks/{task}/notify", "notify list"),
    Served(
        "POST",
        "/tasks/{task}/spawn-template",
        "spawn-template",
        without=frozenset({"wait"}),
        answers="list[SpawnedWorker]",
    ),
    Served("POST", "/tasks/{task}/resume-queue", "resume-queue"),
    Served("POST", "/tasks/{task}/cancel", "cancel", waits=True),
    Served(
        "POST",
        "/tasks/{task}/pause",
        "pause",
        without=frozenset({"instances"}) | _SELECTION,
        suffix="queue",
        answers="QueueStanding",
    ),
    Served(
        "POST",
        "/tasks/{task}/unpause",
        "unpause",
        without=frozenset({"instances"}) | _SELECTION,
        suffix="queue",
        answers="QueueStanding",
    ),
    Served("POST", "/tasks/{task}/wait-any", "wait-any", waits=True, answers="EndedWorker | StoppedWait"),
    Served("POST", "/tasks/{task}/wait-all", "wait-all", waits=True, answers="list[EndedWorker] | StoppedWait"),
    Served("POST", "/tasks/{task}/join", "join", without=frozenset({"out"})),
    _one("GET", "why", named=_INSTANCES, without=_SELECTION, answers="WorkerReasons"),
    _one("GET", "result", named=_INSTANCES, without=_SELECTION, answers="WorkerResult"),
    _one("GET", "worktree", "worktrees show"),
    _one("GET", "diff", "worktrees diff"),
    _one("POST", "worktree/remove", "worktrees remove", named=_INSTANCES, answers="RemovedWorktree"),
    _one(
        "POST",
        "cancel",
        named=_INSTANCES,
        without=frozenset({"all", "recursive"}) | _SELECTION,
        waits=True,
        suffix="one",
        answers="CancelledWorker | CancelledTree",
    ),
    _one("POST", "pause", named=_INSTANCES, without=_SELECTION, answers="PausedWorker"),
    _one("POST", "unpause", named=_INSTANCES, without=_SELECTION, answers="PausedWorker"),
    _one("POST", "send"),
    _one("POST", "resume", without=frozenset({"lost"}), answers="SpawnedWorker"),
    Served("POST", "/tasks/{task}/retry", "retry", suffix="several"),
    _one("POST", "retry", named=_INSTANCES, without=_SELECTION, answers="SpawnedWorker"),
    _one(
        "POST",
        "wait",
        named=_INSTANCES,
        without=frozenset({"all", "any"}),
        waits=True,
        answers="EndedWorker | StoppedWait",
    ),
    Served("GET", _WORKER, "show", named=_INSTANCES, without=_SELECTION, answers="ShownWorker"),
)


def served_commands(root: Root, *, force: bool, offered: Iterable[Served] = SERVED) -> list[Endpoint]:
    """Return the endpoints of commands, for the tasks of a root.

    Args:
        force: Use the root even if it belongs to someone else.
    """
    return [_endpoint(one, command_by_words(one.command), root, force=force) for one in offered]


def _endpoint(one: Served, command: Command, root: Root, *, force: bool) -> Endpoint:
    placed = [name.strip("{}") for name in one.path.split("/") if name.startswith("{")]
    taken = {one.named.get(name, name) for name in placed}
    offered = {
        parameter.key: parameter
        for parameter in command.parameters
        if not ({parameter.name, parameter.key} & (_NEVER | one.without))
        and parameter.name not in taken
        and not parameter.is_hidden
    }
    where = QUERY if one.method == "GET" else BODY
    parameters = [Input(name, *_PLACES[name], PATH, is_required=True) for name in placed]
    parameters += [
        Input(name, _schema(parameter, where, waits=one.waits), parameter.help, where, parameter.is_required)
        for name, parameter in offered.items()
    ]
    summary, _, rest = command.help.partition("\n")
    return Endpoint(
        one.method,
        one.path,
        ".".join([*one.command.split(), *one.suffix.split()]),
        summary,
        _carrying_out(one, command, offered, partial(Invocation, Unseen(), root=str(root.path), force=force)),
        tuple(parameters),
        rest.strip(),
        one.answers or command.carry_out.__annotations__["return"],
        waits=one.waits,
    )


_PLACES: dict[str, tuple[Mapping[str, Any], str]] = {
    "task": (NAME, "The task."), "instance": (NAME, "The worker."),
    "agent": ({"type": "string", "pattern": "^[A-Za-z0-9_][A-Za-z0-9_.:-]{0,99}$"}, "The agent."),
}  # fmt: skip


def _schema(parameter: Parameter, where: str, *, waits: bool) -> dict[str, Any]:
    kind, one = parameter.kind, dict[str, Any]()
    if kind == FLAG:
        return {"type": "boolean", **({"default": True} if parameter.default else {})}
    if kind == CHOICE:
        one = {"type": "string", "enum": list(parameter.choices)}
    elif kind == WHOLE:
        low, high = parameter.least, parameter.most
        one = {"type": "integer", "minimum": -_LARGEST if low is None else low, "maximum": high or _LARGEST}
    elif kind == NUMBER:
        one = {"type": "number", "minimum": -1e9, "maximum": 1e9}
    elif kind == SECONDS:
        most = _LONGEST_WAIT_S if waits and parameter.name == "timeout_seconds" else 1e9
        one = {"type": "number", "minimum": 0, "maximum": most}
    else:
        one = {"type": "string", "maxLength": _LONGEST if where == BODY else _LONGEST_OF_QUERY}
    if kind == TEXTS:
        most = _MOST if where == BODY else _MOST_OF_QUERY
        return {"type": "array", "items": one, "maxItems": most, **({"minItems": 1} if parameter.is_required else {})}
    return one


#: Larger numbers, longer texts and lists than these are refused before a command sees them.
_LARGEST, _LONGEST, _MOST = 2**31, 1 << 20, 10_000
#: The header of a request has no place for more.
_LONGEST_OF_QUERY, _MOST_OF_QUERY = 2000, 100


def _carrying_out(
    one: Served, command: Command, offered: Mapping[str, Parameter], called: Callable[..., Invocation]
) -> Callable[[CheckedRequest], JsonAnswer]:
    """Return the function that carries a command out, given the values of a request."""
    kinds = {parameter.name: parameter.kind for parameter in command.parameters}

    def carry_out(request: CheckedRequest) -> JsonAnswer:
        given = {parameter.name: request.values[key] for key, parameter in offered.items() if key in request.values}
        for name in ("instance", "agent"):
            if f"{{{name}}}" in one.path:
                key = one.named.get(name, name)
                given[key] = [request.values[name]] if kinds[key] == TEXTS else request.values[name]
        if one.waits and "timeout_seconds" in kinds:
            given.setdefault("timeout_seconds", _WAIT_S)
        call = called(task=request.values.get("task"), json=True)
        with ending_with(request.broken):
            carried = command.carry_out(call, **given, **one.always)
            return _answer(carried, request.deliver if one.command == "wait-any" else None)

    return carry_out


def _answer(carried: Carried, deliver: Deliver | None) -> JsonAnswer:
    """Return the last value that a command shows.

    Args:
        deliver: Gives a value to the client before the command goes on.
    """
    values: list[Any] = []

    def take(item: object) -> None:
        if isinstance(item, Shown):
            values.append(_whole(item.value))
            if deliver is not None:
                deliver(values[-1])

    code = take_each(carried, take)
    return JsonAnswer(values[-1] if values else None, code)


def _whole(value: Any) -> Any:
    return list(value) if isinstance(value, Iterator) else value
