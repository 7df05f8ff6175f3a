"""The lines of `spawn --batch`: JSON with the names of spawn's options."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from typing import Any

from agentctl.errors import UsageError
from agentctl.operations.start.options import OF_AGENTS, OF_WORKERS, TEXT, TEXTS
from agentctl.operations.start.requests import AgentWork, SpawnRequest

_KINDS = {"argv": TEXTS} | {option.name: option.kind for option in OF_WORKERS}
#: Keys of work for an agent; a line has a prompt and these, or an argv.
_WORK = {"prompt": TEXT} | {option.name: option.kind for option in OF_AGENTS}

#: What a line may have.
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


def parse_request(line: str, where: str) -> SpawnRequest:
    """Return the request in one line; errors name `where` (source:line)."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{where}: not JSON: {error}") from error
    if not isinstance(value, dict):
        raise UsageError(f'{where}: it must be an object, like {{"argv": ["true"]}}')
    return request_from(value, where)


def request_from(value: dict[str, Any], where: str, known: Collection[str] = KEYS) -> SpawnRequest:
    """Return the request in a mapping; its keys may be spelled like options, in snake case or in camel case.

    Args:
        where: Put before the message of an error; empty where only one request can be meant.
        known: The keys as the caller offers them.
    """
    at = f"{where}: " if where else ""
    fields: dict[str, Any] = {}
    for key, item in value.items():
        name = _snake(key)
        kind = _KINDS.get(name) or _WORK.get(name)
        if kind is None:
            raise UsageError(f"{at}unknown key {key!r}", hint=f"known: {', '.join(known)}")
        if name in fields:
            raise UsageError(f"{at}{key!r} is given twice")
        if not _fits(item, kind):
            raise UsageError(f"{at}{key} must be {kind}, not {item!r}")
        fields[name] = item
    work = {name: fields.pop(name) for name in _WORK if name in fields}
    if not fields.get("argv") and "prompt" not in work:
        raise UsageError(
            f"{at}argv is missing", hint='argv is a list: ["python3", "job.py"]; an agent has a prompt instead'
        )
    if fields.get("argv") and work:
        raise UsageError(f"{at}{min(work)} is for an agent, and argv for a command: give one of them")
    return SpawnRequest(**fields, work=AgentWork(**work) if work else None, where=where)


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
