"""At stake: the pager shows what is in a file, however it grows, and what it remembers of it stays small."""

from __future__ import annotations

import itertools
import json
import os
import sys
import tempfile
import threading
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentctl.adapters.clock import now_iso
from agentctl.domain.activity.row import Phase, Row, RowType, encode_row
from agentctl.domain.activity.rows import read_line
from agentctl.domain.activity.seen import SeenHashes
from agentctl.domain.activity.transcript import Transcript
from agentctl.domain.text.plaintext import plain, whole
from agentctl.domain.text.terminal_output import TerminalOutput
from agentctl.interfaces.screen.texts import activity_source
from agentctl.interfaces.screen.texts.activity_source import ActivitySource
from agentctl.interfaces.screen.texts.events_source import EventsSource
from agentctl.interfaces.screen.texts.layout import row_starts
from agentctl.interfaces.screen.texts.log_source import LogSource
from agentctl.interfaces.screen.texts.needle import Needle
from agentctl.interfaces.screen.texts.searching import HitCount, find_next
from agentctl.interfaces.screen.texts.shown import LONGEST_LINE, Spot, Tone
from agentctl.interfaces.screen.texts.sources import PagerSource, TextSource
from agentctl.interfaces.screen.worker.worker_texts import RenewedText
from agentctl.interfaces.words.activity import paragraph
from agentctl.interfaces.words.event import event_line

Make = Callable[[str], PagerSource]


def grow(source: PagerSource) -> None:
    while source.grow():
        pass


def shown(source: PagerSource) -> list[str]:
    """Return all lines of a source, each as its text."""
    return [line.text for number in range(len(source)) for line in source.paragraph(number)]


def of_lines(path: str) -> PagerSource:
    return RenewedText(Path(path).read_text)


def never() -> bool:
    return False


