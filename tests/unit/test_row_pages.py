"""At stake: of an output of any size, any place can be reached, and it is the same from wherever one comes."""

from __future__ import annotations

import re
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import agentctl
from agentctl.adapters.clock import monotonic
from agentctl.adapters.taskdir import Root, WorkerDir
from agentctl.domain.activity.row import RowType
from agentctl.domain.text.terminal_output import StyledText, TerminalOutput, TerminalRow, rows_of_text
from agentctl.interfaces.web.output_endpoints import shown_in
from agentctl.operations.output.finding import find_in_output
from agentctl.operations.output.row_pages import MOST_ROWS, KeptTerminals, PageOfRows, rows_of_output

BAR = b"".join(b"\rDownloading %3d %% of many megabytes" % (number % 101) for number in range(30_000)) + b"\rDone\x1b[K"


@pytest.fixture
def worker(tmp_path: Path) -> WorkerDir:
    folder = Root(tmp_path).task("t").worker("w")
    Path(str(folder.path)).mkdir(parents=True)
    return folder


def write(worker: WorkerDir, data: bytes) -> None:
    Path(str(worker.stdout)).write_bytes(data)


def look(
    worker: WorkerDir, begin: int | None = None, before: int | None = None, limit: int = 64, **more: object
) -> PageOfRows:
    return rows_of_output(worker, "stdout", begin=begin, before=before, limit=limit, **more)  # type: ignore[arg-type]


def texts(rows: list[TerminalRow]) -> list[str]:
    return [row.text for row in rows]


lines = st.lists(
    st.sampled_from(["", "word", "\x1b[31mred\x1b[m", "1 %\r2 %\r\x1b[K3 %", "é日", "x" * 40, "a\tb", "end\r"]),
    max_size=30,
)


@given(lines, st.sampled_from(["", "\n"]), st.integers(20, 200))
def test_pages_forwards_and_backwards_have_what_is_shown(
    tmp_path_factory: pytest.TempPathFactory, parts: list[str], last: str, limit: int
) -> None:
    folder = Root(tmp_path_factory.mktemp("root")).task("t").worker("w")
    Path(str(folder.path)).mkdir(parents=True)
    text = "\n".join(parts) + last
    write(folder, text.encode())
    whole = [row.text for row in rows_of_text(text)]
    page = look(folder, 0, limit=limit)
    found = list(page.rows)
    while page.end < page.size:
        page = look(folder, page.end, limit=limit)
        found = [row for row in found if row.at < page.begin] + page.rows
    assert texts(found) == whole
    page = look(folder, limit=limit)
    found = list(page.rows)
    while page.begin > 0:
        page = look(folder, before=page.begin, limit=limit)
        found = page.rows + found
    assert texts(found) == whole


@given(
    st.lists(
        st.sampled_from(["word", "\n", "\r", "\x1b[A", "\x1b[2A", "\x1b[J", "\x1b[K", "日", "\x1b[3", "1m"]),
        max_size=25,
    ),
    st.randoms(use_true_random=False),
)
def test_whoever_follows_has_what_is_shown_in_the_end(
    tmp_path_factory: pytest.TempPathFactory, parts: list[str], random: object
) -> None:
    folder = Root(tmp_path_factory.mktemp("root")).task("t").worker("w")
    Path(str(folder.path)).mkdir(parents=True)
    data, kept = "".join(parts).encode(), KeptTerminals()
    found: list[TerminalRow] = []
    end = size = 0
    while size < len(data):
        size = min(len(data), size + random.randrange(1, 9))  # type: ignore[attr-defined]
        write(folder, data[:size])
        page = look(folder, end, limit=1 << 16, kept=random.choice([kept, None]))  # type: ignore[attr-defined]
        found = [row for row in found if row.at < page.begin] + page.rows
        end = page.end
    assert texts(found) == [row.text for row in rows_of_text("".join(parts))]


