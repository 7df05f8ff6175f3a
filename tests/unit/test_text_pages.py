"""At stake: pages of an output or of an activity, in either direction, have all of it once, whatever was written."""

from __future__ import annotations

import itertools
import json
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentctl.adapters.opening import OddFile
from agentctl.adapters.taskdir import Root, WorkerDir
from agentctl.operations.show import text_pages
from agentctl.operations.show.text_pages import RowPage, output_between, page_of_activity, page_of_output

with_files = settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def worker(tmp_path: Path) -> WorkerDir:
    """Return a worker's folder."""
    found = Root(str(tmp_path)).task("t").worker("w")
    Path(found.stdout).parent.mkdir(parents=True)
    return found


# -- what it printed ---------------------------------------------------------------------------------------------------


def pages_of_output(worker: WorkerDir, limit: int, *, forwards: bool) -> list[bytes]:
    """Return all pages in the order of the file."""
    found: list[bytes] = []
    at: int | None = 0 if forwards else None
    while True:
        page = page_of_output(
            worker, "stdout", begin=at if forwards else None, before=None if forwards else at, limit=limit
        )
        assert page.end - page.begin == len(page.data) <= limit
        if not page.data:
            return found if forwards else found[::-1]
        found.append(page.data)
        at = page.end if forwards else page.begin


@with_files
@given(st.binary(max_size=60) | st.text(max_size=30).map(lambda text: text.encode("utf-8", "replace")),
       st.integers(4, 20), st.booleans())  # fmt: skip
def test_pages_of_an_output_are_all_of_it(worker: WorkerDir, data: bytes, limit: int, forwards: bool) -> None:
    Path(worker.stdout).write_bytes(data)
    pages = pages_of_output(worker, limit, forwards=forwards)
    assert b"".join(pages) == data
    try:
        data.decode()
    except UnicodeDecodeError:
        return
    for page in pages:
        page.decode()


@with_files
@given(st.binary(max_size=40), st.integers(0, 60), st.integers(4, 60), st.booleans())
def test_any_page_of_an_output(worker: WorkerDir, data: bytes, at: int, limit: int, forwards: bool) -> None:
    Path(worker.stdout).write_bytes(data)
    page = page_of_output(
        worker, "stdout", begin=at if forwards else None, before=None if forwards else at, limit=limit
    )
    assert data[page.begin : page.end] == page.data
    assert page.size == len(data)
    assert 0 <= page.begin <= page.end <= page.size
    assert output_between(worker, "stdout", page.begin, page.end) == page.data


def test_a_worker_without_output(worker: WorkerDir) -> None:
    for stream in ("stdout", "stderr"):
        assert page_of_output(worker, stream, begin=None, before=None, limit=10) == (b"", 0, 0, 0)
        assert output_between(worker, stream, 0, 10) == b""
    assert page_of_activity(worker, begin=None, before=None, limit=10) == ([], 0, 0, 0)


def test_only_plain_files_are_read(worker: WorkerDir) -> None:
    for file in (worker.stdout, worker.activity):
        Path(file).symlink_to("/etc/passwd")
    with pytest.raises(OddFile):
        page_of_output(worker, "stdout", begin=0, before=None, limit=10)
    with pytest.raises(OddFile):
        output_between(worker, "stdout", 0, 10)
    with pytest.raises(OddFile):
        page_of_activity(worker, begin=0, before=None, limit=10)


# -- what it did -------------------------------------------------------------------------------------------------------


