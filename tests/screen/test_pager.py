"""At stake: what a pager shows is what is in the file, safe to draw, at the place where the person left it."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from textual import events
from textual.app import App, ComposeResult
from textual.message import Message
from textual.pilot import Pilot
from textual.widget import Widget
from textual.widgets import Input, Static

from agentctl.domain.activity.row import Phase, Row, RowType, encode_row
from agentctl.interfaces.screen.texts.activity_source import ActivitySource
from agentctl.interfaces.screen.texts.log_source import LogSource
from agentctl.interfaces.screen.texts.pager import Pager
from agentctl.interfaces.screen.texts.source_file import SourceFile
from agentctl.interfaces.screen.texts.sources import TextSource
from agentctl.interfaces.screen.worker.logs_screen import LogWall
from tests.screens import open_files
from tests.support import start_argv, wait_until

SIZE = (60, 12)
#: The rows of text in a pager of that size; the last row is the footer.
ROWS = SIZE[1] - 1


class Screen(App[None]):
    """Shows one widget."""

    def __init__(self, shown: Widget) -> None:
        super().__init__()
        self.shown = shown

    def compose(self) -> ComposeResult:
        yield self.shown


Steps = Callable[[Pilot[None]], Awaitable[None]]


def run(shown: Widget, steps: Steps, size: tuple[int, int] = SIZE) -> None:
    """Run an app with one widget, and leave no thread and no descriptor behind."""

    async def main() -> None:
        async with Screen(shown).run_test(size=size) as pilot:
            shown.focus()
            await settled(pilot)
            await steps(pilot)

    threads, descriptors = threading.active_count(), open_files()
    asyncio.run(main())
    wait_until(threading.active_count, accept=lambda count: count <= threads, what="the threads to end")
    wait_until(open_files, accept=lambda count: count <= descriptors, what="no open file")


async def settled(pilot: Pilot[None]) -> None:
    """Wait until all pagers have read their files, and all is drawn."""
    await pilot.pause()
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()


async def until(pilot: Pilot[None], holds: Callable[[], object], what: str) -> None:
    give_up_at = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < give_up_at, f"waited for {what}, without success"
        await pilot.pause(0.01)


def rows_of(pager: Pager) -> list[str]:
    """Return the rows of text as they are drawn."""
    return [pager.render_line(y).text.rstrip() for y in range(pager.size.height - 1)]


def footer_of(pager: Pager) -> str:
    return pager.render_line(pager.size.height - 1).text.strip()


def numbered(count: int, first: int = 0) -> bytes:
    return b"".join(b"line %d\n" % number for number in range(first, first + count))


def put(path: Path, data: bytes) -> None:
    path.write_bytes(data)


def log_of(path: Path, data: bytes, *, watches: bool = False, follows: bool = True) -> Pager:
    path.write_bytes(data)
    return Pager(LogSource(path), watches=watches, follows=follows)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "stdout"


# -- moving --------------------------------------------------------------------------------------------------------


def test_it_begins_at_the_end_and_each_key_moves_as_it_says(log: Path) -> None:
    pager = log_of(log, numbered(100))
    moves = [
        ((), 89), (("up",), 88), (("k", "k"), 86), (("down",), 87), (("j",), 88), (("pageup",), 78), (("b",), 68),
        (("pagedown",), 78), (("space",), 88), (("pagedown",), 89), (("home",), 0), (("up",), 0), (("end",), 89),
        (("g",), 0), (("j", "G"), 89), (("j",), 89),
    ]  # fmt: skip

    async def steps(pilot: Pilot[None]) -> None:
        for keys, top in moves:
            await pilot.press(*keys)
            assert rows_of(pager) == [f"line {top + row}" for row in range(ROWS)], keys

    run(pager, steps)


def test_the_mouse_wheel_scrolls(log: Path) -> None:
    pager = log_of(log, numbered(100))

    async def steps(pilot: Pilot[None]) -> None:
        pager.post_message(wheel(pager, up=True))
        await pilot.pause()
        assert rows_of(pager)[0] == "line 86"
        pager.post_message(wheel(pager, up=False))
        await pilot.pause()
        assert rows_of(pager)[0] == "line 89"

    run(pager, steps)


def wheel(pager: Pager, *, up: bool) -> Message:
    kind = events.MouseScrollUp if up else events.MouseScrollDown
    return kind(pager, 1, 1, 0, 0, 0, shift=False, meta=False, ctrl=False)


@pytest.mark.slow
def test_lines_that_are_not_wrapped_are_scrolled_to_the_side(log: Path) -> None:
    pager = log_of(log, b"0123456789" * 20 + b"\n" + "漢字".encode() * 60 + b"\n", follows=False)

    async def steps(pilot: Pilot[None]) -> None:
        assert rows_of(pager)[:4] == ["0123456789" * 6] * 3 + ["0123456789" * 2]
        await pilot.press("l")
        assert rows_of(pager)[3] == "0123456789" * 2
        await pilot.press("w")
        assert rows_of(pager)[:3] == ["0123456789" * 6, "漢字" * 15, ""]
        await pilot.press("right", "l")
        assert rows_of(pager)[:2] == [("0123456789" * 9)[16:76], "漢字" * 15]
        await pilot.press("left", "h", "h")
        assert rows_of(pager)[0] == "0123456789" * 6
        await pilot.press(*["l"] * 24)
        assert rows_of(pager)[:2] == ["23456789", "漢字" * 12]

    run(pager, steps)


def test_a_change_of_form_keeps_what_is_at_the_top(log: Path) -> None:
    long = b"".join(b"%d %s\n" % (number, b"x" * 200) for number in range(100))
    pager = log_of(log, long, follows=False)

    async def steps(pilot: Pilot[None]) -> None:
        await pilot.press(*["pagedown"] * 8, "j")
        assert rows_of(pager)[:4] == ["x" * 60, "x" * 60, "x" * 23, "21 " + "x" * 57]
        await pilot.press("w")
        assert rows_of(pager)[0].startswith("20 xxx")
        await pilot.press("w")
        assert pager.top == (20, 0, 0)

    run(pager, steps)


def test_a_resize_keeps_what_is_at_the_top(log: Path) -> None:
    pager = log_of(log, b"".join(b"%d\n%s\n" % (number, b"x" * 1200) for number in range(100)), follows=False)

    async def steps(pilot: Pilot[None]) -> None:
        await pilot.press(*["pagedown"] * 6, "j")
        assert (pager.top, len(rows_of(pager))) == ((5, 0, 18), 11)
        for width, height, row in ((40, 24, 27), (20, 60, 54), (120, 24, 9), (60, 12, 18)):
            await pilot.resize_terminal(width, height)
            await pilot.pause()
            assert (pager.top, len(rows_of(pager))) == ((5, 0, row), height - 1)

    run(pager, steps)


@pytest.mark.slow
def test_no_size_is_too_small(log: Path) -> None:
    pager = log_of(log, numbered(50) + "漢字".encode() * 40 + b"\t\n")

    async def steps(pilot: Pilot[None]) -> None:
        for size in ((1, 1), (2, 2), (3, 1), (200, 60), (80, 24)):
            await pilot.resize_terminal(*size)
            await pilot.press("pageup", "pagedown", "w", "l", "w", "end")
            assert all(pager.render_line(y).cell_length == size[0] for y in range(size[1]))
        assert rows_of(pager)[0] == "line 29"

    run(pager, steps)


# -- following -----------------------------------------------------------------------------------------------------


def test_it_follows_what_a_process_appends_until_it_is_scrolled_up(log: Path) -> None:
    pager = log_of(log, b"", watches=True)
    program = (
        "import sys\n"
        "for number in range(30): print('line', number, flush=True)\n"
        "sys.stdin.readline()\n"
        "for number in range(30, 40): print('line', number, flush=True)\n"
        "sys.stdin.readline()\n"
    )

    async def steps(pilot: Pilot[None]) -> None:
        assert rows_of(pager)[0] == "no output yet"
        with log.open("ab") as file:
            process = start_argv(
                [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=file.fileno(), stderr=None
            )
        assert process.stdin is not None
        await until(pilot, lambda: rows_of(pager)[-1] == "line 29", "the first lines")
        assert footer_of(pager) == "following  30 of 30"
        await pilot.press("up")
        before = rows_of(pager)
        print(file=process.stdin, flush=True)
        await until(pilot, lambda: "10 new below" in footer_of(pager), "the others")
        assert rows_of(pager) == before
        await pilot.press("f")
        assert rows_of(pager)[-1] == "line 39"
        await pilot.press("f", "f", "f")
        assert footer_of(pager) == "100%  40 of 40"
        print(file=process.stdin, flush=True)
        process.wait(10)
        process.stdin.close()

    run(pager, steps)


def test_an_app_that_watches_itself_asks_for_what_is_new(log: Path) -> None:
    pager = log_of(log, numbered(3))

    async def steps(pilot: Pilot[None]) -> None:
        with log.open("ab") as file:
            file.write(b"more, not yet en")
        for _ in range(50):
            pager.refresh_source()
        await settled(pilot)
        assert rows_of(pager)[3] == "more, not yet en"
        with log.open("ab") as file:
            file.write(b"ded\n")
        pager.refresh_source()
        await settled(pilot)
        assert rows_of(pager)[3:5] == ["more, not yet ended", ""]

    run(pager, steps)


def test_a_file_that_was_cut_or_removed_or_is_no_file_any_more(log: Path) -> None:
    pager = log_of(log, numbered(10_000))

    async def steps(pilot: Pilot[None]) -> None:
        await pilot.press("g", "j", "m")
        put(log, b"short\n")
        pager.refresh_source()
        await settled(pilot)
        assert rows_of(pager)[:2] == ["short", ""]
        os.unlink(log)
        pager.refresh_source()
        await settled(pilot)
        assert rows_of(pager)[0] == "short"
        os.mkfifo(log)
        pager.refresh_source()
        await settled(pilot)
        assert rows_of(pager)[0] == "short"
        assert "FIFO" in footer_of(pager)

    run(pager, steps, size=(300, 12))


def test_a_divider_stays_between_what_was_and_what_comes(log: Path) -> None:
    pager = log_of(log, numbered(2))

    async def steps(pilot: Pilot[None]) -> None:
        await pilot.press("m")
        assert rows_of(pager)[2].startswith("-- ")
        assert rows_of(pager)[2].endswith("-" * 40)
        with log.open("ab") as file:
            file.write(numbered(30, 2))
        pager.refresh_source()
        await settled(pilot)
        assert rows_of(pager)[-1] == "line 31"
        await pilot.press("g")
        assert rows_of(pager)[1] == "line 1"
        assert rows_of(pager)[2].startswith("-- ")
        assert rows_of(pager)[3] == "line 2"
        await pilot.press("j", "j")
        assert rows_of(pager)[0].startswith("-- ")
        await pilot.press("j", "k", "k")
        assert rows_of(pager)[0] == "line 1"

    run(pager, steps)


# -- searching -----------------------------------------------------------------------------------------------------


async def search(pilot: Pilot[None], text: str) -> None:
    await pilot.press("slash", *text, "enter")
    await settled(pilot)


def drawn(pager: Pager, style: str) -> list[str]:
    """Return what is drawn in one of the pager's styles."""
    wanted = pager.get_component_rich_style(f"pager--{style}")
    return [
        segment.text
        for y in range(pager.size.height - 1)
        for segment in pager.render_line(y)
        if segment.style is not None and segment.style.bgcolor == wanted.bgcolor and segment.text.strip()
    ]


