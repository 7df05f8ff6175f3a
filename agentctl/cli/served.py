"""Which commands `serve` offers over HTTP, and how: each is carried out as if its line had been typed.

The parameters of an endpoint are those that the command declares for its command line, so there is one declaration of
both. Nothing here reads a file or starts anything but by such a command.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import typer
from typer._click.exceptions import ClickException  # no public name before typer 0.28

from agentctl.adapters.taskdir import Root
from agentctl.cli.captured import captured
from agentctl.cli.lazy import program
from agentctl.errors import ExitCode, UsageError
from agentctl.lean import NamedTuple
from agentctl.operations.wait.rounds import ending_with
from agentctl.web.endpoint import BODY, NAME, PATH, QUERY, CheckedRequest, Endpoint, JsonAnswer, Parameter

#: Parameters that place and form of a call over HTTP decide.
_NEVER = frozenset({"task", "root", "force", "json", "follow", "hosts"})
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


def _one(method: str, verb: str, command: str | None = None, **more: Any) -> Served:
    """Return the endpoint of a command about one worker."""
    return Served(method, f"{_WORKER}/{verb}", command or verb, **more)


_NO_FILES = frozenset({"svg", "html", "out"})
_INSTANCES = {"instance": "instances"}
SERVED = (
    Served("GET", "/tasks", "tasks"),
    Served("POST", "/tasks", "new", without=frozenset({"no_use"}), always={"no_use": True}),
    Served("GET", "/templates", "templates"),
    Served("GET", "/agents", "agents list"),
    Served("GET", "/agents/{agent}", "agents show", named={"agent": "name"}),
    Served("GET", "/interact", "interact list", without=frozenset({"recursive"}), suffix="of all"),
    Served("GET", "/search", "search", without=frozenset({"regex"}), waits=True, suffix="of all"),
    Served("GET", "/tasks/{task}/search", "search", without=frozenset({"regex"}), waits=True),
    Served("GET", "/tasks/{task}/list", "list"),
    Served("GET", "/tasks/{task}/tree", "tree"),
    Served("GET", "/tasks/{task}/usage", "usage"),
    Served("GET", "/tasks/{task}/timeline", "timeline", without=_NO_FILES | {"named"}),
    Served("GET", "/tasks/{task}/worktrees", "worktrees list"),
    Served("GET", "/tasks/{task}/interact", "interact list"),
    Served("GET", "/tasks/{task}/notify", "notify list"),
    Served("POST", "/tasks/{task}/spawn-template", "spawn-template", without=frozenset({"wait"})),
    Served("POST", "/tasks/{task}/resume-queue", "resume-queue"),
    Served("POST", "/tasks/{task}/cancel", "cancel", waits=True),
    Served("POST", "/tasks/{task}/pause", "pause", without=frozenset({"instance"}), suffix="queue"),
    Served("POST", "/tasks/{task}/unpause", "unpause", without=frozenset({"instance"}), suffix="queue"),
    Served("POST", "/tasks/{task}/wait-any", "wait-any", waits=True),
    Served("POST", "/tasks/{task}/wait-all", "wait-all", waits=True),
    Served("POST", "/tasks/{task}/join", "join", without=_NO_FILES),
    _one("GET", "why"),
    _one("GET", "result"),
    _one("GET", "worktree", "worktrees show"),
    _one("GET", "diff", "worktrees diff"),
    _one("POST", "worktree/remove", "worktrees remove", named=_INSTANCES),
    _one("POST", "cancel", named=_INSTANCES, without=frozenset({"all", "recursive"}), waits=True, suffix="one"),
    _one("POST", "pause"),
    _one("POST", "unpause"),
    _one("POST", "send"),
    _one("POST", "resume", without=frozenset({"lost"})),
    _one("POST", "retry"),
    _one("POST", "wait", named=_INSTANCES, waits=True),
    Served("GET", _WORKER, "show"),
)


def served_commands(root: Root, *, force: bool) -> list[Endpoint]:
    """Return the endpoints of all commands that are offered, for the tasks of a root.

    Args:
        force: Use the root even if it belongs to someone else.
    """
    top = program()
    place = {"root": str(root.path), "force": force, "json": True}
    return [_endpoint(one, _command(top, one.command), place) for one in SERVED]


def _command(top: Any, words: str) -> Any:
    for word in words.split():
        top = top.get_command(None, word)
    return top


def _endpoint(one: Served, command: Any, place: Mapping[str, Any]) -> Endpoint:
    placed = [name.strip("{}") for name in one.path.split("/") if name.startswith("{")]
    taken = {one.named.get(name, name) for name in placed}
    offered = {
        _name_of(param): param
        for param in command.params
        if not ({param.name, _name_of(param)} & (_NEVER | one.without)) and param.name not in taken and _is_shown(param)
    }
    where = QUERY if one.method == "GET" else BODY
    parameters = [Parameter(name, _PLACES[name][0], _PLACES[name][1], PATH, is_required=True) for name in placed]
    parameters += [_parameter(name, param, where, waits=one.waits) for name, param in offered.items()]
    name = ".".join([*one.command.split(), *one.suffix.split()])
    text = (command.help or "").strip()
    summary, _, rest = text.partition("\n")
    return Endpoint(
        one.method,
        one.path,
        name,
        summary,
        _carrying_out(one, command, {param.name: name for name, param in offered.items()}, place),
        tuple(parameters),
        rest.strip(),
        waits=one.waits,
    )


_PLACES: dict[str, tuple[Mapping[str, Any], str]] = {
    "task": (NAME, "The task."), "instance": (NAME, "The worker."),
    "agent": ({"type": "string", "pattern": "^[A-Za-z0-9_][A-Za-z0-9_.:-]{0,99}$"}, "The agent."),
}  # fmt: skip


def _is_shown(param: Any) -> bool:
    return not getattr(param, "hidden", False) and param.name != "help"


def _name_of(param: Any) -> str:
    """Return the name of a parameter as it is typed: its longest option, or the argument's own name."""
    if param.param_type_name == "argument":
        return str(param.name)
    return str(max(param.opts, key=len)).removeprefix("--").replace("-", "_")


