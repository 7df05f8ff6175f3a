"""Which part of each line is a comment: a marker inside a string is data, not a note."""

from __future__ import annotations

import io
import re
import tokenize

from brace_functions import FAMILIES
from code_text import comments_in

#: Of the languages that are not read more exactly: whatever begins a comment in one of them.
_BEGINS = re.compile(r"#|//|/\*|--|<!--|;|%|^\s*\*|\bREM\b|\{-|\(\*|\.\.\s")


def comment_lines(text: str, language: str) -> dict[int, str]:
    """The comment of each line that has one, by the line's number."""
    if language == "Python":
        try:
            return _python(text)
        except (tokenize.TokenError, SyntaxError):
            return _guessed(text)
    if language in FAMILIES:
        return _braces(text, FAMILIES[language])
    return _guessed(text)


def _python(text: str) -> dict[int, str]:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return {token.start[0]: token.string for token in tokens if token.type == tokenize.COMMENT}


def _braces(text: str, family: str) -> dict[int, str]:
    found: dict[int, str] = {}
    for first, comment in comments_in(text, family):
        for number, line in enumerate(comment.split("\n"), start=first):
            found[number] = f"{found.get(number, '')} {line}"
    return found


def _guessed(text: str) -> dict[int, str]:
    matches = ((number, line, _BEGINS.search(line)) for number, line in enumerate(text.split("\n"), start=1))
    return {number: line[match.start() :] for number, line, match in matches if match}
