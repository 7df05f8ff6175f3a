"""Asks the engine once every so often, for all stand-ins of a person together.

Whoever finds first that the last answer is old enough takes the lock and asks; the others go on with what there is.
"""

from __future__ import annotations

import contextlib
import os

from agentctl.adapters.clock import since_boot
from agentctl.adapters.files import write_whole
from agentctl.adapters.locks import try_lock
from agentctl.adapters.opening import read_bytes
from agentctl.adapters.tails import file_version
from agentctl.errors import AgentctlError
from agentctl.runners.runner import EngineDown, Runner
from agentctl.supervision.worker.engine_answers import EngineAnswer, answer_in, answered_at, as_lines, file_of

try:
    from _blake2 import blake2b  # hashlib loads OpenSSL: half a megabyte.
except ImportError:
    from hashlib import blake2b

#: Which cluster is meant: each has answers of its own.
_CLUSTER = ("SLURM_CONF", "SLURM_CLUSTERS", "PATH")

#: How soon the engine is asked again, if its answer could not be kept.
_AGAIN_S = 1.0
#: By how much the stand-ins differ in when an answer is too old for them, as a part of the interval: 1,000 that see it
#: at the same moment would all wake up in order to find that one of them asks.
_SPREAD = 0.5


class EngineBoard:
    """The last answer of one engine, about one launch."""

    def __init__(self, runner: Runner, launch_id: str, every_s: float) -> None:
        self._runner, self._launch_id, self._every_s = runner, launch_id, every_s
        self._patience_s = every_s * (1 + _SPREAD * int(launch_id[:4], 16) / 0xFFFF)
        where = "\0".join(os.environ.get(name, "") for name in _CLUSTER)
        self._path = file_of(runner.name, blake2b(os.fsencode(where), digest_size=6).hexdigest())
        self._version: tuple[int, int, int] | None = None
        self._answer = EngineAnswer()
        self._next_question = 0.0

    @property
    def name(self) -> str:
        """The name of the file with the answers."""
        return self._path.name

    def last(self) -> EngineAnswer:
        """Return the last answer, whoever asked for it."""
        with contextlib.suppress(AgentctlError, OSError):
            version = file_version(self._path)
            if version != self._version:
                self._answer, self._version = answer_in(read_bytes(self._path), self._launch_id), version
        return self._answer

    @property
    def is_due(self) -> bool:
        """Whether it is time to ask again."""
        return self.due_in_s() <= 0

    def due_in_s(self) -> float:
        """Return in how many seconds it will be time to ask, if nobody else does until then."""
        # Few of those who ask this then look at what it said, which is the longer part.
        now, asked_at = since_boot(), answered_at(self._path)
        return max(self._next_question, asked_at + self._patience_s if asked_at <= now else 0.0) - now

    def ask(self) -> None:
        """Ask the engine, unless somebody else does or has just done so. This may take half a minute."""
        self._next_question = since_boot() + _AGAIN_S
        with contextlib.suppress(AgentctlError, OSError):
            lock = try_lock(f"{self._path}.lock")
            if lock is None:
                self._next_question = since_boot() + self._patience_s  # An engine that is down takes half a minute.
                return
            try:
                if not 0 <= since_boot() - self.last().at < self._every_s:
                    write_whole(self._path, self._asked(), durable=False)
            finally:
                os.close(lock)

    def _asked(self) -> bytes:
        try:
            launches, problem = self._runner.poll(), ""
        except EngineDown as error:
            launches, problem = {}, error.message or "it does not answer"
        return as_lines(since_boot(), problem, launches)
