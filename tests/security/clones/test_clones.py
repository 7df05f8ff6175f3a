"""At stake: a person types a command in a repository that a stranger wrote, and the stranger gets something by it.

In a clone, or in a task of one's own that files were added to, no command runs a program, follows a link to write or to
cut a file, takes over a rule that allows, or sleeps or eats memory for ever because of what lies there.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from agentctl.errors import ExitCode
from tests.security.clones.commands import (
    ADOPTED,
    BELOW,
    CONCERNS,
    DEMO,
    GATED,
    OWN,
    READING,
    WRITING,
    Command,
)
from tests.security.clones.guarded import Bounds, breaches, run
from tests.security.clones.hostile import FORMS, OBEYED, Piece, elements, folders_together, gates, together, tricks
from tests.security.clones.worlds import ORIGIN, TASK, World, put
from tests.support import by_turns


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
    """Let the task be the person's own, as it would be had they made it: under an origin that no stranger knows."""
    put(world.clone / TASK / "origin", f"{'1' * 32}\n")
    for file in (world.clone / TASK).glob("agents/*/spec.json"):
        put(file, file.read_text().replace(ORIGIN, "1" * 32))
    ended = run(world, Command(("trust", TASK)), Bounds())
    assert ended.code == 0, ended.err
    world.settle()  # While the path leads to the task: a piece may make it lead elsewhere.


def part(commands: Sequence[Command], number: int, of: int) -> Sequence[Command]:
    """Return a part of the commands, another one for each number: whoever goes through all numbers has all of them."""
    return commands[number % of :: of]


def once(commands: Sequence[Command]) -> Sequence[Command]:
    """Return the commands without those that stand there before."""
    return list({repr(command): command for command in commands}.values())


_FOLDER_FORMS = [form for form, (kinds, _) in FORMS.items() if "d" in kinds]
_TRICKS = tricks()
#: The kinds of tricks that would gain something where the task is believed.
_IN_ONES_OWN = [piece for piece in _TRICKS if piece.concerns in {"rules", "queue", "processes"}]


_LISTS = {"reading": READING, "writing": WRITING, "own": [*OWN, *BELOW]}
_OTHERS = [*(each for concern in CONCERNS.values() for each in (*concern.always, *concern.more)), *GATED, *ADOPTED]
_LISTS["other"] = list(
    {
        str(each): each for each in _OTHERS if each != DEMO and not any(each in listed for listed in _LISTS.values())
    }.values()
)


@pytest.mark.slow
@pytest.mark.parametrize("commands", _LISTS.values(), ids=_LISTS)
def test_an_innocent_clone_passes(commands: list[Command], tmp_path: Path, canary: subprocess.Popen[bytes]) -> None:
    """Nor is any of the command lines wrong in itself: nothing could be learnt from it."""
    world = World(tmp_path / "w", canary)
    check(world, [], commands)
    assert [line for line, code in world.codes.items() if code == ExitCode.USAGE] == []


@pytest.mark.parametrize(("number", "piece"), by_turns(enumerate(_TRICKS)), ids=str)
def test_what_says_evil_gains_nothing(
    number: int, piece: Piece, tmp_path: Path, canary: subprocess.Popen[bytes]
) -> None:
    concern = CONCERNS[piece.concerns]
    check(World(tmp_path / "w", canary), [piece], [*part(concern.more, number, 3), *concern.always])


def test_nothing_that_a_stranger_wrote_is_obeyed_by_the_terminal(
    tmp_path: Path, canary: subprocess.Popen[bytes]
) -> None:
    for_people = [each for each in READING if not each.environ and "--json" not in each.args]
    check(World(tmp_path / "w", canary), [OBEYED], for_people)


@pytest.mark.slow
@pytest.mark.parametrize(("number", "piece"), by_turns(enumerate(_IN_ONES_OWN)), ids=str)
def test_what_says_evil_gains_nothing_in_a_task_of_ones_own(
    number: int, piece: Piece, tmp_path: Path, canary: subprocess.Popen[bytes]
) -> None:
    world, concern = World(tmp_path / "w", canary), CONCERNS[piece.concerns]
    adopt(world)
    check(
        world, [piece], [replace(command, starts=True) for command in (*part(concern.more, number, 3), *concern.always)]
    )


