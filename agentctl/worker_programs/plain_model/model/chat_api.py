"""Chat completions, as Ollama, llama.cpp, vLLM, LM Studio and most hosted providers speak them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from agentctl.drivers.values import list_in, object_in, text_in
from agentctl.worker_programs.plain_model.model.answer import (
    LENGTH,
    MOST_CALLS,
    OVERLOADED,
    REFUSED,
    STOP,
    ModelAnswer,
    ServerSaidError,
    chat_usage,
    json_answer,
    tool_call,
    without_inline_thought,
)
from agentctl.worker_programs.plain_model.model.request import ModelRequest

PATH = "/chat/completions"
_FINISHES = {
    "length": LENGTH, "max_tokens": LENGTH, "model_length": LENGTH, "content_filter": REFUSED, "refusal": REFUSED,
    "insufficient_system_resource": OVERLOADED,
}  # fmt: skip
_ASSEMBLED = frozenset({"id", "type", "function", "index"})
#: Fields that not every server knows.
OPTIONAL = ("stream_options", "reasoning_effort")


def headers_of(key: str | None) -> dict[str, str]:
    """Return the headers by which a key is told."""
    return {"Authorization": f"Bearer {key}"} if key else {}


def body_of(request: ModelRequest, without: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Return the body of a request.

    Args:
        without: The optional fields that the server has refused.
    """
    spoken = [_message(record, keeps_thoughts=request.keeps_thoughts) for record in request.records]
    messages = [{"role": "system", "content": request.system}, *spoken]
    body: dict[str, Any] = {"model": request.model, "messages": messages, "stream": True}
    if request.tools:
        functions = [{"name": one.name, "description": one.description, "parameters": one.schema}
                     for one in request.tools]  # fmt: skip
        body["tools"] = [{"type": "function", "function": function} for function in functions]
    if request.output:
        body["max_tokens"] = request.output
    optional: dict[str, Any] = {"stream_options": {"include_usage": True}}
    if request.effort:
        optional["reasoning_effort"] = request.effort
    return body | {name: value for name, value in optional.items() if name not in without}


def _message(record: Mapping[str, Any], *, keeps_thoughts: bool) -> dict[str, Any]:
    if record["type"] == "result":
        return {"role": "tool", "tool_call_id": record["call"], "content": record["text"]}
    if record["type"] == "user":
        return {"role": "user", "content": record["text"]}
    message: dict[str, Any] = {"role": "assistant", "content": record["text"]}
    if keeps_thoughts and record.get("thought"):
        message["reasoning_content"] = record["thought"]
    if calls := list_in(record.get("calls")):
        message["content"] = record["text"] or None
        message["tool_calls"] = [_call(call) for call in calls]
    return message


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    arguments = call.get("arguments")
    function = {"name": call["name"], "arguments": json.dumps({} if arguments is None else arguments)}
    return {**object_in(call.get("extra")), "id": call["id"], "type": "function", "function": function}


class _Growing:
    """A call whose pieces still come."""

    def __init__(self) -> None:
        self.id = self.name = ""
        self.pieces: list[str] = []
        self.arguments: Mapping[str, Any] | None = None
        self.extra: dict[str, Any] = {}

    def take(self, piece: Mapping[str, Any]) -> None:
        function = object_in(piece.get("function"))
        self.id = self.id or text_in(piece.get("id"))
        self.name += text_in(function.get("name"))
        given = function.get("arguments")
        if isinstance(given, Mapping):
            self.arguments = {**(self.arguments or {}), **given}
        else:
            self.pieces.append(text_in(given))
        self.extra |= {name: value for name, value in piece.items() if name not in _ASSEMBLED}


class ChatAssembler:
    """Puts the chunks of one answer together; `answer` may be asked for at any time."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self._calls: list[_Growing] = []
        #: The call that pieces of an index belong to.
        self._at: dict[int, _Growing] = {}
        self._finish: str | None = None
        self._usage: Any = None
        #: Whether any word of the model has arrived.
        self.has_begun = False

    def take(self, data: bytes) -> None:
        """Take the data of an event, or a whole completion; what is not a JSON object is passed over.

        Raises:
            ServerSaidError: It reports an error.
        """
        chunk = json_answer(data)
        if not isinstance(chunk, dict):
            return
        if chunk.get("error"):
            raise ServerSaidError(chunk["error"])
        self._usage = chunk.get("usage") or object_in(chunk.get("x_groq")).get("usage") or self._usage
        for choice in map(object_in, list_in(chunk.get("choices"))[:1]):
            self._piece(object_in(choice.get("delta")) or object_in(choice.get("message")))
            if finish := text_in(choice.get("finish_reason")):
                self._finish = _FINISHES.get(finish, STOP)

    def _piece(self, piece: Mapping[str, Any]) -> None:
        text, thought = _flat(piece.get("content"))
        self._texts.append(text or text_in(piece.get("refusal")))
        if text_in(piece.get("refusal")):
            self._finish = REFUSED
        self._thoughts.append(thought or text_in(piece.get("reasoning_content")) or text_in(piece.get("reasoning")))
        for call in map(object_in, list_in(piece.get("tool_calls"))):
            if len(self._calls) <= MOST_CALLS:
                self._growing(call).take(call)
        self.has_begun = self.has_begun or bool(self._texts[-1] or self._thoughts[-1] or self._calls)

    def _growing(self, piece: Mapping[str, Any]) -> _Growing:
        """Return the call that a piece belongs to: by its index, by its id, or else the newest one."""
        index, call_id = piece.get("index"), text_in(piece.get("id"))
        is_new = bool(object_in(piece.get("function")).get("name"))
        if type(index) is not int:
            known = next((one for one in self._calls if call_id and one.id == call_id), None)
            if known is None and not is_new and self._calls:
                known = self._calls[-1]
            if known is None:
                known = _Growing()
                self._calls.append(known)
            return known
        found = self._at.get(index)
        # Some servers number all calls 0.
        if found is None or (is_new and call_id and found.id and found.id != call_id):
            found = self._at[index] = _Growing()
            self._calls.append(found)
        return found

    def answer(self) -> ModelAnswer:
        """Return the message as far as it has come."""
        text, thought = without_inline_thought("".join(self._texts), "".join(self._thoughts))
        calls = [
            tool_call(one.id, one.name, one.arguments if one.arguments is not None else "".join(one.pieces), one.extra)
            for one in self._calls
        ]
        return ModelAnswer(text, thought, [call for call in calls if call.name], self._finish, chat_usage(self._usage))


def _flat(content: Any) -> tuple[str, str]:
    """Return the text and the thought in a content value: a text, or parts of either kind."""
    if isinstance(content, str):
        return content, ""
    texts, thoughts = [], []
    for part in map(object_in, list_in(content)):
        texts.append(text_in(part.get("text")))
        thoughts.append(_flat(part.get("thinking"))[0])
    return "".join(texts), "".join(thoughts)
