"""A reply of the stand-in model as the events of all APIs."""

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
    """Yield the events of a streamed reply."""
    return _EVENTS[request.api](request, reply)


def whole(request: Request, reply: Reply) -> Event:
    """Return the reply in one piece."""
    return _WHOLE[request.api](request, reply)


def lines_of(request: Request, event: Event) -> bytes:
    """Return an event as it is sent."""
    name = "" if request.api == "chat" else f"event: {event['type']}\n"
    return f"{name}data: {json.dumps(event)}\n\n".encode()


def last_lines(request: Request) -> bytes:
    """Return what follows the last event."""
    return b"data: [DONE]\n\n" if request.api == "chat" else b""


def has_word(event: Event) -> bool:
    """Whether an event carries a piece of the answer."""
    deltas = [choice["delta"] for choice in event.get("choices", ())]
    return "delta" in event or any(value for delta in deltas for key, value in delta.items() if key != "role")


def ends(event: Event) -> bool:
    """Whether an event says that the answer is whole."""
    is_end = event.get("type") in {"message_delta", "response.completed"}
    return is_end or any(choice["finish_reason"] for choice in event.get("choices", ()))


def _id(request: Request) -> str:
    """Return the same id for the same conversation, and another for each other one."""
    return hashlib.sha256(repr(request).encode()).hexdigest()[:20]


def _words(text: str) -> list[str]:
    return re.findall(r"\S+\s*|\s+", text)


# -- Anthropic Messages ------------------------------------------------------------------------------------------------

#: How a block of each type is announced, before its words.
_EMPTY: dict[str, Event] = {
    "text": {"text": ""},
    "tool_use": {"input": {}},
    "thinking": {"thinking": "", "signature": ""},
}


def _message(request: Request, reply: Reply) -> Event:
    content: list[Event] = []
    if reply.thought:
        content.append({"type": "thinking", "thinking": reply.thought, "signature": "sealed"})
    if reply.text:
        content.append({"type": "text", "text": reply.text})
    for number, call in enumerate(reply.calls):
        block = {"type": "tool_use", "id": f"toolu_{_id(request)}_{number}"}
        content.append({**block, "name": call.tool, "input": call.arguments})
    return {
        "id": f"msg_{_id(request)}", "type": "message", "role": "assistant", "model": request.model, "content": content,
        "stop_reason": reply.stop or ("tool_use" if reply.calls else "end_turn"), "stop_sequence": None,
        "usage": {
            "input_tokens": (reply.tokens or INPUT_TOKENS) - CACHED_TOKENS, "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": CACHED_TOKENS, "output_tokens": OUTPUT_TOKENS,
        },
    }  # fmt: skip


def _messages_events(request: Request, reply: Reply) -> Iterator[Event]:
    message = _message(request, reply)
    yield {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}
    for index, block in enumerate(message["content"]):
        at = {"index": index}
        yield {"type": "content_block_start", **at, "content_block": block | _EMPTY[block["type"]]}
        for delta in _block_deltas(block):
            yield {"type": "content_block_delta", **at, "delta": delta}
        yield {"type": "content_block_stop", **at}
    ended = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": ended, "usage": message["usage"]}
    yield {"type": "message_stop"}


def _block_deltas(block: Event) -> Iterator[Event]:
    match block["type"]:
        case "tool_use":
            yield {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        case "thinking":
            for word in _words(block["thinking"]):
                yield {"type": "thinking_delta", "thinking": word}
            yield {"type": "signature_delta", "signature": block["signature"]}
        case _:
            for word in _words(block["text"]):
                yield {"type": "text_delta", "text": word}


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


# -- OpenAI Chat Completions -------------------------------------------------------------------------------------------

_FINISHES = {"max_tokens": "length", "refusal": "content_filter"}


def _completion(request: Request, reply: Reply) -> Event:
    message: Event = {"role": "assistant", "content": reply.text or None}
    if reply.thought:
        message["reasoning_content"] = reply.thought
    if reply.calls:
        message["tool_calls"] = [_chat_call(request, number, call) for number, call in enumerate(reply.calls)]
    finish = _FINISHES.get(reply.stop) or ("tool_calls" if reply.calls else "stop")
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return {**_completion_head(request), "object": "chat.completion", "choices": [choice], "usage": _chat_usage(reply)}


def _completion_head(request: Request) -> Event:
    return {"id": f"chatcmpl-{_id(request)}", "created": 0, "model": request.model}


def _chat_usage(reply: Reply) -> Event:
    tokens = reply.tokens or INPUT_TOKENS
    return {
        "prompt_tokens": tokens, "prompt_tokens_details": {"cached_tokens": CACHED_TOKENS},
        "completion_tokens": OUTPUT_TOKENS, "total_tokens": tokens + OUTPUT_TOKENS,
    }  # fmt: skip


def _chat_call(request: Request, number: int, call: Call) -> Event:
    function = {"name": call.tool, "arguments": json.dumps(call.arguments)}
    return {"id": f"call_{_id(request)}_{number}", "type": "function", "function": function}


def _chat_events(request: Request, reply: Reply) -> Iterator[Event]:
    head = {**_completion_head(request), "object": "chat.completion.chunk"}
    choice = _completion(request, reply)["choices"][0]
    for delta in _chat_deltas(choice["message"]):
        yield {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]}
    if request.counts:
        yield {**head, "choices": [], "usage": _chat_usage(reply)}


def _chat_deltas(message: Event) -> Iterator[Event]:
    """A call comes in two pieces: its name, then its arguments."""
    yield {"role": "assistant", "content": ""}
    for word in _words(message.get("reasoning_content") or ""):
        yield {"reasoning_content": word}
    for word in _words(message["content"] or ""):
        yield {"content": word}
    for index, call in enumerate(message.get("tool_calls", ())):
        function = call["function"]
        yield {"tool_calls": [{**call, "index": index, "function": {**function, "arguments": ""}}]}
        yield {"tool_calls": [{"index": index, "function": {"arguments": function["arguments"]}}]}


_EVENTS = {"messages": _messages_events, "responses": _responses_events, "chat": _chat_events}
_WHOLE = {"messages": _message, "responses": _response, "chat": _completion}
