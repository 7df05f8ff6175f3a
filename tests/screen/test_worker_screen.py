"""At stake: a person sees everything about one worker, live and as it is, and nothing of it is obeyed by anything."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import tempfile
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from textual.widgets import Input

from agentctl.domain.worker.need import Need
from agentctl.interfaces.screen.app import WatchApp
from agentctl.interfaces.screen.texts.pager import Pager
from agentctl.interfaces.screen.worker import worker_texts
from agentctl.interfaces.screen.worker.tab_row import TABS, Tab
from agentctl.interfaces.screen.worker.worker_screen import WorkerScreen
from agentctl.operations.worktree import diff
from agentctl.operations.worktree.diff import WorktreeDiff
from tests.agent_steps import agent, agent_world, blocked, plays
from tests.repositories import git, new_repository, record
from tests.screens import Screen, watching
from tests.steps import Task, kill, new_task, spawn, statuses
from tests.support import alike, run, wait_for_text, worker

Steps = Callable[[Screen], Awaitable[None]]


async def opened(screen: Screen, name: str) -> WorkerScreen:
    """Open a worker from the list, below whatever heading it is."""
    await screen.until(lambda: not screen.app.last_glance().is_partial and name in names(screen), f"{name}")
    screen.app.arrangement.opened[Need.DONE] = True
    screen.app.fleet_list.rearrange()
    await screen.go_to(name)
    await screen.press("enter")
    await screen.shows("1 transcript", "8 why")
    shown = screen.app.screen
    assert isinstance(shown, WorkerScreen)
    return shown


def names(screen: Screen) -> set[str]:
    return {key.instance for key in screen.app.last_glance().workers}


def shell(line: str, *options: str | Path, name: str = "a1", check: bool = True) -> None:
    spawn(["/bin/sh", "-c", line], *options, name=name, check=check)


def held(tmp_path: Path, before: str, after: str = "true") -> str:
    """Return a line of shell that goes on once the file `go` exists."""
    return f"{before}; while ! [ -e {tmp_path / 'go'} ]; do sleep 0.02; done; {after}"


def test_every_tab_has_its_digit_and_the_list_is_where_it_was(root: Path, tmp_path: Path) -> None:
    task = new_task()
    shell(held(tmp_path, "echo to stdout; echo to stderr >&2"))
    shell("echo other", "--wait", name="b1")
    task.has("agent.started", "a1")

    async def steps(screen: Screen) -> None:
        await opened(screen, "a1")
        await screen.shows("a1 of t1", "running", "to stdout", "to stderr")
        await screen.press("1")
        await screen.shows("no transcript")
        for digit, says in (
            ("3", "has no worktree"), ("4", "has no worktree"), ("5", "to stdout"), ("6", "a1 of t1"),
            ("7", "agent.started"), ("8", "A live shim guards it"),
        ):  # fmt: skip
            await screen.press(digit)
            await screen.shows(says)
        await screen.press("l")
        await screen.shows("no transcript")
        await screen.press("tab")
        await screen.shows("to stdout")
        await screen.press("shift+tab", "left")
        await screen.until(lambda: not isinstance(screen.app.screen, WorkerScreen), "the list")
        await screen.shows("working 1")
        chosen = screen.app.fleet_list.worker
        assert chosen is not None
        assert chosen.row["agentInstance"] == "a1"
        await opened(screen, "a1")
        await screen.press("question_mark")
        await screen.shows("Show the transcript", "Base or turn")
        await screen.press("escape")
        for key in ("q", "escape"):
            await screen.press(key)
        await screen.shows("working 1")
        assert not isinstance(screen.app.screen, WorkerScreen), "and the app is still there"

    watching(steps)
    (tmp_path / "go").touch()
    task.ended("a1")


@pytest.mark.slow
def test_it_follows_and_shows_the_end_which_is_then_seen(root: Path, tmp_path: Path) -> None:
    task = new_task()
    shell(held(tmp_path, "echo first", "echo second; echo bad >&2; exit 3"))

    async def steps(screen: Screen) -> None:
        await opened(screen, "a1")
        await screen.shows("first", "following")
        await screen.shows_no("stderr")
        (tmp_path / "go").touch()
        await screen.shows("second", "failed", "stderr", "bad")
        await screen.press("2")
        await screen.until(lambda: "press" not in screen.text(), "the other stream")
        await screen.press("5")
        await screen.shows("failed (exit_code 3)", "second")
        await screen.press("8")
        await screen.shows("a1 is failed")
        worker = screen.app.last_glance().workers[next(iter(screen.app.last_glance().workers))]
        assert worker.end is not None
        await screen.until(lambda: screen.app._seen.has(worker.id, str(worker.end)), "that its end was seen")
        await screen.press("escape")
        await screen.shows("1 done", "✗ a1")

    watching(steps)
    task.ended("a1")


@pytest.mark.slow
def test_a_worker_that_is_killed_with_its_shim_is_shown_as_lost(root: Path) -> None:
    task = new_task()
    spawn(worker("sleeps", 100), name="a1")
    task.has("agent.started", "a1")

    async def steps(screen: Screen) -> None:
        await opened(screen, "a1")
        await screen.press("8")
        await screen.shows("A live shim guards it")
        kill(task.shim_of("a1"))
        kill(int(run("show", "a1", "--json").json["pid"]))
        await screen.shows("failed")
        await screen.shows("a1 is failed", "lost")

    watching(steps)
    assert statuses()["a1"] == "failed"


@pytest.mark.slow
def test_questions_are_answered_where_they_are_shown_and_only_there(root: Path) -> None:
    task = new_task()
    spawn(worker("asks", "--option", "x=One", "--option", "y=Two", "What now?"), name="a1")
    task.has("agent.blocked", "a1")

    async def steps(screen: Screen) -> None:
        shown = await opened(screen, "a1")
        await screen.shows("6 questions (1)", "blocked")
        await screen.press("5")
        await screen.shows("There is no result yet")
        await screen.press("i")
        await screen.shows("What now?", "1  One", "1-2 answers")
        await screen.until(lambda: shown.peek.has_settled, "a question that takes a digit")
        await screen.press("2")
        await screen.shows("a1 was answered: Two")
        await screen.shows_no("6 questions (1)")
        await screen.shows("Answered before:", "q1: What now?", "user: y")
        await screen.press("2")
        await screen.shows("answer: y")

    watching(steps)
    task.ended("a1")


@pytest.mark.slow
def test_somebody_elses_answer_is_told_and_keys_act_as_in_the_list(root: Path) -> None:
    task = new_task(grace=0.3)
    spawn(worker("asks", "What now?"), name="a1")
    task.has("agent.blocked", "a1")
    spawn(worker("sleeps", 100), name="b1")

    async def steps(screen: Screen) -> None:
        await opened(screen, "a1")
        await screen.press("6")
        await screen.shows("What now?")
        run("interact", "respond", "a1", "--id", "q1", "this")
        await screen.shows("q1 of a1 was answered with 'this' by user")
        await screen.press("escape")
        await opened(screen, "b1")
        await screen.press("p")
        await screen.shows("b1 is paused", "‖ b1")
        await screen.press("p")
        await screen.shows("b1 continues")
        await screen.press("s")
        await screen.write("hello")
        await screen.press("enter")
        await screen.shows("was sent to b1")
        await screen.press("x")
        await screen.shows("Cancel b1?")
        await screen.press("y")
        await screen.shows("b1 is cancelled", "- b1")
        await screen.press("C")
        await screen.shows(f"copied: {task.agent('b1')}")

    watching(steps, size=(140, 30))
    assert statuses()["b1"] == "cancelled"


HOSTILE = r"printf 'a\033[2J\033]0;title\007b\n[red]markup[/red]\n\302\233x'"


@pytest.mark.slow
def test_what_a_worker_writes_is_shown_and_not_obeyed(root: Path, tmp_path: Path) -> None:
    task = new_task()
    repository = new_repository(tmp_path / "repository")
    names = r'printf evil > "$(printf "x\033[2J[red]$(echo y)")"; ln -s /etc/passwd link'
    shell(f"{HOSTILE}; {names}", "--worktree", "--cwd", repository, "--wait")
    shell(f"{HOSTILE} >&2", "--wait", name="b1")

    async def steps(screen: Screen) -> None:
        await opened(screen, "a1")
        await screen.shows("ab\n", "[red]markup[/red]")
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", screen.text())
        await screen.press("R")
        await screen.shows(r"a\x1b[2J\x1b]0;title\x07b", "[red]markup[/red]", r"\x9bx")
        for digit in "345678":
            await screen.press(digit)
            await screen.until(lambda: "looking" not in screen.text(), "what is looked at")
            assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", screen.text())
        await screen.press("3")
        await screen.shows(r"x\x1b[2J[red]y", "link")
        await screen.press("G", "enter")
        await screen.shows("evil")
        await screen.press("escape")
        await screen.shows("link")

    watching(steps)
    assert task.exit("a1") is not None


def test_the_files_and_the_diff_of_a_running_agent_since_its_base_and_its_turn(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent_world(tmp_path, monkeypatch)
    repository = new_repository(tmp_path / "repository")
    agent(
        plays(tmp_path, "open('one.txt', 'w').write('1\\n')\nme.answer('first answer')"), "--keep", "--worktree",
        "--cwd", repository,
    )  # fmt: skip
    blocked()
    wait_for_text(root / "tasks" / "t1" / "agents" / "a" / "turns.jsonl", "endedAt")

    async def steps(screen: Screen) -> None:
        await opened(screen, "a")
        await screen.shows("first answer")
        await screen.press("3")
        await screen.shows("Since its base, as it is now: 1 file", "one.txt")
        run("send", "a", plays(tmp_path, "open('two.txt', 'w').write('2\\n3\\n')\nme.answer('second answer')"))
        await screen.shows("two.txt", "2 files  +3 -0")
        await screen.press("j", "enter")
        await screen.shows("+++ b/two.txt", "+3")
        await screen.press("K")
        await screen.shows("+++ b/one.txt", "+1")
        await screen.press("K", "J")
        await screen.shows("+++ b/two.txt", "+3")
        await screen.press("escape", "b")
        await screen.shows("Since its last turn began", "1 file  +2 -0")
        await screen.shows_no("one.txt")
        await screen.press("4")
        await screen.shows("Since its last turn began", "+++ b/two.txt")
        await screen.press("b")
        await screen.shows("Since its base", "+++ b/one.txt")
        await screen.press("1")
        await screen.shows("second answer")
        run("send", "a", "--close")
        await screen.shows("✓ a of t1")
        await screen.press("3")
        await screen.shows("as it was at its end: 2 files")

    watching(steps)


def test_a_tab_takes_the_focus_as_soon_as_it_can_and_keys_before_do_no_harm(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a slow machine a key comes before what is shown has been put together."""
    agent_world(tmp_path, monkeypatch)
    repository = new_repository(tmp_path / "repository")
    agent(plays(tmp_path, "open('one.txt', 'w').write('1\\n')\nme.answer('done')"), "--worktree", "--cwd", repository)
    run("wait", "a")

    async def steps(screen: Screen) -> None:
        shown = await opened(screen, "a")
        for tab in reversed(TABS):
            shown.show_tab(tab)
            shown.take_focus()
            assert shown.focused is None or shown.focused.is_attached
            shown.action_renew()
            shown.draw_peek()
        shown.show_tab(Tab.FILES)
        await screen.shows("one.txt")
        await screen.press("enter")
        await screen.shows("+++ b/one.txt")
        shown.action_help()
        screen.app.screen.action_scroll(1)  # type: ignore[attr-defined]

    watching(steps)


