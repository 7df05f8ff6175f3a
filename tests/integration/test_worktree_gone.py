"""At stake: a worktree that is gone, or with files that git cannot take, costs no more of a record than it must."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.advice import follow
from tests.agent_steps import agent, agent_world, blocked, ends
from tests.life import kill_tree
from tests.repositories import branches, commit, git, new_repository, record, worktrees
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
    assert "is no longer known" in run("result", "a").err
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


# -- its work is started once more, or goes on -------------------------------------------------------------------------

#: How a worktree goes away, as a line of shell with its path, and whether git keeps what was staged in it.
AWAY = {'rm -rf "$0"': True, 'git worktree remove --force "$0"': False, 'rm -rf "$0" && git worktree prune': False}


@pytest.fixture
def of_agent(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    """Return a task with an agent that has ended in a folder of its worktree, where it had staged one new file."""
    task, repository = agent_world(tmp_path, monkeypatch), new_repository(tmp_path / "repository")
    agent("hello", "--worktree", "--cwd", repository / "sub")
    assert ends()["status"] == "completed"
    path = Path(record(task, "a")["path"])
    (path / "committed").write_text("x\n")
    commit(path, "by an agent")
    (path / "staged").write_text("y\n")
    git(path, "add", "staged")
    return task


def take_away(task: Task, how: str) -> Path:
    found = record(task, "a")
    subprocess.run(["/bin/sh", "-ec", how, found["path"]], cwd=found["repository"], check=True)
    return Path(found["path"])


@pytest.mark.slow
@pytest.mark.parametrize("how", list(AWAY))
def test_an_agent_goes_on_in_its_worktree_that_is_made_again(of_agent: Task, how: str) -> None:
    path = take_away(of_agent, how)
    run("resume", "a", "hello again", "--name", "b")
    assert ends("b")["status"] == "completed"
    assert record(of_agent, "b")["path"] == str(path)
    assert git(path, "log", "--format=%s").splitlines() == ["by an agent", "first"]
    assert git(path, "status", "--porcelain") == ("A  staged\n" if AWAY[how] else "")
    assert git(path, "branch", "--show-current") == "agentctl/t1/a\n"
    states = {row["agentInstance"]: (row["state"], row["unmerged"]) for row in run("worktrees", "--json").json}
    assert states == dict.fromkeys("ab", ("uncommitted" if AWAY[how] else "unmerged", 1))


@pytest.mark.slow
@pytest.mark.follows("operations/delegate/resuming._see_to_folder: mkdir -p")
def test_where_its_folder_is_not_in_the_worktree_that_is_made_again_it_says_so(of_agent: Task) -> None:
    git(Path(record(of_agent, "a")["path"]), "rm", "-r", "-q", "sub")
    commit(Path(record(of_agent, "a")["path"]), "without its folder")
    take_away(of_agent, 'git worktree remove --force "$0"')
    told = run("resume", "a", "hello again", check=False)
    assert "sub is not in the worktree" in told.err
    follow(told, told.err.partition("hint: ")[2].partition(" makes it again")[0])
    run("resume", "a", "hello again", "--name", "b")
    assert ends("b")["status"] == "completed"


@pytest.mark.slow
@pytest.mark.follows("operations/delegate/resuming._see_to_folder: agentctl retry")
def test_where_its_branch_is_gone_too_the_work_begins_anew(of_agent: Task, tmp_path: Path) -> None:
    take_away(of_agent, 'git worktree remove --force "$0"; git branch --quiet -D agentctl/t1/a')
    told = run("resume", "a", "hello again", check=False)
    assert told.code == 1
    assert "its branch agentctl/t1/a is gone, too" in told.err
    follow(told, "agentctl retry a")
    assert ends("a-2")["status"] == "completed"


@pytest.mark.slow
def test_where_its_branch_is_checked_out_elsewhere_the_advice_frees_it(of_agent: Task, tmp_path: Path) -> None:
    take_away(of_agent, 'git worktree remove --force "$0"; git switch --quiet agentctl/t1/a')
    told = run("resume", "a", "hello again", check=False)
    advised = told.err.partition("hint: ")[2].partition(", then try again")[0]
    subprocess.run(["/bin/sh", "-ec", f"{advised} 2> /dev/null"], check=True)
    run("resume", "a", "hello again", "--name", "b")
    assert ends("b")["status"] == "completed"


@pytest.mark.slow
@pytest.mark.follows("operations/delegate/resuming._see_to_folder: agentctl resume")
def test_an_agent_that_continues_another_has_no_git_run_for_that(of_agent: Task) -> None:
    path = take_away(of_agent, 'rm -rf "$0"')
    told = spawn(["agentctl", "resume", "a", "go on"], "--wait", name="c", check=False)
    assert told.code != 0
    told = run("logs", "c", "--stderr")
    assert "a person has it made again: agentctl resume a" in told.out
    assert not path.exists()
    follow(told, "agentctl resume a", stdin="hello again")
    assert path.exists()


@pytest.mark.slow
def test_one_worktree_that_cannot_be_made_again_holds_up_no_other_lost_agent(
    of_agent: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = tmp_path / "repository"
    for name in ("b", "c"):
        agent("permit touch x", "--worktree", "--cwd", repository, name=name)
        blocked(name)
    for name in ("b", "c"):
        kill_tree(of_agent.shim_of(name))
    run("wait-all", check=False)
    git(repository, "worktree", "remove", "--force", record(of_agent, "b")["path"])
    git(repository, "branch", "-D", "agentctl/t1/b")
    told = run("resume", "--lost", check=False)
    assert "the worktree of b is gone and cannot be made again" in told.err
    assert record(of_agent, "c-1")["path"] == record(of_agent, "c")["path"]
    run("cancel", "--all")


def test_a_retry_begins_in_the_folder_of_the_repository_by_whatever_name_the_root_has(
    task: Task, repository: Path, tmp_path: Path
) -> None:
    """Where the root was named through a link, the worktree has two names."""
    (tmp_path / "by another name").symlink_to(tmp_path)
    other = {"AGENTCTL_ROOT": str(tmp_path / "by another name" / ".agentctl")}
    run("spawn", "--worktree", "--cwd", repository / "sub", "--wait", "--name", "a", "--", "ls", env=other)
    shutil.rmtree(record(task, "a")["path"])
    run("retry", "a", "--name", "b", env=other)
    run("wait", "b", env=other)
    assert run("logs", "b", env=other).out == "c.txt\n"


def test_a_retry_says_which_folder_is_gone_and_the_step_that_helps(task: Task, tmp_path: Path) -> None:
    place = tmp_path / "a place"
    place.mkdir()
    spawn(["pwd"], "--cwd", place, "--wait", name="a")
    place.rmdir()
    told = run("retry", "a", check=False)
    assert f"the folder in which a worked is gone: {place}" in told.err
    subprocess.run(["/bin/sh", "-ec", told.err.partition("hint: ")[2].partition(" makes it again")[0]], check=True)
    run("retry", "a", "--name", "b")
    run("wait", "b")
