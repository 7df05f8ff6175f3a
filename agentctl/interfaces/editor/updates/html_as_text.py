"""Lets HTML in a text in Markdown be text: a client that obeys it, or drops it, would hide what stands below.

By CommonMark 0.31 (4.5, 4.6, 6.1, 6.6), but without a parser, since clients have different ones: a tag stays as it is
only where it is code to all of them. Elsewhere a backslash stands before it, which is not seen where the text is drawn.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby

#: A tag, a comment, a declaration; behind an odd number of backslashes it is text already.
_TAG = re.compile(r"(?<!\\)((?:\\\\)*)<(?=/?[A-Za-z][A-Za-z0-9-]*(?:[\s/>]|$)|[!?])")
_OPENING = re.compile(r"( {0,3})(`{3,}(?=[^`]*$)|~{3,})")
_CLOSING = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*")
_TICKS = re.compile("`+")
#: In a line with a link, and in a word behind these, a mark of code may be another one: of an address, or escaped.
_OF_A_LINK, _OF_A_WORD = re.compile(r"\][(\[]"), re.compile(r"[\w\\]")


def html_as_text(text: str) -> str:
    r"""Return a text in Markdown without HTML: what was some is text.

    >>> print(html_as_text("`Vec<T>`, Vec<T>, a < b\n```\n<div>\n```\n<!-- c"))
    `Vec<T>`, Vec\<T>, a < b
    ```
    <div>
    ```
    \<!-- c
    """
    shown: list[str] = []
    for (is_code, _), part in groupby(_told_apart(text.split("\n")), key=lambda one: one[0]):
        lines = [line for _, line in part]
        shown += lines if is_code else _without_tags(lines)
    return "\n".join(shown)


def _told_apart(lines: Iterable[str]) -> Iterator[tuple[tuple[bool, bool], str]]:
    """Yield ((is in a fence, is blank), line).

    A fence at the edge ends all lists and quotes. One behind one to three blanks may be in a list or below it: from
    there on it is not known which fence begins code, and which one ends it.
    """
    fence, is_known = "", True
    for line in lines:
        if fence:
            yield (True, False), line
            closing = _CLOSING.fullmatch(line)
            if closing is not None and closing[1].startswith(fence):
                fence = ""
            continue
        opening = _OPENING.match(line)
        is_known = is_known and (opening is None or not opening[1])
        fence = opening[2] if opening is not None and is_known else ""
        yield (bool(fence), not line.strip()), line
    if fence:  # Of a text that was cut: what stands below it would be code, and what is code there would not.
        yield (True, False), fence


def _without_tags(lines: list[str]) -> Iterator[str]:
    """Yield lines between which no blank one is: where one has a mark without an end, none of their code is known."""
    known = [_code_in(line) for line in lines]
    for line, code in zip(lines, known, strict=True):
        at = 0
        shown = []
        for begin, end in code if code is not None and None not in known else ():
            shown += [_escaped(line[at:begin]), line[begin:end]]
            at = end
        yield "".join([*shown, _escaped(line[at:])])


def _escaped(text: str) -> str:
    return _TAG.sub(r"\1\\<", text)


def _code_in(line: str) -> list[tuple[int, int]] | None:
    """Return where code stands in a line; None where that follows from other lines, or not from its marks alone."""
    if _OF_A_LINK.search(line):
        return None
    found: list[tuple[int, int]] = []
    at, runs = 0, _TICKS.finditer(line)
    for first in runs:
        last = next((run for run in runs if len(run[0]) == len(first[0])), None)
        word = line[at : first.start()].rpartition(" ")[2]
        if last is None or "|" in line[first.end() : last.start()] or _OF_A_WORD.search(word):
            return None
        found.append((first.start(), last.end()))
        at = last.end()
    return found
