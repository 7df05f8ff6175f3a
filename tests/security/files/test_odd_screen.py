"""At stake: whatever a worker puts into its question, the screen goes on, and can still stop that worker."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.screens import Screen, watching
from tests.steps import new_task, spawn, statuses
from tests.support import worker
from tests.terminal import on_a_terminal

pytestmark = pytest.mark.screen

DEEP = 960


def question(**more: object) -> str:
    options = [{"id": "x", "label": "One"}]
    return json.dumps({"kind": "select", "question": "Which?", "options": options, "askedAt": "2026-01-01", **more})


CASES = {
    "deep": question(tool="Bash", arguments="DEEP").replace('"DEEP"', '{"a":' * DEEP + "1" + "}" * DEEP),
    "list": question(tool="Bash", arguments="DEEP").replace('"DEEP"', '{"a":' + "[" * DEEP + "]" * DEEP + "}"),
    "options": question(options=[{"id": str(number), "label": "x" * 50} for number in range(5000)]),
    "labels": question(options=[{"id": "x", "label": "y\n" * 10_000}, {"id": "x", "label": "\u202e"}]),
    "keys": question(tool="Bash", arguments={f"k{number}": number for number in range(5000)}),
    "marks": question(tool="Bash", arguments={"a": "e" + "\u0301" * 20_000}),
    "halves": question(tool="\ud800", arguments={"\ud800": "\udfff"}),
    "numbers": question(tool="Bash", arguments={"a": 1e308 * 10, "b": -0.0}),
    "times": question(askedAt="99999-01-01T00:00:00Z"),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_an_odd_question(root: Path, case: str) -> None:
    task = new_task()
    spawn(worker("asks", "--option", "x=One", "Which?"), name="a1")
    task.has("agent.blocked", "a1")
    (task.agent("a1") / "interactions" / "q1.json").write_text(CASES[case], encoding="utf-8")

    async def steps(screen: Screen) -> None:
        await screen.go_to("a1")
        await screen.press("ctrl+d", "i", "escape", "enter", "5", "escape")
        await screen.press("D", "escape", "x")
        await screen.shows("Cancel a1?")
        await screen.press("y")
        await screen.shows("a1 is cancelled")

    watching(steps)
    assert statuses() == {"a1": "cancelled"}


@pytest.mark.parametrize("text", ["[" * DEEP + "]" * DEEP, '{"a":' * DEEP + "1" + "}" * DEEP, "1e999", "7"])
def test_an_odd_progress(root: Path, text: str) -> None:
    task = new_task()
    spawn(worker("sleeps", 60), name="a1")
    (task.agent("a1") / "progress.json").write_text(f'{{"percent": 40, "text": {text}}}', encoding="utf-8")

    async def steps(screen: Screen) -> None:
        await screen.go_to("a1")
        await screen.shows("a1 of t1")
        await screen.press("x")
        await screen.shows("Cancel a1?")
        await screen.press("y")
        await screen.shows("a1 is cancelled")

    watching(steps)
    assert statuses() == {"a1": "cancelled"}


FAILS = """
import sys
from agentctl.adapters.taskdir import Root
from agentctl.interfaces.screen.app import WatchApp, run_screen

WatchApp.on_mount = lambda _: 1 / 0
sys.exit(run_screen(Root(sys.argv[1])))
"""


def test_a_screen_that_fails_says_so_by_its_exit_code(root: Path) -> None:
    new_task()
    code, out = on_a_terminal([sys.executable, "-c", FAILS, str(root)])
    assert (code, b"ZeroDivisionError" in out) == (1, True)


def test_a_file_in_the_place_of_the_persons_folder_of_state(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    new_task()
    spawn(worker("exits", 3), "--wait", name="a1", check=False)
    (root.parent / "state").mkdir()
    (root.parent / "state" / "agentctl").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(root.parent / "state"))

    async def steps(screen: Screen) -> None:
        await screen.go_to("a1")
        await screen.press("v")
        await screen.shows("is not a folder, but a file")

    watching(steps, size=(250, 30))
