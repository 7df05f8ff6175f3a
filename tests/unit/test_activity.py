"""At stake: rows fold into the same tree, however they are ordered, duplicated, damaged or nested."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentctl.domain.activity.fold import ActivityFold
from agentctl.domain.activity.row import Phase, Row, RowType, encode_row
from agentctl.domain.activity.rows import read_line, tokens_in
from agentctl.domain.activity.transcript import Transcript
from agentctl.domain.activity.view import Node, view_of
from agentctl.drivers.dialogue import Note
from agentctl.drivers.order import Order
from agentctl.drivers.registry import load
from agentctl.interfaces.words.activity import label

RECORDINGS = Path(__file__).resolve().parent.parent / "recordings"
EVERYTHING = 1000


def line(at: int, kind: str, id_: str, phase: str = "end", **more: Any) -> bytes:
    """Return a line as a driver writes it, `at` seconds into the run."""
    given = {"agent_type": more.pop("agentType", None), **more}
    row = Row(RowType(kind), id_, Phase(phase), **given)
    return encode_row(row, f"2026-11-21T20:{at // 60:02}:{at % 60:02}.000Z")


def fold(lines: Iterable[bytes], keep: int = EVERYTHING) -> ActivityFold:
    found = ActivityFold(keep)
    found.feed(b"".join(lines))
    return found


def view(lines: Iterable[bytes], *, keep: int = EVERYTHING, ended: bool = False) -> list[Node]:
    return view_of(fold(lines, keep), ended=ended)


def told(nodes: Sequence[Node]) -> list[tuple[int, str, str | None]]:
    """Return what most tests check of a tree: depth, id and status of each node."""
    return [(node.depth, node.id, node.status) for node in nodes[1:]]


#: A worker that starts a sub-agent, which starts another one.
NESTED = [
    line(0, "message", "m1", text="I will look"),
    line(1, "agent", "a1", "start", agentType="general", name="look"),
    line(2, "tool", "t1", "start", parent="a1", name="Bash", detail={"command": "ls"}),
    line(3, "tool", "t1", "end", parent="a1", status="completed", text="x.py"),
    line(4, "agent", "a2", "start", parent="a1", agentType="explore", name="deeper"),
    line(5, "tool", "t2", "start", parent="a2", name="Read"),
    line(6, "usage", "u1", parent="a2", detail={"input": 10, "output": 1, "cached": 2}),
    line(7, "usage", "u1", parent="a2", detail={"input": 10, "output": 5, "cached": 2}),
    line(8, "tool", "t2", "end", parent="a2", status="failed", text="no such file"),
    line(9, "agent", "a2", "end", parent="a1", status="completed"),
    line(10, "agent", "a1", "end", status="completed", text="done"),
    line(11, "usage", "u2", detail={"input": 100, "output": 7, "cached": 0}),
]  # fmt: skip
NESTED_TREE = [
    (1, "m1", None),
    (1, "a1", "completed"),
    (2, "t1", "completed"),
    (2, "a2", "completed"),
    (3, "t2", "failed"),
]


def test_a_tree_has_groups_with_totals_of_all_below() -> None:
    nodes = view(NESTED)
    assert told(nodes) == NESTED_TREE
    by_id = {node.id: node for node in nodes}
    assert {id_: node.calls for id_, node in by_id.items() if node.is_group} == {"": 2, "a1": 2, "a2": 1}
    assert by_id["a2"].tokens == {"input": 10, "output": 5, "cached": 2}
    assert by_id[""].tokens == {"input": 110, "output": 12, "cached": 2}
    assert (by_id["a1"].agent_type, by_id["a1"].name, by_id["a1"].text) == ("general", "look", "done")
    assert (by_id["t1"].detail, by_id["t1"].text) == ({"command": "ls"}, "x.py")


def test_a_collapsed_tree_has_the_same_totals_and_shows_what_runs() -> None:
    whole, collapsed = view(NESTED[:8]), view(NESTED[:8], keep=0)
    assert told(collapsed) == [(1, "a1", "running"), (2, "a2", "running"), (3, "t2", "running")]
    groups = [node.id for node in collapsed if node.is_group]
    assert groups == ["", "a1", "a2"]
    for id_ in groups:
        one, other = (next(node for node in nodes if node.id == id_) for nodes in (whole, collapsed))
        assert (one.calls, one.tokens, one.started_at, one.last_at) == (
            other.calls, other.tokens, other.started_at, other.last_at,
        )  # fmt: skip


# -- order and copies ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("keep", [0, EVERYTHING])
@given(data=st.data())
def test_any_order_and_any_copies_give_the_same_tree(keep: int, data: st.DataObject) -> None:
    copies = data.draw(st.lists(st.sampled_from(NESTED)))
    shuffled = data.draw(st.permutations([*NESTED, *copies]))
    assert view(shuffled, keep=keep) == view(NESTED, keep=keep)


@given(data=st.data())
def test_rows_given_in_pieces_of_any_size_give_the_same_tree(data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(0, len(NESTED)))))
    found = ActivityFold(EVERYTHING)
    for start, end in itertools.pairwise([0, *cuts, len(NESTED)]):
        found.feed(b"".join(NESTED[start:end]))
    assert view_of(found, ended=False) == view(NESTED)


def lines_of(recording: Path) -> list[bytes]:
    """Return the lines of activity that a driver makes from a recorded run."""
    driver = load(recording.parent.name)
    dialogue = driver.dialogue(Order(driver.name, "program", "general", "prompt"))
    actions = list(dialogue.begin())
    for raw in recording.read_bytes().splitlines():
        value = json.loads(raw)
        is_two_way = set(value) == {"dir", "msg"}
        if not is_two_way:
            actions += dialogue.received(raw)
        elif value["dir"] == "out":
            message = value["msg"]
            actions += dialogue.received(message.encode() if isinstance(message, str) else json.dumps(message).encode())
    # Rows that are noted shortly after each other have the same time, as in a real run.
    rows = [action.row for action in actions if isinstance(action, Note)]
    return [encode_row(row, f"2026-11-21T20:00:{number // 4:02}.000Z") for number, row in enumerate(rows)]


def producer_of(raw: bytes) -> str:
    return str(json.loads(raw).get("parent"))


def interleaved(lines: list[bytes], pick: random.Random) -> list[bytes]:
    """Return the lines in another order, which keeps the order of each producer's lines."""
    queues: dict[str, list[bytes]] = {}
    for raw in lines:
        queues.setdefault(producer_of(raw), []).append(raw)
    order = [producer_of(raw) for raw in lines]
    pick.shuffle(order)
    return [queues[producer].pop(0) for producer in order]


