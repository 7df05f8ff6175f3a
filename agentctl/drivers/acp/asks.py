"""Translates the requests of an ACP program into questions, and the answers into its protocol."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from agentctl.domain.question import ALLOW, ALLOW_ALWAYS, DENY
from agentctl.drivers.acp.tools import AcpCall
from agentctl.drivers.acp.wire import ElicitationSchema, PermissionOption, read_as_model
from agentctl.drivers.dialogue import Ask
from agentctl.drivers.jsonrpc import request_key
from agentctl.drivers.requests import Answers, ProgramRequest
from agentctl.drivers.values import bounded_text, list_in, object_in, text_in

_DENIAL = "deny"
#: The kind of an option -> our id of it, and what it allows. An option of another kind is not offered to anybody.
_KINDS = {
    "allow_once": ("allow", ALLOW),
    "allow_always": ("allow_always", ALLOW_ALWAYS),
    "reject_once": (_DENIAL, DENY),
    "reject_always": (f"{_DENIAL}_always", DENY),
}
#: Our id of the answer to a request that offers no way to say no: it withdraws the request.
_WITHDRAW = _DENIAL
_CANCELLED = {"outcome": {"outcome": "cancelled"}}
#: The endings by which some name the field for an answer in one's own words, beside the field with the choices.
_CUSTOM = ("_custom", "_note")
#: More than these nobody reads: of answers to choose from, and of questions in one form.
_MOST_OPTIONS, _MOST_FIELDS, _LONGEST_NAME = 50, 50, 500
_SKIP, _YES, _NO = "(no answer)", "yes", "no"


def permission(
    request_id: Any,
    session: str,
    call: AcpCall,
    given: Any,
    withheld: Collection[str] = (),
    reads: Sequence[str] | None = None,
    *,
    is_cut: bool,
) -> ProgramRequest:
    """Return a request for permission.

    Args:
        given: The options as the program sent them.
        withheld: The kinds of options that nobody is offered.
        reads: The paths that the call reads, if the program's tools are known and it does nothing else.
        is_cut: Not all of the call is known.
    """
    read_ = (read_as_model(PermissionOption, one) for one in list_in(given)[:_MOST_OPTIONS])
    options = [option for option in read_ if option is not None and option.kind not in withheld]
    offered = _ids(options)
    chosen = {name: option.option_id for name, option in offered.items()}
    shown = [(name, bounded_text(option.name) or name) for name, option in offered.items()]
    means = {name: _KINDS[option.kind][1] for name, option in offered.items()}
    if DENY not in means.values():
        shown, means = [*shown, (_WITHDRAW, "No")], {**means, _WITHDRAW: DENY}
    deny = next(name for name, meaning in means.items() if meaning == DENY)
    key = request_key(request_id)
    # A rule allows this once. Where that cannot be said, a person has to choose.
    allow = next((name for name, meaning in means.items() if meaning == ALLOW), "")
    ask = Ask(
        key, _wording(call), shown, tool=call.name, arguments=call.asked_arguments(), claimed=call.claimed_name,
        own_name=call.own_name, allow=allow, deny=deny, means=means, reads=reads, harmless=allow, is_cut=is_cut,
    )  # fmt: skip

    def result(answers: Answers) -> Any:
        option = chosen.get(answers[key])
        return _CANCELLED if option is None else {"outcome": {"outcome": "selected", "optionId": option}}

    return ProgramRequest(request_id, session, [ask], result, withdrawn=_CANCELLED)


def questions(request_id: Any, session: str, params: Mapping[str, Any]) -> ProgramRequest | None:
    """Return the questions that a program asks by a request for permission, as qwen does; None for a permission.

    The answers go beside the option that submits them.
    """
    about = object_in(object_in(params.get("toolCall")).get("_meta"))
    submit = next(
        (one for one in map(object_in, list_in(params.get("options"))) if one.get("kind") == "allow_once"), {}
    )
    asked = [object_in(one) for one in list_in(about.get("qwenQuestions"))]
    if not asked or not submit or len(asked) > _MOST_FIELDS:
        return None
    fields = {
        str(number): _FormField(f"{request_key(request_id)}#{number}", str(number), _schema_of(one), is_required=True)
        for number, one in enumerate(asked)
    }
    asks = [
        field.ask(text_in(one.get("question")), is_only=True)._replace(other=True)
        for field, one in zip(fields.values(), asked, strict=True)
    ]

    def result(answers: Answers) -> Any:
        said = {name: field.words(answers[field.key]) for name, field in fields.items()}
        return {"outcome": {"outcome": "selected", "optionId": submit.get("optionId")}, "answers": said}

    return ProgramRequest(request_id, session, asks, result, withdrawn=_CANCELLED)


def _schema_of(question: Mapping[str, Any]) -> dict[str, Any]:
    """Return a question with options as a field of a form."""
    options = [object_in(one) for one in list_in(question.get("options"))]
    choices = [
        {"const": text_in(one.get("label")), "title": text_in(one.get("label")), "description": one.get("description")}
        for one in options
    ]
    if question.get("multiSelect") is True:
        return {"type": "array", "items": {"anyOf": choices}}
    return {"type": "string", "oneOf": choices}


def _ids(options: Sequence[PermissionOption]) -> dict[str, PermissionOption]:
    """Return the options by our ids, which are the same for every program; a second one of a kind gets a number."""
    seen: Counter[str] = Counter()
    found: dict[str, PermissionOption] = {}
    for option in options:
        name = _KINDS[option.kind][0]
        seen[name] += 1
        found[name if seen[name] == 1 else f"{name}-{seen[name]}"] = option
    return found


def _wording(call: AcpCall) -> str:
    """Return what the program calls a call, where that is more than its name."""
    return bounded_text(call.title) if call.title != call.name else ""


def form(request_id: Any, session: str, params: Mapping[str, Any]) -> ProgramRequest | None:
    """Return an elicitation as questions, one for each field of its form; None for one that is not a form."""
    schema = read_as_model(ElicitationSchema, params.get("requestedSchema"))
    if params.get("mode", "form") != "form" or schema is None or len(schema.properties or ()) > _MOST_FIELDS:
        return None
    message, required = text_in(params.get("message")), set(schema.required or ())
    fields: dict[str, _FormField] = {}
    for number, (name, value) in enumerate((schema.properties or {}).items()):
        described = value.model_dump(mode="json", by_alias=True, exclude_none=True)
        base = next((fields.get(name.removesuffix(end)) for end in _CUSTOM if name.endswith(end)), None)
        if base is not None and base.choices:
            base.custom = name
        else:
            fields[name] = _FormField(
                f"{request_key(request_id)}#{number}", name, described, is_required=name in required
            )
    asks = [field.ask(message, is_only=len(fields) == 1) for field in fields.values()]
    if not asks:
        asks = [Ask(request_key(request_id), message, [(_YES, "Yes"), (_NO, "No")])]

    def result(answers: Answers) -> Any:
        if not fields:
            return {"action": "accept", "content": {}} if answers[asks[0].key] == _YES else {"action": "decline"}
        content = dict(pair for field in fields.values() for pair in field.content(answers[field.key]))
        return {"action": "accept", "content": content} if content else {"action": "decline"}

    return ProgramRequest(request_id, session, asks, result, withdrawn={"action": "cancel"})


class _FormField:
    """One field of a form: a question, and how its answer becomes a value."""

    def __init__(self, key: str, name: str, schema: Mapping[str, Any], *, is_required: bool) -> None:
        self.key, self.name, self.schema, self.is_required = key, name, schema, is_required
        self.kind = text_in(schema.get("type"))
        #: The field that takes an answer in the person's own words, where there is one.
        self.custom = ""
        #: our id -> (value, label)
        self.choices = _numbered(_choices(self.kind, schema)[:_MOST_OPTIONS])

    def ask(self, message: str, *, is_only: bool) -> Ask:
        title = text_in(self.schema.get("title")) or self.name
        about = text_in(self.schema.get("description"))
        own = "" if is_only and message else f"{title}{f': {about}' if about and about != title else ''}"
        options = [(name, label) for name, (_, label) in self.choices.items()]
        if not self.is_required and options:
            options.append((_SKIP, "no answer"))
        return Ask(
            self.key,
            bounded_text("\n".join(filter(None, (message, own or about)))),
            options,
            multiple=self.kind == "array",
            other=not options or bool(self.custom),
        )

    def words(self, answer: str) -> str:
        """Return an answer as text: the values that were chosen, and a person's own words."""
        given = answer.split(",") if self.kind == "array" else [answer]
        return ", ".join(str(self.choices[one.strip()][0]) if one.strip() in self.choices else one for one in given)

    def content(self, answer: str) -> Iterator[tuple[str, Any]]:
        """Yield (field, value) for an answer; nothing leaves the field out."""
        if answer == _SKIP or (not answer and not self.is_required):
            return
        if self.kind != "array":
            given = [answer]
        else:
            given = [part.strip() for part in answer.split(",") if part.strip() not in {"", _SKIP}]
        chosen = [self.choices[one][0] for one in given if one in self.choices]
        own = [one for one in given if one not in self.choices]
        if own and self.custom:
            yield self.custom, ", ".join(own)
            own = []
        if self.kind == "array":
            yield self.name, [*chosen, *own]
        elif chosen or own:
            yield self.name, chosen[0] if chosen else _CONVERT.get(self.kind, str)(answer)


