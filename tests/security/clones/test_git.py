"""At stake: nothing that a clone or an agent has put into a folder is run because agentctl calls git there."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from agentctl.adapters.git import Git, GitError, git_in
from agentctl.supervision.worktree.recorded import git_from, tree_from
from tests.repositories import commit, git, new_repository, record
from tests.steps import Task, new_task, spawn
from tests.support import alike, run


@pytest.fixture
def ran(tmp_path: Path) -> Path:
    """Return the file that is there once anything was run."""
    return tmp_path / "RAN"


def hostile(folder: Path, ran: Path) -> None:
    """Have the settings in a folder of git's name something to be run wherever git could run it."""
    touch = f"touch '{ran}'; cat"
    for key, value in {
        "core.fsmonitor": f"touch '{ran}' #", "core.hooksPath": str(folder / "hooks"), "core.pager": touch,
        "filter.x.clean": touch, "filter.x.smudge": touch, "filter.x.process": touch, "diff.x.textconv": touch,
        "diff.x.command": touch, "diff.external": touch, "core.editor": touch, "core.sshCommand": touch,
        "core.alternateRefsCommand": touch, "gpg.program": touch, "alias.status": f"!{touch}",
    }.items():  # fmt: skip
        git(folder, "config", "--file", str(folder / "config"), key, value)
    (folder / "hooks").mkdir(exist_ok=True)
    for name in ("post-checkout", "pre-commit", "post-index-change", "reference-transaction"):
        (folder / "hooks" / name).write_text(f"#!/bin/sh\ntouch '{ran}'\n")
        (folder / "hooks" / name).chmod(0o755)


ATTRIBUTES = "* filter=x diff=x\n"


def clone_with(tmp_path: Path, build: Any) -> Path:
    """Return a clone of a repository into which somebody has committed what `build` makes."""
    upstream = new_repository(tmp_path / "upstream")
    build(upstream)
    (upstream / ".gitattributes").write_text(ATTRIBUTES)
    commit(upstream, "as if it were harmless")
    git(tmp_path, "clone", "--quiet", str(upstream), "clone")
    return tmp_path / "clone"


def a_folder_of_gits(upstream: Path, ran: Path, name: str) -> Path:
    """Make an ordinary folder that git would take for one of its own."""
    folder = upstream / name
    git(upstream, "init", "--quiet", "--bare", str(folder))
    for kept in ("objects/info", "objects/pack", "refs/heads", "refs/tags", "branches"):
        (folder / kept).mkdir(parents=True, exist_ok=True)
        (folder / kept / ".kept").touch()
    hostile(folder, ran)
    return folder


@pytest.mark.slow
def test_a_shipped_record_of_a_worktree_runs_nothing(root: Path, tmp_path: Path, ran: Path) -> None:
    def build(upstream: Path) -> None:
        data = a_folder_of_gits(upstream, ran, "data")
        git(upstream, "push", "--quiet", str(data), "main")
        ran.unlink(missing_ok=True)  # What is to be seen is who runs it later.
        base = git(upstream, "rev-parse", "HEAD").strip()
        task = upstream / ".agentctl" / "tasks" / "build"
        agent = task / "agents" / "w"
        agent.mkdir(parents=True)
        (task / "task.yaml").write_text("id: build\ntitle: x\n")
        (upstream / ".agentctl" / "current").write_text("build\n")
        (agent / "exit.json").write_text('{"status": "completed"}')
        says = {"path": ".", "gitDir": "data", "commonDir": "data", "branch": "agentctl/build/w", "base": base}
        (agent / "worktree.json").write_text(json.dumps({**says, "repository": "."}))

    clone = clone_with(tmp_path, build)
    names = ("path", "gitDir", "commonDir", "repository")
    records = clone / ".agentctl" / "tasks" / "build" / "agents" / "w" / "worktree.json"
    shipped = json.loads(records.read_bytes())
    for base, places in ((".", "."), (str(clone), str(clone))):
        said = dict(zip(names, (base, f"{places}/data", f"{places}/data", base), strict=True))
        for line in (
            "list", "show w", "tasks", "result w", "join", "worktrees list", "worktrees show w", "worktrees remove w",
            "doctor", "doctor --fix", "wait w",
        ):  # fmt: skip
            records.write_text(json.dumps({**shipped, **said}))  # As no command before has left it.
            run(*line.split(), "--root", clone / ".agentctl", *(("--task", "build") if line != "tasks" else ()),
                check=False, cwd=clone)  # fmt: skip
            assert not ran.exists(), line


