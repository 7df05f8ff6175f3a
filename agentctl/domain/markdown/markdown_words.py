r"""What a text in Markdown says, in one line: for rows and notices, where nothing can be drawn.

Less is taken for Markdown here than by a parser of it. A row may show what nobody meant that way (`ls *.py **/*.js`,
`__init__`, `2 * 3 * 4`), and a mark too many is read over, while a character too few makes another command: that of
`rm *a*`, which is written as emphasis is, cannot be told from it. `~~` stays, too: without it a text would say the
opposite. A link is its text and its host, so that no text can pass for another
address. What comes out is never longer than what went in, and the work is linear.

It is for the words of agents, and is done once: what it returns may look like Markdown again, as code did before.
"""

from __future__ import annotations

import re

from agentctl.domain.markdown.inline_marks import without_marks
from agentctl.domain.markdown.text_blocks import BULLET, TextBlock, blocks_of_markdown

_MARKS = re.compile(r"[`*_#>|~\\\[<=+-]|\d[.)]")
#: What is left out as a mark, and what is put in its place; the brackets of a link go with its address. A single star
#: may be one of a command: `rm a b` does not say all of `rm *a* *b*`. Two of them are a mark beside a word: `**/x**` is
#: a glob.
_LEFT_OUT = frozenset("`#<>|-+=:" + BULLET)
_DOUBLE = re.compile(r"(?<![\w/.])(?:\*\*|__)(?=\w)|(?<=[\w?!.)])(?:\*\*|__)(?![\w/.])")
#: Behind one, as behind a letter, a heading needs a sign at its end.
_BRACKETS = ")]}>"


def words_of_markdown(text: str) -> str:
    r"""Return what a text says, in one line.

    >>> words_of_markdown("## What I found: **three** of `x`")
    'What I found: three of x'
    >>> words_of_markdown("# Done\n\n- [a](http://d.org/x) is *new*\n- `ls **/*.js`, see __init__.py")
    'Done: • a (d.org) is new • ls **/*.js, see __init__.py'
    """
    if not _MARKS.search(text):
        return " ".join(text.split())
    found: list[str] = []
    is_below_heading = False
    for block in blocks_of_markdown(text.split("\n")):
        if words := _words_of(block):
            if is_below_heading and (found[-1][-1].isalnum() or found[-1][-1] in _BRACKETS):
                found[-1] += ":"
            found.append(words)
            is_below_heading = block.is_heading
    return " ".join(found)


def _words_of(block: TextBlock) -> str:
    words = " ".join((block.text if block.is_code else without_marks(block.text)).split())
    return (block.mark + words).rstrip() if words or block.mark != BULLET else ""


def first_line_in_words(text: str) -> str:
    r"""Return what the first line of a text says that says anything; in code, the line as it is.

    >>> first_line_in_words("---\n# Deploy *now*?\nmore"), first_line_in_words("```sh\nrm **/x\n```")
    ('Deploy now?', 'rm **/x')
    """
    lines = text.splitlines()
    blocks = (block._replace(text=line) for block in blocks_of_markdown(lines) for line in block.text.split("\n"))
    whole = next(filter(str.strip, lines), "")
    return next(filter(None, map(_words_of, blocks)), " ".join(whole.split()))


def are_all_words(text: str, words: str) -> bool:
    r"""Return whether a text says no more than the words that were made of it: nothing but marks was left out.

    A sign says something, too: `rm -rf ./build` is not all where `~/*` stands below it.

    >>> texts = "**Go**?", "[Go](http://d.org/x)?", "rm a\n/*", "rm *a* *b*?"
    >>> [are_all_words(one, first_line_in_words(one)) for one in texts]
    [True, False, False, False]
    """
    return words_of_markdown(text) == words and _signs(text) == _signs(words)


def _signs(text: str) -> list[str]:
    return [one for one in _DOUBLE.sub("", text) if not (one in _LEFT_OUT or one.isspace())]
