"""What the engines said last: a file in memory for each, which one stand-in writes for all, and everybody reads.

The first line is about the answer, and each launch has a line of its own, so that nobody parses those of 1,000 others.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Mapping

from agentctl.adapters import processes
from agentctl.adapters.clock import since_boot
from agentctl.adapters.opening import open_plain, read_bytes
from agentctl.adapters.paths import FilePath
from agentctl.domain.text.numbers import finite
from agentctl.domain.worker.sightings import EngineState, Sighting
from agentctl.errors import AgentctlError
from agentctl.lean import Any, NamedTuple
from agentctl.supervision.worker.environment import store_folder

#: A problem is what a command has said, and may be of any length. The first line is never longer than that in bytes.
_LONGEST_PROBLEM, _LONGEST_HEAD = 500, 8192
_NAME = re.compile(r"engine-[a-z0-9_-]{1,64}-[0-9a-f]{12}\.jsonl")


class EngineAnswer(NamedTuple):
    """What an engine said last of one launch."""

    #: When, in seconds since this machine was started; 0 if it was never asked.
    at: float = 0.0
    #: Why the engine has not answered; "" if it has.
    problem: str = ""
    seen: Sighting = Sighting(EngineState.UNKNOWN)


def file_of(runner: str, cluster: str) -> FilePath:
    """Return the file with the answers of an engine.

    Args:
        cluster: 12 hex digits that tell the clusters of a person apart.
    """
    return store_folder() / f"engine-{runner}-{cluster}.jsonl"


def answer_for(handle: Mapping[str, Any], launch_id: str) -> EngineAnswer | None:
    """Return what the engine said of a launch since it was submitted, for those who only show it.

    Args:
        handle: What the stand-in has noted of the launch; its `answers` names the file with the answers.
    """
    name = handle.get("answers")
    if not isinstance(name, str) or _NAME.fullmatch(name) is None:
        return None
    with contextlib.suppress(AgentctlError, OSError):
        answer = answer_in(read_bytes(store_folder() / name), launch_id)
        return answer if submitted_at(handle) < answer.at <= since_boot() else None
    return None


def submitted_at(handle: Mapping[str, Any]) -> float:
    """Return when a launch was submitted last, on the clock of this boot; 0 if that was in another one."""
    is_of_this_boot = handle.get("boot") == processes.boot_id()
    return (finite(handle.get("at")) or 0.0) if is_of_this_boot else 0.0


def as_lines(at: float, problem: str, launches: Mapping[str, Sighting]) -> bytes:
    """Return the content of the file.

    >>> as_lines(7.5, "", {"0a": Sighting(EngineState.RUNNING, "RUNNING", "n1")})
    b'{"at": 7.5, "problem": ""}\\n["0a", "running", "RUNNING", "n1", "", ""]\\n'
    """
    lines = [{"at": at, "problem": problem[:_LONGEST_PROBLEM]}, *([name, *seen] for name, seen in launches.items())]
    return "".join(f"{json.dumps(line)}\n" for line in lines).encode()


def answer_in(data: bytes, launch_id: str) -> EngineAnswer:
    """Return the answer about a launch that the content of the file gives; none at all where that is damaged.

    >>> data = b'{"at": 7, "problem": ""}\\n["0a", "running", "RUNNING", "n1", "", "12"]\\n'
    >>> answer_in(data, "0a").seen.node, answer_in(data, "0b").seen.state.value, answer_in(b"?", "0a").at
    ('n1', 'absent', 0.0)
    """
    with contextlib.suppress(ValueError, TypeError, AttributeError):
        at, problem = _head_of(data)
        if at is not None:
            return EngineAnswer(at, problem, _seen_in(data, launch_id, problem))
    return EngineAnswer()


def answered_at(path: FilePath) -> float:
    """Return when the engine was asked last, by a look at the beginning of the file; 0 if it never was."""
    with contextlib.suppress(AgentctlError, OSError, ValueError, TypeError, AttributeError):
        fd = open_plain(path)
        try:
            return _head_of(os.read(fd, _LONGEST_HEAD))[0] or 0.0
        finally:
            os.close(fd)
    return 0.0


def _head_of(data: bytes) -> tuple[float | None, str]:
    head = json.loads(data[: data.find(b"\n") + 1])
    return finite(head.get("at")), str(head.get("problem") or "")


def _seen_in(data: bytes, launch_id: str, problem: str) -> Sighting:
    if problem:
        return Sighting(EngineState.UNKNOWN, reason=problem)
    begin = data.find(b'\n["%s", ' % launch_id.encode()) + 1
    if not begin:
        return Sighting(EngineState.ABSENT)
    _, state, *words = json.loads(data[begin : data.find(b"\n", begin)])
    return Sighting(EngineState(state), *map(str, words[: len(Sighting._fields) - 1]))
