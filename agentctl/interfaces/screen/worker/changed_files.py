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

from agentctl.domain.text.patchtext import PatchedFile
from agentctl.domain.text.plaintext import plain, whole
from agentctl.encoding import as_utf8
from agentctl.interfaces.screen.texts.sources import TextSource
from agentctl.interfaces.screen.worker.tabbed_pager import TabbedPager
from agentctl.interfaces.screen.worker.worker_texts import FoundDiff, WorkerDiff

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

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("J", "step(1)", "Next file", show=False),
        Binding("K", "step(-1)", "File before", show=False),
    ]
    DEFAULT_CSS = """
    ChangedFiles { height: 1fr; }
    ChangedFiles > Pager { height: 1fr; }
    ChangedFiles > #compared { height: auto; max-height: 4; padding: 0 1; color: $text-muted; }
    """

    class Looked(Message):
        """The worktree was looked at."""

    def __init__(self, diff: WorkerDiff) -> None:
        super().__init__(id="tab-files")
        self._compared, self._lines = Static("looking…", id="compared", markup=False), FileLines(markup=False)
        self._diff = diff
        #: What the lines are of; the Diff tab may have looked again since.
        self._found: FoundDiff | None = None
        self._shown: TabbedPager | None = None
        self._is_looking = False

    def compose(self) -> ComposeResult:
        yield self._compared
        yield self._lines

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
        before, was = self._files, self.file
        self._found = self._diff.found
        self._compared.update(plain(self._headline()))
        files = self._files
        if files == before:
            return
        self._lines.clear_options()
        self._lines.add_options([Option(_line_of(file)) for file in files])
        place = next((at for at, file in enumerate(files) if was is not None and file.path == was.path), 0)
        self._lines.highlighted = place if files else None

    def _headline(self) -> str:
        return self._diff.problem or "looking…" if self._found is None else self._found.headline()

    @property
    def _files(self) -> tuple[PatchedFile, ...]:
        return () if self._found is None else self._found.files[:_MOST_FILES]

    @property
    def file(self) -> PatchedFile | None:
        """The file under the cursor."""
        place, files = self._lines.highlighted, self._files
        return files[place] if place is not None and place < len(files) else None

    @property
    def text(self) -> str:
        """The diff of the file under the cursor; without one, what was compared."""
        file = self.file
        return self._headline() if self._found is None or file is None else self._found.text_of(file)

    @property
    def shows_diff(self) -> bool:
        """Whether the diff of one file is shown."""
        return self._shown is not None

    def take_focus(self) -> None:
        """Focus what is shown."""
        self.screen.set_focus(self._shown or self._lines)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Show the diff of a file."""
        event.stop()
        if self.file is not None and self._shown is None:
            self._show_diff()

    def action_step(self, by: int) -> None:
        """Go to another file: with its diff, where that of one is shown."""
        place = (self._lines.highlighted or 0) + by
        if not 0 <= place < len(self._files):
            return
        self._lines.highlighted = place
        if self._shown is not None:
            self._shown.remove()
            self._show_diff()

    def _show_diff(self) -> None:
        text = self.text
        self._shown = TabbedPager(TextSource(lambda: text, is_diff=True), follows=False, empty="nothing")
        self._lines.display = False
        self.mount(self._shown)
        self._shown.focus()

    def leave_diff(self) -> None:
        """Go back to the list of files."""
        if self._shown is not None:
            self._shown.remove()
            self._shown = None
            self._lines.display = True
            self._lines.focus()


def _line_of(file: PatchedFile) -> Text:
    sign, style = _SIGNS.get(file.status, ("·", "dim"))
    line = Text(no_wrap=True, overflow="ellipsis")
    line.append(f"{sign} ", style)
    line.append(("" if file.added is None else f"+{file.added}").rjust(_COUNT), "green")
    line.append(("" if file.removed is None else f"-{file.removed}").rjust(_COUNT), "red")
    line.append(f"  {whole(plain(as_utf8(os.fsdecode(file.path))))}")
    return line
