"""At stake: what a worker commits or changes in a submodule of its worktree is never the price of a removal."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.repositories import branches, commit, git, new_repository, record, worktrees
from tests.steps import Task, new_task, spawn
from tests.support import Completed, remove, run

pytestmark = pytest.mark.slow

ALLOWED = "git -c protocol.file.allow=always"
UPDATE = f"{ALLOWED} submodule --quiet update --init --recursive"
AS_ME = "git -c user.name=n -c user.email=n@x"
PLACE = "libs/my lib"


@pytest.fixture
def task(root: Path) -> Task:
    return new_task()


@pytest.fixture
def repository(task: Task, tmp_path: Path) -> Path:
    """Return a repository with a submodule, which has one of its own."""
    inmost, inner, outer = (new_repository(tmp_path / name) for name in ("inmost", "inner", "outer"))
    for folder, added, place in ((inner, inmost, "deep"), (outer, inner, PLACE)):
        git(folder, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(added), place)
        commit(folder, "with a submodule")
    return outer


def work(repository: Path, line: str, *, name: str = "a") -> Completed:
    """Run a shell line in a worktree whose submodules are there, to its end."""
    argv = ["/bin/sh", "-ec", f"{UPDATE}; {line}"]
    return spawn(argv, "--worktree", "--cwd", repository, "--wait", name=name)


def row(name: str = "a") -> dict[str, Any]:
    return next(row for row in run("worktrees", "--json").json if row["agentInstance"] == name)


def kept(task: Task, name: str = "a") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = record(task, name)["changes"]["submodules"]
    return found


COMMIT = f"cd '{PLACE}'; echo precious >> a.txt; {AS_ME} commit --quiet -am inner"
BUMP = f"cd ../..; {AS_ME} commit --quiet -am bump"


def test_a_commit_in_a_submodule_is_named_kept_and_handed_over_at_the_removal(task: Task, repository: Path) -> None:
    told = work(repository, f"{COMMIT}; {BUMP}")
    assert "submodules are empty" in told.json["warnings"][0]
    git(repository, "merge", "--quiet", "agentctl/t1/a")
    inner = git(Path(record(task, "a")["path"]) / PLACE, "rev-parse", "HEAD").strip()
    found = row()
    assert (found["state"], found["unmerged"]) == ("unmerged", 1)
    assert found["submodules"] == [{"path": PLACE, "uncommitted": 0, "unmerged": 1}]
    assert f"a: its submodule {PLACE} has 1 commit that" in run("worktrees").err
    assert [(one["path"], one["commits"], one["files"]) for one in kept(task)] == [(PLACE, 1, 0)]
    for command in (("result", "a"), ("worktrees", "show", "a")):
        assert f"its submodule {PLACE} had 1 commit that were nowhere else; kept: " in run(*command).err
    (bundle,) = [file for file in run("result", "a", "--json").json["files"] if file["path"].endswith(".bundle")]
    assert inner in git(repository, "bundle", "list-heads", bundle["path"])

    removed = run("worktrees", "remove", "a", "--json").json
    (told_kept,) = removed["submodules"]
    assert (told_kept["path"], told_kept["commits"]) == (PLACE, 1)
    assert (worktrees(repository), branches(repository)) == ([], ["main"])
    git(repository, "submodule", "--quiet", "update")  # Nothing has to be fetched.
    assert git(repository / PLACE, "rev-parse", "HEAD").strip() == inner
    assert "refs/agentctl/t1/a/HEAD" in git(repository / PLACE, "for-each-ref", "--format=%(refname)")


def test_changed_files_in_a_submodule_are_kept_as_a_patch_and_never_removed(task: Task, repository: Path) -> None:
    work(repository, f"cd '{PLACE}'; echo changed >> a.txt; echo new > new; echo deep > deep/new")
    assert (row()["state"], row()["uncommitted"]) == ("uncommitted", 3)
    refused = run("worktrees", "remove", "a", check=False)
    assert refused.code == 1
    assert f"2 of them in its submodule {PLACE}" in refused.err
    assert "--force" not in refused.err
    patches = {one["path"]: task.agent("a") / one["kept"][0]["path"] for one in kept(task)}
    assert sorted(patches) == [PLACE, f"{PLACE}/deep"]
    git(repository / PLACE, "apply", str(patches[PLACE]))
    assert (repository / PLACE / "new").read_text() == "new\n"
    for place in (f"{PLACE}/deep", PLACE, "."):
        commit(Path(record(task, "a")["path"]) / place, "as advised")
    git(repository, "merge", "--quiet", "agentctl/t1/a")
    run("worktrees", "remove", "a")
    assert worktrees(repository) == []


def test_a_worktree_whose_submodules_hold_nothing_is_clean_and_can_be_removed(task: Task, repository: Path) -> None:
    work(repository, "true")
    assert (row()["state"], row()["submodules"]) == ("clean", [])
    assert "submodules" not in record(task, "a")["changes"]
    run("worktrees", "remove", "a")
    assert (worktrees(repository), branches(repository)) == ([], ["main"])


LINK = f"git init --quiet own; cd own; {AS_ME} commit --quiet --allow-empty -m x; cd ..; git add own"
#: What is done, the submodule in which it is done, and the least number of commits that are only there then.
ELSEWHERE = {
    "nested": (
        f"cd '{PLACE}/deep'; echo x > x; git add x; {AS_ME} commit --quiet -m x; cd ..; {AS_ME} commit --quiet -am x",
        f"{PLACE}/deep",
        1,
    ),
    "on a branch that it left": (f"{COMMIT}; git branch kept; git reset --quiet --hard HEAD~1", PLACE, 1),
    "stashed twice": (f"cd '{PLACE}'; for n in 1 2; do echo $n > a.txt; {AS_ME} stash push --quiet; done", PLACE, 3),
    "no longer checked out": (f"{COMMIT}; cd ../..; git submodule --quiet deinit --force --all", PLACE, 1),
    "a repository that was committed as a link": (f"{LINK}; {AS_ME} commit --quiet -m own", "own", 1),
    "where the main repository has none": (COMMIT, PLACE, 1),
}


def count(folder: Path, *refs: str) -> int:
    at = f"--git-dir={folder}", f"--work-tree={folder}"
    return int(git(folder, *at, "rev-list", "--count", *refs, "--not", "--remotes", "--branches", "--"))


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(ELSEWHERE))
def test_wherever_the_commits_are_they_outlive_the_removal(task: Task, repository: Path, kind: str) -> None:
    line, path, least = ELSEWHERE[kind]
    if kind.startswith("where the main"):
        git(repository, "submodule", "--quiet", "deinit", "--force", "--all")
        shutil.rmtree(repository / ".git" / "modules")
    work(repository, line)
    before = row()
    held = {one["path"]: one["unmerged"] for one in before["submodules"]}
    assert before["state"] in ("unmerged", "uncommitted")
    assert held[path] >= least
    if before["uncommitted"]:  # The link of the submodule leads to another commit.
        git(record(task, "a")["path"], "commit", "--quiet", "--all", "--message", "as advised")
    git(repository, "merge", "--quiet", "agentctl/t1/a")
    remove(task.agent("a") / "submodules")  # What was kept at its end does not count here.
    removed = run("worktrees", "remove", "a", "--json").json["submodules"]
    (told,) = [one for one in removed if one["path"] == path]
    assert worktrees(repository) == []
    if "refs" in told:
        assert count(Path(told["repository"]), *told["refs"]) == held[path]
        return
    clone = repository.parent / "inner"
    if path == "own":
        clone = repository.parent / "empty"
        git(repository.parent, "init", "--quiet", "empty")
    git(clone, "fetch", "--quiet", told["bundle"], "refs/agentctl/*:refs/agentctl/*")
    assert count(clone / ".git", "--glob=refs/agentctl/*") == held[path]


@pytest.mark.slow
def test_nothing_that_a_submodule_names_is_run_by_a_look(task: Task, repository: Path, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    touch = f"touch {shlex.quote(str(ran))}"
    work(
        repository,
        f"cd '{PLACE}'; git config core.fsmonitor '{touch} #'; git config filter.f.clean '{touch}; cat';"
        f" git config diff.external '{touch}'; git config alias.status '!{touch}'; git config core.hooksPath hooks;"
        f" mkdir hooks; printf '#!/bin/sh\\n{touch}\\n' > hooks/reference-transaction; chmod +x hooks/*;"
        f" echo '*.txt filter=f' > .gitattributes; echo x >> a.txt; echo y > new.txt; rm -f {ran}",
    )
    assert row()["uncommitted"] == 4
    run("worktrees", "remove", "a", check=False)
    run("worktrees", "diff", "a")
    assert not ran.exists()


@pytest.mark.slow
def test_commits_in_a_submodule_outlive_a_worktree_that_somebody_deleted(task: Task, repository: Path) -> None:
    work(repository, COMMIT)
    shutil.rmtree(record(task, "a")["path"])
    assert (row()["state"], row()["unmerged"]) == ("gone", 1)
    (told,) = run("worktrees", "remove", "a", "--json").json["submodules"]
    assert told["refs"]
    assert worktrees(repository) == []


@pytest.mark.slow
def test_what_cannot_be_read_is_unknown_and_is_not_removed(task: Task, repository: Path) -> None:
    work(repository, "true")
    (head,) = repository.glob(".git/worktrees/a/modules/libs/*/HEAD")
    head.write_text("nonsense\n")
    assert (row()["state"], "names no commit" in row()["problem"]) == ("unknown", True)
    refused = run("worktrees", "remove", "a", check=False)
    assert (refused.code, "--force" in refused.err) == (1, False)
    assert len(worktrees(repository)) == 1
