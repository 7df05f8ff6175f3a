"""A question as lines for a person; and asking them whether this is the question that they mean to answer."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import chain
from shutil import get_terminal_size

from agentctl.domain.answers import answers_in_words, check_answer
from agentctl.domain.names import WorkerId
from agentctl.domain.question import EVERYTHING, Question, arguments_of, offered, question_within
from agentctl.domain.text.plaintext import distinct, plain, whole
from agentctl.domain.text.terminal_rows import edged_rows
from agentctl.encoding import as_utf8, typed_in
from agentctl.errors import AtTerminal, Refused, UsageError
from agentctl.interfaces.commands.model.invocation import Invocation
from agentctl.interfaces.words.outline import outline
from agentctl.interfaces.words.worker import respond_command
from agentctl.lean import TYPE_CHECKING, NamedTuple
from agentctl.operations.talk.interacting import OpenQuestion

if TYPE_CHECKING:
    from agentctl.domain.documents.workers.questions import AcceptedAnswer

ASKER_GONE = "its asker is gone; the answer is kept for when it asks again"
_PROGRAM = "agentctl"
#: Before each row of what was asked: no text can look like an answer.
_EDGE = "    | "
#: Longer rows nobody likes to read.
_WIDEST = 120


class TypedAnswer(NamedTuple):
    """What was typed of an answer."""

    instance: str | None
    question_id: str | None
    answer: str
    reason: str | None


def question_lines(
    asked: OpenQuestion, host: str | None = None, root: str = "", *, is_raw: bool = False, is_source: bool = False
) -> list[str]:
    """Return what a question is, with all of it; of a call, which is allowed by its looks, also what nobody sees.

    Args:
        host: Where it is asked; None: here.
        root: As `root_words` returns it.
        is_raw: Of a call its arguments as they are, and not what it would do.
        is_source: Of a question its words as they were written, and not the Markdown drawn.
    """
    by = f" ({plain(asked.question.asked_by_type or 'a sub-agent')})" if asked.question.asked_by else ""
    on = "" if host is None else f" on {plain(host)}"
    who = plain(f"{asked.instance}{by} in {asked.task_id}{on} asks:")
    rest = _rest(asked, host, root, is_raw=is_raw)
    if asked.question.is_permission:
        return [*map(distinct, chain([f"{who} {plain(asked.question.text)}"], rest))]
    columns = min(get_terminal_size().columns, _WIDEST)
    first, *further = written_rows(asked.question.text, columns - len(_EDGE), is_source=is_source)
    is_short = not further and len(who) + len(first) < columns
    return [f"{who} {first}", *rest] if is_short else [who, *(f"{_EDGE}{row}" for row in (first, *further)), *rest]


def written_rows(text: str, width: int, *, is_source: bool = False) -> list[str]:
    """Return the rows of what an agent has written to a person: Markdown, drawn where they see it at a terminal."""
    from agentctl.interfaces.words.looks.terminal_styles import markdown_rows  # Mostly nothing is asked.

    has_styles = os.environ.get("TERM", "dumb") != "dumb"
    rows = [] if is_source else [*markdown_rows(text, width, has_styles=has_styles, has_colours=_has_colours())]
    if rows and _can_be_typed("".join(rows)):
        return rows
    return edged_rows(whole(plain(as_utf8(text), keep="\n\t")).expandtabs(4), "", width).split("\n")


def _has_colours() -> bool:
    return not os.environ.get("NO_COLOR")


def _can_be_typed(text: str) -> bool:
    """Return whether a terminal can print a text, in the locale in which its command was typed."""
    try:
        text.encode(typed_in())
    except UnicodeEncodeError:
        return False
    return True


def _rest(asked: OpenQuestion, host: str | None, root: str, *, is_raw: bool) -> Iterator[str]:
    """Yield what belongs to a question: the call, the answers, the command that answers it."""
    one, seen = asked.question, question_within(asked.question, EVERYTHING)
    program = _PROGRAM if host is None else f"agentctl --host {plain(host)}"
    if one.idle:
        line = f"{program} send {asked.instance} --task {asked.task_id}{root} TEXT"
        yield plain(f"    (it has answered, and is kept: {line}, or --close)")
        return
    yield from _call_lines(one, is_raw=is_raw)
    if one.is_cut:
        yield plain(f"    warning: this is cut; for all of it: {_raw_command(asked, root, program)}")
    options = offered(one, seen)
    for option in options:
        yield f"    {plain(option.id)}  {plain(option.label)}"
    if one.multiple:
        yield "    several may be chosen, with commas between them"
    if one.other and options:
        yield "    an answer in your own words is taken, too"
    if one.default is not None:
        yield f"    default: {plain(one.default)}"
    if not asked.is_waiting:
        yield f"    {ASKER_GONE}"
    yield f"    {answer_command(asked, host, root)}"


def _call_lines(question: Question, *, is_raw: bool) -> Iterator[str]:
    """Yield what a call would do, its other arguments, and what the agent says about it."""
    from agentctl.interfaces.words.question_pieces import look_lines, look_of  # Mostly nothing is asked.

    look = None if is_raw or question.is_cut else look_of(question)
    said = [] if look is None else [look.said]
    if look is not None:
        yield from look_lines(look, "    | ")
    yield from outline(arguments_of(question) if look is None else look.rest, "    | ")
    for words in dict.fromkeys(filter(None, (question.described, *said))):
        yield plain(f"    in its own words: {words}")


def confirm(call: Invocation, asked: OpenQuestion, answer: str, host: str | None = None) -> None:
    """Show a question and ask back whether it is the one that is meant, where somebody sits at a terminal.

    Raises:
        UsageError: Nobody does, or they say no; or the answer is not one that may be given to what is shown.
    """
    way = answer_command(asked, host)
    if not can_ask_back(call):
        raise UsageError("it is not clear which question to answer", hint=AtTerminal(f"name it: {way}"))
    given = check_answer(asked.question, answer)
    call.note_all(question_lines(asked, host))
    check_offered(asked, given, way)
    if not call.is_confirmed(f"answer it with {plain(given)}?"):
        raise Refused("nothing was answered", hint=AtTerminal(f"name the question: {way}"))


def can_ask_back(call: Invocation) -> bool:
    """Return whether somebody sits at a terminal who can be shown a question, and asked."""
    return not call.json and call.is_terminal("stdin") and call.is_terminal("stderr")


def check_offered(asked: OpenQuestion, given: str, way: str) -> None:
    """Raise `UsageError` where a call was not shown whole, and so may not be allowed.

    Args:
        given: The answer as `check_answer` returns it.
        way: The command that answers the question.
    """
    one = asked.question
    if one.is_permission and not any(option.id == given for option in offered(one, question_within(one, EVERYTHING))):
        raise UsageError(
            "this is not the whole call, so it is not allowed from here", hint=AtTerminal(f"read all of it, then {way}")
        )


def whole_command(asked: OpenQuestion, root: str) -> str:
    """Return the command that shows all of a question, where not all of it is shown here."""
    if asked.question.is_cut:
        return _raw_command(asked, root)
    return plain(f"agentctl interact list --task {asked.task_id}{root}")


def _raw_command(asked: OpenQuestion, root: str, program: str = _PROGRAM) -> str:
    return plain(f"{program} logs {asked.instance} --task {asked.task_id}{root} --raw")


def accepted_line(done: AcceptedAnswer) -> str:
    """Return the line that says which answer was given to which question."""
    return f"answered {done['id']} of {done['agentInstance']} in {done['taskId']}: {plain(done['answer'])}"


def answer_command(asked: OpenQuestion, host: str | None = None, root: str = "") -> str:
    one = asked.question
    answers = answers_in_words(one, question_within(one, EVERYTHING))
    command = respond_command(WorkerId(asked.task_id, asked.instance), one.id, answers, root)
    return f"{_PROGRAM if host is None else f'{_PROGRAM} --host {plain(host)}'}{command.removeprefix(_PROGRAM)}"
