"""At stake: a worker changes nothing but its own worktree, and nothing that it changed there is lost."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
from pathlib import Path

import pytest

from tests.advice import follow
from tests.agent_steps import agent_world
from tests.repositories import branches, git, new_repository, record, worktrees
from tests.steps import new_task, spawn, statuses
from tests.support import is_alive, remove, run, start, wait_until, worker

VARIABLE = "AGENTCTL_FAILPOINT"


@pytest.fixture
def repository(root: Path, tmp_path: Path) -> Path:
    """Return a repository with a name that is hard to quote."""
    return new_repository(tmp_path / 'a "re:po" é')


def work(repository: Path, line: str, *options: str | Path, name: str = "a", check: bool = True) -> None:
    """Run a shell line in a worktree, to its end."""
    spawn(["/bin/sh", "-c", line], "--worktree", "--cwd", repository, "--wait", *options, name=name, check=check)


def test_a_worker_runs_in_the_same_subfolder_and_the_root_stays_out_of_git(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTCTL_ROOT", str(repository / ".agentctl"))
    task = new_task()
    done = spawn(["pwd"], "--worktree", "--cwd", repository / "sub", "--wait", name="a")
    path = repository / ".agentctl" / "worktrees" / "t1" / "a"
    assert (task.agent("a") / "stdout.log").read_text() == f"{path}/sub\n"
    assert done.json["worktree"] == {"path": str(path), "branch": "agentctl/t1/a"}
    assert git(repository, "status", "--porcelain", "--untracked-files=all") == ""
    assert "changes" in record(task, "a")
    assert not (task.agent("a") / "changes.patch").exists()


@pytest.mark.slow
def test_files_that_two_touched_are_told_of_both(repository: Path) -> None:
    new_task()
    work(repository, "echo 1 >> a.txt; echo 1 > one", name="a")
    work(repository, "echo 2 >> a.txt; echo 2 > two", name="b")
    for me, other in (("a", "b"), ("b", "a")):
        told = run("show", me, "--json").json["worktree"]
        assert told["overlaps"] == [{"instance": other, "files": ["a.txt"]}]


def test_uncommitted_changes_are_not_in_it_and_a_person_is_told(repository: Path) -> None:
    new_task()
    (repository / "a.txt").write_text("changed\n")
    (repository / "untracked").write_text("x\n")
    done = run("spawn", "--worktree", "--cwd", repository, "--name", "a", "--wait", "--", "cat", "a.txt")
    assert "warning: 2 uncommitted changes in" in done.err
    assert run("logs", "a").out == "a\n"


def no_repository(folder: Path) -> Path:
    shutil.rmtree(folder / ".git")
    return folder


def no_commit(folder: Path) -> Path:
    shutil.rmtree(folder / ".git")
    git(folder, "init", "--quiet")
    return folder


def bare(folder: Path) -> Path:
    git(folder, "clone", "--quiet", "--bare", ".", str(folder / "bare.git"))
    return folder / "bare.git"


def uncommitted_folder(folder: Path) -> Path:
    (folder / "fresh").mkdir()
    return folder / "fresh"


def taken_branch(folder: Path) -> Path:
    git(folder, "branch", "agentctl")
    return folder


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (no_repository, "is not in a git repository"), (no_commit, "has no commit yet"), (bare, "not a working tree"),
        (uncommitted_folder, "the folder fresh is not in commit"), (taken_branch, "has a branch named agentctl"),
    ],
)  # fmt: skip
def test_what_no_worktree_can_be_made_of_is_refused_and_nothing_is_left(
    repository: Path, spoil: object, said: str
) -> None:
    task = new_task()
    place = spoil(repository)  # type: ignore[operator]
    refused = spawn(["true"], "--worktree", "--cwd", place, name="a", check=False)
    assert refused.code == 1
    assert said in refused.err
    assert "hint: " in refused.err
    assert list((task.path / "agents").iterdir()) == []
    if spoil in (uncommitted_folder, taken_branch):
        assert worktrees(repository) == []
        assert [name for name in branches(repository) if "/" in name] == []


def distrusting(repository: Path, folder: Path) -> dict[str, str]:
    """Return variables with a git that takes a repository, and no other folder, for somebody else's."""
    folder.mkdir()
    (folder / "git").write_text(
        f'#!/bin/sh\n[ "$PWD" != {shlex.quote(str(repository))} ] || export GIT_TEST_ASSUME_DIFFERENT_OWNER=1\n'
        f'exec {shutil.which("git")} "$@"\n'
    )
    (folder / "git").chmod(0o755)
    return {"PATH": f"{folder}:{os.environ['PATH']}"}


