"""At stake: a task that is over leaves everybody's sight whole, nothing of it is lost, and it can come back."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from pathlib import Path

import pytest

from agentctl.adapters.taskdir import Root
from agentctl.errors import Refused
from agentctl.operations.discard.archiving import archive_planned, plan_archiving
from tests.advice import follow
from tests.repositories import branches, new_repository
from tests.shells import define_shells, subtask_line
from tests.steps import Task, held, new_task, spawn, spawn_batch, statuses
from tests.support import alike, remove, run, start, wait_until, worker

AGENTCTL = f"{sys.executable} -m agentctl"
FAILPOINT = "AGENTCTL_FAILPOINT"


def tasks() -> list[str]:
    return [one["taskId"] for one in run("tasks", "--json").json]


def archived() -> list[str]:
    return [one["name"] for one in run("archive", "--list", "--json").json["tasks"]]


def marks() -> int:
    return len(list((Path(os.environ["HOME"]) / ".config" / "agentctl" / "own").iterdir()))


def made_older(task: Task, days: int = 40) -> None:
    """Have a task have been over for as long as a person's tasks of last month."""
    log = task.path / "events.jsonl"
    year = log.read_text().partition('{"ts":"')[2][:4]
    log.write_text(log.read_text().replace(f'"ts":"{year}', f'"ts":"{int(year) - 1}'))


def test_a_task_of_yesterday_is_put_away_searched_and_brought_back(root: Path) -> None:
    task = new_task()
    spawn(["sh", "-c", "echo a-needle"], "--wait", name="a")
    told = run("archive", "t1")
    assert told.out == "t1 is put away as t1\n"
    assert (tasks(), archived()) == ([], ["t1"])
    assert run("list", check=False).code == 3
    assert run("search", "a-needle", "--logs", check=False).code == 3
    found = run("search", "a-needle", "--logs", "--archived").out
    assert "t1/a\tstdout" in found
    place = Path(run("archive", "--list", "--json").json["tasks"][0]["path"])
    report = json.loads((place / "report.json").read_text())
    assert report["workers"][0]["text"] == "a-needle\n"
    assert report["workers"][0]["folder"] == str(place / "agents" / "a")
    assert "a-needle" in (place / "report.md").read_text()
    assert run("doctor").out.splitlines()[-1].startswith("ok: nothing is wrong")

    run("new", "Another one", "--id", "t1")
    said = run("archive", "--bring-back", "t1", check=False)
    assert (said.code, "there is another task t1 by now" in said.err) == (1, True)
    run("archive", "t1")
    assert archived() == ["t1", "t1-2"]
    run("archive", "--bring-back", "t1")
    assert (tasks(), archived()) == (["t1"], ["t1-2"])
    run("use", "t1")
    assert statuses() == {"a": "completed"}
    run("spawn", "--wait", "--name", "b", "--", "true")
    assert task.roster() == {"a": "completed", "b": "completed"}
    assert json.loads((task.path / "report.json").read_text())["workers"][0]["folder"] == str(task.agent("a"))


@pytest.mark.slow
@pytest.mark.follows(
    "operations/discard/archiving._refuse_taken: agentctl archive",
    "operations/discard/archiving._refuse_taken: agentctl archive --bring-back",
)
def test_a_name_that_was_taken_meanwhile_is_told_with_what_to_do(root: Path) -> None:
    new_task()
    run("archive", "t1")
    run("new", "Another one", "--id", "t1")
    said = run("archive", "--bring-back", "t1", check=False).err
    follow(said, "agentctl archive t1")
    follow(said, "agentctl archive --bring-back t1")
    assert (tasks(), archived()) == (["t1"], ["t1-2"])


@pytest.mark.slow
@pytest.mark.follows(
    "operations/discard/archiving._archived: agentctl archive",
    "interfaces/commands/upkeep/archive.archive: agentctl archive --list",
)
def test_what_is_not_there_is_told_with_the_next_step(root: Path) -> None:
    new_task()
    follow(run("archive", "--delete", "t1", check=False), "agentctl archive t1")
    assert "t1" in follow(run("archive", check=False), "agentctl archive --list").out
    assert run("archive", "--list", "--delete", "t1", check=False).code == 2
    assert run("archive", "nix", check=False).code == 3


@pytest.mark.slow
@pytest.mark.follows("operations/discard/archiving._Tree._refuse_live: agentctl doctor --fix")
def test_a_worktree_that_a_killed_spawn_has_left_is_removed_first(root: Path, tmp_path: Path) -> None:
    new_task()
    repository = new_repository(tmp_path / "repository")
    at = ("spawn", "--worktree", "--cwd", repository, "--name", "a", "--", "true")
    run(*at, env={FAILPOINT: "spawn.after-worktree"}, check=False)
    follow(run("archive", "t1", check=False), "agentctl doctor --fix")
    run("archive", "t1")


