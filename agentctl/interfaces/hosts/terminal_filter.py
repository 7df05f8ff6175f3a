"""What of another host's output reaches the terminal here: text, looks, and of a live table the motions that draw it.

Everything else that a terminal would obey is escaped: titles, clipboard, queries that the terminal would answer, other
character sets, and what turns the direction of text.
"""

from __future__ import annotations

import codecs
import re

from agentctl.domain.text.plaintext import ESCAPES

_KEPT = {"\n", "\t"}
_SEQUENCE = re.compile(r"\r?\x1b\[([0-9;]{0,20})([A-Za-z])|\x1b\[\?25([hl])")
#: Begins the line anew in which the terminal stands, as `logs -f` does with a progress bar.
_ANEW = "\r\x1b[K"
#: An escape sequence, or an end of a line, of which more may follow.
_UNFINISHED = re.compile(r"\r?\x1b(?:\[(?:[0-9;]{0,20}|\?2?5?))?\Z|\r\Z")
#: Looks that hide nothing: neither invisible (8) nor blinking.
_LOOKS = frozenset({"", "0", "1", "2", "3", "4", "7", "9", "22", "23", "24", "27", "29", "39", "49"}) | {
    str(base + colour) for base in (30, 40, 90, 100) for colour in range(8)
}
#: Up, down, right, left, column, erase below, erase a line.
_MOTIONS = frozenset("ABCDGJK")


class TerminalFilter:
    """Makes what comes, piece by piece, safe for a terminal.

    Args:
        encoding: The terminal's, in which everything comes.
        draws: The command draws a table again and again: motions of the cursor pass, too.
    """

    def __init__(self, encoding: str = "utf-8", *, draws: bool = False) -> None:
        self.encoding, self.draws = encoding, draws
        self._decoder = codecs.getincrementaldecoder(encoding)("backslashreplace")
        self._rest = ""

    def feed(self, data: bytes, *, is_last: bool = False) -> bytes:
        r"""Return what of the data may be written now.

        >>> TerminalFilter().feed(b"\x1b[31mred\x1b[0m \x1b]0;title\x07")
        b'\x1b[31mred\x1b[0m \\x1b]0;title\\x07'
        """
        text = self._rest + self._decoder.decode(data, is_last)
        unfinished = None if is_last else _UNFINISHED.search(text)
        cut = len(text) if unfinished is None else unfinished.start()
        self._rest = text[cut:]
        return self._safe(text[:cut]).encode(self.encoding, "backslashreplace")

    def _safe(self, text: str) -> str:
        text = text.replace("\r\n", "\n")  # ssh ends its own lines so.
        if text.isascii() and text.isprintable():
            return text
        parts, start = [], 0
        for found in _SEQUENCE.finditer(text):
            parts.append(self._escaped(text[start : found.start()]))
            parts.append(found[0] if self._passes(found) else self._escaped(found[0]))
            start = found.end()
        return "".join([*parts, self._escaped(text[start:])])

    def _passes(self, found: re.Match[str]) -> bool:
        if found[0] == _ANEW or found[3] is not None:
            return self.draws or found[0] == _ANEW
        if found[0][0] == "\r" and not self.draws:
            return False
        if found[2] == "m":
            return _is_look(found[1].split(";"))
        return self.draws and found[2] in _MOTIONS

    def _escaped(self, text: str) -> str:
        kept = _KEPT | {"\r"} if self.draws else _KEPT
        return text.translate({code: shown for code, shown in ESCAPES.items() if chr(code) not in kept})


def _is_look(numbers: list[str]) -> bool:
    """Return whether the numbers of a sequence set looks that hide nothing.

    >>> [_is_look(text.split(";")) for text in ("1;31", "38;5;200", "48;2;1;2;3", "8", "38;5", "1;8")]
    [True, True, True, False, False, False]
    """
    left = [number.lstrip("0") or "0" if number else "" for number in numbers]
    while left:
        if left[0] in {"38", "48"}:
            length = {"5": 3, "2": 5}.get(left[1] if len(left) > 1 else "", 0)
            if not length or len(left) < length:
                return False
            left = left[length:]
        elif left.pop(0) not in _LOOKS:
            return False
    return True


_MODES_OF_SCREENS = (1049, 1000, 1002, 1003, 1006, 1015, 1016, 1004, 2004, 2031, 2048)
#: Shows the cursor, and ends looks and the line.
AFTER_TABLE = b"\x1b[?25h\x1b[0m\r\n"
#: Ends whatever a screen over there has switched on here: another screen, mouse, focus, paste, keys, title.
AFTER_SCREEN = b"".join(b"\x1b[?%dl" % mode for mode in _MODES_OF_SCREENS) + b"\x1b[<u\x1b[?7h\x1b[23;0t" + AFTER_TABLE