def of_growing(make: Make, pieces: Sequence[bytes]) -> list[str]:
    """Return the lines of a file that was written piece by piece, the source reading on after each of them."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "file")
        source = make(path)
        for piece in pieces:
            with open(path, "ab") as file:
                file.write(piece)
            grow(source)
            shown(source)  # It is drawn meanwhile, and must not remember an unfinished line.
        lines = shown(source)
        source.close()
        return lines


def in_pieces(data: bytes, cuts: Iterable[int]) -> list[bytes]:
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    return [data[begin:end] for begin, end in itertools.pairwise(places)]


# -- logs ----------------------------------------------------------------------------------------------------------

#: Bytes that are text, broken text, control characters, and lines and characters long enough to be cut.
PARTS = st.sampled_from(
    [b"a", b"\n", b"\x1b[31m", b"\xff", b"\x80" * 5, "é".encode(), "漢".encode(), "\u202e".encode(),
     "😀".encode()[:3], b"\xed\xa0\x80", b"x" * 1000, "漢".encode() * 1500, "😀".encode() * 1100, b"\n" * 3000,
     b"line\n" * 4000]
)  # fmt: skip
BYTES = st.lists(st.binary(max_size=8) | PARTS, max_size=20).map(b"".join)


def decoded(data: bytes) -> str:
    return plain(data.decode("utf-8", "backslashreplace"), keep="\n\t").expandtabs()


@given(BYTES, st.lists(st.integers(0, 60_000), max_size=5))
@example(b"\x1b[31m" + b"line\n" * 40_000 + b"a\nb\n\x1b[2Ac\n" + b"\x1b[A\x1b[2Kx\n" * 5000, [])
def test_a_log_is_shown_as_a_terminal_shows_it(data: bytes, cuts: list[int]) -> None:
    terminal = TerminalOutput()
    terminal.feed(data)
    rows = [row.text for row in (*terminal.settled(), *terminal.rows())]
    assert of_growing(LogSource, in_pieces(data, cuts)) == rows
    assert all(len(row) <= 4 * LONGEST_LINE for row in rows)


@given(BYTES, st.lists(st.integers(0, 60_000), max_size=5))
def test_the_source_of_a_log_is_all_of_it(data: bytes, cuts: list[int]) -> None:
    lines = of_growing(partial(LogSource, is_spelled_out=True), in_pieces(data, cuts))
    if b"\t" not in data:
        assert "".join(lines) == decoded(data).replace("\n", "")
    assert all(len(line) <= 4 * LONGEST_LINE for line in lines)


@pytest.mark.parametrize(
    ("written", "seen"),
    [
        (b"10%\r20%\r", ["20%"]), (b"10%\r20%", ["20%"]), (b"one\r\ntwo\r\n", ["one", "two"]), (b"\r\n\n", ["", ""]),
        (b"working...\r\x1b[Kdone\nnext", ["done", "next"]),
        (b"".join(b"\r%d of 9999" % number for number in range(9000)), ["8999 of 9999"]),
    ],
)  # fmt: skip
def test_of_a_progress_line_the_last_state_is_shown(written: bytes, seen: list[str]) -> None:
    assert of_growing(LogSource, [written]) == seen


def test_a_hole_is_passed_without_being_read(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with path.open("wb") as file:
        file.write(b"first\n")
        file.truncate(1 << 40)
        file.seek(1 << 40)
        file.write(b"\nlast\n")
    source = LogSource(path)
    grow(source)
    assert shown(source)[0] == "first"
    assert shown(source)[-1] == "last"
    source.close()


def test_a_log_takes_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"\n" * 3_000_000)
    source = LogSource(path)
    grow(source)
    index = source._index
    assert len(source) == 3_000_000
    assert sum(map(sys.getsizeof, (index.begins, index.ends, index.firsts))) < 20_000
    source.close()


# -- the transcript --------------------------------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=4,
)
WORDS = st.sampled_from(["a", "b", "tool", "agent", "name\none", "\ud83d", "\x1b[0m"])
ANY_ROW = st.dictionaries(
    st.sampled_from(
        ["at", "type", "id", "phase", "parent", "status", "agentType", "name", "text", "detail", "percent"]
    ),
    JSON | WORDS,
    max_size=9,
)
USUAL_ROW = st.fixed_dictionaries(
    {
        "type": st.sampled_from([*RowType]), "id": st.sampled_from("abcd"), "phase": st.sampled_from([*Phase]),
        "at": st.just("2026-11-21T20:00:01.000Z"),
    },
    optional={
        "parent": st.sampled_from("abcd"), "agentType": WORDS, "name": WORDS, "text": WORDS | st.text(),
        "status": st.sampled_from(["completed", "failed", "running"]),
        "detail": st.dictionaries(WORDS, JSON, max_size=2),
    },
)  # fmt: skip
ROWS = st.lists((USUAL_ROW | ANY_ROW).map(lambda row: json.dumps(row).encode() + b"\n") | st.binary(max_size=40))


def transcript(data: bytes) -> list[str]:
    """Return the lines of a transcript as `agentctl logs` prints them."""
    state, lines = Transcript(), []
    for number, line in enumerate(data.split(b"\n")[:-1], 1):
        row = read_line(line, number)
        entry = None if row is None else state.take(row)
        if entry is not None:
            lines += whole(paragraph(entry)).removesuffix("\n").split("\n")
    return lines


NAMED_BEFORE = [
    b'{"type":"agent","id":"s","phase":"start","agentType":"explore","name":"look"}\n',
    b'{"type":"tool","id":"t","phase":"start","name":"Bash","parent":"s","detail":{"command":"ls"}}\n',
    b'{"type":"thought","id":"h","text":"\\u0068idden"}\n',
    b'{"type":"tool","id":"t","phase":"end","status":"failed","parent":"s","text":"x"}\n',
    b'{"type":"agent","id":"s","phase":"end","text":"found"}\n',
    b'{"type":"agent","id":"s","phase":"end","text":"again"}\n',
    b'{"type":"thought","id":"i","text":"more"}\n',
]


@given(ROWS)
@example(NAMED_BEFORE)
def test_a_transcript_has_the_paragraphs_that_logs_prints(rows: list[bytes]) -> None:
    data = b"".join(rows)
    assert of_growing(ActivitySource, [data]) == transcript(data)


@given(ROWS, st.lists(st.integers(0, 2000), max_size=4))
def test_a_transcript_that_grows_is_the_same(rows: list[bytes], cuts: list[int]) -> None:
    data = b"".join(rows)
    assert of_growing(ActivitySource, in_pieces(data, cuts)) == transcript(data)


def row(kind: str, id_: str, phase: str = "end", **more: str) -> bytes:
    return encode_row(Row(RowType(kind), id_, Phase(phase), **more), "2026-11-21T20:00:01.000Z")  # type: ignore[arg-type]


def test_a_replaced_activity_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "activity.jsonl"
    path.write_bytes(row("message", "m1", text="before") * 2)
    source = ActivitySource(path)
    grow(source)
    assert shown(source) == ["20:00:01  before"]
    other = tmp_path / "other"
    other.write_bytes(row("message", "m1", text="after") + row("message", "m2", text="more, and longer than before"))
    other.rename(path)
    assert shown(source) == ["20:00:01  before"]
    grow(source)
    assert shown(source) == ["20:00:01  after", "20:00:01  more, and longer than before"]
    assert source.generation == 1
    source.close()


def test_a_text_that_was_too_long_is_not_when_it_was_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(activity_source, "_MOST_PARAGRAPHS", 2)
    path = tmp_path / "activity.jsonl"
    path.write_bytes(b"".join(row("message", f"m{number}", text="before") for number in range(3)))
    source = ActivitySource(str(path))
    grow(source)
    assert "only the first 2" in str(source.problem)
    path.write_bytes(row("message", "m", text="after"))
    grow(source)
    assert (source.problem, len(source)) == (None, 1)
    source.close()


def test_a_line_of_megabytes_is_cut_and_one_that_is_no_row_is_passed(tmp_path: Path) -> None:
    path = tmp_path / "activity.jsonl"
    path.write_bytes(
        row("message", "m1", text="x" * 3_000_000) + b"y" * 9_000_000 + b"\n" + row("message", "m2", text="z")
    )
    source = ActivitySource(path)
    grow(source)
    first, second = source.paragraph(0), source.paragraph(1)
    assert sum(len(line.text) for line in first) < 600_000
    assert max(len(line.text) for line in first) <= LONGEST_LINE
    assert first[-1].text.endswith("[cut: 3000000 characters]")
    assert [line.text for line in second] == ["20:00:01  z"]
    source.close()


def test_a_pass_takes_a_bounded_part(tmp_path: Path) -> None:
    path = tmp_path / "activity.jsonl"
    path.write_bytes(b"".join(row("message", f"m{number}", text="x" * 900) for number in range(3000)))
    source = ActivitySource(path)
    assert source.grow()
    assert 0 < len(source) < 2000
    grow(source)
    assert len(source) == 3000
    source.close()


@given(st.lists(st.integers(-(1 << 63), (1 << 63) - 1)), st.lists(st.integers(-(1 << 63), (1 << 63) - 1)))
@example(list(range(5000)), [5001])
def test_a_set_of_hashes_is_a_set(added: list[int], others: list[int]) -> None:
    seen = SeenHashes()
    for value in added:
        seen.add(value)
    # A slot that holds 0 is free, so 0 and 1 are one.
    as_kept = {value & (1 << 64) - 1 or 1 for value in added}
    assert len(seen) == len(as_kept)
    assert all(value in seen for value in added)
    assert all((value in seen) == ((value & (1 << 64) - 1 or 1) in as_kept) for value in others)


# -- events and finished texts -----------------------------------------------------------------------------------


def test_the_events_of_one_worker_are_those_that_events_prints(tmp_path: Path) -> None:
    def event(instance: str, number: int) -> dict[str, object]:
        payload = {"agentInstance": instance, "n": number, "text": "\u202e"}
        return {"ts": now_iso(), "type": "agent.started", "agentInstance": instance, "by": "me", "payload": payload}

    events = [event(("a-1", "a-2", "a-11")[number % 3], number) for number in range(9000)]
    lines = [json.dumps(one).encode() + b"\n" for one in events]
    lines[4:4] = [b"garbage a-1\n", b"x" * 5_000_000 + b"a-1\n", b'"a-1"\n']
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"".join(lines) + lines[0][:-1])
    source = EventsSource(path, "a-1")
    grow(source)
    numbered = [(seq, json.loads(line)) for seq, line in enumerate(lines, 1) if line.startswith(b'{"ts')]
    assert shown(source) == [event_line({"seq": seq, **one}) for seq, one in numbered if one["agentInstance"] == "a-1"]
    with path.open("ab") as file:
        file.write(b"\n")
    grow(source)
    assert len(source) == 3001
    source.close()


@pytest.mark.slow
def test_a_diff_is_coloured_and_a_text_is_cut_and_safe() -> None:
    source = TextSource(lambda: "diff --git a b\n@@ -1 +1 @@\n-old\n+new\x1b[0m\n same\n", is_diff=True)
    assert len(source) == 0
    grow(source)
    assert [source.paragraph(number)[0].tone for number in range(5)] == [
        Tone.HEADING, Tone.HUNK, Tone.REMOVED, Tone.ADDED, Tone.USUAL,
    ]  # fmt: skip
    assert source.paragraph(3)[0].text == "+new\\x1b[0m"
    for text in ("x" * 5_000_000, "\n" * 3_000_000):
        long = TextSource(text.__str__)
        grow(long)
        assert shown(long)[-1] == f"[cut: {len(text):,} characters]"
        assert len(long) < 600_000


@pytest.mark.parametrize("make", [LogSource, ActivitySource, lambda path: EventsSource(path, "a-1")])
def test_a_fifo_does_not_hold_the_reader(tmp_path: Path, make: Make) -> None:
    source = make(str(tmp_path / "file"))
    grow(source)
    os.mkfifo(tmp_path / "file")
    with pytest.raises(OSError, match="FIFO"):
        source.grow()
    (tmp_path / "file").unlink()
    (tmp_path / "file").write_bytes(b"")
    grow(source)
    assert len(source) == 0
    source.close()


# -- searching ---------------------------------------------------------------------------------------------------


@given(ROWS, st.sampled_from(["tool", "name one", "a", "20:00", "failed", "completed", "[b]", "thinks", "\\x1b", "é"]))
def test_a_search_finds_what_is_shown(rows: list[bytes], text: str) -> None:
    data = b"".join(rows)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "file")
        Path(path).write_bytes(data)
        for source in (ActivitySource(path), LogSource(path)):
            grow(source)
            check_search(source, Needle(text))
            source.close()


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("Bash", [(1, 0), (3, 0)]), ("explore", [(0, 0), (1, 0), (3, 0), (4, 0)]), ("hidden", [(2, 0)]),
        ("thinks", [(2, 0), (5, 0)]), ("completed", [(4, 0)]), ("look", [(0, 0), (4, 0)]), ("FOUND", []),
        ("found", [(4, 1)]),
        ("--:--:--", [(number, 0) for number in range(6)]), ("again", []), ("", []),
    ],
)  # fmt: skip
def test_a_search_finds_what_no_row_or_another_row_says(
    tmp_path: Path, text: str, lines: list[tuple[int, int]]
) -> None:
    path = tmp_path / "activity.jsonl"
    path.write_bytes(b"".join(NAMED_BEFORE))
    source = ActivitySource(path)
    grow(source)
    assert [*source.hits(Needle(text), 0, len(source))] == lines
    source.close()


class Stopping(LogSource):
    """A log that waits in the middle of a search until it may go on."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.has_begun, self.may_go_on = threading.Event(), threading.Event()

    def hits(self, needle: Needle, first: int, last: int) -> Iterator[Spot]:
        self.has_begun.set()
        self.may_go_on.wait(20)
        return super().hits(needle, first, last)


