"""Anthropic's Messages API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentctl.drivers.values import count_in, list_in, object_in, text_in
from agentctl.worker_programs.plain_model.model.answer import (
    LENGTH,
    REFUSED,
    STOP,
    AnswerUsage,
    ModelAnswer,
    ServerSaidError,
    ToolCall,
    json_answer,
    tool_call,
)
from agentctl.worker_programs.plain_model.model.request import ModelRequest

#: Its name in the row of a provider.
DIALECT = "anthropic"
PATH = "/v1/messages"
_VERSION = "2023-06-01"
_FINISHES = {"max_tokens": LENGTH, "model_context_window_exceeded": LENGTH, "refusal": REFUSED}
#: Where the row of the model does not say how much it may answer: the API wants a number.
_OUTPUT = 8192
_CACHED = {"cache_control": {"type": "ephemeral"}}
OPTIONAL = ("output_config",)


def headers_of(key: str | None) -> dict[str, str]:
    """Return the headers by which a key is told."""
    return {"anthropic-version": _VERSION, **({"x-api-key": key} if key else {})}


def body_of(request: ModelRequest, without: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Return the body of a request.

    Args:
        without: The optional fields that the server has refused.
    """
    body: dict[str, Any] = {
        "model": request.model, "max_tokens": request.output or _OUTPUT, "stream": True,
        "system": [{"type": "text", "text": request.system, **_CACHED}], "messages": _messages(request),
    }  # fmt: skip
    if request.tools:
        body["tools"] = [
            {"name": one.name, "description": one.description, "input_schema": one.schema} for one in request.tools
        ]
    if request.effort and "output_config" not in without:
        body["output_config"] = {"effort": request.effort}
    return body


def _messages(request: ModelRequest) -> list[dict[str, Any]]:
    """Return the messages: those of one side that follow each other become one."""
    found: list[dict[str, Any]] = []
    for record in request.records:
        role = "assistant" if record["type"] == "assistant" else "user"
        blocks = _blocks(record, request)
        if found and found[-1]["role"] == role:
            found[-1]["content"] += blocks
        elif blocks:
            found.append({"role": role, "content": blocks})
    if found and found[-1]["content"]:
        found[-1]["content"][-1] = {**found[-1]["content"][-1], **_CACHED}
    return found


def _blocks(record: Mapping[str, Any], request: ModelRequest) -> list[dict[str, Any]]:
    if record["type"] == "result":
        is_error = record.get("status") != "completed"
        return [{"type": "tool_result", "tool_use_id": record["call"], "content": record["text"], "is_error": is_error}]
    texts = [{"type": "text", "text": record["text"]}] if record["text"].strip() else []
    if record["type"] == "user":
        return texts or [{"type": "text", "text": "(nothing)"}]
    # A sealed thought can be read by the model that thought it.
    sealed = list_in(record.get("sealed")) if record.get("model") == request.model else []
    calls = [
        {"type": "tool_use", "id": call["id"], "name": call["name"], "input": call.get("arguments") or {}}
        for call in list_in(record.get("calls"))
    ]
    return [*sealed, *texts, *calls]


class MessagesAssembler:
    """Puts the events of one answer together; `answer` may be asked for at any time."""

    def __init__(self) -> None:
        self._blocks: dict[int, dict[str, Any]] = {}
        self._pieces: dict[int, list[str]] = {}
        self._finish: str | None = None
        self._usage: dict[str, Any] = {}

    @property
    def has_begun(self) -> bool:
        """Whether any word of the model has arrived."""
        return bool(self._blocks)

    def take(self, data: bytes) -> None:
        """Take the data of an event, or a whole message; what is not a JSON object is passed over.

        Raises:
            ServerSaidError: It reports an error.
        """
        event = json_answer(data)
        if not isinstance(event, dict):
            return
        index = event["index"] if type(event.get("index")) is int else len(self._blocks)
        match event.get("type"):
            case "error":
                raise ServerSaidError(event.get("error"))
            case "message":
                self._take_whole(event)
            case "message_start":
                self._usage |= object_in(object_in(event.get("message")).get("usage"))
            case "content_block_start":
                self._blocks[index] = object_in(event.get("content_block"))
            case "content_block_delta":
                self._delta(index, object_in(event.get("delta")))
            case "message_delta":
                self._usage |= {name: value for name, value in object_in(event.get("usage")).items() if value}
                self._stop(object_in(event.get("delta")))

    def _take_whole(self, message: Mapping[str, Any]) -> None:
        self._blocks = dict(enumerate(map(object_in, list_in(message.get("content")))))
        self._usage = object_in(message.get("usage"))
        self._stop(message)

    def _stop(self, said: Mapping[str, Any]) -> None:
        if why := text_in(said.get("stop_reason")):
            self._finish = _FINISHES.get(why, STOP)

    def _delta(self, index: int, delta: Mapping[str, Any]) -> None:
        if delta.get("type") == "signature_delta":
            block = self._blocks.setdefault(index, {"type": "thinking"})
            block["signature"] = text_in(block.get("signature")) + text_in(delta.get("signature"))
            return
        piece = text_in(delta.get("text")) or text_in(delta.get("thinking")) or text_in(delta.get("partial_json"))
        self._pieces.setdefault(index, []).append(piece)

    def answer(self) -> ModelAnswer:
        """Return the message as far as it has come."""
        texts, thoughts, calls, sealed = [], [], [], []
        for index, block in sorted(self._blocks.items()):
            said = "".join(self._pieces.get(index, ()))
            match block.get("type"):
                case "text":
                    texts.append(text_in(block.get("text")) + said)
                case "thinking":
                    thought = text_in(block.get("thinking")) + said
                    thoughts.append(thought)
                    sealed.append({**block, "thinking": thought})
                case "redacted_thinking":
                    sealed.append(block)
                case "tool_use":
                    calls.append(_call(block, said))
        return ModelAnswer("".join(texts), "\n".join(thoughts), calls, self._finish, self._counted(), sealed)

    def _counted(self) -> AnswerUsage | None:
        usage = self._usage
        if not usage:
            return None
        fresh = count_in(usage.get("input_tokens")) + count_in(usage.get("cache_creation_input_tokens"))
        return AnswerUsage(fresh, count_in(usage.get("output_tokens")), count_in(usage.get("cache_read_input_tokens")))


def _call(block: Mapping[str, Any], said: str) -> ToolCall:
    return tool_call(text_in(block.get("id")), text_in(block.get("name")), said or block.get("input"))
