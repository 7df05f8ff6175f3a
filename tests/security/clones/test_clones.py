"""At stake: a person types a command in a repository that a stranger wrote, and the stranger gets something by it.

In a clone, or in a task of one's own that files were added to, no command runs a program, follows a link to write or to
cut a file, takes over a rule that allows, or sleeps or eats memory for ever because of what lies there.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.security.clones.commands import (
    ADOPTED,
    BELOW,
    CONCERNS,
    GATED,
    OWN,
    READING,
    WRITING,
    Command,
)
from tests.security.clones.guarded import Bounds, breaches, run
from tests.security.clones.hostile import FORMS, Piece, elements, folders_together, gates, together, tricks
from tests.security.clones.worlds import TASK, World


@pytest.fixture
def canary() -> Iterator[subprocess.Popen[bytes]]:
    """Start a process of the person's own, which nothing in a clone may touch."""
    with subprocess.Popen(["sleep", "100000"], start_new_session=True) as process:
        yield process
        process.kill()


def check(world: World, pieces: Sequence[Piece], commands: Sequence[Command]) -> None:
    """Run commands one after the other in a clone with these pieces; fail with all that they did."""
    for piece in pieces:
        piece.make(world)
    world.settle()
    told: list[str] = []
    for command in commands:
        told += [f"{command}: {breach}" for breach in breaches(world, command, Bounds())]
        if any("a process of mine" in line or "did not end" in line for line in told):
            break
    if told:
        shown = ", ".join(map(str, pieces[:5])) + (f" and {len(pieces) - 5} more" if len(pieces) > 5 else "")
        pytest.fail("\n".join([f"a clone with {shown}", *told]), pytrace=False)


def adopt(world: World) -> None:
    """Let the task be the person's own, as it would be had they made it."""
    ended = run(world, Command(("trust", TASK)), Bounds())
    assert ended.code == 0, ended.err


def part(commands: Sequence[Command], number: int, of: int) -> Sequence[Command]:
    """Return a part of the commands, another one for each number: whoever goes through all numbers has all of them."""
    return commands[number % of :: of]


_FOLDER_FORMS = [form for form, (kinds, _) in FORMS.items() if "d" in kinds]
_FAMILIES = {"places", "processes", "queue", "reading", "names"}


def test_an_innocent_clone_passes(tmp_path: Path, canary: subprocess.Popen[bytes]) -> None:
    check(World(tmp_path / "w", canary), [], [*part([*READING, *WRITING], 0, 3), *OWN, *BELOW])


@pytest.mark.parametrize(("number", "piece"), list(enumerate(tricks())), ids=str)
def test_what_says_evil_gains_nothing(
    number: int, piece: Piece, tmp_path: Path, canary: subprocess.Popen[bytes]
) -> None:
    commands = CONCERNS[piece.concerns]
    check(World(tmp_path / "w", canary), [piece], part(commands, number, 6 if piece.concerns in _FAMILIES else 1))


@pytest.mark.parametrize(("number", "form"), list(enumerate(FORMS)), ids=str)
def test_nothing_in_the_place_of_files_does_harm(
    number: int, form: str, tmp_path: Path, canary: subprocess.Popen[bytes]
) -> None:
    check(World(tmp_path / "w", canary), together(form), part([*READING, *WRITING], number, 9))


@pytest.mark.parametrize(("number", "form"), list(enumerate(_FOLDER_FORMS)), ids=str)
def test_nothing_in_the_place_of_folders_does_harm(
    number: int, form: str, tmp_path: Path, canary: subprocess.Popen[bytes]
) -> None:
    check(World(tmp_path / "w", canary), folders_together(form), part([*READING, *WRITING], number, 6))


@pytest.mark.parametrize(("number", "piece"), list(enumerate(gates()[::9])), ids=str)
def test_nothing_that_much_hangs_on_does_harm(
    number: int, piece: Piece, tmp_path: Path, canary: subprocess.Popen[bytes]
) -> None:
    check(World(tmp_path / "w", canary), [piece], part(GATED, number, 2))


@pytest.mark.parametrize(("number", "form"), list(enumerate(FORMS)), ids=str)
def test_nothing_in_the_place_of_files_of_ones_own_does_harm(
    number: int, form: str, tmp_path: Path, canary: subprocess.Popen[bytes]
) -> None:
    world = World(tmp_path / "w", canary)
    adopt(world)
    check(world, together(form), part(ADOPTED, number, 5))


@pytest.mark.parametrize(("number", "form"), list(enumerate(_FOLDER_FORMS)), ids=str)
def test_nothing_in_the_place_of_folders_of_ones_own_does_harm(
    number: int, form: str, tmp_path: Path, canary: subprocess.Popen[bytes]
) -> None:
    world = World(tmp_path / "w", canary)
    adopt(world)
    check(world, folders_together(form), part(ADOPTED, number, 4))


@pytest.mark.soak
@pytest.mark.parametrize("is_own", [False, True], ids=["a stranger's", "one's own"])
def test_no_clone_with_any_of_these_does_harm(is_own: bool, tmp_path: Path, canary: subprocess.Popen[bytes]) -> None:
    odd = st.lists(st.sampled_from(elements()), min_size=1, max_size=6)
    evil = st.just([]) if is_own else st.lists(st.sampled_from(tricks()), max_size=1)
    # What says evil first: some of it is made of what an honest clone has in that place.
    pieces = st.builds(lambda first, then: [*first, *then], evil, odd)
    commands = st.lists(st.sampled_from(ADOPTED if is_own else [*READING, *WRITING, *OWN]), min_size=4, max_size=12)
    numbers = count()

    @settings(max_examples=200, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(pieces, commands)
    def one(pieces: list[Piece], commands: list[Command]) -> None:
        world = World(tmp_path / str(next(numbers)), canary)
        if is_own:
            adopt(world)
        check(world, pieces, commands)

    one()
