"""The screen of one worker: everything about it, a tab for each kind, which follows while it is open."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import ClassVar

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.widget import Widget
from textual.widgets import Input, Static

from agentctl.domain.states import TERMINAL
from agentctl.domain.worker.ends import said_at_end
from agentctl.interfaces.screen.acting.commands import error_line
from agentctl.interfaces.screen.acting.outside import file_to_edit, pager_of, show_outside, write_text
from agentctl.interfaces.screen.acting.peek import Peek, peek_head
from agentctl.interfaces.screen.acting.prompts import WritingLine, YesOrNo
from agentctl.interfaces.screen.acting.worker_keys import WORKER_BINDINGS, SaidLine, WorkerKeys, WorkerKeysScreen
from agentctl.interfaces.screen.fleet.drawing import glyph_of, waited_or_worked
from agentctl.interfaces.screen.help import Help
from agentctl.interfaces.screen.keys_footer import KeysFooter
from agentctl.interfaces.screen.start.line_editor import editor_argv
from agentctl.interfaces.screen.texts.pager import Pager
from agentctl.interfaces.screen.texts.sources import (
    PagerSource,
    TextSource,
    events_of,
    stderr_of,
    stdout_of,
    transcript_of,
)
from agentctl.interfaces.screen.worker.changed_files import ChangedFiles, FileLines
from agentctl.interfaces.screen.worker.output_pagers import OutputPagers
from agentctl.interfaces.screen.worker.tab_row import TABS, Tab, TabRow
from agentctl.interfaces.screen.worker.tabbed_pager import TabbedPager
from agentctl.interfaces.screen.worker.worker_texts import (
    RenewedText,
    ResultText,
    WorkerDiff,
    answered_text,
    why_text,
)
from agentctl.interfaces.words.activity import one_line
from agentctl.interfaces.words.question_pieces import options_of
from agentctl.operations.fleet.glance import FleetWorker, Glance
from agentctl.operations.show.activity import has_transcript
from agentctl.operations.worktree.diff import Since
from agentctl.supervision.worktree.record import known_record

#: How often what no file announces is looked at anew, while it is shown and its worker has not ended.
_RENEWED_S = 3.0
#: Styles of roles that the peek does not have.
_STYLES = {**Peek.STYLES, "running": "cyan", "queued": "dim", "cancelled": "blue"}


class WorkerScreen(WorkerKeysScreen):
    """Everything about one worker.

    Args:
        watch: The app, whose reader and whose answers are used.
        worker: The worker as it is now.
        tab: What is shown first; None means the transcript, or the output of a command.
    """

    CSS = """
    WorkerScreen #worker-head { height: 1; padding: 0 1; background: $background; }
    WorkerScreen #body { height: 1fr; }
    WorkerScreen #body > * { height: 1fr; }
    WorkerScreen Peek { max-height: 100%; border-top: none; padding: 0 1; }
    """
    #: By itself the focus would go to the first line to write in, hidden as it is, and take the first key.
    AUTO_FOCUS: ClassVar[str | None] = ""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "back", "Back"),
        Binding("left,h", "turn(-1)", "Tab before", show=False),
        Binding("right,l", "turn(1)", "Next tab", show=False),
        Binding("tab", "turn(1)", "Next tab", show=False),
        Binding("shift+tab", "turn(-1)", "Tab before", show=False),
        Binding("b", "since", "Base or turn"),
        Binding("e", "edit", "Edit"),
        Binding("P", "page", "Pager"),
        Binding("question_mark", "help", "Keys"),
        Binding("enter", "choose", "Answer", show=False),
        Binding("ctrl+r", "renew", "Look again", show=False),
        *WORKER_BINDINGS,
        *(Binding(str(at), f"digit({at})", f"Show the {tab}", show=False) for at, tab in enumerate(TABS, 1)),
        Binding("9", "digit(9)", "Give the ninth answer", show=False),
    ]

    def __init__(self, watch: WorkerKeys, worker: FleetWorker, tab: Tab | None = None) -> None:
        super().__init__()
        self._watch, self._worker, self._is_gone = watch, worker, False
        self.root, self.reader = watch.root, watch.reader
        self.answered, self.further, self.once = watch.answered, watch.further, watch.once
        self._folder = worker.task.worker(worker.row["agentInstance"])
        self._diff = WorkerDiff(worker.task, worker.row["agentInstance"])
        self.tab = tab or self._first_tab()
        self._head, self._row, self._body = Static("", id="worker-head"), TabRow(), Container(id="body")
        self.peek, self.writing, self.yes_or_no, self.said = Peek(), WritingLine(), YesOrNo(), SaidLine("")
        self._views: dict[Tab, Widget] = {}
        self.is_drawn = False
        #: Texts that were made for an editor or a pager; they go with the screen.
        self._texts: tempfile.TemporaryDirectory[str] | None = None

    def _first_tab(self) -> Tab:
        return Tab.TRANSCRIPT if has_transcript(self._folder) else Tab.LOG

    def compose(self) -> ComposeResult:
        yield self._head
        yield self._row
        yield self._body
        yield self.writing
        yield self.yes_or_no
        yield self.said
        yield KeysFooter()

    def on_mount(self) -> None:
        """Show the first tab, and follow."""
        self.show_tab(self.tab)
        self.set_interval(1.0, self._show_head)
        self.set_interval(_RENEWED_S, self._renew_live)
        self._watch.mark_seen(self._worker)

    def on_unmount(self) -> None:
        """Remove the texts that were made."""
        if self._texts is not None:
            self._texts.cleanup()

    # -- what there is now -----------------------------------------------------------------------------------------

    def take(self, glance: Glance) -> None:
        """Take up a new glance."""
        if not self._head.is_attached:
            return
        found, before = glance.workers.get(self._worker.id), self._worker
        self._is_gone = found is None
        if found is not None:
            was = self.peek.question_key
            self._worker = found
            self.tell_of_others(was, glance)
            self._watch.mark_seen(found)
        self._show_head()
        self.draw_peek()
        if found is None or found.row != before.row or found.questions != before.questions:
            self.action_renew()

    def _show_head(self) -> None:
        worker, glance = self._worker, self.last_glance()
        head = Text(no_wrap=True, overflow="ellipsis")
        glyph, role = glyph_of(worker)
        head.append(f"{glyph} ", _STYLES.get(role, ""))
        for words, role in peek_head(glance, worker):
            head.append(words, _STYLES.get(role, ""))
        head.append(f"  {waited_or_worked(worker, datetime.now(UTC))}", "dim")
        if said := said_at_end(worker.row["message"], worker.row["lastLine"]):
            head.append(f"  {one_line('; '.join(said))}")
        if self._is_gone:
            head.append("  it is no longer there", "red")
        self._head.update(head)
        self._row.show(self.tab, len(worker.questions))

    def acted_on(self) -> FleetWorker | None:
        """Return the worker, while there is one."""
        return None if self._is_gone else self._worker

    def ignore_keys(self, why: str) -> None:
        """Act on nothing that is typed at once."""
        self._watch.ignore_keys(why)

    def last_glance(self) -> Glance:
        """Return what was seen last."""
        return self._watch.last_glance()

    @property
    def pressed_at(self) -> float:
        """Return when the last key was pressed (monotonic)."""
        return self._watch.pressed_at

    def say(self, text: str) -> None:
        """Show a line for a while; in the list, if this screen was left meanwhile."""
        if self.said.is_attached:
            self.said.say(text)
        else:
            self._watch.say(text)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002
        """Return whether a key does anything now."""
        if action == "since":
            return self.tab in (Tab.FILES, Tab.DIFF) and bool(known_record(self._folder))
        if action in ("choose", "scroll_peek"):
            return self.tab is Tab.QUESTIONS
        return self.does_something(action)

    # -- tabs ------------------------------------------------------------------------------------------------------

    def show_tab(self, tab: Tab) -> None:
        """Show a tab; it is made the first time."""
        self.tab = tab
        if tab not in self._views:
            self._views[tab] = self._view_of(tab)
            self._body.mount(self._views[tab])
        else:
            self.action_renew()
        for one, view in self._views.items():
            view.display = one is tab
        self._show_head()
        self.draw_peek()
        self._views[tab].call_after_refresh(self._come_to, tab)  # After it was put together, if it is new.

    def _come_to(self, tab: Tab) -> None:
        self.is_drawn = True
        if tab is self.tab:  # No other tab was shown meanwhile.
            if not self._is_asking():
                self.take_focus()
            self.refresh_bindings()

    def _is_asking(self) -> bool:
        """Return whether a line was opened before the tab was drawn: without the focus, its letters would be keys."""
        focused = self.focused
        if not isinstance(focused, Input | YesOrNo):
            return False
        return all(one.display for one in focused.ancestors_with_self if isinstance(one, Widget))

    def _view_of(self, tab: Tab) -> Widget:
        match tab:
            case Tab.LOG:
                return OutputPagers(self._folder)
            case Tab.FILES:
                return ChangedFiles(self._diff)
            case Tab.QUESTIONS:
                return self.peek
            case Tab.TRANSCRIPT | Tab.EVENTS:
                empty = "no transcript: tab 2 has its output" if tab is Tab.TRANSCRIPT else "no events yet"
                return TabbedPager(self._source_of(tab, is_source=False), watches=True, empty=empty)
            case _:
                return TabbedPager(self._source_of(tab, is_source=False), follows=False, empty="looking…")

    def _source_of(self, tab: Tab, *, is_source: bool = True) -> PagerSource:
        """Return the text of a tab: as it was written, unless it is to be drawn."""
        task, name = self._worker.task, self._folder.instance
        match tab:
            case Tab.TRANSCRIPT:
                return transcript_of(self._folder, is_source=is_source)
            case Tab.LOG:
                view = self._views.get(Tab.LOG)
                is_errors = isinstance(view, OutputPagers) and view.current is view.stderr
                return stderr_of(self._folder) if is_errors else stdout_of(self._folder)
            case Tab.EVENTS:
                return events_of(self._folder)
            case Tab.RESULT:
                return ResultText(task, name, is_source=is_source)
            case Tab.WHY:
                return RenewedText(lambda: why_text(task, name))
            case Tab.QUESTIONS:
                return TextSource(lambda: self.peek.text)
            case _:
                return RenewedText(self._diff.text, is_diff=True)

    def take_focus(self) -> None:
        """Go back to what is shown."""
        view = self._views.get(self.tab)
        # It takes the focus once it is mounted; and what comes after a drawing may come when all of it has gone.
        if view is None or not view.is_mounted or not view.is_attached:
            return
        if isinstance(view, OutputPagers | ChangedFiles):
            view.take_focus()
        elif view is self.peek:
            self.set_focus(None)
        else:
            self.set_focus(view)  # At once: `focus` would take it from a line that is opened meanwhile.

    def on_tab_row_picked(self, message: TabRow.Picked) -> None:
        """Show the tab that was clicked."""
        self.show_tab(message.tab)

    def action_turn(self, by: int) -> None:
        """Show the next tab, or the one before; before the first one is the list."""
        place = TABS.index(self.tab) + by
        if place < 0:
            self.action_back()
        else:
            self.show_tab(TABS[place % len(TABS)])

    def action_digit(self, number: int) -> None:
        """Answer with a digit where a question is shown; otherwise show a tab."""
        if self.tab is Tab.QUESTIONS and (asked := self.asked()) is not None and options_of(asked[1]):
            self.action_answer(number)
        elif number <= len(TABS):
            view = self._views.get(self.tab)
            if isinstance(view, OutputPagers) and TABS[number - 1] is Tab.LOG:
                view.change_stream()
            else:
                self.show_tab(TABS[number - 1])

    def action_back(self) -> None:
        """Go back: from the diff of a file to the files, otherwise to the list."""
        view = self._views.get(self.tab)
        if isinstance(view, ChangedFiles) and view.shows_diff:
            view.leave_diff()
        else:
            self.dismiss()

    def action_help(self) -> None:
        """Show all keys."""
        parts = [
            ("A worker", self.BINDINGS),
            ("A text", Pager.BINDINGS),
            ("The files", FileLines.BINDINGS + ChangedFiles.BINDINGS),
        ]
        self.app.push_screen(Help(parts))

    # -- what no file announces ------------------------------------------------------------------------------------

    def action_renew(self) -> None:
        """Look again at what is shown."""
        view = self._views.get(self.tab)
        if isinstance(view, ChangedFiles) and view.is_attached:
            view.renew()
        elif isinstance(view, TabbedPager) and isinstance(view.source, RenewedText):
            view.source.renew()
            view.refresh_source()

    def _renew_live(self) -> None:
        is_over = self._worker.row["status"] in TERMINAL
        view = self._views.get(self.tab)
        is_busy = isinstance(view, TabbedPager) and view.is_reading
        is_due = self.tab is Tab.WHY or (self.tab in (Tab.FILES, Tab.DIFF) and self._diff.is_due)
        if is_due and not is_over and not is_busy:
            self.action_renew()

    def action_since(self) -> None:
        """Compare with the beginning of the last turn, or with the base."""
        view = self._views.get(self.tab)
        if isinstance(view, ChangedFiles):
            view.leave_diff()
        self._diff.since = Since.BASE if self._diff.since is Since.TURN else Since.TURN
        self.action_renew()

    # -- questions -------------------------------------------------------------------------------------------------

    def draw_peek(self) -> None:
        """Show the questions, where these are shown."""
        self.peek.display = self.tab is Tab.QUESTIONS
        if self.peek.display and not self._worker.questions:
            self._read_answered()
        if self.peek.display and self.peek.is_mounted:
            self.peek.show(self.last_glance(), self._worker)
        else:
            self.peek.show_nothing()
            if self.peek.display:
                self.call_after_refresh(self.draw_peek)
        self.renew_keys()

    @work(exclusive=True, group="answered", exit_on_error=False)
    async def _read_answered(self) -> None:
        """Read what was asked and answered before, and show it where nothing is asked now."""
        text = await asyncio.to_thread(answered_text, self._folder)
        if text != self.peek.before:
            self.peek.before = text
            if self.peek.is_attached and self.peek.display:
                self.peek.show(self.last_glance(), self._worker)

    def action_source(self) -> None:
        """Show what is shown as it was written, or drawn again."""
        view = self._views.get(self.tab)
        if isinstance(view, Pager):
            view.change_source()
        elif view is self.peek:
            super().action_source()

    def action_choose(self) -> None:
        """Answer with the options that were chosen."""
        self.answer_with_chosen()

    def action_write_answer(self) -> None:
        """Write an answer, where the question is shown; otherwise show it first."""
        if self.tab is Tab.QUESTIONS:
            super().action_write_answer()
        else:
            self.show_tab(Tab.QUESTIONS)

    def action_deny(self) -> None:
        """Deny a permission and say why, where the question is shown; otherwise show it first."""
        if self.tab is Tab.QUESTIONS:
            super().action_deny()
        else:
            self.show_tab(Tab.QUESTIONS)

    # -- other programs --------------------------------------------------------------------------------------------

    def action_edit(self) -> None:
        """Open what is shown in the person's editor."""
        self._outside(editor_argv, self._file_to_edit)

    def action_page(self) -> None:
        """Open what is shown in the person's pager."""
        self._outside(pager_of, self._text_file)

    def _outside(
        self, command: Callable[[Mapping[str, str]], list[str]], plan: Callable[[], Callable[[], str]]
    ) -> None:
        """Run a program with a file that is made in a thread."""

        async def carry_out() -> None:
            try:
                argv = command(os.environ)
                path = await asyncio.to_thread(plan())
            except Exception as error:  # noqa: BLE001 - whatever it is, the screen goes on and says it
                self.say(error_line(error))
                return
            self.say(show_outside(self.app, argv, path))

        self.run_worker(carry_out(), exit_on_error=False)

    def _file_to_edit(self) -> Callable[[], str]:
        """Return what finds the file that is shown: itself, or a text that is made of what is shown."""
        view = self._views.get(self.tab)
        if isinstance(view, OutputPagers):
            log = str(self._folder.stderr if view.current is view.stderr else self._folder.stdout)
            return lambda: file_to_edit(log)
        if isinstance(view, ChangedFiles) and view.file is not None:
            name, place = os.fsdecode(view.file.path), known_record(self._folder).get("path")
            return lambda: file_to_edit(os.path.join(place, name), place) if place else file_to_edit(name)
        if self.tab is Tab.DIFF:
            patch = self._place_of_text("patch")
            return lambda: self._patch_file(patch)
        return self._text_file()

    def _patch_file(self, path: str) -> str:
        patch = self._diff.patch()
        with open(path, "wb") as file:
            file.write(patch)
        return path

    def _text_file(self) -> Callable[[], str]:
        """Return what makes a file of the text that is shown."""
        view, path = self._views.get(self.tab), self._place_of_text("txt")
        source = self._source_of(self.tab)
        if isinstance(view, ChangedFiles):
            text = view.text
            source = TextSource(lambda: text)

        def make() -> str:
            write_text(source, path)
            return path

        return make

    def _place_of_text(self, kind: str) -> str:
        if self._texts is None:
            self._texts = tempfile.TemporaryDirectory(prefix="agentctl-watch-", ignore_cleanup_errors=True)
        return os.path.join(self._texts.name, f"{self._folder.instance}.{self.tab}.{kind}")
