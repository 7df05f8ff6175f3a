"""At stake: a worktree that is gone, or with files that git cannot take, costs no more of a record than it must."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.repositories import branches, git, new_repository, record, worktrees
from tests.steps import Task, new_task, spawn
from tests.support import run

COMMIT = "echo x > x; git add x; git commit --quiet -m x"


@pytest.fixture
def task(root: Path) -> Task:
    return new_task()


@pytest.fixture
def repository(task: Task, tmp_path: Path) -> Path:
    return new_repository(tmp_path / "repository")


def work(repository: Path, line: str) -> None:
    spawn(["/bin/sh", "-c", line], "--worktree", "--cwd", repository, "--wait", name="a", check=False)


@pytest.mark.parametrize("how", ['rm -rf "$PWD"', 'git worktree remove --force "$PWD"'])
def test_a_worktree_that_its_worker_removed_is_recorded_from_its_branch(
    task: Task, repository: Path, how: str
) -> None:  # fmt: skip
    work(repository, f"{COMMIT}; {how}")
    changes = record(task, "a")["changes"]
    assert (changes["files"], changes["commits"], changes["onlyCommits"]) == ({"x": "added"}, 1, True)
    assert run("worktrees", "diff", "a").out.endswith("+x\n")
    assert "what was not committed is lost" in run("result", "a").err
    assert [one for one in run("doctor", "--json").json if "worktree" in one["what"]] == []
    git(repository, "merge", "--quiet", "agentctl/t1/a")
    run("worktrees", "remove", "a")
    assert (worktrees(repository), branches(repository)) == ([], ["main"])


def test_what_nobody_can_tell_any_more_is_a_note_and_no_advice(task: Task, repository: Path) -> None:
    away = f"git worktree remove --force $PWD; cd /; git -C '{repository}' branch -D agentctl/t1/a"
    work(repository, f"{COMMIT}; {away}")
    assert record(task, "a")["changes"]["lost"] is True
    assert "cannot be told any more" in run("result", "a").err
    (found,) = [one for one in run("doctor", "--fix", "--json").json if "was not recorded" in one["what"]]
    assert (found["severity"], found["next"]) == ("note", "")
    run("worktrees", "remove", "a")


SETTINGS = {
    "safecrlf": {"core.safecrlf": "true", "core.autocrlf": "input"}, "order": {"diff.orderFile": "missing/order"},
    "encoding": {},
}  # fmt: skip


@pytest.mark.parametrize("setting", list(SETTINGS))
def test_a_setting_of_the_user_costs_no_more_than_one_file(task: Task, repository: Path, setting: str) -> None:
    for name, value in SETTINGS[setting].items():
        git(repository, "config", name, value)
    encoding = "echo 'n.txt working-tree-encoding=nonsense' > .gitattributes; " if setting == "encoding" else ""
    work(repository, f"{encoding}printf 'n\\r\\n' > n.txt; echo good > good.txt")
    changes = record(task, "a")["changes"]
    assert changes["files"]["good.txt"] == "added"
    assert [one["path"] for one in changes.get("leftOut", [])] == (["n.txt"] if encoding else [])
    assert "+good" in run("worktrees", "diff", "a").out