def _parameter(name: str, param: Any, where: str, *, waits: bool) -> Parameter:
    help_ = getattr(param, "help", None) or ""
    return Parameter(name, _schema(name, param, where, waits=waits), help_, where, bool(param.required))


def _schema(name: str, param: Any, where: str, *, waits: bool) -> dict[str, Any]:
    kind = type(param.type).__name__
    if getattr(param, "is_flag", False):
        return {"type": "boolean", **({"default": True} if param.default is True else {})}
    if kind == "Choice":
        one: dict[str, Any] = {"type": "string", "enum": [getattr(each, "value", each) for each in param.type.choices]}
    elif kind in {"IntRange", "IntParamType"}:
        low, high = getattr(param.type, "min", None), getattr(param.type, "max", None)
        one = {"type": "integer", "minimum": -_LARGEST if low is None else low, "maximum": high or _LARGEST}
    elif kind == "FloatParamType":
        one = {"type": "number", "minimum": -1e9, "maximum": 1e9}
    elif name.endswith("_seconds"):
        most = _LONGEST_WAIT_S if waits and name == "timeout_seconds" else 1e9
        one = {"type": "number", "minimum": 0, "maximum": most}
    else:
        one = {"type": "string", "maxLength": _LONGEST if where == BODY else _LONGEST_OF_QUERY}
    if getattr(param, "multiple", False) or param.nargs == -1:
        most = _MOST if where == BODY else _MOST_OF_QUERY
        return {"type": "array", "items": one, "maxItems": most, **({"minItems": 1} if param.required else {})}
    return one


#: Larger numbers, longer texts and lists than these are refused before a command sees them.
_LARGEST, _LONGEST, _MOST = 2**31, 1 << 20, 10_000
#: The header of a request has no place for more.
_LONGEST_OF_QUERY, _MOST_OF_QUERY = 2000, 100


def _carrying_out(
    one: Served, command: Any, names: Mapping[str, str], place: Mapping[str, Any]
) -> Callable[[CheckedRequest], JsonAnswer]:
    """Return the function that carries a command out, given the values of a request."""
    params = {param.name: param for param in command.params}
    delivers = one.command == "wait-any"

    def carry_out(call: CheckedRequest) -> JsonAnswer:
        values = {key: call.values[name] for key, name in names.items() if name in call.values}
        for name in ("task", "instance", "agent"):
            if f"{{{name}}}" in one.path:
                key = one.named.get(name, name)
                values[key] = [call.values[name]] if params[key].nargs == -1 else call.values[name]
        if one.waits and "timeout_seconds" in params:
            values.setdefault("timeout_seconds", _WAIT_S)
        taken: list[Any] = []

        def take(value: Any) -> None:
            if delivers:
                call.deliver(value)
            taken.append(value)

        with captured(take), ending_with(call.broken):
            code = _run(command, _words(params, {**values, **place, **one.always}))
        return JsonAnswer(taken[-1] if taken else None, code)

    return carry_out


def _words(params: Mapping[str, Any], values: Mapping[str, Any]) -> list[str]:
    """Return the command line for some values: no value can be taken for an option."""
    options: list[str] = []
    arguments: list[str] = []
    for name, param in params.items():
        if name not in values:
            continue
        value = values[name]
        if param.param_type_name == "argument":
            arguments += [*value] if isinstance(value, list) else [str(value)]
            continue
        option = max(param.opts, key=len)
        if isinstance(value, bool):
            options += [option] if value else list(param.secondary_opts[:1])
        else:
            options += [f"{option}={_text(item)}" for item in (value if isinstance(value, list) else [value])]
    return [*options, "--", *arguments]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:.6f}" if isinstance(value, float) else str(value)


def _run(command: Any, words: Iterable[str]) -> int:
    """Parse and carry out a command line.

    Raises:
        UsageError: It is not valid.
    """
    try:
        with command.make_context(command.name, list(words)) as context:
            return int(command.invoke(context) or ExitCode.DONE)
    except typer.Exit as leave:
        return int(leave.exit_code)
    except ClickException as error:
        raise UsageError(error.format_message().rstrip(".")) from error
