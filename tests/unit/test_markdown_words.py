"""At stake: a row or a notice says what an agent has said, in one line, and no character of anything else is lost."""

from __future__ import annotations

import gc
import re
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentctl.domain.markdown.markdown_words import are_all_words, first_line_in_words, words_of_markdown

MARKS = ("# ", "- ", "1. ", "> ", "* ", "**", "*", "_", "__", "`", "``", "```\n", "| ", "|---|---|\n", "[x] ", "~~",
         "---\n", "===\n", "\\", "<b>", "&lt;", "    ", "\t", "\n", "\n\n", " ", "!", "[", "](", ")", "<http://a.bc>",
         "http://d.org/_x_", "\x1b[31m", "\r", "\x85", "\u2028", "\x00", "\ud800", "\u4e2d", "\u00e9")  # fmt: skip
WORDS = ("alpha", "beta", "gamma", "delta")
SOURCES = st.lists(st.sampled_from([*MARKS, *WORDS]), max_size=40).map("".join) | st.text()
NO_MARKDOWN = (*WORDS, "a_b_c", "2 * 3", "a*b", "__init__.py", "*.py", "**/*.js", "src/**", "f(*a, **b)", "C:\\new",
               "a->b", "x[0](1)", "~/.a", "#!/bin/sh", "#12", "1.5", "`", "$HOME", "a|b", "foo_", "&&", "2>&1",
               "\u4e2d")  # fmt: skip
#: What makes an address of a text, or says in which language a code is: of these words are left out.
OF_LINKS = ("](", "```\n", "``", "`", "~~")


@given(SOURCES)
@example("# a\nb")
@example("a\n---\nb")
@example("- " * 20)
@example("|a\n|-\n|b|c|\n")
def test_it_is_one_line_and_never_longer(source: str) -> None:
    words = words_of_markdown(source)
    assert len(words) <= len(source)
    assert words == " ".join(words.split()), "one line, without blanks around it"


@given(st.lists(st.sampled_from([one for one in (*MARKS, *WORDS) if one not in OF_LINKS]), max_size=40).map("".join))
@example("1. # ")
def test_no_letter_is_left_out(source: str) -> None:
    words = words_of_markdown(source)
    assert [one for one in source if one.isalnum()] == [one for one in words if one.isalnum()]


@given(SOURCES)
def test_what_comes_out_was_there_in_this_order(source: str) -> None:
    """But for blanks, the signs of items, what follows a heading, and the brackets around a host."""
    left = iter(source)
    for one in re.sub(r"[\s•:()]", "", words_of_markdown(source)):
        assert one in left


