"""What an agent program has sent to its model, in one form for all APIs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

#: What picks the stand-in's behaviour: `SCENARIO:name`, or `SCENARIO:name=argument`.
MARK = re.compile(r"SCENARIO:([a-z]+)(?:=([\w.-]+))?")

#: What a model looks for in vain while tools that it is to call are not there yet.
NOT_YET = "tools-that-come-later"
#: How Claude Code passes on what a user says in the middle of a turn: as the system's words.
_TOLD_IN_A_TURN = "The user sent a new message"


class Turn(NamedTuple):
    """A piece of the conversation: its kind is `user`, `assistant`, `system`, `call` or `result`."""

    kind: str
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """One request for an answer, as it arrived."""

    #: `messages` (Anthropic), `responses` or `chat` (OpenAI).
    api: str
    model: str
    effort: str | None
    stream: bool
    tools: tuple[str, ...]
    system: str
    turns: tuple[Turn, ...]
    #: Whether a stream is to tell how many tokens were used.
    counts: bool = True

    @property
    def marked(self) -> list[tuple[str, str]]:
        """The (name, argument) of every mark that a user has set, the oldest first."""
        return [found for kind, text in self.turns if kind == "user" for found in MARK.findall(text)]

    @property
    def scenario(self) -> tuple[str, str]:
        """The newest (name, argument); a conversation without a mark is answered with a text."""
        return self.marked[-1] if self.marked else ("text", "")

    @property
    def since(self) -> tuple[Turn, ...]:
        """The turns after the one with the newest mark."""
        for number in range(len(self.turns) - 1, -1, -1):
            if self.turns[number].kind == "user" and MARK.search(self.turns[number].text):
                return self.turns[number + 1 :]
        return self.turns

    @property
    def results(self) -> list[str]:
        """What the tools have answered since the newest mark."""
        return [text for kind, text in self.since if kind == "result" and NOT_YET not in text]

    @property
    def waits(self) -> int:
        """How often it has waited for tools since the newest mark."""
        return sum(kind == "result" and NOT_YET in text for kind, text in self.since)

    @property
    def notices(self) -> list[str]:
        """What the program has told of its sub-agents since the newest mark, in the user's place."""
        return [text for kind, text in self.since if kind == "user" and "notification>" in text]


def parse(api: str, body: Mapping[str, Any]) -> Request:
    """Return the request in a body of one of the APIs."""
    return _PARSERS[api](body)


def _of_messages(body: Mapping[str, Any]) -> Request:
    turns = tuple(_turns_of_messages(body.get("messages", ())))
    said = [turn.text for turn in turns if turn.kind == "system"]
    return Request(
        api="messages",
        model=body.get("model", ""),
        effort=(body.get("output_config") or {}).get("effort"),
        stream=bool(body.get("stream")),
        tools=tuple(tool.get("name", "") for tool in body.get("tools") or ()),
        system="\n".join([_flat(body.get("system")), *said]),
        turns=turns,
    )


def _turns_of_messages(messages: Any) -> Iterator[Turn]:
    for message in messages:
        content = message["content"]
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            if block["type"] == "text":
                is_told = block["text"].startswith(_TOLD_IN_A_TURN)
                yield Turn("user" if is_told else message["role"], block["text"])
            elif block["type"] == "tool_use":
                yield Turn("call", block["name"])
            elif block["type"] == "tool_result":
                yield Turn("result", _flat(block.get("content")))


def _of_responses(body: Mapping[str, Any]) -> Request:
    turns = tuple(_turns_of_responses(body.get("input", ())))
    said = [turn.text for turn in turns if turn.kind in {"system", "developer"}]
    return Request(
        api="responses",
        model=body.get("model", ""),
        effort=(body.get("reasoning") or {}).get("effort"),
        stream=bool(body.get("stream")),
        tools=tuple(name for tool in body.get("tools") or () for name in _names_of_tool(tool)),
        system="\n".join([_flat(body.get("instructions")), *said]),
        turns=turns,
    )


def _names_of_tool(tool: Mapping[str, Any]) -> list[str]:
    """A namespace groups tools under a name; they are called as `NAMESPACE/NAME` here."""
    if tool.get("type") == "namespace":
        return [f"{tool['name']}/{inner['name']}" for inner in tool.get("tools", ())]
    return [tool.get("name") or tool.get("type", "")]


def _turns_of_responses(items: Any) -> Iterator[Turn]:
    for item in items:
        kind = item.get("type", "message")
        if kind == "message":
            yield Turn(item["role"], _flat(item.get("content")))
        elif kind.endswith("_output"):
            yield Turn("result", _flat(item.get("output")))
        elif kind.endswith("_call"):
            yield Turn("call", item.get("name", kind))


def _of_chat(body: Mapping[str, Any]) -> Request:
    turns = tuple(_turns_of_chat(body.get("messages", ())))
    return Request(
        api="chat",
        model=body.get("model", ""),
        effort=body.get("reasoning_effort"),
        stream=bool(body.get("stream")),
        tools=tuple(tool["function"]["name"] for tool in body.get("tools") or ()),
        system="\n".join(turn.text for turn in turns if turn.kind in {"system", "developer"}),
        turns=turns,
        counts=bool((body.get("stream_options") or {}).get("include_usage")),
    )


def _turns_of_chat(messages: Any) -> Iterator[Turn]:
    for message in messages:
        if message["role"] == "tool":
            yield Turn("result", _flat(message.get("content")))
            continue
        if message.get("content"):
            yield Turn(message["role"], _flat(message["content"]))
        for call in message.get("tool_calls") or ():
            yield Turn("call", call["function"]["name"])


def _flat(content: Any) -> str:
    """Return the text in a content value, however deep it is wrapped."""
    if isinstance(content, list):
        return "\n".join(map(_flat, content))
    if isinstance(content, dict):
        text = content.get("text") or content.get("content")
        return _flat(text) if text is not None else json.dumps(content)
    return "" if content is None else str(content)


_PARSERS = {"messages": _of_messages, "responses": _of_responses, "chat": _of_chat}
