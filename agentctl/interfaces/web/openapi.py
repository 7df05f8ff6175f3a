"""The description of the interface, OpenAPI 3.1: made from the endpoints, and so from how the commands are declared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agentctl import __version__
from agentctl.errors import ExitCode
from agentctl.interfaces.web.endpoint import BODY, NAME, PATH, PREFIX, Endpoint, Input
from agentctl.interfaces.web.endpoint_app import EXIT_CODE
from agentctl.interfaces.web.problems import MEDIA_TYPE, STATUS

_PROBLEM = {"$ref": "#/components/schemas/Problem"}
#: What any endpoint may answer, besides what it is for.
_ALWAYS = {"400": "It is not valid.", "401": "It shows no token.", "403": "It may not come from there.",
           "404": "There is no such thing.", "405": "The path has no such method.",
           "503": "Something that this machine lacks, or too many waits."}  # fmt: skip
_OF_CHANGES = {"409": "Refused as things are, or a name is taken.", "413": "The body is too long.",
               "415": "The body is not JSON.",
               "429": "Every slot is in use.", "507": "The disk refused."}  # fmt: skip


def document_of(endpoints: Sequence[Endpoint], others: Sequence[Endpoint]) -> dict[str, Any]:
    """Return the document.

    Args:
        endpoints: Those below `PREFIX`.
        others: Those below none.
    """
    from agentctl.interfaces.web.document_schemas import (  # It loads pydantic, once somebody asks.
        declared_type,
        schemas_of,
    )

    declared = {one.name: one.answers for one in (*endpoints, *others) if one.answers is not None}
    answers, parts = schemas_of({name: declared_type(text) for name, text in (declared | _OF_THE_SERVER).items()})
    paths: dict[str, dict[str, Any]] = {}
    for prefix, some in ((PREFIX, endpoints), ("", others)):
        for one in some:
            paths.setdefault(f"{prefix}{one.path}", {})[one.method.lower()] = _operation(one, answers.get(one.name))
    for path, operation in _of_the_server(answers):
        paths.setdefault(path, {})["get"] = operation
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "agentctl", "version": __version__,
            "description": "What the commands of agentctl do. Names, JSON documents and exit codes are those of the"
                           " commands.",
        },
        "paths": dict(sorted(paths.items())),
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {**dict(sorted(parts.items())), "Problem": _problem_schema()},
        },
        "security": [{"token": []}],
    }  # fmt: skip


def _operation(one: Endpoint, answer: Mapping[str, Any] | None) -> dict[str, Any]:
    found: dict[str, Any] = {
        "operationId": one.name, "summary": one.summary,
        "parameters": [_parameter(each) for each in one.parameters if each.where != BODY],
        "responses": _responses(one, answer),
    }  # fmt: skip
    if one.description:
        found["description"] = one.description
    if one.changes:
        body = one.body_schema()
        for each in one.parameters:
            if each.where == BODY:
                body["properties"][each.key] = _described(each)
        found["requestBody"] = {"required": bool(body["required"]), "content": {"application/json": {"schema": body}}}
    return found


def _described(one: Input) -> dict[str, Any]:
    """Return the schema of a value of a body, with what is said of it and of the values in it."""
    schema = one.told()
    if one.of_items:
        below = {each.key: _described(each) for each in one.of_items}
        schema["items"] = {**schema["items"], "properties": below}
    return {**schema, **({"description": one.help} if one.help else {})}


def _parameter(one: Input) -> dict[str, Any]:
    found = {
        "name": one.key, "in": one.where, "required": one.where == PATH or one.is_required, "schema": one.told(),
    }  # fmt: skip
    return {**found, **({"description": one.help} if one.help else {})}


def _responses(one: Endpoint, answer: Mapping[str, Any] | None) -> dict[str, Any]:
    content: dict[str, Any] = {one.media_type: {} if answer is None else {"schema": dict(answer)}}
    done: dict[str, Any] = {"description": "Done.", "content": content}
    if one.answers is not None:
        done["headers"] = {EXIT_CODE: {"description": "The exit code, if it is not 0.", "schema": {"type": "integer"}}}
    if one.is_paged:
        words = 'The next page, if this is one and not the last: `<PATH>; rel="next"`.'
        done["headers"]["Link"] = {"description": words, "schema": {"type": "string"}}
    made = {}
    if one.creates:
        where = {"description": "Its path, if it is one thing that was made.", "schema": {"type": "string"}}
        made["201"] = {**done, "description": "Made.", "headers": {**done["headers"], "Location": where}}
        done = {**done, "description": "It was there already: nothing was made."}
    found = {"200": done, **made, **{status: _told(words) for status, words in _ALWAYS.items()}, **_TOO_LARGE}
    if one.changes:
        return found | {status: _told(words) for status, words in _OF_CHANGES.items()}
    found["409"] = _told("Refused.")
    if one.is_paged:
        found["410"] = _told("The rows behind which the page was to begin are gone: begin with the first page.")
    found["304"] = {"description": "As the client has it."}
    if one.answers is None:
        found["206"] = {"description": "A part.", "content": content}
        found["416"] = {"description": "There is nothing of that part.", "content": content}
    return found


def _told(words: str) -> dict[str, Any]:
    return {"description": words, "content": {MEDIA_TYPE: {"schema": _PROBLEM}}}


#: This one is told before anything has looked at the request.
_TOO_LARGE = {"431": {"description": "The header is too long.", "content": {"text/plain": {}}}}


_TEXT = {"type": "string"}
_STEP = {
    "properties": {"step": _TEXT, "of": _TEXT, "task": _TEXT, "words": _TEXT},
    "required": ["step", "of", "task", "words"],
}


def _problem_schema() -> dict[str, Any]:
    codes = [int(code) for code in STATUS]
    return {
        "type": "object",
        "description": "The error of a command: `detail` says what is wrong, `hint` the next step.",
        "properties": {
            "type": {"type": "string"}, "title": {"type": "string"}, "status": {"type": "integer"},
            "detail": {"type": "string"}, "hint": {"type": ["string", "null"]},
            "next": {
                "type": ["object", "null"], "description": "The next step as data, where it is one of a known kind.",
                **_STEP,
            },
            "steps": {
                "type": "array", "description": "All of them, in their order; some are only words.",
                "items": {"type": "object", **_STEP},
            },
            "code": {"type": "integer", "enum": sorted(codes), "description": "The exit code of the command."},
            "name": {"type": "string", "enum": [ExitCode(code).name for code in sorted(codes)]},
        },
        "required": ["type", "title", "status", "detail", "hint", "next", "steps", "code", "name"],
    }  # fmt: skip


#: What is answered without an endpoint -> its type.
_OF_THE_SERVER = {"task.show": "TaskSnapshot", "healthz": "ServerHealth"}


def _of_the_server(answers: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what is answered without an endpoint: from what is known of all tasks, and as a stream."""
    task = {"name": "task", "in": "path", "required": True, "schema": dict(NAME), "description": "The task."}
    yield (
        f"{PREFIX}/tasks/{{task}}",
        _plain(
            "task.show",
            "Return a task with its workers, as `list` has them.",
            "application/json",
            answers["task.show"],
            task,
        ),
    )
    yield f"{PREFIX}/events", _plain(
        "events.stream", "Stream events as they happen, each once, and the state of all workers.", "text/event-stream",
        {"type": "string"},
        {"name": "task", "in": "query", "schema": {"type": "array", "items": dict(NAME)}, "description": "Only these."},
        {"name": "since", "in": "query", "schema": {"type": "string", "maxLength": 16_000},
         "description": "now, start, or a cursor: the id of the last message that the client has had."},
        {"name": "fleet", "in": "query", "schema": {"type": "boolean"}, "description": "With the state of all."},
        {"name": "version", "in": "query", "schema": {"type": "string", "maxLength": 64},
         "description": "With fleet: the version that the client has, to be sent only what has changed since."},
        {"name": "lastEventId", "in": "query", "schema": {"type": "string", "maxLength": 16_000},
         "description": "As the header Last-Event-ID."},
    )  # fmt: skip
    yield f"{PREFIX}/openapi.json", _plain("openapi", "Return this document.", "application/json", {"type": "object"})
    yield "/healthz", _plain("healthz", "Say whether the server can read.", "application/json", answers["healthz"])
    yield "/metrics", _plain("metrics", "Return figures for a monitor.", "text/plain", {"type": "string"})


def _plain(
    name: str, summary: str, media_type: str, schema: Mapping[str, Any], *parameters: Mapping[str, Any]
) -> dict[str, Any]:
    done = {"description": "Done.", "content": {media_type: {"schema": dict(schema)}}}
    return {
        "operationId": name, "summary": summary, "parameters": [dict(one) for one in parameters],
        "responses": {"200": done, "304": {"description": "As the client has it."},
                      **{status: _told(words) for status, words in _ALWAYS.items()}, **_TOO_LARGE,
                      "409": _told("The tasks cannot be read.")},
    }  # fmt: skip
