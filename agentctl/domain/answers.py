"""Checks questions and the answers to them: which questions are valid, which answers each takes, and their words."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from agentctl.domain.question import (
    ALLOW,
    ALLOW_ALWAYS,
    DENY,
    KINDS,
    AnswerOption,
    Question,
    ShownQuestion,
    offered,
    takes_text,
)
from agentctl.domain.text.plaintext import plain
from agentctl.errors import Argument, UsageError, WithArguments

_YES, _NO = frozenset({"y", "yes", "true", "1"}), frozenset({"n", "no", "false", "0"})
_LONGEST = 100_000
#: Of more answers than these, the further ones are not named in a line.
_MOST_WORDS = 9
#: What an agent is told of a denial.
DENIED, DENIED_BY_RULE = "The user denied this.", "A rule denies this to you; no user was asked."


def check_question(question: Question) -> None:
    """Raise `UsageError` where a question cannot be answered."""
    kind = question.kind
    if kind not in KINDS:
        raise UsageError(WithArguments(Argument("kind"), f" must be one of {', '.join(KINDS)}, not {kind!r}"))
    if not question.text.strip():
        raise UsageError("the question is empty")
    ids = [option.id for option in question.options]
    if kind == "select" and not ids:
        raise UsageError(
            "a select question needs options", hint=WithArguments(Argument("option", "ID=LABEL"), ", once for each")
        )
    if kind != "select" and ids:
        raise UsageError(f"a {kind} question takes no options", hint=WithArguments(Argument("kind", "select")))
    if "" in ids or len(set(ids)) < len(ids):
        raise UsageError(f"the options' ids must differ and not be empty: {', '.join(map(repr, ids))}")
    if question.default is not None:
        check_answer(question, question.default)


def check_answer(question: Question, answer: str) -> str:
    """Return the answer as the asker gets it: an option's id, `yes` or `no`, or the text.

    >>> check_answer(Question("q1", "select", "Which?", (AnswerOption("a", "src/a"),)), "src/a")
    'a'
    >>> check_answer(Question("q1", "confirm", "Deploy?"), "Y")
    'yes'
    """
    match question.kind:
        case "confirm":
            word = answer.strip().lower()
            if word not in _YES | _NO:
                raise UsageError(f"{answer!r} is neither yes nor no")
            return "yes" if word in _YES else "no"
        case "select" if question.multiple:
            return ",".join(_select(question, part.strip()) for part in answer.split(","))
        case "select":
            return _select(question, answer)
        case _:
            if len(answer) > _LONGEST:
                raise UsageError(f"the answer is too long: {len(answer)} characters; at most {_LONGEST}")
            if question.idle and not answer.strip():
                raise UsageError("the message is empty")
            return answer


def _select(question: Question, answer: str) -> str:
    """Return the id of the chosen option, or the answer itself where the question takes any `other` answer."""
    try:
        return _option(question.options, answer)
    except UsageError as error:
        if question.is_permission and (chosen := question.option_meaning(_meant_by(answer))):
            return chosen
        if question.is_permission:
            words = ", ".join(word for word in (ALLOW, DENY, ALLOW_ALWAYS) if question.option_meaning(word))
            raise UsageError(error.message, hint=(words, *error.steps)) from None
        if question.other and answer.strip():
            return answer
        raise


def _meant_by(answer: str) -> str:
    """Return the meaning of a word that answers a request for permission, the same for every program.

    >>> _meant_by(" Yes"), _meant_by("no"), _meant_by("allow_always")
    ('allow', 'deny', 'allow_always')
    """
    word = answer.strip().lower()
    return ALLOW if word in _YES else DENY if word in _NO else word


def _option(options: Sequence[AnswerOption], answer: str) -> str:
    for found in ([one.id for one in options if one.id == answer], [one.id for one in options if one.label == answer]):
        if len(found) == 1:
            return found[0]
    known = ", ".join(f"{option.id} ({option.label})" for option in options)
    raise UsageError(f"{answer!r} is not an option of this question", hint=f"the options: {known}")


def answer_meant(options: Sequence[AnswerOption], typed: str, *, multiple: bool = False) -> str:
    """Return the answer that a person means who sees these options with their numbers: a number is an option's id.

    Args:
        multiple: Several may be chosen, with commas or spaces between their numbers.

    >>> options = (AnswerOption("a", "src/a"), AnswerOption("b", "src/b"))
    >>> [answer_meant(options, typed) for typed in ("2", " 1 ", "3", "b", "1 2")]
    ['b', 'a', '3', 'b', '1 2']
    >>> [answer_meant(options, typed, multiple=True) for typed in ("1,2", "2 1", "1, src/b", "1 or 2")]
    ['a,b', 'b,a', 'a,src/b', '1 or 2']
    """
    if not multiple:
        return _numbered(options, typed)
    parts = typed.split() if typed.replace(" ", "").isdecimal() else typed.split(",")
    return ",".join(_numbered(options, part) for part in parts)


def _numbered(options: Sequence[AnswerOption], typed: str) -> str:
    """Return the id of the option with a number; for anything else what was typed, of a choice without blanks."""
    word = typed.strip()
    number = int(word) if word.isascii() and word.isdigit() and len(word) < 6 else 0
    if 1 <= number <= len(options):
        return options[number - 1].id
    return word if options else typed


def answers_in_words(question: Question, seen: ShownQuestion) -> str:
    """Return which answers may be given where so much of a question is shown, as words that every program takes.

    >>> answers_in_words(Question("q1", "confirm", "Deploy?"), ShownQuestion("Deploy?", "", True))
    'yes, no'
    >>> answers_in_words(Question("q1", "input", "Why?"), ShownQuestion("Why?", "", True))
    'any text'
    """
    words = [word for one in offered(question, seen) if (word := _typed(question, one)) is not None]
    more = ["..."] if len(words) > _MOST_WORDS else []
    return ", ".join([*words[:_MOST_WORDS], *more, *(["any text"] if takes_text(question, seen) else [])])


def _typed(question: Question, option: AnswerOption) -> str | None:
    """Return what is typed to choose an option: a word that every program takes, or its id; None if nothing does."""
    from shlex import quote

    word = (question.means or {}).get(option.id) if question.is_permission else None
    for typed in (word, option.id):
        with suppress(UsageError):
            if isinstance(typed, str) and plain(typed) == typed and check_answer(question, typed) == option.id:
                return quote(typed)
    return None
