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
from tests.repositories import IDENTITY, git, new_repository
from tests.support import REPOSITORY
from tests.turns import TURNS, Landing, chosen, landings_in, turn_of

CASES = [f"tests/agents/test_walls.py::test_patches[{number}]" for number in range(600)]
COMMITS = st.text("0123456789abcdef", min_size=40, max_size=40)


def test_each_case_has_one_turn_and_each_turn_about_a_third() -> None:
    numbers = [turn_of(case) for case in CASES]
    assert set(numbers) == set(TURNS)
    assert all(150 < numbers.count(turn) < 250 for turn in TURNS)


def test_the_turn_of_a_case_is_the_same_in_each_process_and_forever() -> None:
    assert turn_of("tests/agents/test_walls.py::test_patches[codex]") == 1


@given(st.lists(COMMITS, min_size=3, max_size=12, unique=True))
def test_any_three_landings_in_a_row_try_all(commits: list[str]) -> None:
    landings: list[Landing] = []
    for commit in commits:
        landings.append(Landing(commit, chosen(commit, landings)))
    had = [landing.turn for landing in landings]
    assert all({*had[at : at + 3]} == {*TURNS} for at in range(len(had) - 2))


@given(COMMITS)
def test_without_a_landing_before_it_the_commit_chooses(commit: str) -> None:
    assert chosen(commit, []) == TURNS[int(commit, 16) % 3]


def test_of_a_history_only_commits_that_say_a_turn_are_landings() -> None:
    assert landings_in("ee\ndd 2\ncc x\nbb 1 3\naa \n") == [("bb", 3), ("dd", 2)]


def choose(place: Path, *args: str) -> tuple[str, str]:
    """Return what a copy of the program in that folder prints on stdout and on stderr."""
    (place / "turns.py").write_bytes(Path(turns.__file__).read_bytes())
    argv = [sys.executable, str(place / "turns.py"), *args]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, env={**os.environ, **IDENTITY})
    return done.stdout.strip(), done.stderr.strip()


def test_three_landings_in_a_row_try_all_though_each_is_in_a_new_clone(tmp_path: Path) -> None:
    had, latest = [], new_repository(tmp_path / "0")
    for number in range(1, 4):
        clone = tmp_path / str(number)
        git(tmp_path, "clone", str(latest), str(clone))
        for message in ("more", "the last one\n\nWhy it is."):
            git(clone, "commit", "--allow-empty", "--message", message)
        turn, said = choose(clone)
        assert f"commit {git(clone, 'rev-parse', 'HEAD').strip()[:9]}" in said
        assert "`make turn` writes it down" in said
        assert f"repeat it with TURN={turn}" in said
        assert choose(clone, "--write") == (f"Turn: {turn}", "")
        had.append(turn)
        latest = clone
    assert sorted(had) == list(map(str, TURNS))


def test_the_turn_is_written_once_and_nothing_else_is_committed_with_it(tmp_path: Path) -> None:
    repository = new_repository(tmp_path / "repository")
    git(repository, "commit", "--allow-empty", "--message", "the last one\n\nWhy it is.")
    (repository / "staged").touch()
    git(repository, "add", "staged")
    turn, _ = choose(repository)
    assert choose(repository, "--write") == (f"Turn: {turn}", "")
    written = git(repository, "rev-parse", "HEAD")
    assert git(repository, "log", "-1", "--format=%B").strip() == f"the last one\n\nWhy it is.\n\nTurn: {turn}"
    assert choose(repository, "--write") == (f"Turn: {turn}", "")
    assert git(repository, "rev-parse", "HEAD") == written
    assert "staged" not in git(repository, "ls-tree", "-r", "--name-only", "HEAD")
    assert "its message says it" in choose(repository)[1]


def test_where_nothing_can_be_written_that_is_said(tmp_path: Path) -> None:
    argv = [sys.executable, turns.__file__, "--write"]
    env = {**os.environ, **IDENTITY, "GIT_DIR": str(tmp_path / "none")}
    done = subprocess.run(argv, capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 2
    assert "error: the message of the last commit could not be changed: fatal: not a git repository" in done.stderr


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
        f"test-page TURN={turn}",
        f"--jobs=3 --output-sync=target test-typer test-extras test-slurm TURN={turn}",
        f"--jobs=2 lint test TESTS=all TURN={turn}",
    ]


def test_another_turn_can_be_asked_for(landing: Path) -> None:
    assert lands(landing, TURN="all").returncode == 0
    assert "test-agents TURN=all" in (landing / "made").read_text()


def test_a_landing_ends_at_what_fails(landing: Path) -> None:
    assert lands(landing, FAILS="test-page").returncode == 2
    assert (landing / "made").read_text().splitlines()[-1].startswith("test-page")


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