@pytest.mark.follows("adapters/git._ADVICE: git config")
def test_what_git_advises_for_a_repository_of_somebody_else_is_passed_on_and_helps(
    repository: Path, tmp_path: Path
) -> None:
    task = new_task()
    environ = distrusting(repository, tmp_path / "bin")
    asked = ("spawn", "--worktree", "--cwd", repository, "--name", "a", "--wait", "--", "true")
    in_variables = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}
    refused = run(*asked, env=environ, check=False)
    assert "dubious ownership" in refused.err
    assert "not in a git repository" not in refused.err
    assert "GIT_CONFIG_COUNT" not in refused.err
    again = run(*asked, env=environ | in_variables, check=False)
    assert (refused.code, again.code) == (1, 1)
    assert "GIT_CONFIG_COUNT or GIT_CONFIG_PARAMETERS is not enough" in again.err
    hints = {line for line in (refused.err + again.err).splitlines() if line.startswith("hint: ")}
    (hint,) = hints
    assert hint.startswith("hint: git config --global --add safe.directory ")
    follow(refused, hint.removeprefix("hint: "))
    run(*asked, env=environ)
    assert record(task, "a")["changes"]["files"] == {}


def test_a_repository_that_git_cannot_read_is_not_called_none(repository: Path) -> None:
    new_task()
    (repository / ".git" / "config").write_text("[\n")
    refused = spawn(["true"], "--worktree", "--cwd", repository, name="a", check=False)
    assert "bad config line 1" in refused.err
    assert "git init" not in refused.err
    assert "not in a git repository" not in refused.err


def test_a_spawn_that_is_refused_takes_its_worktree_back(repository: Path, tmp_path: Path) -> None:
    task = new_task(cap=1)
    spawn(worker("waits_for_file", tmp_path / "gate"), name="first")
    refused = spawn(["true"], "--worktree", "--cwd", repository, name="a", check=False)
    program = spawn(["./fresh.sh"], "--worktree", "--cwd", script(repository), name="b", check=False)
    (tmp_path / "gate").touch()
    assert (refused.code, program.code) == (5, 1)
    assert "in the worktree there is no program './fresh.sh'" in program.err
    assert (worktrees(repository), branches(repository)) == ([], ["main"])
    assert not list((task.path.parent.parent / "worktrees" / "t1").iterdir())
    task.ended("first")


def script(repository: Path) -> Path:
    (repository / "fresh.sh").write_text("#!/bin/sh\n")
    (repository / "fresh.sh").chmod(0o755)
    return repository


@pytest.mark.slow
def test_what_a_killed_spawn_left_is_found_and_taken_back(repository: Path) -> None:
    task = new_task()
    options = ("--worktree", "--cwd", repository, "--name", "a")
    killed = run("spawn", *options, "--", "true", env={VARIABLE: "spawn.after-worktree"}, check=False)
    assert killed.code == -signal.SIGKILL
    assert len(worktrees(repository)) == 1
    (told,) = [one for one in run("doctor", "--fix", "--json").json if one["where"].endswith("agents/a")]
    assert told["fixed"] is True
    assert not task.agent("a").exists()
    assert (worktrees(repository), branches(repository)) == ([], ["main"])
    work(repository, "true")


