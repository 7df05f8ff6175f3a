"""At stake: whoever has nothing but README's first screen has answered an agent's question within five minutes.

The lines are typed as they stand there, in tmux, on a machine with pipx and the agents' programs, which are stand-ins.
What is on the terminal after each step is docs/first-five-minutes.md: `python -m tests.extras.first_screen` writes it.
"""

from __future__ import annotations

import os
import re
import tempfile
import time
from pathlib import Path
from unittest.mock import patch

from agentctl.domain.question import SETTLES_S
from tests.agent_steps import put_vendors
from tests.extras.printed import World, checkout_in
from tests.readme import first_lines, install_line
from tests.support import REPOSITORY
from tests.tmux import TmuxWindow, needs_tmux, tmux_window

PAGE = REPOSITORY / "docs" / "first-five-minutes.md"
MOST_S = 300
SIZE = (100, 24)
_FOLDER = "hello"
_BLANK, _TWO_BLANK = re.compile(r"\n{3,}"), "\n\n\n"
_HEAD = """# The first five minutes

From a machine without agentctl to an agent's answered question, with README's first screen alone. Each line was typed
in a terminal of tmux as it stands there; what follows it was on that terminal then. For Claude Code and Codex there
were stand-ins that need no account (`tests/workers/vendors.py`); your agents will use other words. Of empty rows that
follow one another two are left.

`python -m tests.extras.first_screen` makes this page again, and `make test-extras` compares it with what there is to
see today.
"""
_TAIL = """
From the first line to the answer it took {seconds} seconds.
"""


class Recording:
    """A terminal in which somebody types, and the page on which its steps are written down."""

    def __init__(self, window: TmuxWindow, home: Path) -> None:
        self.window, self._home = window, home
        self.text = _HEAD
        #: What the shell prints where a line may be typed.
        window.write(f"PS1='$ '; cd {home}/agentctl")
        window.press("Enter")

    def types(self, line: str, *, limit_s: float = 60) -> None:
        """Type a line on a cleared terminal, and wait until the shell has carried it out."""
        self.window.write("clear")
        self.window.press("Enter")
        self.window.until(lambda: self.window.text().rstrip() == "$", "a cleared terminal")
        self.goes_on(line, limit_s=limit_s)

    def goes_on(self, line: str, *, limit_s: float = 60) -> None:
        """Type a line below the others, and wait until the shell has carried it out."""
        before = self.window.text().count("\n$")
        self.window.write(line)
        self.window.press("Enter")
        self.window.until(
            lambda: self.window.text().rstrip().endswith("\n$") and self.window.text().count("\n$") > before,
            f"the end of {line}",
            limit_s,
        )

    def step(self, title: str) -> None:
        """Write down what is on the terminal."""
        rows = [self._at_home(row.rstrip()) for row in self.window.rows()]
        text = "\n".join(f"    {row}".rstrip() for row in rows).rstrip(" $\n")
        text = re.sub(r"(?:\n +- man\d/.*)+", "\n        [cut: the manual pages]", text)
        self.text += f"\n## {title}\n\n{_BLANK.sub(_TWO_BLANK, text)}\n"

    def _at_home(self, row: str) -> str:
        """Return a row with `~` for the home; its last column stays where it is."""
        shown = row.replace(str(self._home), "~")
        return re.sub(r" {3,}(?=\S+$)", lambda gap: gap[0] + " " * (len(row) - len(shown)), shown)


def recorded(home: Path) -> str:
    """Type the first screen; return the page.

    Args:
        home: An empty folder with a short path: what the screen shows of it is not cut.
    """
    world = World(home)
    checkout_in(home / "agentctl")
    put_vendors(home / "bin", "claude", "codex")
    gate = home / "gate"
    environ = {name: value for name, value in world.environ.items() if name != "AGENTCTL_ROOT"}
    environ["PATH"] = os.pathsep.join([str(home / ".local" / "bin"), str(home / "bin"), environ["PATH"]])
    with patch.dict(os.environ, {**environ, "VENDORS_GATE": str(gate)}, clear=True), tmux_window(*SIZE) as window:
        try:
            return _typed(Recording(window, home), gate)
        finally:
            folder = home / _FOLDER
            if folder.exists():
                world.tried(
                    world.home / ".local" / "bin" / "agentctl", "--root", folder / ".agentctl", "cancel", "--all"
                )


def _typed(terminal: Recording, gate: Path) -> str:
    window = terminal.window
    *spawns, watch = first_lines()
    began = time.monotonic()
    window.resize(SIZE[0], 5 * SIZE[1])
    terminal.types(install_line(), limit_s=MOST_S)
    terminal.step("Installed, in a checkout")
    window.resize(*SIZE)

    terminal.types(f"mkdir ~/{_FOLDER}; cd ~/{_FOLDER}")
    for line in spawns:
        terminal.goes_on(line)
    terminal.step("Two agents and a command, in an empty folder")

    window.write("clear; " + watch)
    window.press("Enter")
    window.shows("1 needs you, 2 queued", "1-2 answers", "? Keys", "D Deny")
    shown_at = time.monotonic()
    terminal.step(f"`{watch}`: one needs you")
    window.until(lambda: time.monotonic() - shown_at >= SETTLES_S, f"{SETTLES_S} s")
    window.press("1")
    window.shows("write was answered: Allow", "● write")
    window.shows_no("D Deny")
    took = time.monotonic() - began
    terminal.step("The key 1 was pressed")

    gate.touch()
    window.shows("2 ready for review, 1 done")
    window.shows_no("was answered")
    terminal.step("A little later")
    window.press("q")
    window.until(lambda: window.ask("alternate_on") == "0", "the screen to be left")
    assert took < MOST_S
    return terminal.text + _TAIL.format(seconds=round(took))


def without_figures(text: str) -> list[str]:
    """Return the lines of a page without what differs each time: pids, times, and how wide they are."""
    figures, cut_path = re.compile(r"(?:\d+m )?[\d.]+s?"), re.compile(r"~/\S*…")
    return [re.sub(r" +", " ", cut_path.sub("~…", figures.sub("#", line))).strip() for line in text.splitlines()]


@needs_tmux
def test_the_first_screen_leads_to_an_answered_question_within_five_minutes() -> None:
    with tempfile.TemporaryDirectory(prefix="five-") as folder:
        page = recorded(Path(folder, "home"))
    shown = PAGE.read_text(encoding="utf-8")
    assert without_figures(page) == without_figures(shown), "python -m tests.extras.first_screen writes it again"


def main() -> None:
    """Write the page."""
    with tempfile.TemporaryDirectory(prefix="five-") as folder:
        PAGE.write_text(recorded(Path(folder, "home")), encoding="utf-8")


if __name__ == "__main__":
    main()
