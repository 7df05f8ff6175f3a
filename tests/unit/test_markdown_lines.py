"""At stake: Markdown of strangers is drawn soon, says what it says, and is neither obeyed nor clicked."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentctl.domain.text.plaintext import plain, whole
from agentctl.interfaces.words.looks.code_words import _LANGUAGES, code_lines
from agentctl.interfaces.words.looks.look import STYLES, SpanLine, TextLook
from agentctl.interfaces.words.looks.markdown_lines import markdown_lines
from agentctl.interfaces.words.looks.span_tables import cells_wide, wrapped

MARKS = ("# ", "- ", "1. ", "> ", "* ", "**", "_", "`", "```\n", "| ", "|---|---|\n", "[x] ", "~~", "---\n", "\\",
         "<b>", "&lt;", "&#x202e;", "    ", "\t", "\n", "\n\n", " ", "!", "[", "](", ")", "<http://a.bc>", "\x1b[31m",
         "\x07", "\u202e", "\r", "\x00", "\ud800", "\u4e2d", "]: ")  # fmt: skip
WORDS = ("alpha", "beta", "gamma", "delta")
SOURCES = st.lists(st.sampled_from([*MARKS, *WORDS]), max_size=40).map("".join)


def text_of(source: str, width: int = 80) -> str:
    return "\n".join(line.text for line in markdown_lines(source, width))


@given(SOURCES, st.sampled_from([2, 14, 40, 80]))
@example("> " * 60 + "alpha", 40)
@example("|a|\n|-|\n|b|gamma|\n", 40)
def test_it_is_nothing_but_safe_text_with_known_looks_and_fits_the_width(source: str, width: int) -> None:
    for line in markdown_lines(source, width):
        for span in line.spans:
            assert span.look in STYLES
            assert span.text == plain(whole(span.text)), "nothing that a terminal would obey"
        rows = [*wrapped(line, width)]
        assert all(cells_wide("".join(span.text for span in row)) <= max(width, 2) for row in rows)
        drawn = "".join(span.text for row in rows for span in row)
        assert drawn.replace(" ", "") == line.text.replace(" ", "")


@given(st.lists(st.sampled_from([one for one in (*MARKS, *WORDS) if one not in ("](", "]: ", "```\n", "\x00")])))
@example(["|", "alpha", "|\n|-|\n|", "beta", "|", "gamma", "|"])
@example(["> "] * 60 + ["alpha"])
@example(["- "] * 60 + ["alpha"])
def test_no_word_is_left_out(parts: list[str]) -> None:
    source = "".join(parts)
    drawn = re.sub(r"\s", "", text_of(source, 500))
    for word in WORDS:
        assert drawn.count(word) >= source.count(word)


CELLS = st.lists(
    st.sampled_from([*WORDS, " ", "\\|", "\\\\|", "`alpha \\| beta`", "*beta*", "\u00a0"]), max_size=3
).map("".join)  # fmt: skip
ROWS = st.lists(
    st.tuples(st.sampled_from(["", "|", " | "]), st.lists(CELLS, max_size=4).map("|".join), st.sampled_from(["", "| "]))
    .map("".join),
    max_size=4,
)  # fmt: skip


@given(ROWS, st.sampled_from(["", "> ", "- ", "> 1. "]), st.sampled_from(["\n", "\r\n"]))
@example(["beta | gamma | delta"], "", "\n")
@example(["| beta | gamma | delta"], "> ", "\n")
@example(["\u00a0| beta | gamma |"], "", "\n")
@example(["beta \\| gamma | delta"], "", "\r\n")
def test_no_word_of_a_table_is_left_out(rows: list[str], before: str, line_break: str) -> None:
    further = before.replace("- ", "  ").replace("1. ", "   ")
    head, *rest = "alpha | omega", "---|---", *rows
    source = line_break.join([before + head, *(further + row for row in rest)])
    drawn = re.sub(r"\s", "", text_of(source, 500))
    assert not [word for word in (*WORDS, "omega") if drawn.count(word) < source.count(word)]


@pytest.mark.parametrize("fence", ["```", "~~~~"])
@pytest.mark.parametrize("language", ["python", "odd", ""])
def test_no_word_behind_a_fence_is_left_out(fence: str, language: str) -> None:
    info = f'{language} title="\x1b[31m alpha"'.strip()
    assert text_of(f"{fence}{info}\nbeta\n{fence}") == f"    {plain(info)}\n    beta"


@pytest.mark.parametrize(
    ("source", "drawn"),
    [
        ("[text](https://d.org:81/a?b)", "text (d.org:81)"),
        ("[https://a.org](https://b.org/x)", "https://a.org (b.org)"),
        ("[a](http://good.org@evil.org/)", "a (http://good.org@evil.org/)"),
        ("[a](http://good.org%5C@evil.org/)", "a (http://good.org%5C@evil.org/)"),
        ("[a.py](src/a.py:12)", "a.py (src/a.py:12)"),
        ("[a](javascript:alert(1))", "[a](javascript:alert(1))"),
        ("<https://d.org/x>", "https://d.org/x"),
        ("![seen](http://d.org/x.png)", "[picture: seen] (d.org)"),
        ("[**bold** `code`](http://d.org)", "bold code (d.org)"),
        ("[a]: http://d.org\n\n[a]", "[a]: http://d.org\n\n[a]"),
        ("<img src=x onerror=y>", "<img src=x onerror=y>"),
        ("&#x1b;[31m &#8238;", "\ufffd[31m \\u202e"),
        ("- [x] done\n- [ ] open", "• [x] done\n• [ ] open"),
        ("3. a\n4. b", "3. a\n4. b"),
        ("> quoted\n> twice", "▏ quoted\n▏ twice"),
        ('[a](https://d.org/b "in\nwords")', 'a (d.org "in words")'),
        ('<https://d.org> [https://d.org](https://d.org "b")', 'https://d.org https://d.org ("b")'),
        ('![a](b.png "c")', '[picture: a] (b.png "c")'),
        ("```python\nx\n```", "    x"),
        ("```odd-language\nx\n```", "    odd-language\n    x"),
        ("| a | b |\n|--:|---|\n| 1 | 2 |\n", "a  b\n─  ─\n1  2"),
        ("a | b\n--|--\n1 | `c \\| d`\n", "a  b\n─  ─────\n1  c | d"),
        ("> a | b\n> --|--\n> 1 | 2 | 3\n", "▏ a | b\n▏ --|--\n▏ 1 | 2 | 3"),
    ],
)  # fmt: skip
def test_what_becomes_of_it(source: str, drawn: str) -> None:
    assert text_of(source) == drawn


def test_only_the_address_of_a_page_looks_like_a_link() -> None:
    source = "[a](http://d.org) [b](src/b) [c](ftp://d.org) [d](mailto:d@e)"
    (line,) = markdown_lines(source, 80)
    assert [span.text for span in line.spans if span.look == TextLook.LINK] == ["a"]


def test_a_table_that_does_not_fit_is_folded_and_in_the_end_a_list() -> None:
    source = "| name | what |\n|---|---|\n| alpha | some long words about it |\n"
    assert text_of(source, 24).split("\n")[2:] == ["alpha  some long words", "       about it"]
    assert text_of(source, 11) == "name: alpha\nwhat: some long words about it"


def test_further_rows_of_an_item_are_indented() -> None:
    (line,) = markdown_lines("- one two three", 80)
    assert ["".join(span.text for span in row) for row in wrapped(line, 9)] == ["• one two", "  three"]
    assert [*wrapped(SpanLine(()), 9)] == [()]


HOSTILE = ("[", "![", "[a](", "*a ", "a**b", "_a", "~~a", "`a", "<a", "&a", "- ", "> ", "[a]", "*_", '[a](b "', "#",
           "|", "|a\n|-\n", "```\n", "a\n", "\\", "1. ", "<http://a.b>", "[a](http://b)")  # fmt: skip


@pytest.mark.parametrize("piece", HOSTILE)
def test_no_text_takes_long(piece: str) -> None:
    def seconds(length: int) -> float:
        began = time.process_time()
        markdown_lines(piece * (length // len(piece)), 80)
        return time.process_time() - began

    seconds(100)
    assert min(seconds(8000) for _ in range(3)) < 10 * min(seconds(2000) for _ in range(3)) + 0.3


@pytest.mark.parametrize("language", sorted({*_LANGUAGES.values()}))
def test_no_code_takes_long(language: str) -> None:
    began = time.process_time()
    for piece in ("\n", " \n", "\t\n", "\\'", "/*a", "a ", "{{", '"', "<a", "((", "#"):
        code_lines("\n".join([piece * (900 // len(piece))] * 6), language)
    assert time.process_time() - began < 8


def test_a_text_of_megabytes_is_shown_at_once_and_whole() -> None:
    source = "# alpha\n" + "word " * 400_000 + "\nomega"
    began = time.process_time()
    drawn = text_of(source)
    assert time.process_time() - began < 5
    assert drawn.startswith("alpha\n")
    assert drawn.endswith("\nomega")
