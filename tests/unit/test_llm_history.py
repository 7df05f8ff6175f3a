"""At stake: a conversation is valid for every server, whatever was killed and at which moment."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentctl.worker_programs.plain_model.compaction import as_text, first_kept, is_full
from agentctl.worker_programs.plain_model.history import (
    UNKNOWN,
    Conversation,
    Record,
    healed,
    messages_for_model,
    read_conversation,
    records_in,
)
from agentctl.worker_programs.plain_model.model.provider_key import Mask

IDS = st.sampled_from(["c1", "c2", "c3", "c4"])
TEXT = st.text(st.characters(codec="utf-8"), max_size=20)


def assistant(*ids: str, text: str = "") -> Record:
    calls = [{"id": one, "name": "shell", "arguments": {}, "extra": {}} for one in ids]
    return {"type": "assistant", "text": text, "thought": "", "model": "m", "calls": calls, "sealed": []}


def result(call: str) -> Record:
    return {"type": "result", "call": call, "name": "shell", "text": "done", "status": "completed"}


RECORDS = st.lists(
    st.one_of(
        st.builds(lambda text: {"type": "user", "text": text}, TEXT),
        st.builds(lambda ids, text: assistant(*ids, text=text), st.lists(IDS, unique=True, max_size=3), TEXT),
        st.builds(result, IDS),
        st.builds(lambda text, kept: {"type": "summary", "text": text, "kept": kept}, TEXT, st.integers(-3, 12)),
    ),
    max_size=15,
)


def is_valid(messages: list[Record]) -> bool:
    """Whether each call has its result right behind it, and nothing else is a result."""
    waiting: list[str] = []
    for message in messages:
        if message["type"] == "result":
            if not waiting or message["call"] != waiting.pop(0):
                return False
        elif waiting:
            return False
        if message["type"] == "assistant":
            waiting = [call["id"] for call in message["calls"]]
    return not waiting


@given(RECORDS)
def test_what_a_model_reads_is_valid(records: list[Record]) -> None:
    assert is_valid(messages_for_model(healed(records)))
    assert healed(healed(records)) == healed(records)


@given(st.lists(st.lists(IDS, unique=True, max_size=3), max_size=6), st.data())
def test_a_result_belongs_to_the_newest_call_of_its_id(answers: list[list[str]], data: st.DataObject) -> None:
    """Servers give the same ids again, and some none."""
    records, texts = [], []
    for number, ids in enumerate(answers):
        ends = data.draw(st.integers(0, len(ids)))
        records += [assistant(*ids), *({**result(one), "text": f"{number}"} for one in ids[:ends])]
        texts += [*[f"{number}"] * ends, *[UNKNOWN] * (len(ids) - ends)]
    assert [record["text"] for record in healed(records) if record["type"] == "result"] == texts


@given(RECORDS, st.integers(0, 4000))
def test_a_file_that_is_cut_anywhere_still_holds_what_was_whole(records: list[Record], size: int) -> None:
    lines = [json.dumps(record).encode() + b"\n" for record in [{"type": "begin", "session": "t/a"}, *records]]
    data = b"".join(lines)[:size]
    kept = records_in(data).records
    whole = data.count(b"\n") - 1
    # A cut behind the last bracket leaves a whole line.
    assert len(kept) in {max(0, whole), max(0, whole) + 1}
    assert list(kept) == records[: len(kept)]


@given(st.binary(max_size=300))
def test_any_bytes_are_survived(data: bytes) -> None:
    assert is_valid(messages_for_model(healed(records_in(data).records)))


def test_a_torn_last_line_is_cut_off_before_another_follows(tmp_path: Path) -> None:
    path = tmp_path / "conversation.jsonl"
    conversation = Conversation(str(path), Mask(None).data)
    conversation.begin("t/a", "m", None, [{"type": "user", "text": "one"}])
    with path.open("ab") as file:
        file.write(b'{"type": "user", "te')
    again = Conversation(str(path), Mask(None).data)
    kept = read_conversation(str(path))
    assert kept is not None
    again.begin("t/a", "m", "t/a", kept.records)
    again.add({"type": "user", "text": "two"})
    found = read_conversation(str(path))
    assert found is not None
    assert [record["text"] for record in found.records] == ["one", "two"]
    assert all(json.loads(line) for line in path.read_bytes().splitlines())


def test_the_key_is_not_in_the_file(tmp_path: Path) -> None:
    key = 'sk-"quoted"-key'
    path = tmp_path / "conversation.jsonl"
    conversation = Conversation(str(path), Mask(key).data)
    conversation.begin("t/a", "m", None, [{"type": "user", "text": f"my key is {key}"}])
    assert b"quoted" not in path.read_bytes()
    assert b"my key is [key]" in path.read_bytes()


@given(RECORDS, st.integers(100, 5000))
def test_a_summary_parts_no_call_from_its_result(records: list[Record], context: int) -> None:
    messages = messages_for_model(healed(records))
    kept = first_kept(messages, context)
    assert 0 <= kept <= len(messages)
    assert is_valid(messages[kept:]) or kept == 0
    assert len(as_text(messages[:kept], context)) <= context * 2 + 100


@pytest.mark.parametrize(("used", "context", "is_so"), [(79, 100, False), (81, 100, True), (10**9, None, False)])
def test_a_conversation_is_full_before_the_model_is(used: int, context: int | None, is_so: Any) -> None:
    assert is_full(used, context) is is_so