@pytest.mark.slow
def test_a_search_goes_from_hit_to_hit_and_counts_them(log: Path) -> None:
    pager = log_of(log, numbered(300), follows=False)

    async def steps(pilot: Pilot[None]) -> None:
        await search(pilot, "LINE")
        assert "not found: LINE" in footer_of(pager)
        await search(pilot, "ine 25")
        assert drawn(pager, "current-hit") == ["ine 25"]
        assert "/ine 25  1 of 11" in footer_of(pager)
        await pilot.press("n")
        await settled(pilot)
        assert "2 of 11" in footer_of(pager)
        assert drawn(pager, "current-hit") == ["ine 25"]
        assert "line 250" in rows_of(pager)
        assert len(drawn(pager, "hit")) >= 3
        await pilot.press("N", "N")
        await settled(pilot)
        await pilot.press("N")
        await settled(pilot)
        assert "line 258" in rows_of(pager)
        await pilot.press("escape")
        assert drawn(pager, "hit") == drawn(pager, "current-hit") == []
        assert "ine" not in footer_of(pager)

    run(pager, steps)


@pytest.mark.slow
def test_hits_are_counted_once_however_fast_one_goes_from_one_to_the_next(log: Path) -> None:
    pager = log_of(log, numbered(60_000), follows=False)

    async def steps(pilot: Pilot[None]) -> None:
        await search(pilot, "line")
        pager.action_forget_search()
        await pilot.press("slash", *"7", "enter")
        for _ in range(8):
            pager.action_hit(1)
            await pilot.pause(0.001)
        await settled(pilot)
        assert f" of {sum('7' in str(number) for number in range(60_000)):,}" in footer_of(pager)

    run(pager, steps)


