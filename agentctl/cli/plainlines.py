"""Reads plain command lines without the parser's library, whose import takes half of a short command's time.

A plain line can be understood in only one way: options by their full names, each once, each with one value or none;
then nothing, `-- CMD ARGS...`, or a prompt. The options are those of the function that does the work (or of `KINDS` of
its module, if it takes more than its parameters show), and those of `Invocation`.
Any other line, including any error, is left to the parser.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from importlib import import_module
from types import FunctionType

from agentctl.lean import Any

#: Command -> the module and the function that carries it out.
_VERBS = {"spawn": ("starting", "start_and_report"), "list": ("listed", "print_workers")}
#: Parameters that are not set by an option of the same name.
_OTHERWISE = frozenset({"prompt"})
_TEXT, _FLAG = "str | None", "bool"


def plain_line(argv: Sequence[str]) -> Callable[[], int | None] | None:
    """Return a function that carries out a command line; None if the parser has to read the line."""
    if not argv or argv[0] not in _VERBS:
        return None
    module, name = _VERBS[argv[0]]
    loaded = import_module(f"agentctl.cli.{module}")
    work: FunctionType = getattr(loaded, name)
    from agentctl.cli.invocation import KINDS, Invocation

    given = read_plain(argv[1:], KINDS | getattr(loaded, "KINDS", work.__annotations__))
    return None if given is None else lambda: work(Invocation.taken_from(given), **given)


def read_plain(words: Sequence[str], kinds: dict[str, str]) -> dict[str, Any] | None:
    """Return the parameters that a plain line gives; None if the line is not plain.

    Args:
        kinds: Parameter -> its annotation as written in the source.

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
    return given | end if (end := _end(rest, kinds, given)) is not None else None


def _end(rest: list[str], kinds: dict[str, str], given: Collection[str]) -> dict[str, Any] | None:
    """Return what follows the options."""
    if not rest:
        return {}
    if "command" not in kinds:
        return None
    if rest[0] == "--":
        return {"command": rest[1:]} if rest[1:] else None
    is_plain = len(rest) == 1 and not rest[0].startswith("-") and reads_as_prompt(rest[0], given)
    return {"prompt": rest[0]} if is_plain else None


def reads_as_prompt(word: str, given: Collection[str]) -> bool:
    """Return whether a word without `--` before it is meant for an agent, and is not a command.

    Args:
        given: The names of the options that were given: some are of agents alone.
    """
    from agentctl.operations.start.options import OF_AGENTS

    return " " in word.strip() or any(option.name in given for option in OF_AGENTS)
