"""At stake: whoever watches sees in a worker's row why it failed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.steps import new_task, spawn
from tests.tmux import needs_tmux, tmux_window

pytestmark = [needs_tmux, pytest.mark.screen]
#: With colours, a title for the terminal, and a way out of the row.
ON_STDERR = "\\033]0;mine\\007\\033[31m3 licences\\033[0m\\n\\033[31mGPL in\\033[K a dependency\\033[0m\\033[2A\\n"
SAYS = "GPL in a dependency"


@pytest.mark.parametrize(("width", "height"), [(40, 24), (60, 24), (80, 24), (160, 50)])
def test_the_row_of_a_failed_worker_says_why_at_each_width(root: Path, width: int, height: int) -> None:
    new_task()
    spawn(["sh", "-c", f"printf '{ON_STDERR}' >&2; exit 1"], "--wait", name="licences", check=False)
    with tmux_window(width, height) as window:
        window.open_watch()
        window.shows(SAYS)
        window.is_whole()
        assert window.row_of(SAYS).split()[:4] == ["✗", "licences", "GPL", "in"]
        assert window.ask("pane_title") == "agentctl"
        window.press("y")
        window.shows("It failed: its program exited with 1.", "the end of its stderr:", "│ GPL in a dependency")