RECORDED = sorted(path for name in ("claude", "codex") for path in (RECORDINGS / name).glob("*.jsonl"))


@pytest.mark.parametrize("recording", RECORDED, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_any_interleaving_of_a_recordings_producers_gives_the_same_tree(recording: Path) -> None:
    lines = lines_of(recording)
    for seed in range(20):
        other = interleaved(lines, random.Random(seed))
        for keep in (0, EVERYTHING):
            assert view(other, keep=keep) == view(lines, keep=keep)


@given(seed=st.integers(), copies=st.lists(st.integers(0, 30)))
def test_a_recorded_sub_agent_stands_below_its_call_once(seed: int, copies: list[int]) -> None:
    lines = lines_of(RECORDINGS / "claude" / "subagent.jsonl")
    doubled = interleaved(lines, random.Random(seed)) + [lines[number % len(lines)] for number in copies]
    nodes = view(doubled, ended=True)
    (group,) = [node for node in nodes if node.type == RowType.AGENT]
    below = [node for node in nodes if node.parent == group.id and node.type == RowType.TOOL]
    assert (group.agent_type, group.status, group.depth, group.calls) == ("general-purpose", "completed", 1, 1)
    assert [(node.name, node.status, node.depth) for node in below] == [("Bash", "completed", 2)]
    assert len({node.id for node in nodes}) == len(nodes)


# -- what is open, unknown, alone or in a ring ---------------------------------------------------------------


def test_what_an_unhappy_parent_left_open_is_interrupted() -> None:
    lines = [
        line(0, "agent", "a1", "start", agentType="general"),
        line(1, "agent", "a2", "start", parent="a1"),
        line(2, "tool", "t1", "start", parent="a2", name="Bash"),
        line(3, "tool", "t2", "start", name="Bash"),
    ]
    open_ = [(1, "a1", "running"), (2, "a2", "running"), (3, "t1", "running"), (1, "t2", "running")]
    for keep in (0, EVERYTHING):
        assert told(view(lines, keep=keep)) == open_
        cancelled = [*lines, line(4, "agent", "a1", "end", status="cancelled")]
        left = [(1, "a1", "cancelled"), (2, "a2", "interrupted"), (3, "t1", "interrupted"), (1, "t2", "running")]
        assert told(view(cancelled, keep=keep)) == [one for one in left if keep or one[1] != "t1"]
        assert {node.status for node in view(lines, keep=keep, ended=True)[1:]} == {"interrupted"}


def test_what_an_ended_worker_left_open_took_until_its_end() -> None:
    lines = [line(0, "agent", "a1", "start"), line(1, "tool", "t1", "start", parent="a1", name="Bash")]
    for keep in (0, EVERYTHING):
        nodes = view_of(fold(lines, keep), ended=True, ended_at="2026-11-21T20:31:00.000Z")
        assert {node.ended_at for node in nodes[1:]} == {"2026-11-21T20:31:00.000Z"}
        assert {node.ended_at for node in view_of(fold(lines, keep), ended=True)[1:]} == {None}, "it is not known"


def test_what_a_parent_left_open_ended_with_it() -> None:
    lines = [
        line(0, "agent", "a1", "start"),
        line(1, "tool", "t1", "start", parent="a1"),
        line(2, "agent", "a1", "end", status="completed"),
    ]
    for ended in (False, True):
        nodes = view(lines, keep=EVERYTHING, ended=ended)
        assert told(nodes) == [(1, "a1", "completed"), (2, "t1", "interrupted")]
        assert nodes[2].ended_at == nodes[1].ended_at is not None
        assert told(view(lines, keep=0, ended=ended)) == [(1, "a1", "completed")]


def test_a_sub_agent_that_was_only_named_is_no_group() -> None:
    named = [line(0, "agent", "a1", "start"), line(1, "agent", "a2", "start", parent="a1")]
    for keep in (0, EVERYTHING):
        assert told(view(named, keep=keep)) == []
        assert told(view([*named, line(2, "usage", "u", parent="a2", detail={"input": 1})], keep=keep)) == []
        called = [*named, line(2, "agent", "a1", "start", name="find the bug")]
        assert [node.id for node in view(called, keep=keep)[1:]] == ["a1"], "whatever type it has"
        typed = [*named, line(2, "agent", "a1", "start", agentType="plan")]
        assert [(node.id, node.is_group) for node in view(typed, keep=keep)[1:]] == [("a1", False)]
        spoke = [*named, line(2, "message", "m", parent="a2", text="hello")]
        assert [(node.id, node.is_group) for node in view(spoke, keep=keep)[1:3]] == [("a1", True), ("a2", True)]
        alone = view([*named, line(2, "agent", "a2", "end", parent="a1", status="completed")], keep=keep)
        assert [(node.id, node.is_group) for node in alone[1:]] == [("a1", True), ("a2", False)]


def test_the_call_of_a_sub_agent_and_the_sub_agent_are_one() -> None:
    rows = [
        line(0, "tool", "x", "start", name="Agent"),
        line(1, "agent", "x", "start", agentType="plan"),
        line(2, "tool", "t", parent="x", name="Read"),
        line(3, "tool", "x", "end", status="completed"),
    ]
    for order in itertools.permutations(rows):
        for keep in (0, EVERYTHING):
            nodes = view(order, keep=keep)
            assert [node.id for node in nodes if node.type == RowType.AGENT] == ["x"]
            assert (nodes[0].calls, nodes[1].calls) == (1, 1), order


def test_an_orphan_stands_at_the_root() -> None:
    lines = [line(0, "tool", "t1", "start", parent="nobody"), line(1, "message", "m1")]
    nodes = view(lines)
    assert told(nodes) == [(1, "m1", None), (1, "t1", "running")]
    assert [node.is_orphan for node in nodes[1:]] == [False, True]
    assert nodes[0].calls == 1
    assert told(view([*lines, line(2, "agent", "nobody", "start")])) == [
        (1, "m1", None), (1, "nobody", "running"), (2, "t1", "running"),
    ]  # fmt: skip


@given(st.lists(st.integers(0, 7), min_size=8, max_size=8), st.randoms(use_true_random=False))
def test_rings_of_parents_are_cut_and_each_item_is_there_once(parents: list[int], pick: random.Random) -> None:
    lines = [line(n, "agent", f"a{n}", "start", parent=f"a{parents[n]}") for n in range(8)]
    lines += [line(10 + n, "tool", f"t{n}", parent=f"a{n}", name="Bash") for n in range(8)]
    nodes = view(lines)
    assert sorted(node.id for node in nodes[1:]) == sorted([f"{kind}{n}" for kind in "at" for n in range(8)])
    assert nodes[0].calls == 8
    pick.shuffle(lines)
    assert view(lines) == nodes


def test_agents_may_be_nested_deeper_than_python_recurses() -> None:
    deep = 5000
    lines = [line(n % 3600, "agent", f"a{n}", "start", parent=f"a{n - 1}" if n else None) for n in range(deep)]
    lines.append(line(0, "tool", "t", parent=f"a{deep - 1}", name="Bash"))
    nodes = view(lines)
    assert (nodes[-1].id, nodes[-1].depth, nodes[0].calls) == ("t", deep + 1, 1)


# -- unforeseen rows -------------------------------------------------------------------------------------------


def test_unknown_types_and_fields_are_kept_and_counted() -> None:
    odd = b'{"at":"2026-11-21T20:00:00.000Z","type":"hologram","id":"h1","phase":"end","text":"?","colour":"red"}\n'
    found = fold([odd, odd, *NESTED])
    assert (found.unknown_types, found.unknown_fields) == ({"hologram": 2}, {"colour": 2})
    assert (1, "h1", None) in told(view_of(found, ended=False))
    assert fold([odd, *NESTED], keep=0).unknown_types == {"hologram": 1}


def test_rows_without_id_and_phase_are_read() -> None:
    """Older versions of `report` wrote such rows."""
    lines = [
        b'{"type": "progress", "at": "2026-11-21T20:00:00.000Z", "percent": 40.0, "text": "reading"}\n',
        b'{"at": "2026-11-21T20:00:01.000Z", "type": "message", "text": "found it"}\n',
    ]
    nodes = view(lines)[1:]
    assert [(node.type, node.text, node.percent) for node in nodes] == [
        ("progress", "reading", 40.0), ("message", "found it", None),
    ]  # fmt: skip


@pytest.mark.parametrize("keep", [0, EVERYTHING])
def test_bad_lines_are_counted_and_harm_nothing(keep: int) -> None:
    bad = [
        b"garbage\n",
        b"\n",
        b"[1]\n",
        b'{"type": 3}\n',
        b'{"at":"x","type":"tool","id":"t"\n',
        b"\x00\x00\n",
        b"[" * 9999 + b"\n",
    ]
    found = fold([*bad, *NESTED, *bad], keep)
    assert found.bad == 2 * len(bad)
    assert view_of(found, ended=False) == view(NESTED, keep=keep)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
KEYS = st.sampled_from(
    ["at", "type", "id", "phase", "parent", "status", "agentType", "name", "text", "detail", "percent"]
)
ROWS = st.dictionaries(KEYS, JSON | st.sampled_from(["tool", "agent", "usage", "end", "start", "a", "b"]), max_size=9)


@given(
    st.lists(ROWS.map(lambda row: json.dumps(row).encode() + b"\n") | st.binary(max_size=80)), st.sampled_from([0, 2])
)
def test_no_bytes_raise(lines: list[bytes], keep: int) -> None:
    found = fold(lines, keep)
    nodes = view_of(found, ended=True)
    assert json.dumps([node.to_json() for node in nodes])
    transcript = Transcript()
    for number, raw in enumerate(b"".join(lines).split(b"\n"), 1):
        row = read_line(raw, number)
        if row is not None:
            transcript.take(row)


SMALL_ROWS = st.tuples(
    st.sampled_from(["tool", "agent", "message", "usage"]),
    st.sampled_from("abc"),
    st.sampled_from(["start", "end"]),
    st.sampled_from([None, "a", "b"]),
)


@given(st.lists(SMALL_ROWS))
@example([("tool", "a", "start", "b"), ("tool", "a", "end", "a"), ("agent", "b", "start", None)])
def test_the_quick_reading_of_heads_means_what_a_parse_means(
    rows: list[tuple[str, str, str, str | None]],
) -> None:
    quick = [
        line(n, kind, id_, phase, parent=parent, detail={"input": n, "output": 1, "cached": 0})
        for n, (kind, id_, phase, parent) in enumerate(rows)
    ]
    slow = [json.dumps(json.loads(raw)).encode() + b"\n" for raw in quick]
    assert all(b'": ' in raw for raw in slow)
    for keep in (0, EVERYTHING):
        assert view(slow, keep=keep) == view(quick, keep=keep)


# -- large activities ------------------------------------------------------------------------------------------


def test_of_many_ended_items_the_last_are_kept_and_all_are_counted() -> None:
    lines = [
        row
        for n in range(100)
        for row in (line(n, "tool", f"t{n}", "start", name="Bash"), line(n, "tool", f"t{n}", "end", status="completed"))
    ]
    lines += [line(200, "message", f"m{n}", text="x") for n in range(20)]
    nodes = view([*lines, *lines], keep=10)
    assert [node.id for node in nodes[1:]] == [f"m{n}" for n in range(10, 20)]
    assert (nodes[0].calls, nodes[0].earlier) == (100, 110)


def test_endless_progress_of_one_item_is_merged() -> None:
    lines = [line(n, "tool", "t", "progress", text=f"{n} %") for n in range(500)]
    (_, node) = view([line(0, "tool", "t", "start", name="Bash"), *lines])
    assert (node.name, node.text, node.status) == ("Bash", "499 %", "running")


# -- the transcript ----------------------------------------------------------------------------------------------


def test_a_transcript_tells_each_thing_once() -> None:
    transcript = Transcript()
    rows = [read_line(raw, number) for number, raw in enumerate([*NESTED, *NESTED], 1)]
    entries = [entry for row in rows if row is not None and (entry := transcript.take(row)) is not None]
    assert [(entry.depth, entry.agent_type, entry.kind, entry.begins, entry.ends) for entry in entries] == [
        (0, None, "message", True, True),
        (0, None, "agent", True, False),
        (1, "general", "tool", True, False),
        (1, "general", "tool", False, True),
        (1, "general", "agent", True, False),
        (2, "explore", "tool", True, False),
        (2, "explore", "tool", False, True),
        (1, "general", "agent", False, True),
        (0, None, "agent", False, True),
    ]
    assert [entry.fields.get("name") for entry in entries if entry.ends] == [None, "Bash", "Read", "deeper", "look"]


@pytest.mark.parametrize(
    ("kind", "name", "text", "line"),
    [
        ("message", None, "# Done\n- **all** of `x`", "Done: • all of x"),
        ("message", "user", "# Do *this*", "user: # Do *this*"),
        ("message", "plan", "1. **Look**", "plan: 1. Look"),
        ("thought", None, "**Hm**", "thought: Hm"),
        ("thought", None, "***", "thought: ***"),
        ("message", "x", "---\n", "x: ---"),
        ("message", None, "```sh\n", "```sh"),
        ("agent", None, "***", "***"),
        ("agent", None, "**Two** tests", "Two tests"),
        ("agent", "find **/*.js **/x", "**Two** tests", "find **/*.js **/x"),
        ("progress", None, "*a* of *b*", "*a* of *b*"),
        ("note", None, "ls *a *b*", "note: ls *a *b*"),
        ("tool", "Bash", "**out**", "Bash rm *a*"),
        ("message", None, "**a**\x1b[31m \ud800", "a\\x1b[31m \ufffd"),
    ],
)
def test_in_one_line_what_an_agent_says_is_its_words_and_all_else_stays(
    kind: str, name: str | None, text: str, line: str
) -> None:
    assert label(kind, name, text, {"command": "rm *a*"} if kind == "tool" else None, None) == line


def test_sub_agents_of_one_type_are_told_apart_in_a_transcript() -> None:
    rows = [
        line(1, "agent", "a1", phase="start", agentType="explore"),
        line(2, "agent", "a2", phase="start"),
        line(3, "agent", "a2", phase="start", agentType="explore"),
        line(4, "tool", "t1", parent="a1", name="Read"),
        line(5, "tool", "t2", parent="a2", name="Read"),
        line(6, "agent", "a1", agentType="explore"),
    ]
    transcript = Transcript()
    read = (read_line(raw, number) for number, raw in enumerate(rows, 1))
    entries = [entry for row in read if row is not None and (entry := transcript.take(row)) is not None]
    assert [entry.agent_type for entry in entries if entry.kind == "tool"] == ["explore", "explore 2"]
    assert entries[-1].fields["agentType"] == "explore"


@pytest.mark.parametrize("number", [10**400, 2**60, -1, 1.5, True, None])
def test_a_number_of_tokens_that_is_none_counts_as_none(number: object) -> None:
    assert tokens_in({"detail": {"input": number, "output": 5}}) == {"output": 5}
