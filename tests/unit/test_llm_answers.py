"""At stake: what a model has answered is read the same, however its stream was cut and whoever sends it."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentctl.worker_programs.plain_model.model.answer import (
    LENGTH,
    MOST_CALLS,
    REFUSED,
    STOP,
    AnswerUsage,
    ModelAnswer,
    ServerSaidError,
)
from agentctl.worker_programs.plain_model.model.chat_api import ChatAssembler, body_of
from agentctl.worker_programs.plain_model.model.event_stream_data import SseStream
from agentctl.worker_programs.plain_model.model.messages_api import MessagesAssembler
from agentctl.worker_programs.plain_model.model.messages_api import body_of as messages_body
from agentctl.worker_programs.plain_model.model.request import ModelRequest, ToolSpec
from tests.agents.conversation import Request
from tests.agents.scenarios import Call, Reply
from tests.agents.wire import events, last_lines, lines_of, whole

ASSEMBLERS: dict[str, type[ChatAssembler | MessagesAssembler]] = {
    "chat": ChatAssembler, "messages": MessagesAssembler,
}  # fmt: skip
WORDS = st.text(st.characters(codec="utf-8"), max_size=30)
ARGUMENTS = st.dictionaries(st.text(max_size=5), st.one_of(WORDS, st.integers(-9, 9), st.none()), max_size=3)
CALLS = st.lists(st.builds(Call, st.sampled_from(["find", "shell"]), ARGUMENTS), max_size=3).map(tuple)
REPLIES = st.builds(Reply, text=WORDS, thought=WORDS, calls=CALLS, stop=st.sampled_from(["", "max_tokens"]))


def request_of(api: str) -> Request:
    return Request(api=api, model="m", effort=None, stream=True, tools=(), system="", turns=())


def streamed(api: str, reply: Reply) -> bytes:
    request = request_of(api)
    return b"".join(lines_of(request, event) for event in events(request, reply)) + last_lines(request)


def read(api: str, chunks: Sequence[bytes]) -> ModelAnswer:
    stream, assembler = SseStream(), ASSEMBLERS[api]()
    for chunk in chunks:
        for data in stream.feed(chunk):
            assembler.take(data)
    for data in stream.rest():
        assembler.take(data)
    return assembler.answer()


def cut(data: bytes, places: Sequence[int]) -> list[bytes]:
    marks = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[start:end] for start, end in itertools.pairwise(marks)]


@pytest.mark.parametrize("api", ASSEMBLERS)
@given(reply=REPLIES, places=st.lists(st.integers(0, 10_000), max_size=20), returns=st.booleans(), beats=st.booleans())
def test_a_stream_means_the_same_however_it_is_cut(
    api: str, reply: Reply, places: list[int], *, returns: bool, beats: bool
) -> None:
    data = streamed(api, reply)
    answer = read(api, [data])
    varied = data.replace(b"\n", b"\r\n") if returns else data
    varied = b": keep-alive\n\n" + varied if beats else varied
    assert read(api, cut(varied, places)) == answer
    assert [dict(call.arguments or {}) for call in answer.calls] == [call.arguments for call in reply.calls]
    assert answer.finish == (LENGTH if reply.stop else STOP)


@pytest.mark.parametrize("api", ASSEMBLERS)
@given(reply=REPLIES)
def test_an_answer_in_one_piece_is_the_same(api: str, reply: Reply) -> None:
    assembler = ASSEMBLERS[api]()
    assembler.take(json.dumps(whole(request_of(api), reply)).encode())
    in_one, in_pieces = assembler.answer(), read(api, [streamed(api, reply)])
    assert in_one._replace(sealed=()) == in_pieces._replace(sealed=())


@pytest.mark.parametrize("api", ASSEMBLERS)
@given(reply=REPLIES, share=st.floats(0, 0.999))
def test_a_stream_that_breaks_off_is_never_whole_before_it_says_so(api: str, reply: Reply, share: float) -> None:
    request = request_of(api)
    lines = [lines_of(request, event) for event in events(request, reply)]
    before = b"".join(lines[:-2])  # The last two say why it ended, and how many tokens it was.
    assert read(api, [before[: int(len(before) * share)]]).finish is None


@pytest.mark.parametrize("api", ASSEMBLERS)
@given(data=st.binary(max_size=200))
def test_nonsense_is_passed_over(api: str, data: bytes) -> None:
    assembler = ASSEMBLERS[api]()
    assembler.take(data)
    assert assembler.answer().finish is None


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(
        ["choices", "delta", "message", "content", "tool_calls", "function", "index", "id", "usage", "type", "name",
         "content_block", "arguments", "finish_reason", "text", "thinking", "stop_reason", "input", "refusal"]
    ), inner, max_size=5)),
    max_leaves=20,
)  # fmt: skip


@pytest.mark.parametrize("api", ASSEMBLERS)
@given(values=st.lists(JSON, max_size=5), kind=st.sampled_from(
    ["content_block_start", "content_block_delta", "message_delta", "message_start", "message"]))  # fmt: skip
def test_any_json_is_survived(api: str, values: list[Any], kind: str) -> None:
    assembler = ASSEMBLERS[api]()
    for value in values:
        assembler.take(json.dumps({**value, "type": kind} if isinstance(value, dict) else value).encode())
    assembler.answer()


def chat(*chunks: dict[str, Any]) -> ModelAnswer:
    assembler = ChatAssembler()
    for chunk in chunks:
        assembler.take(json.dumps(chunk).encode())
    return assembler.answer()


def delta(**delta: Any) -> dict[str, Any]:
    return {"choices": [{"delta": delta}]}


def test_calls_without_ids_or_indexes_are_told_apart() -> None:
    one, other = ({"function": {"name": name, "arguments": "{}"}} for name in ("a", "b"))
    assert [call.name for call in chat(delta(tool_calls=[one, other])).calls] == ["a", "b"]
    assert [call.name for call in chat(delta(tool_calls=[one]), delta(tool_calls=[other])).calls] == ["a", "b"]


def test_calls_that_are_all_numbered_0_are_told_apart_by_their_ids() -> None:
    calls = [{"index": 0, "id": name, "function": {"name": name, "arguments": "{}"}} for name in ("a", "b")]
    assert [call.id for call in chat(*(delta(tool_calls=[call]) for call in calls)).calls] == ["a", "b"]


def test_arguments_may_be_an_object() -> None:
    call = {"index": 0, "function": {"name": "a", "arguments": {"x": 1}}}
    assert chat(delta(tool_calls=[call])).calls[0].arguments == {"x": 1}


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_thoughts_have_many_names(field: str) -> None:
    assert chat(delta(**{field: "hm"}), delta(content="yes")) == ModelAnswer("yes", "hm", [])
    parts = [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "yes"}]
    assert chat(delta(content=parts)) == ModelAnswer("yes", "hm", [])
    assert chat(delta(content="<think>hm</think>\n\nyes")) == ModelAnswer("yes", "hm", [])


def test_usage_comes_last_and_cached_tokens_count_once() -> None:
    usage = {"prompt_tokens": 100, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 40}, "cost": 0.5}
    assert chat(delta(content="x"), {"choices": [], "usage": usage}).usage == AnswerUsage(60, 7, 40, 0.5)


def test_a_refusal_is_no_answer() -> None:
    assert chat(delta(refusal="I cannot.")).finish == REFUSED
    assert chat({"choices": [{"delta": {}, "finish_reason": "content_filter"}]}).finish == REFUSED


def test_an_error_in_a_stream_is_an_error() -> None:
    with pytest.raises(ServerSaidError):
        chat({"error": {"message": "no"}})


def test_what_a_server_adds_to_a_call_goes_back_with_it() -> None:
    call = {"index": 0, "id": "c", "function": {"name": "a", "arguments": "{}"}, "extra_content": {"google": "sealed"}}
    answered = chat(delta(tool_calls=[call])).calls[0]
    record = {"id": "c", "name": "a", "arguments": {}, "extra": dict(answered.extra)}
    body = body_of(ModelRequest("m", "s", [{"type": "assistant", "text": "", "calls": [record]}]))
    assert body["messages"][1]["tool_calls"][0]["extra_content"] == {"google": "sealed"}


def test_sealed_thoughts_go_back_to_the_model_that_thought_them_alone() -> None:
    answer = read("messages", [streamed("messages", Reply(text="yes", thought="hm"))])
    record = {"type": "assistant", "text": "yes", "model": "m", "calls": [], "sealed": list(answer.sealed)}
    for model, kinds in (("m", ["thinking", "text"]), ("other", ["text"])):
        request = ModelRequest(model, "s", [{"type": "user", "text": "?"}, record], [ToolSpec("a", "b", {})])
        assert [block["type"] for block in messages_body(request)["messages"][1]["content"]] == kinds


@pytest.mark.parametrize("piece", [{}, {"reasoning": "a"}])
def test_an_answer_in_very_many_pieces_takes_no_time(piece: dict[str, Any]) -> None:
    assembler, data = ChatAssembler(), json.dumps(delta(**piece)).encode()
    begun = time.process_time()
    for _ in range(200_000):
        assembler.take(data)
        assert assembler.has_begun == bool(piece)
    assert time.process_time() - begun < 60


@pytest.mark.parametrize("api", ASSEMBLERS)
@pytest.mark.parametrize("depth", [400, 900, 980, 5000])
def test_what_could_not_be_sent_back_is_not_taken(api: str, depth: int) -> None:
    assembler = ASSEMBLERS[api]()
    nested = "[" * depth + "]" * depth
    call = {"index": 0, "id": "c", "function": {"name": "find", "arguments": nested}, "mine": "NESTED"}
    block = {"type": "redacted_thinking", "data": "NESTED"}
    for value in (delta(tool_calls=[call]), {"type": "content_block_start", "index": 0, "content_block": block}):
        assembler.take(json.dumps(value).replace('"NESTED"', nested).encode())
    assert (assembler.answer().calls, assembler.answer().sealed) in (([], []), ([], ()))


def test_calls_without_end_are_left_out() -> None:
    calls = [{"index": number, "id": f"{number}", "function": {"name": "find"}} for number in range(10_000)]
    assert len(chat(delta(tool_calls=calls)).calls) == MOST_CALLS + 1
