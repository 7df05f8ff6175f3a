"""At stake: the screen can be left at any moment, and takes its threads and descriptors with it."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from agentctl.interfaces.screen.keys_footer import KeysFooter
from agentctl.interfaces.screen.screen_bell import ScreenBell
from agentctl.operations.fleet.glance import Glance
from tests.screens import Screen, open_files, watching
from tests.steps import new_task, spawn
from tests.support import worker

_LIMIT_S = 30.0


def test_it_is_left_while_the_terminal_is_to_be_rung(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread that rings waits for the screen, and the screen for that thread."""
    new_task()
    is_left = threading.Event()
    rung: list[str] = []

    def look(self: ScreenBell, _glance: Glance) -> None:
        if is_left.wait(_LIMIT_S):
            self._write("\a")
            rung.append("\a")

    async def steps(screen: Screen) -> None:
        await screen.shows("agentctl")
        close = screen.app.reader.close

        def leave() -> None:
            is_left.set()
            close()

        monkeypatch.setattr(screen.app.reader, "close", leave)

    monkeypatch.setattr(ScreenBell, "look", look)
    screen = threading.Thread(target=watching, args=(steps,), daemon=True)
    screen.start()
    screen.join(_LIMIT_S)
    assert not screen.is_alive()
    assert rung


def held() -> tuple[int, int]:
    """Return how many descriptors and threads there are, without those that the loop keeps for the next work."""
    return open_files(), sum(not one.name.startswith("asyncio") for one in threading.enumerate())


@pytest.mark.slow
def test_a_worker_that_is_opened_again_and_again_leaves_nothing(root: Path) -> None:
    new_task()
    spawn(worker("exits", 3), "--wait", name="a1", check=False)

    async def steps(screen: Screen) -> None:
        await screen.go_to("a1")

        async def look() -> None:
            await screen.press("enter")
            await screen.until(lambda: len(screen.app.screen_stack) == 2, "the screen of a1")
            for tab in "2345671":
                await screen.press(tab)
            await screen.press("q")
            await screen.until(lambda: len(screen.app.screen_stack) == 1, "the list")

        await look()
        before = held()
        for _ in range(4):
            await look()
        watchers = getattr(screen.app.query_one(KeysFooter), "__watchers")["compact"]
        await screen.until(
            lambda: len(watchers) <= 1 + len(screen.app.query_one(KeysFooter).children), "only the keys of now"
        )
        await screen.until(
            lambda: all(now <= then for now, then in zip(held(), before, strict=True)),
            f"no more descriptors and threads than {before}",
        )

    watching(steps)
