"""The logs of up to four workers at once: of an agent its transcript, of a command what it printed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Grid, Vertical
from textual.screen import Screen
from textual.widgets import Static

from agentctl.adapters.files import AnyPath
from agentctl.domain.states import Status
from agentctl.domain.text.plaintext import plain
from agentctl.interfaces.screen.keys_footer import KeysFooter
from agentctl.interfaces.screen.texts.pager import Pager
from agentctl.interfaces.screen.texts.sources import stderr_of, stdout_of, transcript_of
from agentctl.operations.fleet.glance import FleetWorker
from agentctl.operations.show.activity import has_transcript

MOST_PAGERS = 4
#: From so many columns on, two are side by side.
_WIDE = 160


class LogWall(Grid):
    """Pagers, each below the name of its worker; tab and shift+tab move between them."""

    DEFAULT_CSS = """
    LogWall { grid-size: 1; }
    LogWall.-wide { grid-size: 2; }
    LogWall > Vertical { height: 1fr; }
    LogWall .log-wall--heading { height: 1; background: $panel; color: $text; text-style: bold; padding: 0 1; }
    LogWall > Vertical:focus-within > .log-wall--heading { background: $primary; }
    LogWall Pager { height: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "next_pager(1)", "Next log"),
        Binding("shift+tab", "next_pager(-1)", "Log before", show=False),
    ]

    def __init__(self, pagers: Sequence[tuple[str, Pager]], *, id: str | None = None) -> None:  # noqa: A002 - as textual
        """Show pagers, at most `MOST_PAGERS`, each with its heading."""
        if not 1 <= len(pagers) <= MOST_PAGERS:
            raise ValueError(f"1 to {MOST_PAGERS} pagers, not {len(pagers)}")
        super().__init__(id=id)
        self.pagers = [pager for _, pager in pagers]
        self._headings = [heading for heading, _ in pagers]

    def compose(self) -> ComposeResult:
        """Put each pager below its heading."""
        for heading, pager in zip(self._headings, self.pagers, strict=True):
            with Vertical():
                yield Static(plain(heading), classes="log-wall--heading", markup=False)
                yield pager

    def on_mount(self) -> None:
        """Begin in the first one."""
        self.pagers[0].focus()

    def on_resize(self, event: events.Resize) -> None:
        """Put them side by side where there is room."""
        self.set_class(event.size.width >= _WIDE and len(self.pagers) > 1, "-wide")

    def action_next_pager(self, step: int) -> None:
        """Move to the next pager, or to the one before."""
        at = next((place for place, pager in enumerate(self.pagers) if pager.has_focus_within), 0)
        self.pagers[(at + step) % len(self.pagers)].focus()


class LogsScreen(Screen[None]):
    """Up to four logs."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q", "back", "Back")]

    def __init__(self, workers: Sequence[FleetWorker]) -> None:
        super().__init__()
        self._workers = workers[:MOST_PAGERS]

    def compose(self) -> ComposeResult:
        yield LogWall([(str(worker.id), _pager_of(worker)) for worker in self._workers])
        yield KeysFooter()

    def action_back(self) -> None:
        """Go back to the list."""
        self.dismiss()


def _pager_of(worker: FleetWorker) -> Pager:
    folder = worker.task.worker(worker.row["agentInstance"])
    if has_transcript(folder):
        return Pager(transcript_of(folder), watches=True)
    # A log that has something: of a failed worker that is what it wrote to stderr.
    is_failed = worker.row["status"] == Status.FAILED
    size, errors = (_size_of(path) for path in (folder.stdout, folder.stderr))
    return Pager(stderr_of(folder) if errors and (is_failed or not size) else stdout_of(folder), watches=True)


def _size_of(path: AnyPath) -> int:
    try:
        return os.stat(path, follow_symlinks=False).st_size
    except FileNotFoundError:
        return 0
