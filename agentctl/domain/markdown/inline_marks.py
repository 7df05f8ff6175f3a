"""The marks within a block of Markdown: code, links, emphasis; each is left out where it can be nothing else."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator

_TICKS = re.compile(r"\\+|`+")
_ESCAPED = re.compile(r"\\[*_`\[\]~#]")
#: Behind a letter it is code: `handlers[0](event)`.
_LINK = re.compile(
    r"(?<![A-Za-z0-9_)\]])!?\[([^\[\]]{1,300})\]"
    r"\(<?([^\s()<>]{0,1000}(?:\([^\s()<>]{0,100}\)[^\s()<>]{0,100}){0,3})>?(?:[ \t]+\"[^\"]{0,300}\")?\)"
)
_BARE = re.compile(r"<?https?://[^\s<>]+>?")
_BEHIND_BARE = "*_`~.,;:!?'\")]}>"
_WEB_HOST = re.compile(r"https?://([A-Za-z0-9.-]+(?::\d+)?)(?=[/?#]|\Z)")
#: What leads to something else than a file or a place in it: `javascript:` or `//d.org`, but not `a.py:12`.
_ELSEWHERE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?!\d)|[/\\]{2}")
_DUNDER = re.compile(r"\w+")
_EMPHASIS = re.compile(r"\*+|_+")
_LONGEST_EMPHASIS = 3
#: Stands for a character in which no mark is looked for: a letter, though none of ASCII.
_SOLID = "é"
_QUOTES, _OPENING, _CLOSING = "\"'\u201c\u2018\u201d\u2019«»", "([{<", ")]}>.,;:!?|…"
#: Between words, so that emphasis may begin behind them and end before them.
_BETWEEN = "—\u2013-*_~|"


class _Inline:
    """The text of one block, of which marks are left out.

    Args:
        text: The block.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        #: What is left of each character.
        self.left = [*text]
        #: The text in which marks are looked for: what holds none is solid.
        self._shadow = [*text]

    @property
    def shadow(self) -> str:
        return "".join(self._shadow)

    def drop(self, begin: int, end: int) -> None:
        """Leave characters out."""
        self.left[begin:end] = [""] * (end - begin)

    def hide(self, begin: int, end: int, by: str = _SOLID) -> None:
        """Let no mark be found in characters."""
        self._shadow[begin:end] = [by] * (end - begin)

    def take_code(self) -> None:
        """Leave out what stands around code, and let the code be as it is."""
        for begin, end, width in _code_spans(self._text):
            self.drop(begin, begin + width)
            self.drop(end, end + width)
            code = self._text[begin + width : end]
            if code.strip() and code[0] == code[-1] == " ":
                self.drop(begin + width, begin + width + 1)
                self.drop(end - 1, end)
            self.hide(begin, end + width)

    def hide_escapes(self) -> None:
        """Let no mark be found behind a backslash, which stays: it may be one of a path or a pattern."""
        for found in _ESCAPED.finditer(self.shadow):
            self.hide(*found.span())

    def take_links(self) -> None:
        """Let of each link be its text and its host."""
        for found in _LINK.finditer(self.shadow):
            label, address = (self._text[slice(*found.span(group))] for group in (1, 2))
            leads_to = _leads_to(label, address)
            if leads_to is None:
                self.hide(*found.span(2))
                continue
            self.drop(found.start(), found.start(1))
            self.drop(found.end(1), found.end())
            self.left[found.end(1)] = leads_to
            self.hide(found.end(1), found.end(), ")")
        for found in _BARE.finditer(self.shadow):
            begin, end = found.span()
            if found[0][0] + found[0][-1] == "<>":
                self.drop(begin, begin + 1)
                self.drop(end - 1, end)
            self.hide(begin, begin + len(found[0].rstrip(_BEHIND_BARE)))

    def take_emphasis(self) -> None:
        """Leave out what makes emphasis."""
        for word in _DUNDER.finditer(self.shadow):
            if word[0].startswith("__") and word[0].endswith("__"):
                self.hide(*word.span())
        shadow, emphasis = self.shadow, _Emphasis()
        for run in _EMPHASIS.finditer(shadow):
            if len(run[0]) <= _LONGEST_EMPHASIS:
                for begin, end in emphasis.take(run, shadow[max(run.start() - 1, 0) : run.start()], shadow):
                    self.drop(begin, end)


