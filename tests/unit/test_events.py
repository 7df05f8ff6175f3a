"""At stake: the log is the truth, so reading it must never fail and never shift a line, whatever it contains."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentctl.domain import events as ev
from agentctl.domain.events import BadLine, Event, decode, encode, make_event

TEXT = st.text(max_size=10)
EVENTS = st.builds(
    make_event, TEXT, TEXT, TEXT, TEXT, st.dictionaries(TEXT, TEXT | st.integers() | st.none(), max_size=4),
    st.none() | TEXT,
)  # fmt: skip
#: What can be between two newlines: events, damaged events, other JSON, any bytes.
LINES = st.one_of(
    EVENTS.map(lambda event: encode([event])[:-1]),
    st.builds(lambda event, cut: encode([event])[:-1][:cut], EVENTS, st.integers(0, 60)),
    st.sampled_from([b"", b"{}", b"[]", b"null", b"1", b'{"type":"x"}', b'{"type":1,"payload":{}}', b"[" * 5000]),
    st.binary(max_size=30).map(lambda data: data.replace(b"\n", b"")),
)


def judged_alone(line: bytes) -> Event | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if ev.are_events([value]) else None


@given(st.lists(EVENTS, max_size=10), st.integers(1, 1000))
def test_what_was_written_is_read_back_line_by_line(events: list[Event], first: int) -> None:
    assert list(decode(encode(events), first)) == list(enumerate(events, first))


@given(st.lists(EVENTS, max_size=10))
def test_an_event_is_one_line_of_ascii(events: list[Event]) -> None:
    data = encode(events)
    assert data.count(b"\n") == len(events)
    assert data.isascii()


@given(st.lists(LINES, max_size=12), st.integers(1, 1000))
def test_any_line_is_an_event_or_is_named_by_its_number(lines: list[bytes], first: int) -> None:
    rows = list(decode(b"".join(line + b"\n" for line in lines), first))
    assert [row.seq if isinstance(row, BadLine) else row[0] for row in rows] == list(range(first, first + len(lines)))
    assert [None if isinstance(row, BadLine) else row[1] for row in rows] == [judged_alone(line) for line in lines]


@given(st.binary())
def test_no_bytes_make_the_reader_fail(data: bytes) -> None:
    whole = data[: data.rfind(b"\n") + 1]
    assert len(list(decode(whole, 1))) == whole.count(b"\n")


@pytest.mark.parametrize(
    "line",
    [b"[" * 100_000, b'{"a":' * 100_000, b"9" * 10_000, b"\xff\xfe{\x00", b"\x00" * 100, b'{"type":"x","payload":{}'],
    ids=["deep list", "deep object", "long number", "utf-16", "zeros", "cut"],
)
def test_a_hostile_line_costs_itself_alone(line: bytes) -> None:
    good = make_event("t", ev.STARTED, "t", "agentctl", {}, "a1")
    before, bad, after = decode(encode([good]) + line + b"\n" + encode([good]), 1)
    assert (before, after) == ((1, good), (3, good))
    assert isinstance(bad, BadLine)
    assert bad.seq == 2


def test_the_instance_stands_in_the_envelope_and_in_the_payload() -> None:
    event: dict[str, Any] = make_event("t", ev.FAILED, "task", "agentctl", {"reason": "lost"}, "a1")
    assert event["agentInstance"] == event["payload"]["agentInstance"] == "a1"
    assert list(event) == ["ts", "type", "taskId", "agentInstance", "by", "payload"]


def test_every_terminal_status_has_one_event_and_back() -> None:
    assert {ev.END_STATUS[event]: event for event in ev.END_STATUS} == ev.END_EVENT


@given(st.lists(LINES, max_size=8))
def test_what_a_log_has_about_a_worker_is_found_without_parsing_the_rest(lines: list[bytes]) -> None:
    wanted = encode([make_event("now", ev.STARTED, "t", "agentctl", {"pid": 7}, "a")])
    others = encode(
        [
            make_event("now", ev.STARTED, "t", "agentctl", {"pid": 8}, "ab"),
            make_event("now", ev.MESSAGE_SENT, "t", "a", {"text": '"type":"agent.started"'}, "a"),
        ]
    )
    data = others + b"".join(line + b"\n" for line in lines) + wanted
    found = [event["payload"] for event in ev.about(data, "a", (ev.STARTED,))]
    assert found[-1] == {"agentInstance": "a", "pid": 7}
    assert all(one["agentInstance"] == "a" for one in found)


def test_lines_cut_short_or_forged_in_another_place_tell_nothing_about_a_worker() -> None:
    whole = encode([make_event("now", ev.STARTED, "t", "agentctl", {"pid": 7}, "a")])
    inside = encode(
        [make_event("now", ev.QUEUED, "t", "agentctl", {"agentInstance": "a", "x": {"type": ev.STARTED}}, "b")]
    )
    assert list(ev.about(whole[:-20] + b"\n" + inside, "a", (ev.STARTED,))) == []
