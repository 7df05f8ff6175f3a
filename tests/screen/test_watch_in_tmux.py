"""At stake: in a real terminal a person reads and acts without fear: no text takes it over, and it is left clean."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from rich.cells import cell_len

from agentctl.domain.question import SETTLES_S
from tests.steps import Task, held, kill, new_task, spawn, spawn_batch, statuses
from tests.support import is_alive, run, wait_until, worker
from tests.tmux import TmuxWindow, needs_tmux, tmux_window

pytestmark = needs_tmux
SIZES = [(80, 24), pytest.param(200, 60, marks=pytest.mark.slow)]


def asks(task: Task, name: str, *options: str) -> None:
    """Start a worker that asks, and wait until it is blocked."""
    spawn(worker("asks", *options, f"What does {name} want?"), name=name)
    task.has("agent.blocked", name)


def go_to(window: TmuxWindow, name: str) -> None:
    """Move the cursor down to a worker."""
    window.press("g")
    window.until(lambda: window.cursor_row() == 1, "the cursor on the first line")
    while f" {name} " not in window.rows()[(at := window.cursor_row())]:
        window.press("j")
        window.until(lambda: window.cursor_row() != at, f"the cursor on a line below {at}")


def answered(window: TmuxWindow, key: str, said: str) -> None:
    """Press a digit, and once more only where the screen says that it came too soon after the question.

    The next question comes at once behind an answer: a digit too many would be for that one.
    """
    too_soon = "press the digit again"
    while said not in window.text():
        window.shows_no(too_soon)
        settled_at = time.monotonic() + SETTLES_S
        window.until(partial(_has_come, settled_at), f"{SETTLES_S} s")
        window.press(key)
        window.until(lambda: said in window.text() or too_soon in window.text(), f"{said!r}")


def _has_come(moment: float) -> bool:
    return time.monotonic() >= moment


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_a_person_sees_answers_starts_cancels_and_leaves(root: Path, width: int, height: int) -> None:
    task = new_task()
    asks(task, "a1", "--option", "x=One", "--option", "y=Two")
    asks(task, "a2")
    with tmux_window(width, height) as window:
        window.open_watch()
        window.shows("needs you 2", "1  One", "2  Two")
        assert window.ask("pane_title") == "(2) agentctl"
        window.is_whole()
        window.press("Space")
        window.shows_no("1  One")
        window.press("Space")
        window.shows("1  One")
        answered(window, "2", "a1 was answered: Two")
        window.shows("a2 of t1 asks")
        window.press("i")
        window.shows("answer to a2")
        window.write("a longer one")
        window.press("Enter")
        window.shows("a2 was answered: a longer one")
        task.ended("a1", "a2")
        assert (task.agent("a2") / "stdout.log").read_text() == "answer: a longer one\n"
        window.press("n")
        window.shows("start in t1:")
        window.write("! sleep 300")
        window.press("Enter")
        window.shows("sleep-1 of t1", "working 1")
        window.press("Escape")
        window.shows_no("start in t1:")
        go_to(window, "sleep-1")
        window.press("x")
        window.shows("Cancel sleep-1?")
        window.press("y")
        task.ended("sleep-1")
        window.shows("3 done", "cancelled  sleep 300")
        assert statuses()["sleep-1"] == "cancelled"
        window.is_whole()
        window.press("q")
        window.is_left(0)


@pytest.mark.parametrize(("width", "height"), [(80, 24), pytest.param(160, 50, marks=pytest.mark.slow)])
def test_a_coloured_log_with_a_progress_bar(root: Path, width: int, height: int) -> None:
    new_task()
    bar = r"for part in 1 50 99; do printf '\r%d %%' $part; done"
    script = rf"printf 'src:\033[01;31m\033[Kold\033[m\033[K\n'; {bar}; exec sleep 300"
    spawn(["sh", "-c", script], name="a1")
    spawn(["sh", "-c", "echo 'GPL in a dependency' >&2; exit 1"], "--wait", name="a2", check=False)
    with tmux_window(width, height) as window:
        window.open_watch()
        go_to(window, "a1")
        window.press("Enter")
        window.shows("2 log", "src:old", "99 %")
        assert "50 %" not in window.text()
        assert re.search(r"src:\x1b\[[0-9;]*m.{0,40}old", window.text(styled=True))
        window.press("R")
        window.shows(r"\x1b[01;31m\x1b[Kold", r"\r1 %\r50 %\r99 %")
        window.press("R")
        window.shows("src:old")
        window.press("q")
        window.shows("⏎ Open")
        go_to(window, "a2")
        window.press("Enter")
        window.shows("GPL in a dependency")
        window.press("q")
        window.shows("⏎ Open")
        window.is_whole()
        window.press("q")
        window.is_left(0)
    run("cancel", "a1")


@pytest.mark.parametrize("program", ["false", "missing/vi"])
def test_the_screen_comes_back_from_an_editor_that_fails_and_a_pager_that_is_missing(
    root: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    monkeypatch.setenv("EDITOR", program)
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("PAGER", "missing/less")
    new_task()
    spawn(["echo", "hello"], name="a1")
    run("wait", "a1")
    with tmux_window(80, 24) as window:
        window.open_watch()
        window.press("n")
        window.shows("start:")
        window.write("! echo kept")
        window.press("C-g")
        window.shows("the editor", "! echo kept")
        window.press("Escape")
        window.shows_no("start:")
        go_to(window, "done")
        window.press("Enter")
        go_to(window, "a1")
        window.press("Enter")
        window.shows("hello", "Pager")
        window.press("P")
        window.shows("missing/less cannot be started")
        window.press("q")
        window.shows("⏎ Open")
        window.is_whole()
        window.press("q")
        window.is_left(0)


@pytest.mark.slow
def test_signals_and_ctrl_c_leave_the_terminal_clean_and_the_task_alone(root: Path, tmp_path: Path) -> None:
    task = new_task()
    spawn(worker("waits_for_file", tmp_path / "gate"), name="a1")
    before = (task.path / "events.jsonl").read_bytes()
    with tmux_window(80, 24) as window:
        window.open_watch()
        window.press("C-c")
        window.is_left(0)
        for sent in (signal.SIGTERM, signal.SIGHUP):
            pid = window.open_watch()
            os.kill(pid, sent)
            window.is_left(128 + sent)
    assert (task.path / "events.jsonl").read_bytes() == before
    assert statuses() == {"a1": "running"}
    (tmp_path / "gate").touch()
    task.ended("a1")


@pytest.mark.slow
def test_what_others_do_meanwhile_is_seen(root: Path, tmp_path: Path) -> None:
    task = new_task()
    asks(task, "a1", "--option", "x=One", "--option", "y=Two")
    spawn(worker("waits_for_file", tmp_path / "never"), name="b1")
    with tmux_window(80, 24) as window:
        window.open_watch()
        window.shows("1  One")
        run("interact", "respond", "a1", "--id", "q1", "y")
        window.shows("was answered with 'y' by user")
        window.shows_no("1  One")
        task.ended("a1")
        assert (task.agent("a1") / "stdout.log").read_text() == "answer: y\n"
        window.press("1")
        window.shows("a1 asks nothing")
        window.press("Up")  # Letters behind a key that did nothing would be taken for a text.
        go_to(window, "b1")
        window.press("Enter")
        window.shows("● b1 of t1")
        kill(task.shim_of("b1"), json.loads((task.agent("b1") / "worker.json").read_bytes())["pid"])
        window.shows("failed (lost)")
        window.press("Escape")
        window.shows("q Quit")
        window.press("q")
        window.is_left(0)


@pytest.mark.slow
def test_a_full_list_scrolls_and_stands_still_under_the_cursor(root: Path, tmp_path: Path) -> None:
    new_task(cap=1)
    names = [f"w{number:03}" for number in range(200)]
    spawn_batch([held(tmp_path / "gate", name) for name in names])
    with tmux_window(80, 24) as window:
        window.open_watch()
        window.shows("queued 199", "w000")
        times = [row for row in window.rows() if re.match(r"  \S w\d", row)]
        assert [row for row in times if not re.search(r"\d+s[\u2580-\u259f]?$", row)] == [], "the bar covers the times"
        window.press("NPage", "NPage", "j", "j", "j", "k")
        window.until(lambda: "w000" not in window.text() and window.cursor_row() > 0, "the list to scroll")
        at = window.cursor_row()
        line = window.rows()[at]
        name = line.split()[1]
        run("cancel", *names[1:4])
        window.shows("196 queued")
        assert (window.cursor_row(), window.rows()[at].split()[1]) == (at, name), "what is above it has gone"
        window.resize(120, 30)
        window.shows("196 queued", "⏎ Open")
        window.until(lambda: name in window.rows()[window.cursor_row()], "the cursor on its worker")
        window.is_whole()
        window.resize(60, 15)
        window.until(lambda: name in window.rows()[window.cursor_row()], "the cursor on its worker")
        window.is_whole()
        window.press("G")
        window.shows("w199")
        window.press("q")
        window.is_left(0)
    run("cancel", "--all")
    wait_until(lambda: set(statuses().values()), accept=lambda found: found <= {"cancelled", "completed"})


@pytest.mark.slow
def test_a_terminal_that_is_closed_takes_the_screen_with_it(root: Path, tmp_path: Path) -> None:
    task = new_task()
    spawn(worker("waits_for_file", tmp_path / "gate"), name="a1")
    with tmux_window(80, 24) as window:
        pid = window.open_watch()
    wait_until(lambda: not is_alive(pid), what="watch to end without its terminal")
    (tmp_path / "gate").touch()
    task.ended("a1")
    assert statuses() == {"a1": "completed"}


#: Each is shown as its escapes, and none is obeyed.
HOSTILE = (
    "T\x1b]52;c;cm0gLXJmIH4=\x07\x1b]0;owned\x07\x1b[2J\x1b[H\x1b[31mred \x9b5A \u202egpj.exe\u202c \u2066x\u2069"
    " e\u0301\u0301\u0301 \U0001f469\u200d\U0001f469\u200d\U0001f467 \u200b\u2060 \u4e16\u754c \ufe0f"
)


def hostile_task() -> Task:
    """Return a task of a worker that asks, and one that has ended, whose files are full of hostile texts."""
    task = new_task()
    ask = ["sh", "-c", 'exec "$0" -m agentctl interact ask "$1"', sys.executable, HOSTILE]
    spawn(ask, name="a1")
    task.has("agent.blocked", "a1")
    spawn(worker("escapes"), "--wait", name="b1")
    with (task.agent("b1") / "stdout.log").open("ab") as log:
        log.write(b"L" * (5 << 20) + b"\nlast line\n")
    rows: list[dict[str, object]] = [
        {"type": "agent", "id": "s1", "phase": "start", "agentType": HOSTILE, "name": "\ud83d half"},
        {"type": "tool", "id": "c1", "phase": "start", "name": HOSTILE, "detail": {"command": "\udc00" + HOSTILE}},
        {"type": "message", "id": "m1", "phase": "end", "text": HOSTILE + "M" * 100_000},
    ]
    for name in ("a1", "b1"):
        lines = [json.dumps({"timestamp": "2026-01-01T00:00:00.000Z", **one}) for one in rows]
        (task.agent(name) / "activity.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="ascii")
    return task


def test_hostile_texts_are_neither_obeyed_nor_break_the_columns(root: Path, tmp_path: Path) -> None:
    task = hostile_task()
    spawn(worker("waits_for_file", tmp_path / "gate"), name="c1")
    with tmux_window(80, 24) as window:
        window.open_watch()
        window.shows("a1 of t1 asks", "\\x1b]52;c;")
        window.is_whole()
        listed = [one for one in window.rows() if one.startswith(("  ? a1", "  ● c1"))]
        assert len({cell_len(one) for one in listed}) == 1, listed
        window.press("l")
        window.is_whole()
        window.press("h")
        window.press("G")
        window.press("l")
        go_to(window, "b1")
        window.press("l")
        window.is_whole()
        for tab, text in (("7", "agent.completed"), ("8", "It has ended"), ("2", "last line")):
            window.press("Enter")
            window.shows("1 transcript 2 log")
            window.press(tab)  # The first key counts, however soon it comes.
            window.shows(text)
            window.shows(" ✓ b1 of t1")
            assert [one for one in window.rows() if cell_len(one) > 80] == []
            window.press("Escape")
            window.shows_no("1 transcript 2 log")
        window.is_whole()
        assert window.ask("pane_title") == "(1) agentctl"
        assert window.tmux("list-buffers") == "", "nothing was put on the clipboard"
        window.press("q")
        window.is_left(0)
    (tmp_path / "gate").touch()
    run("cancel", "a1")
    task.ended("a1", "c1")
