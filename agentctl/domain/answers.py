"""Checks questions and the answers to them: which questions are valid, and which answers each takes."""

from __future__ import annotations

from collections.abc import Mapping

from agentctl.errors import UsageError
from agentctl.lean import Any

KINDS = ("select", "confirm", "input")
_YES, _NO = frozenset({"y", "yes", "true", "1"}), frozenset({"n", "no", "false", "0"})
_LONGEST = 100_000

#: What an option of a permission allows: this once, from now on, not at all.
ALLOW, ALLOW_ALWAYS, DENY = "allow", "allow_always", "deny"
#: What an agent is told of a denial.
DENIED, DENIED_BY_RULE = "The user denied this.", "A rule denies this to you; no user was asked."


def meaning(means: Any, option: str) -> str:
    """Return what an option of a permission allows, by the `means` of its question; if unknown, the most it could.

    >>> meaning({"accept": "allow"}, "accept"), meaning(None, "accept")
    ('allow', 'allow_always')
    """
    meant = means.get(option) if isinstance(means, Mapping) else None
    return meant if meant in {ALLOW, DENY} else ALLOW_ALWAYS


def question_in(value: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the content of a question's file, if it can be shown and answered; None where it is not a question.

    A worker can write anything there. A field of the wrong type makes it no question, and is not just dropped: it may
    be the field that marks a request for permission.

    >>> question_in({"kind": "select", "question": "Which?", "options": [5]})
    """
    kinds = ((value.get(key), kind) for key, kind in _OF_QUESTIONS.items())
    is_fit = all(value is None or isinstance(value, kind) for value, kind in kinds)
    is_one = is_fit and value.get("kind") in KINDS and value.get("question") is not None
    return dict(value) if is_one and all(map(_is_option, value.get("options") or ())) else None


def _is_option(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(value.get(key), str) for key in ("id", "label"))


#: The type of each field of a question, where it is present.
_OF_QUESTIONS: Mapping[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("kind", "question", "default", "askedAt", "tool", "askedBy", "askedByType"), str),
    **dict.fromkeys(("isCut", "multiple", "other", "idle"), bool),
    "options": list,
    "means": Mapping,
    "arguments": (Mapping, str),  # Text, where they were cut.
    "deadlineSeconds": (int, float),
}


def shown_of(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return all of a question that whoever answers it can have seen; what it does not have is None.

    It is the same for everybody who asks the question: the asker's process is no part of it.
    """
    return {key: body.get(key) for key in _OF_QUESTIONS}


def check_question(body: Mapping[str, Any], default: str | None) -> None:
    """Raise `UsageError` where a question cannot be answered."""
    kind, options = body["kind"], body["options"]
    if kind not in KINDS:
        raise UsageError(f"--kind must be one of {', '.join(KINDS)}, not {kind!r}")
    if not str(body["question"]).strip():
        raise UsageError("the question is empty")
    ids = [option["id"] for option in options]
    if kind == "select" and not ids:
        raise UsageError("a select question needs options", hint="--option ID=LABEL, once for each")
    if kind != "select" and ids:
        raise UsageError(f"a {kind} question takes no options", hint="--kind select")
    if "" in ids or len(set(ids)) < len(ids):
        raise UsageError(f"the options' ids must differ and not be empty: {', '.join(map(repr, ids))}")
    if default is not None:
        check_answer(body, default)


def check_answer(body: Mapping[str, Any], answer: str) -> str:
    """Return the answer as the asker gets it: an option's id, `yes` or `no`, or the text.

    >>> check_answer({"kind": "select", "options": [{"id": "a", "label": "src/a"}]}, "src/a")
    'a'
    >>> check_answer({"kind": "confirm"}, "Y")
    'yes'
    """
    match body.get("kind"):
        case "confirm":
            word = answer.strip().lower()
            if word not in _YES | _NO:
                raise UsageError(f"{answer!r} is neither yes nor no")
            return "yes" if word in _YES else "no"
        case "select" if body.get("multiple"):
            parts = [part.strip() for part in answer.split(",")]
            return ",".join(_select(body, part) for part in parts)
        case "select":
            return _select(body, answer)
        case _:
            if len(answer) > _LONGEST:
                raise UsageError(f"the answer is too long: {len(answer)} characters; at most {_LONGEST}")
            if body.get("idle") and not answer.strip():
                raise UsageError("the message is empty")
            return answer


def _select(body: Mapping[str, Any], answer: str) -> str:
    """Return the id of the chosen option, or the answer itself where the question takes any `other` answer."""
    options, means = body.get("options") or [], body.get("means")
    try:
        return _option(options, answer)
    except UsageError as error:
        if body.get("tool") and (chosen := _option_for(means, options, answer)):
            return chosen
        if body.get("tool"):
            words = ", ".join(word for word in (ALLOW, DENY, ALLOW_ALWAYS) if _option_for(means, options, word))
            raise UsageError(error.message, hint=f"{words}; {error.hint}" if words else error.hint) from None
        if body.get("other") and answer.strip():
            return answer
        raise


def _option_for(means: Any, options: list[Mapping[str, Any]], answer: str) -> str | None:
    """Return the first option of a permission with the meaning of a word, which is the same for every program.

    Only the question's own `means` counts: no word chooses an option without a meaning there.

    >>> options = [{"id": "accept"}, {"id": "decline"}, {"id": "cancel"}]
    >>> _option_for({"accept": "allow", "decline": "deny", "cancel": "deny"}, options, "No")
    'decline'
    """
    word = answer.strip().lower()
    meaning_of_word = ALLOW if word in _YES else DENY if word in _NO else word
    meanings = means if isinstance(means, Mapping) else {}
    return next((str(one["id"]) for one in options if meanings.get(one["id"]) == meaning_of_word), None)


def _option(options: list[Mapping[str, Any]], answer: str) -> str:
    for key in ("id", "label"):
        found = [str(option["id"]) for option in options if option.get(key) == answer]
        if len(found) == 1:
            return found[0]
    known = ", ".join(f"{option['id']} ({option['label']})" for option in options)
    raise UsageError(f"{answer!r} is not an option of this question", hint=f"the options: {known}")
