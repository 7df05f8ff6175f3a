"""Lays a question out for a terminal, as pieces with the role of each: what is asked, the whole call, the answers.

Of a call, what would not be seen (a character of no width, or one that looks like a space) is shown as an escape, and
each further row of it stands behind an edge, so that no text can look like an option.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import groupby

from agentctl.domain.question import (
    LONGEST_LABEL,
    AnswerOption,
    Question,
    ShownQuestion,
    arguments_of,
    offered,
    question_within,
    takes_text,
)
from agentctl.domain.text.nesting import TOO_DEEP
from agentctl.domain.text.plaintext import beginning, distinct, plain, whole
from agentctl.domain.text.terminal_rows import edged_rows, most_cells, rows_within
from agentctl.encoding import as_utf8
from agentctl.interfaces.words.activity import one_line
from agentctl.interfaces.words.looks.call_look import CallLine, CallLook, call_look, is_of_tabs, line_of_call
from agentctl.interfaces.words.looks.look import TextLook
from agentctl.interfaces.words.value_words import shown_json

#: A text and its role.
_Piece = tuple[str, str]
#: More than this of a question, of a call, or of last words is left to the view of the whole worker.
_LONGEST = 24_000
_MOST_LINES = 400
_LONGEST_KIND = 40
#: So many words of a changed line are drawn as such.
_MOST_WORDS = 40
STEP = "  "
#: The name of an argument, also of one that lies deeper: `edits[1].replace_all`.
_PLAIN_NAME = re.compile(r"[^\W\d][\w.-]*(?:\[\d+\]\.[^\W\d][\w.-]*)?")
#: In front of each further row of what an agent wrote.
EDGE = "\N{BOX DRAWINGS LIGHT VERTICAL} "


def seen_of(question: Question) -> ShownQuestion:
    """Return how much of a question is shown, once all of that has been on the screen."""
    return question_within(question, _LONGEST, _MOST_LINES)


def options_of(question: Question) -> Sequence[AnswerOption]:
    """Return the answers that a number gives."""
    return offered(question, seen_of(question))


def takes_words(question: Question) -> bool:
    """Return whether a question can be answered with a text, as also one that has more options than digits."""
    return takes_text(question, seen_of(question)) or len(options_of(question)) > 9


def kind_of_asker(question: Question) -> str:
    """Return what the sub-agent that asks calls itself: a word, too short to draw a row of options."""
    return beginning(distinct(one_line(question.asked_by_type or "a sub-agent")), _LONGEST_KIND)


def call_pieces(question: Question, width: int, *, is_raw: bool = False) -> Iterator[_Piece]:
    """Yield the call that a question asks leave for; and that it cannot be allowed, if this is not all of it.

    Args:
        is_raw: Its arguments as they are, and not what it would do.
    """
    yield (EDGE + call_rows(question.text, EDGE, width) + "\n", "text")
    look = None if is_raw else look_of(question)
    if look is not None and seen_of(question).is_whole:
        yield from _look_pieces(question, look, width)
        return
    yield from _said_pieces(question.described, width)
    yield (STEP + call_rows(question.tool or "", STEP + EDGE, width) + "\n", "blocked")
    for key, value in arguments_of(question).items():
        yield from argument_pieces(key, value, width)
    if not seen_of(question).is_whole:
        yield (f"{STEP}This is not the whole call, so it cannot be allowed here.\n", "failed")


def look_of(question: Question) -> CallLook | None:
    """Return what the call would do that a question asks leave for; None where only its arguments can be shown."""
    return call_look(question.tool or "", question.arguments)


def _said_pieces(said: str | None, width: int) -> Iterator[_Piece]:
    if said:
        yield (EDGE + call_rows(f"in its own words: {said}", EDGE, width) + "\n", "dim")


def _look_pieces(question: Question, look: CallLook, width: int) -> Iterator[_Piece]:
    """Yield what a call would do, then its other arguments, and last what the agent says about it."""
    for verb, subject, lines in look.parts:
        yield (STEP + call_rows(f"{verb} {subject}".rstrip(" "), STEP + EDGE, width) + "\n", "blocked")
        spells_tabs = is_of_tabs(lines)
        for line in lines:
            yield from _line_pieces(line, STEP * 2 + EDGE, width, spells_tabs=spells_tabs)
    for key, value in look.rest.items():
        yield from argument_pieces(key, value, width)
    for said in dict.fromkeys(filter(None, (question.described, look.said))):
        yield from _said_pieces(said, width)


def look_lines(look: CallLook, edge: str) -> Iterator[str]:
    """Yield what a call would do as lines that are not wrapped; its other arguments are not among them."""
    for verb, subject, lines in look.parts:
        yield edge + line_of_call(f"{verb} {subject}".rstrip(" "))
        spells_tabs = is_of_tabs(lines)
        for line in lines:
            yield f"{edge}{STEP}{line.sign:<1} {line_of_call(line.text, spells_tabs=spells_tabs)}"


def _line_pieces(line: CallLine, edge: str, width: int, *, spells_tabs: bool) -> Iterator[_Piece]:
    """Yield the rows of a line of a call: its sign is on the first one, and `>` on those in which it goes on."""
    shown, looks = line_of_call(line.text, spells_tabs=spells_tabs), _looks_of(line, spells_tabs=spells_tabs)
    at, sign = 0, line.sign
    for row in rows_within(shown, max(width - most_cells(edge) - 2, 2)):
        yield (f"{edge}{sign:<1} ", "text" if line.look == TextLook.CODE else line.look)
        for look, part in groupby(range(at, at + len(row)), key=lambda place: looks[place]):
            yield ("".join(shown[place] for place in part), look)
        yield ("\n", "text")
        at, sign = at + len(row), ">"


def _looks_of(line: CallLine, *, spells_tabs: bool) -> list[TextLook]:
    """Return the look of each character of a line as it is shown."""

    def place_of(at: int) -> int:
        return len(line_of_call(line.text[:at], spells_tabs=spells_tabs))

    looks = [line.look] * place_of(len(line.text))
    word = TextLook.REMOVED_WORD if line.look == TextLook.REMOVED else TextLook.ADDED_WORD
    for begin, end in line.words[:_MOST_WORDS]:
        for place in range(place_of(begin), place_of(end)):
            looks[place] = word
    return looks


def argument_pieces(key: object, value: object, width: int) -> Iterator[_Piece]:
    """Yield an argument of a call."""
    edge = STEP * 2 + EDGE
    rows, name = call_rows(_text_of(value), edge, width), call_rows(_name_of(str(key)), edge, width)
    is_short = "\n" not in rows and most_cells(rows + name) + len(edge) < width
    yield (f"{STEP * 2}{name}: ", "key")
    yield ((rows if is_short else f"\n{edge}{rows}") + "\n", "text")


def _name_of(key: str) -> str:
    """Return the name of an argument, in quotes if it is not a name: it could look like an option (`1  Allow`)."""
    return key if _PLAIN_NAME.fullmatch(key) else shown_json(key)


def _text_of(value: object) -> str:
    try:
        return value if isinstance(value, str) else shown_json(value)
    except RecursionError:
        return TOO_DEEP


def option_pieces(question: Question, width: int, chosen: Collection[str] | None = None) -> Iterator[_Piece]:
    """Yield the answers that a number gives.

    Args:
        chosen: The ids of those that are marked as chosen, where several may be; None: none is marked.
    """
    for number, (id_, label) in enumerate(options_of(question), 1):
        mark = "" if chosen is None or not question.multiple else "[x] " if id_ in chosen else "[ ] "
        default = "  (the default)" if question.default == id_ else ""
        rows = call_rows(beginning(label or id_, LONGEST_LABEL), STEP * 2 + EDGE, width - len(STEP * 2))
        yield (f"{STEP}{number if number < 10 or chosen is None else ' '}  ", "key")
        yield (f"{mark}{rows if question.is_permission else one_line(label or id_)}{default}\n", "text")


def call_rows(text: str, edge: str, width: int) -> str:
    """Return the rows of a text of a call; the second and later ones are behind an edge."""
    return edged_rows(text_within(text, is_call=True), edge, width)


def text_within(text: str, *, is_call: bool = False) -> str:
    """Return the beginning of a text that is safe to show, with its lines; of a call also what is not to be seen.

    What looks like another text is not to be seen either: a tab of a call is spelled out.
    """
    safe = whole(plain(as_utf8(text[:_LONGEST]), keep="\n" if is_call else "\n\t"))
    lines = (distinct(safe) if is_call else safe).expandtabs(4).split("\n")
    return "\n".join(lines[:_MOST_LINES]) + ("\n… (this is not all of it)" if _is_cut(text) else "")


def _is_cut(text: str) -> bool:
    return text is TOO_DEEP or len(text) > _LONGEST or text.count("\n") >= _MOST_LINES
