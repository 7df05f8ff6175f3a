"""At stake: a worker changes nothing but its own worktree, and nothing that it changed there is lost."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path

import pytest

from tests.repositories import branches, commit, git, new_repository, record, worktrees
from tests.steps import new_task, spawn, statuses
from tests.support import run, start, worker

VARIABLE = "AGENTCTL_FAILPOINT"


@pytest.fixture
def repository(root: Path, tmp_path: Path) -> Path:
    """Return a repository, under a name that is hard to quote."""
    return new_repository(tmp_path / 'a "re:po" é')


def work(repository: Path, line: str, *options: str | Path, name: str = "a", check: bool = True) -> None:
    """Run a shell line in a worktree, to its end."""
    spawn(["/bin/sh", "-c", line], "--worktree", "--cwd", repository, "--wait", *options, name=name, check=check)


CHANGES = r"""
set -e
echo two >> a.txt; git commit --quiet --all --message second
echo three >> a.txt; git rm --quiet b.txt
printf 'x\0y' > bin; ln -s a.txt link; chmod +x sub/c.txt
printf 1 > 'new file é'; echo no > ignored.log; mkdir b.txt; echo in > b.txt/in
"""


def test_the_patch_makes_of_the_base_what_the_worktree_holds(repository: Path, tmp_path: Path) -> None:
    task = new_task()
    base = git(repository, "rev-parse", "HEAD").strip()
    work(repository, CHANGES)
    found = record(task, "a")
    assert (found["base"], found["branch"], found["repository"]) == (base, "agentctl/t1/a", str(repository))
    assert found["changes"]["files"] == {
        "a.txt": "modified", "b.txt": "deleted", "b.txt/in": "added", "bin": "added", "link": "added",
        "new file é": "added", "sub/c.txt": "modified",
    }  # fmt: skip
    assert found["changes"]["commits"] == 1
    patched = tmp_path / "patched"
    git(tmp_path, "clone", "--quiet", str(repository), str(patched))
    git(patched, "apply", "--index", str(task.agent("a") / "changes.patch"))
    git(Path(found["path"]), "add", "--all")
    assert git(patched, "write-tree") == git(found["path"], "write-tree")
    assert git(repository, "status", "--porcelain") == ""
    assert git(repository, "rev-parse", "main").strip() == base
    assert not [path for path in task.agent("a").iterdir() if path.name.endswith((".scratch", ".tmp"))]


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


@pytest.mark.parametrize("line", ["echo x > x; exit 3", "echo x > x; kill -9 $$", "echo x > x; agentctl cancel a"])
def test_every_ending_keeps_the_patch(repository: Path, line: str) -> None:
    task = new_task()
    work(repository, line, check=False)
    assert statuses()["a"] in ("failed", "cancelled")
    assert record(task, "a")["changes"]["files"] == {"x": "added"}
    assert (task.agent("a") / "changes.patch").read_text().endswith("+x\n")


def test_where_the_shim_dies_before_the_patch_it_is_made_later(repository: Path) -> None:
    task = new_task()
    argv = ["sh", "-c", "echo x > x"]
    run("spawn", "--worktree", "--cwd", repository, "--name", "a", "--", *argv, env={VARIABLE: "shim.after-sweep"})
    run("wait", "a", check=False)
    assert task.exit("a")["reason"] == "lost"  # type: ignore[index]
    assert "changes" not in record(task, "a")
    told = run("result", "a", "--json", check=False).json
    assert told["worktree"]["changes"]["files"] == {"x": "added"}
    assert [Path(file["path"]).name for file in told["files"]] == ["changes.patch"]


def test_a_failing_git_harms_no_ending_and_a_later_look_makes_the_patch(repository: Path) -> None:
    task = new_task()
    work(repository, "echo x > x", "--env", "PATH=/nonexistent")
    assert statuses() == {"a": "completed"}
    assert "no program 'git'" in record(task, "a")["changes"]["error"]
    warned = [one for one in run("doctor", "--json").json if "not recorded" in one["what"]]
    assert [one["severity"] for one in warned] == ["warning"]
    assert run("worktrees", "show", "a", "--json").json["changes"]["files"] == {"x": "added"}


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
        (no_repository, "is in no git repository"), (no_commit, "has no commit yet"), (bare, "is in no working tree"),
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


def test_a_leftover_of_an_earlier_task_is_not_touched(repository: Path) -> None:
    task = new_task()
    work(repository, "echo kept > kept")
    shutil.rmtree(task.path)
    run("new", "Again", "--id", "t1")
    work(repository, "true")
    assert record(task, "a")["branch"] == "agentctl/t1/a-2"
    assert Path(record(task, "a")["path"]).with_name("a").joinpath("kept").read_text() == "kept\n"
    (told,) = [one for one in run("doctor", "--json").json if "worktree of no worker" in one["what"]]
    assert told["where"].endswith("worktrees/t1/a")


def test_the_callers_git_variables_reach_neither_git_nor_worker(repository: Path, tmp_path: Path) -> None:
    """A spawn may come from a hook, which has them."""
    new_task()
    other = new_repository(tmp_path / "other")
    wrong = {"GIT_DIR": str(other / ".git"), "GIT_WORK_TREE": str(other), "GIT_INDEX_FILE": str(other / "index")}
    line = "env | grep -c '^GIT_[DWI]'; git rev-parse --abbrev-ref HEAD"
    run("spawn", "--worktree", "--cwd", repository, "--name", "a", "--wait", "--shell", line, env=wrong, check=False)
    assert run("logs", "a").out == "0\nagentctl/t1/a\n"
    assert branches(other) == ["main"]


def test_nothing_that_a_worker_or_a_hook_names_is_run_by_the_look(repository: Path, tmp_path: Path) -> None:
    """An agent in a sandbox may write in its worktree: the `.git` there must not decide what runs outside."""
    task = new_task()
    ran = tmp_path / "ran"
    hostile = (
        "rm .git; git init --quiet; "
        f"git config core.fsmonitor 'touch {ran} #'; git config filter.f.clean 'touch {ran}; cat'; "
        "echo '*.txt filter=f diff=d' > .gitattributes; "
        f"git config diff.d.textconv 'touch {ran}; cat'; git config diff.external 'touch {ran}'; "
        f"echo x >> a.txt; rm -f {ran}"
    )
    hook = repository / ".git" / "hooks" / "post-checkout"
    hook.write_text(f"#!/bin/sh\ntouch '{ran}'\n")
    hook.chmod(0o755)
    work(repository, hostile)
    run("worktrees")
    run("worktrees", "remove", "a", check=False)
    assert not ran.exists()
    assert record(task, "a")["changes"]["files"] == {".gitattributes": "added", "a.txt": "modified"}


def test_a_worktree_within_a_worktree_begins_at_the_commit_of_that_one(repository: Path) -> None:
    task = new_task()
    child = "agentctl spawn --worktree --wait --name child --shell 'cat mine; echo y > yours'"
    work(repository, f"echo x > mine; git add .; git commit --quiet --message mine; {child}")
    assert run("logs", "child").out == "x\n"
    assert record(task, "child")["base"] == git(repository, "rev-parse", "agentctl/t1/a").strip()
    assert record(task, "child")["changes"]["files"] == {"yours": "added"}
    assert record(task, "a")["changes"]["files"] == {"mine": "added"}


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


def test_what_cannot_be_in_a_patch_is_named(repository: Path) -> None:
    task = new_task()
    lines = ["truncate -s 80M big", "git init --quiet own", "mkfifo pipe", "rm a.txt; mkfifo a.txt", "echo x > x"]
    work(repository, "; ".join(lines))
    changes = record(task, "a")["changes"]
    assert {one["path"]: one["why"] for one in changes["leftOut"]} == {
        "a.txt": "no regular file", "big": "83886080 bytes: too large", "own/": "a repository of its own",
    }  # fmt: skip
    assert changes["files"] == {"x": "added"}


def test_a_conflict_left_in_the_index_is_in_the_patch_as_it_lies_there(repository: Path) -> None:
    task = new_task()
    lines = (
        "git checkout --quiet -b o; echo o > a.txt; git commit --quiet -am o; git checkout --quiet -; echo t > a.txt"
    )
    work(repository, f"{lines}; git commit --quiet -am t; git merge o", check=False)
    assert record(task, "a")["changes"]["files"] == {"a.txt": "modified"}
    assert "+<<<<<<< HEAD" in (task.agent("a") / "changes.patch").read_text()


def test_submodules_are_told_and_their_new_commit_is_in_the_patch(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = new_task()
    inner = new_repository(tmp_path / "inner")
    git(repository, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner), "inner")
    commit(repository, "with a submodule")
    line = "git -c protocol.file.allow=always submodule --quiet update --init && cd inner && echo x > x && git add x"
    done = spawn(
        ["sh", "-c", f"{line} && git -c user.name=n -c user.email=n@x commit --quiet -m x"],
        "--worktree", "--cwd", repository, "--wait", name="a",
    )  # fmt: skip
    assert "submodules are empty" in done.json["warnings"][0]
    assert record(task, "a")["changes"]["files"] == {"inner": "modified"}
    refused = run("worktrees", "remove", "a", check=False)
    assert refused.code == 1
    assert os.path.exists(record(task, "a")["path"])
