"""Source text of brace languages without what only looks like code: comments and strings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

_C_COMMENT = r"//[^\n]*|/\*.*?(?:\*/|\Z)"
_DOUBLE = r'"(?:\\.|[^"\\\n])*"'
_SINGLE = r"'(?:\\.|[^'\\\n])*'"
_CHARACTER = r"'(?:\\[^\n']{1,9}|\\'|[^'\\\n])'"  # bounded: Rust's lifetimes ('a) never close
_BLOCK_STRING = r'""".*?(?:"""|\Z)'
_TEMPLATE = r"`(?:\\.|[^`\\])*`"
_REGEXP = (
    r"(?:(?<=[=(,:;!&|?{}\[+*%~^>])|(?<=return))[ \t]*/(?![*/])"
    r"(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n\[])+/"
)

_PATTERNS = {
    "script": f"{_C_COMMENT}|{_REGEXP}|{_DOUBLE}|{_SINGLE}|{_TEMPLATE}",
    "php": f"{_C_COMMENT}|(?<!\\S)#(?!\\[)[^\\n]*|{_DOUBLE}|{_SINGLE}",
    "go": f"{_C_COMMENT}|{_DOUBLE}|`[^`]*`|{_CHARACTER}",
    "rust": f'{_C_COMMENT}|r(#*)".*?"\\1|{_DOUBLE}|{_CHARACTER}',
    "dart": f"{_C_COMMENT}|{_BLOCK_STRING}|{_DOUBLE}|{_SINGLE}",
    "c": f'{_C_COMMENT}|R"([^(\\s]{{0,16}})\\(.*?\\)\\1"|@"(?:[^"]|"")*"|{_BLOCK_STRING}|{_DOUBLE}|{_CHARACTER}',
}


def without_comments_and_strings(text: str, family: str) -> str:
    """The same number of lines; each string is left as `""`."""
    return _pattern(family).sub(lambda match: _emptied(match[0]), text)


def strings_apart(text: str, family: str) -> tuple[str, list[str]]:
    """The text without comments, each string replaced by its number in quotes, and the strings.

    So a pattern finds `from "7"` where the program says `from "x"`, and nothing that a string only tells of.
    """
    strings: list[str] = []

    def replaced(match: re.Match[str]) -> str:
        found = match[0]
        if _is_comment(found):
            return _emptied(found)
        strings.append(found[1:-1])
        return f'"{len(strings) - 1}"'

    return _pattern(family).sub(replaced, text), strings


def comments_in(text: str, family: str) -> Iterator[tuple[int, str]]:
    """Each comment with the number of the line where it begins."""
    line, position = 1, 0
    for match in _pattern(family).finditer(text):
        if _is_comment(match[0]):
            line += text.count("\n", position, match.start())
            position = match.start()
            yield line, match[0]


def without_other_branches(text: str) -> str:
    """Only the first branch of each `#if`: two branches may each open the brace that is closed once."""
    kept: list[str] = []
    dropping: list[bool] = []
    for line in text.split("\n"):
        directive = line.lstrip()
        if directive.startswith("#"):
            word = directive[1:].lstrip()
            if word.startswith("if"):
                dropping.append(False)
            elif word.startswith(("else", "elif")) and dropping:
                dropping[-1] = True
            elif word.startswith("endif") and dropping:
                dropping.pop()
            kept.append("")
        else:
            kept.append("" if any(dropping) else line)
    return "\n".join(kept)


@cache
def _pattern(family: str) -> re.Pattern[str]:
    return re.compile(_PATTERNS[family], re.DOTALL)


def _emptied(found: str) -> str:
    lines = "\n" * found.count("\n")
    return f" {lines}" if _is_comment(found) else f'""{lines}'


def _is_comment(found: str) -> bool:
    return found.startswith(("//", "/*", "#"))