def test_a_search_that_is_typed_can_be_left_and_its_letters_are_no_keys(log: Path) -> None:
    pager = log_of(log, numbered(300))

    async def steps(pilot: Pilot[None]) -> None:
        await pilot.press("slash", "g", "m")
        assert pager.query_one(Input).has_focus
        assert rows_of(pager)[0] == "line 289"
        await pilot.press("escape")
        assert pager.has_focus
        assert not pager.query_one(Input).display
        await pilot.press("n")
        assert rows_of(pager)[0] == "line 289"

    run(pager, steps)


def test_a_search_in_a_transcript_finds_words_that_are_in_no_row(tmp_path: Path) -> None:
    path = tmp_path / "activity.jsonl"
    rows = [
        {"at": "2026-11-21T20:00:01.000Z", "type": "thought", "id": f"t{number}", "text": f"idea {number}\nmore"}
        for number in range(100)
    ]
    path.write_bytes(b"".join(json.dumps(row).encode() + b"\n" for row in rows))
    pager = Pager(ActivitySource(path), follows=False)

    async def steps(pilot: Pilot[None]) -> None:
        assert rows_of(pager)[:2] == ["20:00:01  (thinks) idea 0", "          more"]
        await search(pilot, "thinks")
        assert "1 of 100" in footer_of(pager)
        await search(pilot, "more")
        assert drawn(pager, "current-hit") == ["more"]

    run(pager, steps)


