"""At stake: whatever rows come, a client is told each thing once, and nothing of a call that it does not know."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from acp.schema import SessionNotification
from hypothesis import given
from hypothesis import strategies as st

from agentctl.domain.activity.row import Phase, Row, RowType, encode_row
from agentctl.domain.activity.rows import read_line
from agentctl.drivers.values import bounded_values
from agentctl.interfaces.editor.updates.client_bounds import bounded_json, pieces_of_text, spelled_out
from agentctl.interfaces.editor.updates.contents import as_said, output_content
from agentctl.interfaces.editor.updates.row_updates import CallPlace, Update, WorkerUpdates
from tests.acp_steps import calls_of, content_of

ENDED = ("completed", "failed")


def line_of(row: Row, at: str = "2026-11-26T10:00:00.000Z") -> bytes:
    return encode_row(row, at)


def told(lines: list[bytes], place: CallPlace | None = None, *, is_closed: bool = False) -> list[Update]:
    """Return the updates of lines, each checked by the protocol's library."""
    fold = WorkerUpdates(place or CallPlace("t/a", "/src"))
    found: list[Update] = []
    for number, line in enumerate(lines, 1):
        parsed = read_line(line, number)
        if parsed is not None:
            found += fold.take(parsed)
    if is_closed:
        found += fold.close()
    for update in found:
        SessionNotification.model_validate({"sessionId": "s", "update": update})
    return found


ids = st.sampled_from(["a", "a", "b", "b", "x" * 300, "\ud800", "\x1b[2J"])
texts = st.text(max_size=20)
details = st.dictionaries(
    st.sampled_from(["command", "path", "file_path", "old_string", "new_string", "content", "todos", "changes"]),
    st.one_of(texts, st.integers(), st.floats(), st.lists(st.dictionaries(texts, texts, max_size=2), max_size=2)),
    max_size=3,
)
rows = st.builds(
    Row,
    type=st.sampled_from(list(RowType)),
    id=ids,
    phase=st.sampled_from(list(Phase)),
    parent=st.one_of(st.none(), ids),
    status=st.sampled_from([None, "running", "completed", "failed", "denied"]),
    agent_type=st.one_of(st.none(), texts),
    name=st.sampled_from([None, "user", "Bash", "TodoWrite", "Edit", "explore"]),
    text=st.one_of(st.none(), texts),
    detail=st.one_of(st.none(), details),
)
odd_lines = st.one_of(
    st.binary(max_size=30),
    st.dictionaries(
        st.sampled_from(["type", "id", "phase", "parent", "text", "name", "detail"]), st.integers() | texts
    ).map(lambda value: json.dumps(value).encode()),
)
activities = st.lists(st.one_of(rows.map(line_of), odd_lines), max_size=30)
places = st.sampled_from([CallPlace("t/a", "/src"), CallPlace("t/b", "/src", "worker:t/b", 1)])


@given(activities, places)
def test_an_update_of_a_call_is_of_one_that_was_told_and_not_ended(lines: list[bytes], place: CallPlace) -> None:
    updates = told(lines, place, is_closed=True)
    statuses: dict[str, str] = {} if place.call is None else {place.call: "in_progress"}
    for update in updates:
        if update["sessionUpdate"] not in ("tool_call", "tool_call_update"):
            continue
        call = update["toolCallId"]
        if update["sessionUpdate"] == "tool_call":
            assert call not in statuses, "told twice"
        assert statuses.get(call, "in_progress") not in ENDED, "it had ended"
        statuses[call] = update.get("status") or statuses[call]
        above = update.get("_meta", {}).get("agentctl", {}).get("parentToolCallId")
        assert above is None or above in statuses, "it is below one that nobody knows"
    assert all(status in ENDED for call, status in statuses.items() if call != place.call)