def without_marks(text: str) -> str:
    """Return the text of a block without what makes code, links and emphasis of its parts."""
    inline = _Inline(text)
    inline.take_code()
    inline.hide_escapes()
    inline.take_links()
    inline.take_emphasis()
    return "".join(inline.left)


def _code_spans(text: str) -> Iterator[tuple[int, int, int]]:
    """Yield of each piece of code where its marks are, before and behind it, and how many they are."""
    runs = [*_TICKS.finditer(text)]
    closing: defaultdict[int, list[int]] = defaultdict(list)
    for run in reversed(runs):
        if run[0][0] == "`":
            closing[len(run[0])].append(run.start())
    at, slashes = 0, (0, 0)
    for run in runs:
        if run[0][0] == "\\":
            slashes = run.end(), len(run[0])
            continue
        is_escaped = slashes[0] == run.start() and slashes[1] % 2 == 1
        begin = run.start() + is_escaped
        ends = closing[run.end() - begin]
        while ends and ends[-1] < run.end():
            ends.pop()
        if begin >= at and begin < run.end() and ends:
            yield begin, ends[-1], run.end() - begin
            at = ends[-1] + run.end() - begin


def _leads_to(label: str, address: str) -> str | None:
    """Return what is said of a link behind its text; None where the link stays as it was written."""
    web = _WEB_HOST.match(address)
    if web is not None:
        return "" if address == label else f" ({web[1]})"
    return "" if _ELSEWHERE.match(address) is None else None


class _BegunEmphasis:
    """Marks that emphasis may have begun with, and how many of them are left."""

    def __init__(self, run: re.Match[str]) -> None:
        self.char, self.begin, self.left = run[0][0], run.start(), len(run[0])


class _Emphasis:
    """Which marks belong together."""

    def __init__(self) -> None:
        self._open: list[_BegunEmphasis] = []
        #: How many of a kind are open.
        self._number: Counter[str] = Counter()

    def take(self, run: re.Match[str], before: str, text: str) -> Iterator[tuple[int, int]]:
        """Yield which characters are marks, now that a further run has come."""
        char, behind, left = run[0][0], text[run.end() : run.end() + 1], len(run[0])
        if _can_end(char, before, behind):
            while left and self._number[char]:
                began = self._innermost(char)
                if began.left != left and _LONGEST_EMPHASIS not in (began.left, left):
                    break
                taken = min(began.left, left)
                began.left -= taken
                yield began.begin + began.left, began.begin + began.left + taken
                yield run.end() - left, run.end() - left + taken
                left -= taken
                if not began.left:
                    self._close()
        if left == len(run[0]) and _can_begin(run[0], before, behind):
            self._open.append(_BegunEmphasis(run))
            self._number[char] += 1

    def _innermost(self, char: str) -> _BegunEmphasis:
        """Return the last that has begun of a kind; what has begun in it has no end."""
        while self._open[-1].char != char:
            self._close()
        return self._open[-1]

    def _close(self) -> None:
        self._number[self._open.pop().char] -= 1


def _can_begin(marks: str, before: str, behind: str) -> bool:
    """Return whether emphasis may begin with marks, by the characters around them."""
    is_double = len(marks) > 1
    if _is_gap(behind):
        return False
    if before.isascii() and not _is_gap(before) and before not in _QUOTES + _OPENING + _BETWEEN + ":,;!?=":
        # A path may stand before it; a glob goes on otherwise.
        return marks[0] == "*" and is_double and before == "/" and behind.isalnum()
    if before and marks[0] == "_" and before.isalnum():
        return False
    if behind.isalnum() or not behind.isascii() or behind in "`*_":
        return True
    if behind in _QUOTES + _OPENING:
        return _is_gap(before) or before in _BETWEEN
    return is_double and behind not in _CLOSING.replace(".", "")


def _can_end(char: str, before: str, behind: str) -> bool:
    """Return whether emphasis may end with marks, by the characters around them."""
    if _is_gap(before) or before in _OPENING + "/":
        return False
    if before in _QUOTES and behind and behind in _QUOTES:
        return False
    if _is_gap(behind) or behind in _CLOSING + _QUOTES + _BETWEEN + "/":
        return True
    return not behind.isascii() and not (char == "_" and behind.isalnum())


def _is_gap(character: str) -> bool:
    """Return whether nothing that is seen stands in a place: a blank, the edge of the text."""
    return not character or character.isspace() or not character.isprintable()
