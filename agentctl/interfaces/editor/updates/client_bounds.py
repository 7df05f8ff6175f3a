"""Bounds what agents wrote before it goes to a client: its size, its depth, and numbers that no other parser reads.

Some clients run in a terminal, and show also the arguments of a call and the lines of a diff: what it would obey is
spelled out in all of them.
"""

from __future__ import annotations

from typing import Any

from agentctl.domain.text.numbers import finite
from agentctl.domain.text.plaintext import beginning, plain, whole

#: In characters: of one text within a value, and of a whole value.
_LONGEST_TEXT, _LONGEST_VALUE = 4000, 32_000
_DEEPEST, _MOST_ITEMS = 12, 200
#: A message is sent in pieces of this many characters: some clients read lines of 64 KiB at most.
_LONGEST_PIECE = 8000


def bounded_json(value: Any) -> Any:
    r"""Return a JSON value as a client may have it; what is too long or too deep is cut, and says so.

    >>> bounded_json({"n": float("nan"), "big": 10**30, "text": "\x1b[2J"})
    {'n': 'nan', 'big': '1000000000000000000000000000000', 'text': '\\x1b[2J'}
    """
    return _Bounding().bounded(value, 0)


def spelled_out(text: str) -> str:
    r"""Return a text with its lines, whichever way they end, and with what a terminal would obey spelled out.

    >>> spelled_out("a\r\nb\rc\x1b[2J")
    'a\r\nb\\rc\\x1b[2J'
    """
    return "\r\n".join(plain(part, keep="\n\t") for part in text.split("\r\n"))


class _Bounding:
    """One value, with what is left of its room."""

    def __init__(self) -> None:
        self._room = _LONGEST_VALUE

    def bounded(self, value: Any, depth: int) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, (dict, list)):
            if depth >= _DEEPEST or self._room <= 0:
                return "[cut]"
            return self._object(value, depth) if isinstance(value, dict) else self._array(value, depth)
        self._room -= 8
        return value if value is None or isinstance(value, bool) else _number(value)

    def _text(self, text: str) -> str:
        shown = beginning(whole(spelled_out(text)), max(0, min(_LONGEST_TEXT, self._room)))
        self._room -= len(shown)
        return shown

    def _object(self, value: dict[Any, Any], depth: int) -> dict[str, Any]:
        found = {self._text(str(key)): self.bounded(item, depth + 1) for key, item in list(value.items())[:_MOST_ITEMS]}
        return found if len(value) <= _MOST_ITEMS else {**found, "[cut]": f"{len(value)} keys"}

    def _array(self, value: list[Any], depth: int) -> list[Any]:
        found = [self.bounded(item, depth + 1) for item in value[:_MOST_ITEMS]]
        return found if len(value) <= _MOST_ITEMS else [*found, f"[cut: {len(value)} items]"]


def _number(value: Any) -> Any:
    """Return a number that every parser of JSON reads; the text of any other value."""
    if finite(value) is not None:
        return value
    try:
        return str(value)[:100]
    except ValueError:  # Python writes no integer of more than 4,300 digits.
        return "a number of thousands of digits"


def pieces_of_text(text: str) -> list[str]:
    """Return a text in pieces that fit a line of any client; one empty piece where there is no text.

    >>> [len(piece) for piece in pieces_of_text("x" * 8001)]
    [8000, 1]
    """
    text = whole(text)
    return [text[at : at + _LONGEST_PIECE] for at in range(0, len(text), _LONGEST_PIECE)] or [""]