def test_what_was_put_away_can_be_deleted_with_its_marks(root: Path) -> None:
    new_task()
    before = marks()
    run("archive", "t1")
    assert run("archive", "--delete", "t1").out == "t1 is deleted\n"
    assert archived() == []
    assert not (Path(root) / "removed").exists()
    assert marks() == before - 2
    assert run("archive", "--bring-back", "t1", check=False).code == 3


def test_a_task_with_something_live_stays(root: Path, tmp_path: Path) -> None:
    task = new_task(cap=1)
    spawn_batch([held(tmp_path / "gate", "a"), {"name": "b", "argv": ["true"]}])
    task.has("agent.started", "a")
    said = run("archive", "t1", check=False)
    assert (said.code, "a is running" in said.err) == (1, True)
    assert tasks() == ["t1"]
    follow(said, "agentctl cancel a")
    run("wait", "b", check=False)
    run("archive", "t1")
    run("archive", "--bring-back", "t1")
    run("use", "t1")
    task.set_cap(0)
    spawn(["true"], "--queue", name="c")
    assert "c is queued" in run("archive", "t1", check=False).err
    run("cancel", "--all")
    run("archive", "t1")


@pytest.mark.slow
def test_a_worktree_that_holds_work_keeps_its_task(root: Path, tmp_path: Path) -> None:
    repository = new_repository(tmp_path / "repository")
    new_task()
    spawn(["sh", "-c", "echo x > new"], "--worktree", "--cwd", repository, "--wait", name="works")
    said = run("archive", "t1", check=False)
    assert (said.code, "the worktree of works holds uncommitted work" in said.err) == (1, True)
    assert tasks() == ["t1"]
    (Path(run("worktrees", "list", "--json").json[0]["path"]) / "new").unlink()
    run("archive", "t1")
    assert "agentctl/t1/works" not in branches(repository)
    patch = Path(run("archive", "--list", "--json").json["tasks"][0]["path"]) / "agents" / "works" / "changes.patch"
    assert "+x" in patch.read_text(), "what it had changed is known all the same"


@pytest.mark.follows("operations/discard/archiving._Tree.__init__: agentctl archive")
@pytest.mark.slow
def test_a_task_goes_and_comes_with_all_below_it(root: Path) -> None:
    define_shells()
    task = new_task(depth=3)
    spawn(["sh", "-c", subtask_line("below", "exit 0")], name="top")
    task.ended("top")
    (below,) = run("tasks", "--json").json[0]["childTaskIds"]
    said = run("archive", below, check=False)
    assert f"{below} is a sub-task" in said.err
    follow(said, "agentctl archive t1")
    assert tasks() == []
    assert run("archive", "--list", "--json").json["tasks"][0]["tasks"] == ["t1", below]
    run("new", "Another one", "--id", below)
    assert f"another task {below}" in run("archive", "--bring-back", "t1", check=False).err
    run("archive", below)
    run("archive", "--bring-back", "t1")
    run("use", "t1")
    assert set(run("tasks", "--json").json[0]["childTaskIds"]) == {below}
    assert len(run("list", "--recursive", "--json").json) == 2


@pytest.mark.parametrize("failpoint", ["archive.after-order", *alike("archive.after-move")])
def test_an_archiving_that_is_killed_is_finished_by_the_next_command(root: Path, failpoint: str) -> None:
    task = new_task()
    spawn(["true"], "--wait", name="a")
    assert run("archive", "t1", env={FAILPOINT: failpoint}, check=False).code == -signal.SIGKILL
    assert tasks() == []
    run("new", "Another one", "--id", "t1")
    assert statuses() == {}
    assert archived() == ["t1"]
    run("archive", "t1")
    killed = run("archive", "--bring-back", "t1", env={FAILPOINT: failpoint}, check=False)
    assert killed.code == -signal.SIGKILL
    assert archived() == ["t1-2"]
    assert tasks() == ["t1"]
    assert not (task.path / "archive.json").exists()
    assert run("list", "--task", "t1", "--json").json[0]["agentInstance"] == "a"


@pytest.mark.parametrize("failpoint", alike("archive.after-order", "archive.after-move"))
@pytest.mark.parametrize("is_back", [False, True])
def test_doctor_finishes_what_was_begun_with_a_whole_task(root: Path, failpoint: str, is_back: bool) -> None:
    new_task()
    if is_back:
        run("archive", "t1")
    run("archive", *(["--bring-back"] if is_back else []), "t1", env={FAILPOINT: failpoint}, check=False)
    is_done = failpoint == "archive.after-move" and not is_back  # The last move is the last step.
    assert ("was being put away or brought back" in run("doctor").out) == (not is_done)
    run("doctor", "--fix")
    assert "being put away" not in run("doctor").out
    assert tasks() == (["t1"] if is_back else [])


