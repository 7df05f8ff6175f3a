"""Plain command lines are read without the parser's library, whose import takes half of a short command's time.

A plain line is one that can be meant in one way only: options by their whole names, each once, each with a text or
none; then nothing, `-- CMD ARGS...`, or a prompt. What the options are is told by the function that does the work,
and by `KINDS` of its module where it takes more than its parameters say.
Whatever else is in a line, an error too, is the parser's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from types import FunctionType

from agentctl.lean import Any

#: Command -> the module and the function that does what it says.
_VERBS = {"spawn": ("starting", "start"), "list": ("listed", "show")}
#: What options that are called otherwise than the function's parameters set.
_OTHERWISE = frozenset({"prompt", "resume"})
_TEXT, _FLAG = "str | None", "bool"


def plain_line(argv: Sequence[str]) -> Callable[[], int | None] | None:
    """Return what does what a command line says; None where the parser is to read it."""
    if not argv or argv[0] not in _VERBS:
        return None
    module, name = _VERBS[argv[0]]
    loaded = import_module(f"agentctl.cli.{module}")
    work: FunctionType = getattr(loaded, name)
    given = read_plain(argv[1:], getattr(loaded, "KINDS", work.__annotations__))
    return None if given is None else lambda: work(**given)


def read_plain(words: Sequence[str], kinds: dict[str, str]) -> dict[str, Any] | None:
    """Return the parameters that a plain line gives; None where it is none.

    Args:
        kinds: Of each parameter, as its annotation stands in the source.

    >>> kinds = {"agent": "str | None", "json": "bool", "retries": "int", "command": "list[str] | None"}
    >>> read_plain(["--agent=plan", "--json", "Look at it"], kinds)
    {'agent': 'plan', 'json': True, 'prompt': 'Look at it'}
    >>> read_plain(["--json", "--", "ls", "--all"], kinds)
    {'json': True, 'command': ['ls', '--all']}
    >>> [read_plain([word], kinds) for word in ("--retries=1", "--jso", "--agent", "-j", "ls", "-")]
    [None, None, None, None, None, None]
    """
    given: dict[str, Any] = {}
    rest = list(words)
    while rest and rest[0].startswith("--") and rest[0] != "--":
        name, is_whole, value = rest.pop(0)[2:].partition("=")
        key = name.replace("-", "_")
        kind = None if "_" in name or key in given or key in _OTHERWISE else kinds.get(key)
        if kind == _FLAG and not is_whole:
            given[key] = True
        elif kind == _TEXT:
            if not is_whole:
                value = rest.pop(0) if rest else ""
            if not value or (value.startswith("-") and not is_whole):
                return None
            given[key] = value
        else:
            return None
    return given | end if (end := _end(rest, kinds, "agent" in given)) is not None else None


def _end(rest: list[str], kinds: dict[str, str], is_agent_named: bool) -> dict[str, Any] | None:
    """Return what stands behind the options."""
    if not rest:
        return {}
    if "command" not in kinds:
        return None
    if rest[0] == "--":
        return {"command": rest[1:]} if rest[1:] else None
    is_prompt = len(rest) == 1 and not rest[0].startswith("-") and (is_agent_named or " " in rest[0].strip())
    return {"prompt": rest[0]} if is_prompt else None
