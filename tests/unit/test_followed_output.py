"""At stake: what is followed says in the end what it would say if it had been printed then, and no frame twice."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import pairwise

import pyte
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentctl.domain.text.plaintext import plain
from agentctl.domain.text.terminal_output import rows_of_text
from agentctl.interfaces.words.looks.followed_output import QUIET_S, FollowedOutput, FollowedRows

TOKENS = (
    "a", "bc ", "def", "\x1b[31m", "\x1b[m", "中", "\n", "\n\n", "\r", "\r\n", "\t", "\b",
    "\x1b[A", "\x1b[2A", "\x1b[5A", "\x1b[B", "\x1b[3B", "\x1b[K", "\x1b[2K", "\x1b[J", "\x1b[5C", "\x1b[3D", "\x1b[1G",
)  # fmt: skip
OUTPUTS = st.lists(st.sampled_from((*TOKENS, "x\n" * 70)), max_size=60).map("".join)


class Screen:
    """A terminal as a person has it, with all that has left it above."""

    def __init__(self, columns: int, lines: int) -> None:
        self.screen = pyte.HistoryScreen(columns, lines, history=100_000, ratio=0.5)
        self.screen.set_mode(pyte.modes.LNM)
        self.stream = pyte.Stream(self.screen)
        self.size = os.terminal_size((columns, lines))

    def rows(self) -> FollowedRows:
        """Return what prints on it."""
        return FollowedRows(has_colours=False, size=lambda: self.size)

    def shown(self) -> list[str]:
        """Return all lines, up to the last one that has something."""
        above = ["".join(line[x].data for x in range(self.size.columns)) for line in self.screen.history.top]
        lines = [line.rstrip() for line in (*above, *self.screen.display)]
        while lines and not lines[-1]:
            lines.pop()
        return lines


def wrapped(rows: list[str], columns: int) -> list[str]:
    """Return rows as lines of a terminal."""
    screen = Screen(columns, 10)
    screen.stream.feed("".join(f"{row}\n" for row in rows))
    return screen.shown()


def texts(output: str) -> list[str]:
    """Return the rows that `logs` prints of an output."""
    return [row.text for row in rows_of_text(output)]


def pieces(output: str, cuts: list[int]) -> Iterator[bytes]:
    """Yield an output, cut at any bytes."""
    data = output.encode()
    places = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    yield from (data[begin:end] for begin, end in pairwise(places))


CUTS = st.lists(st.integers(0, 200), max_size=20)


@given(OUTPUTS, CUTS, st.sampled_from([7, 20, 80]))
@example("a\nb\nc\n\x1b[2A\x1b[J", [], 20)
@example("one\x1b[5C\n\x1b[Atwo", [3, 9], 7)
def test_a_screen_shows_in_the_end_what_is_printed_in_the_end(output: str, cuts: list[int], columns: int) -> None:
    screen = Screen(columns, 400)
    rows = screen.rows()
    for piece in pieces(output, cuts):
        screen.stream.feed(rows.feed(piece))
    screen.stream.feed(rows.feed(b"", is_last=True))
    assert screen.shown() == wrapped(texts(output), columns)


@given(OUTPUTS, CUTS, st.sampled_from([(7, 3), (20, 6), (80, 2)]))
def test_a_small_screen_loses_nothing(output: str, cuts: list[int], size: tuple[int, int]) -> None:
    screen = Screen(*size)
    rows = screen.rows()
    for piece in pieces(output, cuts):
        screen.stream.feed(rows.feed(piece))
    screen.stream.feed(rows.feed(b"", is_last=True))
    shown = "".join(screen.shown()).replace(" ", "")
    assert all(text.replace(" ", "") in shown for text in texts(output))


@given(OUTPUTS, CUTS)
def test_where_nothing_can_be_taken_back_each_row_is_printed_once(output: str, cuts: list[int]) -> None:
    rows = FollowedRows(has_colours=False, size=None)
    printed = "".join(rows.feed(piece) for piece in pieces(output, cuts)) + rows.feed(b"", is_last=True)
    assert printed == "".join(f"{text}\n" for text in texts(output))


def bars(count: int, frames: int) -> Iterator[str]:
    """Yield the frames of a display as docker draws it: each row by a way up to it, and back."""
    yield "".join(f"layer{number} waiting\n" for number in range(count))
    for frame in range(frames):
        for number in range(count):
            up = count - number
            yield f"\x1b[{up}A\r\x1b[2Klayer{number} {frame}\r\x1b[{up}B"
    for number in range(count):
        up = count - number
        yield f"\x1b[{up}A\r\x1b[2Klayer{number} done\r\x1b[{up}B"


@pytest.mark.parametrize("size", [(80, 24), (40, 10)])
def test_a_display_of_bars_is_there_once(size: tuple[int, int]) -> None:
    screen = Screen(*size)
    rows = screen.rows()
    for piece in ("$ pull\n" * 20, *bars(3, 30), "pulled\n"):
        screen.stream.feed(rows.feed(piece.encode()))
        assert len(screen.shown()) <= 24
    screen.stream.feed(rows.feed(b"", is_last=True))
    assert screen.shown() == ["$ pull"] * 20 + [f"layer{number} done" for number in range(3)] + ["pulled"]


def test_a_display_higher_than_the_screen_is_there_twice_at_most() -> None:
    screen = Screen(40, 10)
    rows = screen.rows()
    for piece in bars(20, 30):
        screen.stream.feed(rows.feed(piece.encode()))
    screen.stream.feed(rows.feed(b"", is_last=True))
    done = [f"layer{number} done" for number in range(20)]
    assert screen.shown() == [*(f"layer{number} waiting" for number in range(11)), *done]


def test_after_the_window_has_got_another_size_it_goes_on_below() -> None:
    screen = Screen(80, 24)
    rows = screen.rows()
    first, *further = bars(3, 2)
    screen.stream.feed(rows.feed(first.encode()))
    screen.size = os.terminal_size((60, 12))
    screen.screen.resize(12, 60)
    for piece in further:
        screen.stream.feed(rows.feed(piece.encode()))
    screen.stream.feed(rows.feed(b"", is_last=True))
    waiting, done = ([f"layer{number} {what}" for number in range(3)] for what in ("waiting", "done"))
    assert screen.shown() == [*waiting, *done]


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.at = 0.0

    def __call__(self) -> float:
        return self.at


@given(st.lists(st.tuples(st.sampled_from(["out", "err"]), OUTPUTS), max_size=8), st.sampled_from([20, 80]))
@example([("out", "\na\x1b[A"), ("err", "b")], 20)
def test_of_two_streams_in_turn_nothing_is_lost(turns: list[tuple[str, str]], columns: int) -> None:
    screen = Screen(columns, 100)
    output = FollowedOutput(has_colours=False, size=lambda: screen.size, now=Clock())
    for stream, text in turns:
        screen.stream.feed(output.feed(stream, text.encode()))
    screen.stream.feed(output.end())
    shown = "".join(screen.shown()).replace(" ", "")
    for name in ("out", "err"):
        for row in texts("".join(text for stream, text in turns if stream == name)):
            assert row.replace(" ", "") in shown


def test_a_bar_stays_below_the_lines_of_the_other_stream() -> None:
    screen = Screen(40, 10)
    output = FollowedOutput(has_colours=False, size=lambda: screen.size, now=Clock())
    for number in range(30):
        screen.stream.feed(output.feed("err", f"\r{number} %".encode()))
        screen.stream.feed(output.feed("out", f"line {number}\n".encode()))
        assert screen.shown()[-1] == f"{number} %"
    screen.stream.feed(output.beside("a sentence\n"))
    assert screen.shown()[-2:] == ["a sentence", "29 %"]
    screen.stream.feed(output.end())
    assert screen.shown() == [*(f"line {number}" for number in range(30)), "a sentence", "29 %"]


GROWING = st.lists(st.sampled_from(["a", "bc ", "def", "\n", "\r", "\r\x1b[K"]), max_size=12).map("".join)


@given(
    st.lists(st.tuples(st.sampled_from(["out", "err", "beside"]), GROWING), max_size=8), st.permutations(["out", "err"])
)
@example([("err", "\r1 %"), ("out", "Continue? "), ("beside", "a fact")], ["err", "out"])
def test_what_was_set_aside_is_there_again_once_the_other_stream_has_ended_its_line(
    turns: list[tuple[str, str]], ends: list[str]
) -> None:
    screen = Screen(80, 200)
    output = FollowedOutput(has_colours=False, size=lambda: screen.size, now=Clock())
    fed = {"out": "", "err": ""}
    for stream, text in [*turns, ("beside", "at last"), (ends[0], "\n")]:
        if stream == "beside":
            screen.stream.feed(output.beside(f"{text}\n"))
        else:
            fed[stream] += text
            screen.stream.feed(output.feed(stream, text.encode()))
    shown = screen.shown()
    assert all(row.rstrip() in shown for text in fed.values() for row in texts(text) if row)


def test_a_question_of_the_program_comes_back_once_a_bar_beside_it_has_ended() -> None:
    screen = Screen(40, 10)
    output = FollowedOutput(has_colours=False, size=lambda: screen.size, now=Clock())
    for stream, data in (("err", b"\r1 %"), ("out", b"Continue? ")):
        screen.stream.feed(output.feed(stream, data))
    screen.stream.feed(output.beside("a sentence\n"))
    screen.stream.feed(output.feed("err", b"\r100 %\n"))
    assert [line.rstrip() for line in screen.shown()] == ["a sentence", "100 %", "Continue?"]


def test_a_pipe_gets_what_has_not_changed_for_a_while_and_no_frames() -> None:
    clock = Clock()
    output = FollowedOutput(has_colours=False, size=None, now=clock)
    told = []
    for frame in bars(3, 50):
        clock.at += 0.03
        told.append(output.feed("out", frame.encode()))
    assert "".join(told) == ""
    for _ in range(2):
        clock.at += output.within_s() or 0
        told.append(output.quiet())
    assert "".join(told) == "layer0 done\nlayer1 done\nlayer2 done\n"
    assert (output.within_s(), output.end()) == (None, "")


def test_a_pipe_gets_lines_without_waiting_for_more_of_them() -> None:
    clock = Clock()
    output = FollowedOutput(has_colours=False, size=None, now=clock)
    told = output.feed("out", b"one\n")
    while (left := output.within_s()) is not None:
        clock.at += left
        told += output.quiet()
    assert (told, clock.at <= 2 * QUIET_S) == ("one\n", True)
    assert output.feed("out", b"tw") + output.quiet() == ""
    assert output.end() == "tw\n"


def test_who_prints_something_else_prints_what_is_held_before_it() -> None:
    output = FollowedOutput(has_colours=False, size=None, now=Clock())
    assert [output.feed("out", b"one\ntw"), output.feed("err", b"bad\n")] == ["", ""]
    assert (output.leave(), output.within_s()) == ("one\nbad\n", None)
    screen = FollowedOutput(has_colours=False, size=lambda: os.terminal_size((80, 24)), now=Clock())
    assert [screen.feed("out", b"one"), screen.leave(), screen.leave()] == ["one", "\n", ""]


def printed(*given_pieces: str, columns: int = 20) -> list[str]:
    """Return what is printed of each piece of an output that is followed at a terminal."""
    rows = FollowedRows(has_colours=True, size=lambda: os.terminal_size((columns, 24)))
    return [rows.feed(piece.encode()) for piece in given_pieces]


def test_of_a_line_that_grows_only_what_is_new_is_printed_however_wide_it_is() -> None:
    words = [f"word{number} " for number in range(500)]
    assert printed(*words, "\n", "next") == [*words, "\n", "next"]
    assert printed("\x1b[31mred", "der\x1b[m ", "\x1b[32mgreen\nend") == [
        "\x1b[31mred\x1b[0m", "\x1b[31mder\x1b[0m ", "\x1b[32mgreen\x1b[0m\n\x1b[32mend\x1b[0m",
    ]  # fmt: skip
    assert printed("==>", "\r====>", "\r======") == ["==>", "\r\x1b[K====>", "\r\x1b[K======"]
    assert printed("==", "\r====") == ["==", "=="]


def test_a_row_that_is_wrapped_is_printed_over_whole() -> None:
    assert printed("中" * 10, "\r\x1b[K2") == ["中" * 10, "\r\x1b[K2"]
    assert printed("中" * 11, "\r\x1b[K2") == ["中" * 11, "\r\x1b[1A\x1b[K\x1b[B\x1b[J\x1b[A2"]


@given(
    st.lists(st.sampled_from((*TOKENS, "\x1b]0;title\a", "\x1b[?25l", "\x1b[999A", "\x1b[2J", "\x9b5n", "\u202e"))),
    CUTS,
)
def test_nothing_else_is_printed_than_safe_text_and_motions_of_our_own(tokens: list[str], cuts: list[int]) -> None:
    rows = FollowedRows(has_colours=True, size=lambda: os.terminal_size((20, 6)))
    printed = "".join(rows.feed(piece) for piece in pieces("".join(tokens), cuts))
    text = re.sub(r"\x1b\[(?:\d*A|[BJK]|[\d;]*m)|\r", "", printed)
    assert plain(text, keep="\n") == text
    assert all(0 < int(up) < 6 for up in re.findall(r"\x1b\[(\d+)A", printed))
