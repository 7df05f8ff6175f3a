"""At stake: a person at the screen is told of what they do not see, and of nothing that they are looking at."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agentctl.adapters.paths import FilePath
from agentctl.adapters.personal import state_folder
from agentctl.supervision.notify.looking import looked_at
from tests.listener import configure
from tests.screens import Screen, watching
from tests.steps import new_task, spawn
from tests.support import PROGRAM, run, worker
from tests.terminal import Terminal


def names_looked_at() -> set[str | None]:
    return {one.instance for one in looked_at(FilePath(state_folder(os.environ)))}


@pytest.mark.slow
def test_it_says_what_is_looked_at_and_nothing_once_nobody_is_there(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = new_task()
    for name in ("a", "b"):
        spawn(worker("asks", f"What does {name} want?"), name=name)
        task.has("agent.blocked", name)

    async def looks_at(screen: Screen, *names: str) -> None:
        await screen.until(lambda: names_looked_at() == set(names), f"a look at {names}, not {names_looked_at()}")

    async def steps(screen: Screen) -> None:
        await screen.go_to("a")
        await looks_at(screen, "a")
        await screen.press("j")
        await looks_at(screen, "b")
        await screen.press("space")
        await looks_at(screen)
        await screen.press("enter")
        await looks_at(screen, "b")
        await screen.press("escape")
        await looks_at(screen)
        await screen.press("space")
        await looks_at(screen, "b")
        with monkeypatch.context() as patch:
            patch.setattr("agentctl.screen.app.LOOKS_S", 0.0)  # The person has left.
            await looks_at(screen)
        await screen.press("k")
        await looks_at(screen, "a")

    watching(steps)
    assert names_looked_at() == set()
    run("cancel", "--all")


def test_the_terminal_is_told_of_another_workers_question(root: Path, tmp_path: Path) -> None:
    configure(tmp_path / "home", {"here": {"type": "terminal", "ways": ["osc9"], "events": ["blocked"]}})
    task = new_task()
    spawn(worker("asks", "Looked at?"), name="a")
    task.has("agent.blocked", "a")
    terminal = Terminal([*PROGRAM, "watch"])
    terminal.until("Looked at?")
    spawn(worker("asks", "And this?"), name="b")
    terminal.until("\x1b]9;agentctl: A task: b asks: And this?\x1b\\")
    terminal.write(b"q")
    assert terminal.end() == 0
    assert terminal.sent.count(b"\x1b]9;") == 1
    run("cancel", "--all")
