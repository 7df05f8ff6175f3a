"""What starts many workers: the lines of `spawn --batch`, JSON with the names of spawn's options; those of `--each`."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from agentctl.domain.names import base_name
from agentctl.errors import Argument, AtTerminal, UsageError, WithArguments
from agentctl.operations.start.options import FLAG, OF_AGENTS, OF_WORKERS, TEXT, TEXTS
from agentctl.operations.start.requests import AgentWork, SpawnRequest, argv_of_shell, naming_the_line

#: A line for `/bin/sh -c`, in place of an argv; and whether it waits for a slot, as `--shell` and `--queue` say.
SHELL, _QUEUE = "shell", "queue"
_KINDS = {"argv": TEXTS, SHELL: TEXT, _QUEUE: FLAG} | {option.name: option.kind for option in OF_WORKERS}
#: Keys of work for an agent; a line has a prompt and these, or an argv.
_WORK = {"prompt": TEXT} | {option.name: option.kind for option in OF_AGENTS}

_PLAIN = AtTerminal("where each line is an argument of a command: agentctl spawn --each FILE -- CMD {}")
#: Where a line of `--each` goes.
PLACE = "{}"
#: Programs that read an argument as a script -> the letter of the option before it.
_SCRIPTS = {
    **dict.fromkeys(("sh", "bash", "dash", "ash", "ksh", "zsh", "fish", "csh", "tcsh", "python"), "c"),
    **dict.fromkeys(("perl", "ruby", "node", "lua"), "e"),
}
#: A system passes arguments of at most 128 KiB, and a line has at most four bytes for a character.
_LONGEST_LINE = 32_000
_MOST_LINES = 100_000

#: What a line of a batch may have.
KEYS = (*_KINDS, *_WORK)


def read_batch(lines: Iterable[str], source: str) -> list[SpawnRequest]:
    """Return the requests in JSON lines; empty lines and those that begin with # are skipped.

    Raises:
        UsageError: A line is not a request; the message names source and line.
    """
    found = []
    for number, line in enumerate(lines, 1):
        if line.strip() and not line.lstrip().startswith("#"):
            found.append(parse_request(line, f"{source}:{number}"))
    if not found:
        raise UsageError(f"{source} holds no worker", hint='a line each: {"name": "a1", "argv": ["true"]}')
    return found


def read_each(lines: Iterable[str], source: str, request: SpawnRequest) -> list[SpawnRequest]:
    """Return a request for each line that is not blank: the given one, with the line in place of `{}`.

    The line is put into arguments as it is, and nothing but the program that gets it reads it. Without `{}` it is the
    last argument; a prompt needs one. A name is that of all, with the number of the line behind it.

    Raises:
        UsageError: A line cannot be an argument; the message names source and line. Or a line would be read by a shell,
            or have no place.
    """
    _check_places(request)
    found: list[SpawnRequest] = []
    for number, text in enumerate(lines, 1):
        line, where = text.removesuffix("\n"), f"{source}:{number}"
        if not line.strip():
            continue
        _check_line(line, where)
        if len(found) == _MOST_LINES:
            raise UsageError(f"{where}: more than {_MOST_LINES} lines", hint="start them in several parts")
        found.append(_with_line(request, line, number)._replace(where=where))
    if not found:
        raise UsageError(f"{source} holds no line", hint="each line of it becomes a worker")
    return found


def _check_places(request: SpawnRequest) -> None:
    if request.key is not None and PLACE not in request.key:
        raise UsageError(
            WithArguments(Argument("key"), " is the same for all lines, which would be one worker"),
            hint=f"put {PLACE} into it",
        )
    if request.work is not None and PLACE not in request.work.prompt:
        raise UsageError(
            f"the prompt has no {PLACE} for the line", hint=AtTerminal(f'as in --agent fix "Port {PLACE}"')
        )
    for script in () if request.work is not None else _scripts_in(request.argv):
        if PLACE in script and script != PLACE:
            raise UsageError(
                f"each line would be read as a part of the script {script[:80]!r}",
                hint=f"""put {PLACE} behind it, as an argument: -- sh -c 'wc -l "$1"' sh {PLACE}""",
            )


def _scripts_in(argv: Sequence[str]) -> Iterator[str]:
    """Yield the scripts that a command has for arguments: `sh -c SCRIPT`, `env A=1 python3 -c SCRIPT`.

    >>> list(_scripts_in(["nice", "bash", "-e", "-c", "wc {}", "bash"]))
    ['wc {}']
    """
    for at, program in enumerate(argv):
        letter = _SCRIPTS.get(base_name(program).rstrip("-0123456789"))
        for option, script in pairwise(argv[at + 1 :]) if letter else ():
            if not option.startswith("-"):
                break
            if option.endswith(letter or "") and not option.startswith("--"):
                yield script
                break


def _check_line(line: str, where: str) -> None:
    if "\0" in line:
        raise UsageError(f"{where}: a NUL cannot be passed to a program", hint="a newline ends each line: find -print")
    if len(line) > _LONGEST_LINE:
        raise UsageError(f"{where}: the line has {len(line)} characters; at most {_LONGEST_LINE} are passed on")


def _with_line(request: SpawnRequest, line: str, number: int) -> SpawnRequest:
    name = None if request.name is None else f"{request.name}-{number}"
    key = None if request.key is None else request.key.replace(PLACE, line)
    if request.work is not None:
        work = request.work._replace(prompt=request.work.prompt.replace(PLACE, line))
        return request._replace(work=work, name=name, key=key)
    argv = [word.replace(PLACE, line) for word in request.argv]
    is_placed = any(PLACE in word for word in request.argv)
    return request._replace(argv=argv if is_placed else [*argv, line], name=name, key=key)


def parse_request(line: str, where: str) -> SpawnRequest:
    """Return the request in one line; errors name `where` (source:line)."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{where}: not JSON: {error}", hint=_PLAIN) from error
    if not isinstance(value, dict):
        raise UsageError(f'{where}: it must be an object, like {{"argv": ["true"]}}', hint=_PLAIN)
    return request_from(value, where)


