"""At stake: who adds the option that a refusal names, or leaves out the one that it names, is served."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agent_steps import inside
from tests.steps import Task, new_task, row, spawn, statuses
from tests.support import Completed, run, worker

pytestmark = pytest.mark.slow


@pytest.fixture
def task(root: Path) -> Task:
    return new_task()


def refused(*command: str | Path, says: str, env: dict[str, str] | None = None) -> Completed:
    """Run what is refused with a hint that has these words."""
    told = run(*command, check=False, env=env)
    assert told.code != 0, told
    assert says in told.err.partition("hint: ")[2], told
    return told


def test_another_folder_and_another_name(task: Task, tmp_path: Path) -> None:
    refused("spawn", "--cwd", tmp_path / "none", "--", "true", says="choose another --cwd")
    spawn(["true"], "--cwd", tmp_path, "--wait", name="a")

    refused("spawn", "--name", "a", "--", "true", says="choose another --name")
    run("spawn", "--name", "b", "--wait", "--", "true")


def test_a_task_that_another_id_is_for(task: Task) -> None:
    refused("new", "Again", "--id", "t1", says="agentctl use t1")

    run("new", "Again", "--id", "t2")


def test_a_search_that_finds_nothing_in_texts_finds_it_in_logs(task: Task) -> None:
    spawn(["sh", "-c", "printf 'it is '; echo written"], "--wait", name="a")
    refused("search", "is written", says="--logs searches the raw output too")

    assert "is written" in run("search", "is written", "--logs").out


def test_a_root_that_is_a_link_is_named(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    new_task()
    folder = tmp_path / "a project"
    folder.mkdir()
    (folder / ".agentctl").symlink_to(root)
    monkeypatch.delenv("AGENTCTL_ROOT")
    monkeypatch.chdir(folder)
    told = refused("list", says="--root ")

    option, value = told.err.partition("hint: ")[2].strip().split(" ", 1)

    assert value == f"'{folder}/.agentctl'"
    assert run("list", option, value.strip("'")).code == 0


def test_what_a_timeline_takes_together(task: Task, tmp_path: Path) -> None:
    spawn(["true"], "--wait", name="a")
    refused("timeline", "t1", "--task", "t2", says="leave out --task")
    run("timeline", "t1")

    refused("timeline", "--svg", "-", "--html", "-", says="call it twice")
    for option in ("--svg", "--html"):
        run("timeline", option, tmp_path / "made")

    refused("timeline", "--svg", "-", "--json", says="give a FILE, or leave out --json")
    run("timeline", "--svg", tmp_path / "made", "--json")
    run("timeline", "--svg", "-")


def test_the_file_of_a_result_is_there(task: Task, tmp_path: Path) -> None:
    spawn(worker("sleeps", 60), name="a")
    env = inside(task, "a")
    (tmp_path / "made").touch()
    command = ("report", "result", "--file")

    refused(*command, tmp_path / "none", says="give --file a file that exists", env=env)
    refused(*command, tmp_path, says="give --file a plain file", env=env)
    run(*command, tmp_path / "made", env=env)

    run("cancel", "a")


def test_the_options_of_a_question_are_named(task: Task) -> None:
    spawn(worker("sleeps", 60), name="a")
    env = inside(task, "a")

    refused("interact", "ask", "--kind", "select", "Which?", says="--option ID=LABEL, once for each", env=env)
    told = run(
        "interact", "ask", "--kind", "select", "--option", "x=X", "--default", "x", "--timeout-seconds", "0.1",
        "Which?", env=env,
    )  # fmt: skip

    assert told.out == "x\n"
    run("cancel", "a")


def test_which_question_is_meant(task: Task) -> None:
    for name in ("one", "two"):
        run("new", name, "--id", name, "--no-use")
        spawn(worker("asks", "--kind", "confirm", "Go on?"), "--task", name, name="q")
        run("wait-any", "--task", name, "--for", "blocked")

    refused("interact", "respond", "q", "--id", "q1", "yes", says="say which: INSTANCE --task TASK")
    for name in ("one", "two"):
        run("interact", "respond", "q", "--task", name, "--id", "q1", "yes")
        run("wait", "q", "--task", name)


def test_a_slot_is_waited_for_in_the_queue(task: Task) -> None:
    task.set_cap(1)
    spawn(worker("sleeps", 60), name="a")

    refused("spawn", "--name", "b", "--", "true", says="--queue waits for a free one")
    run("spawn", "--name", "b", "--queue", "--", "true")

    assert row("b")["status"] == "queued"
    run("cancel", "--all")
    assert set(statuses().values()) == {"cancelled"}


def test_a_change_of_settings_without_a_question(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    refused("install", "claude", "--project", says="--yes makes the change")

    run("install", "claude", "--project", "--yes")
