"""At stake: who follows an output in a real terminal has its rows in the history once, and not frame by frame."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.steps import new_task, spawn
from tests.support import PROGRAM, run
from tests.tmux import needs_tmux, tmux_window

pytestmark = [needs_tmux, pytest.mark.screen]
FRAMES = 6
#: Displays that are as high as the screen, a little less, or higher; and a bar that is wider than it. Each frame waits.
DISPLAY = """
import os, sys, time
gate, rows = sys.argv[1], int(sys.argv[2])
before = 0
for frame in range(6):
    now = rows - frame % 3
    lines = [f"bar{number:02d} frame{frame}\\n" for number in range(now)]
    sys.stdout.write((f"\\x1b[{before}A\\x1b[J" if before else "") + "".join(lines))
    sys.stdout.flush()
    before = now
    while not os.path.exists(f"{gate}{frame}"):
        time.sleep(0.02)
print("all done")
"""
WIDE = """
import os, sys, time
gate = sys.argv[1]
for frame in range(6):
    sys.stdout.write(f"\\r\\x1b[Kbar20 {'=' * (100 - frame % 2)} frame{frame}")
    sys.stdout.flush()
    while not os.path.exists(f"{gate}{frame}"):
        time.sleep(0.02)
print("\\nall done")
"""


@pytest.mark.parametrize("command", ["logs -f", "watch"])
@pytest.mark.parametrize(
    ("program", "rows", "most"), [(DISPLAY, 22, 1), (DISPLAY, 23, 1), (DISPLAY, 30, 3), (WIDE, 0, 1)]
)
def test_what_is_drawn_over_is_in_the_history_of_the_terminal_once(
    root: Path, tmp_path: Path, command: str, program: str, rows: int, most: int
) -> None:
    new_task()
    gate = tmp_path / "gate"
    spawn([sys.executable, "-c", program, str(gate), str(rows)], name="a")
    with tmux_window(80, 24) as window:
        window.write(f"clear; {' '.join(PROGRAM)} {command} a")
        window.press("Enter")
        for frame in range(FRAMES):
            window.shows(f"frame{frame}")
            Path(f"{gate}{frame}").touch()
        window.shows("all done")
        run("wait", "a")
        history = window.tmux("capture-pane", "-p", "-S", "-").split("\n")
    times = [sum(line.startswith(f"bar{number:02d} ") for line in history) for number in range(31)]
    assert max(times) <= most, "\n".join(history)
    assert times[15] >= 1 or program == WIDE
