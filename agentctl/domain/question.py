"""A question of a worker: the record, how much of it is shown somewhere, and which answers may be given there.

Whoever allows a call does it by its looks. So a call may be allowed only where the whole of it is shown, and by an
option whose whole label is shown; it may be denied anywhere. This rule is `offered`. Whatever shows a question says
by `question_within` (or by `in_one_line`) how much of it is there, and lays out what is `offered`; it decides nothing
itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from math import inf

from agentctl.domain.agent.telling_argument import DESCRIPTION, telling_of
from agentctl.domain.states import OWN
from agentctl.domain.text.nesting import TOO_DEEP
from agentctl.domain.text.plaintext import beginning, distinct, plain, shortened, whole, whole_json
from agentctl.lean import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from agentctl.domain.documents.workers.questions import QuestionBody, QuestionOption

KINDS = ("select", "confirm", "input")
#: What an option of a permission allows: this once, from now on, not at all.
ALLOW, ALLOW_ALWAYS, DENY = "allow", "allow_always", "deny"
#: How long a question is shown before an answer counts: what is typed sooner was meant for something else.
SETTLES_S = 0.4
#: The longest label of an option that is shown whole, in characters.
LONGEST_LABEL = 1000
#: In a line: the most of a call or of a text, and of what the model says about the call.
LINE, _LONGEST_WORDS = 200, 80
#: What shows whatever a question has; nobody has to look at it.
EVERYTHING = inf
_YES_NO = (("yes", "Yes"), ("no", "No"))


class AnswerOption(NamedTuple):
    """One answer that can be chosen."""

    id: str
    label: str

    def to_json(self) -> QuestionOption:
        """Return it as the file of its question has it, and as programs get it."""
        return {"id": self.id, "label": self.label}


class Question(NamedTuple):
    """A question as whoever answers it can have seen it, without the process that asks."""

    id: str
    #: One of `KINDS`.
    kind: str
    #: What is asked; of a permission, it names the call.
    text: str
    options: tuple[AnswerOption, ...] = ()
    default: str | None = None
    asked_at: str | None = None
    deadline_s: float | None = None
    #: Of a request for permission: the call. The arguments are a text where they were cut.
    tool: str | None = None
    arguments: Any = None
    #: What each option of a permission allows.
    means: Mapping[str, Any] | None = None
    #: What the program or its model says about the call, which may be wrong.
    described: str | None = None
    #: `own` where the person's own settings of the program count as well: what they allow is not asked about.
    permissions: str | None = None
    #: The driver has not kept all of it.
    is_cut: bool = False
    asked_by: str | None = None
    asked_by_type: str | None = None
    #: More than one option may be chosen: the answer is their ids, with commas between them.
    multiple: bool = False
    #: A text is taken, too.
    other: bool = False
    #: An agent that was kept waits for its next message.
    idle: bool = False

    @property
    def is_permission(self) -> bool:
        """Whether it asks for leave to make a call."""
        return self.tool is not None or self.means is not None

    @property
    def choices(self) -> tuple[AnswerOption, ...]:
        """All answers that can be chosen, shown or not."""
        return tuple(AnswerOption(*one) for one in _YES_NO) if self.kind == "confirm" else self.options

    @property
    def takes_text(self) -> bool:
        """Whether a text can be an answer."""
        return self.kind == "input" or (self.other and not self.is_permission)

    def meaning(self, option: str) -> str:
        """Return what an option of a permission allows; if unknown, the most it could."""
        return meaning(self.means, option)

    def option_meaning(self, meant: str) -> str | None:
        """Return the first option of a permission that is declared to mean this; None where there is none.

        >>> options = tuple(AnswerOption(name, name) for name in ("accept", "decline", "cancel"))
        >>> means = {"accept": "allow", "decline": "deny", "cancel": "deny"}
        >>> Question("q1", "select", "?", options, means=means).option_meaning("deny")
        'decline'
        """
        return next((one.id for one in self.options if (self.means or {}).get(one.id) == meant), None)

    @property
    def denial(self) -> str | None:
        """The first option that denies a request for permission; None where there is none."""
        ids = [one.id for one in self.choices] if self.is_permission else []
        return next((id_ for id_ in ids if self.meaning(id_) == DENY), None)

    def to_json(self) -> QuestionBody:
        """Return it as in its file, and as programs get it; what it does not have is left out.

        >>> value = {"id": "q1", "kind": "select", "question": "Which?", "options": [{"id": "a", "label": "A"}]}
        >>> question_in("q1", question_in("q1", value).to_json()) == question_in("q1", value)
        True
        """
        known = {key: getattr(self, name) for key, name in _MORE.items()}
        # `QuestionDetails` has the keys of `_MORE`.
        more: Any = {key: value for key, value in known.items() if value is not None and value is not False}
        body: QuestionBody = {
            "id": self.id,
            "kind": self.kind,
            "question": self.text,
            "options": [one.to_json() for one in self.options],
            "default": self.default,
            "askedAt": self.asked_at,
            "deadlineSeconds": self.deadline_s,
        }
        body.update(more)
        return body


def meaning(means: Mapping[str, Any] | None, option: str) -> str:
    """Return what an option of a permission allows, by the `means` of its question; if unknown, the most it could.

    >>> meaning({"accept": "allow"}, "accept"), meaning(None, "accept")
    ('allow', 'allow_always')
    """
    meant = (means or {}).get(option)
    return meant if meant in (ALLOW, DENY) else ALLOW_ALWAYS  # A worker may have written a list there.


#: Key in JSON -> field, of what is there only where it is so.
_MORE: Mapping[str, str] = {
    "tool": "tool", "arguments": "arguments", "isCut": "is_cut", "means": "means", "described": "described",
    "permissions": "permissions", "askedBy": "asked_by", "askedByType": "asked_by_type",
    "multiple": "multiple", "other": "other", "idle": "idle",
}  # fmt: skip
#: The type of each field in JSON, where it is present.
_TYPES: Mapping[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("kind", "question", "default", "askedAt", "tool", "described", "permissions"), str),
    **dict.fromkeys(("askedBy", "askedByType"), str),
    **dict.fromkeys(("isCut", "multiple", "other", "idle"), bool),
    "options": list,
    "means": Mapping,
    "arguments": (Mapping, str),  # Text, where they were cut.
    "deadlineSeconds": (int, float),
}


def question_in(name: str, value: Mapping[str, Any]) -> Question | None:
    """Return the question in a file of this name; None where it holds nothing that can be shown and answered.

    A worker can write anything there. A field of the wrong type makes it no question, and is not just dropped: it may
    be the field that marks a request for permission.

    >>> question_in("q1", {"kind": "select", "question": "Which?", "options": [5]})
    """
    try:
        value = whole_json({key: value[key] for key in _TYPES if value.get(key) is not None})
    except RecursionError:
        return None
    is_fit = all(_fits(one, _TYPES[key]) for key, one in value.items())
    if not is_fit or value.get("kind") not in KINDS or "question" not in value:
        return None
    options = value.get("options", ())
    if not all(map(_is_option, options)):
        return None
    return Question(
        name,
        value["kind"],
        value["question"],
        tuple(AnswerOption(one["id"], one["label"]) for one in options),
        value.get("default"),
        value.get("askedAt"),
        value.get("deadlineSeconds"),
        **{name: value[key] for key, name in _MORE.items() if key in value},
    )


def _fits(value: object, types: type | tuple[type, ...]) -> bool:
    """Return whether a value is of a type; neither true nor false is a number, as in JSON."""
    return isinstance(value, types) and (types is bool or not isinstance(value, bool))


def _is_option(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(value.get(key), str) for key in ("id", "label"))


# -- what is shown, and what may be answered there ---------------------------------------------------------------------


class ShownQuestion(NamedTuple):
    """How much of a question is shown somewhere, safe to print."""

    text: str
    #: The call with its arguments; empty where nothing is to be called, or where it stands in the text.
    call: str
    #: All of the question and of its call is there.
    is_whole: bool
    #: The longest label of an option that is shown whole, in characters.
    longest_label: int = LONGEST_LABEL


def question_within(question: Question, most: float, lines: float = EVERYTHING) -> ShownQuestion:
    """Return a question as it is shown where there is room for `most` characters of its text, and of its call.

    Args:
        lines: The most lines of any text in it.

    >>> call = Question("q1", "select", "Allow Bash?", tool="Bash", arguments={"command": "ls"})
    >>> question_within(call, 40).call, question_within(call, 40).is_whole, question_within(call, 10).is_whole
    ('Bash {"command": "ls"}', True, False)
    """
    text, call = safe(question, question.text), safe(question, _call_of(question))
    is_whole = (
        not question.is_cut
        and max(len(text), len(call)) <= most
        and TOO_DEEP not in call
        and all(one.count("\n") < lines for one in _texts_in(question))
    )
    return ShownQuestion(_cut(text, most), _cut(call, most), is_whole)


def offered(question: Question, seen: ShownQuestion) -> tuple[AnswerOption, ...]:
    """Return the options that may be chosen where so much of a question is shown.

    >>> options = (AnswerOption("allow", "Allow"), AnswerOption("deny", "Deny"))
    >>> means = {"allow": "allow", "deny": "deny"}
    >>> call = Question("q1", "select", "?", options, tool="Bash", arguments={"command": "x" * 99}, means=means)
    >>> [[one.id for one in offered(call, question_within(call, most))] for most in (200, 50)]
    [['allow', 'deny'], ['deny']]
    """
    if not question.is_permission:
        return question.choices
    return tuple(one for one in question.choices if _may_choose(question, one, seen))


def _may_choose(question: Question, option: AnswerOption, seen: ShownQuestion) -> bool:
    meant = question.meaning(option.id)
    # The label of one that allows just this call says no more than its word.
    longest = LONGEST_LABEL if meant == ALLOW else seen.longest_label
    return meant == DENY or (seen.is_whole and len(safe(question, option.label)) <= longest)


def takes_text(question: Question, seen: ShownQuestion) -> bool:
    """Return whether a text may be the answer where so much of a question is shown."""
    return question.takes_text and (seen.is_whole or not question.is_permission)


def safe(question: Question, text: str) -> str:
    """Return a text of a question, safe to show: of a call, which is allowed by its looks, also what nobody would see.

    >>> safe(Question("q1", "input", "?", tool="Bash"), "a\u200b\\nb"), safe(Question("q1", "input", "?"), "a\\nb")
    ('a\\\\u200b\\\\nb', 'a\\nb')
    """
    return distinct(whole(plain(text))) if question.is_permission else whole(plain(text, keep="\n"))


def arguments_of(question: Question) -> Mapping[str, Any]:
    """Return the arguments of a call by their names; those that were cut, as one."""
    arguments = question.arguments or {}
    return arguments if isinstance(arguments, Mapping) else {"arguments": arguments}


def _call_of(question: Question) -> str:
    if not question.is_permission:
        return ""
    arguments = f" {_json(question.arguments)}" if question.arguments else ""
    return f"{question.tool or ''}{arguments}".strip()


def _json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return TOO_DEEP


def _texts_in(question: Question) -> Iterator[str]:
    yield question.text
    if question.is_permission:
        for key, value in arguments_of(question).items():
            yield key
            yield value if isinstance(value, str) else _json(value)


def _cut(text: str, most: float) -> str:
    return text if most == inf else beginning(text, int(most))


# -- in one line -------------------------------------------------------------------------------------------------------


def wording(tool: str, arguments: Mapping[str, Any] | None, permissions: str | None = None) -> str:
    """Return a request for permission as a text: with the command or the path, not with what a model says about it.

    >>> wording("Bash", {"command": "rm -rf ~", "description": "list files"})
    'Allow Bash: rm -rf ~?'
    """
    about = plain(_about(arguments)[1])
    request = f"Allow {tool}{f': {shortened(about, LINE)}' if about else ''}?"
    return f"{request} (permissions {permissions}: your settings of the program count too)" if permissions else request


def in_one_line(question: Question, most: int = LINE) -> ShownQuestion:
    """Return a question as one line, in which a call is named by its command or path; else in words, not as Markdown.

    >>> in_one_line(Question("q1", "confirm", "## Go *on*?"))[0]
    'Go on?'
    >>> def line(**given):
    ...     asked = Question("q1", "select", "Allow it?", tool="Bash", arguments=given)
    ...     return in_one_line(asked)[::2]
    >>> line(command="rm -rf ~", description="list files")
    ('Allow Bash: rm -rf ~? (in its own words: list files)', True)
    >>> line(command="ls", unsafe=True)
    ('Allow Bash: ls, and more?', False)
    """
    if not question.is_permission:
        return _words_in_one_line(question, most)
    name, about = _about(question.arguments)
    rest = {key for key in arguments_of(question) if name and key not in (name, DESCRIPTION)}
    words, call = _words_of(question), safe(question, question.tool or "a call")
    call += f": {safe(question, about)}" if about else ""
    claimed = safe(question, words) if name else ""
    parts = [
        f"Allow {shortened(call, most)}{', and more' if rest else ''}?",
        f" (in its own words: {shortened(claimed, _LONGEST_WORDS)})" if claimed else "",
        f" (permissions {OWN})" if question.permissions == OWN else "",
    ]
    is_whole = not rest and len(call) <= most and len(claimed) <= _LONGEST_WORDS and not question.is_cut
    return ShownQuestion("".join(parts), "", is_whole, 0)


def _words_in_one_line(question: Question, most: int) -> ShownQuestion:
    from agentctl.domain.markdown.markdown_words import (
        are_all_words,
        first_line_in_words,
    )  # Most who know one show no line.

    words = first_line_in_words(question.text)
    first = whole(plain(words)) or "?"
    is_whole = len(first) <= most and are_all_words(question.text, words) and not question.is_cut
    return ShownQuestion(shortened(first, most), "", is_whole, 0)


def _about(arguments: Any) -> tuple[str, str]:
    """Return the name of the argument that says what a call is about, and its text; without such a one, all of them."""
    telling = telling_of(arguments) if isinstance(arguments, Mapping) else None
    if telling is not None and telling[0] != DESCRIPTION:
        return telling
    if isinstance(arguments, Mapping) and (paths := _changed_in(arguments.get("changes"))):
        return "the paths in it", ", ".join(paths)
    return "", _json(arguments) if arguments else ""


def _changed_in(changes: Any) -> list[str]:
    """Return the files that a call changes, where it lists them."""
    found = [one.get("path") for one in changes if isinstance(one, Mapping)] if isinstance(changes, list) else []
    return [path for path in found if isinstance(path, str)]


def _words_of(question: Question) -> str:
    """Return what the program or its model says about a call."""
    own = arguments_of(question).get(DESCRIPTION)
    return question.described or (own if isinstance(own, str) else "")
