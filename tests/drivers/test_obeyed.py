"""A program that would obey a project's files without asking anybody is not started where there are any.

Neither where they were there when it was ordered, nor where somebody has written them while it waited for its start.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agentctl.drivers.registry import load
from agentctl.errors import Refused
from agentctl.operations.start import obeyed
from tests.steps import new_task
from tests.support import Completed, run


def spawned() -> Completed:
    return run("spawn", "--driver", "codex-acp", "--name", "a1", "Say hello.", check=False)


@pytest.fixture(autouse=True)
def program(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program of that name, which ends at once, and a task."""
    path = tmp_path / "bin" / "codex-acp"
    path.parent.mkdir()
    script = f'#!/bin/sh\n[ "$1" = --version ] || echo >> {tmp_path}/started\nexit 3\n'
    path.write_text(script, encoding="utf-8")
    path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{path.parent}{os.pathsep}{os.environ['PATH']}")
    new_task(cap=1)


@pytest.mark.parametrize("above", [False, True])
def test_files_of_a_project_keep_it_from_starting(above: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    Path(".git").mkdir()
    Path(".codex").mkdir()
    Path(".codex/config.toml").touch()
    if above:
        Path("below").mkdir()
        monkeypatch.chdir("below")
    told = spawned()
    assert told.code == 1
    assert "would obey" in told.err
    assert run("list", "--json").json == []


def test_a_link_keeps_it_from_starting_wherever_it_leads() -> None:
    Path(".codex").symlink_to("nowhere")
    assert "would obey" in spawned().err


def test_an_empty_folder_says_nothing() -> None:
    Path(".codex").mkdir()
    assert spawned().code == 0
    assert "with exit code 3" in run("wait", "a1", check=False).out


@pytest.mark.parametrize("is_repository", [True, False])
def test_what_is_the_persons_own_is_a_projects_where_they_work_in_their_home(
    is_repository: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program gets a home of its own: it does not know that this folder is the person's."""
    home = Path.home()
    (home / ".codex").mkdir()
    (home / ".codex" / "config.toml").touch()
    folder = home / "below" if is_repository else home
    folder.mkdir(exist_ok=True)
    if is_repository:
        (home / ".git").mkdir()
    monkeypatch.chdir(folder)
    assert f"would obey {home}/.codex" in spawned().err


def test_in_a_folder_below_their_home_it_is_the_persons(monkeypatch: pytest.MonkeyPatch) -> None:
    home = Path.home()
    (home / ".codex").mkdir()
    (home / ".codex" / "config.toml").touch()
    (home / "below").mkdir()
    # Others may have left something by that name above: a sandbox of Codex leaves it in the folder for temporary files.
    monkeypatch.setattr(obeyed, "entry_above", lambda _: None)
    obeyed.refuse_obeyed(load("codex-acp"), str(home / "below"))
    (home / "below" / ".codex").mkdir()
    (home / "below" / ".codex" / "config.toml").touch()
    with pytest.raises(Refused, match="would obey"):
        obeyed.refuse_obeyed(load("codex-acp"), str(home / "below"))


@pytest.mark.parametrize("policy", ["allow", "ask"])
def test_files_that_came_while_it_was_queued_keep_it_from_starting(tmp_path: Path, policy: str) -> None:
    run("spawn", "--name", "first", "--", "sleep", "60")
    Path(".git").mkdir()
    run("spawn", "--queue", "--driver", "codex-acp", "--name", "a1", "--permissions", policy, "Say hello.")
    Path(".codex").mkdir()
    Path(".codex/config.toml").touch()
    run("cancel", "first")
    ended = run("wait", "--json", "a1", check=False).json
    assert (ended["status"], ended["reason"]) == ("failed", "not_started")
    assert f"codex-acp would obey {Path('.codex').absolute()} without asking anybody" in ended["message"]
    assert not (tmp_path / "started").exists()
