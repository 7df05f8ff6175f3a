"""What is known of a launch in its engine: how often that took it, why it did not, and where its answers are."""

from __future__ import annotations

import contextlib

from agentctl.adapters.files import read_known, to_json, write_whole
from agentctl.adapters.taskdir import LaunchDir
from agentctl.domain.text.numbers import finite
from agentctl.errors import AgentctlError
from agentctl.lean import Any
from agentctl.supervision.worker.engine_answers import submitted_at


class LaunchHandle:
    """The file in which it is noted. Only stand-ins write it, and of these there is one.

    Args:
        runner: The name of the runner.
        answers: The name of the file with the engine's answers.
    """

    def __init__(self, launch: LaunchDir, runner: str, answers: str) -> None:
        self._file, self._own = launch.handle, {"runner": runner, "answers": answers}
        self._value = read_known(launch.handle)

    @property
    def submissions(self) -> int:
        """How often the engine had taken the launch when that was noted last."""
        return int(finite(self._value.get("submissions")) or 0)

    @property
    def submitted_at(self) -> float:
        """When the engine took it last, on the clock of this boot; 0 if that was in another one."""
        return submitted_at(self._value)

    @property
    def final_problem(self) -> str | None:
        """Why the engine will never take it."""
        return str(self._value.get("problem")) if self._value.get("isFinal") else None

    @property
    def job(self) -> str:
        """The engine's own name for the launch; "" while it has not said one."""
        return str(self._value.get("job") or "")

    def note(self, submissions: int, **more: Any) -> None:
        """Note what is known now, if that is news; a key without a value is removed."""
        value = {**self._value, **self._own, "submissions": submissions, **more}
        value = {key: item for key, item in value.items() if item is not None}
        if value != self._value:
            with contextlib.suppress(AgentctlError, OSError):
                write_whole(self._file, to_json(value), durable=False)
                self._value = value