def texts_in(value: Any) -> Iterator[str]:
    """Yield every text in a JSON value."""
    if isinstance(value, str):
        yield value
    for inner in [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from texts_in(inner)


@given(activities, places)
def test_nothing_that_a_terminal_obeys_reaches_a_client(lines: list[bytes], place: CallPlace) -> None:
    found = [text for update in told(lines, place, is_closed=True) for text in texts_in(update)]
    assert [text for text in found if spelled_out(text) != text] == []


@pytest.mark.parametrize(
    ("name", "detail"),
    [
        ("Write", {"file_path": "a\x1b[2J", "content": "b\x1b[2J\rc"}),
        ("Write", {"file_path": "a\x1b[2J", "content": "b\x1b[2J\rc", "note": "d [cut: 9000 characters]"}),
        ("frobnicate", {"path": "a\x1b[2J", "old_string": "\x1b]52;c;eA==\x07", "new_string": "b\x1b[2J\rc"}),
        ("Edit", {"changes": [{"path": "a\x1b[2J", "kind": "delete"}, {"path": "a\nb"}]}),
    ],
)
def test_no_diff_no_path_and_no_argument_is_obeyed_by_a_terminal(name: str, detail: dict[str, Any]) -> None:
    start = Row(RowType.TOOL, "\x1b[2J", Phase.START, name=name, detail=detail)
    (call,) = calls_of(told([line_of(start)])).values()
    assert [text for text in texts_in(call) if spelled_out(text) != text] == []
    assert call["locations"][0]["path"] == "/src/a\\x1b[2J"
    assert [one["newText"] for one in call.get("content", ()) if one["type"] == "diff"] in ([], ["b\\x1b[2J\\rc"])


def test_the_line_ends_of_a_file_stay_in_its_diff() -> None:
    edit = {"file_path": "a.py", "old_string": "1\r\n2\r\n", "new_string": "1\n2\n"}
    (call,) = calls_of(told([line_of(Row(RowType.TOOL, "t", Phase.START, name="Edit", detail=edit))])).values()
    assert (call["content"][0]["oldText"], call["content"][0]["newText"]) == ("1\r\n2\r\n", "1\n2\n")


@given(activities, st.integers(0, 30))
def test_rows_that_come_twice_change_nothing_in_the_end(lines: list[bytes], again: int) -> None:
    once, twice = told(lines), told([*lines, *lines[:again]])
    assert twice[: len(once)] == once

    def ends(updates: list[Update]) -> dict[str, Any]:
        return {name: call["status"] for name, call in calls_of(updates).items()}

    def said(updates: list[Update]) -> list[Update]:
        return [one for one in updates if one["sessionUpdate"].endswith("_chunk")]

    assert ends(once).items() <= ends(twice).items()
    assert said(once) == said(twice)


@given(activities, st.integers(0, 30))
def test_rows_give_the_same_wherever_reading_was_interrupted(lines: list[bytes], at: int) -> None:
    fold = WorkerUpdates(CallPlace("t/a", "/src"))
    found: list[Update] = []
    for part in (lines[:at], lines[at:]):
        start = len(lines[:at]) if part is not lines[:at] else 0
        for number, line in enumerate(part, start + 1):
            parsed = read_line(line, number)
            found += fold.take(parsed) if parsed is not None else ()
    assert [one for one in found if "line-" not in json.dumps(one)] == [
        one for one in told(lines) if "line-" not in json.dumps(one)
    ]


values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=40,
)


@given(values)
def test_a_value_for_a_client_is_small_plain_json(value: Any) -> None:
    text = json.dumps(bounded_json(value), allow_nan=False, ensure_ascii=False)
    assert len(text.encode()) < 300_000


def test_large_values_are_cut() -> None:
    large = {"a": ["x" * 10_000] * 1000, "b": {str(number): number for number in range(1000)}}
    text = json.dumps(bounded_json(large))
    assert len(text) < 60_000
    assert "[cut" in text


@given(st.text(max_size=40), st.integers(0, 1000))
def test_pieces_are_the_whole_text(text: str, times: int) -> None:
    whole = text * times
    found = pieces_of_text(whole)
    assert "".join(found) == whole
    assert all(len(piece) <= 8000 for piece in found)


def test_a_message_is_told_once_and_set_apart_from_the_one_before() -> None:
    message = Row(RowType.MESSAGE, "m1", text="one")
    updates = told([line_of(message), line_of(message), line_of(message._replace(id="m2", text="two"))])
    assert [one["content"]["text"] for one in updates] == ["one", "\n\ntwo"]


