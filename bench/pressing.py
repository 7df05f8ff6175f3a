"""A pager over a file, whose keys come through a pipe: prints how long each took until it was drawn.

`python -m bench.pressing transcript|log FILE` reads lines from stdin: the time at which a key was pressed (of the
system's monotonic clock) and its name. At the end of the input it prints the times and its largest resident size as
JSON.
"""

from __future__ import annotations

import json
import resource
import sys
import threading
import time
from typing import Any

from textual import events
from textual.app import App, ComposeResult

from agentctl.interfaces.screen.texts.activity_source import ActivitySource
from agentctl.interfaces.screen.texts.log_source import LogSource
from agentctl.interfaces.screen.texts.pager import Pager

SIZE = (160, 50)


class Pressed(App[None]):
    """Shows one pager, and takes down when it has drawn what a key asked for."""

    def __init__(self, pager: Pager) -> None:
        super().__init__()
        self.pager = pager
        #: When the keys that are not yet drawn were pressed.
        self.waiting: list[float] = []
        #: (how long it took in ms, whether the file was still being read)
        self.taken: list[tuple[float, bool]] = []
        self.read_s: float | None = None
        self._began = time.monotonic()
        self._top: object = None

    def compose(self) -> ComposeResult:
        """Show the pager alone."""
        yield self.pager

    def on_mount(self) -> None:
        """Begin to listen."""
        self.pager.focus()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        for line in sys.stdin:
            pressed, key = line.split()
            self.call_from_thread(self._press, float(pressed), key)
        self.call_from_thread(self.exit)

    def _press(self, pressed: float, key: str) -> None:
        self.waiting.append(pressed)
        self.post_message(events.Key(key, key if len(key) == 1 else None))

    def on_pager_grown(self) -> None:
        """Take down when all of the file has been read."""
        if self.read_s is None and not self.pager.is_reading:
            self.read_s = time.monotonic() - self._began

    def _display(self, screen: Any, renderable: Any) -> None:
        super()._display(screen, renderable)
        top = self.pager.top
        if self.waiting and top != self._top:
            now = time.monotonic()
            self.taken += [((now - pressed) * 1000, self.read_s is None) for pressed in self.waiting]
            self.waiting.clear()
        self._top = top


def main() -> int:
    """Run the app without a terminal."""
    kind, path = sys.argv[1:]
    source = ActivitySource(path) if kind == "transcript" else LogSource(path)
    app = Pressed(Pager(source, watches=True, follows=False))
    app.run(headless=True, size=SIZE)
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"taken": app.taken, "kib": largest, "readS": app.read_s, "paragraphs": len(source)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