# -- what strangers write ------------------------------------------------------------------------------------------


def test_nothing_that_a_worker_prints_is_obeyed_by_the_terminal(log: Path) -> None:
    hostile = [
        b"\x1b[2J\x1b]0;owned\x07",
        "\u202eevil\u2066".encode(),
        b"\x9b31m\xff\x00",
        "\u200f\u2028".encode(),
        b"[bold]x[/]",
    ]
    pager = log_of(log, b"\n".join(hostile))

    async def steps(pilot: Pilot[None]) -> None:
        assert rows_of(pager)[:5] == [
            "", "\\u202eevil\\u2066", "\\x9b31m\\xff", "\\u200f\\u2028", "[bold]x[/]",
        ]  # fmt: skip
        text = "".join(segment.text for y in range(pager.size.height) for segment in pager.render_line(y))
        assert text.isprintable()

    run(pager, steps)


@pytest.mark.parametrize("kind", ["log", "transcript"])
def test_a_line_of_megabytes_is_drawn_and_searched_at_once(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "file"
    if kind == "log":
        path.write_bytes(b"first\n" + "漢x".encode() * 1_250_000 + b"omega\nlast\n")
        pager = Pager(LogSource(path))
    else:
        said = ["first", "漢x" * 600_000, "last omega"]
        rows = [{"type": "message", "id": str(number), "text": text} for number, text in enumerate(said)]
        path.write_bytes(b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows))
        pager = Pager(ActivitySource(path))

    async def steps(pilot: Pilot[None]) -> None:
        began = time.process_time()
        for key in ("pageup", "pageup", "g", "pagedown", "w", "G", "pageup", "w", "up"):
            await pilot.press(key)
        assert time.process_time() - began < 5
        await search(pilot, "omega")
        assert drawn(pager, "current-hit") == ["omega"]

    run(pager, steps)