def program(tmp_path: Path, *, code: int = 0) -> tuple[str, Path]:
    """Return the name of a program that notes its arguments and the files that they name."""
    noted, file = tmp_path / "noted", tmp_path / "my editor"
    lines = (
        f"#!{sys.executable}", "import os, sys",
        f"open({str(noted)!r}, 'w').write('\\n'.join(sys.argv[1:-1] + [open(sys.argv[-1]).read()]))",
        f"sys.exit({code})",
    )  # fmt: skip
    file.write_text("\n".join(lines))
    file.chmod(0o700)
    return f"'{file}' --flag", noted


@pytest.fixture
def away(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the terminal away although there is none."""
    monkeypatch.setattr(WatchApp, "suspend", lambda _: contextlib.nullcontext())


def names_program(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", name)
    monkeypatch.setenv("PAGER", name)


NAMES = r"""printf 'out\033[2J\n'; echo mine > '$(touch ran); .txt'; ln -s /etc/passwd z-link"""


@pytest.mark.slow
def test_a_persons_programs_get_what_is_shown_and_no_shell_does(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, away: None
) -> None:
    task = new_task()
    repository = new_repository(tmp_path / "repository")
    shell(NAMES, "--worktree", "--cwd", repository, "--wait")
    name, noted = program(tmp_path)
    names_program(monkeypatch, name)

    async def gets(screen: Screen, key: str, text: str) -> None:
        noted.unlink(missing_ok=True)
        await screen.press(key)
        await screen.until(noted.exists, f"{key} to have run")
        await screen.until(lambda: text in noted.read_text(), f"{text!r} in what the program got")
        assert noted.read_text().startswith("--flag\n")

    async def steps(screen: Screen) -> None:
        await opened(screen, "a1")
        await screen.shows("out")
        await gets(screen, "P", "out\n")
        await gets(screen, "e", "out\x1b[2J")
        await screen.press("3")
        await screen.shows("$(touch ran)", "z-link")
        await gets(screen, "e", "mine")
        await gets(screen, "P", "+mine")
        await screen.press("G", "e")
        await screen.shows("leads out of")
        await screen.press("4")
        await screen.shows("+mine")
        await gets(screen, "e", "diff --git")
        await screen.press("8")
        await screen.shows("a1 is completed")
        await gets(screen, "P", "a1 is completed")

    made = tmp_path / "made"
    made.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(made))
    watching(steps, size=(160, 30))
    assert not list(made.iterdir()), "what was made for the programs goes with the screen"
    assert not (Path(record(task, "a1")["path"]) / "ran").exists()
    assert git(repository, "status", "--porcelain") == ""


def test_a_program_that_is_missing_or_fails_is_said(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, away: None
) -> None:
    new_task()
    shell("echo out", "--wait")

    async def steps(screen: Screen) -> None:
        shown = await opened(screen, "a1")
        for name, says in (
            (program(tmp_path, code=4)[0], "failed (exit code 4)"),
            (str(tmp_path / "missing"), "cannot be started: No such file or directory"),
            ("'", "PAGER is not a command"),
        ):
            names_program(monkeypatch, name)
            shown.say("")
            await screen.press("P")
            await screen.until(lambda: str(shown.said.content), "that something is said")
            assert says in str(shown.said.content)

    watching(steps)


def test_a_program_that_gets_no_terminal_is_not_run(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    new_task()
    shell("echo out", "--wait")
    names_program(monkeypatch, "cat")

    async def steps(screen: Screen) -> None:
        await opened(screen, "a1")
        await screen.press("P")
        await screen.shows("cannot be given to another program")

    watching(steps)


@pytest.mark.slow
@pytest.mark.parametrize("size", [(80, 24), (20, 6)])
def test_any_size_and_a_change_of_it(root: Path, tmp_path: Path, size: tuple[int, int]) -> None:
    task = new_task()
    shell(held(tmp_path, "seq 500"))
    task.has("agent.started", "a1")

    async def steps(screen: Screen) -> None:
        await opened(screen, "a1") if size[0] >= 80 else await small(screen)
        await screen.shows("500")
        for width, height in ((200, 60), (3, 2), size):
            await screen.pilot.resize_terminal(width, height)
            await screen.press(*"32")
        await screen.shows("500")
        await screen.press("escape")
        await screen.shows("a1")

    async def small(screen: Screen) -> None:
        await screen.go_to("a1")
        await screen.press("enter")
        await screen.until(lambda: isinstance(screen.app.screen, WorkerScreen), "the screen of the worker")

    watching(steps, size=size)
    (tmp_path / "go").touch()
    task.ended("a1")


@pytest.mark.slow
def test_the_logs_of_marked_workers_are_shown_at_once_and_follow(root: Path, tmp_path: Path) -> None:
    task = new_task()
    for name in ("a1", "b1", "c1"):
        shell(held(tmp_path, f"echo begin {name}", f"echo end {name}"), name=name)
        task.has("agent.started", name)

    async def steps(screen: Screen) -> None:
        await screen.go_to("a1")
        await screen.press("m")
        await screen.press("m")
        await screen.press("L")
        await screen.shows("t1/a1", "t1/b1", "begin a1", "begin b1")
        await screen.shows_no("begin c1")
        (tmp_path / "go").touch()
        await screen.shows("end a1", "end b1")
        await screen.press("tab", "escape")
        await screen.shows("2 marked")

    watching(steps, size=(100, 40))
    task.ended("a1", "b1", "c1")


@pytest.mark.slow
def test_a_worker_whose_task_goes_is_said_to_be_gone(root: Path, task_to_remove: Task) -> None:
    async def steps(screen: Screen) -> None:
        await opened(screen, "a1")
        os.rename(task_to_remove.path, root / "gone")
        await screen.shows("it is no longer there")
        await screen.press("x", "s", "3", "5", "8", "escape")
        await screen.shows("Nothing here yet")

    watching(steps)
    os.rename(root / "gone", task_to_remove.path)


@pytest.fixture
def task_to_remove(root: Path) -> Task:
    task = new_task()
    shell("echo out", "--wait")
    return task


def test_the_diff_of_a_file_is_of_the_look_that_has_listed_it(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository, looks = new_repository(tmp_path / "r"), threading.Event()
    task = new_task()
    shell(held(tmp_path, "seq 30 > aaa.txt; echo BBB > bbb.txt; echo CCC > ccc.txt"), "--worktree", "--cwd", repository)
    task.has("agent.started", "a1")
    worktree = Path(record(task, "a1")["path"])
    wait_for_text(worktree / "ccc.txt")

    def make_diff(*args: Any, **options: Any) -> WorktreeDiff:
        looks.wait(20)
        return diff.make_diff(*args, **options)

    monkeypatch.setattr(worker_texts, "make_diff", make_diff)

    async def steps(screen: Screen) -> None:
        looks.set()
        await opened(screen, "a1")
        await screen.press("3")
        await screen.shows("aaa.txt", "ccc.txt")
        await screen.press("G")
        (worktree / "aaa.txt").write_text("another\n" * 100)
        await screen.press("4")
        await screen.shows("+another")
        looks.clear()  # The list looks again, and git takes its time.
        await screen.press("3", "enter")
        await screen.shows("diff --git a/ccc.txt", "+CCC")
        looks.set()

    watching(steps)
    (tmp_path / "go").touch()
    task.ended("a1")


def test_a_look_that_fails_is_said_and_is_made_again(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = new_repository(tmp_path / "r")
    task = new_task()
    shell("echo BBB > bbb.txt", "--worktree", "--cwd", repository, "--wait")
    fails = [True]

    def make_diff(*args: Any, **options: Any) -> WorktreeDiff:
        if fails:
            raise ValueError("nobody foresaw it")
        return diff.make_diff(*args, **options)

    monkeypatch.setattr(worker_texts, "make_diff", make_diff)

    async def steps(screen: Screen) -> None:
        await opened(screen, "a1")
        for tab in ("3", "4"):
            await screen.press(tab)
            await screen.shows("ValueError: nobody foresaw it")
        fails.clear()
        await screen.press("ctrl+r")
        await screen.shows("+BBB")
        await screen.press("3")
        await screen.shows("bbb.txt", "1 file")

    watching(steps)
    task.ended("a1")


@pytest.mark.parametrize("tab", [Tab.TRANSCRIPT, Tab.LOG, Tab.FILES, Tab.EVENTS])
def test_a_line_that_is_opened_before_a_tab_is_drawn_keeps_what_is_typed(root: Path, tmp_path: Path, tab: Tab) -> None:
    task = new_task()
    shell(held(tmp_path, "echo to stdout"))
    task.has("agent.started", "a1")

    async def steps(screen: Screen) -> None:
        shown = await opened(screen, "a1")
        shown.show_tab(tab)
        shown.action_send()
        await screen.write("xy")
        await screen.shows("message to a1: xy")
        await screen.press("escape")
        pager = screen.app.focused
        if isinstance(pager, Pager):
            pager.action_search()
            assert isinstance(screen.app.focused, Input), "the next key is no key of the pager"
            await screen.write("xy")
            assert pager.query_one(Input).value == "xy"
        shown.show_tab(Tab.WHY)
        await screen.shows("A live shim guards it")
        shown.show_tab(tab)
        shown.action_cancel()
        await screen.press("n")
        await screen.shows_no("y / n")

    watching(steps)
    (tmp_path / "go").touch()
    task.ended("a1")


@pytest.mark.parametrize("tab", [Tab.LOG, *alike(Tab.FILES)])
def test_what_comes_when_the_screen_of_a_worker_has_gone_does_nothing(root: Path, tab: Tab) -> None:
    """The drawing of a tab may be over when `q` has already been pressed."""
    new_task()
    shell("echo why >&2", "--wait")

    async def steps(screen: Screen) -> None:
        shown = await opened(screen, "a1")
        shown.show_tab(tab)
        await screen.until(lambda: shown.is_drawn, "the tab")
        await screen.press("q")
        await screen.until(lambda: not shown.is_attached and not any(shown.walk_children()), "all of it to have gone")
        shown.take_focus()

    watching(steps)
