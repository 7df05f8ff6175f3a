"""The raw output of a worker: stdout, and below it stderr as soon as something was written there."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Static

from agentctl.adapters.taskdir import WorkerDir
from agentctl.interfaces.screen.texts.pager import Pager
from agentctl.interfaces.screen.texts.sources import stderr_of, stdout_of
from agentctl.interfaces.screen.worker.tabbed_pager import TabbedPager


class OutputPagers(Vertical):
    """Both streams of a worker."""

    DEFAULT_CSS = """
    OutputPagers { height: 1fr; }
    OutputPagers > Pager { height: 2fr; }
    OutputPagers > .-errors { height: 1fr; display: none; }
    OutputPagers > Static { height: 1; display: none; padding: 0 1; background: $panel; text-style: bold; }
    OutputPagers.-has-errors > .-errors, OutputPagers.-has-errors > Static { display: block; }
    """

    def __init__(self, worker: WorkerDir) -> None:
        super().__init__(id="tab-log")
        self.stdout = TabbedPager(stdout_of(worker), watches=True, empty="nothing on stdout yet")
        self.stderr = TabbedPager(stderr_of(worker), watches=True, classes="-errors")

    def compose(self) -> ComposeResult:
        yield self.stdout
        yield Static("stderr  (2: to it, and back)", markup=False)
        yield self.stderr

    def on_pager_grown(self, message: Pager.Grown) -> None:
        """Make room for stderr once there is something in it."""
        if message.pager is self.stderr:
            self.set_class(len(self.stderr.source) > 0, "-has-errors")

    @property
    def current(self) -> TabbedPager:
        """The stream that has the focus."""
        return self.stderr if self.stderr.has_focus_within else self.stdout

    def take_focus(self) -> None:
        """Focus the stream that is looked at."""
        self.screen.set_focus(self.current)

    def change_stream(self) -> None:
        """Go to the other stream, if there is something in it."""
        other = self.stdout if self.current is self.stderr else self.stderr
        if other.display:
            other.focus()