def test_an_output_has_its_colours_and_a_progress_bar_its_present_state(log: Path) -> None:
    pager = log_of(log, b"src:\x1b[01;31m\x1b[Kold\x1b[m\x1b[K \x1b[38;2;1;2;3;4mtrue\x1b[m\n1 %\r50 %\r99 %")

    async def steps(pilot: Pilot[None]) -> None:
        assert rows_of(pager)[:2] == ["src:old true", "99 %"]
        styles = {segment.text: segment.style for segment in pager.render_line(0) if segment.style is not None}
        assert styles["old"].bold
        assert styles["old"].color != styles["src:"].color
        assert styles["true"].underline
        assert styles["true"].color is not None
        assert styles["true"].color.triplet == (1, 2, 3)
        await search(pilot, "old true")
        assert drawn(pager, "current-hit") == ["old true"]

    run(pager, steps)


# -- themes, and several at once -----------------------------------------------------------------------------------


def test_a_diff_is_coloured_by_the_theme(log: Path) -> None:
    pager = Pager(TextSource(lambda: "@@ -1 +1 @@\n-old\n+new\n same\n", is_diff=True), follows=False)

    def colours() -> list[object]:
        strips = [pager.render_line(y) for y in range(4)]
        return [next(iter(strip)).style.color for strip in strips]  # type: ignore[union-attr]

    async def steps(pilot: Pilot[None]) -> None:
        dark = colours()
        assert len(set(dark)) == 4
        pilot.app.theme = "textual-light"
        await pilot.pause()
        assert len(set(colours())) == 4
        assert colours() != dark

    run(pager, steps)


def test_why_there_is_nothing_is_shown(log: Path) -> None:
    os.mkfifo(log)
    pager = Pager(LogSource(log))

    async def steps(pilot: Pilot[None]) -> None:
        assert "FIFO" in rows_of(pager)[0]

    run(pager, steps, size=(200, 5))


def test_a_text_that_cannot_be_made_is_said_and_nothing_ends() -> None:
    def load() -> str:
        raise ValueError("nobody\x1b foresaw it")

    pager = Pager(TextSource(load))

    async def steps(pilot: Pilot[None]) -> None:
        assert rows_of(pager)[0] == r"ValueError: nobody\x1b foresaw it"

    run(pager, steps)