def test_a_long_progress_bar_is_one_row_with_its_present_state(worker: WorkerDir) -> None:
    write(worker, b"begin\n" + BAR + b"\nend\n")
    assert texts(look(worker, limit=1 << 12).rows[-1:]) == ["end"]
    page = look(worker, 0, limit=1 << 12)
    page = look(worker, page.end, limit=1 << 12)
    assert texts(page.rows) == ["Done"]
    assert page.begin == len(b"begin\n")
    assert texts(look(worker, page.end, limit=1 << 12).rows) == ["end"]
    back = look(worker, before=page.end, limit=1 << 12)
    assert (texts(back.rows), back.begin) == (["Done"], len(b"begin\n"))
    write(worker, BAR)
    assert texts(look(worker, limit=1 << 12).rows) == ["Done"]


def test_a_long_line_is_shown_in_parts_that_are_all_of_it(worker: WorkerDir) -> None:
    data = bytes(ord("a") + number % 26 for number in range(300_000))
    write(worker, data)
    page = look(worker, 0, limit=1 << 14)
    found = "".join(texts(page.rows))
    while page.end < page.size:
        page = look(worker, page.end, limit=1 << 14, kept=None)
        found = found[: page.begin] + "".join(texts(page.rows))
    assert found == data.decode()
    page = look(worker, limit=1 << 14)
    assert page.size - page.begin <= 1 << 14
    assert data.decode().endswith("".join(texts(page.rows)))


def test_a_display_of_several_bars_stays_where_it_is(worker: WorkerDir) -> None:
    kept, data = KeptTerminals(), b"pulling\n" + b"a 0\nb 0\nc 0\n"
    write(worker, data)
    page = look(worker, 0, kept=kept)
    found = page.rows
    for number in range(3000):
        data += b"\x1b[3A\x1b[2Ka %d\n\x1b[2Kb %d\n\x1b[2Kc %d\n" % (number, number, number)
        if number % 500 == 0:
            write(worker, data)
            while page.end < len(data):
                page = look(worker, page.end, limit=1 << 16, kept=kept)
                found = [row for row in found if row.at < page.begin] + page.rows
            assert texts(found) == ["pulling", f"a {number}", f"b {number}", f"c {number}"]


def test_the_source_has_its_control_characters_spelled_out(worker: WorkerDir) -> None:
    write(worker, b"\x1b[31mred\x1b[m\r\n1 %\r2 %\n" + b"y" * 5000 + b"\xff")
    page = look(worker, 0, limit=1 << 14, is_source=True)
    assert texts(page.rows) == ["\\x1b[31mred\\x1b[m\\r", "1 %\\r2 %", "y" * 4096, "y" * 904 + "\\xff"]
    assert [row.at for row in page.rows] == [0, 13, 21, 21 + 4096]
    assert texts(look(worker, 15, is_source=True, limit=4).rows) == ["1 %\\r2 "]


def test_a_page_has_a_bounded_number_of_rows(worker: WorkerDir) -> None:
    write(worker, b"\n" * 5000)
    count, at = 0, 0
    while at < 5000:
        page = look(worker, at, limit=1 << 16)
        assert len(page.rows) <= MOST_ROWS
        count, at = count + len(page.rows), page.end
    assert count == 5000
    page = look(worker, limit=1 << 16)
    assert (len(page.rows), page.begin, page.end) == (MOST_ROWS, 5000 - MOST_ROWS, 5000)


@pytest.mark.parametrize("begin", [0, None])
def test_a_page_may_have_just_as_many_rows_as_are_given(worker: WorkerDir, begin: int | None) -> None:
    write(worker, b"x\n" * MOST_ROWS)
    page = look(worker, begin, limit=1 << 16)
    assert (len(page.rows), page.begin, page.end) == (MOST_ROWS, 0, page.size)


def test_a_terminal_is_kept_for_its_own_file(worker: WorkerDir) -> None:
    other, kept = worker.task.worker("other"), KeptTerminals()
    Path(str(other.path)).mkdir()
    write(worker, b"\x1b[31mone")
    write(other, b"two, two")
    end = look(worker, kept=kept).end
    write(other, b"two, two more")
    assert [row.spans for row in look(other, end, kept=kept).rows] == [(StyledText("two, two more"),)]


_LONG = pytest.mark.slow  # Whatever is at the end of a megabyte is found under the eyes of tracemalloc.