def test_a_message_that_goes_on_after_a_thought_is_told_on() -> None:
    first = Row(RowType.MESSAGE, "m", text="I will look.")
    rows = [first, Row(RowType.THOUGHT, "t", text="hm"), first._replace(text="I will look. It is 42."), first]
    updates = told([line_of(row) for row in rows])
    assert [(one["sessionUpdate"][:13], one["content"]["text"]) for one in updates] == [
        ("agent_message", "I will look."),
        ("agent_thought", "hm"),
        ("agent_message", " It is 42."),
    ]
    below = told([line_of(row._replace(parent="a")) for row in rows])
    assert [content_of(one) for one in below[1:]] == ["I will look.", "I will look. It is 42."]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 12)), max_size=20))
def test_messages_that_grow_in_any_order_are_told_whole_and_once(steps: list[tuple[str, int]]) -> None:
    whole = {name: name * 12 for name in "abc"}
    rows = [line_of(Row(RowType.MESSAGE, name, text=whole[name][:length])) for name, length in steps]
    found = dict.fromkeys("abc", "")
    for update in told(rows):
        found[update["messageId"][-1]] += update["content"]["text"].removeprefix("\n\n")
    longest = {name: max((length for one, length in steps if one == name), default=0) for name in "abc"}
    assert found == {name: whole[name][: longest[name]] for name in "abc"}


@given(st.text(st.sampled_from("a\r\n"), max_size=12), st.lists(st.integers(0, 12), max_size=6))
def test_a_message_that_grows_is_told_as_if_it_came_whole(text: str, ends: list[int]) -> None:
    parts = [*(text[:end] for end in sorted(ends)), f"{text}."]
    updates = told([line_of(Row(RowType.MESSAGE, "m", text=part)) for part in parts])
    assert "".join(one["content"]["text"] for one in updates) == as_said(f"{text}.")


def test_a_call_whose_rows_come_again_is_told_once() -> None:
    begin = line_of(Row(RowType.TOOL, "t", Phase.START, status="running", name="Bash", detail={"command": "ls"}))
    end = line_of(Row(RowType.TOOL, "t", status="completed", name="Bash", text="a.py"))
    updates = told([begin, begin, end, end, begin, end], is_closed=True)
    assert [one["sessionUpdate"] for one in updates] == ["tool_call", "tool_call_update"]


def test_with_what_something_was_called_is_told_also_where_that_comes_later() -> None:
    edit = {"file_path": "/a", "old_string": "x", "new_string": "y"}
    first = Row(RowType.TOOL, "t", Phase.START, name="Edit", detail={"title": "Preparing"})
    more = first._replace(phase=Phase.PROGRESS, detail=edit)
    end = first._replace(phase=Phase.END, detail=edit, text="ok", status="completed")
    (call,) = calls_of(told([line_of(row) for row in (first, more, end)])).values()
    assert call["rawInput"] == edit
    assert [one["type"] for one in call["content"]] == ["diff", "content"]

    agent = Row(RowType.AGENT, "a", Phase.START, name="look", detail={"prompt": "*Look* around.", "model": "small"})
    (call,) = calls_of(told([line_of(agent)])).values()
    assert call["content"] == [{"type": "content", "content": {"type": "text", "text": "*Look* around."}}]
    assert call["rawInput"] == agent.detail


@pytest.mark.parametrize("known", [None, {"title": "Edit"}, {"file_path": ""}])
def test_with_what_something_was_called_is_told_also_where_only_its_end_tells_it(known: dict[str, Any] | None) -> None:
    edit = {"file_path": "/a", "old_string": "x", "new_string": "y"}
    first = Row(RowType.TOOL, "t", Phase.START, name="Edit", detail=known)
    shown = first._replace(phase=Phase.PROGRESS, detail=None, text="on it")
    end = first._replace(phase=Phase.END, detail=edit, status="completed")
    (call,) = calls_of(told([line_of(row) for row in (first, shown, end)])).values()
    assert (call["title"], call["rawInput"], call["status"]) == ("Edit /a", edit, "completed")
    assert [one["type"] for one in call["content"]] == ["diff", "content"]
    assert "on it" in call["content"][1]["content"]["text"]