@pytest.mark.parametrize("form", ["bare", *alike("commondir", "worktree")])
def test_a_folder_that_is_itself_one_of_gits_is_no_repository(root: Path, tmp_path: Path, ran: Path, form: str) -> None:
    def build(upstream: Path) -> None:
        folder = a_folder_of_gits(upstream, ran, "lib")
        if form == "worktree":
            git(upstream, "push", "--quiet", str(folder), "main")
            git(upstream, "config", "--file", str(folder / "config"), "core.bare", "false")
            git(upstream, "config", "--file", str(folder / "config"), "core.worktree", ".")
            git(folder, "--git-dir", ".", "symbolic-ref", "HEAD", "refs/heads/main")
            git(folder, "--git-dir", ".", "read-tree", "HEAD")
            (folder / ".gitattributes").write_text(ATTRIBUTES)
            shutil.copy(upstream / "a.txt", folder)  # Only what it holds can tell that it is as it was.
        elif form == "commondir":
            linked = upstream / "linked"
            linked.mkdir()
            (linked / "HEAD").write_text("ref: refs/heads/main\n")
            (linked / "commondir").write_text("../lib\n")
        ran.unlink(missing_ok=True)  # What is to be seen is who runs it later.

    new_task()
    place = clone_with(tmp_path, build) / ("linked" if form == "commondir" else "lib")
    for options in (["--reuse"], ["--worktree"]):
        refused = run("spawn", *options, "--cwd", place, "--", "true", check=False)
        assert not ran.exists(), options
        assert (refused.code, "not a working tree" in refused.err) == (1, True)
    for folder in (place, place / "objects"):
        with pytest.raises(GitError, match="a folder of git's own"):
            git_in(str(folder), limit_s=20).run("status")
    assert not ran.exists()


def test_a_clone_is_looked_at_without_what_its_settings_run(root: Path, tmp_path: Path, ran: Path) -> None:
    """Hooks and monitors, also of a person's own repository, and a caller's GIT variables."""
    new_task()
    clone = clone_with(tmp_path, lambda _: None)
    git(clone, "config", "core.fsmonitor", f"touch '{ran}' #")
    for name in ("post-checkout", "post-index-change", "reference-transaction"):
        (clone / ".git" / "hooks" / name).write_text(f"#!/bin/sh\ntouch '{ran}'\n")
        (clone / ".git" / "hooks" / name).chmod(0o755)
    git(clone, "config", "diff.external", f"touch '{ran}'")
    git(clone, "config", "diff.x.textconv", f"touch '{ran}'; cat")
    other = a_folder_of_gits(tmp_path, ran, "other")
    wrong = {
        "GIT_DIR": str(other), "GIT_EXTERNAL_DIFF": f"touch '{ran}'", "GIT_PAGER": f"touch '{ran}'",
        "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.fsmonitor", "GIT_CONFIG_VALUE_0": f"touch '{ran}' #",
        "GIT_CONFIG_PARAMETERS": f"'core.fsmonitor=touch {ran} #'", "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(other),
    }  # fmt: skip
    (clone / "a.txt").write_text("changed\n")
    run("spawn", "--reuse", "--cwd", clone, "--name", "r", "--wait", "--", "true", env=wrong)
    run("spawn", "--worktree", "--cwd", clone, "--name", "w", "--wait", "--", "sh", "-c", "echo x > a.txt", env=wrong)
    run("worktrees", "show", "w", env=wrong)
    assert not ran.exists()


@pytest.mark.slow
def test_no_submodule_is_entered(root: Path, tmp_path: Path, ran: Path) -> None:
    new_task()
    repository, inner = new_repository(tmp_path / "r"), new_repository(tmp_path / "inner")
    git(repository, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner), "inner")
    commit(repository, "with a submodule")
    hostile(repository / ".git" / "modules" / "inner", ran)
    (repository / "inner" / ".gitattributes").write_text(ATTRIBUTES)
    (repository / "inner" / "a.txt").write_text("b\n")  # As long as it was: what it holds is looked at.
    ran.unlink(missing_ok=True)
    run("spawn", "--reuse", "--cwd", repository, "--wait", "--", "true")
    assert not ran.exists()
    enters = "git -c protocol.file.allow=always submodule --quiet update --init && echo b > inner/a.txt"
    run("spawn", "--worktree", "--cwd", repository, "--wait", "--name", "w", "--", "sh", "-c", enters)
    assert not ran.exists()
    tree = Path(record(Task(root / "tasks" / "t1"), "w")["path"])
    git(repository, "config", "submodule.recurse", "true")
    hostile(Path(git(tree / "inner", "rev-parse", "--absolute-git-dir").strip()), ran)
    (tree / "inner" / ".gitattributes").write_text(ATTRIBUTES)
    ran.unlink(missing_ok=True)
    for line in ("worktrees", "worktrees show w", "result w", "doctor", "join", "worktrees remove w"):
        run(*line.split(), check=False)
        assert not ran.exists(), line


