"""At stake: whoever watches without the screen misses no question and no end, hears each once, and changes nothing."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.agent_steps import agent, agent_world
from tests.shells import AGENTCTL, define_shells, subtask_line
from tests.snapshots import snapshot
from tests.steps import held, kill, new_task, spawn, spawn_batch, statuses
from tests.support import PROGRAM, remove, run, start, wait_until, worker
from tests.terminal import Terminal, on_a_terminal

# Not in the folder of that mark: what is here is run over each version of typer.
pytestmark = pytest.mark.screen

ASKS = ["sh", "-c", f"echo before; {AGENTCTL} interact ask 'Which one?'; echo behind"]
#: Runs the program as where the library of the screen is not installed.
WITHOUT = (
    sys.executable,
    "-c",
    "import sys; sys.modules['textual'] = None; from agentctl.interfaces.cli.app import run; run()",
)


class Lines:
    """The lines that a program prints, one after the other."""

    def __init__(self, *args: str) -> None:
        self.process: subprocess.Popen[str] = start(*args)
        assert self.process.stdout is not None
        self._lines: Iterator[str] = iter(self.process.stdout)

    def next(self, count: int) -> list[str]:
        return [next(self._lines).rstrip("\n") for _ in range(count)]

    def up_to(self, last: str) -> set[str]:
        """Read up to a line; return the lines before it."""
        before: set[str] = set()
        for line in self._lines:
            if line.rstrip("\n") == last:
                return before
            before.add(line.rstrip("\n"))
        pytest.fail(f"{last!r} was not printed, but {before}")

    def interrupted(self) -> tuple[int, list[str]]:
        """Press Ctrl-C; return the exit code and what else was printed."""
        self.process.send_signal(signal.SIGINT)
        return self.ended()

    def ended(self) -> tuple[int, list[str]]:
        """Wait for the end; return the exit code and what else was printed."""
        rest = [line.rstrip("\n") for line in self._lines]
        return self.process.wait(timeout=20), rest


def asking(name: str = "asks", *, then: str = "") -> None:
    """Start a worker, and wait until it asks.

    Args:
        then: What it runs once it has been answered.
    """
    spawn([*ASKS[:-1], f"{ASKS[-1]}; {then}"], name=name)
    wait_until(lambda: run("interact", "list", "--json").json, what="the question")


def answer(text: str = "blue") -> None:
    (asked,) = run("interact", "list", "--json").json
    run("interact", "respond", asked["agentInstance"], "--id", asked["id"], text)


# -- lines -------------------------------------------------------------------------------------------------------------


def test_lines_begin_with_what_is_needed_and_tell_each_change_once(root: Path, tmp_path: Path) -> None:
    task = new_task(cap=3)
    spawn(["sh", "-c", "exit 3"], "--wait", name="broken", check=False)
    spawn_batch([held(tmp_path / "gate", "long")])
    asking(then=f"until [ -e {tmp_path / 'seen'} ]; do sleep 0.02; done")
    watched = Lines("watch", "--plain")
    assert watched.next(6) == [
        "Needs you: 1",
        "asks of t1 needs you: Which one? agentctl answer asks --task t1 --id q1 ANSWER (ANSWER: any text)",
        "Failed: 1",
        "broken of t1 failed (exit_code 3)",
        "Working: 1",
        "long of t1 is running",
    ]
    answer()
    assert watched.next(1) == ["asks of t1 is running"]
    (tmp_path / "seen").touch()
    assert watched.next(1) == ["asks of t1 completed"]
    spawn(["sh", "-c", "exit 4"], name="more")
    assert watched.up_to("more of t1 failed (exit_code 4)") <= {"more of t1 is queued", "more of t1 is running"}
    (tmp_path / "gate").touch()
    task.ended("long")
    assert watched.next(1) == ["long of t1 completed"]
    assert watched.interrupted() == (130, [])


def test_lines_begin_with_the_question_that_has_waited_longest(root: Path) -> None:
    task = new_task()
    for name in ("b", "a"):
        spawn(worker("asks", f"What does {name} want?"), name=name)
        task.has("agent.blocked", name)
    watched = Lines("watch", "--plain")
    head, first, second = watched.next(3)
    assert (head, first.split()[0], second.split()[0]) == ("Needs you: 2", "b", "a")
    assert watched.interrupted() == (130, [])
    run("cancel", "--all")


@pytest.mark.slow
def test_a_worker_whose_shim_is_killed_is_told_as_what_it_is(root: Path) -> None:
    task = new_task()
    spawn(worker("sleeps", 60), name="a")
    watched = Lines("watch", "--plain")
    assert watched.next(2) == ["Working: 1", "a of t1 is running"]
    children = psutil.Process(task.shim_of("a")).children()
    kill(task.shim_of("a"))
    assert watched.next(1) == ["a of t1 is running (unsupervised)"]
    kill(*[child.pid for child in children])
    (line,) = watched.next(1)
    assert line.startswith("a of t1 failed (")
    assert watched.interrupted() == (130, [])


@pytest.mark.slow
def test_with_a_task_only_that_and_what_is_below_it_is_told(root: Path) -> None:
    new_task()
    define_shells()
    run("new", "Other", "--id", "other")
    spawn(worker("sleeps", 60), "--task", "other", name="elsewhere")
    line = subtask_line("low", f"exec {AGENTCTL} interact ask 'Which colour?'")
    spawn(["sh", "-c", line], "--task", "t1", name="boss")
    wait_until(lambda: run("interact", "list", "--json").json, what="the question")
    watched = Lines("watch", "--plain", "--task", "t1")
    assert watched.next(4) == [
        "Needs you: 1",
        (
            "shell-1 of low needs you: Which colour?"
            " agentctl answer shell-1 --task low --id q1 ANSWER (ANSWER: any text)"
        ),
        "Working: 1",
        "boss of t1 is running (a child asks)",
    ]
    run("cancel", "elsewhere", "--task", "other")
    answer()
    told = {line.partition(" (")[0] for line in watched.next(4)}
    assert "boss of t1 completed" in told | {line.partition(" (")[0] for line in watched.interrupted()[1]}
    assert not any("elsewhere" in line for line in told)


def test_an_answer_that_nobody_has_looked_at_is_told_with_the_next_step(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent_world(tmp_path, monkeypatch)
    agent("say it", "--keep")
    run("wait-any", "a", "--for", "blocked", "--timeout-seconds", "20")
    watched = Lines("watch", "--plain")
    assert watched.next(2) == [
        "Ready for review: 1",
        "a of t1 has answered, and waits for a message: agentctl send a --task t1 TEXT",
    ]
    run("send", "a", "--close")
    said = "a of t1 completed, ready for review: agentctl result a --task t1"
    watched.up_to(said)
    assert watched.interrupted() == (130, [])


def test_a_task_that_is_not_ones_own_is_shown_as_such(root: Path, tmp_path: Path) -> None:
    """It came with the folder; its log claims a worker, with characters that a terminal would obey."""
    task = new_task()
    asking()
    shutil.copytree(task.path, task.path.with_name("theirs"), ignore=shutil.ignore_patterns("control", "*.sock"))
    event = {"v": 1, "seq": 1, "ts": "2026-01-01T00:00:00Z", "type": "agent.queued", "taskId": "theirs", "by": "x",
             "agentInstance": "odd", "payload": {"agent": "c\x1b[31m", "command": "\x1b[2J"}}  # fmt: skip
    with (task.path.with_name("theirs") / "events.jsonl").open("a") as file:
        file.write(json.dumps(event) + "\n")
    watched = Lines("watch", "--plain")
    shown = watched.next(6)
    assert shown[1].startswith("asks of t1 needs you")
    assert shown[2:] == ["Working: 1", "asks of theirs is blocked", "Queued: 1", "odd of theirs is queued"]
    answer()
    watched.up_to("asks of t1 completed")
    assert watched.interrupted() == (130, [])
    assert watched.process.stderr is not None
    assert "not made here by you, and shown as their files describe them: theirs\n" in watched.process.stderr.read()


def test_a_pipe_and_a_dumb_terminal_get_lines(root: Path) -> None:
    new_task()
    watched = Lines("watch")
    assert watched.next(1) == ["No worker yet: agentctl spawn -- COMMAND starts one"]
    assert watched.interrupted() == (130, [])
    terminal = Terminal([*PROGRAM, "watch"], env={"TERM": "dumb"})
    terminal.until("No worker yet")
    terminal.interrupt()
    assert terminal.end() == 130
    assert b"\x1b" not in terminal.sent


def test_lines_load_neither_the_screen_nor_a_table(root: Path) -> None:
    new_task()
    code = (
        "import signal, sys; from agentctl.interfaces.cli.app import main; main(['watch', '--plain']);"
        "print('LOADED', *sys.modules, file=sys.stderr)"
    )
    watched = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert watched.stdout is not None
    watched.stdout.readline()
    watched.send_signal(signal.SIGINT)
    _, err = watched.communicate(timeout=20)
    loaded = {name.partition(".")[0] for name in err.rpartition("LOADED ")[2].split()}
    assert "agentctl" in loaded
    assert loaded & {"textual", "rich", "asyncio", "psutil"} == set()


@pytest.mark.slow
@pytest.mark.parametrize("args", [("watch",), ("watch", "asks")])
def test_watching_and_its_death_change_nothing(root: Path, tmp_path: Path, args: tuple[str, ...]) -> None:
    task = new_task(cap=2)
    asking()
    spawn_batch([held(tmp_path / "gate", name) for name in ("runs", "waits")])
    settled = {"asks": "awaiting", "runs": "active", "waits": "pending"}
    wait_until(task.roster, accept=settled.__eq__, what="the roster, which the shims write a moment later")
    before = snapshot(tmp_path)
    watched = Lines(*args)
    watched.next(1)
    watched.process.kill()
    watched.process.wait(timeout=20)
    assert snapshot(tmp_path) == before
    answer()
    (tmp_path / "gate").touch()
    task.ended("asks", "runs", "waits")
    assert set(statuses().values()) == {"completed"}


# -- one worker --------------------------------------------------------------------------------------------------------


def test_one_worker_is_followed_to_its_end_through_its_questions(root: Path) -> None:
    new_task()
    asking()
    watched = Lines("watch", "asks")
    assert sorted(watched.next(2)) == [
        "asks of t1 needs you: Which one? agentctl answer asks --task t1 --id q1 ANSWER (ANSWER: any text)",
        "before",
    ]
    answer()
    code, lines = watched.ended()
    assert {"asks of t1 is running", "blue", "behind"} >= set(lines[:-1]) >= {"blue", "behind"}
    assert (lines[-1], code) == ("asks completed", 0)


def test_the_end_of_one_worker_is_that_of_wait(root: Path, tmp_path: Path) -> None:
    new_task()
    spawn(["sh", "-c", "printf 'no \\033[31mnewline'; exit 3"], "--wait", name="broken", check=False)
    done = run("watch", "broken", check=False)
    assert (done.code, done.out.splitlines()) == (7, ["no newline", "broken failed (exit_code 3)"])
    assert run("watch", "nobody", check=False).code == 3

    gate = f"until [ -e {tmp_path / 'gate'} ]; do sleep 0.05; done"
    spawn(["sh", "-c", f"echo why >&2; {gate}; echo after; exit 3"], name="goes-on")
    watched = Lines("watch", "goes-on")
    watched.up_to("why")
    (tmp_path / "gate").touch()
    code, lines = watched.ended()
    assert (lines[-2:], code) == (["after", "goes-on failed (exit_code 3): why"], 7)
    assert lines[-1] == run("wait", "goes-on", check=False).out.strip()


@pytest.mark.slow
def test_one_worker_whose_shim_is_killed_is_followed_on(root: Path) -> None:
    task = new_task()
    spawn(worker("sleeps", 60), name="a")
    watched = Lines("watch", "a")
    assert watched.next(1) == ["a of t1 is running"]
    children = psutil.Process(task.shim_of("a")).children()
    kill(task.shim_of("a"))
    watched.up_to("a of t1 is running (unsupervised)")
    kill(*[child.pid for child in children])
    code, lines = watched.ended()
    assert (lines[-1].partition("(")[0], code) == ("a failed ", 7)


def test_an_agent_is_followed_as_a_transcript(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agent_world(tmp_path, monkeypatch)
    agent("permit touch x")
    run("wait-any", "a", "--for", "blocked", "--timeout-seconds", "20")
    watched = Lines("watch", "a")
    (first,) = watched.next(1)
    assert first.startswith("a of t1 needs you: Allow Bash: touch x?")
    assert first.endswith("agentctl answer a --task t1 --id q1 ANSWER (ANSWER: allow, deny)")
    answer("allow")
    code, lines = watched.ended()
    assert (lines[-1], code) == ("a completed", 0)
    transcript = run("logs", "a").out.splitlines()
    assert len(transcript) >= 3
    assert set(transcript) <= set(lines)


def test_one_worker_that_is_removed_with_its_task_ends_it(root: Path) -> None:
    task = new_task()
    spawn(worker("sleeps", 60), name="a")
    watched = Lines("watch", "a")
    watched.next(1)
    shim, children = task.shim_of("a"), psutil.Process(task.shim_of("a")).children()
    remove(task.path)
    _, err = watched.process.communicate(timeout=20)
    assert (watched.process.returncode, "no worker 'a' in task t1" in err) == (3, True)
    kill(shim, *[child.pid for child in children])


def test_ctrl_c_leaves_the_worker(root: Path) -> None:
    new_task()
    spawn(worker("sleeps", 60), name="a")
    watched = Lines("watch", "a")
    watched.next(1)
    assert watched.interrupted()[0] == 130
    assert statuses() == {"a": "running"}
    run("cancel", "a")


def test_a_reader_that_leaves_ends_it(root: Path, tmp_path: Path) -> None:
    task = new_task()
    spawn(["sh", "-c", "while [ ! -e gate ]; do echo more; sleep 0.05; done"], "--cwd", tmp_path, name="a")
    watched = start("watch", "a")
    assert watched.stdout is not None
    watched.stdout.readline()
    watched.stdout.close()
    assert watched.wait(timeout=20) == 1
    (tmp_path / "gate").touch()
    task.ended("a")


# -- a table -----------------------------------------------------------------------------------------------------------


def test_without_the_screens_library_a_table_is_drawn_and_taken_away(root: Path, tmp_path: Path) -> None:
    new_task()
    asking()
    terminal = Terminal([*WITHOUT, "watch"])
    terminal.until("agentctl answer asks --task t1 --id q1 ANSWER")
    how = f"textual is not installed; for the screen: {sys.executable} -P -m pip install 'textual<"
    assert how.encode() in terminal.sent
    for text in (b"needs you", b"Which one?"):
        assert text in terminal.sent
    answer()
    terminal.until("done")
    before = len(terminal.sent)
    terminal.interrupt()
    assert terminal.end() == 130
    left = terminal.sent[before:]
    assert b"\x1b[?25h" in left, "the cursor is back"
    assert b"\x1b[2K" in left, "the table is gone"


def test_a_table_is_no_higher_than_its_terminal(root: Path, tmp_path: Path) -> None:
    new_task(cap=1)
    spawn_batch([held(tmp_path / "gate", f"w{number}") for number in range(30)])
    terminal = Terminal([*WITHOUT, "watch"], height=10, width=60)
    terminal.until("lines more")
    terminal.interrupt()
    assert terminal.end() == 130
    drawn = terminal.sent.partition(b"working")[2].partition(b"lines more")[0]
    assert drawn.count(b"\n") < 10 - 2, "what stands above it, two rows here, is still to be seen"
    assert b"... 26 lines more" in terminal.sent
    run("cancel", "--all")


def test_in_a_table_too_what_is_done_is_folded_unless_it_failed(root: Path) -> None:
    new_task()
    for name, argv in {"well": ["true"], "badly": ["false"]}.items():
        spawn(argv, "--wait", name=name, check=False)
    for options in ([], ["--task", "t1"]):
        terminal = Terminal([*WITHOUT, "watch", *options])
        terminal.until("badly")
        terminal.interrupt()
        assert terminal.end() == 130
        assert b"well" not in terminal.sent


def test_on_a_terminal_the_screen_is_shown(root: Path) -> None:
    new_task()
    asking()
    terminal = Terminal([*PROGRAM, "watch"])
    terminal.until("Which one?")
    terminal.write(b"q")
    assert terminal.end() == 0
    assert b"\x1b[?1049l" in terminal.sent, "the terminal is as it was"
    answer()
    run("wait", "asks")


def test_a_root_that_is_not_there_is_said(root: Path, tmp_path: Path) -> None:
    done = run("watch", "--plain", "--root", root, check=False)
    assert (done.code, "there is no" in done.err) == (3, True)
    for argv in ([*PROGRAM, "watch", "--plain"], [*WITHOUT, "watch"]):
        code, shown = on_a_terminal(argv)
        assert (code, b"No worker yet: agentctl spawn -- COMMAND starts one" in shown) == (6, True)
    assert not root.exists()
    new_task()
    assert run("watch", "--plain", "--task", "nope", check=False).code == 3
    assert os.path.isdir(root)
