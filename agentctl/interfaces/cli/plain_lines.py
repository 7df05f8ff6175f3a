"""Reads plain command lines without the parser's library, whose import takes half of a short command's time.

A plain line can be understood in only one way: options by their full names (or their one letter), each once unless it
can be repeated, each with one value or none; and as many arguments as the command takes. Any other line, including any
error, is left to the parser.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence

from agentctl.interfaces.commands.model.catalogue import VERBS, command_named
from agentctl.interfaces.commands.model.command_model import (
    CHOICE,
    COMMAND,
    FLAG,
    NUMBER,
    PROMPT,
    SECONDS,
    TEXT,
    TEXTS,
    WHOLE,
    Command,
    Family,
    Parameter,
)
from agentctl.lean import Any

_WHOLE = re.compile(r"-?[0-9]{1,15}", re.ASCII)
_NUMBER = re.compile(r"[0-9]{1,15}(\.[0-9]{1,15})?", re.ASCII)


def plain_line(argv: Sequence[str]) -> Callable[[], int] | None:
    """Return a function that carries out a command line; None if the parser has to read the line."""
    if not argv or argv[0] not in VERBS:
        return None
    found, words = command_named(argv[0]), list(argv[1:])
    if isinstance(found, Family):
        command = found.command(words[0]) if words else found.without
        words = words[1:]
    else:
        command = found
    given = None if command is None else read_plain(words, command)
    if command is None or given is None:
        return None
    from agentctl.interfaces.cli.presentation import carry_out

    return lambda: carry_out(command, given)


def read_plain(words: Sequence[str], command: Command) -> dict[str, Any] | None:
    """Return the parameters that a plain line gives, by the names of their keywords; None if the line is not plain.

    >>> parameters = (Parameter("agent", TEXT), Parameter("retries", WHOLE), Parameter("json", FLAG))
    >>> spawn = Command("spawn", print, (), "", (Parameter("command", COMMAND), *parameters))
    >>> read_plain(["--agent=plan", "--retries", "2", "--json", "Look at it"], spawn)
    {'agent': 'plan', 'retries': 2, 'json': True, 'prompt': 'Look at it'}
    >>> read_plain(["--json", "--", "ls", "--all"], spawn)
    {'json': True, 'command': ['ls', '--all']}
    >>> [read_plain([word], spawn) for word in ("--retries=x", "--jso", "--agent", "-j", "ls", "-")]
    [None, None, None, None, None, None]
    """
    parameters = command.all_parameters()
    named = {f"--{one.words}": one for one in parameters if not one.is_argument and one.kind not in (COMMAND, PROMPT)}
    named |= {f"-{one.short}": one for one in parameters if one.short}
    named |= {f"--{one.off}": one for one in parameters if one.off}
    takes_command = any(one.kind == COMMAND for one in parameters)
    given: dict[str, Any] = {}
    rest, arguments = list(words), list[str]()
    while rest:
        word = rest[0]
        if word == "--" or (takes_command and not word.startswith("-")):
            break
        rest.pop(0)
        if not word.startswith("-"):
            arguments.append(word)
        elif not _take_option(word, rest, named, given):
            return None
    if takes_command:
        end = _command_or_prompt(rest, given)
    else:
        end = _arguments([*arguments, *rest[1:]], [one for one in parameters if one.is_argument])
    return None if end is None else given | end


def _take_option(word: str, rest: list[str], named: dict[str, Parameter], given: dict[str, Any]) -> bool:
    """Take an option, and its value from the words after it; return whether it is plain."""
    flag, is_whole, text = word.partition("=")
    parameter = named.get(flag)
    if parameter is None or (parameter.name in given and parameter.kind != TEXTS) or (is_whole and flag[1] != "-"):
        return False
    if parameter.kind == FLAG:
        given[parameter.name] = flag != f"--{parameter.off}"
        return not is_whole
    if not is_whole:
        text = rest.pop(0) if rest else ""
        if text.startswith("-"):
            return False
    value = _value(parameter, text)
    if value is None:
        return False
    given[parameter.name] = [*given.get(parameter.name, ()), value] if parameter.kind == TEXTS else value
    return True


def _value(parameter: Parameter, text: str) -> Any:
    """Return the value that a text stands for; None if that is for the parser to say."""
    kind = parameter.kind
    if kind in (TEXT, TEXTS):
        return text or None
    if kind == CHOICE:
        return text if text in parameter.choices else None
    if kind in (NUMBER, SECONDS):
        return float(text) if _NUMBER.fullmatch(text) else None
    if kind == WHOLE and _WHOLE.fullmatch(text):
        number = int(text)
        is_within = (parameter.least is None or number >= parameter.least) and (
            parameter.most is None or number <= parameter.most
        )
        return number if is_within else None
    return None


def _arguments(words: list[str], parameters: list[Parameter]) -> dict[str, Any] | None:
    """Return the arguments; None if there are too few or too many of them, or one is empty."""
    found: dict[str, Any] = {}
    for parameter in parameters:
        if parameter.kind == TEXTS:  # It is the last one.
            taken, words = words, []
        else:
            taken, words = words[:1], words[1:]
        if not taken and parameter.is_required:
            return None
        values = [_value(parameter, word) for word in taken]
        if None in values:
            return None
        if values:
            found[parameter.name] = values if parameter.kind == TEXTS else values[0]
    return None if words else found


def _command_or_prompt(rest: list[str], given: Collection[str]) -> dict[str, Any] | None:
    """Return what follows the options of `spawn`."""
    if not rest:
        return {}
    if rest[0] == "--":
        return {"command": rest[1:]} if rest[1:] else None
    is_plain = len(rest) == 1 and reads_as_prompt(rest[0], given)
    return {"prompt": rest[0]} if is_plain else None


def reads_as_prompt(word: str, given: Collection[str]) -> bool:
    """Return whether a word without `--` before it is meant for an agent, and is not a command.

    Args:
        given: The names of the options that were given: some are of agents alone.
    """
    from agentctl.operations.start.options import OF_AGENTS

    return " " in word.strip() or any(option.name in given for option in OF_AGENTS)