def test_what_cannot_be_read_any_more_is_said_in_its_place_and_nothing_ends(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pager = log_of(log, numbered(10_000))

    def read(*_: object) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    async def steps(pilot: Pilot[None]) -> None:
        assert isinstance(pager.source, LogSource)
        pager.source._index.cached.clear()
        monkeypatch.setattr(SourceFile, "read", read)
        await pilot.press("g")
        assert rows_of(pager)[0] == "(this cannot be read: [Errno 5] Input/output error)"
        await pilot.press("slash", *"line", "enter")
        await until(pilot, lambda: "Input/output error" in footer_of(pager), "the problem of the search")
        pager.refresh_source()
        await settled(pilot)
        monkeypatch.undo()
        pager.refresh_source()
        await settled(pilot)
        assert rows_of(pager)[0] == "line 0"

    run(pager, steps)


def test_a_wall_shows_several_and_tab_moves_between_them(tmp_path: Path) -> None:
    pagers = [
        (name, log_of(tmp_path / name, b"of %s\n" % name.encode() * 50, watches=True)) for name in ("a-1", "a-2", "a-3")
    ]
    wall = LogWall(pagers)

    async def steps(pilot: Pilot[None]) -> None:
        assert pilot.app.focused is wall.pagers[0]
        assert [static.visual.plain for static in wall.query(Static)] == ["a-1", "a-2", "a-3"]  # type: ignore[attr-defined]
        assert [rows_of(pager)[0] for pager in wall.pagers] == ["of a-1", "of a-2", "of a-3"]
        await pilot.press("tab", "tab", "g")
        assert pilot.app.focused is wall.pagers[2]
        assert [pager.top.paragraph for pager in wall.pagers][2] == 0
        assert wall.pagers[1].top.paragraph > 0
        await pilot.press("tab")
        assert pilot.app.focused is wall.pagers[0]
        await pilot.press("shift+tab", "slash", "o")
        await pilot.press("tab")
        assert pilot.app.focused is wall.pagers[0]
        await pilot.resize_terminal(200, 30)
        await pilot.pause()
        assert [pager.region.width for pager in wall.pagers] == [100, 100, 100]
        await wall.remove()

    run(wall, steps, size=(60, 24))


@pytest.mark.parametrize("number", [0, 5])
def test_a_wall_has_one_to_four(number: int) -> None:
    with pytest.raises(ValueError, match="1 to 4"):
        LogWall([("name", Pager(TextSource(str)))] * number)


def test_a_pager_that_is_removed_while_it_reads_ends_its_threads(tmp_path: Path) -> None:
    path = tmp_path / "activity.jsonl"
    row = json.dumps({"type": "message", "id": "ID", "text": "x" * 500}).encode() + b"\n"
    path.write_bytes(b"".join(row.replace(b"ID", b"%d" % number) for number in range(40_000)))
    pager = Pager(ActivitySource(path), watches=True)

    async def main() -> None:
        async with Screen(pager).run_test(size=SIZE) as pilot:
            await until(pilot, lambda: len(pager.source) > 0, "the first rows")
            await pager.remove()

    before = threading.active_count()
    asyncio.run(main())
    assert 0 < len(pager.source) < 40_000
    assert threading.active_count() <= before


@pytest.mark.parametrize("step", ["", "j"])
@pytest.mark.parametrize("key", ["k", "j", "b", "w", "m"])
def test_a_key_may_come_before_the_pager_knows_that_its_text_was_replaced(tmp_path: Path, step: str, key: str) -> None:
    path = tmp_path / "activity.jsonl"
    path.write_bytes(said("\n".join(f"number {at} " + "x" * 70 for at in range(60))) + said("end") * 40)
    pager = Pager(ActivitySource(str(path)), follows=False)

    async def steps(pilot: Pilot[None]) -> None:
        await pilot.press("space", "space", "space", *step)
        path.write_bytes(said("short"))
        while pager.source.grow():  # As the thread does that reads on; its message comes only later.
            pass
        await pilot.press(key)
        pager.refresh_source()
        await settled(pilot)
        assert rows_of(pager)[0].endswith("short")

    run(pager, steps)


def said(text: str) -> bytes:
    """Return the row of an activity that says something."""
    return encode_row(Row(RowType.MESSAGE, "m", Phase.END, text=text), "2026-11-21T20:00:01.000Z")