@pytest.mark.parametrize(
    "how",
    [
        {"begin": 0},
        pytest.param({}, marks=_LONG),
        {"begin": 0, "is_source": True},
        pytest.param({"is_source": True}, marks=_LONG),
    ],
)
def test_a_page_of_many_rows_takes_no_more_memory_than_its_own(worker: WorkerDir, how: dict[str, Any]) -> None:
    write(worker, b"\n" * (1 << 20))
    tracemalloc.start()
    try:
        page = look(worker, **{"begin": None, "limit": 1 << 20, **how})
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(page.rows) == MOST_ROWS
    assert page.begin == page.rows[0].at
    assert peak < 48 << 20


def test_what_is_wide_and_blank_is_shown_as_a_text() -> None:
    row = {"type": RowType.TOOL, "text": "\x1b[512Gx\n" * 1000}
    assert len(shown_in(row)["shown"]) == 1000
    assert shown_in({**row, "text": row["text"] * 10}) == {}


def test_words_are_found_as_they_are_shown(worker: WorkerDir) -> None:
    data = b"one\nsrc:\x1b[K \x1b[01;31m\x1b[Kold\x1b[m\x1b[K new\n1 %\rBOLD\n\told\nno\n"
    write(worker, data)
    found = find_in_output(worker, "stdout", "old", most=10, limit_s=5)
    assert [(hit.line, data[hit.at : hit.at + 3]) for hit in found.hits] == [(2, b"src"), (3, b"1 %"), (4, b"\tol")]
    assert (found.looked, found.line, found.size) == (len(data), 6, len(data))
    assert [hit.line for hit in find_in_output(worker, "stdout", "src: old", most=10, limit_s=5).hits] == [2]
    write(worker, "Ärger\närger\n".encode())
    assert [hit.line for hit in find_in_output(worker, "stdout", "äRGER", most=10, limit_s=5).hits] == [1, 2]


def test_a_search_says_how_far_it_has_looked_and_goes_on_from_there(worker: WorkerDir) -> None:
    data = b"".join(b"line %07d of a long log\n" % number for number in range(150_000))
    write(worker, data)
    found = find_in_output(worker, "stdout", "0000123", most=10, limit_s=0)
    assert [(hit.at, hit.line) for hit in found.hits] == [(123 * 27, 124)]
    assert found.looked < found.size
    hits = []
    while found.looked < found.size:
        found = find_in_output(worker, "stdout", "0149999", begin=found.looked, line=found.line, most=10, limit_s=0)
        hits += found.hits
    assert [(hit.at, hit.line) for hit in hits] == [(149_999 * 27, 150_000)]


def all_found(worker: WorkerDir, words: str, most: int = 1000) -> list[tuple[int, int]]:
    """Return the places and lines of all rows that a search finds, asking again and again."""
    found = find_in_output(worker, "stdout", words, most=most, limit_s=5)
    hits = list(found.hits)
    while found.looked < found.size:
        begin = found.looked
        found = find_in_output(worker, "stdout", words, begin=begin, line=found.line, most=most, limit_s=5)
        assert found.looked > begin
        assert len(found.hits) <= most
        hits += found.hits
    return [(hit.at, hit.line) for hit in hits]


def rows_with(words: str, data: bytes) -> list[tuple[int, int]]:
    terminal = TerminalOutput()
    terminal.feed(data)
    rows = (*terminal.settled(), *terminal.rows())
    return [(row.at, data.count(b"\n", 0, row.at) + 1) for row in rows if words.lower() in row.text.lower()]


words_in_lines = st.sampled_from(["needle", "Kelvin", "e n", "n\\xff", "\\u202e", "a\tb", "a\nb", "日", "\u0130", "x"])
parts_of_lines = st.one_of(
    st.sampled_from(
        [b"needle", b"NEEDLE", b"nee", b"dle", b"\n", b"\r\n", b"\t", b" ", b"\x1b[31m", b"\x1b[m", b"\x1b[K", b"n\xff",
         "日é".encode(), "\u202e\u212aelvin\u0130".encode(), b"a\tb", b"a\nb"]
    ),
    st.builds(bytes.__mul__, st.sampled_from([b"y", "é".encode(), "日".encode(), b"\t", b"\xff"]),
              st.sampled_from([506, 512, 1024, 4090, 4095, 4096])),
)  # fmt: skip


