"""Each of the longest cases is tried by one of three landings; tests beside each other begin with the long ones."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import turns
from tests.order import dealt
from tests.repositories import git, new_repository
from tests.support import REPOSITORY
from tests.turns import TURNS, Landing, chosen, landings_in, turn_of

CASES = [f"tests/agents/test_walls.py::test_patches[{number}]" for number in range(600)]
COMMITS = st.text("0123456789abcdef", min_size=40, max_size=40)


def test_each_case_has_one_turn_and_each_turn_about_a_third() -> None:
    numbers = [turn_of(case) for case in CASES]
    assert set(numbers) == set(TURNS)
    assert all(150 < numbers.count(turn) < 250 for turn in TURNS)


def test_the_turn_of_a_case_is_the_same_in_each_process_and_forever() -> None:
    assert turn_of("tests/agents/test_walls.py::test_patches[codex]") == 3


@given(st.lists(COMMITS, min_size=3, max_size=12, unique=True))
def test_any_three_landings_in_a_row_try_all(commits: list[str]) -> None:
    landings: list[Landing] = []
    for commit in commits:
        landings.append(Landing(commit, chosen(commit, landings)))
        assert chosen(commit, landings) == landings[-1].turn, "a commit that is landed again keeps its turn"
        landings.append(landings[-1])
    had = [landing.turn for landing in landings[::2]]
    assert all({*had[at : at + 3]} == {*TURNS} for at in range(len(had) - 2))


@given(COMMITS)
def test_without_a_landing_before_it_the_commit_chooses(commit: str) -> None:
    assert chosen(commit, []) == TURNS[int(commit, 16) % 3]


def test_of_a_record_only_whole_lines_about_what_came_before_count() -> None:
    assert landings_in("aa 1\nbb 2\ncc\ncc x\naa 3\ncc 4\ndd 2", {"aa", "cc", "dd"}) == [
        ("aa", 1),
        ("aa", 3),
        ("dd", 2),
    ]


def choose(place: Path, *args: str) -> tuple[str, str]:
    """Return what a copy of the program in that folder prints on stdout and on stderr."""
    (place / "turns.py").write_bytes(Path(turns.__file__).read_bytes())
    argv = [sys.executable, str(place / "turns.py"), *args]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, env={**os.environ, "LC_ALL": "C"})
    return done.stdout.strip(), done.stderr.strip()


def test_what_landed_is_written_down_for_all_worktrees_of_a_clone(tmp_path: Path) -> None:
    repository, other = new_repository(tmp_path / "repository"), tmp_path / "other"
    git(repository, "worktree", "add", "--detach", str(other))
    latest, had = "HEAD", []
    for place in (repository, other, repository):
        git(place, "checkout", "--detach", latest)
        git(place, "commit", "--allow-empty", "--message", "more")
        latest = git(place, "rev-parse", "HEAD").strip()
        turn, said = choose(place)
        assert f"commit {latest[:9]}" in said
        assert f"repeat it with TURN={turn}" in said
        assert choose(place, "--landed", turn) == ("", "")
        had.append(turn)
    assert sorted(had) == list(map(str, TURNS))


def collected(*args: str) -> list[str]:
    """Return the names of the tests that pytest finds in the tests of hostile clones."""
    file = "tests/security/clones/test_clones.py"
    argv = [sys.executable, "-m", "pytest", "--collect-only", "--quiet", "-p", "no:cacheprovider", *args, file]
    done = subprocess.run(argv, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    return [line for line in done.stdout.splitlines() if "::" in line]


@pytest.mark.slow
def test_pytest_tries_each_long_case_in_one_turn_and_each_short_one_in_all() -> None:
    times = Counter(case for turn in TURNS for case in collected("--turn", str(turn)))
    assert set(times.values()) == {1, len(TURNS)}
    assert sorted(case for case, each in times.items() if each == 1) == sorted(collected("-m", "slow or soak"))


@pytest.mark.parametrize("is_repository", [False, True])
def test_without_a_commit_all_are_tried(tmp_path: Path, is_repository: bool) -> None:
    if is_repository:
        git(tmp_path, "init")
    turn, said = choose(tmp_path)
    assert turn == "all"
    assert said.startswith("all turns: there is no commit here")
    assert choose(tmp_path, "--landed", turn) == ("", "")


@pytest.fixture
def landing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a repository with `.ci/run`, and a `make` that only writes down what it was told, and may fail."""
    repository = new_repository(tmp_path / "repository")
    for file in (".ci/run", "tests/turns.py"):
        (repository / file).parent.mkdir()
        shutil.copy(REPOSITORY / file, repository / file)
    (repository / ".venv" / "bin").mkdir(parents=True)
    (repository / ".venv" / "bin" / "python").symlink_to(sys.executable)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "make").write_text('#!/bin/sh\necho "$@" >> made\ncase "$*" in *"$FAILS"*) exit 2;; esac\n')
    (tmp_path / "bin" / "make").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    return repository


def lands(repository: Path, **more: str) -> subprocess.CompletedProcess[str]:
    # Whoever tries one turn, tries this test in it too.
    inherited = {name: value for name, value in os.environ.items() if name != "TURN"}
    env = {**inherited, "FAILS": "nothing of this name", **more}
    return subprocess.run(["bash", ".ci/run"], cwd=repository, env=env, capture_output=True, text=True, check=False)


def test_a_landing_says_its_turn_and_keeps_to_it(landing: Path) -> None:
    done = lands(landing)
    assert (done.returncode, done.stdout) == (0, ""), "the last line is the one of pytest"
    turn = done.stderr.partition(" of 3 ")[0].removeprefix("turn ")
    assert f"repeat it with TURN={turn}" in done.stderr
    assert (landing / "made").read_text().splitlines() == [
        ".venv/.dev",
        f"test-agents TURN={turn}",
        f"test-typer TURN={turn}",
        "test-extras",
        "test-page",
        "test-slurm",
        f"--jobs=2 lint test TESTS=all TURN={turn}",
    ]
    assert (landing / ".git" / turns.RECORD).read_text().split() == [git(landing, "rev-parse", "HEAD").strip(), turn]


def test_another_turn_can_be_asked_for(landing: Path) -> None:
    assert lands(landing, TURN="all").returncode == 0
    assert "test-agents TURN=all" in (landing / "made").read_text()
    assert not (landing / ".git" / turns.RECORD).exists()


def test_what_fails_has_not_landed(landing: Path) -> None:
    assert lands(landing, FAILS="lint test").returncode == 2
    assert not (landing / ".git" / turns.RECORD).exists()


@given(st.integers(0, 40), st.integers(1, 6))
def test_each_process_begins_with_as_many_long_tests_as_the_others(number: int, hands: int) -> None:
    order, left = dealt(range(number), hands), hands
    assert sorted(order) == list(range(number))
    pieces = []
    while left:  # as xdist cuts them
        most = len(order) // left
        pieces.append(order[:most])
        order, left = order[most:], left - 1
    assert all(piece == sorted(piece) for piece in pieces)
    assert {piece[0] for piece in pieces if piece} == set(range(min(number, hands)))
