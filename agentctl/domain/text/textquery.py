"""What a search looks for: words or phrases that must all be in one text; where they are, and what is around them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from agentctl.lean import NamedTuple

#: A pattern of a person is tried on at most this many characters at a time: many take quadratic time. One that takes
#: exponential time, as `(a+)+$` does, has no bound here: only the command line takes patterns, and Ctrl-C ends it.
LONGEST_TRIED = 2000
#: How many characters of a text are shown around what was found.
WIDTH = 100
#: How long one is for programs, which cut it to the room that they have.
WIDE = 240
_CUT = "..."
_SPACE = re.compile(r"\s+")
#: Bytes that are the same in JSON and in plain text, whatever wrote it.
_PLAIN_RUN = re.compile(r"[A-Za-z0-9]+")


class Excerpt(NamedTuple):
    """A piece of a text on one line; `text[begin:end]` is what was found."""

    text: str
    begin: int
    end: int


class TextQuery:
    """What is looked for.

    Args:
        terms: Phrases, or with `is_regex` patterns of `re`; any white space in a phrase means any white space.
        is_case_sensitive: Otherwise upper and lower case are the same.

    Raises:
        ValueError: There is no term, or one is empty or not a pattern.
    """

    def __init__(self, terms: Sequence[str], *, is_regex: bool = False, is_case_sensitive: bool = False) -> None:
        if not terms or not all(term.strip() for term in terms):
            raise ValueError("there is nothing to look for")
        flags = 0 if is_case_sensitive else re.IGNORECASE
        self._is_regex = is_regex
        try:
            self._patterns = [re.compile(term if is_regex else _phrase(term), flags) for term in terms]
        except (re.error, RecursionError, OverflowError) as error:
            raise ValueError(f"it is not a regular expression: {error}") from error
        #: Bytes in lower case, each of which is in the bytes of any text that has all terms, also within JSON.
        self.needles = [] if is_regex else [needle for needle in map(_needle, terms) if needle]

    def find(self, text: str) -> tuple[int, int] | None:
        """Return where the first of the terms is in a text that has all of them; None if it lacks any.

        >>> TextQuery(["the end", "we"]).find("We meet at\\nThe  END")
        (0, 2)
        >>> TextQuery(["end", "begin"]).find("The end")
        """
        found: tuple[int, int] | None = None
        for pattern in self._patterns:
            span = self._span(pattern, text)
            if span is None:
                return None
            found = span if found is None else min(found, span)
        return found

    def _span(self, pattern: re.Pattern[str], text: str) -> tuple[int, int] | None:
        pieces = _pieces(text) if self._is_regex else ((0, text),)
        for at, piece in pieces:
            match = next(filter(_is_something, pattern.finditer(piece)), None)
            if match is not None:
                return at + match.start(), at + match.end()
        return None

    def may_be_in(self, lowered: bytes) -> bool:
        """Return False only if bytes in lower case cannot be those of a text that has all terms."""
        return all(needle in lowered for needle in self.needles)


def _is_something(match: re.Match[str]) -> bool:
    return match.end() > match.start()


def _phrase(term: str) -> str:
    return r"\s+".join(map(re.escape, term.split()))


def _needle(term: str) -> bytes:
    """Return the longest part of a phrase that is written alike everywhere; empty if there is none.

    >>> _needle('say "good\\tbye"'), _needle("äöü")
    (b'good', b'')
    """
    return max(_PLAIN_RUN.findall(term), key=len, default="").lower().encode()


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    """Yield (offset, line) of a text; of a long line in pieces."""
    at = 0
    for line in text.splitlines(keepends=True):
        for begin in range(0, len(line), LONGEST_TRIED):
            yield at + begin, line[begin : begin + LONGEST_TRIED].rstrip("\r\n")
        at += len(line)


def terms_of(text: str) -> list[str]:
    """Return the words of a line in which somebody types a search; what is in quotes is one phrase.

    >>> terms_of('lock "no such file" ENOENT "open end')
    ['lock', 'no such file', 'ENOENT', 'open end']
    """
    found = re.findall(r'"([^"]*)"?|([^\s"]+)', text)
    return [term for term in (quoted or word for quoted, word in found) if term.strip()]


def excerpt_of(text: str, begin: int, end: int, width: int = WIDTH) -> Excerpt:
    """Return about `width` characters of a text on one line, with what was found in the middle, if it is not at an end.

    >>> excerpt_of("a long way to\\n\\nthe  end, and further on", 15, 18, width=15)
    Excerpt(text='...ay to the end, ...', begin=9, end=12)
    """
    found = _on_one_line(text[begin : min(end, begin + width)])
    beside = max(0, width - len(found))
    before = _on_one_line(text[max(0, begin - 4 * width) : begin])
    after = _on_one_line(text[end : end + 4 * width])
    # What one side does not need is the other's.
    ahead = min(len(before), max(beside // 2, beside - len(after)))
    shown, rest = before[len(before) - ahead :], after[: beside - ahead]
    is_cut = len(shown) < len(before) or begin > 4 * width
    head = (_CUT if is_cut else "") + shown
    is_cut_behind = len(rest) < len(after) or end + 4 * width < len(text) or end > begin + width
    return Excerpt(f"{head}{found}{rest}{_CUT if is_cut_behind else ''}", len(head), len(head) + len(found))


def _on_one_line(text: str) -> str:
    return _SPACE.sub(" ", text)