def request_from(value: dict[str, Any], where: str, known: Collection[str] = KEYS) -> SpawnRequest:
    """Return the request in a mapping; its keys may be spelled like options, in snake case or in camel case.

    Args:
        where: Put before the message of an error; empty where only one request can be meant.
        known: The keys as the caller offers them.
    """
    at = f"{where}: " if where else ""
    fields, spelled = dict[str, Any](), dict[str, str]()
    for key, item in value.items():
        name = _snake(key)
        kind = _KINDS.get(name) or _WORK.get(name)
        if kind is None:
            raise UsageError(f"{at}unknown key {key!r}", hint=_meant(name, known))
        if name in fields:
            raise UsageError(f"{at}{key!r} is given twice")
        if not _fits(item, kind):
            raise UsageError(f"{at}{key} must be {kind}, not {item!r}")
        fields[name], spelled[name] = item, key
    work = {name: fields.pop(name) for name in _WORK if name in fields}
    _check_work(fields, work, spelled, at)
    if SHELL in fields:
        fields["argv"] = argv_of_shell(fields.pop(SHELL))
    return SpawnRequest(**fields, work=AgentWork(**work) if work else None, where=where)


def _check_work(fields: Mapping[str, Any], work: Mapping[str, Any], spelled: Mapping[str, str], at: str) -> None:
    """Refuse what says of no work, or of two, that it is to be done.

    Args:
        spelled: The keys as the caller has spelled them.
    """
    commands = [key for key in ("argv", SHELL) if fields.get(key)]
    if not commands and "prompt" not in work:
        raise UsageError(
            f"{at}argv is missing",
            hint='argv is a list: ["python3", "job.py"]; instead, shell is a line for a shell, prompt is for an agent',
        )
    if len(commands) > 1:
        raise UsageError(f"{at}argv and shell are each a command: give one of them")
    if commands and work:
        one, other = spelled[min(work)], spelled[commands[0]]
        raise UsageError(f"{at}{one} is for an agent, and {other} for a command: give one of them")


def batch_waits(requests: Sequence[SpawnRequest]) -> bool:
    """Return whether a batch waits for slots: it does, unless all of its entries that say something say no.

    Raises:
        UsageError: Entries contradict each other: a batch starts as a whole, or not at all.
    """
    said: dict[bool, SpawnRequest] = {}
    for request in requests:
        if request.queue is not None:
            said.setdefault(request.queue, request)
    if len(said) > 1:
        raise UsageError(
            f"{said[False].where}: queue is false, and true in {said[True].where}",
            hint="a batch is queued as a whole, or started as a whole: leave it out, or say the same in each",
        )
    for request in requests if False in said else ():
        if request.after:
            with naming_the_line(request):
                raise UsageError("it starts after others, and queue is false: leave that out")
    return False not in said


def _meant(name: str, known: Collection[str]) -> str:
    """Return which key was meant by a wrong one, or which there are."""
    from difflib import get_close_matches  # Only for a mistake.

    near = get_close_matches(name, known, 1)
    return f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"


def _snake(key: str) -> str:
    return "".join("_" + letter.lower() if letter.isupper() else letter for letter in key.replace("-", "_"))


def _fits(item: object, kind: str) -> bool:
    match kind:
        case "text":
            return isinstance(item, str)
        case "a whole number":
            return isinstance(item, int) and not isinstance(item, bool)
        case "a number":
            return isinstance(item, (int, float)) and not isinstance(item, bool)
        case "true or false":
            return isinstance(item, bool)
        case "a list of texts":
            return isinstance(item, list) and all(isinstance(part, str) for part in item)
        case _:
            return isinstance(item, dict) and all(isinstance(part, str) for pair in item.items() for part in pair)