@pytest.mark.parametrize("name", ["a.txt", "new.txt"], ids=["known to git", "new"])
def test_a_file_of_a_tebibyte_keeps_no_reuse_busy(root: Path, tmp_path: Path, name: str) -> None:
    new_task()
    repository = new_repository(tmp_path / "r")
    with (repository / name).open("ab") as file:
        file.truncate(1 << 40)
    refused = run("spawn", "--reuse", "--cwd", repository, "--", "true", check=False)
    assert (refused.code, "more than 1 GiB" in refused.err, name in refused.err) == (1, True, True), refused.err


# -- what a record may say ---------------------------------------------------------------------------------------------


@pytest.fixture
def made(root: Path, tmp_path: Path) -> tuple[Task, Path]:
    """Return a task with an ended worker that has a worktree, and the repository of that."""
    task, repository = new_task(), new_repository(tmp_path / "r")
    spawn(["sh", "-c", "echo x > x"], "--worktree", "--cwd", repository, "--wait", name="a")
    return task, repository


def refuses(told: dict[str, Any]) -> None:
    with pytest.raises(GitError):
        git_for(told)


def git_for(told: dict[str, Any]) -> Git:
    tree = tree_from(told)
    assert tree is not None
    return tree.git(20)


def test_an_honest_record_is_believed_wherever_root_and_repository_lie(made: tuple[Task, Path]) -> None:
    told = record(made[0], "a")
    assert git_for(told).text("status", "--porcelain") == "?? x"
    assert git_from(told, 20).text("rev-parse", "HEAD") == told["base"]
    run("worktrees", cwd="/")


def test_where_the_place_it_was_made_from_is_gone_the_worktree_itself_tells(
    made: tuple[Task, Path], tmp_path: Path
) -> None:
    told = record(made[0], "a") | {"repository": str(tmp_path / "missing")}
    assert git_from(told, 20).text("rev-parse", "HEAD") == told["base"]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("base", "--output=/tmp/x"), ("base", "HEAD"), ("branch", "--help"), ("branch", "agentctl/../main"),
        ("path", "relative"), ("path", None), ("commonDir", ["x"]), ("gitDir", ""), ("repository", 7),
    ],
)  # fmt: skip
@pytest.mark.slow
def test_a_word_that_agentctl_does_not_write_is_refused(made: tuple[Task, Path], key: str, value: object) -> None:
    told = record(made[0], "a") | {key: value}
    refuses(told)
    if key != "gitDir":
        with pytest.raises(GitError):
            git_from(told, 20)


def test_the_folders_must_belong_together(made: tuple[Task, Path], tmp_path: Path, ran: Path) -> None:
    task, repository = made
    told = record(task, "a")
    forged = tmp_path / "forged"
    shutil.copytree(repository / ".git", forged)
    hostile(forged, ran)
    kept = Path(told["gitDir"])
    refuses(told | {"commonDir": str(forged)})
    refuses(told | {"commonDir": str(forged), "gitDir": str(forged / "worktrees" / kept.name)})
    refuses(told | {"gitDir": str(forged / "worktrees" / kept.name)})
    refuses(told | {"gitDir": str(repository / ".git")})
    refuses(told | {"path": str(tmp_path)})
    link = kept.with_name("linked")
    link.symlink_to(forged / "worktrees" / kept.name)
    refuses(told | {"gitDir": str(link)})
    os.mkfifo(kept / "new")
    (kept / "gitdir").unlink()
    (kept / "new").rename(kept / "gitdir")
    refuses(told)
    assert not ran.exists()


@pytest.mark.slow
def test_what_may_be_called_unasked_runs_no_git(made: tuple[Task, Path], tmp_path: Path) -> None:
    """`result` and the like are among what an installed client lets its agents call."""
    task, _ = made
    told = record(task, "a")
    del told["changes"]
    (task.agent("a") / "worktree.json").write_text(json.dumps(told))
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "git").write_text(f"#!/bin/sh\ntouch '{tmp_path / 'CALLED'}'\n")
    (programs / "git").chmod(0o755)
    path = {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    for line in ("result a", "join", "show a", "list", "wait a", "wait-all", "tree", "tasks", "agents"):
        run(*line.split(), env=path)
    assert not (tmp_path / "CALLED").exists()
    run("worktrees", "show", "a", env=path, check=False)
    assert (tmp_path / "CALLED").exists()
