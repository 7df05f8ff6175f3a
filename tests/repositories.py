"""Makes real git repositories for tests of worktrees."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.steps import Task

#: The settings of a git user who has set nothing but a name.
IDENTITY = {
    "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "n", "GIT_AUTHOR_EMAIL": "n@x", "GIT_COMMITTER_NAME": "n",
    "GIT_COMMITTER_EMAIL": "n@x", "LC_ALL": "C",
}  # fmt: skip


def git(folder: str | Path, *args: str, check: bool = True, env: Mapping[str, str] | None = None) -> str:
    """Run git and return what it prints."""
    environ = {**os.environ, **IDENTITY, **(env or {})}
    done = subprocess.run(["git", *args], cwd=folder, env=environ, capture_output=True, text=True, check=False)
    assert not check or done.returncode == 0, done.stderr
    return done.stdout


#: Made once by git, then copied: a repository is only its files.
_prototypes: list[Path] = []


def new_repository(folder: Path) -> Path:
    """Make a repository with one commit: two files at the top, two in folders, one ignored name."""
    if not _prototypes:
        place = Path(tempfile.mkdtemp(prefix="agentctl-tests-"))
        atexit.register(shutil.rmtree, place, ignore_errors=True)
        _prototypes.append(_first_repository(place / "repository"))
    shutil.copytree(_prototypes[0], folder, dirs_exist_ok=True)
    return folder


def _first_repository(folder: Path) -> Path:
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "config", "user.name", "n")
    git(folder, "config", "user.email", "n@x")
    for name, text in {
        "a.txt": "a\n",
        "b.txt": "b\n",
        "sub/c.txt": "c\n",
        "dir/d.txt": "d\n",
        ".gitignore": "*.log\n",
    }.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    commit(folder, "first")
    return folder


def commit(folder: Path, message: str) -> str:
    """Commit everything and return the commit."""
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", message)
    return git(folder, "rev-parse", "HEAD").strip()


def branches(folder: Path) -> list[str]:
    """Return the names of the branches."""
    return git(folder, "for-each-ref", "--format=%(refname:short)", "refs/heads").split()


def worktrees(folder: Path) -> list[str]:
    """Return the folders of all worktrees but the main one."""
    lines = git(folder, "worktree", "list", "--porcelain").splitlines()
    return [line.removeprefix("worktree ") for line in lines if line.startswith("worktree ")][1:]


def record(task: Task, instance: str) -> dict[str, Any]:
    """Return the content of `worktree.json`, with whole paths."""
    value: dict[str, Any] = json.loads((task.agent(instance) / "worktree.json").read_bytes())
    root = task.path.parent.parent
    paths = {"path", "repository", "commonDir", "gitDir", "cwd"} & value.keys()
    whole = {key: str(root / value[key]) for key in paths}
    if "patch" in value.get("changes", {}):
        value["changes"]["patch"] = str(root / value["changes"]["patch"])
    return {**value, **whole}