def test_two_searches_do_not_count_a_hit_twice(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"line\n" * 1000)
    source, count = Stopping(path), HitCount(Needle("line"))
    grow(source)
    first, second = (threading.Thread(target=count.extend, args=(source, never)) for _ in range(2))
    first.start()
    assert source.has_begun.wait(20)
    source.has_begun.clear()
    second.start()
    assert not source.has_begun.wait(0.2), "the second one has to wait for the first one"
    source.may_go_on.set()
    first.join()
    second.join()
    assert len(count) == 1000
    source.close()


def check_search(source: PagerSource, needle: Needle) -> None:
    wanted = [
        Spot(number, place)
        for number in range(len(source))
        for place, line in enumerate(source.paragraph(number))
        if needle.is_in(line.drawn)
    ]
    count = HitCount(needle)
    count.extend(source, never)
    assert len(count) == len(wanted)
    for start in (Spot(0, -1), *wanted):
        later, before = [spot for spot in wanted if spot > start], [spot for spot in wanted if spot < start]
        found = find_next(source, needle, start, never)
        assert (found and found.spot) == next(iter(later or wanted), None)
        found = find_next(source, needle, start, never, backwards=True)
        assert (found and found.spot) == next(reversed(before or wanted), None)


@pytest.mark.parametrize("make", [LogSource, of_lines], ids=["log", "text"])
@pytest.mark.parametrize("backwards", [False, True, None])
def test_a_search_ends_where_the_text_becomes_shorter_meanwhile(
    tmp_path: Path, make: Make, backwards: bool | None
) -> None:
    path = tmp_path / "stdout"
    path.write_bytes(b"x marks\n" * 40_000)
    source, asked = make(str(path)), itertools.count()
    grow(source)

    def stop() -> bool:
        number = next(asked)
        if number == 3:
            path.write_bytes(b"short\n" * 10)
            if isinstance(source, RenewedText):
                source.renew()
            grow(source)
        return number > 1000

    if backwards is None:
        HitCount(Needle("absent")).extend(source, stop)
    else:
        find_next(source, Needle("absent"), Spot(20_000), stop, backwards=backwards)
    assert next(asked) < 1000
    source.close()


