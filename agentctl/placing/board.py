"""What the engines said last, kept in memory for all stand-ins of a person: one question a while, however many ask.

Whoever finds that the last answer is old enough takes the lock and asks; the others go on with what there is. The file
has a line for each launch, and a stand-in reads its own one alone: with 1,000 of them, each would read 1,000 otherwise.
"""

from __future__ import annotations

import contextlib
import json
import os

from agentctl.adapters.clock import since_boot
from agentctl.adapters.files import write_whole
from agentctl.adapters.locks import try_lock
from agentctl.adapters.opening import read_bytes
from agentctl.domain.numbers import finite
from agentctl.domain.sightings import EngineState, Sighting
from agentctl.errors import AgentctlError
from agentctl.lean import NamedTuple
from agentctl.runners.runner import EngineDown, Runner
from agentctl.supervision.worker.environment import store_folder

try:
    from _blake2 import blake2b  # hashlib loads OpenSSL: half a megabyte.
except ImportError:
    from hashlib import blake2b

#: Which cluster is meant: each has a board of its own.
_CLUSTER = ("SLURM_CONF", "SLURM_CLUSTERS", "PATH")

#: How soon it is looked at again whether the engine has to be asked, while somebody else asks it.
_AGAIN_S = 1.0


class EngineAnswer(NamedTuple):
    """What an engine said last of one launch."""

    #: When, in seconds since this machine was started; 0 if it was never asked.
    at: float = 0.0
    #: Why the engine has not answered; "" if it has.
    problem: str = ""
    seen: Sighting = Sighting(EngineState.UNKNOWN)


class EngineBoard:
    """The last answer of one engine, about one launch."""

    def __init__(self, runner: Runner, launch_id: str, every_s: float) -> None:
        self._runner, self._launch_id, self._every_s = runner, launch_id, every_s
        where = "\0".join(os.environ.get(name, "") for name in _CLUSTER)
        mark = blake2b(os.fsencode(where), digest_size=6).hexdigest()
        self._path = store_folder() / f"engine-{runner.name}-{mark}.jsonl"
        self._version: tuple[int, int] | None = None
        self._answer = EngineAnswer()
        self._next_question = 0.0

    def last(self) -> EngineAnswer:
        """Return the last answer, whoever asked for it."""
        with contextlib.suppress(AgentctlError, OSError):
            found = os.stat(self._path)
            version = found.st_ino, found.st_mtime_ns
            if version != self._version:
                self._answer, self._version = answer_in(read_bytes(self._path), self._launch_id), version
        return self._answer

    @property
    def is_due(self) -> bool:
        """Whether it is time to ask again."""
        return since_boot() >= self._next_question and self._is_old

    @property
    def _is_old(self) -> bool:
        return not 0 <= since_boot() - self.last().at < self._every_s

    def ask(self) -> None:
        """Ask the engine, unless somebody else does or has just done so. This may take half a minute."""
        self._next_question = since_boot() + _AGAIN_S  # Whoever finds the lock taken would try it again at once.
        with contextlib.suppress(AgentctlError, OSError):
            lock = try_lock(f"{self._path}.lock")
            if lock is None:
                return
            try:
                if self._is_old:
                    write_whole(self._path, self._asked(), durable=False)
            finally:
                os.close(lock)

    def _asked(self) -> bytes:
        try:
            launches, problem = self._runner.poll(), ""
        except EngineDown as error:
            launches, problem = {}, error.message or "it does not answer"
        lines = [{"at": since_boot(), "problem": problem}, *([name, *seen] for name, seen in launches.items())]
        return "".join(f"{json.dumps(line)}\n" for line in lines).encode()


def answer_in(data: bytes, launch_id: str) -> EngineAnswer:
    """Return the answer about a launch that the content of the file gives; none at all where that is damaged.

    >>> data = b'{"at": 7, "problem": ""}\\n["0a", "running", "RUNNING", "n1", "None", "12"]\\n'
    >>> answer_in(data, "0a").seen.node, answer_in(data, "0b").seen.state.value, answer_in(b"?", "0a").at
    ('n1', 'absent', 0.0)
    """
    with contextlib.suppress(ValueError, TypeError, AttributeError):
        head = json.loads(data[: data.find(b"\n") + 1])
        at, problem = finite(head.get("at")), str(head.get("problem") or "")
        if at is not None:
            return EngineAnswer(at, problem, _seen_in(data, launch_id, problem))
    return EngineAnswer()


def _seen_in(data: bytes, launch_id: str, problem: str) -> Sighting:
    if problem:
        return Sighting(EngineState.UNKNOWN, reason=problem)
    begin = data.find(b'\n["%s", ' % launch_id.encode()) + 1
    if not begin:
        return Sighting(EngineState.ABSENT)
    _, state, *words = json.loads(data[begin : data.find(b"\n", begin)])
    return Sighting(EngineState(state), *map(str, words[: len(Sighting._fields) - 1]))