@given(st.lists(st.sampled_from(NO_MARKDOWN), max_size=12).map(" ".join))
@example("ls *.py **/*.js")
@example("2 * 3 * 4")
@example('"*" and "*" and \'**\' and (*) and (*)')
@example("*/5 * * * * root find . -name '*.pyc' -o -name '*.pyo'")
@example("**/a/** and **/b/**")
@example("int *p = &x, **q; 2**3**4; x.*y.*z; count(*) + sum(*)")
@example("src/__init__.py, __main__ and __name__")
@example("gcc -O2 *.c && ./a.out > /dev/null")
@example("https://d.org/_a_/*b*/c and s3://x/*")
@example(r"C:\_a_\*.txt and ^\*+\.py\*$")
@example("it is ~~not~~ so")
@example("<b>bold</b> &lt; a < b > c")
@example("=======")
def test_what_is_no_markdown_stays_letter_by_letter(source: str) -> None:
    if source.count("`") < 2:
        assert words_of_markdown(source) == source


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("## What I found: **three** of `x`", "What I found: three of x"),
        ("# A\n\nb", "A: b"),
        ("# A?\n\nb", "A? b"),
        ("## A `b` ##\nc", "A b: c"),
        ("A\n===\nb\n\n---\n\nc", "A: b c"),
        ("#no heading", "#no heading"),
        ("- *one*\n- __two words__\n  - three\n1. four", "• one • two words • three 1. four"),
        ("- [x] done\n- [ ] open", "• [x] done • [ ] open"),
        ("> quoted\n> > _twice_", "quoted twice"),
        ("> ```\n> a *b*\n> ```\n*c*", "a *b* c"),
        ("```python\nprint(*a, **b)\n\n# x\n```\n**end**", "print(*a, **b) # x end"),
        ("~~~ wait, do *not* do this ~~~\nDeploying now.", "wait, do *not* do this ~~~ Deploying now."),
        ("1. ```sh\n   ls *\n   ```\n2. *x*", "ls * 2. x"),
        ("Look:\n\n    *as* it is\n    # so\n\n*b*", "Look: *as* it is # so b"),
        ("| a | b |\n|---|:-:|\n| *1* | `2` |", "a | b 1 | 2"),
        ("***both*** and ***one** then* and **a *b***", "both and one then and a b"),
        ("**Note:** x, (*y*), \u4e2d**\u6587**\u4e2d", "Note: x, (y), \u4e2d\u6587\u4e2d"),
        ("**wrapped\nhere** and `code\nhere`", "wrapped here and code here"),
        ("`` a`b `` and `*a*` and \\`no\\` and \\*no\\*", "a`b and *a* and \\`no\\` and \\*no\\*"),
        ("**`git push`** and **/api/users** and *`x`*", "git push and /api/users and x"),
        ("[text](https://d.org:81/a?b)", "text (d.org:81)"),
        ("[https://a.org](https://b.org/x)", "https://a.org (b.org)"),
        ("[https://a.org](https://a.org) <https://b.org/x>", "https://a.org https://b.org/x"),
        ("[a](http://good.org@evil.org/)", "[a](http://good.org@evil.org/)"),
        ("[a](javascript:alert(1))", "[a](javascript:alert(1))"),
        ("[docs.org](//evil.org/x)", "[docs.org](//evil.org/x)"),
        ("[docs.org](/\\evil.org/x)", "[docs.org](/\\evil.org/x)"),
        ("[`a.py`](src/a_b_.py:12 \"A title\") and [b](a.py:3)", "a.py and b"),
        ("**[bold](http://d.org/x_y_z)**, ![seen](http://d.org/x.png)", "bold (d.org), seen (d.org)"),
        ("see https://d.org/a_b_ **now**", "see https://d.org/a_b_ now"),
        ("**https://d.org/x**", "https://d.org/x"),
        ("**open", "**open"),
        ("rm *a* *.b c*", "rm a *.b c*"),
        ("a ** b ** c", "a ** b ** c"),
        ("", ""),
        ("`", "`"),
    ],
)  # fmt: skip
def test_what_becomes_of_it(source: str, words: str) -> None:
    assert words_of_markdown(source) == words


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("", ""),
        ("\n\n ## Go *on*?\n\nmore", "Go on?"),
        ("---\n***\nGo?", "Go?"),
        ("```sh\nrm **/x **/y\n```\nGo?", "rm **/x **/y"),
        ("```sh\n```\nGo?", "Go?"),
        ("~~~\n```\nrm **x** y\n~~~", "```"),
        ("1. ```\n   rm **x** y\n   ```", "rm **x** y"),
        ("~~~ do not ~~~\nGo?", "do not ~~~"),
        ("---", "---"),
    ],
)
def test_the_first_line_that_says_anything(source: str, words: str) -> None:
    assert first_line_in_words(source) == words


@pytest.mark.parametrize(
    ("source", "is_whole"),
    [
        ("## Go **on**, `now`?", True),
        ("---\n```\nrm **/x\n```\n", True),
        ("Go?\n===\n", True),
        ("- [x] Go?", True),
        ("Go?\nnow", False),
        ("Run rm *a* *b*?", False),
        ("Go _on_?", False),
        ("Shall I rm -rf ./build\n~/*", False),
        ("Shall I rm -rf\n*", False),
        ("Run rm -rf **/node_modules** now?", False),
        ("rm -rf **/*.o **/*.a**?", False),
        ("find . -name **.pyc** -delete?", False),
        ("cp __/a__ b?", True),
        ("**Deploy** (__now__)?", True),
        ("**Deploy now?**", True),
        ("```\nrm -rf ./build\n/*\n```", False),
        ("Go?\n\U0001f44e", False),
        ("Delete [it](../..)?", False),
        ("Delete [it](~)?", False),
        ("```sh\nrm x\n```", False),
    ],
)
def test_whether_the_first_line_says_all(source: str, is_whole: bool) -> None:
    assert are_all_words(source, first_line_in_words(source)) is is_whole


HOSTILE = ("[", "![", "[a](", "[a](b(c)", "*a ", "a**b", "_a", "__a", "(__", "a__)", "~~a", "`a", "``a`", "\\", "\\`",
           "<a", "- ", "> ", "[a]", "*_", "_a*", '[a](b "', "#", " ", "# ", "|", "|a\n|-\n", "```\n", "a\n", "1. ",
           "<http://a.b>", "http://", "[a](http://b)", "\u4e2d*", "a #")  # fmt: skip


@pytest.mark.parametrize(("piece", "end"), [*((one, "") for one in HOSTILE), ("~", "`"), ("`", "~`")])
def test_no_text_takes_long(piece: str, end: str) -> None:
    def seconds(length: int) -> float:
        source = piece * (length // len(piece)) + end
        began = time.process_time()
        words_of_markdown(source)
        first_line_in_words(source)
        return time.process_time() - began

    seconds(100)
    # Garbage is looked for in all that the tests of this process have: that is no time of the text.
    gc.disable()
    try:
        long, short = (min(seconds(length) for _ in range(2)) for length in (40_000, 2_500))
    finally:
        gc.enable()
    # Of 16 times as much, 16 times as long is linear, and 256 times is not: the machine may be busy.
    assert long < 64 * short + 0.1
