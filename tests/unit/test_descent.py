"""Checks the line above a process while those in it end, each at the very moment at which that would hide others."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from agentctl.adapters import descent, processes
from agentctl.adapters.descent import Line, line_of, pids_above
from tests.life import known, lives
from tests.support import wait_until

#: Each starts the next and says who they all are. The first adopts whoever is left behind, as a shim does
#: (PR_SET_CHILD_SUBREAPER).
CHAIN = """
import ctypes, json, os, signal
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
pids = [os.getpid()]
while len(pids) < 7 and not os.fork():
    pids.append(os.getpid())
if len(pids) == 7:
    print(json.dumps(pids), flush=True)
    signal.pause()
while True:
    os.wait()
"""


@pytest.fixture
def chain() -> Iterator[list[int]]:
    """Start processes each of which is the parent of the next, and give their pids, the lowest first."""
    line = [sys.executable, "-c", CHAIN]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout is not None
        pids = json.loads(first.stdout.readline())
        started = [known(pid) for pid in pids]
        yield pids[::-1]
        for one in started:
            if lives(one):
                os.kill(one.pid, signal.SIGKILL)


def ends(pid: int) -> None:
    """End a process, and wait until its parent has reaped it."""
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: processes.read_stat(pid), accept=lambda stat: stat is None, what=f"{pid} to be gone")


def ends_once_read(pid: int, then: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """End a process as soon as the stat of another one has been read."""
    real: Callable[[int], processes.Stat | None] = processes.read_stat

    def read(asked: int) -> processes.Stat | None:
        stat = real(asked)
        if asked == pid and real(then) is not None:
            os.kill(then, signal.SIGKILL)
            wait_until(lambda: real(then), accept=lambda stat: stat is None, what=f"{then} to be gone")
        return stat

    monkeypatch.setattr(processes, "read_stat", read)


def test_it_goes_up_to_the_first_of_all(chain: list[int]) -> None:
    line = line_of(chain[0])
    assert [pid for pid, _ in line[: len(chain) + 1]] == [*chain, os.getpid()]
    assert line == [(pid, known(pid).start) for pid, _ in line]
    assert pids_above(chain[0]) == [pid for pid, _ in line[1:]]
    assert line[len(chain) :] == line_of(os.getpid())


def test_who_is_gone_has_none() -> None:
    assert line_of(2**22 + 1) == []
    assert pids_above(2**22 + 1) == []
    assert descent.judged(2**22 + 1, tuple) == ()


@pytest.mark.parametrize(("read", "gone"), [(0, 1), (1, 2), (0, 3)])
def test_one_that_ends_meanwhile_hides_none_above_it(
    chain: list[int], read: int, gone: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends_once_read(chain[read], chain[gone], monkeypatch)
    line = line_of(chain[0])
    monkeypatch.undo()
    assert line == line_of(chain[0])
    assert [pid for pid, _ in line[: gone + 1]] == [*chain[:gone], chain[-1]]


def test_two_that_end_meanwhile_hide_none(chain: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    ends_once_read(chain[1], chain[2], monkeypatch)
    ends_once_read(chain[2], chain[1], monkeypatch)  # Of those that are asked again.
    ends_once_read(chain[0], chain[3], monkeypatch)
    line = line_of(chain[0])
    monkeypatch.undo()
    assert line == line_of(chain[0])


def test_a_hidden_one_ends_it(chain: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    real = processes.read_stat
    monkeypatch.setattr(processes, "read_stat", lambda pid: None if pid == chain[3] else real(pid))
    assert pids_above(chain[0]) == chain[1:3]


def test_a_look_during_which_one_ended_is_made_again(chain: list[int]) -> None:
    looks: list[Line] = []

    def look(line: Line) -> int:
        looks.append(line)
        if len(looks) == 1:
            ends(chain[2])
        return len(looks)

    assert descent.judged(chain[0], look) == 2
    assert [len(line) for line in looks] == [len(line_of(chain[0])) + lost for lost in (4, 0)]


def test_and_not_for_ever(chain: list[int]) -> None:
    """Whoever has processes above one end on purpose holds up nobody."""
    left = chain[1:-1]

    def look(line: Line) -> str:
        ends(left.pop())
        return "a look"

    assert descent.judged(chain[0], look) is None
    assert len(left) == 1
