"""At stake: what an agent may do in its folder, its children may do there or below, and nowhere else."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.agent_steps import agent, agent_world, blocked, define, ends, inside
from tests.life import forge, set_config
from tests.repositories import commit, new_repository
from tests.steps import Task, spawn
from tests.support import run, start_argv, worker


@pytest.fixture
def task(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    made = agent_world(tmp_path, monkeypatch, cap=5)
    set_config(made, maxConcurrentAgents=5, maxDepth=3, graceSeconds=1)
    return made


@pytest.fixture
def parent(task: Task) -> dict[str, str]:
    agent("say x", "--keep")
    blocked()
    return inside(task, "a")


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["/", "..", "link"])
def test_an_agents_child_gets_no_folder_outside_of_its_own(parent: dict[str, str], tmp_path: Path, folder: str) -> None:
    Path("link").symlink_to(tmp_path)
    refused = run("spawn", "--agent", "general", "--cwd", folder, "say x", env=parent, check=False)
    assert (refused.code, "works there or below" in refused.err) == (1, True)
    refused = run("spawn", "--cwd", folder, "--", "true", env=parent, check=False)
    assert (refused.code, "works there or below" in refused.err) == (1, True)
    run("cancel", "a")


def test_nor_by_a_tool(task: Task, parent: dict[str, str]) -> None:
    calls = json.dumps([["spawn_agent", {"instruction": "say x", "working_dir": "/", "id": "b"}, 20]])
    process = start_argv(worker("calls_tools", "codex", calls), env=parent)
    answer = json.loads(process.communicate()[0].splitlines()[1])
    assert "works there or below" in answer["error"]
    assert not task.agent("b").exists()
    run("cancel", "a")


def test_an_agents_child_may_work_below_its_folder(parent: dict[str, str]) -> None:
    Path("part").mkdir()
    run("spawn", "--agent", "general", "--cwd", "part", "--name", "b", "--wait", "say x", env=parent)
    assert Path(run("show", "b", "--json").json["spec"]["cwd"]) == Path("part").resolve()
    run("cancel", "a")


@pytest.mark.slow
def test_what_a_command_between_them_starts_is_held_to_the_agent_above(task: Task) -> None:
    """A denial, a folder: a plain command has neither, and passes on those of the agent that started it."""
    agent("say x", "--keep", "--permissions", '[{"tool": "Bash", "pattern": "rm *", "answer": "deny"}]')
    blocked()
    spawn(worker("sleeps", 60), name="plain")
    forge(task.agent("plain") / "spec.json", parent="a")
    between = inside(task, "plain")
    refused = run("spawn", "--cwd", "/", "--", "true", env=between, check=False)
    assert (refused.code, "works there or below" in refused.err) == (1, True)
    refused = run("spawn", "--", "rm", "x", env=between, check=False)
    assert (refused.code, "deny it the command rm, also as a worker" in refused.err) == (1, True)
    run("spawn", "--agent", "general", "--name", "c", "permit rm x", env=between)
    assert ends("c")["result"]["finalMessage"] == "denied"
    run("cancel", "a", "plain")


@pytest.fixture
def queued(task: Task, parent: dict[str, str], tmp_path: Path) -> Callable[..., None]:
    """Return what has the agent queue a worker in `sub/part`, and then lets it begin, with `sub` led elsewhere."""

    def queue(*argv: str) -> None:
        Path("sub", "part").mkdir(parents=True)
        spawn(worker("exits", 0, "--after-file", tmp_path / "gate"), name="first")
        run("spawn", "--queue", "--after", "first", "--cwd", "sub/part", "--name", "b", *argv, env=parent)
        lead_elsewhere(tmp_path)
        (tmp_path / "gate").touch()
        task.ended("b")
        run("cancel", "a")

    return queue


def lead_elsewhere(folder: Path) -> None:
    """Put a link to a folder that is just like it in the place of `sub`."""
    (folder / "elsewhere" / "part").mkdir(parents=True)
    Path("sub").rename("moved")
    Path("sub").symlink_to(folder / "elsewhere")


@pytest.mark.parametrize("argv", [["--agent", "general", "say x"], ["--", "touch", "was-here"]])
def test_a_folder_that_became_a_link_is_not_worked_in(
    task: Task, queued: Callable[..., None], tmp_path: Path, argv: list[str]
) -> None:
    queued(*argv)
    end = task.exit("b") or {}
    assert (end["status"], end["reason"]) == ("failed", "not_started")
    folder = Path("sub/part").absolute()
    assert end["message"] == f"{folder} now leads to {tmp_path}/elsewhere/part: a folder was replaced by a link"
    assert list((tmp_path / "elsewhere" / "part").iterdir()) == []


@pytest.mark.slow
def test_who_is_continued_is_not_led_elsewhere_either(parent: dict[str, str], tmp_path: Path) -> None:
    """Not by a person, who does not know that the agent above it has changed the folder since."""
    Path("sub", "part").mkdir(parents=True)
    run("spawn", "--agent", "general", "--cwd", "sub/part", "--name", "b", "--wait", "say x", env=parent)
    lead_elsewhere(tmp_path)
    for env in ({}, parent):
        refused = run("resume", "b", "say y", env=env, check=False)
        assert refused.code == 1
        assert "a folder was replaced by a link" in refused.err or "works there or below" in refused.err
    run("cancel", "a")


@pytest.mark.slow
def test_a_worktree_whose_commit_has_a_link_there_is_none(task: Task, parent: dict[str, str], tmp_path: Path) -> None:
    repository = new_repository(Path("repository"))
    (repository / "sub").rename(repository / "was")
    (repository / "sub").symlink_to(tmp_path)
    commit(repository, "a link")
    (repository / "sub").unlink()
    (repository / "sub").mkdir()
    run("spawn", "--agent", "general", "--cwd", repository, "--name", "at-home", "--keep", "say x", env=parent)
    blocked("at-home")
    options = ("--worktree", "--cwd", repository / "sub", "--name", "b")
    at_home = inside(task, "at-home")
    refused = run("spawn", *options, "--agent", "general", "say x", env=at_home, check=False)
    assert (refused.code, "the folder sub is not in commit" in refused.err) == (1, True)
    run("cancel", "a")


@pytest.mark.slow
def test_the_parents_own_folder_is_where_it_was(task: Task, parent: dict[str, str], tmp_path: Path) -> None:
    """An agent below another one is led elsewhere by that one, and what it starts is not at home there."""
    Path("sub", "part").mkdir(parents=True)
    run("spawn", "--agent", "general", "--cwd", "sub/part", "--name", "b", "--keep", "say x", env=parent)
    blocked("b")
    lead_elsewhere(tmp_path)
    refused = run("spawn", "--cwd", "sub/part", "--", "true", env=inside(task, "b"), check=False)
    assert (refused.code, "works there or below" in refused.err) == (1, True)
    run("cancel", "a")


def test_a_person_starts_an_agent_anywhere(root: Path, task: Task) -> None:
    define(root, "where", "pwd")
    run("spawn", "--agent", "where", "--cwd", "/", "--name", "w", "--wait", "x")
    assert run("result", "w").out == f"{os.sep}\n"


def test_a_person_starts_what_they_want_over_a_link(root: Path, task: Task, tmp_path: Path) -> None:
    define(root, "where", "pwd")
    (tmp_path / "there").mkdir()
    Path("link").symlink_to(tmp_path / "there")
    run("spawn", "--agent", "where", "--cwd", "link", "--name", "w", "--wait", "x")
    assert run("result", "w").out == f"{tmp_path}/there\n"
    spawn(["sh", "-c", "pwd -P"], "--cwd", "link", "--wait", name="c")
    assert (task.agent("c") / "stdout.log").read_text(encoding="utf-8") == f"{tmp_path}/there\n"
