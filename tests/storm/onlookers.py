"""Who looks on in a storm: a screen on a terminal, a server, and a client that follows its stream."""

from __future__ import annotations

import http.client
import re
import threading
from typing import Any

from tests import support
from tests.life import passes
from tests.storm.world import World
from tests.support import wait_until
from tests.terminal import Terminal
from tests.web.support import Server

#: What is between the beginning of a terminal's other screen and its end.
_ON_SCREEN = re.compile(r"\x1b\[\?1049h.*?\x1b\[\?1049l", re.DOTALL)


class Screen:
    """`agentctl watch`, with somebody who reads what it draws."""

    def __init__(self) -> None:
        self._terminal = Terminal([*support.PROGRAM, "watch"])
        self._reader = threading.Thread(target=self._terminal.drain, daemon=True)
        self._reader.start()

    def wrong(self) -> list[str]:
        """Leave it; return what was wrong."""
        found = [] if self._terminal.process.poll() is None else ["watch has ended in the middle of the storm"]
        if not found:
            self._terminal.write(b"q")
        self._reader.join(30)
        code, sent = self._terminal.process.wait(30), self._terminal.sent.decode(errors="replace")
        # On its screen it may show the last line of a worker that was interrupted: a traceback, too.
        beside = _ON_SCREEN.sub("", sent)
        if code != 0 or "Traceback" in beside:
            found.append(f"watch: exit code {code}: {beside!r}, after ...{sent[-3000:]!r}")
        return found


class Follower:
    """A server, and a client that follows all events from the start, however often the connection breaks."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._server = Server(world.root, "--port", "0")
        self._seen: list[int] = []
        self._is_over = False
        self.breaks = 0
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def _follow(self) -> None:
        cursor: str | None = None
        while not self._is_over and self._server.is_running:
            try:
                with self._server.stream("" if cursor else "?since=start", cursor) as stream:
                    while True:
                        message = stream.next()
                        cursor = stream.cursor or cursor
                        if message.event == "event" and message.data["taskId"] == self._world.task.path.name:
                            self._seen.append(message.data["seq"])
            except (OSError, EOFError, AssertionError, ValueError, http.client.HTTPException):
                self.breaks += 1
                passes(0.1)

    def wrong(self, events: int) -> list[str]:
        """End the server once its client has all events; return what was wrong."""
        if not self._server.is_running:
            return [f"serve has ended in the middle of the storm: {self._server.process.communicate()[1]}"]
        wait_until(
            lambda: len(self._seen), 30, accept=lambda seen: seen >= events, what=f"{events} events in the stream"
        )
        self._is_over = True
        said: Any = self._server.stop(code=None)
        self._thread.join(30)
        found = [] if self._seen == list(range(1, events + 1)) else [f"the stream had {self._seen}, of {events}"]
        return found + ([f"serve: {said}"] if "bug" in said else [])
