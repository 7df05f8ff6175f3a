"""Runs an agent program once, before it is used, to read what it prints: the person's own settings."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from typing import Any

from agentctl.drivers.dialogue import Driver
from agentctl.drivers.order import Order
from agentctl.errors import Argument, Refused, WithArguments
from agentctl.worker_programs.agent_host.program.program_environ import program_environ

#: How long the program may take to print it.
_QUERY_S = 60


class Busy(Refused):
    """Another start of the program was in the way: a further try may do."""


class Query:
    """A command line of an agent program, at work; what it prints is what was asked for.

    It is in the group of its host, so the SIGINT of a cancel ends it.

    Raises:
        Refused: It could not be started.
    """

    def __init__(self, argv: list[str], order: Order, driver: Driver) -> None:
        self.argv, self._driver = argv, driver
        try:
            self._process = subprocess.Popen(
                argv, env=program_environ(order, driver), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )  # fmt: skip
        except OSError as error:
            raise Refused(f"{driver.name} could not be queried: {error}", hint=driver.install) from error

    def printed(self) -> bytes:
        """Wait for its end; return what it has printed.

        Raises:
            Busy: It failed as a program does that is busy with another start.
            Refused: It took too long, or failed in another way.
        """
        try:
            printed, complaints = self._process.communicate(timeout=_QUERY_S)
        except subprocess.TimeoutExpired as error:
            self.end()
            raise self._refused(f"it did not end within {_QUERY_S} s") from error
        code, said = self._process.returncode, complaints.decode(errors="replace")
        if code == 0:
            return printed
        is_busy = code > 0 and any(text in said for text in self._driver.busy)
        # Without what it said: of a file with an error, opencode prints the keys as well.
        raise self._refused(f"exit code {code}", Busy if is_busy else Refused)

    def end(self) -> None:
        """Kill it, if it is still at work."""
        with self._process:  # Closes its pipes, and waits for its end.
            self._process.kill()

    def _refused(self, why: str, kind: type[Refused] = Refused) -> Refused:
        what = f"{self._driver.name} could not be queried: {why}"
        return kind(what, hint=f"see what `{' '.join(self.argv)}` says")


def own_settings(query: Query) -> Mapping[str, Any]:
    """Return the person's own settings of a program, which a query prints.

    Raises:
        Busy: As of the query.
        Refused: It prints none that can be read: what the person denies in them would not be denied.
    """
    try:
        found = json.loads(query.printed())
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        what = f"{' '.join(query.argv)} printed no settings: what they deny would not be denied"
        raise Refused(
            what, hint=WithArguments("`", Argument("permissions", "own"), "` starts it as your settings of it say")
        )
    return found
