"""Drives the screen of `agentctl watch` within the test's own process, by keys, against real tasks."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Awaitable, Callable

from textual.app import ScreenStackError
from textual.pilot import Pilot
from textual.strip import Strip

from agentctl.adapters import watch
from agentctl.adapters.taskdir import Root
from agentctl.domain.names import WorkerId
from agentctl.domain.question import SETTLES_S
from agentctl.interfaces.screen.app import WatchApp

_LIMIT_S = 20.0
_LOOK_EVERY_S = 0.02


def open_files() -> int:
    """Return how many descriptors this process has, without the instances that are kept for its next watches."""
    return len(os.listdir("/proc/self/fd")) - len(watch._spare)


class Screen:
    """A running screen and its keyboard."""

    def __init__(self, app: WatchApp, pilot: Pilot[int]) -> None:
        self.app, self.pilot = app, pilot

    def strips(self) -> list[Strip]:
        """Return the lines of the screen as they are drawn."""
        return self.app.screen._compositor.render_strips()

    def text(self) -> str:
        """Return what is on the screen, line by line."""
        return "\n".join(strip.text.rstrip() for strip in self.strips())

    def rows(self) -> list[str]:
        """Return the lines of the screen."""
        return self.text().split("\n")

    async def press(self, *keys: str) -> None:
        """Press keys, one after another."""
        await self.pilot.press(*keys)
        await self.pilot.pause()

    async def leave(self) -> None:
        """Press q. The pilot cannot wait for a screen that has gone."""
        with contextlib.suppress(ScreenStackError):
            await self.pilot.press("q")

    async def write(self, text: str) -> None:
        """Press the keys of a text."""
        await self.pilot.press(*("space" if key == " " else key for key in text))
        await self.pilot.pause()

    async def until(self, is_so: Callable[[], object], what: str, limit_s: float = _LIMIT_S) -> None:
        """Wait until something is so; fail with what is on the screen if it never is."""
        deadline = time.monotonic() + limit_s
        while not is_so():
            if time.monotonic() > deadline:
                raise AssertionError(f"{what} is not so after {limit_s} s; the screen:\n{self.text()}")
            await asyncio.sleep(_LOOK_EVERY_S)
            await self.pilot.pause()

    async def shows(self, *texts: str) -> None:
        """Wait until all of these are on the screen."""
        await self.until(lambda: all(text in self.text() for text in texts), f"that it shows {texts}")

    async def shows_no(self, *texts: str) -> None:
        """Wait until none of these is on the screen."""
        await self.until(lambda: not any(text in self.text() for text in texts), f"that it does not show {texts}")

    async def settle(self) -> None:
        """Wait until the question in the peek takes a digit."""
        await self.until(lambda: self.app.peek.has_settled, f"a question that has been shown for {SETTLES_S} s")

    def _names(self) -> set[str]:
        return {key.instance for line in self.app.fleet_list.lines if isinstance(key := line.key, WorkerId)}

    async def go_to(self, name: str) -> None:
        """Move the cursor to a worker."""
        await self.until(
            lambda: any(getattr(line.key, "instance", None) == name for line in self.app.fleet_list.lines),
            f"a line of {name}",
        )
        await self.press("g")
        for _ in self.app.fleet_list.lines:
            worker = self.app.fleet_list.worker
            if worker is not None and worker.row["agentInstance"] == name:
                return
            await self.press("j")
        raise AssertionError(f"the cursor did not reach {name}:\n{self.text()}")


def watching(
    steps: Callable[[Screen], Awaitable[None]], *, size: tuple[int, int] = (100, 30), task: str | None = None
) -> None:
    """Run the screen over the root of the test, and go through the steps."""

    async def run() -> None:
        app = WatchApp(Root(os.environ["AGENTCTL_ROOT"]), task=task)
        async with app.run_test(size=size) as pilot:
            await steps(Screen(app, pilot))

    asyncio.run(run())
