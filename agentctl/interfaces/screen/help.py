"""The help: every key of a view, from the same tables by which the keys work."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

#: What a key is called on the screen, where that differs from its name in a binding.
_NAMES = {
    "slash": "/", "question_mark": "?", "space": "Space", "enter": "Enter", "escape": "Esc", "tab": "Tab", "up": "↑",
    "down": "↓", "left": "←", "right": "→", "pageup": "PgUp", "pagedown": "PgDn", "home": "Home", "end": "End",
    "exclamation_mark": "!", "shift+tab": "Shift+Tab", "left_square_bracket": "[", "right_square_bracket": "]",
}  # fmt: skip
_WIDTH = 18


class Help(ModalScreen[None]):
    """All keys of a view.

    Args:
        parts: The headings, each with its bindings.
    """

    DEFAULT_CSS = """
    Help { align: center middle; background: $background; }
    Help VerticalScroll { width: 1fr; height: 1fr; padding: 1 2; }
    Help Static { height: auto; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark,left,h", "dismiss", "Back"),
        Binding("down,j", "scroll(1)", "Down", show=False),
        Binding("up,k", "scroll(-1)", "Up", show=False),
    ]

    def __init__(self, parts: Sequence[tuple[str, Iterable[BindingType]]]) -> None:
        super().__init__()
        self._scroll = VerticalScroll(Static(help_text(parts)))

    def compose(self) -> ComposeResult:
        yield self._scroll

    def action_scroll(self, by: int) -> None:
        """Scroll by a line."""
        self._scroll.scroll_relative(y=by, animate=False)


def help_text(parts: Sequence[tuple[str, Iterable[BindingType]]]) -> Text:
    """Return the keys of each part, those of one action on one line."""
    text = Text()
    for heading, bindings in parts:
        text.append(f"{heading}\n", "bold")
        for keys, description in _rows(bindings):
            text.append(f"  {keys:<{_WIDTH}}", "cyan")
            text.append(f"{description}\n")
        text.append("\n")
    return text


def _rows(bindings: Iterable[BindingType]) -> list[tuple[str, str]]:
    """Return (keys, what they do); the digits, which all do the same, are one row."""
    found: dict[str, list[str]] = {}
    for binding in bindings:
        made = binding if isinstance(binding, Binding) else Binding(*binding)
        if made.description:
            is_digit = made.key.isdigit() and made.action.partition("(")[0] == "answer"
            what = "Give this answer" if is_digit else made.tooltip or made.description
            found.setdefault(what, []).extend(map(_name_of, made.key.split(",")))
    return [("1-9" if len(keys) == 9 and keys[0] == "1" else " ".join(keys), what) for what, keys in found.items()]


def _name_of(key: str) -> str:
    return _NAMES.get(key) or key.replace("ctrl+", "Ctrl+")