def _number(answer: str) -> Any:
    try:
        value = json.loads(answer)
    except (ValueError, RecursionError):
        return answer
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else answer


def _boolean(answer: str) -> Any:
    return answer.strip().lower() in {_YES, "y", "true", "1"}


_CONVERT: dict[str, Callable[[str], Any]] = {"number": _number, "integer": _number, "boolean": _boolean}


def _choices(kind: str, schema: Mapping[str, Any]) -> list[tuple[Any, str]]:
    """Return (value, label) of each value that a field may have, if its schema lists them."""
    if kind == "boolean":
        return [(True, _YES), (False, _NO)]
    within = object_in(schema.get("items")) if kind == "array" else schema
    named = [object_in(one) for key in ("oneOf", "anyOf") for one in list_in(within.get(key))]
    labelled = [(text_in(one.get("const")), _label(one)) for one in named]
    return labelled or [(value, value) for value in map(text_in, list_in(within.get("enum")))]


def _label(option: Mapping[str, Any]) -> str:
    title, about = text_in(option.get("title")) or text_in(option.get("const")), text_in(option.get("description"))
    return bounded_text(f"{title}: {about}" if about else title)


def _numbered(choices: Sequence[tuple[Any, str]]) -> dict[str, tuple[Any, str]]:
    """Return the choices by what a person types: their values, or numbers where these are ambiguous."""
    names = [label if isinstance(value, bool) else value for value, label in choices]
    is_plain = len(set(names)) == len(names) and all(
        name.isprintable() and 0 < len(name) <= _LONGEST_NAME and "," not in name for name in names
    )
    return dict(zip(names if is_plain else map(str, range(1, len(names) + 1)), choices, strict=True))
