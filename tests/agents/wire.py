"""A reply of the stand-in model as the events of both APIs."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from typing import Any

from tests.agents.conversation import Request
from tests.agents.scenarios import Call, Reply

Event = dict[str, Any]
#: Of each answer: enough to see that nothing is counted twice.
INPUT_TOKENS, CACHED_TOKENS, OUTPUT_TOKENS = 100, 40, 10

ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    429: "rate_limit_error",
    529: "overloaded_error",
}


def error_body(status: int, kind: str = "", sentence: str = "") -> Event:
    """Return what goes with an HTTP status that refuses."""
    kind = kind or ERRORS.get(status, "api_error")
    message = sentence or f"The stand-in answers {status}"
    return {"type": "error", "error": {"type": kind, "code": kind, "message": message}}


def events(request: Request, reply: Reply) -> Iterator[Event]:
    """Yield the events of a streamed reply; those with a `delta` carry one word."""
    return (_messages_events if request.api == "messages" else _responses_events)(request, reply)


def whole(request: Request, reply: Reply) -> Event:
    """Return the reply in one piece."""
    return (_message if request.api == "messages" else _response)(request, reply)


def _id(request: Request) -> str:
    """Return the same id for the same conversation, and another for each other one."""
    return hashlib.sha256(repr(request).encode()).hexdigest()[:20]


def _words(text: str) -> list[str]:
    return re.findall(r"\S+\s*", text)


# -- Anthropic Messages ------------------------------------------------------------------------------------------------


def _message(request: Request, reply: Reply) -> Event:
    content: list[Event] = [{"type": "text", "text": reply.text}] if reply.text else []
    for number, call in enumerate(reply.calls):
        block = {"type": "tool_use", "id": f"toolu_{_id(request)}_{number}"}
        content.append({**block, "name": call.tool, "input": call.arguments})
    return {
        "id": f"msg_{_id(request)}", "type": "message", "role": "assistant", "model": request.model, "content": content,
        "stop_reason": reply.stop or ("tool_use" if reply.calls else "end_turn"), "stop_sequence": None,
        "usage": {
            "input_tokens": INPUT_TOKENS - CACHED_TOKENS, "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": CACHED_TOKENS, "output_tokens": OUTPUT_TOKENS,
        },
    }  # fmt: skip


def _messages_events(request: Request, reply: Reply) -> Iterator[Event]:
    message = _message(request, reply)
    yield {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}
    for index, block in enumerate(message["content"]):
        is_text = block["type"] == "text"
        empty = {**block, "text": ""} if is_text else {**block, "input": {}}
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        for piece in _words(block["text"]) if is_text else [json.dumps(block["input"])]:
            kind = "text" if is_text else "partial_json"
            delta = {"type": "text_delta" if is_text else "input_json_delta", kind: piece}
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    ended = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": ended, "usage": message["usage"]}
    yield {"type": "message_stop"}


# -- OpenAI Responses --------------------------------------------------------------------------------------------------


def _response(request: Request, reply: Reply) -> Event:
    output = [_text_item(request, reply.text)] if reply.text else []
    output += [_call_item(request, number, call) for number, call in enumerate(reply.calls)]
    whole = {**_response_head(request), "status": "completed", "output": output, "usage": _response_usage()}
    if reply.stop == "max_tokens":
        return {**whole, "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    return whole


def _response_head(request: Request) -> Event:
    return {"id": f"resp_{_id(request)}", "object": "response", "created_at": 0, "model": request.model}


def _response_usage() -> Event:
    return {
        "input_tokens": INPUT_TOKENS, "input_tokens_details": {"cached_tokens": CACHED_TOKENS},
        "output_tokens": OUTPUT_TOKENS, "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
    }  # fmt: skip


def _text_item(request: Request, text: str) -> Event:
    part = {"type": "output_text", "text": text, "annotations": []}
    head = {"type": "message", "id": f"msg_{_id(request)}", "role": "assistant", "status": "completed"}
    return {**head, "content": [part]}


def _call_item(request: Request, number: int, call: Call) -> Event:
    *namespace, name = call.tool.split("/")
    own = f"{_id(request)}_{number}"
    item = {"type": "function_call", "id": f"fc_{own}", "call_id": f"call_{own}", "status": "completed"}
    item |= {"name": name, "arguments": json.dumps(call.arguments)}
    return {**item, "namespace": namespace[0]} if namespace else item


def _responses_events(request: Request, reply: Reply) -> Iterator[Event]:
    response = _response(request, reply)
    yield {"type": "response.created", "response": {**response, "status": "in_progress", "output": [], "usage": None}}
    for index, item in enumerate(response["output"]):
        at = {"output_index": index, "item_id": item["id"]}
        opened = {**item, "status": "in_progress", **({"content": []} if "content" in item else {})}
        yield {"type": "response.output_item.added", "output_index": index, "item": opened}
        yield from _item_events(at, item)
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": f"response.{response['status']}", "response": response}


def _item_events(at: Event, item: Event) -> Iterator[Event]:
    if item["type"] == "function_call":
        yield {"type": "response.function_call_arguments.done", **at, "arguments": item["arguments"]}
        return
    part = item["content"][0]
    at = {**at, "content_index": 0}
    yield {"type": "response.content_part.added", **at, "part": {**part, "text": ""}}
    for word in _words(part["text"]):
        yield {"type": "response.output_text.delta", **at, "delta": word}
    yield {"type": "response.output_text.done", **at, "text": part["text"]}
    yield {"type": "response.content_part.done", **at, "part": part}