def test_what_an_end_has_beside_the_arguments_is_not_what_a_call_was_made_with() -> None:
    first = Row(RowType.TOOL, "t", Phase.START, name="shell", detail={"command": "make"})
    end = first._replace(phase=Phase.END, detail={"command": "make", "exitCode": 0}, status="completed")
    assert [one["sessionUpdate"] for one in told([line_of(first), line_of(end)])] == ["tool_call", "tool_call_update"]
    (call,) = calls_of(told([line_of(first), line_of(end)])).values()
    assert call["rawInput"] == {"command": "make"}


def test_a_sub_agent_keeps_its_name_and_what_it_has_said_when_its_arguments_become_known() -> None:
    agent = Row(RowType.AGENT, "a", Phase.START, name="look", agent_type="explore")
    more = Row(RowType.AGENT, "a", Phase.PROGRESS, detail={"prompt": "Look around."})
    (call,) = calls_of(told([line_of(agent), line_of(more)])).values()
    assert (call["title"], content_of(call)) == ("explore: look", "Look around.")
    said = line_of(Row(RowType.MESSAGE, "m", parent="a", text="Found it."))
    for rows in ([agent, more], [more, agent], [more]):
        (call,) = calls_of(told([said, *map(line_of, rows)])).values()
        assert content_of(call) == "Found it."
        assert call["rawInput"] == more.detail


def test_a_call_that_is_only_known_by_its_end_is_told_whole() -> None:
    end = Row(RowType.TOOL, "t", status="failed", name="Bash", detail={"command": "ls"}, text="no")
    (call,) = calls_of(told([line_of(end)])).values()
    assert (call["title"], call["status"], call["rawInput"]) == ("Bash ls", "failed", {"command": "ls"})


def fold_of(*calls: tuple[str, dict[str, Any]]) -> WorkerUpdates:
    """Return a fold with open calls, whose ids are t/a:0, t/a:1, ..."""
    fold = WorkerUpdates(CallPlace("t/a"))
    for number, (name, detail) in enumerate(calls):
        row = Row(RowType.TOOL, str(number), Phase.START, name=name, detail=bounded_values(detail))
        line = read_line(line_of(row), number)
        assert line is not None
        assert list(fold.take(line))
    return fold


def test_a_request_is_about_the_call_with_its_arguments_however_the_two_are_named() -> None:
    make, ls, long = {"command": "make"}, {"command": "ls"}, {"command": "x" * 9000}
    fold = fold_of(("shell", make | {"unknown": 1}), ("shell", ls), ("shell", long), ("Bash", {"command": "pwd"}))
    assert fold.open_call("Bash", {"command": "pwd"}) == "t/a:3"
    assert fold.open_call("Bash", {"command": "other"}) == "t/a:3", "the only one of this name"
    fold = fold_of(("shell", make | {"unknown": 1}), ("shell", ls), ("shell", long), ("read_file", {"path": "a"}))
    assert [fold.open_call("Bash", one) for one in (make, ls, long)] == ["t/a:0", "t/a:1", "t/a:2"]
    assert fold.open_call("Read", {"path": "a"}) == "t/a:3"
    assert [fold.open_call("Bash", one) for one in ({}, None, {"command": "rm"})] == [None] * 3
    assert fold_of(("shell", make), ("shell", make)).open_call("Bash", make) is None


def test_what_a_call_returned_is_what_a_terminal_shows_and_no_markdown() -> None:
    printed = "1 %\r100 %\n\x1b[31m\x1b[Kold\x1b[m **/*.js \x1b]8;;http://evil.example\x07link\x1b]8;;\x07\n"
    (call,) = calls_of(told([line_of(Row(RowType.TOOL, "t", name="Bash", text=printed))])).values()
    assert content_of(call) == "```\n100 %\nold **/*.js link\n```"
    (call,) = calls_of(told([line_of(Row(RowType.TOOL, "t", name="Bash", text="a\n```\n**b**"))])).values()
    assert content_of(call) == "````\na\n```\n**b**\n````"
    long = calls_of(told([line_of(Row(RowType.TOOL, "t", name="Bash", text="line\n" * 1900))]))["t/a:t"]["content"]
    assert len(long) == 2
    assert all(re.fullmatch(r"```\n.*\n```", one["content"]["text"], re.DOTALL) for one in long), "each piece is code"