@pytest.mark.slow
def test_spawns_at_once_and_a_batch_get_each_their_own(repository: Path) -> None:
    new_task(cap=8)
    options = ("--worktree", "--cwd", repository, "--shell", "pwd; echo $AGENTCTL_INSTANCE > mine")
    racing = [start("spawn", "--name", f"r{number}", *options) for number in range(4)]
    lines = [
        {"name": f"b{n}", "argv": ["sh", "-c", "echo b > mine"], "worktree": True, "cwd": str(repository)} for n in "12"
    ]
    run("spawn", "--batch", "-", stdin="".join(json.dumps(line) + "\n" for line in lines))
    assert [process.wait(30) for process in racing] == [0] * 4
    run("wait-all")
    rows = run("worktrees", "--json").json
    assert len({row["path"] for row in rows}) == len({row["branch"] for row in rows}) == len(rows) == 6
    assert {row["files"] for row in rows} == {1}
    assert len(branches(repository)) == 7


@pytest.mark.slow
def test_a_leftover_of_an_earlier_task_is_not_touched(repository: Path) -> None:
    task = new_task()
    work(repository, "echo kept > kept")
    wait_until(lambda: not is_alive(task.shim_of("a")), what="the shim to leave")  # It writes the roster last.
    remove(task.path)
    run("new", "Again", "--id", "t1")
    work(repository, "true")
    assert record(task, "a")["branch"] == "agentctl/t1/a-2"
    assert Path(record(task, "a")["path"]).with_name("a").joinpath("kept").read_text() == "kept\n"
    (told,) = [one for one in run("doctor", "--json").json if "worktree of no worker" in one["what"]]
    assert told["where"].endswith("worktrees/t1/a")


def test_the_callers_git_variables_reach_neither_git_nor_worker(repository: Path, tmp_path: Path) -> None:
    """A spawn may come from a git hook, whose environment has them."""
    new_task()
    other = new_repository(tmp_path / "other")
    wrong = {"GIT_DIR": str(other / ".git"), "GIT_WORK_TREE": str(other), "GIT_INDEX_FILE": str(other / "index")}
    line = "env | grep -c '^GIT_[DWI]'; git rev-parse --abbrev-ref HEAD"
    run("spawn", "--worktree", "--cwd", repository, "--name", "a", "--wait", "--shell", line, env=wrong, check=False)
    assert run("logs", "a").out == "0\nagentctl/t1/a\n"
    assert branches(other) == ["main"]


def test_a_worktree_within_a_worktree_begins_at_the_commit_of_that_one(repository: Path) -> None:
    task = new_task()
    child = "agentctl spawn --worktree --wait --name child --shell 'cat mine; echo y > yours'"
    work(repository, f"echo x > mine; git add .; git commit --quiet --message mine; {child}")
    assert run("logs", "child").out == "x\n"
    assert record(task, "child")["base"] == git(repository, "rev-parse", "agentctl/t1/a").strip()
    assert record(task, "child")["changes"]["files"] == {"yours": "added"}
    assert record(task, "a")["changes"]["files"] == {"mine": "added"}


@pytest.mark.slow
def test_attempts_and_dependants_keep_what_is_theirs(repository: Path) -> None:
    task = new_task()
    options = ("--retries", "2", "--retry-delay-seconds", "0")
    spawn(
        ["sh", "-c", "echo x >> tries; test $(wc -l < tries) = 2"],
        "--worktree",
        "--cwd",
        repository,
        *options,
        name="a",
    )
    spawn(["cat", "tries"], "--worktree", "--cwd", repository, "--after", "a", name="b")
    task.ended("a", "b")
    assert statuses() == {"a": "completed", "b": "failed"}
    assert record(task, "a")["changes"]["files"] == {"tries": "added"}
    assert record(task, "b")["changes"]["files"] == {}


@pytest.mark.slow
def test_a_continued_agent_goes_on_in_its_worktree(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = agent_world(tmp_path, monkeypatch)
    options = ("--agent", "general", "--worktree", "--cwd", repository, "--wait")
    run("spawn", "--name", "a", *options, "say first")
    place = Path(record(task, "a")["path"])
    (place / "more").write_text("x\n")
    second = run("resume", "a", "say second", "--json").json["agentInstance"]
    task.ended(second)
    again = record(task, second)
    assert (again["path"], again["branch"], again["adopted"]) == (str(place), "agentctl/t1/a", True)
    assert (record(task, "a")["changes"]["files"], again["changes"]["files"]) == ({}, {"more": "added"})
    assert run("worktrees", "show", second, "--json").json["overlaps"] == []
    assert worktrees(repository) == [str(place)]
