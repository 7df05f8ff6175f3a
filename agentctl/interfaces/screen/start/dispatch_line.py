"""The field in which a person writes what to start: history, completion, their editor, and what was wrong."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable
from typing import ClassVar

from rich.highlighter import Highlighter
from rich.text import Text
from textual import events, work
from textual.app import ComposeResult, SuspendNotSupported
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.suggester import Suggester
from textual.widgets import Input, Static

from agentctl.adapters.taskdir import Root
from agentctl.domain.text.plaintext import ESCAPES, plain
from agentctl.encoding import as_typed
from agentctl.errors import AgentctlError, Refused
from agentctl.interfaces.screen.handover import handed_over
from agentctl.interfaces.screen.kept_keys import KeptKeys
from agentctl.interfaces.screen.start.line_completion import common_beginning, completions
from agentctl.interfaces.screen.start.line_editor import edited, editor_argv
from agentctl.interfaces.screen.start.line_history import LineHistory
from agentctl.interfaces.screen.start.start_line import (
    KnownNames,
    StartLine,
    known_names,
    parse_start_line,
    start_by_line,
)
from agentctl.operations.start.requests import Spawned

_PLACEHOLDER = "AGENT PROMPT, or ! COMMAND; @TASK, in:FOLDER and name:NAME in front"
#: What stands for a character that a terminal obeys: one cell, so that the cursor is where it seems to be.
_STAND_INS = {**dict.fromkeys(ESCAPES, "\N{MIDDLE DOT}"), ord("\n"): "\N{DOWNWARDS ARROW WITH CORNER LEFTWARDS}"}


class DispatchLine(Vertical):
    """A line that starts workers in a root.

    Args:
        chosen: Returns the task of lines that name none, when such a line is entered.
        prepare: Called before each start, in a thread; what it raises is shown, and nothing is started.
    """

    DEFAULT_CSS = """
    DispatchLine { height: auto; }
    DispatchLine Horizontal { height: 1; }
    DispatchLine #dispatch-label { width: auto; text-style: bold; padding: 0 1; }
    DispatchLine Input { width: 1fr; }
    DispatchLine #dispatch-problem { height: auto; max-height: 4; padding: 0 1; color: $text-error; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "older", "Older", show=False),
        Binding("down", "newer", "Newer", show=False),
        Binding("tab", "complete", "Complete", show=False),
        Binding("ctrl+g", "edit", "Editor"),
        Binding("escape", "close_line", "Close"),
    ]

    class Submitted(Message):
        """A line was understood, and is being started."""

        def __init__(self, line: StartLine) -> None:
            super().__init__()
            self.line = line

    class Started(Message):
        """The worker of a line runs, or is in the queue; or it has ended already."""

        def __init__(self, spawned: Spawned) -> None:
            super().__init__()
            self.spawned = spawned

    class Closed(Message):
        """The person has closed the line; its text is kept for the next time."""

    class _Accepted(Message):
        def __init__(self, text: str, line: StartLine) -> None:
            super().__init__()
            self.text, self.line = text, line

    class _Failed(Message):
        def __init__(self, text: str, error: Exception, *, is_accepted: bool) -> None:
            super().__init__()
            self.text, self.error, self.is_accepted = text, error, is_accepted

    def __init__(
        self,
        root: Root,
        chosen: Callable[[], str | None] = lambda: None,
        prepare: Callable[[], object] = lambda: None,
    ) -> None:
        super().__init__()
        self._root, self._chosen, self._prepare = root, chosen, prepare
        self._history = LineHistory()
        self._keys = KeptKeys()
        self._is_reading = False
        self._label = Static("start:", id="dispatch-label", markup=False)
        self._field = _Field(root)
        self._problem = Static("", id="dispatch-problem", markup=False)
        self._problem.display = False

    @property
    def text(self) -> str:
        """What is in the field."""
        return self._field.value

    def compose(self) -> ComposeResult:
        with Horizontal():
            yield self._label
            yield self._field
        yield self._problem

    def open(self, beginning: str = "") -> None:
        """Show the line with its draft, or with a beginning where there is none, and let the keys go there."""
        self.display = True
        task = self._chosen()
        self._label.update(f"start in {task}:" if task else "start:")
        if not self.text:
            self._put(beginning)
        self.screen.set_focus(self._field)  # At once: `focus` would leave the next keys to the list.

    # -- what the keys do ------------------------------------------------------------------------------------------

    def action_older(self) -> None:
        """Show the line entered before the one that is shown."""
        self._put(self._history.older(self.text))

    def action_newer(self) -> None:
        """Show the line entered after the one that is shown, at last what was being typed."""
        self._put(self._history.newer())

    @work(exclusive=True, group="completion")
    async def action_complete(self) -> None:
        """Complete the last word as far as there is only one way to go on; then show the ways."""
        before = self.text
        found = await asyncio.to_thread(lambda: completions(before, _known_names(self._root)))
        if self.text != before or not found:
            return
        beginning = common_beginning(found)
        if beginning != before:
            self._put(beginning)
        elif len(found) > 1:
            at = before.rfind(" ") + 1
            self._tell("  ".join(line[at:].strip() for line in found[:20]))

    def action_edit(self) -> None:
        """Let the person's editor have the text, and the terminal as long as it runs."""
        try:
            argv = editor_argv(os.environ)
            with handed_over(self.app):
                text = edited(self.text, argv)
        except SuspendNotSupported:
            self._show_problem(Refused("this terminal cannot be left to an editor"))
        except AgentctlError as error:
            self._show_problem(error)
        else:
            self._put(text)
        self.app.refresh(layout=True)

    def action_close_line(self) -> None:
        """Hide the line, and keep what is in it."""
        self._tell("")
        self.display = False
        self.post_message(self.Closed())

    # -- a line is entered -----------------------------------------------------------------------------------------

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Read and start the line in a thread: meanwhile the next one can be typed."""
        event.stop()
        if event.value.strip() and not self._is_reading:
            self._is_reading = True
            self._tell("")
            self._carry_out(event.value, self._chosen())

    def on_input_changed(self, event: Input.Changed) -> None:
        """Take away what was wrong with the text before."""
        event.stop()
        self._tell("")

    @work(thread=True, group="starts")
    def _carry_out(self, text: str, task: str | None) -> None:
        is_accepted = False
        try:
            line = parse_start_line(as_typed(text), known_names(self._root), task)
            is_accepted = self.post_message(self._Accepted(text, line))
            self._prepare()
            with self._keys.once(text, task or "") as key:
                spawned = start_by_line(self._root, line, key)
            self.post_message(self.Started(spawned))
        except (AgentctlError, OSError) as error:
            self.post_message(self._Failed(text, error, is_accepted=is_accepted))

    def on_dispatch_line__accepted(self, event: _Accepted) -> None:
        """Make room for the next line, and keep this one."""
        event.stop()
        self._is_reading = False
        if self.text == event.text:
            self._put("")
        self._history.remember(event.text)
        self._keep(event.text)
        self.post_message(self.Submitted(event.line))

    @work(thread=True, group="history")
    def _keep(self, text: str) -> None:
        """Keep a line for the next session, or do not: it waits for a lock, which the screen cannot."""
        with contextlib.suppress(AgentctlError, OSError):
            self._history.keep(text)

    def on_dispatch_line__failed(self, event: _Failed) -> None:
        """Say what is wrong; a line that could not be started comes back, unless another one is being typed."""
        event.stop()
        if not event.is_accepted:
            self._is_reading = False
        elif not self.text:
            self._put(event.text)
        self._show_problem(event.error)

    # -- what is shown ---------------------------------------------------------------------------------------------

    def _put(self, text: str | None) -> None:
        if text is not None and text != self.text:
            with self.prevent(Input.Changed):
                self._field.value = text
            self._field.cursor_position = len(text)
            self._tell("")

    def _show_problem(self, error: Exception) -> None:
        hint = getattr(error, "hint", None)
        self._tell(str(error) + (f"\nhint: {hint}" if hint else ""))

    def _tell(self, text: str) -> None:
        self._problem.update(Text(plain(text, keep="\n")))
        self._problem.display = bool(text)


class _Field(Input):
    """The field itself: its text may have several lines, from the editor or the clipboard."""

    def __init__(self, root: Root) -> None:
        # A draft must not be selected as a whole when the line is opened again: the next key would replace it.
        super().__init__(
            placeholder=_PLACEHOLDER,
            suggester=_Completion(root),
            highlighter=_OneLine(),
            select_on_focus=False,
            compact=True,
        )

    def on_paste(self, event: events.Paste) -> None:
        """Insert all lines of the clipboard, where `Input` takes the first one."""
        event.stop()
        event.prevent_default()
        text = event.text.replace("\r\n", "\n").replace("\r", "\n").rstrip("\n")
        self.replace(text, *sorted(self.selection))


class _OneLine(Highlighter):
    """Shows a text of several lines in one."""

    def highlight(self, text: Text) -> None:
        text.plain = text.plain.translate(_STAND_INS)


class _Completion(Suggester):
    """Shows behind the cursor what the right arrow completes the last word to."""

    def __init__(self, root: Root) -> None:
        super().__init__(use_cache=False, case_sensitive=True)
        self._root = root
        self._known: KnownNames | None = None

    async def get_suggestion(self, value: str) -> str | None:
        found = await asyncio.to_thread(self._found, value)
        return found[0].rstrip(" ") if len(found) == 1 else None

    def _found(self, value: str) -> list[str]:
        if self._known is None:  # Names that are new since then are known to Tab and to Enter.
            self._known = _known_names(self._root)
        return completions(value, self._known)


def _known_names(root: Root) -> KnownNames:
    """Return what a line may name; nothing where that cannot be read: Enter will say why."""
    try:
        return known_names(root)
    except (AgentctlError, OSError):
        return KnownNames((), ())
