"""A terminal as a person has it: a shell in a window of tmux, on a server of its own that ends with the test."""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from typing import TypeVar

import pytest
from rich.cells import cell_len

from tests.support import PROGRAM, environment, is_alive, wait_until

needs_tmux = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")
#: What the shell prints where a person would type the next command.
PROMPT = "ready>"
#: What stands before the first character of a row: how it is drawn.
_BEGINNING = re.compile(r"(?:\x1b\[[\d;]*m)*")


W = TypeVar("W", bound="TmuxWindow")


class TmuxWindow:
    """A shell in a window of tmux.

    Args:
        folder: Where the server has its socket; the path of a socket is short (unix(7)).
    """

    def __init__(self, folder: str, width: int, height: int) -> None:
        self.width, self.height = width, height
        self._env = environment(
            {"TMUX_TMPDIR": folder, "TMUX": None, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8", "NO_COLOR": None,
             "COLUMNS": None, "LINES": None, "COLORFGBG": None, "ENV": None}
        )  # fmt: skip
        self.tmux("-f", "/dev/null", "start-server", ";", "set", "-g", "default-terminal", "tmux-256color", ";",
                  "set", "-g", "set-clipboard", "on", ";", "set", "-sg", "escape-time", "10", ";",
                  "new-session", "-d", "-x", str(width), "-y", str(height), "sh")  # fmt: skip
        self.server = int(self.ask("pid"))
        self.title = self.ask("pane_title")

    def wait_for_shell(self) -> None:
        """Wait until the shell takes a command."""
        self.write(f"PS1='{PROMPT}'; clear")
        self.press("Enter")
        self.until(lambda: self.text().startswith(PROMPT), "the shell")

    def tmux(self, *args: str) -> str:
        """Run a command of tmux; return what it prints."""
        argv = ["tmux", "-u", "-L", "test", *args]
        done = subprocess.run(argv, env=self._env, capture_output=True, timeout=20, check=True)
        return done.stdout.decode()

    def ask(self, name: str) -> str:
        """Return what tmux knows about the window (FORMATS in tmux(1))."""
        return self.tmux("display-message", "-p", f"#{{{name}}}").rstrip("\n")

    def text(self, *, styled: bool = False) -> str:
        """Return what is on the terminal."""
        return self.tmux("capture-pane", "-p", *(["-e"] if styled else []))

    def rows(self) -> list[str]:
        """Return the rows of the terminal."""
        return self.text().split("\n")[: self.height]

    def row_of(self, text: str) -> str:
        """Return the first row with a text."""
        return next(row for row in self.rows() if text in row)

    def cursor_row(self) -> int:
        """Return which row is drawn in reverse from its beginning: the one with the cursor of the list."""
        rows = self.text(styled=True).split("\n")
        styles = ["".join(_BEGINNING.findall(row, 0, 64)[:1]) for row in rows]
        return next((place for place, style in enumerate(styles) if "\x1b[7m" in style), -1)

    def until(self, is_so: Callable[[], object], what: str, limit_s: float = 20) -> None:
        """Wait until something is so; fail with what is on the terminal if it never is."""
        seen = ["", False]

        def look() -> list[object]:
            seen[:] = "\n" + self.text(), bool(is_so())
            return list(seen)

        wait_until(look, limit_s, what=what, accept=lambda found: found[1])

    def shows(self, *texts: str) -> None:
        """Wait until all of these are on the terminal."""
        self.until(lambda: all(text in self.text() for text in texts), f"{texts} on the terminal")

    def shows_no(self, *texts: str) -> None:
        """Wait until none of these is on the terminal."""
        self.until(lambda: not any(text in self.text() for text in texts), f"{texts} to go from the terminal")

    def press(self, *keys: str) -> None:
        """Press keys, by their names in tmux."""
        self.tmux("send-keys", *keys)

    def write(self, text: str) -> None:
        """Type a text."""
        self.tmux("send-keys", "-l", text)

    def resize(self, width: int, height: int) -> None:
        """Change the size of the terminal."""
        self.width, self.height = width, height
        self.tmux("resize-window", "-x", str(width), "-y", str(height))

    # -- the screen in it ------------------------------------------------------------------------------------------

    def open_watch(self) -> int:
        """Type `agentctl watch`, and wait until it is drawn; return its pid."""
        self.write(f"clear; {' '.join(PROGRAM)} watch; echo code=$?")
        self.press("Enter")
        self.until(lambda: self.ask("alternate_on") == "1", "the screen of watch")
        self.shows("agentctl  ", "⏎ Open")
        self.until(lambda: "reading" not in self.text(), "all tasks to be read")
        shell = self.ask("pane_pid")
        with open(f"/proc/{shell}/task/{shell}/children", encoding="ascii") as file:
            return int(file.read().split()[0])

    def is_left(self, code: int) -> None:
        """Wait for the end of watch, and check that the terminal is as it was before."""
        self.shows(f"code={code}", PROMPT)
        assert (self.ask("alternate_on"), self.ask("cursor_flag")) == ("0", "1")
        assert self.ask("pane_title") == self.title
        modes = ("mouse_any_flag", "keypad_flag", "keypad_cursor_flag", "origin_flag")
        assert [name for name in modes if self.ask(name) == "1"] == []
        self.write("echo t'y'ped")
        self.press("Enter")
        self.shows("typed")

    def is_whole(self) -> None:
        """Wait until head and footer are where they belong, and check that no row is wider than the terminal."""
        self.until(
            lambda: self.rows()[0].startswith(" agentctl  ") and self.rows()[self.height - 1].startswith("? Keys"),
            "head and footer",
        )
        assert [row for row in self.rows() if cell_len(row) > self.width] == []


@contextlib.contextmanager
def opened(kind: type[W], width: int, height: int) -> Iterator[W]:
    """Open a window of a kind, and end its server with everything in it."""
    with tempfile.TemporaryDirectory(prefix="agentctl-tmux-") as folder:
        window = kind(folder, width, height)
        try:
            window.wait_for_shell()
            yield window
        finally:
            with contextlib.suppress(subprocess.CalledProcessError):
                window.tmux("kill-server")
            wait_until(lambda: not is_alive(window.server), what="the tmux server to end")


def tmux_window(width: int, height: int) -> contextlib.AbstractContextManager[TmuxWindow]:
    """Open a window, and end its server with everything in it."""
    return opened(TmuxWindow, width, height)