def test_of_a_sequence_that_was_cut_at_the_beginning_of_an_end_nothing_is_shown() -> None:
    (shown,) = output_content("0m link\n\x1b[32mok\x1b[m\n", is_end=True)
    assert shown["content"]["text"] == "```\nok\n```"


def test_what_agents_say_goes_as_markdown_without_what_a_terminal_obeys() -> None:
    said = "## **Three**\r\n- `x` \x1b[31mred\x07"
    spelled = "## **Three**\n- `x` \\x1b[31mred\\x07"
    assert [one["content"]["text"] for one in told([line_of(Row(RowType.MESSAGE, "m", text=said))])] == [spelled]
    (call,) = calls_of(told([line_of(Row(RowType.AGENT, "t", name="explore", text=said))])).values()
    assert content_of(call) == spelled


@pytest.mark.parametrize("kind", [RowType.NOTE, RowType.PROGRESS])
def test_what_a_program_says_about_itself_is_no_markdown(kind: RowType) -> None:
    odd = "skipped: rm **/*.js, __init__.py, <b> \x1b[1m"
    shown = "`skipped: rm **/*.js, __init__.py, <b> \\x1b[1m`"
    for text, told_as in (("2 of 3 were tried again.", "2 of 3 were tried again."), (odd, f"\n\n{shown}")):
        assert [one["content"]["text"] for one in told([line_of(Row(kind, "n", text=text))])] == [told_as]
    place = CallPlace("t/b", "/src", "worker:t/b", 1)
    (below,) = told([line_of(Row(kind, "n", text=odd))], place)
    assert content_of(below) == shown
    grown = told([line_of(Row(RowType.NOTE, "n", text=text)) for text in ("*a*", "*a* b", "*a* b *c*\n```")])
    assert "".join(one["content"]["text"] for one in grown) == "\n\n`*a*`\n\n b\n\n````\n *c*\n```\n````"


def test_a_diff_stays_above_what_came_of_its_call() -> None:
    edit = {
        "file_path": "a.py",
        "edits": [{"old_string": "1", "new_string": "2"}, {"old_string": "3", "new_string": ""}],
    }
    start = Row(RowType.TOOL, "t", Phase.START, name="MultiEdit", detail=edit)
    (call,) = calls_of(told([line_of(start), line_of(Row(RowType.TOOL, "t", name="MultiEdit", text="Done"))])).values()
    assert call["content"] == [
        {"type": "diff", "path": "/src/a.py", "oldText": "1", "newText": "2"},
        {"type": "diff", "path": "/src/a.py", "oldText": "3", "newText": ""},
        {"type": "content", "content": {"type": "text", "text": "```\nDone\n```"}},
    ]


def test_a_file_that_is_written_ends_as_it_will() -> None:
    for text in ("a\nb\n", "a\nb"):
        detail = {"file_path": "a.py", "content": text}
        start = Row(RowType.TOOL, "t", Phase.START, name="Write", detail=detail)
        (call,) = calls_of(told([line_of(start)])).values()
        assert call["content"] == [{"type": "diff", "path": "/src/a.py", "newText": text}]


def test_a_change_of_a_file_is_a_diff_unless_it_was_cut() -> None:
    edit = {"file_path": "/src/a.py", "old_string": "1", "new_string": "2"}
    (call,) = calls_of(told([line_of(Row(RowType.TOOL, "t", Phase.START, name="Edit", detail=edit))])).values()
    assert call["content"] == [{"type": "diff", "path": "/src/a.py", "oldText": "1", "newText": "2"}]
    cut = {**edit, "new_string": "2" * 10 + " [cut: 9000 characters]"}
    (call,) = calls_of(told([line_of(Row(RowType.TOOL, "t", Phase.START, name="Edit", detail=cut))])).values()
    assert "content" not in call
