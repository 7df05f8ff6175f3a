"""At stake: own files in a folder of whatever project a command is given in, because a variable is relative."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentctl.adapters.personal import config_folder, home_folder, named_folder, state_folder
from tests.steps import Task, spawn
from tests.support import run

FOLDERS = ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME")


@pytest.mark.parametrize(
    "variables",
    [
        pytest.param(("HOME",), marks=pytest.mark.slow, id="home"),
        pytest.param(("XDG_RUNTIME_DIR", *FOLDERS), id="others"),
    ],
)
def test_a_relative_variable_is_ignored(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variables: tuple[str, ...]
) -> None:
    if "HOME" in variables:  # Nothing is to be written into the home folder of whoever runs the tests.
        for name in FOLDERS:
            monkeypatch.setenv(name, str(tmp_path / "own" / name))
    (tmp_path / "rel").mkdir()
    monkeypatch.chdir(tmp_path)
    for name in variables:
        monkeypatch.setenv(name, "rel")
    run("new", "A task", "--id", "t1")
    task = Task(root / "tasks" / "t1")
    spawn(["true"], name="w")
    run("wait-all")
    run("spawn", "--queue", "--name", "v", "--after", "w", "--", "true")
    task.ended("v")
    run("doctor", check=False)
    run("agents", "list", check=False)
    assert not list((tmp_path / "rel").iterdir())
    assert run("list").err == ""


def test_a_relative_or_missing_home_is_that_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentctl.adapters.personal._home_of_user", lambda: "/home/me")
    for environ in (
        {},
        {"HOME": ""},
        {"HOME": "rel"},
        {"HOME": "rel", "XDG_CONFIG_HOME": "a", "XDG_STATE_HOME": "./b"},
    ):
        assert home_folder(environ) == "/home/me"
        assert config_folder(environ) == "/home/me/.config/agentctl"
        assert state_folder(environ) == "/home/me/.local/state/agentctl"
    assert config_folder({"HOME": "/"}) == "/.config/agentctl"
    assert named_folder({"X": "/a/"}, "X") == "/a"
