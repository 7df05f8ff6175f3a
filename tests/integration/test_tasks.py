"""At stake: every task that is made has its own folder, and commands use the task that was chosen."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from agentctl.adapters.taskdir import Root
from agentctl.operations.start.new_task import create_task
from tests.snapshots import snapshot
from tests.support import Completed, run, start


def names() -> list[str]:
    return [row["taskId"] for row in run("tasks", "--json").json]


def current() -> list[str]:
    return [row["taskId"] for row in run("tasks", "--json").json if row["current"]]


def refused(*args: str, code: int) -> Completed:
    ended = run(*args, check=False)
    assert ended.code == code, str(ended)
    assert "hint:" in ended.err
    return ended


@pytest.mark.slow
def test_a_title_makes_a_name_and_the_same_title_another(root: Path) -> None:
    for title in ("Survey the auth module!", "survey: the AUTH module", "???", "日本語"):
        run("new", title)
    assert names() == sorted(["survey-the-auth-module", "survey-the-auth-module-2", "task", "task-2"])
    assert current() == ["task-2"]


@pytest.mark.slow
def test_of_many_that_race_for_a_title_each_makes_a_task(root: Path) -> None:
    root.mkdir(mode=0o700)
    processes = [start("new", "The same") for _ in range(6)]
    assert [process.wait(timeout=30) for process in processes] == [0] * 6
    assert len(names()) == 6
    assert current()[0] in names()


@pytest.mark.slow
def test_of_many_that_race_for_an_id_one_makes_the_task(root: Path) -> None:
    root.mkdir(mode=0o700)
    processes = [start("new", "x", "--id", "mine") for _ in range(6)]
    assert sorted(process.wait(timeout=30) for process in processes) == [0, 2, 2, 2, 2, 2]
    assert names() == ["mine"]


def test_use_chooses_and_a_name_that_is_none_chooses_nothing(root: Path) -> None:
    for name in ("one", "two"):
        run("new", name, "--id", name)
    run("use", "one")
    assert current() == ["one"]
    assert "no task 'three'" in refused("use", "three", code=3).err
    refused("use", "../one", code=2)
    assert current() == ["one"]


def test_the_option_wins_over_the_environment_and_that_over_the_chosen_task(root: Path) -> None:
    for name in ("one", "two", "three"):
        run("new", name, "--id", name)

    def chosen(*options: str, task: str | None = None) -> str:
        return str(run("events", "--json", *options, env={"AGENTCTL_TASK": task}).json_lines[0]["taskId"])

    assert chosen() == "three"
    assert chosen(task="two") == "two"
    assert chosen("--task", "one", task="two") == "one"


def test_a_spawn_without_a_task_makes_one_and_the_next_uses_it(root: Path) -> None:
    run("spawn", "--wait", "--", "true")
    run("spawn", "--wait", "--", "true")
    assert len(names()) == 1


def test_the_nearest_folder_above_is_the_root(root: Path, tmp_path: Path) -> None:
    deep = tmp_path / "project" / "a" / "b"
    deep.mkdir(parents=True)
    without = {"AGENTCTL_ROOT": None}
    run("new", "x", "--id", "mine", env=without, cwd=tmp_path / "project")
    assert run("tasks", "--json", env=without, cwd=deep).json[0]["path"] == f"{tmp_path}/project/.agentctl/tasks/mine"
    assert (
        run("tasks", "--json", "--root", f"{tmp_path}/project/.agentctl", env=without, cwd="/").json[0]["taskId"]
        == "mine"
    )
    nowhere = run("list", env=without, cwd="/", check=False)
    assert nowhere.code == 3


def test_what_is_given_on_the_line_stands_in_the_file_and_bad_values_make_no_task(root: Path) -> None:
    run("new", "x", "--id", "mine", "--max-concurrent", "2", "--timeout-seconds", "7.5", "--max-depth", "0")
    head = yaml.safe_load((root / "tasks" / "mine" / "task.yaml").read_bytes())
    assert head["config"] == {"maxConcurrentAgents": 2, "timeoutSeconds": 7.5, "maxDepth": 0}
    assert (head["id"], head["title"], head["state"], head["roster"]) == ("mine", "x", "created", [])
    for option in (
        ["--max-concurrent", "-1"],
        ["--timeout-seconds", "0"],
        ["--max-depth", "99"],
        ["--grace-seconds", "9999"],
    ):
        assert run("new", "x", "--id", "bad", *option, check=False).code == 2
    assert names() == ["mine"]


def test_everything_that_is_made_is_private(root: Path) -> None:
    run("new", "x")
    run("spawn", "--wait", "--", "true")
    assert (root / "tasks").stat().st_mode & 0o077 == 0
    modes = {path: int(looks.split()[0], 8) for path, looks in snapshot(root / "tasks").items()}
    assert {path for path, mode in modes.items() if mode & 0o077} == set()
    assert (root / "current").stat().st_mode & 0o077 == 0


@pytest.mark.slow
def test_a_damaged_task_hides_no_other(root: Path) -> None:
    for name in ("good", "bad", "worse"):
        run("new", name, "--id", name)
    (root / "tasks" / "bad" / "task.yaml").write_bytes(b"\xff{")
    (root / "tasks" / "bad" / "config.json").write_bytes(b'{"config": [], "head": 5}')
    (root / "tasks" / "worse" / "events.jsonl").write_bytes(b"\x00" * 100 + b"\n")
    (root / "tasks" / "stranger").mkdir()
    assert names() == ["bad", "good", "worse"]
    assert run("doctor", check=False).code == 1
    assert "bad/task.yaml:1" in run("doctor", check=False).out


def test_a_task_that_was_made_is_on_disk(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A power cut cannot be tested here; that every file was flushed can."""
    flushed = []

    def noting(flush: Callable[[int], None]) -> Callable[[int], None]:
        def noted(fd: int) -> None:
            flush(fd)
            flushed.append(os.fstat(fd))

        return noted

    for name in ("fsync", "fdatasync"):
        monkeypatch.setattr(os, name, noting(getattr(os, name)))
    task = create_task(Root(str(root)), "x")
    wanted = (task.task_file, task.origin, task.events, task.path, task.path.parent)
    assert [path for path in wanted if not any(os.path.samestat(os.stat(path), one) for one in flushed)] == []
