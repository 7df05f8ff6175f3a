"""Checks the line above a process while those in it end, each at the very moment at which that would hide others."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from functools import partial
from itertools import repeat
from typing import NoReturn

import pytest

from agentctl.adapters import descent
from agentctl.adapters.descent import Ancestry, ancestry_of, pids_above
from tests.chains import chain_of, end
from tests.life import known
from tests.moments import at_openings, nothing

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has child subreapers and /proc")
NOBODY = 2**22 + 1


@pytest.fixture
def chain() -> Iterator[list[int]]:
    """Start seven processes each of which is the parent of the next, and give their pids, the lowest first."""
    with chain_of(7) as pids:
        yield pids


def stat(pid: int) -> str:
    return f"/proc/{pid}/stat"


def test_it_goes_up_to_the_first_of_all(chain: list[int]) -> None:
    line = ancestry_of(chain[0])
    assert [pid for pid, _ in line[: len(chain) + 1]] == [*chain, os.getpid()]
    assert line == [(pid, known(pid).start) for pid, _ in line]
    assert pids_above(chain[0]) == [pid for pid, _ in line[1:]]
    assert line[len(chain) :] == ancestry_of(os.getpid())


def test_who_is_gone_has_none() -> None:
    assert ancestry_of(NOBODY) == []
    assert pids_above(NOBODY) == []
    assert descent.judged(NOBODY, tuple) == ()


@pytest.mark.parametrize(("read", "gone"), [(1, 1), (2, 2), (1, 3)])
def test_one_that_ends_meanwhile_hides_none_above_it(chain: list[int], read: int, gone: int) -> None:
    with at_openings(stat(chain[read]), [partial(end, chain[gone])]):
        line = ancestry_of(chain[0])
    assert line == ancestry_of(chain[0])
    assert [pid for pid, _ in line[: gone + 1]] == [*chain[:gone], chain[-1]]


def test_two_that_end_meanwhile_hide_none(chain: list[int]) -> None:
    """The second is the one that is asked again."""
    with (
        at_openings(stat(chain[2]), [partial(end, chain[2])]),
        at_openings(stat(chain[1]), [nothing, partial(end, chain[1])]),
    ):
        line = ancestry_of(chain[0])
    assert line == ancestry_of(chain[0])
    assert [pid for pid, _ in line[:2]] == [chain[0], chain[-1]]


def test_a_hidden_one_ends_it(chain: list[int]) -> None:
    """With hidepid=2 there is nothing in /proc of another user's process."""

    def hide() -> NoReturn:
        raise FileNotFoundError

    with at_openings(stat(chain[3]), repeat(hide)):
        assert pids_above(chain[0]) == chain[1:3]


def test_a_look_during_which_one_ended_is_made_again(chain: list[int]) -> None:
    looks: list[Ancestry] = []

    def look(line: Ancestry) -> int:
        looks.append(line)
        if len(looks) == 1:
            end(chain[2])
        return len(looks)

    assert descent.judged(chain[0], look) == 2
    assert [len(line) for line in looks] == [len(ancestry_of(chain[0])) + lost for lost in (4, 0)]


def test_and_not_for_ever(chain: list[int]) -> None:
    """Whoever has processes above one end on purpose holds up nobody."""
    left = chain[1:-1]

    def look(line: Ancestry) -> str:
        end(left.pop())
        return "a look"

    assert descent.judged(chain[0], look) is None
    assert len(left) == 1
