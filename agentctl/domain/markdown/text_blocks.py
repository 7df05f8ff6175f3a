"""The blocks of a text in Markdown: paragraphs, headings, items of lists, lines of code; with all but their marks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from agentctl.lean import NamedTuple

BULLET = "• "
#: All marks or none: with fewer of them the rest would be looked at again and again.
_FENCE = re.compile(r"\s*(`{3,}|~{3,}(?!~))([^`]*)")
_QUOTE = re.compile(r"(?: {0,3}> ?)+")
_HEADING = re.compile(r" {0,3}#{1,6}(?=[ \t]|$)")
_ITEM = re.compile(r"\s*(?:[-+*]|(\d{1,9}[.)]))[ \t]+(?=\S)")
_CODE_INDENT = re.compile(r" {4}|\t")
#: A line of so many of one of these, and nothing else, is a rule or what stands below a heading.
_RULES, _LEAST_OF_RULE = "-*_=", 3
_OF_TABLE_RULE = frozenset("|:- \t")


class TextBlock(NamedTuple):
    """A paragraph, a heading, an item of a list, a line of code."""

    text: str
    #: What stands before it.
    mark: str = ""
    is_code: bool = False
    is_heading: bool = False


class _BlockReader:
    """Makes blocks of lines, one after the other."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._mark = ""
        #: What has opened the code in which the lines are, and whether that is quoted.
        self._fence, self._is_quoted = "", False
        self._is_in_list, self._is_behind_blank = False, True

    def take(self, line: str) -> Iterator[TextBlock]:
        """Yield what is complete, now that a line has come."""
        quote = _QUOTE.match(line)
        inner = line[quote.end() :] if quote is not None and (not self._fence or self._is_quoted) else line
        if self._fence:
            yield from self._in_code(inner)
            return
        if not inner.strip():
            self._is_behind_blank = True
            yield from self.end()
            return
        item = None if _is_rule(inner) else _ITEM.match(inner)
        rest = inner[item.end() :] if item is not None else inner
        if (opened := _FENCE.fullmatch(rest)) is not None:
            yield from self.end()
            self._fence, self._is_quoted = opened[1], quote is not None
            if len(opened[2].split()) > 1:  # One word is the language; more of them may be what the text is about.
                yield TextBlock(opened[2], is_code=True)
        elif item is None and self._is_behind_blank and not self._is_in_list and _CODE_INDENT.match(inner):
            yield TextBlock(inner, is_code=True)
        else:
            yield from self._words(item, rest)
            self._is_behind_blank = False

    def end(self, *, is_heading: bool = False) -> Iterator[TextBlock]:
        """Yield the block that is open, if one is."""
        if self._lines:
            yield TextBlock("\n".join(self._lines), self._mark, is_heading=is_heading)
        self._lines, self._mark = [], ""

    def _in_code(self, line: str) -> Iterator[TextBlock]:
        stripped = line.strip()
        if len(stripped) >= len(self._fence) and stripped == self._fence[0] * len(stripped):
            self._fence = ""
        elif stripped:
            yield TextBlock(line, is_code=True)

    def _words(self, item: re.Match[str] | None, line: str) -> Iterator[TextBlock]:
        first = line.lstrip()[0]
        if item is None and _is_rule(line) and (self._lines or first != "="):
            yield from self.end(is_heading=first in "=-")
        elif item is None and _is_rule_of_table(line) and self._lines and "|" in self._lines[-1]:
            self._lines[-1] = _row(self._lines[-1])
        elif (heading := _HEADING.match(line)) is not None:
            yield from self.end()
            yield TextBlock(_without_closing(line[heading.end() :]), _mark_of(item), is_heading=True)
        elif item is not None:
            yield from self.end()
            self._lines, self._mark, self._is_in_list = [line], _mark_of(item), True
        else:
            self._is_in_list = self._is_in_list and (not self._is_behind_blank or line[0] in " \t")
            self._lines.append(_row(line) if first == "|" else line)


def blocks_of_markdown(lines: Iterable[str]) -> Iterator[TextBlock]:
    """Yield the blocks of a text, with what is to be shown before each."""
    reading = _BlockReader()
    for line in lines:
        yield from reading.take(line)
    yield from reading.end()


def _mark_of(item: re.Match[str] | None) -> str:
    return "" if item is None else f"{item[1]} " if item[1] else BULLET


def _is_rule(line: str) -> bool:
    marks = "".join(line.split())
    return len(marks) >= _LEAST_OF_RULE and marks[0] in _RULES and marks == marks[0] * len(marks)


def _is_rule_of_table(line: str) -> bool:
    return "|" in line and "-" in line and _OF_TABLE_RULE.issuperset(line.strip())


def _row(line: str) -> str:
    """Return a row of a table without the bars around it."""
    stripped = line.strip()
    return stripped[1:-1] if len(stripped) > 1 and stripped[0] == stripped[-1] == "|" else line


def _without_closing(text: str) -> str:
    """Return a heading without the marks at its end."""
    words = text.rstrip()
    title = words.rstrip("#")
    return title if not title or title[-1] in " \t" else words
