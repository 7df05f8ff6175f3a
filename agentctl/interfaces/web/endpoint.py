"""What an endpoint is: its path, its parameters, and the function behind it; routes and OpenAPI are made from this."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from agentctl.domain.names import camel
from agentctl.domain.text.jsonschema import problem_of
from agentctl.errors import ExitCode, Next, UsageError
from agentctl.lean import NamedTuple

PREFIX = "/api/v1"
#: The names of tasks and workers, as `domain/names.py` checks them.
NAME = {"type": "string", "pattern": "^[A-Za-z0-9_][A-Za-z0-9_-]{0,63}$"}
PATH, QUERY, BODY = "path", "query", "body"
#: The parameters of a list that is had in pages.
LIMIT, CURSOR = "limit", "cursor"
#: Longer texts are taken from no query.
_LONGEST_QUERY = 10_000


class Input(NamedTuple):
    """A value that an endpoint takes."""

    #: As whoever carries it out has it.
    name: str
    schema: Mapping[str, Any]
    help: str = ""
    where: str = QUERY
    is_required: bool = False
    #: How the description spells it; by default as answers spell their keys. `_named` reads the other spelling, too.
    spelled: str = ""
    #: Of a required one: the value with which it may be left out. The description cannot say that in a form from which
    #: clients can be made.
    unless: str = ""
    #: Of an array: the values of each of its items, which are objects.
    of_items: tuple[Input, ...] = ()
    #: Of an array: what the description says of each item besides; whoever carries it out tells people.
    items_told: Mapping[str, Any] = {}

    @property
    def key(self) -> str:
        """The name in a request."""
        return self.name if self.where == PATH else self.spelled or camel(self.name)

    @property
    def is_choices(self) -> bool:
        """Whether it is a list of words of ours, which may also be one text with commas, as a command line has it."""
        return "enum" in self.schema.get("items", {})

    def described(self) -> dict[str, Any]:
        """Return its schema, with that of its items."""
        return {**self.schema, "items": _object_of(self.of_items)} if self.of_items else dict(self.schema)

    def told(self) -> dict[str, Any]:
        """Return its schema as the description has it."""
        schema = self.described()
        return {**schema, "items": {**schema["items"], **self.items_told}} if self.items_told else schema


class JsonAnswer(NamedTuple):
    """A JSON document for the client."""

    value: Any
    #: That of the command; another than 0 is told in a header.
    exit_code: int = ExitCode.DONE
    #: 201 for what was made by this request.
    status: int = 200
    #: Of what was made, its path below `PREFIX`.
    location: str | None = None
    #: Of one page of a list, where the next one is.
    next_page: str | None = None


class RawAnswer(NamedTuple):
    """Bytes for the client, which it must not take for anything but what the media type says."""

    #: If they come in pieces, the headers say how many bytes there are.
    data: bytes | Iterator[bytes]
    media_type: str
    status: int = 200
    headers: Mapping[str, str] = {}


#: Takes a document, gives it to the client, and returns once that is done; raises `BrokenOff` if it has left.
Deliver = Callable[[Any], None]


class CheckedRequest(NamedTuple):
    """One request of an endpoint, after its parameters were checked."""

    values: Mapping[str, Any]
    #: Of the request, in lower case: only those that an endpoint may need.
    headers: Mapping[str, str]
    #: For what counts as given only once the client has it.
    deliver: Deliver
    #: A descriptor that becomes readable when the client leaves.
    broken: int


class Endpoint(NamedTuple):
    """A method at a path, below `PREFIX`."""

    method: str
    #: With its path parameters in braces.
    path: str
    #: The name of the operation: the command's, with `.` between its words.
    name: str
    summary: str
    carry_out: Callable[[CheckedRequest], JsonAnswer | RawAnswer]
    parameters: tuple[Input, ...] = ()
    description: str = ""
    #: The type of what it answers, as an annotation of `domain/documents`; of raw bytes None.
    answers: str | None = "Any"
    media_type: str = "application/json"
    #: It may take as long as a worker.
    waits: bool = False
    #: It makes something, and answers 201 with its `Location`; or 200 if that was there already.
    creates: bool = False
    #: Keys that its body had in earlier versions -> what is to be asked instead.
    elsewhere: Mapping[str, str] = {}
    #: It is a list that may be had in pages.
    is_paged: bool = False

    @property
    def changes(self) -> bool:
        """Whether it may change anything."""
        return self.method != "GET"

    def body_schema(self) -> dict[str, Any]:
        """Return the schema of the body."""
        return _object_of([one for one in self.parameters if one.where == BODY])

    def values_of(self, path: Mapping[str, str], query: list[tuple[str, str]], body: Any) -> dict[str, Any]:
        """Return the checked values of a request, by their names.

        Raises:
            UsageError: A value is missing, unknown or not as it must be.
        """
        given = {**_from_query([one for one in self.parameters if one.where == QUERY], query), **path}
        if self.changes:
            for key in self.elsewhere.keys() & (body if isinstance(body, dict) else {}):
                raise UsageError(f"{self.name} takes no {key}", hint=self.elsewhere[key])
            given |= _from_body([one for one in self.parameters if one.where == BODY], body)
        needed = [one._replace(is_required=False) if one.unless in given else one for one in self.parameters]
        found = problem_of(given, _object_of(needed), "the request")
        if found is None and not all(map(str.isprintable, path.values())):
            found = "a name in the path has a character that no name has"
        if found is not None:
            raise UsageError(found, hint=Next("described", self.name))
        return dict(_by_name(self.parameters, given))


def _object_of(parameters: Sequence[Input]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {one.key: one.described() for one in parameters},
        "required": [one.key for one in parameters if one.is_required],
        "additionalProperties": False,
    }


def _by_name(parameters: Sequence[Input], given: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the names of checked values, and these; 1.0 is one, as in JSON."""
    for one in parameters:
        if one.key in given:
            value = given[one.key]
            if one.of_items:
                value = [dict(_by_name(one.of_items, item)) for item in value]
            yield one.name, int(value) if one.schema.get("type") == "integer" else value


