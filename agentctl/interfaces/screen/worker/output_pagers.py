"""The output of a worker: stdout, and below it stderr as soon as something was written there, or in its place."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Static

from agentctl.adapters.taskdir import WorkerDir
from agentctl.interfaces.screen.texts.pager import Pager
from agentctl.interfaces.screen.texts.sources import stderr_of, stdout_of
from agentctl.interfaces.screen.worker.tabbed_pager import TabbedPager


class OutputPagers(Vertical):
    """Both streams of a worker: as a terminal shows them, or their source."""

    DEFAULT_CSS = """
    OutputPagers { height: 1fr; }
    OutputPagers > Pager { height: 2fr; }
    OutputPagers > .-errors { height: 1fr; display: none; }
    OutputPagers > Static { height: 1; display: none; padding: 0 1; background: $panel; text-style: bold; }
    OutputPagers.-has-errors > .-errors, OutputPagers.-has-errors > Static { display: block; }
    OutputPagers.-has-only-errors > .-output { display: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("R", "spell_out", "Raw")]

    def __init__(self, worker: WorkerDir) -> None:
        super().__init__(id="tab-log")
        self._worker, self._is_spelled_out = worker, False
        self._make()

    def _make(self) -> None:
        worker, is_raw = self._worker, self._is_spelled_out
        self.stdout = TabbedPager(
            stdout_of(worker, is_spelled_out=is_raw), watches=True, empty="nothing on stdout yet", classes="-output"
        )
        self.stderr = TabbedPager(stderr_of(worker, is_spelled_out=is_raw), watches=True, classes="-errors")

    def compose(self) -> ComposeResult:
        yield self.stdout
        yield Static("stderr  (2: to it, and back)", markup=False)
        yield self.stderr

    def on_pager_grown(self, message: Pager.Grown) -> None:
        """Make room for stderr once there is something in it: all of it, as long as there is nothing on stdout."""
        if message.pager not in (self.stdout, self.stderr):
            return
        has_errors, has_output = len(self.stderr.source) > 0, len(self.stdout.source) > 0
        had_focus = self.has_focus_within
        self.set_class(has_errors, "-has-errors")
        self.set_class(has_errors and not has_output, "-has-only-errors")
        if had_focus and not self.current.display:
            self.change_stream()

    async def action_spell_out(self) -> None:
        """Show the source with its control characters spelled out, or the output as a terminal shows it."""
        was_at_errors = self.current is self.stderr
        self._is_spelled_out = not self._is_spelled_out
        self._make()
        await self.recompose()
        if self.is_attached:  # It may have been left meanwhile.
            self.screen.set_focus(self.stderr if was_at_errors else self.stdout)

    @property
    def current(self) -> TabbedPager:
        """The stream that has the focus; if neither has, the one that has something."""
        if self.stdout.has_focus_within:
            return self.stdout
        is_alone = self.has_class("-has-only-errors")
        return self.stderr if is_alone or self.stderr.has_focus_within else self.stdout

    def take_focus(self) -> None:
        """Focus the stream that is looked at."""
        self.screen.set_focus(self.current)

    def change_stream(self) -> None:
        """Go to the other stream, if there is something in it."""
        other = self.stdout if self.current is self.stderr else self.stderr
        if other.display:
            other.focus()
