"""At stake: `worktrees` tells what is safe elsewhere, and removes nothing that is not."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.repositories import branches, commit, git, new_repository, record, worktrees
from tests.steps import Task, new_task, spawn
from tests.support import Completed, alike, run, worker
from tests.terminal import on_a_terminal


@pytest.fixture
def task(root: Path) -> Task:
    return new_task()


@pytest.fixture
def repository(task: Task, tmp_path: Path) -> Path:
    return new_repository(tmp_path / "repository")


def work(repository: Path, line: str, *, name: str = "a") -> None:
    spawn(["/bin/sh", "-c", line], "--worktree", "--cwd", repository, "--wait", name=name)


def state(name: str = "a") -> str:
    return str(next(row["state"] for row in run("worktrees", "--json").json if row["agentInstance"] == name))


def refused(name: str = "a") -> Completed:
    done = run("worktrees", "remove", name, check=False)
    assert (done.code, done.out) == (1, "")
    assert "hint: " in done.err
    return done


UNCOMMITTED = {
    "changed": "echo x >> a.txt", "new": "echo x > new", "in a new folder": "mkdir d; echo x > d/x",
    "deleted": "rm a.txt", "staged": "echo x > x; git add x", "own repository": "git init --quiet own",
}  # fmt: skip


@pytest.mark.parametrize("kind", ["new", *alike("own repository", "changed", "in a new folder", "deleted", "staged")])
def test_uncommitted_work_is_not_removed(task: Task, repository: Path, kind: str) -> None:
    work(repository, UNCOMMITTED[kind])
    assert state() == "uncommitted"
    assert "holds uncommitted work" in refused().err
    assert worktrees(repository) == [record(task, "a")["path"]]


UNMERGED = {
    "on its branch": "echo x > x; git add x; git commit --quiet -m x",
    "without a branch": "git checkout --quiet --detach; echo x > x; git add x; git commit --quiet -m x",
    "on what it left": "echo x > x; git add x; git commit --quiet -m x; git checkout --quiet --detach HEAD~1",
}


@pytest.mark.parametrize("kind", ["on what it left", *alike("on its branch", "without a branch")])
def test_unmerged_work_is_not_removed_and_it_is_said_how_to_merge(task: Task, repository: Path, kind: str) -> None:
    work(repository, UNMERGED[kind])
    assert state() == "unmerged"
    said = refused().err
    assert "holds unmerged work: 1 commit" in said
    assert len(worktrees(repository)) == 1
    assert branches(repository) == ["agentctl/t1/a", "main"]
    advised, _, thrown_away = said.partition("hint: ")[2].strip().partition("; or to throw it away: ")
    assert advised.startswith(f"git -C {repository} merge ")
    assert thrown_away
    subprocess.run(advised, shell=True, check=True, capture_output=True)
    run("worktrees", "remove", "a")
    assert (repository / "x").read_text() == "x\n"


@pytest.mark.slow
def test_merged_work_goes_with_its_branch_and_the_patch_is_kept(task: Task, repository: Path) -> None:
    work(repository, "echo x > x; git add x; git commit --quiet -m x; echo ignored > x.log")
    git(repository, "merge", "--quiet", "agentctl/t1/a")
    assert state() == "clean"
    path = record(task, "a")["path"]
    assert run("worktrees", "remove", "a").out == f"removed {path}, its branch agentctl/t1/a too\n"
    assert (worktrees(repository), branches(repository)) == ([], ["main"])
    assert not Path(path).exists()
    assert (task.agent("a") / "changes.patch").read_text().endswith("+x\n")
    assert state() == "removed"
    assert run("worktrees", "remove", "a").out == f"removed {path}, its branch agentctl/t1/a too\n", "as it was"


@pytest.mark.slow
def test_a_branch_that_git_does_not_call_merged_is_kept(task: Task, repository: Path) -> None:
    work(repository, "echo x > x; git add x; git commit --quiet -m x")
    git(repository, "branch", "elsewhere", "agentctl/t1/a")
    done = run("worktrees", "remove", "a", "--json").json
    assert done["branchDeleted"] is False
    assert branches(repository) == ["agentctl/t1/a", "elsewhere", "main"]


@pytest.mark.slow
def test_nobody_s_folder_is_removed_while_somebody_works_in_it(
    task: Task, repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait = worker("waits_for_file", tmp_path / "gate")
    spawn(wait, "--worktree", "--cwd", repository, name="a")
    assert state() == "in-use"
    assert "a has not ended" in refused().err
    work(repository, "true", name="b")
    spawn(wait, "--cwd", Path(record(task, "b")["path"]) / "sub", name="guest")
    assert "guest works in the worktree of b" in refused("b").err
    (tmp_path / "gate").touch()
    task.ended("a", "guest")
    done = run("worktrees", "remove", "a", "b")
    assert len(done.out.splitlines()) == 2
    assert branches(repository) == ["main"]


@pytest.mark.slow
def test_of_many_those_that_can_be_are_removed(task: Task, repository: Path) -> None:
    work(repository, "true", name="a")
    work(repository, "echo x > x", name="b")
    done = run("worktrees", "remove", "b", "a", check=False)
    assert done.code == 1
    assert "b holds uncommitted work" in done.err
    assert done.out.startswith("removed ")
    assert [state(name) for name in "ab"] == ["removed", "uncommitted"]


@pytest.mark.slow
def test_what_somebody_removed_by_hand_is_told_and_can_be_forgotten(task: Task, repository: Path) -> None:
    work(repository, "echo x > x; git add x; git commit --quiet -m x")
    shutil.rmtree(record(task, "a")["path"])
    assert state() == "gone"
    assert "holds unmerged work" in refused().err
    git(repository, "merge", "--quiet", "agentctl/t1/a")
    run("worktrees", "remove", "a")
    assert (worktrees(repository), branches(repository)) == ([], ["main"])


@pytest.mark.slow
def test_a_repository_that_is_gone_breaks_nothing(task: Task, repository: Path) -> None:
    work(repository, "echo x > x")
    shutil.rmtree(repository)
    assert state() == "unknown"
    assert "git cannot say what is in" in refused().err
    assert run("worktrees", "show", "a", "--json").json["changes"]["files"] == {"x": "added"}


@pytest.mark.slow
def test_a_commit_after_the_worker_s_end_counts(task: Task, repository: Path) -> None:
    work(repository, "true")
    assert state() == "clean"
    path = Path(record(task, "a")["path"])
    (path / "later").write_text("x\n")
    assert state() == "uncommitted"
    commit(path, "later")
    assert state() == "unmerged"
    refused()


@pytest.mark.slow
def test_show_and_list_tell_files_patch_and_overlaps(task: Task, repository: Path) -> None:
    work(repository, "echo 1 >> a.txt", name="a")
    work(repository, "echo 2 >> a.txt", name="b")
    shown = run("worktrees", "show", "a").out.splitlines()
    assert {"branch: agentctl/t1/a", "state: uncommitted", "    a.txt: modified", '  files: ["a.txt"]'} <= set(shown)
    assert f"  patch: {task.agent('a')}/changes.patch" in shown
    listed = run("worktrees")
    paths = {name: record(task, name)["path"] for name in "ab"}
    assert listed.out == "".join(f"{n}\tuncommitted\t1\t0\t1\tagentctl/t1/{n}\t{paths[n]}\n" for n in "ab")
    assert listed.err == "a and b touched the same files: a.txt\n"
    assert run("worktrees", "list", "--task", "t1", "--json").json == run("worktrees", "--json").json
    _, drawn = on_a_terminal([sys.executable, "-m", "agentctl", "worktrees"])
    assert b"uncommitted" in drawn


def test_a_task_without_worktrees_has_an_empty_list(task: Task) -> None:
    spawn(["true"], "--wait", name="a")
    assert run("worktrees", "--json").json == []
    none = run("worktrees", "show", "a", check=False)
    assert (none.code, none.err.splitlines()[0]) == (3, "error: a has no worktree")
