"""At stake: a project that is moved keeps its work: it is found, shown and continued in the new place."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.advice import follow
from tests.agent_steps import agent, claude_in, ends, plays
from tests.life import lives, members
from tests.repositories import git, new_repository, record
from tests.steps import Task
from tests.support import run, wait_until, worker

WORK = "echo a >> a.txt; git add a.txt; git commit -qm inner; echo new > new.txt"


@pytest.fixture
def project(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a repository that has its root in it; the commands of the test run there."""
    project = new_repository(tmp_path / "mv1")
    monkeypatch.delenv("AGENTCTL_ROOT")
    monkeypatch.chdir(project)
    run("new", "T", "--id", "t1", "--grace-seconds", "0.1")
    return project


def moved(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Move the project, as a person does, and go there."""
    to = project.with_name("mv2")
    shutil.move(project, to)
    monkeypatch.chdir(to)
    return to


def test_a_moved_project_keeps_its_worktrees_and_results(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("spawn", "--worktree", "--name", "w", "--wait", "--", "sh", "-c", WORK)
    run("spawn", "--name", "plain", "--wait", "--", "pwd")
    shown = run("worktrees", "--json").json
    to = moved(project, monkeypatch)
    refused = run("spawn", "--", "true", check=False)
    assert (refused.code, "agentctl trust" in refused.err) == (1, True)
    run("trust", to / ".agentctl" / "tasks" / "t1")

    (row,) = run("worktrees", "--json").json
    assert row == {**shown[0], "path": shown[0]["path"].replace("/mv1/", "/mv2/")}
    assert row["state"] == "uncommitted"
    for command in (["result", "w"], ["show", "w"], ["worktrees", "show", "w"], ["worktrees", "diff", "w"]):
        told = run(*command)
        assert "/mv1" not in told.out + told.err, command
    patch = to / ".agentctl" / "tasks" / "t1" / "agents" / "w" / "changes.patch"
    assert str(patch) in run("result", "w").err
    assert patch.exists()
    assert git(Path(row["path"]), "status", "--porcelain").split() == ["??", "new.txt"]
    assert run("logs", "plain").out == f"{project}\n"
    assert run("retry", "plain", "--json").json["status"] == "running"
    again = run("retry", "w", "--json").json["agentInstance"]
    run("wait-all", check=False)
    assert run("show", again, "--json").json["worktree"]["repository"] == str(to)
    assert not [one for one in run("doctor", "--json", check=False).json if "/mv1" in json.dumps(one)]

    git(Path(row["path"]), "add", "new.txt")
    git(Path(row["path"]), "commit", "-qm", "rest")
    git(to, "merge", "-q", "agentctl/t1/w")
    assert run("worktrees", "remove", "w@1", "--json").json["branchDeleted"] is True


@pytest.mark.follows("operations/doctor/examining._moved: agentctl doctor --fix")
@pytest.mark.slow
def test_doctor_leads_a_task_to_its_place_that_an_earlier_version_has_trusted(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("spawn", "--worktree", "--name", "w", "--wait", "--", "sh", "-c", WORK)
    to = moved(project, monkeypatch)
    task = to / ".agentctl" / "tasks" / "t1"
    before = record(Task(task), "w")  # An earlier version wrote whole paths.
    older = {key: value.replace("/mv2/", "/mv1/") for key, value in before.items() if isinstance(value, str)}
    (task / "place").unlink()
    run("trust", task)
    (task / "agents" / "w" / "worktree.json").write_text(json.dumps({**before, **older}))
    (task / "place").unlink()
    told = [one for one in run("doctor", "--json", check=False).json if "name the place" in one["what"]]
    assert [(one["what"].endswith("/mv1/.agentctl"), one["fixed"]) for one in told] == [(True, False)]
    follow(run("doctor", check=False), "agentctl doctor --fix", check=False)
    assert [row["state"] for row in run("worktrees", "--json").json] == ["uncommitted"]
    assert (task / "place").exists()


def test_a_link_of_git_that_is_not_the_worktrees_own_is_left_alone(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker can write the `.git` in its worktree: it leads git to no other worktree's files."""
    for name in ("w", "v"):
        run("spawn", "--worktree", "--name", name, "--wait", "--", "sh", "-c", WORK)
    pointer = project / ".agentctl" / "worktrees" / "t1" / "w" / ".git"
    pointer.write_text(pointer.read_text(encoding="utf-8").replace("/w\n", "/v\n"), encoding="utf-8")
    to = moved(project, monkeypatch)
    run("trust", to / ".agentctl" / "tasks" / "t1")
    assert {row["agentInstance"]: row["state"] for row in run("worktrees", "--json").json} == {
        "w": "unknown", "v": "uncommitted",
    }  # fmt: skip
    kept = to / ".git" / "worktrees" / "v" / "gitdir"
    assert kept.read_text(encoding="utf-8").strip() == str(to / ".agentctl" / "worktrees" / "t1" / "v" / ".git")


@pytest.mark.slow
def test_a_worker_that_runs_while_its_project_is_moved_is_cancelled_and_says_so(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its environment names the old place: nothing that it said would arrive."""
    run("spawn", "--name", "a", "--", *worker("stubborn", tmp_path / "pids"))
    tree = members(tmp_path / "pids")
    to = moved(project, monkeypatch)
    wait_until(lambda: not any(map(lives, tree.values())), what="the worker to end")
    task = Task(to / ".agentctl" / "tasks" / "t1")
    wait_until(lambda: task.events("agent.cancelled"), what="its end to be told in the new place")
    (end,) = task.events("agent.cancelled")
    assert end["payload"]["message"] == f"its task was moved to {task.path} while it ran"
    assert not project.exists()
    run("trust", task.path)
    run("use", "t1")
    assert [row["status"] for row in run("list", "--json").json] == ["cancelled"]


@pytest.mark.slow
def test_a_moved_agent_is_shown_and_goes_on_in_the_new_place(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    claude_in(tmp_path, monkeypatch)
    agent(plays(tmp_path, "open('note.txt', 'w').write('n'); me.answer('done')"), "--worktree", name="w")
    agent("hello", name="p")
    reported = "echo r > 'a report.md'; agentctl report result --summary done --file 'a report.md'"
    run("spawn", "--worktree", "--name", "r", "--wait", "--", "sh", "-c", reported)
    run("spawn", "--name", "q", "--wait", "--", "sh", "-c", reported)
    for name in ("w", "p"):
        ends(name)
    to = moved(project, monkeypatch)
    run("trust", to / ".agentctl" / "tasks" / "t1")

    assert run("resume", "w", "hello again", "--name", "w-on", "--json").json["worktree"]["path"].startswith(str(to))
    run("resume", "p", "hello again", "--name", "p-on")
    run("wait", "w", "p")
    for name in ("w@1", "p@1", "r"):
        run("retry", name)
    run("wait-all")
    task = Task(to / ".agentctl" / "tasks" / "t1")
    for name in ("w", "r"):
        on_disk = (task.agent(name) / "worktree.json").read_text() + (task.agent("r") / "result.json").read_text()
        assert f"{to}/.agentctl" not in on_disk, "below the root, paths are relative"
    assert json.loads((task.agent("p-on") / "spec.json").read_bytes())["order"]["cwd"] == str(to)
    for name in ("w", "p", "r", "q", "w-on", "p-on", "w-2", "p-2", "r-2"):
        for command in (["result", name], ["result", name, "--json"], ["activity", name], ["why", name]):
            told = run(*command, check=False)
            assert "/mv1" not in told.out + told.err, (command, told)
        shown = run("show", name, "--json").json
        for key in ("walls", "mcpServers"):  # What it was started with; another run gets its own.
            (shown["spec"].get("order") or {}).pop(key, None)
        text = json.dumps(shown)
        assert "/mv1" not in text, text[text.find("/mv1") - 300 : text.find("/mv1") + 100]
    for name in ("w", "r", "w-on", "r-2"):
        assert "/mv1" not in run("worktrees", "diff", name).out
    for name in ("q", "r"):
        (report,) = [one for one in run("result", name, "--json").json["files"] if one["path"].endswith("report.md")]
        assert Path(report["path"]).read_text() == "r\n"
    assert not [one for one in run("doctor", "--json", check=False).json if "/mv1" in json.dumps(one)]
