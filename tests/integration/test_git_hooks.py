"""At stake: a worker that a git hook starts works where it was told to, and not in the repository of that hook."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from agentctl.supervision.worker.environment import OF_A_REPOSITORY
from tests.repositories import commit, git, new_repository
from tests.steps import new_task
from tests.support import run, wait_until

LINE = "echo z > z && git add z && git commit --quiet --message 'by a worker'; env | grep ^GIT_DIR > seen || true"


@pytest.fixture
def hooked(root: Path, tmp_path: Path) -> Path:
    """Return a linked worktree, whose repository has a hook that starts two workers in the repository `other`."""
    new_task(cap=1)
    other, main = new_repository(tmp_path / "other"), new_repository(tmp_path / "main")
    begun = f"{sys.executable} -m agentctl spawn --cwd '{other}'"
    hook = main / ".git" / "hooks" / "post-commit"
    hook.write_text(
        f"#!/bin/sh\n{begun} --name first -- sh -c \"{LINE}\"\n"
        f"{begun} --queue --name second -- sh -c \"git log --format=%s > log\"\n"
    )  # fmt: skip
    hook.chmod(0o755)
    git(main, "worktree", "add", "--quiet", "-b", "linked", str(tmp_path / "linked"))
    return tmp_path / "linked"


def test_a_worker_of_a_hook_commits_where_it_runs(hooked: Path, tmp_path: Path) -> None:
    (hooked / "fresh").write_text("x\n")
    commit(hooked, "by a person")
    run("wait", "first", "second")
    other = tmp_path / "other"
    assert git(other, "log", "--format=%s").split("\n")[0] == "by a worker"
    assert (other / "log").read_text() == "by a worker\nfirst\n"
    assert (other / "seen").read_text() == ""
    assert git(hooked, "log", "-1", "--format=%s") == "by a person\n"
    assert git(hooked, "status", "--porcelain") == ""


def test_what_git_calls_local_to_a_repository_is_known(tmp_path: Path) -> None:
    assert {*git(tmp_path, "rev-parse", "--local-env-vars").encode().split()} <= OF_A_REPOSITORY


def test_a_variable_of_a_repository_that_is_named_reaches_the_worker(root: Path, tmp_path: Path) -> None:
    task = new_task()
    given = {name.decode(): "inherited" for name in OF_A_REPOSITORY}
    run("spawn", "--name", "a", "--env", "GIT_DIR=named", "--", "env", env=given)
    wait_until(lambda: task.exit("a"), what="a to end")
    seen = [line for line in run("logs", "a").out.splitlines() if line.partition("=")[0].encode() in OF_A_REPOSITORY]
    assert seen == ["GIT_DIR=named"]


def test_the_first_worker_below_a_repository_leaves_nothing_in_its_status(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = new_repository(tmp_path / "fresh")
    monkeypatch.setenv("AGENTCTL_ROOT", str(repository / ".agentctl"))
    run("spawn", "--cwd", repository, "--wait", "--", "true")
    assert git(repository, "status", "--porcelain", "--untracked-files=all") == ""
