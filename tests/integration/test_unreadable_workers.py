"""At stake: one worker or task that cannot be read hides no other one, is told as unknown, and is left as it is."""

from __future__ import annotations

import errno
import os
import subprocess
from pathlib import Path

import pytest

from tests.faults import OPEN, READ, SCAN, STAT, Faults
from tests.shells import define_shells
from tests.snapshots import snapshot
from tests.steps import Task, new_task, spawn
from tests.support import Completed, alike, environment, run, start, wait_until, worker

LOOKS = OPEN | READ | STAT | SCAN
_TOLD = os.strerror(errno.EIO)


@pytest.fixture
def task(root: Path, tmp_path: Path) -> Task:
    """Return a task with the workers `good` and `bad`, which run until each has a gate, and `done`."""
    made = new_task()
    spawn(worker("exits", 3), "--wait", name="done", check=False)
    for name in ("good", "bad"):
        spawn(worker("exits", 0, "--after-file", tmp_path / name), name=name)
    wait_until(made.roster, accept=lambda rows: list(rows.values()).count("active") == 2, what="both to run")
    return made


def told(*args: str, **options: float) -> Completed:
    """Run a command that shows what it can read, and ends with the error of what it cannot."""
    done = run(*args, check=False, **options)  # type: ignore[arg-type]
    assert done.code == 1, done
    assert done.err.splitlines()[-2].startswith("error: "), done
    assert _TOLD in done.err.splitlines()[-2], done
    assert done.err.splitlines()[-1].startswith("hint: "), done
    assert "bug" not in done.err
    return done


def end(task: Task, tmp_path: Path) -> None:
    for name in ("good", "bad"):
        (tmp_path / name).touch()
    task.ended("good", "bad")


@pytest.mark.parametrize("file", ["shim.json", *alike("exit.json", ".")])
def test_the_others_are_listed_and_the_one_is_a_row_that_says_so(
    task: Task, faulty: Faults, tmp_path: Path, file: str
) -> None:
    before = snapshot(task.agent("bad"))
    faulty.fail(task.agent("bad") / file, LOOKS, errno.EIO)
    rows = {row["agentInstance"]: row for row in told("list", "--json").json}
    assert {name: row["status"] for name, row in rows.items()} == {
        "done": "failed", "good": "running", "bad": "running",
    }  # fmt: skip
    assert [name for name, row in rows.items() if row.get("unreadable")] == ["bad"]
    assert (rows["bad"]["health"], rows["good"]["health"]) == ("unknown", "supervised")
    assert f"bad\trunning\tunknown: {rows['bad']['unreadable']}" in told("list").out
    assert f"unknown: {rows['bad']['unreadable']}" in told("tree").out
    told("timeline")
    assert run("show", "good", "--json").json["status"] == "running"
    assert run("tasks", "--json").json[0]["state"] == "working"
    faulty.mend()
    assert snapshot(task.agent("bad")) == before, "nothing was decided about it"
    end(task, tmp_path)


def test_a_wait_goes_on_with_those_that_can_be_read_and_ends_with_the_error_of_the_last(
    task: Task, faulty: Faults, tmp_path: Path
) -> None:
    faulty.fail(task.agent("bad"), LOOKS, errno.EIO)
    waiting = start("wait-all")
    assert waiting.stderr is not None
    assert "the state of t1/bad is unknown: " in waiting.stderr.readline()
    assert run("wait-any", "--json").json["agentInstance"] == "done"
    (tmp_path / "good").touch()
    assert run("wait-any", "--json").json["agentInstance"] == "good"
    assert run("wait", "good").code == 0
    assert waiting.wait(timeout=30) == 1
    assert _TOLD in waiting.stderr.read()
    faulty.mend()
    (tmp_path / "bad").touch()
    task.ended("bad")
    assert (task.exit("bad") or {})["status"] == "completed"


def test_a_wait_for_nobody_else_ends_with_the_error(task: Task, faulty: Faults, tmp_path: Path) -> None:
    faulty.fail(task.agent("bad") / "shim.json", LOOKS, errno.EIO)
    for args in (("wait", "bad"), ("wait-any", "bad")):
        assert "shim.json" in told(*args, timeout=20).err
    faulty.mend()
    end(task, tmp_path)