@pytest.mark.parametrize("failpoint", ["spawn.after-spec", *alike("spawn.after-mkdir")])
def test_a_spawn_that_races_with_it_loses_cleanly(root: Path, failpoint: str) -> None:
    new_task()
    late = start("spawn", "--task", "t1", "--name", "b", "--", "true", env={FAILPOINT: f"{failpoint}:stop"})
    wait_until(lambda: Path(f"/proc/{late.pid}/stat").read_text().split(") ")[1][0] == "T", what="the spawn to stand")
    run("archive", "t1")
    run("new", "Another one", "--id", "t1")
    late.send_signal(signal.SIGCONT)
    out, said = late.communicate(timeout=20)
    assert (late.returncode, out) == (1, ""), said
    assert "bug in agentctl" not in said
    assert run("list", "--task", "t1", "--json").json == []
    assert archived() == ["t1"]


def test_of_several_all_go_or_none_although_one_becomes_live_meanwhile(root: Path) -> None:
    new_task()
    run("new", "Another one", "--id", "t2")
    there = [Root(root).task(name) for name in tasks()]
    asked = plan_archiving(there)
    selected = plan_archiving(there, as_far_as_possible=True)
    spawn(worker("sleeps", 60), "--task", "t2", name="late")
    with pytest.raises(Refused, match="late is running"):
        archive_planned(asked)
    assert (tasks(), archived()) == (["t1", "t2"], [])
    done = archive_planned(selected)
    assert ([one.decision.task_id for one in done.done], list(done.left_out)) == (["t1"], ["t2"])
    assert (tasks(), archived()) == (["t2"], ["t1"])
    run("cancel", "late")


@pytest.mark.follows("operations/discard/archiving._refuse_same_id: agentctl archive --bring-back")
def test_of_several_with_one_id_none_comes_back(root: Path) -> None:
    for _ in range(2):
        run("new", "A task", "--id", "t1")
        run("archive", "t1")
    said = run("archive", "--bring-back", "t1", "t1-2", check=False)
    assert (tasks(), archived()) == ([], ["t1", "t1-2"])
    assert "t1 and t1-2 both have a task t1" in said.err
    follow(said, "agentctl archive --bring-back t1-2")
    assert (tasks(), archived()) == (["t1"], ["t1"])


@pytest.mark.slow
@pytest.mark.follows("operations/doctor/discarded._ARCHIVE_OLD: agentctl archive --older-than")
def test_those_that_are_over_for_long_are_put_away_together(root: Path, tmp_path: Path) -> None:
    task = new_task()
    spawn(["true"], "--wait", name="a")
    made_older(task)
    run("new", "Of today", "--id", "new")
    spawn(["true"], "--wait", name="b")
    found = run("doctor").out
    assert "note: 1 task over for more than 30 days" in found
    assert "ok: nothing is wrong" in found.splitlines()[-1]
    follow(found, "agentctl archive --older-than 30d")
    assert (tasks(), archived()) == (["new"], ["t1"])
    assert "nothing to put away" in run("archive", "--older-than", "30d").err
    assert run("archive", "--older-than", "30", check=False).code == 2


def test_an_archive_that_came_with_a_clone_is_nobodys(root: Path) -> None:
    new_task()
    run("archive", "t1")
    place = Path(root) / "archive" / "t1" / "tasks" / "t1"
    (place / "origin").write_text("0" * 32 + "\n")
    for what in ("--bring-back", "--delete"):
        said = run("archive", what, "t1", check=False)
        assert (said.code, "was not made here by you" in said.err) == (1, True)
    assert place.exists()
    shutil.move(place, Path(root) / "tasks" / "t1")
    run("doctor", "--fix", check=False)
    assert (Path(root) / "tasks" / "t1").exists(), "a decision that came with it is not carried out"


def test_a_worker_may_not_put_its_task_away(root: Path) -> None:
    task = new_task()
    spawn(["sh", "-c", f"{AGENTCTL} archive t1"], name="a")
    task.ended("a")
    assert "a worker may not put tasks away" in (task.agent("a") / "stderr.log").read_text()


@pytest.mark.slow
def test_marks_of_tasks_that_were_removed_by_hand_are_collected(root: Path) -> None:
    task = new_task()
    run("new", "Another one", "--id", "kept")
    run("new", "A third one", "--id", "gone")
    before = marks()
    remove(task.path.parent / "gone")
    (task.path.parent).rename(root / "away")
    (root / "tasks").mkdir()
    run("doctor", "--fix")
    assert marks() == before, "where nothing of theirs is, nobody knows that it is gone"
    (root / "tasks").rmdir()
    (root / "away").rename(root / "tasks")
    assert "note: marks of 1 task of yours that is gone" in run("doctor").out
    run("doctor", "--fix")
    assert marks() == before - 2
    assert "marks of" not in run("doctor").out
    run("archive", "kept")
    run("doctor", "--fix")
    run("archive", "--bring-back", "kept")
    assert {one["own"] for one in run("tasks", "--json").json} == {True}
