"""At stake: what is said of worktrees and git repositories can be done as it is said, from wherever it was said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.advice import follow
from tests.repositories import git, new_repository
from tests.steps import Task, new_task, row, spawn
from tests.support import Completed, run, worker

pytestmark = pytest.mark.slow


@pytest.fixture
def task(root: Path) -> Task:
    return new_task()


@pytest.fixture
def repository(task: Task, tmp_path: Path) -> Path:
    """Return a repository in which the commands of the test are not typed."""
    return new_repository(tmp_path / "a repository")


def start_in(folder: Path, *argv: str, name: str = "a", check: bool = False) -> Completed:
    return spawn(list(argv or ("true",)), "--worktree", "--cwd", folder, name=name, check=check)


# -- before one is made ------------------------------------------------------------------------------------------------


@pytest.mark.follows(
    "operations/worktree/making.find_origin: git init", "operations/worktree/making.find_origin: git commit"
)
def test_a_repository_is_made_and_its_first_commit(task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "n")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "n@x")
    folder = tmp_path / "a folder"
    folder.mkdir()

    follow(start_in(folder), f"git -C '{folder}' init")
    follow(start_in(folder), f"git -C '{folder}' commit --allow-empty -m begin")

    start_in(folder, check=True)
    run("wait-all")


@pytest.mark.follows("operations/worktree/making._refuse_taken_prefix: git branch")
def test_a_branch_that_is_in_the_way_is_renamed(repository: Path) -> None:
    git(repository, "branch", "agentctl")

    told = start_in(repository)
    follow(told, f"git -C '{repository}' branch -m agentctl OTHER-NAME", put={"OTHER-NAME": "mine"})

    start_in(repository, check=True)
    run("wait-all")


@pytest.mark.follows(
    "operations/worktree/changes.worktree_record: agentctl spawn --worktree",
    "operations/worktree/diff._touched: agentctl spawn --worktree",
)
def test_who_has_no_worktree_is_told_how_one_is_had(repository: Path) -> None:
    spawn(["true"], "--wait", name="plain")
    for number, words in enumerate((["show", "plain"], ["diff", "plain"])):
        told = run("worktrees", *words, check=False)
        command = "agentctl spawn --worktree -- COMMAND"
        follow(told, command, put={"COMMAND": "true"}, cwd=repository)
        assert len(run("worktrees", "--json").json) == number + 1
    run("wait-all")


# -- its record --------------------------------------------------------------------------------------------------------


@pytest.mark.follows("operations/worktree/changes._shown: agentctl worktrees show")
def test_what_was_not_recorded_is_recorded_by_a_look(root: Path, task: Task, repository: Path) -> None:
    spawn(["touch", "x"], "--worktree", "--cwd", repository, "--wait", name="a")
    file = task.agent("a") / "worktree.json"
    record = json.loads(file.read_bytes())
    file.write_text(json.dumps({key: value for key, value in record.items() if key != "changes"}))
    run("new", "Another", "--id", "other")

    told = run("result", "a", "--task", "t1")
    if "worktrees show" not in told.out + told.err:
        file.write_text(json.dumps({key: value for key, value in record.items() if key != "changes"}))
        told = run("show", "a", "--task", "t1")
    follow(told, "agentctl worktrees show a --task t1")

    assert json.loads(file.read_bytes())["changes"]["files"] == {"x": "added"}


@pytest.mark.follows("operations/worktree/diff._live: agentctl doctor")
def test_one_that_was_never_finished_is_named(task: Task, repository: Path) -> None:
    options = ("--worktree", "--cwd", repository, "--name", "a")
    run("spawn", *options, "--", "true", env={"AGENTCTL_FAILPOINT": "spawn.after-worktree"}, check=False)
    file = task.agent("a") / "worktree.json"
    record = json.loads(file.read_bytes())
    file.write_text(json.dumps({key: record[key] for key in ("path", "branch", "repository")}))

    told = run("worktrees", "diff", "a", check=False)

    assert str(task.agent("a")) in follow(told, "agentctl doctor", check=False).out


# -- its removal -------------------------------------------------------------------------------------------------------


@pytest.mark.follows("operations/worktree/removing._refuse_in_use: agentctl cancel")
def test_who_works_in_it_is_cancelled_first(repository: Path) -> None:
    spawn(worker("sleeps", 60), "--worktree", "--cwd", repository, name="a")
    path = run("worktrees", "--json").json[0]["path"]
    follow(run("worktrees", "remove", "a", check=False), "agentctl cancel a")
    spawn(worker("sleeps", 60), "--cwd", path, name="b")

    follow(run("worktrees", "remove", "a", check=False), "agentctl cancel b")

    run("worktrees", "remove", "a")
    assert row("b")["status"] == "cancelled"


@pytest.mark.follows(
    "operations/worktree/removing._refuse_loss: git worktree", "operations/worktree/removing._refuse_loss: git branch"
)
def test_what_is_to_be_thrown_away_is(repository: Path) -> None:
    spawn(["touch", "x"], "--worktree", "--cwd", repository, "--wait", name="a")
    told = run("worktrees", "remove", "a", check=False)
    follow(told, told.err.partition("to throw it away: ")[2].strip())
    run("worktrees", "remove", "a")

    line = "echo x > x; git add x; git commit -qm x"
    spawn(["sh", "-c", line], "--worktree", "--cwd", repository, "--wait", name="b")
    told = run("worktrees", "remove", "b", check=False)
    follow(told, told.err.partition("to throw it away: ")[2].strip())
    run("worktrees", "remove", "b")


@pytest.mark.follows("operations/worktree/removing._refuse_loss: git merge")
def test_what_is_to_be_kept_is_merged(repository: Path) -> None:
    line = "echo x > x; git add x; git commit -qm x"
    spawn(["sh", "-c", line], "--worktree", "--cwd", repository, "--wait", name="b")
    told = run("worktrees", "remove", "b", check=False)

    follow(told, told.err.partition("hint: ")[2].partition(";")[0].strip())

    run("worktrees", "remove", "b")
    assert (repository / "x").exists()


@pytest.mark.follows("operations/worktree/removing._remove: git worktree")
def test_one_that_somebody_has_locked_is_unlocked(repository: Path) -> None:
    spawn(["true"], "--worktree", "--cwd", repository, "--wait", name="a")
    path = run("worktrees", "--json").json[0]["path"]
    git(repository, "worktree", "lock", path)

    told = run("worktrees", "remove", "a", check=False)
    follow(told, f"git -C '{repository}' worktree unlock {path}")

    run("worktrees", "remove", "a")
