"""One stand-in looks for all that rest, and wakes those with news; whatever becomes of it, they see the news."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agentctl.adapters.taskdir import LaunchDir
from agentctl.supervision.worker.environment import store_folder
from agentctl.worker_programs.on_node.exchange.heartbeat import Heart
from tests.support import wait_for_text, wait_until

#: Rests as a stand-in whose worker has long been calm, and says each time by what that was ended.
RESTING = """
import os, signal, sys, time
from agentctl.adapters.taskdir import LaunchDir
from agentctl.worker_programs.on_node.exchange.heartbeat import HeardFrom
from agentctl.supervision.worker.control import WAKE

def end(*_):
    raise SystemExit

woken, wakes = os.pipe()
for fd in (woken, wakes):
    os.set_blocking(fd, False)
signal.signal(WAKE, lambda *_: None)
signal.signal(signal.SIGTERM, end)
signal.set_wakeup_fd(wakes)
heard, now = HeardFrom(LaunchDir(sys.argv[1]), woken, float(sys.argv[2])), time.monotonic()
heard.rest(now, now + 60, lambda: 60)  # The first look at it is always worth one.
print("rests", flush=True)
try:
    while True:
        heard.rest(now - 1000, now + 60, lambda: 60)
        try:
            print("woken" if os.read(woken, 1) else "", flush=True)
        except BlockingIOError:
            print("has looked itself", flush=True)
finally:
    heard.close()
"""

LAUNCH = "f" * 16

Resting = subprocess.Popen[str]
Rests = Callable[..., tuple[LaunchDir, Resting]]


def notes() -> list[Path]:
    """Return the notes of those that rest."""
    return sorted(Path(store_folder()).glob("resting-*/*"))


@pytest.fixture
def rests(root: Path, tmp_path: Path) -> Iterator[Rests]:
    """Return what starts a process that rests, and returns once it does."""
    started: list[Resting] = []

    def start(silence_s: float = 600, *, leaves_note: bool = True) -> tuple[LaunchDir, Resting]:
        folder = tmp_path / f"{len(started):016x}"
        folder.mkdir()
        launch = LaunchDir(str(folder))
        Heart(launch).beat()
        argv = [sys.executable, "-c", RESTING, str(folder), str(silence_s)]
        process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert said(process) == "rests"
        if leaves_note:
            wait_until(lambda: any(note.name.endswith(f"-{process.pid}") for note in notes()), what="its note")
        return launch, process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def said(process: Resting) -> str:
    """Return the next line of a process."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def nobody_is_told(dead: Resting) -> None:
    """Nobody reads what is said to the dead: whoever was woken finds their notes removed, then or soon."""
    wait_until(
        lambda: [note.name for note in notes() if note.name.endswith(f"-{dead.pid}")],
        accept=lambda left: not left,
        what="its notes to be removed",
    )


def test_one_looks_for_all_and_wakes_those_with_news(rests: Rests) -> None:
    _, (launch, other) = rests(), rests()
    Heart(launch).tell()
    assert said(other) == "woken"
    wait_until(lambda: f"{launch.id}-1-{other.pid}" in {note.name for note in notes()}, what="it to rest again")


def test_one_that_ends_is_followed_by_another_at_once(rests: Rests) -> None:
    (_, looks), (launch, other) = rests(), rests()
    looks.terminate()
    assert said(other) == "woken"
    Heart(launch).tell()
    assert said(other) == "woken"
    nobody_is_told(looks)


@pytest.mark.slow
def test_one_that_is_killed_is_followed_by_the_next_that_comes_to_rest(rests: Rests) -> None:
    (_, looks), (launch, other) = rests(), rests()
    looks.kill()
    looks.wait()
    rests()
    Heart(launch).tell()
    assert said(other) == "woken"
    nobody_is_told(looks)


@pytest.mark.slow
def test_while_one_is_stopped_the_others_see_the_news_themselves(rests: Rests) -> None:
    _, looks = rests()
    wait_for_text("/proc/locks", f" {looks.pid} ")
    os.kill(looks.pid, signal.SIGSTOP)
    launch, other = rests(silence_s=4)
    Heart(launch).tell()
    assert said(other) == "has looked itself"


@pytest.mark.slow
def test_what_is_no_note_stops_nobody(rests: Rests) -> None:
    _, looks = rests()
    folder = notes()[0].parent
    plain, *links = names = [
        f"{LAUNCH}-{rest}"
        for rest in (f"1-{looks.pid}", "1-0", "1--1", f"1-{2**40}", f"{10**99}-{looks.pid}", f"9-{looks.pid}", "")
    ]
    (folder / plain).write_bytes(b"")
    for name in links:
        (folder / name).symlink_to(folder.parent / "missing")
    launch, other = rests()
    Heart(launch).tell()
    assert said(other) == "woken"
    assert said(looks) == "woken", "of a launch that cannot be looked at its stand-in hears"
    assert looks.poll() is None
    # It is woken by one of them, in the middle of a look that removes the others, too.
    wait_until(lambda: set(names) & {note.name for note in notes()}, accept=lambda left: not left, what="their removal")


@pytest.mark.slow
def test_without_a_folder_for_notes_each_looks_itself(rests: Rests, tmp_path: Path) -> None:
    Path(store_folder(), f"resting-{tmp_path.stat().st_dev:x}").write_bytes(b"")
    launch, other = rests(silence_s=4, leaves_note=False)
    Heart(launch).tell()
    assert said(other) == "has looked itself"
