"""Which worker a name means: of a work with several tries the newest, `NAME@1` the first one.

The log says which workers do the same work. Few works have several tries, so it is searched, not folded; and in a task
in which no work has any, `tries.lock` is missing.
"""

from __future__ import annotations

import contextlib
import os
import re

from agentctl.adapters.eventlog import blocks_of
from agentctl.adapters.opening import open_plain
from agentctl.adapters.taskdir import TaskDir
from agentctl.domain import events as ev
from agentctl.domain.events import BadLine, decode
from agentctl.domain.worker.tries import Tries
from agentctl.errors import AgentctlError, NotFound

_NTH = re.compile(r"([^@]+)@([1-9][0-9]{0,3})")
_KEYS = ("retryOf", "continues")
#: What the lines of further tries and of removals have in them; behind a removal each start may be that of another
#: worker under an old name.
_FURTHER = re.compile(b"|".join(f'"{key}"'.encode() for key in (*_KEYS, ev.REMOVED)))
_ANY_START = re.compile(b"|".join(f'"{key}"'.encode() for key in (*_KEYS, ev.REMOVED, ev.QUEUED)))


def tries_of(task: TaskDir) -> Tries:
    """Return the works of a task.

    Raises:
        AgentctlError, OSError: The log cannot be read.
    """
    found, gone = Tries(), set[str]()
    if not task.tries_lock.exists():
        return found
    for _, lines in blocks_of(task.events, 0):
        if (_ANY_START if gone else _FURTHER).search(lines) is None:
            continue
        wanted = _ANY_START if gone or _REMOVED in lines else _FURTHER
        for row in decode(b"".join(line + b"\n" for line in lines.split(b"\n") if wanted.search(line)), 1):
            if not isinstance(row, BadLine):
                _take_in(row[1], found, gone)
    return found


_REMOVED = f'"{ev.REMOVED}"'.encode()


def _take_in(event: ev.Event, found: Tries, gone: set[str]) -> None:
    """Take a start or a removal into the works of a task.

    Args:
        gone: The names of removed workers that no other worker has.
    """
    instance, payload = event.get("agentInstance"), event["payload"]
    if event["type"] == ev.REMOVED and instance:
        found.remove(instance)
        gone.add(instance)
    elif event["type"] == ev.QUEUED and instance:
        gone.discard(instance)
        before = next((payload[key] for key in _KEYS if isinstance(payload.get(key), str)), None)
        if before is not None and before not in gone and instance != before:
            found.add(instance, before)


def note_tries(task: TaskDir) -> None:
    """Note that works of a task have further tries, before the first event of one."""
    os.close(open_plain(task.tries_lock, os.O_WRONLY | os.O_CREAT))


def worker_meant(task: TaskDir, name: str) -> str:
    """Return the worker that a person means by a name; a name that says nothing of tries if nothing can be read.

    Raises:
        NotFound: The work has fewer tries.
    """
    work, number = _parts(name)
    tries = Tries()
    with contextlib.suppress(AgentctlError, OSError):
        tries = tries_of(task)
    if number is None:
        return tries.newest(work)
    known = tries.of_work(tries.work_of(work))
    if number > len(known):
        said = "1 try" if len(known) == 1 else f"{len(known)} tries"
        raise NotFound(
            f"no worker {name!r} in task {task.id}: {work} has had {said}", hint=f"known: {', '.join(known)}"
        )
    return known[number - 1]


def is_one_try(name: str) -> bool:
    """Return whether a name says which try of a work is meant: `NAME@1`."""
    return _parts(name)[1] is not None


def _parts(name: str) -> tuple[str, int | None]:
    found = _NTH.fullmatch(name)
    return (name, None) if found is None else (found[1], int(found[2]))
