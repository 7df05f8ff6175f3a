"""Finds the processes that a test has left behind, and kills them.

A process belongs to a test if it was not there before, and its environment, command line, working folder or
open files name the test. More than one mark is needed: a shim has an empty environment, a worker does not
inherit the names that begin with AGENTCTL_, a daemon has closed its files.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import psutil

from tests import support

SETTLE_S = 2.0
KILL_S = 10.0
MOST_LISTED = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Marks:
    """What distinguishes the processes of one test from all others."""

    test_id: str
    folder: Path
    before: frozenset[int]

    def names(self, text: str) -> bool:
        """Return whether a text contains the test's id, its folder, or a path below it."""
        if self.test_id in text:
            return True
        # The folder of test_ab must not count as one of test_a.
        _, *followers = text.split(str(self.folder))
        return any(not rest or not (rest[0].isalnum() or rest[0] in "_-") for rest in followers)


def survivors(marks: Marks) -> list[psutil.Process]:
    """Return the processes of this test that are alive now."""
    strangers = marks.before | _self_and_ancestors()
    return [process for process in _new_processes(strangers) if _belongs(process, marks)]


def settle(marks: Marks) -> list[psutil.Process]:
    """Return the survivors, after giving processes that are about to end up to `SETTLE_S` to do so."""
    give_up_at = time.monotonic() + SETTLE_S
    support.reap_background()
    while (alive := survivors(marks)) and time.monotonic() < give_up_at:
        time.sleep(support.POLL_S)
        support.reap_background()
    return alive


def describe(processes: list[psutil.Process]) -> str:
    """Return a line for each process, for at most `MOST_LISTED` of them."""
    lines = [f"  {_describe(process)}" for process in processes[:MOST_LISTED]]
    if len(processes) > MOST_LISTED:
        lines.append(f"  and {len(processes) - MOST_LISTED} more")
    return "\n".join(lines)


def _describe(process: psutil.Process) -> str:
    try:
        with process.oneshot():
            command = " ".join(process.cmdline())
            return f"{process.pid} (parent {process.ppid()}, {process.status()}): {command}"
    except psutil.Error:
        return f"{process.pid}: ended meanwhile"


def kill_all(marks: Marks) -> list[psutil.Process]:
    """Kill the survivors and everything they start meanwhile; return those that cannot be killed."""
    give_up_at = time.monotonic() + KILL_S
    while (alive := survivors(marks)) and time.monotonic() < give_up_at:
        for process in alive:
            _kill(process)
        support.reap_background()
        time.sleep(support.POLL_S)
    return alive


def _kill(process: psutil.Process) -> None:
    try:
        process.kill()  # psutil compares the start time first, so a reused pid is left alone
    except psutil.NoSuchProcess:
        pass  # it ended by itself


def _new_processes(strangers: frozenset[int]) -> Iterator[psutil.Process]:
    for pid in set(psutil.pids()) - strangers:
        try:
            process = psutil.Process(pid)
            if process.status() not in {psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD}:
                yield process
        except psutil.Error:
            continue  # it ended meanwhile


@cache
def _self_and_ancestors() -> frozenset[int]:
    return frozenset([os.getpid(), *(process.pid for process in psutil.Process().parents())])


def _belongs(process: psutil.Process, marks: Marks) -> bool:
    return any(marks.names(text) for text in _texts(process))


def _texts(process: psutil.Process) -> Iterator[str]:
    """Yield every text that may show to which test a process belongs, the cheapest first."""
    questions: tuple[Callable[[], Iterable[str]], ...] = (
        process.cmdline,
        lambda: process.environ().values(),
        lambda: [process.cwd()],
        lambda: [file.path for file in process.open_files()],
    )
    for question in questions:
        try:
            yield from question()
        except (psutil.Error, OSError):
            continue  # another user's process, or gone
