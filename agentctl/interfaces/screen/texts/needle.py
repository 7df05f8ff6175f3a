"""What is searched for: small letters find capitals too, as in `less -i`."""

from __future__ import annotations

import re

#: Letters mean the same in a file and on the screen; other characters may be escaped in one of them.
_WORD = re.compile(r"[A-Za-z]{3,}")


class Needle:
    """A text that is searched for, in lines as they are drawn; its words are also found in the bytes of a file."""

    def __init__(self, text: str) -> None:
        self.text = text
        flags = 0 if any(character.isupper() for character in text) else re.IGNORECASE
        self._pattern = re.compile(re.escape(text), flags)
        self._word = max(_WORD.findall(text), key=len, default="")
        self._raw = re.compile(self._word.encode(), flags)

    def spans(self, line: str) -> list[tuple[int, int]]:
        """Return where it is in a line."""
        return [found.span() for found in self._pattern.finditer(line)] if self.text else []

    def is_in(self, line: str) -> bool:
        """Return whether it is in a line."""
        return bool(self.text) and self._pattern.search(line) is not None

    def may_be_in(self, data: bytes) -> bool:
        """Return whether it may be in what is shown of some bytes of a file; if not, these need not be decoded."""
        return self._raw.search(data) is not None

    def may_be_in_words(self, *texts: str | None) -> bool:
        """Return whether its longest word is in one of some texts, in capitals or not."""
        word = self._word.lower()
        return any(word in text.lower() for text in texts if text)
