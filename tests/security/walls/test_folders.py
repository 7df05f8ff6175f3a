"""At stake: what an agent may do in its folder, its children may do there or below, and nowhere else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.agent_steps import agent, agent_world, blocked, define
from tests.steps import Task, spawn
from tests.support import run, worker


@pytest.fixture
def task(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    return agent_world(tmp_path, monkeypatch, cap=5)


def inside(task: Task, instance: str) -> dict[str, str]:
    """Return what a process of a worker has in its environment."""
    return {"AGENTCTL_TASK": "t1", "AGENTCTL_INSTANCE": instance, "AGENTCTL_AGENT_DIR": str(task.agent(instance))}


@pytest.fixture
def parent(task: Task) -> dict[str, str]:
    agent("say x", "--keep")
    blocked()
    return inside(task, "a")


@pytest.mark.parametrize("folder", ["/", "..", "link"])
def test_an_agents_child_gets_no_folder_outside_of_its_own(parent: dict[str, str], tmp_path: Path, folder: str) -> None:
    Path("link").symlink_to(tmp_path)
    refused = run("spawn", "--agent", "general", "--cwd", folder, "say x", env=parent, check=False)
    assert (refused.code, "works there or below" in refused.err) == (1, True)
    refused = run("spawn", "--cwd", folder, "--", "true", env=parent, check=False)
    assert (refused.code, "works there or below" in refused.err) == (1, True)
    run("cancel", "a")


def test_below_it_is_well(parent: dict[str, str]) -> None:
    Path("part").mkdir()
    run("spawn", "--agent", "general", "--cwd", "part", "--name", "b", "--wait", "say x", env=parent)
    assert Path(run("show", "b", "--json").json["spec"]["cwd"]) == Path("part").resolve()
    run("cancel", "a")


def test_what_a_command_between_them_starts_is_held_to_the_agent_above(task: Task, parent: dict[str, str]) -> None:
    """A denial, a folder: a plain command has neither, and passes on those of the agent that started it."""
    spawn(worker("sleeps", 60), name="plain")
    spec = task.agent("plain") / "spec.json"
    text = spec.read_text(encoding="utf-8")
    spec.write_text(text.replace('"parent": null', '"parent": "a"'), encoding="utf-8")
    refused = run("spawn", "--cwd", "/", "--", "true", env=inside(task, "plain"), check=False)
    assert (refused.code, "works there or below" in refused.err) == (1, True)
    run("cancel", "a", "plain")


def test_a_person_starts_an_agent_anywhere(root: Path, task: Task) -> None:
    define(root, "where", "pwd")
    run("spawn", "--agent", "where", "--cwd", "/", "--name", "w", "--wait", "x")
    assert run("result", "w").out == f"{os.sep}\n"
