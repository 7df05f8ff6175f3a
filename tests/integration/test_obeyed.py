"""A program that would obey a project's files without asking anybody is not started where there are any."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.steps import new_task
from tests.support import Completed, run


def spawned() -> Completed:
    return run("spawn", "--driver", "codex-acp", "--name", "a1", "Say hello.", check=False)


@pytest.fixture(autouse=True)
def program(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program of that name, which ends at once, and a task."""
    path = tmp_path / "bin" / "codex-acp"
    path.parent.mkdir()
    path.write_text("#!/bin/sh\nexit 3\n", encoding="utf-8")
    path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{path.parent}{os.pathsep}{os.environ['PATH']}")
    new_task()


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
