"""The stand-in model itself, as a client of each API sees it."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

import pytest

from tests.agents.scenarios import Call, Reply
from tests.agents.standin import MODELS, StandIn


@pytest.fixture
def standin() -> Any:
    """A stand-in that serves."""
    with StandIn() as serving:
        yield serving


def _post(standin: StandIn, path: str, body: dict[str, Any]) -> bytes:
    request = urllib.request.Request(f"{standin.url}{path}", json.dumps(body).encode())
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request) as answer:
        data: bytes = answer.read()
    return data


def _chunks(data: bytes) -> list[dict[str, Any]]:
    lines = [line.removeprefix(b"data: ") for line in data.split(b"\n\n") if line]
    return [json.loads(line) for line in lines if line != b"[DONE]"]


def _chat(**more: Any) -> dict[str, Any]:
    return {"model": "stand-in", "messages": [{"role": "user", "content": "SCENARIO:tool"}], **more}


def _tool(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}


def test_it_lists_its_models(standin: StandIn) -> None:
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(f"{standin.url}/v1/models") as answer:
        assert [model["id"] for model in json.load(answer)["data"]] == list(MODELS)


def test_a_chat_completion_in_one_piece(standin: StandIn) -> None:
    told = json.loads(_post(standin, "/v1/chat/completions", _chat(tools=[_tool("bash")])))
    message = told["choices"][0]["message"]
    assert message["content"] == "I call a tool."
    assert message["tool_calls"][0]["function"]["name"] == "bash"
    assert told["choices"][0]["finish_reason"] == "tool_calls"


@pytest.mark.parametrize("counts", [True, False])
def test_a_streamed_chat_completion(standin: StandIn, *, counts: bool) -> None:
    more = {"stream_options": {"include_usage": True}} if counts else {}
    data = _post(standin, "/v1/chat/completions", _chat(stream=True, tools=[_tool("shell")], **more))
    chunks = _chunks(data)
    deltas = [choice["delta"] for chunk in chunks for choice in chunk["choices"]]
    calls = [call["function"] for delta in deltas for call in delta.get("tool_calls", ())]
    assert "".join(delta.get("content", "") for delta in deltas) == "I call a tool."
    assert json.loads("".join(call["arguments"] for call in calls))["command"] == "echo hello from a tool"
    assert any("usage" in chunk for chunk in chunks) == counts
    assert data.endswith(b"data: [DONE]\n\n")


def test_a_cut_chat_completion_never_says_that_it_is_whole(standin: StandIn) -> None:
    standin.first = [Reply(text="A word, and another.", cut="part"), Reply(text="A word.", calls=(), cut="word")]
    for _ in range(2):
        data = _post(standin, "/v1/chat/completions", _chat(stream=True))
        assert b"A " in data
        assert not any(choice["finish_reason"] for chunk in _chunks(data) for choice in chunk["choices"])
        assert b"[DONE]" not in data


def test_a_request_without_tools_gets_none(standin: StandIn) -> None:
    told = json.loads(_post(standin, "/v1/chat/completions", _chat()))
    assert "tool_calls" not in told["choices"][0]["message"]


def test_results_of_tools_are_seen(standin: StandIn) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": "{}"}}
    turns = [{"role": "assistant", "content": None, "tool_calls": [call]}, {"role": "tool", "tool_call_id": "c1"}]
    messages = [*_chat()["messages"], *turns]
    told = json.loads(_post(standin, "/v1/chat/completions", _chat(messages=messages, tools=[_tool("bash")])))
    assert told["choices"][0]["message"]["content"] == "Done: tool after 1 tool results."


def test_what_it_says_first(standin: StandIn) -> None:
    standin.first = [Reply(calls=(Call("shell", {"command": "true"}),))]
    names = [json.loads(_post(standin, "/chat/completions", _chat()))["choices"][0]["finish_reason"] for _ in range(2)]
    assert names == ["tool_calls", "stop"]
