"""At stake: a person at the screen is told of what they do not see, and of nothing that they are looking at."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agentctl.adapters import eventlog
from agentctl.adapters.clock import now_iso
from agentctl.adapters.paths import FilePath
from agentctl.adapters.personal import state_folder
from agentctl.adapters.taskdir import TreeDir
from agentctl.adapters.treedir import tree_at
from agentctl.domain import events as ev
from agentctl.interfaces.screen.screen_bell import ScreenBell
from agentctl.operations.fleet.glance import FleetTask, Glance, TaskTotals
from agentctl.operations.notify.applied_targets import rearm
from agentctl.operations.notify.senders import is_armed
from agentctl.supervision.notify.book import SENT, Book
from agentctl.supervision.notify.gaze import looked_at
from agentctl.supervision.notify.tree_notices import TreeNotices
from agentctl.supervision.worker.environment import store_folder, switch_of
from tests.listener import configure
from tests.screens import Screen, watching
from tests.steps import new_task, spawn
from tests.support import PROGRAM, remove, run, worker
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
            patch.setattr("agentctl.interfaces.screen.app.LOOKS_S", 0.0)  # The person has left.
            await looks_at(screen)
        await screen.press("k")
        await looks_at(screen, "a")

    watching(steps)
    assert names_looked_at() == set()
    run("cancel", "--all")


class Trees:
    """Trees of a root, and a bell that looks at them: which of them had a sender started, look by look."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, root: Path, names: list[str]) -> None:
        for name in names:
            run("new", name, "--id", name)
        self.tasks = {name: tree_at(root / "tasks" / name) for name in names}
        self.rung: list[str] = []
        self._bell, self._started = ScreenBell(self.rung.append), list[str]()
        monkeypatch.setattr("agentctl.interfaces.screen.screen_bell._LEAST_S", 0.0)
        monkeypatch.setattr("agentctl.supervision.notify.switch.see_to_sender", self._start)

    def _start(self, tree: TreeDir, _: FilePath) -> int | None:
        self._started.append(tree.id)
        return None

    def arm(self) -> None:
        """Put down who is to be told, as a spawn does."""
        for task in self.tasks.values():
            rearm(task)

    def fail(self, name: str, *, is_told: bool = False) -> None:
        """Let a worker of a task fail, of which its targets were told or not."""
        kinds = (ev.QUEUED, ev.FAILED)
        eventlog.append(
            self.tasks[name].events, [ev.make_event(now_iso(), one, name, "agentctl", {}, "b") for one in kinds]
        )
        if is_told:
            keys = [one.key for one in TreeNotices(self.tasks[name]).look()]
            Book(self.tasks[name].notices).note("desk", keys, SENT)

    def look(self, live: int) -> list[str]:
        """Look once, while each task has so many live workers; return the trees for which a sender was started."""
        self._started.clear()
        totals = TaskTotals(workers=1, live=live)
        rows = {name: FleetTask(task, name, "", True, None, None, totals) for name, task in self.tasks.items()}
        self._bell.look(Glance(rows, {}, {}, is_partial=False))
        return list(self._started)


DESK = {"desk": {"type": "command", "command": ["true"], "events": ["failed"]}}
NAMES = [f"t{number}" for number in range(1, 9)]


def test_nothing_is_started_for_trees_in_which_nothing_lives_and_nothing_is_left_to_be_told(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(tmp_path / "home", DESK)
    trees = Trees(monkeypatch, root, NAMES)
    assert trees.look(live=0) == []
    assert not any(map(is_armed, trees.tasks.values())), "nor is anything kept in memory for them"
    trees.arm()
    for name in NAMES:
        trees.fail(name, is_told=name != "t3")
    assert trees.look(live=0) == ["t3"], "whoever was there was killed, or these were quiet hours"
    assert trees.look(live=0) == [], "not again within a minute"


def test_senders_of_many_trees_are_not_started_at_once(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(tmp_path / "home", DESK)
    trees = Trees(monkeypatch, root, NAMES)
    looks = [trees.look(live=1) for _ in range(4)]
    assert [len(started) for started in looks] == [3, 3, 2, 0]
    assert sorted(name for started in looks for name in started) == NAMES


def test_a_task_that_was_removed_and_made_anew_rings(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(tmp_path / "home", {"here": {"type": "terminal", "ways": ["bell"], "events": ["failed"]}})
    trees = Trees(monkeypatch, root, ["t1"])
    trees.look(live=1)
    trees.fail("t1")
    trees.look(live=1)
    assert trees.rung == ["\a"]
    remove(trees.tasks["t1"].path)
    run("new", "t1", "--id", "t1")
    trees.look(live=1)
    trees.fail("t1")
    trees.look(live=1)
    assert trees.rung == ["\a", "\a"]


def test_what_tells_of_a_task_that_was_removed_is_removed_too(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(tmp_path / "home", DESK)
    trees = Trees(monkeypatch, root, ["t1", "t2"])
    trees.arm()
    gone = switch_of(store_folder(), trees.tasks["t1"].nonce())
    assert gone.exists()
    remove(trees.tasks["t1"].path)
    again = Trees(monkeypatch, root, ["t1"])
    again.arm()
    assert not gone.exists()
    assert all(map(is_armed, trees.tasks.values()))


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
