"""Which commands `serve` offers over HTTP, and how: each is carried out as on a command line.

The parameters of an endpoint are those of the command, so there is one declaration of both. Nothing here reads a file
or starts anything but by such a command.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from agentctl.adapters.taskdir import Root
from agentctl.errors import NotFound, UsageError, WaitTimedOut
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
    CURSOR,
    LIMIT,
    NAME,
    PATH,
    QUERY,
    CheckedRequest,
    Endpoint,
    Input,
    JsonAnswer,
)
from agentctl.interfaces.web.list_pages import page_of_rows
from agentctl.lean import TYPE_CHECKING, NamedTuple
from agentctl.operations.show.listing import list_workers
from agentctl.operations.wait.rounds import ending_with

if TYPE_CHECKING:
    from agentctl.adapters.taskdir import TaskDir
    from agentctl.domain.documents.workers.ends import TimedOutWait

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
    #: Parameters that a command line may leave out, and a request may not -> with which other one it may, too.
    needs: Mapping[str, str] = {}
    #: Of what makes something: the path of that, from a row of the answer.
    makes: str = ""
    #: Of a list that may be had in pages: what tells its rows from each other.
    paged: tuple[str, ...] = ()


def _one(method: str, verb: str, command: str | None = None, **more: Any) -> Served:
    """Return the endpoint of a command about one worker."""
    return Served(method, f"{_WORKER}/{verb}", command or verb, **more)


_INSTANCES = {"instance": "instances"}
_MADE_TASK = "/tasks/{taskId}"
_MADE_WORKER = "/tasks/{taskId}/workers/{agentInstance}"
_BY_ID = ("taskId", "agentInstance", "id")
_BY_HIT = ("taskId", "agentInstance", "source", "at", "excerpt", "begin")
#: What selects workers, where one is named.
_SELECTION = frozenset({"failed", "status", "agent", "filter"})
SERVED = (
    Served("GET", "/tasks", "tasks", answers="list[TaskRow]", paged=_BY_ID),
    Served(
        "POST",
        "/tasks",
        "new",
        without=frozenset({"no_use"}),
        always={"no_use": True},
        needs={"title": "template"},
        makes=_MADE_TASK,
    ),
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
        paged=_BY_ID,
    ),
    Served("GET", "/search", "search", without=frozenset({"regex"}), waits=True, suffix="of all", paged=_BY_HIT),
    Served(
        "GET", "/tasks/{task}/search", "search", without=frozenset({"regex", "archived"}), waits=True, paged=_BY_HIT
    ),
    Served("GET", "/tasks/{task}/list", "list", answers="list[WorkerRow]", paged=_BY_ID),
    Served("GET", "/tasks/{task}/tree", "tree"),
    Served("GET", "/tasks/{task}/usage", "usage"),
    Served(
        "GET", "/tasks/{task}/timeline", "timeline", without=frozenset({"svg", "html", "named"}), answers="TaskTimeline"
    ),
    Served("GET", "/tasks/{task}/worktrees", "worktrees list", paged=_BY_ID),
    Served("GET", "/tasks/{task}/interact", "interact list", answers="list[QuestionRow]", paged=_BY_ID),
    Served("GET", "/tasks/{task}/notify", "notify list"),
    Served(
        "POST",
        "/tasks/{task}/spawn-template",
        "spawn-template",
        without=frozenset({"wait"}),
        answers="list[SpawnedWorker]",
        makes=_MADE_WORKER,
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
    Served(
        "POST",
        "/tasks/{task}/wait-any",
        "wait-any",
        waits=True,
        answers="EndedWorker | StoppedWait | TimedOutWait",
    ),
    Served(
        "POST",
        "/tasks/{task}/wait-all",
        "wait-all",
        waits=True,
        answers="list[EndedWorker] | StoppedWait | TimedOutWait",
    ),
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
    _one("POST", "resume", without=frozenset({"lost"}), answers="SpawnedWorker", makes=_MADE_WORKER),
    Served("POST", "/tasks/{task}/retry", "retry", suffix="several", makes=_MADE_WORKER),
    _one("POST", "retry", named=_INSTANCES, without=_SELECTION, answers="SpawnedWorker", makes=_MADE_WORKER),
    _one(
        "POST",
        "wait",
        named=_INSTANCES,
        without=frozenset({"all", "any"}),
        waits=True,
        answers="EndedWorker | StoppedWait | TimedOutWait",
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
        Input(
            name, _schema(parameter, where, waits=one.waits), parameter.help, where,
            parameter.is_required or name in one.needs, unless=one.needs.get(name, ""),
            items_told=_told_of_items(parameter),
        )
        for name, parameter in offered.items()
    ]  # fmt: skip
    parameters += _PAGED if one.paged else ()
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
        creates=bool(one.makes),
        is_paged=bool(one.paged),
    )


_PAGED = (
    Input(LIMIT, {"type": "integer", "minimum": 1, "maximum": 10_000}, "How many rows; all of them without it."),
    Input(CURSOR, {"type": "string", "maxLength": 400}, "Where the page begins, as the header Link of another says."),
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
    elif parameter.listed:  # A text has commas between them; a request has a list, or such a text.
        return {"type": "array", "items": {"type": "string", "enum": list(parameter.listed)}, "minItems": 1}
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


def _told_of_items(parameter: Parameter) -> dict[str, Any]:
    """Return what the description says of the texts in a list that is needed: they are more than blanks.

    What a blank is differs between the dialects of patterns; Python takes the separators U+001C to U+001F for some.
    """
    return {"pattern": r"[^\s\x1c-\x1f\x85]"} if parameter.kind == TEXTS and parameter.is_required else {}


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
        given = {
            parameter.name: _as_typed(request.values[key], parameter)
            for key, parameter in offered.items()
            if key in request.values
        }
        for name in ("instance", "agent"):
            if f"{{{name}}}" in one.path:
                key = one.named.get(name, name)
                given[key] = [request.values[name]] if kinds[key] == TEXTS else request.values[name]
        is_wait = one.waits and "timeout_seconds" in kinds
        if is_wait:
            given.setdefault("timeout_seconds", _WAIT_S)
        call = called(task=request.values.get("task"), json=True)
        with ending_with(request.broken):
            try:
                carried = command.carry_out(call, **given, **one.always)
                return _answer(one, carried, request)
            except WaitTimedOut as error:
                if not is_wait:
                    raise
                return _timed_out(call.task_to_show(), given.get("instances"), error)

    return carry_out


def _as_typed(value: Any, parameter: Parameter) -> Any:
    """Return a value as a command line has it: `completed,failed` for a list of choices."""
    return ",".join(value) if isinstance(value, list) and parameter.kind != TEXTS else value


def _timed_out(task: TaskDir, instances: list[str] | None, error: WaitTimedOut) -> JsonAnswer:
    """Return what is known of the workers for which a wait was in vain; whoever waits has done nothing wrong."""
    rows = [row for row in list_workers(task)[0] if not instances or row["agentInstance"] in instances]
    found: TimedOutWait = {"timedOut": True, "detail": error.message, "workers": rows}
    return JsonAnswer(found, error.exit_code)


def _answer(one: Served, carried: Carried, request: CheckedRequest) -> JsonAnswer:
    """Return the last value that a command shows, or a page of it."""
    values: list[Any] = []
    more: str | None = None

    def take(item: object) -> None:
        nonlocal more
        if not isinstance(item, Shown):
            return
        value = item.value
        if one.paged and LIMIT in request.values:
            value, more = page_of_rows(value or (), request.values[LIMIT], request.values.get(CURSOR), one.paged)
        values.append(_whole(value))
        if one.command == "wait-any":  # The client has it before the command goes on.
            request.deliver(values[-1])

    if CURSOR in request.values and LIMIT not in request.values:
        raise UsageError("cursor is given without limit")
    try:
        code = take_each(carried, take)
    except NotFound as error:
        if values != [[]]:
            raise
        code = error.exit_code  # It is told that nothing was found, and there is a place at which nothing is.
    value = values[-1] if values else None
    answer = JsonAnswer(value, code, next_page=more)
    return _made(answer, one.makes) if one.makes else answer


def _made(answer: JsonAnswer, path: str) -> JsonAnswer:
    """Return an answer with what it says of HTTP: something was made, and where it is."""
    rows = answer.value if isinstance(answer.value, list) else [answer.value]
    made = [row for row in rows if not row.get("reused")]
    where = {path.format_map(row) for row in made or rows}
    location = where.pop() if len(where) == 1 else None
    return answer._replace(status=201 if made else 200, location=location)


def _whole(value: Any) -> Any:
    return list(value) if isinstance(value, Iterator) else value
