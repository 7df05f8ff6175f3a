"""At stake: what a person types becomes exactly one worker, what is wrong is said, and no text is lost."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from textual.app import App, ComposeResult
from textual.events import Paste
from textual.pilot import Pilot
from textual.widgets import Input, Static

from agentctl.adapters.locks import LOCK_LIMIT_S
from agentctl.adapters.taskdir import Root
from agentctl.interfaces.screen.start.dispatch_line import DispatchLine
from tests.shells import define_shells
from tests.steps import Task, new_task, row, statuses
from tests.support import run
from tests.terminal import Terminal

LIMIT_S = 20


class Host(App[None]):
    """An app with nothing but the line."""

    def __init__(self, root: Path, task: str | None = "t1", *, suspends: bool = False) -> None:
        super().__init__()
        self.line = DispatchLine(Root(root), lambda: task)
        self.told: list[object] = []
        self._suspends = suspends

    def compose(self) -> ComposeResult:
        yield self.line

    def on_mount(self) -> None:
        self.line.open()

    def on_dispatch_line_submitted(self, event: DispatchLine.Submitted) -> None:
        self.told.append(("submitted", event.line.request.argv or event.line.request.work))

    def on_dispatch_line_started(self, event: DispatchLine.Started) -> None:
        self.told.append(("started", event.spawned.agent_instance))

    def on_dispatch_line_closed(self) -> None:
        self.told.append("closed")

    @contextlib.contextmanager
    def suspend(self) -> Iterator[None]:
        """Leave the terminal, which a test does not have."""
        if self._suspends:
            yield
            return
        with super().suspend():
            yield

    def started(self) -> list[str]:
        return [one[1] for one in self.told if isinstance(one, tuple) and one[0] == "started"]

    def problem(self) -> str:
        shown = self.line.query_one(Static)
        return str(shown.content) if shown.display else ""

    def put(self, text: str) -> None:
        """Put a text into the field, as a paste would."""
        field = self.query_one(Input)
        field.value = text
        field.cursor_position = len(text)


async def until(pilot: Pilot[None], condition: Callable[[], object], what: str) -> None:
    """Let the app run until a condition holds."""
    for _ in range(LIMIT_S * 100):
        await pilot.pause(0.01)
        if condition():
            return
    pytest.fail(f"waited {LIMIT_S} s for {what}; the line: {pilot.app.query_one(Input).value!r}")


def has_started(host: Host, count: int) -> bool:
    return len(host.started()) == count


async def enter(pilot: Pilot[None], host: Host, text: str) -> None:
    host.put(text)
    await pilot.press("enter")


def play(host: Host, scene: Callable[[Pilot[None]], Awaitable[None]]) -> None:
    """Run the app through a scene, on a screen of 100 x 20."""

    async def played() -> None:
        async with host.run_test(size=(100, 20)) as pilot:
            await scene(pilot)

    asyncio.run(played())


def last_command(task: Task, instance: str) -> list[str]:
    spec = json.loads((task.agent(instance) / "spec.json").read_bytes())
    found: list[str] = spec["argv"]
    return found


def test_a_command_and_an_agent_are_started_and_the_line_is_free_at_once(root: Path, tmp_path: Path) -> None:
    task = new_task()
    define_shells()
    work = tmp_path / "my work"
    work.mkdir()
    host = Host(root)

    async def scene(pilot: Pilot[None]) -> None:
        await pilot.press(*"! true", "enter")
        await until(pilot, lambda: not host.line.text, "the line to be taken")
        await enter(pilot, host, f"name:here in:'{work}' ! pwd | tee out")
        await until(pilot, lambda: len(host.started()) == 2, "two workers")
        await enter(pilot, host, "shell echo 'it said'")
        await until(pilot, lambda: len(host.started()) == 3, "three workers")

    play(host, scene)
    assert sorted(host.started()) == ["here", "shell-1", "true-1"]
    of_first = [said for said in host.told if said in (("submitted", ["true"]), ("started", "true-1"))]
    assert of_first == [("submitted", ["true"]), ("started", "true-1")]
    run("wait", "here", "true-1", "shell-1")
    assert (work / "out").read_text() == f"{work}\n"
    assert last_command(task, "true-1") == ["true"]
    assert run("result", "shell-1").out == "it said\n"


def test_a_root_without_a_task_gets_one_named_after_the_work(root: Path) -> None:
    run("tasks", "--root", root, check=False)
    root.mkdir()
    host = Host(root, None)

    async def scene(pilot: Pilot[None]) -> None:
        await enter(pilot, host, "! true and more")
        await until(pilot, host.started, "the worker")

    play(host, scene)
    assert [one["title"] for one in run("tasks", "--json").json] == ["true and more"]
    run("wait", "true-1")


def test_a_full_task_queues_what_is_entered(root: Path, tmp_path: Path) -> None:
    new_task(cap=1)
    host = Host(root)
    gate = tmp_path / "gate"

    async def scene(pilot: Pilot[None]) -> None:
        await enter(pilot, host, f"name:first ! until [ -e {gate} ]; do sleep 0.02; done")
        await until(pilot, host.started, "the first")
        await enter(pilot, host, "name:second ! true")
        await until(pilot, lambda: len(host.started()) == 2, "the second")

    play(host, scene)
    assert statuses() == {"first": "running", "second": "queued"}
    gate.touch()
    run("wait-all")


def test_what_is_wrong_stands_below_the_line_until_it_is_changed(root: Path) -> None:
    new_task()
    host = Host(root)

    async def scene(pilot: Pilot[None]) -> None:
        await enter(pilot, host, "expolre it")
        await until(pilot, host.problem, "the error")
        assert "'expolre' is not an agent\nhint: a line begins with an agent (explore, general, plan)" in host.problem()
        assert host.line.text == "expolre it"
        await pilot.press("x")
        await until(pilot, lambda: not host.problem(), "the error to go")
        await enter(pilot, host, "   ")
        await enter(pilot, host, "! no-such-program-here")
        await until(pilot, host.problem, "the refusal")
        assert "there is no program 'no-such-program-here' in PATH" in host.problem()
        assert host.line.text == "! no-such-program-here", "it comes back"
        await enter(pilot, host, "@nope ! true")
        await until(pilot, lambda: "no task" in host.problem(), "the task")

    play(host, scene)
    assert statuses() == {}


def test_where_nothing_can_be_read_the_line_says_so_and_the_screen_stays(root: Path, tmp_path: Path) -> None:
    """Somebody has removed the working folder."""
    new_task()
    (tmp_path / "work").rmdir()
    host = Host(root)

    async def scene(pilot: Pilot[None]) -> None:
        await pilot.press(*"ex", "tab")
        assert host.line.text == "ex"
        await enter(pilot, host, "explore it")
        await until(pilot, host.problem, "the error")
        assert "the working folder was removed" in host.problem()

    play(host, scene)


def test_odd_text_is_shown_and_neither_obeyed_nor_taken_for_markup(root: Path) -> None:
    new_task()
    host = Host(root)

    async def scene(pilot: Pilot[None]) -> None:
        await enter(pilot, host, "[bold]\x1b[31m x")
        await until(pilot, host.problem, "the error")
        assert r"'[bold]\x1b[31m' is not an agent" in host.problem()

    play(host, scene)


def test_the_history_is_there_in_the_next_session_and_the_draft_comes_back(root: Path) -> None:
    new_task()
    first = Host(root)

    async def enters(pilot: Pilot[None]) -> None:
        for count, text in enumerate(("! true", "! echo 2", "! true"), 1):
            await enter(pilot, first, text)
            await until(pilot, partial(has_started, first, count), text)

    async def looks(pilot: Pilot[None]) -> None:
        shown = []
        second.put("dra")
        for key in ("up", "up", "up", "down", "down", "down"):
            await pilot.press(key)
            shown.append(second.line.text)
        assert shown == ["! true", "! echo 2", "! echo 2", "! true", "dra", "dra"]

    play(first, enters)
    second = Host(root)
    play(second, looks)
    kept = Path(os.environ["HOME"], ".local/state/agentctl/lines.json")
    assert (json.loads(kept.read_bytes())["lines"], kept.stat().st_mode & 0o777) == (["! echo 2", "! true"], 0o600)
    run("wait-all")


def test_a_history_that_is_locked_does_not_hold_up_the_line(root: Path) -> None:
    new_task()
    host = Host(root)
    lock = Path(os.environ["HOME"], ".local/state/agentctl/lines.json.lock")
    lock.parent.mkdir(parents=True)

    async def scene(pilot: Pilot[None]) -> None:
        entered = time.monotonic()
        await enter(pilot, host, "! true")
        await until(pilot, partial(has_started, host, 1), "the worker")
        await pilot.press("up")
        assert time.monotonic() - entered < LOCK_LIMIT_S / 2
        assert (host.line.text, host.problem()) == ("! true", ""), "it is remembered, and nothing is said"
        holder.close()
        await enter(pilot, host, "! echo 2")
        await until(pilot, partial(has_started, host, 2), "the second worker")

    with lock.open("w") as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)
        play(host, scene)
    assert "! echo 2" in json.loads(lock.with_suffix("").read_bytes())["lines"]
    run("wait-all")


def test_tab_and_the_right_arrow_complete(root: Path, tmp_path: Path) -> None:
    new_task()
    (tmp_path / "work" / "one").mkdir()
    host = Host(root)

    async def completed(pilot: Pilot[None], typed: str, becomes: str) -> None:
        host.put(typed)
        await pilot.press("tab")
        await until(pilot, lambda: host.line.text == becomes, f"{typed} to become {becomes}")

    async def scene(pilot: Pilot[None]) -> None:
        await completed(pilot, "ex", "explore ")
        await completed(pilot, "@", "@t1 ")
        await completed(pilot, "@t1 in:", "@t1 in:one/")
        host.put("p")
        await until(pilot, lambda: host.query_one(Input)._suggestion == "plan", "the suggestion")
        await pilot.press("right")
        assert host.line.text == "plan"
        for name in ("explain", "extra"):
            run("new", name, "--id", name)
        await completed(pilot, "@e", "@ex")
        await pilot.press("tab")
        await until(pilot, host.problem, "the ways to go on")
        assert host.problem() == "@explain  @extra"

    play(host, scene)


def test_escape_keeps_the_draft_and_the_line_can_be_opened_again(root: Path) -> None:
    new_task()
    host = Host(root)

    async def scene(pilot: Pilot[None]) -> None:
        await pilot.press(*"! tru", "escape")
        await until(pilot, lambda: host.told == ["closed"], "the line to close")
        assert (host.line.display, host.line.text) == (False, "! tru")
        host.line.open()
        await pilot.press("e", "enter")
        await until(pilot, host.started, "the worker")

    play(host, scene)
    run("wait", "true-1")


def editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Make a script the person's editor; the file is its first argument."""
    program = tmp_path / "editor"
    program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    program.chmod(0o700)
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", str(program))


