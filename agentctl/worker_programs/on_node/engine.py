"""Talks to the engine in a thread of its own: one that is down holds each command up for half a minute."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable

from agentctl.errors import AgentctlError
from agentctl.lean import NamedTuple
from agentctl.runners.runner import EngineDown, Rejected


class Said(NamedTuple):
    """How a command to the engine went."""

    what: str
    #: What the engine answered.
    answer: str = ""
    #: Why the engine has not carried it out.
    problem: str = ""
    #: It never will.
    is_final: bool = False


class Engine:
    """A queue of commands to an engine, carried out one after the other.

    Args:
        wakes: A descriptor; a byte is written to it when a command is through.
    """

    def __init__(self, wakes: int) -> None:
        self._wakes = wakes
        self._waiting: deque[tuple[str, Callable[[], str | None]]] = deque()
        self._done: deque[Said] = deque()
        self._work = threading.Semaphore(0)
        self._names: set[str] = set()
        threading.Thread(target=self._run, daemon=True).start()

    def has(self, what: str) -> bool:
        """Return whether a command of this name waits, or is being carried out."""
        return what in self._names

    def do(self, what: str, command: Callable[[], str | None]) -> None:
        """Have a command carried out, unless one of this name is under way."""
        if what not in self._names:
            self._names.add(what)
            self._waiting.append((what, command))
            self._work.release()

    def take(self) -> list[Said]:
        """Return how the commands went that are through since the last call."""
        found = []
        while self._done:
            found.append(self._done.popleft())
            self._names.discard(found[-1].what)
        return found

    def _run(self) -> None:
        while True:
            self._work.acquire()
            what, command = self._waiting.popleft()
            self._done.append(_said(what, command))
            os.write(self._wakes, b"!")


def _said(what: str, command: Callable[[], str | None]) -> Said:
    try:
        return Said(what, command() or "")
    except Rejected as error:
        return Said(what, problem=error.message, is_final=True)
    except EngineDown as error:
        return Said(what, problem=error.message or "it does not answer")
    except (AgentctlError, OSError) as error:
        return Said(what, problem=str(error))
