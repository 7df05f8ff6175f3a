"""At stake: a person sees on one screen who needs them, answers with one key, and stops what is to be stopped."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from textual import events
from textual.binding import Binding

from agentctl.domain.names import WorkerId
from agentctl.interfaces.screen.acting import peek
from agentctl.interfaces.screen.app import WatchApp
from agentctl.interfaces.screen.fleet.fleet_list import FleetList
from tests.screens import Screen, watching
from tests.snapshots import snapshot
from tests.steps import Task, held, kill, new_task, spawn, spawn_batch, statuses
from tests.support import run, wait_until, worker


def asks(name: str, *options: str, task: Task | None = None) -> Task:
    """Start a worker that asks, and wait until it is blocked."""
    task = task or new_task()
    spawn(worker("asks", *options, f"What does {name} want?"), name=name)
    task.has("agent.blocked", name)
    return task


def answer_of(task: Task, name: str) -> str:
    task.ended(name)
    return (task.agent(name) / "stdout.log").read_text()


def test_workers_stand_in_the_order_of_need(root: Path, tmp_path: Path) -> None:
    task = asks("a1", "--option", "x=One", "--option", "y=Two")
    spawn(worker("exits", 3), "--wait", name="b1", check=False)
    spawn(worker("exits", 0), "--wait", name="c1")
    spawn_batch([held(tmp_path / "gate", "d1"), held(tmp_path / "gate", "e1", after=["d1"])])

    async def steps(screen: Screen) -> None:
        await screen.shows("needs you 1", "failed 1", "working 1", "queued 1", "done 1", "What does a1 want?")
        await screen.shows("1 needs you, 1 failed, 1 working, 1 queued, 1 done")
        rows = [row.split()[1] for row in screen.rows() if row.startswith("  ") and len(row.split()) > 1]
        assert [name for name in rows if name in ("a1", "b1", "d1", "e1")] == ["a1", "b1", "d1", "e1"]
        assert "c1" not in rows, "what is done is folded, but not what has failed"
        await screen.shows("waiting")
        assert screen.app._title == "(1) agentctl"
        (tmp_path / "gate").touch()
        await screen.shows_no("working 1", "queued 1")
        run("interact", "respond", "a1", "--id", "q1", "x")
        await screen.until(lambda: screen.app._title == "agentctl", "a title without a number")

    watching(steps)
    task.ended("a1", "d1", "e1")


def test_a_digit_answers_and_the_next_question_comes(root: Path) -> None:
    task = asks("a1", "--option", "x=One", "--option", "y=Two")
    asks("a2", "--kind", "confirm", task=task)
    asks("a3", task=task)

    async def steps(screen: Screen) -> None:
        await screen.go_to("a1")
        await screen.shows("1  One", "2  Two", "1-2 answers")
        await screen.settle()
        await screen.press("2")
        await screen.shows("a1 was answered: Two", "1  Yes", "2  No")
        await screen.press("1")
        await screen.settle()
        await screen.press("1")
        await screen.shows("a2 was answered: yes", "i writes the answer")
        await screen.press("i")
        await screen.write("a longer one")
        await screen.press("enter")
        await screen.shows("a3 was answered: a longer one")

    watching(steps)
    assert [answer_of(task, name) for name in ("a1", "a2", "a3")] == [
        "answer: y\n", "answer: yes\n", "answer: a longer one\n",
    ]  # fmt: skip


@pytest.mark.slow
def test_a_digit_that_was_meant_for_another_question_does_not_count(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = asks("a1", "--option", "x=One", "--option", "y=Two")
    asks("a2", "--option", "x=One", "--option", "y=Two", task=task)

    async def steps(screen: Screen) -> None:
        await screen.go_to("a1")
        await screen.settle()
        await screen.press("1")
        monkeypatch.setattr(peek, "SETTLES_S", 3600)  # However slow the machine is, the second one comes at once.
        await screen.shows("a2 of t1 asks")
        await screen.press("1")
        await screen.shows("What does a2 want?", "press the digit again")

    watching(steps)
    assert answer_of(task, "a1") == "answer: x\n"
    assert statuses()["a2"] == "blocked"
    run("cancel", "a2")


def test_somebody_elses_answer_takes_the_question_away(root: Path) -> None:
    task = asks("a1", "--option", "x=One", "--option", "y=Two")

    async def steps(screen: Screen) -> None:
        await screen.go_to("a1")
        await screen.shows("1  One")
        run("interact", "respond", "a1", "--id", "q1", "y")
        await screen.shows("q1 of a1 was answered with 'y' by user")
        await screen.shows_no("1  One")
        await screen.press("1")

    watching(steps)
    assert answer_of(task, "a1") == "answer: y\n"


@pytest.mark.slow
def test_an_answer_that_the_question_does_not_take_is_kept_and_corrected(root: Path) -> None:
    task = asks("a1", "--option", "x=One", "--option", "y=Two")

    async def steps(screen: Screen) -> None:
        await screen.go_to("a1")
        await screen.press("i")
        await screen.write("three")
        await screen.press("enter")
        await screen.shows("is not an option of this question", "three")
        await screen.press("escape")
        await screen.shows_no("answer to a1:")
        await screen.press("i")
        await screen.shows("three")
        await screen.press(*["backspace"] * 5)
        await screen.write("One")
        await screen.press("enter")
        await screen.shows("a1 was answered: One")

    watching(steps)
    assert answer_of(task, "a1") == "answer: x\n"


@pytest.mark.slow
def test_the_worker_under_the_cursor_stays_where_it_is(root: Path, tmp_path: Path) -> None:
    task = new_task(cap=20)
    spawn_batch([held(tmp_path / f"gate{number}", f"w{number}") for number in range(6)])
    task.has("agent.started", "w5")

    async def steps(screen: Screen) -> None:
        await screen.shows("working 6")
        await screen.go_to("w3")
        row = next(at for at, text in enumerate(screen.rows()) if " w3" in text)
        (tmp_path / "gate3").touch()
        task.ended("w3")
        await screen.until(lambda: "✓ w3" in screen.text(), "w3 to be shown as completed")
        assert " w3" in screen.rows()[row], "its group has changed, its place has not"
        spawn(worker("asks", "What?"), name="a1")
        await screen.shows("needs you 1")
        assert screen.app.fleet_list.worker is not None
        assert screen.app.fleet_list.worker.row["agentInstance"] == "w3"
        await screen.press("g")
        assert "✓ w3" not in screen.text(), "it has gone to those that are done"
        run("cancel", "--all")

    watching(steps)


def test_cancel_asks_first_and_tells_what_came_of_it(root: Path) -> None:
    task = new_task()
    spawn(worker("sleeps", 60), name="a1")
    spawn(worker("sleeps", 60), name="b1")
    task.has("agent.started", "b1")

    async def steps(screen: Screen) -> None:
        await screen.go_to("a1")
        await screen.press("x")
        await screen.shows("Cancel a1?  y / n")
        await screen.press("n")
        await screen.shows_no("Cancel a1?")
        await screen.press("x", "y")
        await screen.shows("a1 is cancelled")

    watching(steps)
    assert statuses() == {"a1": "cancelled", "b1": "running"}
    run("cancel", "--all")


@pytest.mark.slow
def test_pause_and_send(root: Path) -> None:
    task = new_task()
    spawn(worker("sleeps", 60), name="a1")
    task.has("agent.started", "a1")

    async def steps(screen: Screen) -> None:
        await screen.go_to("a1")
        await screen.press("p")
        await screen.shows("a1 is paused", "‖ a1")
        await screen.press("p")
        await screen.shows("a1 continues", "● a1")
        await screen.press("s")
        await screen.write("hello")
        await screen.press("enter")
        await screen.shows("was sent to a1")

    watching(steps)
    assert list((task.agent("a1") / "inbox").glob("*.json"))
    run("cancel", "--all")


@pytest.mark.slow
def test_a_worker_that_is_killed_is_seen_to_be_lost(root: Path) -> None:
    task = new_task()
    spawn(worker("sleeps", 60), name="a1")
    task.has("agent.started", "a1")
    shim, leader = (json.loads((task.agent("a1") / name).read_bytes())["pid"] for name in ("shim.json", "worker.json"))

    async def steps(screen: Screen) -> None:
        await screen.shows("● a1")
        kill(shim)
        await screen.shows("~ a1", "unsupervised")
        kill(leader)
        await screen.shows("✗ a1", "failed")

    watching(steps)
    assert statuses() == {"a1": "failed"}


@pytest.mark.slow
def test_what_a_stranger_wrote_is_shown_and_not_obeyed(root: Path) -> None:
    task = new_task()
    spawn(worker("asks", "\x1b[2J\x1b]0;owned\x07Which\u202e?\nAnd\tthis"), name="a1")
    task.has("agent.blocked", "a1")
    spawn(["sh", "-c", "exit 0 # \x1b[31mred\x1b[0m \u202e"], "--wait", name="b1")

    async def steps(screen: Screen) -> None:
        await screen.go_to("a1")
        await screen.shows("\\x1b[2J\\x1b]0;owned\\x07Which\\u202e?", "And")
        assert not set("\x1b\x07\u202e") & set(screen.text())

    watching(steps)
    run("cancel", "--all")


def test_the_wheel_scrolls_and_what_comes_into_sight_is_read(root: Path, tmp_path: Path) -> None:
    new_task()
    gate = tmp_path / "gate"
    fails = ["sh", "-c", f"while [ ! -e {gate} ]; do sleep 0.02; done; exit 1"]
    spawn_batch([{"name": f"w{number:02}", "argv": fails} for number in range(50)])
    gate.touch()
    run("wait-all", check=False)

    def read(screen: Screen) -> set[WorkerId]:
        return set(screen.app.fleet_list.glance.doings)

    async def steps(screen: Screen) -> None:
        await screen.shows("failed 50")
        shown = screen.app.fleet_list
        first, last = (line.key for line in (shown.lines[1], shown.lines[-1]))
        await screen.until(lambda: first in read(screen), f"that {first} is read")
        assert last not in read(screen)
        await screen.until(lambda: shown.allow_vertical_scroll, "that it has its place")
        for _ in shown.lines:
            shown.post_message(events.MouseScrollDown(shown, 1, 1, 0, 0, 0, shift=False, meta=False, ctrl=False))
        await screen.until(lambda: last in read(screen), f"that {last} is read")
        assert isinstance(last, WorkerId)
        await screen.shows(last.instance)
        assert shown.line == shown.lines[1], "the cursor stays where it is"
        await screen.pilot.resize_terminal(100, 32)
        await screen.until(lambda: len(screen.rows()) == 32, "that the screen is higher")
        await screen.shows(last.instance)

    watching(steps)


def test_the_line_of_the_cursor_stays_on_a_screen_that_gets_lower(root: Path) -> None:
    new_task()
    spawn_batch([{"name": f"w{number:02}", "argv": ["false"]} for number in range(50)])
    run("wait-all", check=False)

    async def steps(screen: Screen) -> None:
        await screen.shows("failed 50")
        await screen.press("g", *("j" * 12))
        worker = screen.app.fleet_list.worker
        assert worker is not None
        name = worker.row["agentInstance"]
        await screen.pilot.resize_terminal(100, 12)
        await screen.until(
            lambda: any(name in row and " of " not in row for row in screen.rows()), f"that the line of {name} is shown"
        )

    watching(steps)


def test_the_end_of_a_commands_output_is_shown(root: Path) -> None:
    new_task()
    spawn(["sh", "-c", "seq 1000 1020; echo oops >&2; exit 3"], "--wait", name="a1", check=False)

    async def steps(screen: Screen) -> None:
        await screen.go_to("a1")
        await screen.shows("1020", "oops")
        assert "1014" not in screen.text(), "its last six lines"

    watching(steps)


@pytest.mark.slow
@pytest.mark.parametrize("size", [(80, 24), (40, 10), (250, 80)])
def test_any_size(root: Path, size: tuple[int, int]) -> None:
    asks("a1", "--option", "x=One")

    async def steps(screen: Screen) -> None:
        await screen.shows("a1", "agentctl")
        assert all(len(row) <= size[0] for row in screen.rows())
        await screen.press("j", "k", "G", "g", "t", "t", "space", "space")
        await screen.pilot.resize_terminal(60, 15)
        await screen.shows("a1")

    watching(steps, size=size)
    run("cancel", "--all")


@pytest.mark.slow
def test_a_filter_hides_and_escape_shows_again(root: Path) -> None:
    task = new_task()
    for name in ("login-1", "docs-1"):
        spawn(worker("sleeps", 60), name=name)
    task.has("agent.started", "docs-1")

    async def steps(screen: Screen) -> None:
        await screen.shows("login-1", "docs-1")
        await screen.press("slash")
        await screen.write("n:login")
        await screen.shows_no("docs-1")
        await screen.press("enter")
        await screen.shows("/ n:login")
        await screen.press("escape", "escape")
        await screen.shows("docs-1")

    watching(steps)
    run("cancel", "--all")


@pytest.mark.slow
def test_a_filter_opens_what_is_folded(root: Path) -> None:
    new_task()
    spawn(worker("exits", 0), "--wait", name="a1")
    spawn(worker("exits", 0), "--wait", name="b1")

    async def steps(screen: Screen) -> None:
        await screen.shows("done 2")
        assert "a1" not in screen.text()
        await screen.press("slash")
        await screen.write("n:a1")
        await screen.press("enter")
        await screen.shows("✓ a1")
        assert "b1" not in screen.text()

    watching(steps)


def test_one_task_alone_is_looked_at(root: Path) -> None:
    new_task()
    spawn(worker("exits", 3), "--wait", name="a1", check=False)
    run("new", "Beside", "--id", "t3")
    spawn(worker("exits", 3), "--wait", "--task", "t3", name="beside", check=False)

    async def steps(screen: Screen) -> None:
        await screen.shows("✗ a1", "1 failed")
        assert "beside" not in screen.text()
        await screen.press("escape", "escape", "t")
        await screen.shows("t1 failed")
        assert "t3" not in screen.text()

    watching(steps, task="t1")


def test_a_question_is_answered_once_it_was_seen_whole(root: Path) -> None:
    task = new_task()
    long = "\n".join(f"line {number}" for number in range(60))
    spawn(worker("asks", "--option", "x=One", "--option", "y=Two", long), name="a1")
    task.has("agent.blocked", "a1")

    async def steps(screen: Screen) -> None:
        await screen.go_to("a1")
        await screen.settle()
        await screen.shows("Ctrl+D shows the rest")
        await screen.press("2")
        await screen.shows("not all of the question has been on the screen yet")
        await screen.press(*["ctrl+d"] * 20)
        await screen.shows("2  Two")
        assert "Ctrl+D shows the rest" not in screen.text()
        await screen.press("2")
        await screen.shows("a1 was answered: Two")

    watching(steps)
    assert answer_of(task, "a1") == "answer: y\n"


@pytest.mark.slow
def test_tab_goes_to_who_asks_and_leaves_no_line_open(root: Path) -> None:
    task = asks("a1")
    asks("a2", task=task)

    def under_the_cursor(screen: Screen) -> str:
        found = screen.app.fleet_list.worker
        return "" if found is None else found.row["agentInstance"]

    async def steps(screen: Screen) -> None:
        await screen.go_to("a1")
        await screen.press("tab")
        assert under_the_cursor(screen) == "a2"
        await screen.press("tab")
        assert under_the_cursor(screen) == "a1"
        await screen.press("space", "i")
        await screen.shows("a1 of t1 asks")
        assert "answer to a1:" not in screen.text(), "what is not seen is not answered"
        await screen.press("i")
        await screen.shows("answer to a1:")
        await screen.press("tab", "x")
        await screen.shows("answer to a1: x")
        await screen.pilot.click(FleetList, offset=(5, 0))
        await screen.shows_no("answer to a1:")

    watching(steps)
    run("cancel", "--all")


@pytest.mark.slow
def test_the_tree_has_every_task_with_its_workers(root: Path) -> None:
    new_task()
    spawn(worker("exits", 0), "--wait", name="a1")
    run("new", "Another one", "--id", "t2")
    spawn(worker("exits", 0), "--wait", name="b1")

    async def steps(screen: Screen) -> None:
        await screen.shows("done 2")
        await screen.press("t")
        await screen.shows("t1 completed", "t2 completed", "Another one", "1 worker")
        await screen.press("g", "l")
        await screen.shows("✓ b1")
        await screen.press("h")
        await screen.shows_no("b1")

    watching(steps)


def test_leaving_it_changes_nothing(root: Path) -> None:
    task = new_task()
    spawn(worker("exits", 0), "--wait", name="a1")
    wait_until(task.roster, accept=lambda rows: rows == {"a1": "completed"}, what="the roster to follow")

    async def steps(screen: Screen) -> None:
        await screen.shows("done 1")
        await screen.press("j", "t", "t", "space")
        await screen.leave()

    before = snapshot(task.path)
    watching(steps)
    after = snapshot(task.path)
    assert before == after


def test_every_key_is_in_the_help(root: Path) -> None:
    new_task()

    async def steps(screen: Screen) -> None:
        await screen.press("question_mark")
        shown = screen.text()
        for binding in (*WatchApp.BINDINGS, *FleetList.BINDINGS):
            assert isinstance(binding, Binding)
            what = "Give this answer" if binding.key.isdigit() else binding.tooltip or binding.description
            assert what in shown
        await screen.press("escape")
        await screen.shows("Nothing here yet")

    watching(steps, size=(100, 60))
