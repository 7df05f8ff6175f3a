"""What the engines said last, kept in memory for all stand-ins of a person: one question a while, however many ask.

Whoever finds that the last answer is old enough takes the lock and asks; the others go on with what there is.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Mapping

from agentctl.adapters.clock import since_boot
from agentctl.adapters.files import read_quietly, to_json, write_whole
from agentctl.adapters.locks import try_lock
from agentctl.adapters.paths import FilePath
from agentctl.domain.numbers import finite
from agentctl.domain.sightings import EngineState, Sighting
from agentctl.errors import AgentctlError
from agentctl.lean import Any, NamedTuple
from agentctl.runners.runner import EngineDown, Runner
from agentctl.supervision.worker.environment import store_folder

#: Which cluster is meant: each has a board of its own.
_CLUSTER = ("SLURM_CONF", "SLURM_CLUSTERS", "PATH")


class EngineAnswer(NamedTuple):
    """An engine's last answer."""

    #: Seconds since this machine was started.
    at: float = 0.0
    #: Why the engine has given none; "" if it has.
    problem: str = ""
    launches: Mapping[str, Sighting] = {}

    def of(self, launch_id: str) -> Sighting:
        """Return what it says of a launch."""
        if self.problem or not self.at:
            return Sighting(EngineState.UNKNOWN, reason=self.problem)
        return self.launches.get(launch_id, Sighting(EngineState.ABSENT))


class EngineBoard:
    """The last answer of one engine."""

    def __init__(self, runner: Runner, every_s: float) -> None:
        self._runner, self._every_s = runner, every_s
        where = "\0".join(os.environ.get(name, "") for name in _CLUSTER)
        mark = hashlib.blake2b(os.fsencode(where), digest_size=6).hexdigest()
        self._path = store_folder() / f"engine-{runner.name}-{mark}.json"
        self._version: tuple[int, int] | None = None
        self._answer = EngineAnswer()

    def last(self) -> EngineAnswer:
        """Return the last answer, whoever asked for it."""
        with contextlib.suppress(OSError):
            found = os.stat(self._path)
            version = found.st_ino, found.st_mtime_ns
            if version != self._version:
                self._answer, self._version = answer_in(self._path), version
        return self._answer

    @property
    def is_due(self) -> bool:
        """Whether it is time to ask again."""
        return not 0 <= since_boot() - self.last().at < self._every_s

    def ask(self) -> None:
        """Ask the engine, unless somebody else does or has just done so. This may take half a minute."""
        with contextlib.suppress(AgentctlError, OSError):
            lock = try_lock(f"{self._path}.lock")
            if lock is None:
                return
            try:
                if self.is_due:
                    write_whole(self._path, to_json(self._asked()), durable=False)
            finally:
                os.close(lock)

    def _asked(self) -> dict[str, Any]:
        try:
            launches, problem = self._runner.poll(), ""
        except EngineDown as error:
            launches, problem = {}, error.message or "it does not answer"
        return {
            "at": since_boot(),
            "problem": problem,
            "launches": {name: list(seen) for name, seen in launches.items()},
        }


def answer_in(path: FilePath) -> EngineAnswer:
    """Return the answer in a file; none at all where it is missing or damaged."""
    value = read_quietly(path)
    at, launches = finite(value.get("at")), value.get("launches")
    if at is None or not isinstance(launches, dict):
        return EngineAnswer()
    found = {}
    for name, fields in launches.items():
        with contextlib.suppress(ValueError, TypeError):
            state, *words = fields
            found[str(name)] = Sighting(EngineState(state), *map(str, words[: len(Sighting._fields) - 1]))
    return EngineAnswer(at, str(value.get("problem") or ""), found)
