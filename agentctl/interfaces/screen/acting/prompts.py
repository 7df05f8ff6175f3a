"""The two ways in which the screen asks back: a line to write in, and a question of yes or no. Escape leaves both."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.widgets import Input, Static

from agentctl.errors import UsageError


class WritingLine(Vertical):
    """A line to write in: an answer, a message, a filter. It shows why a text is not taken, and keeps it.

    Drafts are kept for each label until they are sent.
    """

    DEFAULT_CSS = """
    WritingLine { height: auto; display: none; }
    WritingLine.-open { display: block; }
    WritingLine Horizontal { height: 1; }
    WritingLine Static { width: auto; height: 1; }
    WritingLine Input { width: 1fr; }
    WritingLine #writing-label { text-style: bold; padding: 0 1; }
    WritingLine #writing-error { color: $error; width: 1fr; padding: 0 1; display: none; }
    WritingLine #writing-error.-said { display: block; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Back"),
        Binding("tab,shift+tab", "stay", show=False),
    ]

    class Left(Message):
        """The line was left without sending it."""

    def __init__(self) -> None:
        super().__init__(id="writing")
        self._heading, self._error = Static("", id="writing-label"), Static("", id="writing-error")
        self._line = Input(id="writing-input", select_on_focus=False, compact=True)
        self._drafts: dict[str, str] = {}
        self._label = ""
        self._send: Callable[[str], None] = lambda _: None
        self._typed: Callable[[str], None] | None = None
        self._check: Callable[[str], object] = lambda _: None

    def compose(self) -> ComposeResult:
        with Horizontal():
            yield self._heading
            yield self._line
        yield self._error

    @property
    def is_open(self) -> bool:
        """Return whether something is being written."""
        return self.has_class("-open")

    def open(
        self,
        label: str,
        send: Callable[[str], None],
        *,
        value: str | None = None,
        typed: Callable[[str], None] | None = None,
        check: Callable[[str], object] = lambda _: None,
    ) -> None:
        """Let a person write.

        Args:
            send: Gets the text on Enter.
            value: What is there at first; None means the draft that was left under this label.
            typed: Gets the text at each change.
            check: Raises a `UsageError` for a text that cannot be sent.
        """
        self._label, self._send, self._typed, self._check = label, send, None, check
        self._heading.update(Text(f"{label}:"))
        self._line.value = self._drafts.get(label, "") if value is None else value
        self._line.cursor_position = len(self._line.value)
        self._typed = typed
        self._say("")
        self.add_class("-open")
        self.screen.set_focus(self._line)  # At once: `focus` would leave the next keys to what is below.

    def close(self) -> None:
        """Hide the line."""
        self.remove_class("-open")

    def _say(self, error: str) -> None:
        self._error.update(Text(error))
        self._error.set_class(bool(error), "-said")

    def on_input_changed(self, event: Input.Changed) -> None:
        """Pass a change on."""
        event.stop()
        self._say("")
        if self.is_open:
            self._drafts[self._label] = event.value
            if self._typed is not None:
                self._typed(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Send the text, if it can be sent."""
        event.stop()
        try:
            self._check(event.value)
        except UsageError as error:
            self._say(f"{error.message} ({error.hint})" if error.hint else error.message)
            return
        self._drafts.pop(self._label, None)
        self.close()
        self._send(event.value)

    def action_stay(self) -> None:
        """Do nothing: the keys go on to this line."""

    def action_leave(self) -> None:
        """Close the line and keep what was written."""
        self.close()
        self.post_message(self.Left())


class YesOrNo(Static, can_focus=True):
    """A question of yes or no; `y` or Enter means yes, anything else no."""

    DEFAULT_CSS = """
    YesOrNo { height: auto; display: none; padding: 0 1; text-style: bold; color: $warning; }
    YesOrNo.-open { display: block; }
    """

    class Answered(Message):
        """It was answered."""

    def __init__(self) -> None:
        super().__init__(id="yes-or-no")
        self._then: Callable[[], None] = lambda: None

    def open(self, question: str, then: Callable[[], None]) -> None:
        """Ask; `then` is called for a yes."""
        self._then = then
        self.update(Text(f"{question}  y / n"))
        self.add_class("-open")
        self.screen.set_focus(self)

    def on_key(self, event: events.Key) -> None:
        """Take the answer."""
        event.stop()
        event.prevent_default()
        self.remove_class("-open")
        if event.key in ("y", "Y", "enter"):
            self._then()
        self.post_message(self.Answered())
