"""The files that a worker has changed, one a line, and the diff of the one under the cursor."""

from __future__ import annotations

import os
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from agentctl.domain.patchtext import PatchedFile
from agentctl.domain.plaintext import plain, whole
from agentctl.screen.texts.sources import TextSource
from agentctl.screen.worker.tabbed_pager import TabbedPager
from agentctl.screen.worker.worker_texts import WorkerDiff

#: More files than a person looks through.
_MOST_FILES = 10_000
_COUNT = 7
_SIGNS = {"added": ("A", "green"), "deleted": ("D", "red"), "modified": ("M", "yellow")}


class FileLines(OptionList):
    """The lines of files."""

    DEFAULT_CSS = """
    FileLines { height: 1fr; border: none; background: $background; padding: 0 1; }
    FileLines:focus { border: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "cursor_down", "Down", show=False),
        Binding("k", "cursor_up", "Up", show=False),
        Binding("g", "first", "First", show=False),
        Binding("G", "last", "Last", show=False),
        Binding("enter", "select", "Its diff"),
    ]


class ChangedFiles(Vertical):
    """The changed files; Enter shows the diff of one."""

    DEFAULT_CSS = """
    ChangedFiles { height: 1fr; }
    ChangedFiles > Pager { height: 1fr; }
    ChangedFiles > #compared { height: auto; max-height: 4; padding: 0 1; color: $text-muted; }
    """

    class Looked(Message):
        """The worktree was looked at."""

    def __init__(self, diff: WorkerDiff) -> None:
        super().__init__(id="tab-files")
        self._diff = diff
        self._files: tuple[PatchedFile, ...] = ()
        self._shown: TabbedPager | None = None
        self._is_looking = False

    def compose(self) -> ComposeResult:
        yield Static("looking…", id="compared", markup=False)
        yield FileLines(markup=False)

    def on_mount(self) -> None:
        """Look."""
        self.renew()

    def renew(self) -> None:
        """Look at the worktree in a thread, unless that is being done."""
        if not self._is_looking:
            self._is_looking = True
            self.run_worker(self._look, thread=True, exit_on_error=False)

    def _look(self) -> None:
        self._diff.look()
        self.post_message(self.Looked())

    def on_changed_files_looked(self) -> None:
        """Show what was found; the cursor stays on its file."""
        self._is_looking = False
        found = self._diff.found
        files = () if found is None else found.files[:_MOST_FILES]
        self.query_one("#compared", Static).update(plain(self._diff.headline()))
        if files == self._files:
            return
        lines, was = self.query_one(FileLines), self.file
        self._files = files
        lines.clear_options()
        lines.add_options([Option(_line_of(file)) for file in files])
        place = next((at for at, file in enumerate(files) if was is not None and file.path == was.path), 0)
        lines.highlighted = place if files else None

    @property
    def file(self) -> PatchedFile | None:
        """The file under the cursor."""
        place = self.query_one(FileLines).highlighted
        return self._files[place] if place is not None and place < len(self._files) else None

    @property
    def text(self) -> str:
        """The diff of the file under the cursor; without one, what was compared."""
        return self._diff.headline() if self.file is None else self._diff.text_of(self.file)

    @property
    def shows_diff(self) -> bool:
        """Whether the diff of one file is shown."""
        return self._shown is not None

    def take_focus(self) -> None:
        """Focus what is shown."""
        (self._shown or self.query_one(FileLines)).focus()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Show the diff of a file."""
        event.stop()
        file = self.file
        if file is None or self._shown is not None:
            return
        text = self._diff.text_of(file)
        self._shown = TabbedPager(TextSource(lambda: text, is_diff=True), follows=False, empty="nothing")
        self.query_one(FileLines).display = False
        self.mount(self._shown)
        self._shown.focus()

    def leave_diff(self) -> None:
        """Go back to the list of files."""
        if self._shown is not None:
            self._shown.remove()
            self._shown = None
            lines = self.query_one(FileLines)
            lines.display = True
            lines.focus()


def _line_of(file: PatchedFile) -> Text:
    sign, style = _SIGNS.get(file.status, ("·", "dim"))
    line = Text(no_wrap=True, overflow="ellipsis")
    line.append(f"{sign} ", style)
    line.append(("" if file.added is None else f"+{file.added}").rjust(_COUNT), "green")
    line.append(("" if file.removed is None else f"-{file.removed}").rjust(_COUNT), "red")
    line.append(f"  {whole(plain(os.fsdecode(file.path)))}")
    return line