def test_a_prompt_of_several_lines_comes_from_the_editor(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new_task()
    define_shells()
    editor(tmp_path, monkeypatch, 'cp "$1" before; printf "shell echo one\\necho two\\n" > "$1"')
    host = Host(root, suspends=True)

    async def scene(pilot: Pilot[None]) -> None:
        await pilot.press(*"shell x", "ctrl+g")
        await until(pilot, lambda: host.line.text == "shell echo one\necho two", "the text of the editor")
        shown = "".join(segment.text for segment in host.query_one(Input).render_line(0))
        assert shown.startswith("shell echo one↵echo two")
        await pilot.press("enter")
        await until(pilot, host.started, "the worker")
        await pilot.press("up")
        assert host.line.text == "shell echo one\necho two"

    play(host, scene)
    assert (tmp_path / "work" / "before").read_text() == "shell x"
    run("wait", "shell-1")
    assert run("result", "shell-1").out == "one\ntwo\n"
    assert row("shell-1")["command"].startswith("echo one")


PROGRAM = """
import sys
from textual.app import App
from agentctl.adapters.taskdir import Root
from agentctl.interfaces.screen.start.dispatch_line import DispatchLine

class Host(App):
    def compose(self):
        yield DispatchLine(Root(sys.argv[1]))
    def on_mount(self):
        self.query_one(DispatchLine).open()
    def on_dispatch_line_started(self):
        self.exit()

Host().run()
"""


@pytest.mark.slow
def test_the_editor_has_the_terminal_and_gives_it_back(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a real terminal: the editor reads keys there, which must not go to the field; Ctrl+C is one of them."""
    new_task()
    editor(tmp_path, monkeypatch, 'echo "EDITOR HERE"; read -r word; printf "! echo $word" > "$1"')
    terminal = Terminal([sys.executable, "-c", PROGRAM, str(root)])
    terminal.until("AGENT PROMPT")
    terminal.write(b"\x07")
    terminal.until("EDITOR HERE")
    terminal.process.send_signal(signal.SIGINT)  # A terminal sends it to all programs in front.
    terminal.write(b"typed\n")
    terminal.until("! echo typed")
    terminal.write(b"\r")
    assert terminal.end() == 0
    run("wait", "echo-1")
    assert run("result", "echo-1").out == "typed\n"


def test_a_paste_of_several_lines_is_taken_whole(root: Path) -> None:
    new_task()
    host = Host(root)

    async def scene(pilot: Pilot[None]) -> None:
        host.put("explore .")
        await pilot.press("left")
        host.query_one(Input).post_message(Paste("one\r\ntwo\n"))
        await until(pilot, lambda: host.line.text == "explore one\ntwo.", "the paste")

    play(host, scene)


@pytest.mark.parametrize(
    ("script", "suspends", "message"),
    [
        ("exit 1", True, "failed (exit code 1)"),
        (None, True, "neither VISUAL nor EDITOR names an editor\nhint: export EDITOR=vi"),
        ("true", False, "this terminal cannot be left to an editor"),
    ],
)
def test_an_editor_that_does_not_work_is_said_and_the_text_stays(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str | None, suspends: bool, message: str
) -> None:
    new_task()
    editor(tmp_path, monkeypatch, script or "")
    if script is None:
        monkeypatch.delenv("EDITOR")
    host = Host(root, suspends=suspends)

    async def scene(pilot: Pilot[None]) -> None:
        host.put("shell x")
        await pilot.press("ctrl+g")
        await until(pilot, host.problem, "the problem")
        assert message in host.problem()
        assert host.line.text == "shell x"

    play(host, scene)