def pages_of_activity(worker: WorkerDir, limit: int, *, forwards: bool) -> Iterator[RowPage]:
    """Yield all pages, each after the one before."""
    at: int | None = 0 if forwards else None
    for _ in range(1000):
        page = page_of_activity(
            worker, begin=at if forwards else None, before=None if forwards else at, limit=limit, is_whole=True
        )
        assert len(page.rows) <= limit
        if page.begin == page.end:
            return
        yield page
        at = page.end if forwards else page.begin
    raise AssertionError("it does not come to an end")


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make all bounds so small that short files reach them."""
    for name, value in (("_PAGE_BYTES", 64), ("_STEP", 16), ("_LONGEST_ROW", 128)):
        monkeypatch.setattr(text_pages, name, value)


_LINES = st.one_of(
    st.builds(lambda text: json.dumps({"type": "note", "text": text}).encode(), st.text(max_size=80)),
    st.binary(max_size=200).map(lambda data: data.replace(b"\n", b"")),
    st.just(b""),
)


@with_files
@given(st.lists(_LINES, max_size=12), st.binary(max_size=300).map(lambda data: data.replace(b"\n", b"")),
       st.integers(1, 5), st.booleans())  # fmt: skip
@pytest.mark.usefixtures("small")
def test_pages_of_an_activity_are_all_of_it(
    worker: WorkerDir, lines: list[bytes], torn: bytes, limit: int, forwards: bool
) -> None:
    data = b"".join(line + b"\n" for line in lines)
    Path(worker.activity).write_bytes(data + torn)
    pages = list(pages_of_activity(worker, limit, forwards=forwards))
    pages = pages if forwards else pages[::-1]
    assert [page.begin for page in pages] == [0, *(page.end for page in pages)][: len(pages)]
    assert (pages[-1].end if pages else 0) == len(data)
    offsets = list(itertools.accumulate((len(line) + 1 for line in lines), initial=0))
    found = [row for page in pages for row in page.rows]
    assert [row["offset"] for row in found] == [at for at, line in zip(offsets, lines, strict=False) if line.strip()]
    by_offset = dict(zip(offsets, lines, strict=False))
    for row in found:
        line = by_offset[row["offset"]]
        if len(line) >= 128:
            assert "longer than" in row["problem"]
        elif "problem" not in row:
            assert {**json.loads(line), "offset": row["offset"]} == row


@with_files
@given(st.binary(max_size=400), st.integers(0, 500), st.integers(1, 5), st.booleans())
@pytest.mark.usefixtures("small")
def test_any_page_of_an_activity(worker: WorkerDir, data: bytes, at: int, limit: int, forwards: bool) -> None:
    Path(worker.activity).write_bytes(data)
    page = page_of_activity(worker, begin=at if forwards else None, before=None if forwards else at, limit=limit)
    assert 0 <= page.begin <= page.end <= page.size == len(data)
    assert page.end <= (len(data) if forwards else min(at, len(data)))
    assert all(page.begin <= row["offset"] < page.end for row in page.rows)


def test_a_page_is_bounded(worker: WorkerDir) -> None:
    row = json.dumps({"type": "note", "text": "x" * 1000}) + "\n"
    Path(worker.activity).write_text(row * 2000)
    for given_ in ({"begin": 0, "before": None}, {"begin": None, "before": None}):
        page = page_of_activity(worker, limit=1000, **given_)
        assert 300 < len(page.rows) < 700


def test_long_values_are_cut_unless_all_is_wanted(worker: WorkerDir) -> None:
    rows: list[dict[str, Any]] = [
        {"type": "note", "text": "x" * 4001}, {"type": "note", "text": "x" * 4000},
        {"type": "tool", "detail": {"list": list(range(201)), **{f"k{n}": n for n in range(300)}}},
        {"type": "tool", "detail": {str(n): {str(m): "y" * 4000 for m in range(20)} for n in range(20)}},
    ]  # fmt: skip
    Path(worker.activity).write_text("".join(json.dumps(row) + "\n" for row in rows))
    first = page_of_activity(worker, begin=0, before=None, limit=10)  # The last one is a page by itself.
    found = [*first.rows, *page_of_activity(worker, begin=first.end, before=None, limit=10).rows]
    assert [row["cut"] for row in found] == [True, False, True, True]
    assert [row["cutAt"] for row in found[:3]] == [[["text"]], [], [["detail"], ["detail", "list"]]]
    missing = [name for name, value in found[3]["detail"].items() if value is None or None in value.values()]
    assert found[3]["cutAt"] == [["detail", name] for name in missing]
    assert len(found[0]["text"]) == 4000
    assert len(found[2]["detail"]["list"]) == 200
    assert max(len(json.dumps(row)) for row in found) < 100_000
    whole = [
        {key: value for key, value in row.items() if key != "offset"}
        for begin in (0, first.end)
        for row in page_of_activity(worker, begin=begin, before=None, limit=10, is_whole=True).rows
    ]
    assert whole == rows


@pytest.mark.parametrize("is_whole", [True, False])
def test_rows_of_strangers(worker: WorkerDir, is_whole: bool) -> None:
    lines = [
        b"null", b"[]", b"{}", b'{"type": 5}', b"\xff", b'{"type":"x","n":NaN,"i":1e999}', b"9" * 5000,
        b'{"type":"x","text":"\\ud83d","\\ud800":1}', b'{"type":"x","d":' + b"[" * 900 + b"]" * 900 + b"}",
        b"[" * 100_000, b'{"type":"x","offset":"forged","problem":7,"cut":"no","cutAt":5}', b'{"type":"x","type":"y"}',
    ]  # fmt: skip
    Path(worker.activity).write_bytes(b"".join(line + b"\n" for line in lines))
    page = page_of_activity(worker, begin=0, before=None, limit=100, is_whole=is_whole)
    offsets = list(itertools.accumulate((len(line) + 1 for line in lines), initial=0))
    assert [row["offset"] for row in page.rows] == offsets[:-1]
    assert json.dumps(page.rows).isascii()
    assert page.rows[8]["d"] == "(nested too deeply to be shown)"
    assert not any("\ud800" <= letter <= "\udfff" for letter in repr(page.rows[7]))


def test_a_line_without_end_costs_no_memory(worker: WorkerDir, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_pages, "_LONGEST_ROW", 1 << 20)
    row = b'{"type":"note"}\n'
    Path(worker.activity).write_bytes(row + b"x" * (20 << 20) + b"\n" + row)
    tracemalloc.start()
    forwards = [row.get("problem") for page in pages_of_activity(worker, 2, forwards=True) for row in page.rows]
    backwards = [row.get("problem") for page in pages_of_activity(worker, 2, forwards=False) for row in page.rows]
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert forwards == [None, "longer than 1048576 bytes", None]
    assert len(backwards) == 3
    assert most < 8 << 20
