"""At stake: git runs with nothing but what it was given, ends in time, and is quoted if it refuses."""

from __future__ import annotations

import io
import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentctl.adapters.git import (
    GitError,
    GitTimeout,
    git_in,
    git_of,
    git_of_worktree,
    plain_environment,
    quoted_alternate,
)
from tests.repositories import commit, git, new_repository


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return new_repository(tmp_path / "r")


@given(st.dictionaries(st.from_regex(r"(GIT_)?[A-Z_]{1,12}", fullmatch=True), st.text(max_size=3)))
def test_no_variable_that_names_a_repository_is_handed_on(environ: dict[str, str]) -> None:
    kept = plain_environment({**environ, "GIT_DIR": "x", "GIT_INDEX_FILE": "y", "GIT_CONFIG_COUNT": "1"})
    assert not {"GIT_DIR", "GIT_INDEX_FILE", "GIT_CONFIG_COUNT"} & set(kept)
    assert {name: value for name, value in environ.items() if not name.startswith("GIT_")}.items() <= kept.items()


def test_a_person_s_own_settings_are_handed_on() -> None:
    own = {"GIT_CONFIG_GLOBAL": "/x", "GIT_SSH_COMMAND": "ssh -v", "HOME": "/h"}
    assert plain_environment(own) == own


def test_its_words_are_told_in_one_line_and_in_english(repository: Path) -> None:
    found = git_in(str(repository), limit_s=20, environ={**os.environ, "LC_ALL": "de_DE.UTF-8"})
    with pytest.raises(GitError, match=r"^git rev-parse: fatal: Needed a single revision$"):
        found.text("rev-parse", "--verify", "nothing")
    with pytest.raises(GitError, match="not a git repository"):
        git_in(str(repository.parent), limit_s=20).text("rev-parse", "HEAD")


def test_a_missing_git_and_a_missing_folder_are_told_apart(repository: Path, tmp_path: Path) -> None:
    missing_folder = str(tmp_path / "missing")
    with pytest.raises(GitError, match="there is no program 'git'") as missing:
        git_in(str(repository), limit_s=20, environ={"PATH": missing_folder}).run("status")
    assert missing.value.hint == "install git"
    with pytest.raises(GitError, match=f"there is no folder {missing_folder}"):
        git_in(missing_folder, limit_s=20).run("status")


def test_one_that_does_not_end_is_ended_with_all_that_it_started(repository: Path) -> None:
    git(repository, "config", "alias.sleeps", "!exec sleep 97")
    with pytest.raises(GitTimeout, match="git sleeps did not end in time"):
        git_in(str(repository), limit_s=0.3).run("sleeps")


def test_what_it_prints_is_bounded(repository: Path) -> None:
    (repository / "big").write_bytes(os.urandom(1 << 18))
    commit(repository, "big")
    found = git_in(str(repository), limit_s=20)
    with tempfile.TemporaryFile() as file:
        with pytest.raises(GitError):
            found.run("cat-file", "blob", "HEAD:big", into=file, most_bytes=1 << 16)
        assert file.seek(0, io.SEEK_END) == 1 << 16
    assert len(found.run("cat-file", "blob", "HEAD:big")) == 1 << 18


def test_names_hold_any_byte(repository: Path) -> None:
    odd = b'odd \n\xff\t"'
    Path(os.fsdecode(os.fsencode(repository) + b"/" + odd)).write_bytes(b"x")
    assert git_in(str(repository), limit_s=20).names("ls-files", "-z", "--others") == [os.fsdecode(odd)]


@pytest.mark.parametrize("name", ["plain", "co:lon", 'quo"te', "back\\slash", "é \t"])
def test_a_folder_of_objects_is_quoted_whatever_its_name(repository: Path, name: str) -> None:
    head = git(repository, "rev-parse", "HEAD").strip()
    moved = repository.with_name(name)
    shutil.copytree(repository, moved)
    new_repository(empty := repository.with_name("empty"))
    shutil.rmtree(repository)
    objects = {"GIT_ALTERNATE_OBJECT_DIRECTORIES": quoted_alternate(str(moved / ".git" / "objects"))}
    found = git_in(str(empty), limit_s=20).with_environment(objects)
    assert found.text("cat-file", "-t", head) == "commit"


def test_a_worktree_is_known_by_its_folders_whatever_its_git_file_says(repository: Path) -> None:
    path = repository.with_name("tree")
    git(repository, "worktree", "add", "--quiet", "-b", "own", str(path))
    places = (str(path), str(repository / ".git" / "worktrees" / "tree"), str(repository / ".git"))
    (path / ".git").unlink()
    new_repository(path)
    assert git_in(str(path), limit_s=20).text("symbolic-ref", "--short", "HEAD") == "main"
    assert git_of_worktree(*places, limit_s=20).text("symbolic-ref", "--short", "HEAD") == "own"
    assert git_of(places[2], limit_s=20).text("rev-parse", "own") == git(repository, "rev-parse", "main").strip()


def wrapped(folder: Path, repository: Path, tries: int) -> dict[str, str]:
    """Return an environment whose git meets a lock file, which is removed at the try number `tries`."""
    lock, calls = repository / ".git" / "refs" / "heads" / "new.lock", folder / "calls"
    lock.touch()
    program = folder / "bin" / "git"
    program.parent.mkdir()
    program.write_text(
        f"#!/bin/sh\necho x >> '{calls}'\n[ $(wc -l < '{calls}') -lt {tries} ] || rm -f '{lock}'\n"
        f'exec {shutil.which("git")} "$@"\n'
    )
    program.chmod(0o755)
    return {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}"}


def test_a_lock_of_another_git_is_waited_for(repository: Path, tmp_path: Path) -> None:
    found = git_in(str(repository), limit_s=20, environ=wrapped(tmp_path, repository, 3))
    found.patiently("branch", "new")
    assert (tmp_path / "calls").read_text() == "x\n" * 3
    with pytest.raises(GitError, match="already exists"):  # This error is permanent, so it is not retried.
        found.patiently("branch", "new")
    assert (tmp_path / "calls").read_text() == "x\n" * 4


def test_a_branch_in_the_way_of_a_name_is_no_lock(repository: Path) -> None:
    git(repository, "branch", "above")
    with pytest.raises(GitError, match="cannot lock ref") as refused:
        git_in(str(repository), limit_s=20).run("branch", "above/below")
    assert not refused.value.is_locked