@given(st.lists(parts_of_lines, max_size=20), words_in_lines, st.integers(1, 4))
def test_a_search_finds_the_rows_that_have_the_words(
    tmp_path_factory: pytest.TempPathFactory, parts: list[bytes], words: str, most: int
) -> None:
    folder = Root(tmp_path_factory.mktemp("root")).task("t").worker("w")
    Path(str(folder.path)).mkdir(parents=True)
    data = b"".join(parts)
    write(folder, data)
    assert all_found(folder, words, most) == rows_with(words, data)


@given(
    st.lists(st.sampled_from(["one", "needle", "\n", "\r", "\x1b[A", "\x1b[2A", "\x1b[B", "\x1b[K"]), max_size=40),
    st.integers(40, 50),
)
def test_what_is_written_over_is_found_as_it_is_in_the_end(
    tmp_path_factory: pytest.TempPathFactory, parts: list[str], most: int
) -> None:
    folder = Root(tmp_path_factory.mktemp("root")).task("t").worker("w")
    Path(str(folder.path)).mkdir(parents=True)
    data = "".join(parts).encode() * 5
    write(folder, data)
    assert all_found(folder, "needle", most) == rows_with("needle", data)


@pytest.mark.parametrize("letter", ["y", "日y"])
@pytest.mark.parametrize("size", [199_000, (1 << 20) - 3, (1 << 20) + 5000])
def test_the_rows_of_a_long_line_are_found_whatever_its_size(worker: WorkerDir, letter: str, size: int) -> None:
    filler = letter.encode() * (size // len(letter.encode()))
    data = b"begin\n" + filler[: len(filler) // 2] + b"\x1b[mNEEDLE" + filler + b"needle" * 700 + b"\nneedle\n"
    write(worker, data)
    assert all_found(worker, "needle", 2) == rows_with("needle", data)


def test_a_display_of_several_rows_is_not_cut_by_a_limit(worker: WorkerDir) -> None:
    data = b"needle\n" + b"one\ntwo\n" + b"\x1b[2Aneedle 1\nneedle 2\n" * 3 + b"needle\n"
    write(worker, data)
    assert [line for _, line in all_found(worker, "needle", 3)] == [1, 2, 3, 4]


def test_behind_a_megabyte_that_shows_nothing_it_goes_on(worker: WorkerDir) -> None:
    write(worker, b"\0" * (3 << 20) + b"needle")
    assert len(all_found(worker, "needle")) == 1


def test_no_more_is_found_at_once_than_was_asked_for(worker: WorkerDir) -> None:
    write(worker, b"a\n" * 100_000)
    found = find_in_output(worker, "stdout", "a", most=1, limit_s=5)
    assert (found.hits, found.looked, found.line) == ([(0, 1)], 2, 2)
    assert len(all_found(worker, "a", 9999)) == 100_000


def test_any_place_of_a_large_log_is_reached_at_once(worker: WorkerDir) -> None:
    with Path(str(worker.stdout)).open("wb") as file:
        file.write(b"the first line\n")
        file.seek(40 << 20)
        file.write(b"\nin the middle\n")
        file.seek(80 << 20)
        file.write(b"\nthe last line\n")
    began = monotonic()
    assert texts(look(worker, 0).rows)[0] == "the first line"
    assert texts(look(worker, limit=64).rows)[-1] == "the last line"
    assert "in the middle" in texts(look(worker, (40 << 20) + 4).rows)
    assert monotonic() - began < 5


def test_what_a_person_decides_about_is_spelled_out_and_never_interpreted() -> None:
    assert shown_in({"type": RowType.TOOL, "text": "\x1b[31mred"})["shown"][0]["spans"] == [["red", "f1"]]
    for kind in set(RowType) - {RowType.TOOL}:
        assert shown_in({"type": kind, "text": "\x1b[31mred", "detail": {"command": "\x1b[2K"}}) == {}
    package = Path(agentctl.__file__).parent
    asking = [
        "domain/question.py", "interfaces/words/question_pieces.py", "interfaces/commands/parts/answers_here.py",
        "interfaces/commands/parts/question_lines.py", "interfaces/screen/acting/peek.py",
        "interfaces/web/page/js/question_card.js",
    ]  # fmt: skip
    for name in asking:
        assert not re.search("terminal_output|printed_rows|shown_rows", (package / name).read_text()), name
