"""At stake: no repository that an agent could make or change within its sandbox has git run anything outside."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.agent_steps import agent, agent_world, blocked
from tests.repositories import commit, git, new_repository
from tests.steps import Task
from tests.support import Completed, run

PWNED = Path("PWNED")


@pytest.fixture
def task(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    return agent_world(tmp_path, monkeypatch, cap=5)


def hostile(folder: Path) -> Path:
    """Make a repository whose settings have git run a program for each file that it checks out."""
    new_repository(folder)
    (folder / ".gitattributes").write_text("* filter=x\n")
    commit(folder, "attributes")
    git(folder, "config", "filter.x.smudge", f"touch {PWNED.absolute()}; cat")
    return folder


def isolated(task: Task, folder: Path) -> Completed:
    """Have the agent a start one with a worktree of its own."""
    inside = {"AGENTCTL_TASK": "t1", "AGENTCTL_INSTANCE": "a", "AGENTCTL_AGENT_DIR": str(task.agent("a"))}
    started = run(
        "spawn", "--agent", "general", "--name", "b", "--worktree", "--cwd", folder, "say x", env=inside, check=False
    )
    run("cancel", "a")
    return started


def is_refused(started: Completed) -> bool:
    return (started.code, "could have made or changed" in started.err) == (1, True)


@pytest.mark.parametrize("where", ["sub", "."])
def test_one_that_the_agent_has_made_is_not_used(task: Task, where: str) -> None:
    agent("say x", "--keep")
    blocked()
    assert is_refused(isolated(task, hostile(Path(where))))
    assert not PWNED.exists()
    assert not (task.agent("b")).exists()


def test_one_that_was_there_below_its_folder_is_not_used(task: Task) -> None:
    hostile(Path("sub"))
    agent("say x", "--keep")
    blocked()
    assert is_refused(isolated(task, Path("sub")))
    assert not PWNED.exists()


def test_one_above_it_in_a_folder_that_stays_open_is_not_used(task: Task) -> None:
    """As in a project below /tmp."""
    hostile(Path.cwd())
    Path("part").mkdir()
    agent("say x", "--keep", "--cwd", "part")
    blocked()
    started = isolated(task, Path("part"))
    assert is_refused(started) == (os.path.realpath("part").startswith(os.path.realpath("/tmp") + "/"))


def test_settings_beside_those_that_are_kept_are_not_used(task: Task) -> None:
    """A `.git` of the agent's own, which names that of the workspace as the common one and has settings beside it."""
    new_repository(Path.cwd())
    git(Path.cwd(), "config", "extensions.worktreeConfig", "true")
    agent("say x", "--keep")
    blocked()
    evil = Path("sub") / ".git"
    evil.mkdir()
    (evil / "HEAD").write_text("ref: refs/heads/main\n")
    (evil / "commondir").write_text(f"{Path('.git').absolute()}\n")
    (evil / "config.worktree").write_text(f'[filter "x"]\nsmudge = touch {PWNED.absolute()}; cat\n')
    assert is_refused(isolated(task, Path("sub")))
    assert not PWNED.exists()


def test_the_one_that_it_works_in_is_used(task: Task) -> None:
    new_repository(Path.cwd())
    agent("say x", "--keep")
    blocked()
    started = isolated(task, Path("sub"))
    assert started.code == 0, started
    assert "worktrees" in run("show", "b", "--json").json["spec"]["cwd"]
