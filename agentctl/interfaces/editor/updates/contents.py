"""Texts as a client shows them: to the protocol, content is Markdown, so anything else stands as code.

What agents say goes as they wrote it. An output is what a terminal would show of it, and a call what it would do; a
sentence of ours, or of a program, is code only where it has a mark of Markdown. Some clients run in a terminal: nothing
that one would obey gets through.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from typing import Any

from agentctl.domain.text.plaintext import beginning, plain
from agentctl.domain.text.terminal_output import rows_of_text
from agentctl.domain.text.words_diff import ADDED, KEPT, REMOVED
from agentctl.interfaces.editor.updates.client_bounds import bounded_json, pieces_of_text
from agentctl.interfaces.words.looks.call_look import CallLine, CallLook, CallPart

Content = dict[str, Any]
#: In characters: the most of a text in a call's content; more of an output is not looked at, since a progress bar is
#: long, and one line in the end.
_LONGEST, _LOOKED_AT = 10_000, 1 << 16
_COMMAND = "$"
#: What may be a mark of Markdown in a line, or at its beginning.
_MARKS = re.compile(r"[`*_~\\\[<&$]|^(?: {4}|\t| {0,3}(?:[-+=#>]|\d+[.)]))")
#: The sign of what is said about a file that ends without a line break.
_NO_BREAK = "\\"


def as_said(text: str) -> str:
    r"""Return what somebody says, with what a terminal would obey spelled out.

    >>> as_said("**a**\r\n\x1b[31mb")
    '**a**\n\\x1b[31mb'
    """
    return plain(text.replace("\r\n", "\n"), keep="\n\t")


def as_written(text: str) -> str:
    r"""Return a text other than Markdown so that all of it is seen: as code where a mark of Markdown may be in it.

    >>> as_written("It is tried again."), as_written("skipped: rm *a* `b`\r\n")
    ('It is tried again.', '`` skipped: rm *a* `b` ``')
    """
    text = as_said(text).strip("\n")
    if "\n" in text:
        return fenced(text)
    return code_span(text) if _MARKS.search(text) else text


def text_content(text: str) -> list[Content]:
    """Return what somebody says as the content of a tool call, cut if it is long."""
    return _content(pieces_of_text(beginning(as_said(text), _LONGEST)))


def code_content(text: str, language: str = "") -> list[Content]:
    """Return a text as code, cut if it is long: each piece by itself, as it comes by itself."""
    return _content([fenced(piece, language) for piece in pieces_of_text(beginning(as_said(text), _LONGEST))])


def output_content(text: str, *, is_end: bool = False) -> list[Content]:
    """Return what a terminal would show of an output, or of its end alone; nothing where that is blank."""
    shown = "\n".join(row.text.rstrip() for row in rows_of_text(text[:_LOOKED_AT], is_end=is_end)).strip("\n")
    if not shown:
        return []
    return code_content(shown if len(text) <= _LOOKED_AT else f"{shown}\n[cut: {len(text)} characters]")


def fenced(text: str, language: str = "") -> str:
    """Return a text as code, in which nothing is Markdown, and which it cannot end.

    >>> fenced("a"), fenced("```")
    ('```\\na\\n```', '````\\n```\\n````')
    """
    fence = "`" * max(3, _ticks_around(text))
    return f"{fence}{language}\n{text}\n{fence}"


def code_span(line: str) -> str:
    """Return a line as code between words.

    >>> code_span("*a*"), code_span("`"), code_span(" a ")
    ('`*a*`', '`` ` ``', '`  a  `')
    """
    ticks = "`" * _ticks_around(line)
    blank = " " if line[:1] in ("`", " ") or line[-1:] in ("`", " ") else ""
    return f"{ticks}{blank}{line}{blank}{ticks}"


def _ticks_around(text: str) -> int:
    return 1 + max(map(len, re.findall("`+", text)), default=0)


def _content(pieces: Sequence[str]) -> list[Content]:
    return [{"type": "content", "content": {"type": "text", "text": piece}} for piece in pieces]


def look_content(look: CallLook, cwd: str, shown: Callable[[str], str] = as_said) -> list[Content]:
    """Return what a call would do: a diff of each file that it changes, a command as a command.

    Args:
        cwd: The folder from which relative paths lead.
        shown: Makes a line safe to show.
    """
    return [content for part in look.parts for content in _part(part, cwd, shown)]


def _part(part: CallPart, cwd: str, shown: Callable[[str], str]) -> list[Content]:
    lines = [line._replace(text=shown(line.text)) for line in part.lines]
    signs = {line.sign for line in lines}
    if signs and signs <= {KEPT, REMOVED, ADDED, _NO_BREAK} and part.subject:
        return [_diff(lines, os.path.join(cwd, shown(part.subject)))]
    if lines and lines[0].sign == _COMMAND:
        return code_content("\n".join(line.text for line in lines), "sh")
    head = shown(f"{part.verb} {part.subject}".rstrip())
    return code_content("\n".join([head, *(line.sign + line.text for line in lines)]), "diff")


def _diff(lines: Sequence[CallLine], path: str) -> Content:
    """Return the change of a file; what is only written ends with a line break, unless a line says that it does not."""
    old = [line.text for line in lines if line.sign in (KEPT, REMOVED)]
    new = [line.text for line in lines if line.sign in (KEPT, ADDED)]
    is_written = all(line.sign in (ADDED, _NO_BREAK) for line in lines)
    ends_open = any(line.sign == _NO_BREAK for line in lines)
    text = "\n".join(new) + ("\n" if is_written and not ends_open else "")
    change = {"type": "diff", "path": plain(path), "newText": text} | ({"oldText": "\n".join(old)} if old else {})
    return bounded_json(change)  # type: ignore[no-any-return]