@pytest.mark.soak
@pytest.mark.parametrize("piece", _TRICKS, ids=str)
def test_what_says_evil_gains_nothing_by_any_command(
    piece: Piece, tmp_path: Path, canary: subprocess.Popen[bytes]
) -> None:
    concern = CONCERNS[piece.concerns]
    check(World(tmp_path / "w", canary), [piece], once([*concern.more, *concern.always, *READING, *WRITING]))


@pytest.mark.parametrize(("number", "form"), by_turns(enumerate(FORMS)), ids=str)
def test_nothing_in_the_place_of_files_does_harm(
    number: int, form: str, tmp_path: Path, canary: subprocess.Popen[bytes]
) -> None:
    check(World(tmp_path / "w", canary), together(form), part([*READING, *WRITING], number, 9))


@pytest.mark.parametrize(("number", "form"), by_turns(enumerate(_FOLDER_FORMS)), ids=str)
def test_nothing_in_the_place_of_folders_does_harm(
    number: int, form: str, tmp_path: Path, canary: subprocess.Popen[bytes]
) -> None:
    check(World(tmp_path / "w", canary), folders_together(form), part([*READING, *WRITING], number, 6))


@pytest.mark.slow
@pytest.mark.parametrize(("number", "piece"), by_turns(enumerate(gates()[::9]), 2), ids=str)
def test_nothing_that_much_hangs_on_does_harm(
    number: int, piece: Piece, tmp_path: Path, canary: subprocess.Popen[bytes]
) -> None:
    check(World(tmp_path / "w", canary), [piece], part(GATED, number, 2))


@pytest.mark.parametrize(
    ("number", "form", "place"),
    [
        *by_turns((number, form, together) for number, form in enumerate(FORMS)),
        *by_turns((number, form, folders_together) for number, form in enumerate(_FOLDER_FORMS)),
    ],
    ids=lambda value: getattr(value, "__name__", None) or str(value),
)
@pytest.mark.slow
def test_nothing_in_a_task_of_ones_own_does_harm(
    number: int, form: str, place: Callable[[str], list[Piece]], tmp_path: Path, canary: subprocess.Popen[bytes]
) -> None:
    """Each command meets each link: there it is only how a file is opened that keeps a write from its target."""
    world = World(tmp_path / "w", canary)
    adopt(world)
    check(world, place(form), ADOPTED if form.startswith("a link ") else part(ADOPTED, number, 5))


@pytest.mark.soak
@pytest.mark.parametrize(("number", "piece"), [*enumerate(gates())], ids=str)
def test_nothing_that_much_hangs_on_does_harm_in_a_task_of_ones_own(
    number: int, piece: Piece, tmp_path: Path, canary: subprocess.Popen[bytes]
) -> None:
    """Whatever else is tried: what repairs it is tried on each."""
    world = World(tmp_path / "w", canary)
    adopt(world)
    repairing = [command for command in ADOPTED if "--fix" in command.args]
    assert repairing
    check(world, [piece], once([*part(ADOPTED, number, 12), *repairing]))


@pytest.mark.soak
@pytest.mark.parametrize("is_own", [False, True], ids=["a stranger's", "one's own"])
def test_no_clone_with_any_of_these_does_harm(is_own: bool, tmp_path: Path, canary: subprocess.Popen[bytes]) -> None:
    """Other ones each day, the same ones all day."""
    odd = st.lists(st.sampled_from(elements()), min_size=1, max_size=6)
    evil = st.just([]) if is_own else st.lists(st.sampled_from(tricks()), max_size=1)
    # What says evil first: some of it is made of what an honest clone has in that place.
    pieces = st.builds(lambda first, then: [*first, *then], evil, odd)
    commands = st.lists(st.sampled_from(ADOPTED if is_own else [*READING, *WRITING, *OWN]), min_size=4, max_size=12)
    numbers = count()

    day = datetime.now(UTC).toordinal()
    print(f"the seed of today: {day}")

    @seed(day)
    @settings(max_examples=200, database=None, print_blob=True, suppress_health_check=list(HealthCheck))
    @given(pieces, commands)
    def one(pieces: list[Piece], commands: list[Command]) -> None:
        world = World(tmp_path / str(next(numbers)), canary)
        if is_own:
            adopt(world)
        check(world, pieces, commands)

    one()