def test_questions_of_the_others_are_shown(root: Path, faulty: Faults) -> None:
    task = new_task()
    for name in ("good", "bad"):
        spawn(worker("asks", "--kind", "confirm", "Go on?"), name=name)
        task.has("agent.blocked", name)
    faulty.fail(task.agent("bad") / "interactions", LOOKS, errno.EIO)
    shown = told("interact", "list", "--json").json
    assert [one["agentInstance"] for one in shown] == ["good"]
    assert "unknown: " in told("list").out
    faulty.mend()
    assert len(run("interact", "list", "--json").json) == 2
    run("cancel", "--all", "--grace-seconds", "0")


@pytest.mark.parametrize("file", ["shim.json", "exit.json", *alike(".")])
def test_doctor_names_the_one_and_looks_at_the_others(task: Task, faulty: Faults, tmp_path: Path, file: str) -> None:
    (task.agent("done") / "exit.json.999999999.12345678.tmp").touch()
    before = snapshot(task.agent("bad"))
    faulty.fail(task.agent("bad") / file, LOOKS, errno.EIO)
    found = run("doctor", "--fix", "--json", check=False)
    assert found.code == 1, found
    problems = [one for one in found.json if one["severity"] == "error"]
    assert [one for one in problems if one["where"] == "t1/bad" and "its state is unknown" in one["what"]]
    if file == "exit.json":
        assert [one for one in problems if one["where"] == str(task.agent("bad"))], "its processes may be left over"
    assert not [one for one in problems if "remove" in one["next"] or "Errno" in one["what"]], problems
    assert [one for one in found.json if one["what"] == "left by a writer that was killed" and one["fixed"]]
    faulty.mend()
    assert snapshot(task.agent("bad")) == before
    end(task, tmp_path)


def test_a_task_that_cannot_be_read_hides_no_other_one(root: Path, faulty: Faults) -> None:
    task = new_task()
    run("new", "Another", "--id", "t2")
    faulty.fail(task.path / "events.jsonl", LOOKS, errno.EIO)
    rows = {row["taskId"]: row for row in told("tasks", "--json").json}
    assert {name: row["state"] for name, row in rows.items()} == {"t1": "unknown", "t2": "created"}
    assert _TOLD in rows["t1"]["unreadable"]
    assert rows["t1"]["own"] is None
    told("tasks")
    assert "task t1 unknown" in glance_of(root, faulty).splitlines()


def test_a_sub_task_that_cannot_be_read_hides_no_worker_of_another(root: Path, faulty: Faults) -> None:
    define_shells()
    task = new_task(depth=2)
    run("subtask", "shell", ": one", "--id", "one")
    run("subtask", "shell", ": two", "--id", "two")
    faulty.fail(task.path.parent / "one" / "events.jsonl", LOOKS, errno.EIO)
    assert {row["taskId"] for row in told("list", "--recursive", "--json").json} == {"two"}


_GLANCE = """
import sys
from agentctl.adapters.taskdir import Root
from agentctl.operations.fleet.fleet import Fleet
from agentctl.operations.fleet.seen import SeenEnds
from agentctl.interfaces.words.worker import standing_words
root = Root(sys.argv[1])
with Fleet(root, SeenEnds(root)) as fleet:
    glance = fleet.look()
    while fleet.has_more_to_read:
        glance = fleet.look()
    for key, worker in glance.workers.items():
        print(key.instance, worker.row["status"], standing_words(worker.row), sep="|")
    for name, task in glance.tasks.items():
        print("task", name, task.state)
"""


def glance_of(root: Path, faulty: Faults) -> str:
    """Return what `watch` and the page see when they are opened."""
    looked = subprocess.run(
        [faulty.program[0], "-c", _GLANCE, str(root)], env=environment(), check=False, capture_output=True, text=True
    )
    assert looked.returncode == 0, looked.stderr
    return looked.stdout


@pytest.mark.parametrize("file", [".", *alike("shim.json", "exit.json", "interactions", "worktree.json")])
def test_the_screen_and_the_page_show_the_others(
    task: Task, faulty: Faults, root: Path, tmp_path: Path, file: str
) -> None:
    faulty.fail(task.agent("bad") / file, LOOKS, errno.EIO)
    shown = dict(line.split("|", 1) for line in glance_of(root, faulty).splitlines() if "|" in line)
    assert shown["good"] == "running|None"
    assert file in ("interactions", "worktree.json") or shown["bad"].startswith("running|unknown: "), shown
    faulty.mend()
    end(task, tmp_path)
