"""Asks an agent program something before anything is said to it: what it prints for a command line."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Mapping
from random import random
from typing import Any

from agentctl.drivers.dialogue import Driver
from agentctl.drivers.order import Order
from agentctl.driving.starting import environ_of
from agentctl.errors import Refused

#: How long the program may take to answer.
_QUERY_S = 60
#: Of its standard error: so many characters of its end tell why it failed.
_MOST_SAID = 300
#: Between two starts of a program that is busy with another start of it, at least, and up to twice as long: those that
#: were started at the same time then are not once more.
_PAUSES_S = (0.5, 1.0, 2.0, 4.0, 8.0)
#: So often it is started again.
MOST_AGAIN = len(_PAUSES_S)


def pause_before(again: int) -> float:
    """Return the seconds to wait before a program that was busy is started again for the nth time, from 1."""
    return _PAUSES_S[again - 1] * (1 + random())


class Query:
    """A command line of an agent program, at work; what it prints is the answer.

    A cancel interrupts it: it is in the group of the host, which waits for it.

    Raises:
        Refused: It could not be started.
    """

    def __init__(self, argv: list[str], order: Order, driver: Driver) -> None:
        self.argv = argv
        self._environ, self._driver = environ_of(order, driver), driver
        self._process = self._begun()

    def answer(self) -> bytes:
        """Wait for the answer and return it; where another start of the program was in the way, ask again.

        Raises:
            Refused: It took too long, or failed.
        """
        again = 0
        while True:
            printed, complaints = self._ended()
            code = self._process.returncode
            if code == 0:
                return printed
            again += 1
            if again > MOST_AGAIN or not any(text in complaints for text in self._driver.busy):
                raise self._refused(f"exit code {code}: {complaints[-_MOST_SAID:]}")
            time.sleep(pause_before(again))
            self._process = self._begun()

    def _begun(self) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(
                self.argv, env=self._environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
        except OSError as error:
            raise self._refused(str(error), self._driver.install) from error

    def _ended(self) -> tuple[bytes, str]:
        try:
            printed, complaints = self._process.communicate(timeout=_QUERY_S)
        except subprocess.TimeoutExpired as error:
            self._process.kill()
            raise self._refused(f"no answer within {_QUERY_S} s") from error
        return printed, complaints.decode(errors="replace").strip()

    def _refused(self, why: str, hint: str | None = None) -> Refused:
        hint = hint or f"`{' '.join(self.argv)}` is what it was asked"
        return Refused(f"{self._driver.name} could not be queried: {why}", hint=hint)


def own_settings(query: Query) -> Mapping[str, Any]:
    """Return the person's own settings of a program, which are the answer to a query.

    Raises:
        Refused: It prints none that can be read: what the person denies in them would not be denied.
    """
    try:
        found = json.loads(query.answer())
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        what = f"{' '.join(query.argv)} printed no settings: what they deny would not be denied"
        raise Refused(what, hint="`--permissions own` starts it as your settings of it say")
    return found
