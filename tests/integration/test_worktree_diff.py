"""At stake: `worktrees diff` shows what a worker has changed, as git sees it, at any time, and touches nothing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from agentctl.adapters.locks import locked
from agentctl.adapters.taskdir import TaskDir, WorkerDir
from agentctl.operations.worktree import diff as worktree_diff
from agentctl.operations.worktree.diff import Since, make_diff
from agentctl.shim import patching
from tests.agent_steps import agent, agent_world, blocked, ends, plays
from tests.life import read
from tests.repositories import git, new_repository, record
from tests.steps import Task, kill, new_task, spawn
from tests.support import alike, by_turns, run, text_in, wait_for_text, wait_until


@pytest.fixture
def task(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    return agent_world(tmp_path, monkeypatch, grace=0.3)


@pytest.fixture
def repository(task: Task, tmp_path: Path) -> Path:
    return new_repository(tmp_path / "repository")


def diff(instance: str = "a", *options: str) -> Any:
    return run("worktrees", "diff", instance, "--json", *options).json


def lines(instance: str = "a", *options: str) -> dict[str, tuple[str, int | None, int | None]]:
    return {one["path"]: (one["status"], one["added"], one["removed"]) for one in diff(instance, *options)["files"]}


def writes(tmp_path: Path, **files: str) -> str:
    """Return the prompt that makes an agent write files in its folder, then answer."""
    steps = [f"open({name + '.txt'!r}, 'w').write({text!r})" for name, text in files.items()]
    return plays(tmp_path, "\n".join([*steps, "me.answer('done')"]))


ODD = 'n "\t\\é'
WORKS = """
echo two >> a.txt; git commit --quiet --all --message second
printf 'three\\n++ x\\n-- y\\n' >> a.txt; rm b.txt; rm -r dir; printf 'x\\0y' > bin; : > empty; chmod +x sub/c.txt
printf 'diff --git a/no b/no' > "$ODD"; echo no > ignored.log
touch ready; while ! [ -e go ]; do sleep 0.02; done; echo more >> a.txt
"""
CHANGED = {
    "a.txt": ("modified", 4, 0), "b.txt": ("deleted", 0, 1), "bin": ("added", None, None),
    "dir/d.txt": ("deleted", 0, 1), "empty": ("added", 0, 0), ODD: ("added", 1, 0), "ready": ("added", 0, 0),
    "sub/c.txt": ("modified", 0, 0),
}  # fmt: skip


def test_of_a_running_worker_and_then_of_its_end(task: Task, repository: Path, tmp_path: Path) -> None:
    spawn(["/bin/sh", "-c", WORKS], "--worktree", "--cwd", repository, "--env", f"ODD={ODD}", name="a")
    place = Path(record(task, "a")["path"])
    wait_until((place / "ready").exists, what="the worker to be ready")
    before = git(place, "status", "--porcelain"), os.stat(place / ".git").st_mtime_ns, _objects(repository)
    found = diff()
    assert (found["since"], found["until"], found["origin"]) == ("base", "now", record(task, "a")["base"])
    assert lines() == CHANGED
    assert lines("a", "--since", "turn") == CHANGED, "a command has one turn"
    assert (git(place, "status", "--porcelain"), os.stat(place / ".git").st_mtime_ns, _objects(repository)) == before
    patched = tmp_path / "patched"
    git(tmp_path, "clone", "--quiet", str(repository), str(patched))
    (tmp_path / "patch").write_bytes(run("worktrees", "diff", "a").out.encode(errors="surrogateescape"))
    git(patched, "apply", "--index", str(tmp_path / "patch"))
    assert (patched / ODD).read_bytes() == b"diff --git a/no b/no"
    (place / "go").touch()
    task.ended("a")
    found = diff()
    assert found["until"] == "end"
    assert lines() == {**CHANGED, "a.txt": ("modified", 5, 0), "go": ("added", 0, 0)}
    git(place, "reset", "--quiet", "--hard")
    git(repository, "worktree", "remove", "--force", str(place))
    assert diff()["files"] == found["files"], "the patch of its end is kept"
    assert not list(task.agent("a").glob("*.scratch"))


def _objects(repository: Path) -> int:
    return sum(len(files) for _, _, files in os.walk(repository / ".git" / "objects"))


def test_the_stat_has_a_line_for_each_file(task: Task, repository: Path) -> None:
    spawn(["/bin/sh", "-c", "echo x > x; printf '\\0' > bin"], "--worktree", "--cwd", repository, "--wait", name="a")
    shown = run("worktrees", "diff", "a", "--stat")
    assert shown.out == "-\t-\tadded\tbin\n1\t0\tadded\tx\n"
    spawn(["true"], "--worktree", "--cwd", repository, "--wait", name="b")
    shown = run("worktrees", "diff", "b")
    assert (shown.out, shown.err.strip()) == ("", "nothing was changed")


def test_of_very_many_files_the_first_are_told_and_the_others_counted(
    task: Task, repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worktree_diff, "MOST_FILES", 2)
    spawn(["/bin/sh", "-c", "touch p q r s t"], "--worktree", "--cwd", repository, "--wait", name="a")
    with (tmp_path / "patch").open("wb+") as into:
        found = make_diff(TaskDir(task.path), "a", Since.BASE, into)
    assert ([file.path for file in found.files], found.more_files) == ([b"p", b"q"], 3)


@pytest.mark.slow
def test_each_turn_of_an_agent_is_told_apart(task: Task, repository: Path, tmp_path: Path) -> None:
    objects = _objects(repository)
    agent(writes(tmp_path, one="1\n"), "--keep", "--worktree", "--cwd", repository)
    blocked()
    assert lines("a", "--since", "turn") == {"one.txt": ("added", 1, 0)}, "the first turn began at the base"
    noted_end(task, 1)
    run("send", "a", writes(tmp_path, two="2\n"))
    noted_end(task, 2)
    assert lines("a", "--since", "turn") == {"two.txt": ("added", 1, 0)}
    run("send", "a", writes(tmp_path, two="2\n3\n"))
    noted_end(task, 3)
    assert lines("a", "--since", "turn") == {"two.txt": ("modified", 1, 0)}
    assert set(lines()) == {"one.txt", "two.txt"}
    assert len(list((task.agent("a") / "turns").iterdir())) == 2, "older ends are of no use"
    assert _objects(repository) == objects, "nothing is left in the repository"
    run("send", "a", "--close")
    task.ended("a")
    assert lines("a", "--since", "turn") == {"two.txt": ("modified", 1, 0)}
    assert not list(task.agent("a").glob("*.scratch"))


def noted_end(task: Task, turn: int) -> None:
    """Wait until it is noted what a worktree held at the end of a turn."""
    file = task.agent("a") / "turns.jsonl"
    wait_until(
        lambda: f'"turn":{turn},"endedAt"' in text_in(file).replace(" ", ""),
        what=f"the end of turn {turn}",
    )


@pytest.mark.slow
def test_a_continued_agent_s_turn_begins_with_the_work_of_the_run_before(
    task: Task, repository: Path, tmp_path: Path
) -> None:
    agent(writes(tmp_path, one="1\n"), "--worktree", "--cwd", repository, "--wait")
    wait = plays(tmp_path, "import time, os\nwhile not os.path.exists('go'): time.sleep(0.02)\n"
                 "open('two.txt', 'w').write('2\\n')\nme.answer('done')")  # fmt: skip
    run("resume", "a", wait)
    wait_for_text(task.agent("a-1") / "turns.jsonl", "endedAt")
    Path(record(task, "a")["path"], "go").touch()
    run("wait", "a-1")
    assert set(lines("a-1", "--since", "turn")) == {"two.txt", "go"}
    assert set(lines("a-1")) == set(lines("a")) == {"one.txt", "two.txt", "go"}
    assert set(lines("a@1")) == {"one.txt"}


@pytest.mark.parametrize("killed", ["driver", *alike("shim", "both")])
def test_a_kill_at_any_time_leaves_the_diff_since_the_base(
    task: Task, repository: Path, tmp_path: Path, killed: str
) -> None:
    agent(writes(tmp_path, one="1\n"), "--keep", "--worktree", "--cwd", repository)
    blocked()
    driver, shim = read(task.agent("a") / "worker.json")["pid"], task.shim_of("a")
    for pid in {"driver": [driver], "shim": [shim], "both": [shim, driver]}[killed]:
        kill(pid)
    if killed == "shim":
        run("cancel", "a")
    assert ends()["status"] in ("failed", "cancelled")
    assert lines() == {"one.txt": ("added", 1, 0)}
    assert lines("a", "--since", "turn") == {"one.txt": ("added", 1, 0)}
    run("doctor", "--fix")
    assert not list(task.agent("a").glob("*.scratch"))


@pytest.mark.slow
def test_where_git_fails_the_agent_goes_on_and_the_turn_is_not_told(
    task: Task, repository: Path, tmp_path: Path
) -> None:
    agent(writes(tmp_path, one="1\n"), "--keep", "--worktree", "--cwd", repository)
    blocked()
    noted_end(task, 1)
    os.rename(repository / ".git" / "objects", repository / ".git" / "gone")
    run("send", "a", writes(tmp_path, two="2\n"))
    wait_until(lambda: Path(record(task, "a")["path"], "two.txt").exists(), what="the second turn")
    blocked()
    run("send", "a", writes(tmp_path, three="3\n"))
    wait_until(lambda: Path(record(task, "a")["path"], "three.txt").exists(), what="the third turn")
    blocked()
    os.rename(repository / ".git" / "gone", repository / ".git" / "objects")
    refused = run("worktrees", "diff", "a", "--since", "turn", check=False)
    assert refused.code == 1
    assert "was not noted" in refused.err
    assert "agentctl worktrees diff a" in refused.err
    assert set(lines()) == {"one.txt", "two.txt", "three.txt"}
    run("cancel", "a")


def test_nothing_that_a_worker_names_is_run(task: Task, repository: Path, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    hostile = (
        f"rm .git; git init --quiet; git config core.fsmonitor 'touch {ran} #';"
        f" git config filter.f.clean 'touch {ran}; cat'; git config diff.external 'touch {ran}';"
        f" git config diff.d.textconv 'touch {ran}; cat'; echo '*.txt filter=f diff=d' > .gitattributes;"
        " echo x >> a.txt; touch ready; sleep 100"
    )
    spawn(["/bin/sh", "-c", hostile], "--worktree", "--cwd", repository, name="a")
    wait_until(Path(record(task, "a")["path"], "ready").exists, what="the trap to be set")
    ran.unlink(missing_ok=True)
    assert set(lines()) == {".gitattributes", "a.txt", "ready"}
    assert not ran.exists()
    run("cancel", "a")


def test_of_a_worker_without_a_worktree_what_its_driver_says(task: Task, tmp_path: Path) -> None:
    spawn(["true"], "--wait", name="a")
    refused = run("worktrees", "diff", "a", check=False)
    assert refused.code == 3
    assert "has no worktree" in refused.err
    steps = [
        f"me.assistant({{'type': 'tool_use', 'id': 't', 'name': 'Write', 'input': {{'file_path': '{tmp_path}/x'}}}})",
        "say(type='user', message={'content': [{'type': 'tool_result', 'tool_use_id': 't', 'content': 'ok'}]})",
        "me.answer('done')",
    ]
    agent(plays(tmp_path, "\n".join(steps)), "--wait", name="b")
    shown = run("worktrees", "diff", "b")
    assert shown.out == f"-\t-\ttouched\t{tmp_path}/x\n"
    assert "its driver says" in shown.err
    found = diff("b")
    assert (found["since"], found["diff"]) == (None, None)


def test_a_foreign_task_s_worktree_is_not_looked_at(root: Path, tmp_path: Path) -> None:
    task = new_task()
    repository = new_repository(tmp_path / "repository")
    spawn(["/bin/sh", "-c", "echo x > x"], "--worktree", "--cwd", repository, "--wait", name="a")
    moved = tmp_path / "theirs"
    os.rename(root, moved)
    refused = run("worktrees", "diff", "a", "--root", moved, "--task", task.path.name, check=False)
    assert refused.code == 1
    assert refused.out == ""


ENDLESS = {
    "a link to a device": 'ln -sf /dev/zero "$I"',
    "a terabyte": 'truncate -s 1T "$I"',
    "a FIFO": 'rm "$I"; mkfifo "$I"',
}


@pytest.mark.parametrize("what", by_turns(ENDLESS, 3))
def test_an_endless_index_is_not_copied_and_the_changes_are_told(task: Task, repository: Path, what: str) -> None:
    line = f"I=$(git rev-parse --git-dir)/index; {ENDLESS[what]}; echo x >> a.txt; touch ready; exec sleep 100"
    spawn(["/bin/sh", "-c", line], "--worktree", "--cwd", repository, name="a")
    wait_until(Path(record(task, "a")["path"], "ready").exists, what="the index to be replaced")
    assert set(lines()) == {"a.txt", "ready"}
    run("cancel", "a")
    assert record(task, "a")["changes"]["files"] == {"a.txt": "modified", "ready": "added"}


def test_a_look_removes_what_killed_looks_have_left_and_no_other(task: Task, repository: Path) -> None:
    spawn(["/bin/sh", "-c", "sleep 100"], "--worktree", "--cwd", repository, name="a")
    killed, alive, elsewhere = (
        task.agent("a") / f"changes.{pid}.x.scratch" for pid in (999999999, os.getpid(), 999999998)
    )
    for folder in (killed, alive, elsewhere):
        folder.mkdir()
    with locked(f"{elsewhere}/"):
        diff()
    assert [folder.exists() for folder in (killed, alive, elsewhere)] == [False, True, True]
    run("cancel", "a")


class _Wakeups:
    """Rests until the program has begun its look."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def rest(self, _: float) -> None:
        wait_until(lambda: list(self._folder.glob("*.scratch")), what="the look to begin")


def test_a_patcher_that_had_to_be_killed_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begins = "import os, sys, time; os.mkdir(f'{sys.argv[2]}/changes.{os.getpid()}.x.scratch'); time.sleep(100)"
    monkeypatch.setattr(patching, "_CODE", begins)
    monkeypatch.setattr(patching, "_LIMIT_S", 0.05)
    monkeypatch.setattr(patching, "_SLACK_S", 0.0)
    patching.record_patch(WorkerDir(str(tmp_path)), {}, _Wakeups(tmp_path))  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())
