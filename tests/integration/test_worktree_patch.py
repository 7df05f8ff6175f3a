"""At stake: `changes.patch` has what a worker changed, whatever it did to its worktree and however it ended."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.repositories import commit, git, new_repository, record
from tests.steps import new_task, spawn, statuses
from tests.support import alike, run

#: All of these take long; the quick tests beside them cover the usual case.
pytestmark = pytest.mark.slow

VARIABLE = "AGENTCTL_FAILPOINT"


@pytest.fixture
def repository(root: Path, tmp_path: Path) -> Path:
    """Return a repository with a name that is hard to quote."""
    return new_repository(tmp_path / 'a "re:po" é')


def work(repository: Path, line: str, *options: str | Path, name: str = "a", check: bool = True) -> None:
    """Run a shell line in a worktree, to its end."""
    spawn(["/bin/sh", "-c", line], "--worktree", "--cwd", repository, "--wait", *options, name=name, check=check)


CHANGES = r"""
set -e
echo two >> a.txt; git commit --quiet --all --message second
echo three >> a.txt; rm b.txt; rm -r dir; echo f > dir
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
        "a.txt": "modified", "b.txt": "deleted", "b.txt/in": "added", "bin": "added", "dir": "added",
        "dir/d.txt": "deleted", "link": "added",
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


@pytest.mark.parametrize(
    "line", ["echo x > x; kill -9 $$", *alike("echo x > x; exit 3", "echo x > x; agentctl cancel a")]
)
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
    assert "agentctl worktrees show a" in run("result", "a", check=False).err
    assert run("result", "a", "--json", check=False).json["worktree"]["next"] == "agentctl worktrees show a"
    run("worktrees", "show", "a")
    told = run("result", "a", "--json", check=False).json
    assert told["worktree"]["changes"]["files"] == {"x": "added"}
    assert [Path(file["path"]).name for file in told["files"]] == ["changes.patch"]


def test_a_failing_git_harms_no_ending_and_a_later_look_makes_the_patch(repository: Path, tmp_path: Path) -> None:
    task = new_task()
    work(repository, "echo x > x", "--env", f"PATH={tmp_path / 'missing'}")
    assert statuses() == {"a": "completed"}
    assert "no program 'git'" in record(task, "a")["changes"]["error"]
    warned = [one for one in run("doctor", "--json").json if "not recorded" in one["what"]]
    assert [one["severity"] for one in warned] == ["warning"]
    assert run("worktrees", "show", "a", "--json").json["changes"]["files"] == {"x": "added"}


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
    git(repository, "config", "core.fsmonitor", f"touch '{ran}-by-a-monitor' #")
    hook = repository / ".git" / "hooks" / "post-checkout"
    hook.write_text(f"#!/bin/sh\ntouch '{ran}-by-a-hook'\n")
    hook.chmod(0o755)
    work(repository, hostile)
    run("worktrees")
    run("worktrees", "remove", "a", check=False)
    assert not list(tmp_path.glob("ran*"))
    assert record(task, "a")["changes"]["files"] == {".gitattributes": "added", "a.txt": "modified"}


def test_what_cannot_be_in_a_patch_is_named(repository: Path) -> None:
    task = new_task()
    lines = ["truncate -s 80M big", "git init --quiet own", "mkfifo pipe", "rm a.txt; mkfifo a.txt", "echo x > x"]
    work(repository, "; ".join(lines))
    changes = record(task, "a")["changes"]
    assert {one["path"]: one["why"] for one in changes["leftOut"]} == {
        "a.txt": "not a regular file", "big": "83886080 bytes: too large", "own/": "a repository of its own",
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