def test_a_search_goes_through_all_of_a_long_log_and_can_be_broken_off(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"".join(b"line %d Alpha\n" % number for number in range(30_000)) + b"omega\n")
    source = LogSource(path)
    grow(source)
    count = HitCount(Needle("alpha"))
    count.extend(source, never)
    assert (len(count), count.place_of(Spot(9))) == (30_000, 10)
    found = find_next(source, Needle("omega"), Spot(3), never)
    assert found is not None
    assert found == (Spot(30_000), False)
    assert find_next(source, Needle("omega"), Spot(3), iter([False, True]).__next__) is None
    assert find_next(source, Needle("ALPHA"), Spot(3), never) is None
    found = find_next(source, Needle("line 7 "), Spot(20_000), never)
    assert found == (Spot(7), True)
    source.close()


# -- layout --------------------------------------------------------------------------------------------------------

#: The last ones are tones of skin, alone and joined, and marks with a width of their own.
CHARACTERS = st.sampled_from(
    ["a", "b", " ", "漢", "é", "e\u0301", "😀", "👨\u200d👩\u200d👧", "\u200b", "🇩🇪",
     "\U0001f3fb", "👍\U0001f3ff", "a\u0903", "\u093e", "a\u20dd"]
)  # fmt: skip


@example("a \U0001f3fb", 3, 0)
@example("漢 a👍\U0001f3ff", 4, 0)
@given(st.lists(CHARACTERS, max_size=60).map("".join), st.integers(1, 12), st.integers(0, 8))
def test_rows_are_the_line_and_fit(text: str, width: int, hang: int) -> None:
    from rich.cells import cell_len

    starts = row_starts(text, width, hang)
    rows = [text[begin:end] for begin, end in zip(starts, [*starts[1:], len(text)], strict=True)]
    assert "".join(rows) == text
    assert starts[0] == 0
    assert all(rows) or not text
    for row_ in rows:
        drawn = row_.rstrip(" \u200b")
        tones = sum("\U0001f3fb" <= one <= "\U0001f3ff" for one in drawn)
        marks = sum(unicodedata.category(one) in ("Mc", "Me") for one in drawn)
        assert cell_len(drawn) + 2 * tones + marks <= max(2, width), "however a terminal counts them"