def _named(parameters: Sequence[Input], key: str, what: str) -> Input:
    """Return what a key means, as the description spells it or in the other spelling: `timeoutSeconds` or
    `timeout_seconds`.

    Raises:
        UsageError: It means nothing.
    """
    found = next((one for one in parameters if one.key == key), None)
    found = found or next((one for one in parameters if one.name == snake(key)), None)
    if found is None:
        raise UsageError(f"unknown {what} {key[:80]!r}", hint=_known(one.key for one in parameters))
    return found


def _from_query(parameters: Sequence[Input], pairs: list[tuple[str, str]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    spelled: dict[str, str] = {}
    for key, text in pairs:
        one = _named(parameters, key, "parameter")
        if "\0" in text:
            raise UsageError(f"{key} has a NUL character")
        if len(text) > _LONGEST_QUERY:
            raise UsageError(f"{key} is longer than {_LONGEST_QUERY} characters")
        is_many = one.schema.get("type") == "array"
        if spelled.setdefault(one.key, key) != key or (one.key in found and not is_many):
            raise UsageError(f"{one.key} is given twice")
        if is_many:
            found.setdefault(one.key, []).extend(text.split(",") if one.is_choices else [text])
        else:
            found[one.key] = _value_of(key, text, one.schema)
    return found


_WHOLE = re.compile(r"-?[0-9]{1,18}", re.ASCII)
_NUMBER = re.compile(r"-?[0-9]{1,18}(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?", re.ASCII)


def _value_of(key: str, text: str, schema: Mapping[str, Any]) -> Any:
    """Return the value that a text of a query stands for."""
    kind = schema.get("type")
    if kind == "boolean":
        if text not in {"true", "false"}:
            raise UsageError(f"{key} must be true or false, not {text[:80]!r}")
        return text == "true"
    if kind in {"integer", "number"}:
        if (_WHOLE if kind == "integer" else _NUMBER).fullmatch(text) is None:
            raise UsageError(f"{key} must be {'a whole ' if kind == 'integer' else 'a '}number, not {text[:80]!r}")
        number = int(text) if kind == "integer" else float(text)
        if number in {math.inf, -math.inf}:
            raise UsageError(f"{key} must be a smaller number than {text[:80]}")
        return number
    return text


def _from_body(parameters: Sequence[Input], body: Any, what: str = "the body") -> dict[str, Any]:
    if not isinstance(body, dict):
        raise UsageError(f"{what} must be a JSON object")
    found: dict[str, Any] = {}
    for key, value in body.items():
        one = _named(parameters, key, "key")
        if one.key in found:
            raise UsageError(f"{one.key} is given twice, as {key!r} too")
        found[one.key] = value.split(",") if one.is_choices and isinstance(value, str) else value
        if one.of_items and isinstance(value, list):
            found[one.key] = [
                _from_body(one.of_items, item, f"{one.key} {number}") for number, item in enumerate(value, 1)
            ]
    return found


def read_body(data: bytes) -> Any:
    """Return the JSON document in a body; an empty one is an empty object.

    Raises:
        UsageError: It is not JSON, or holds characters that no command takes.
    """
    if not data.strip():
        return {}
    try:
        value = json.loads(data.decode(), parse_constant=_refuse_constant, object_pairs_hook=_without_doubles)
        # What no file and no argument can hold is refused here, once for all commands.
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        text.encode()
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the body is not JSON: {str(error)[:200]}") from error
    if not _is_flat(value, _DEEPEST):
        raise UsageError(f"the body is nested more than {_DEEPEST} levels deep")
    if "\\u0000" in text and _has_nul(value):
        raise UsageError("a text in the body has a NUL character")
    return value


#: No command takes anything that is nested more than a few levels; what is much deeper, not all of them can print.
_DEEPEST = 64


def _is_flat(value: Any, deepest: int) -> bool:
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return deepest > 0 and all(_is_flat(one, deepest - 1) for one in parts if isinstance(one, dict | list))


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is there twice")
    return found


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number")


def _has_nul(value: Any) -> bool:
    if isinstance(value, str):
        return "\0" in value
    if isinstance(value, dict):
        return any(map(_has_nul, value)) or any(map(_has_nul, value.values()))
    return isinstance(value, list) and any(map(_has_nul, value))


def snake(key: str) -> str:
    """Return a name as the parameters have it.

    >>> snake("graceSeconds"), snake("grace-seconds")
    ('grace_seconds', 'grace_seconds')
    """
    return "".join("_" + letter.lower() if letter.isupper() else letter for letter in key.replace("-", "_"))


def _known(names: Iterable[str]) -> str:
    return f"known: {', '.join(sorted(names)) or 'none'}"
