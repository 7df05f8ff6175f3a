"""At stake: where a file cannot be read, nothing is decided as if there were none, and nothing is written back so."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from tests.faults import OPEN, READ, SCAN, STAT, Faults
from tests.listener import configure
from tests.snapshots import snapshot
from tests.steps import Task, kill, new_task, spawn, spawn_batch, statuses
from tests.support import Completed, alike, is_alive, run, wait_until, worker

#: Of the disk, and of this process; `unit/test_world_errors.py` has the others.
ERRORS = (errno.EIO, errno.EMFILE)
OFTEN = 4


def refused(*args: str | Path, file: Path, error: int) -> Completed:
    """Run a command that meets an error; it says what, where and what next, and nothing else."""
    done = run(*args, check=False)
    assert (done.code, done.out) == (1, ""), done
    assert os.strerror(error) in done.err, done
    assert str(file) in done.err, done
    assert "\nhint: " in done.err, done
    assert not [word for word in ("bug", "trust", "not made here") if word in done.err], done
    return done


@pytest.mark.parametrize("error", ERRORS, ids=errno.errorcode.get)
def test_no_other_task_is_chosen_where_the_chosen_one_cannot_be_read(faulty: Faults, root: Path, error: int) -> None:
    run("new", "My work", "--max-concurrent", "1")
    before = snapshot(root)
    (chosen,) = (root / "chosen").glob("*.*.*")
    for file in (chosen, root / "current"):
        rule = faulty.fail(file, OPEN, error, times=1)
        refused("spawn", "--", *worker("exits", 0), file=file, error=error)
        assert faulty.hits(rule) == 1
        assert snapshot(root) == before, "nothing was made, and nothing was chosen"
        before = {path: looks for path, looks in before.items() if path != f"chosen/{chosen.name}"}
        chosen.unlink(missing_ok=True)
    run("spawn", "--wait", "--", *worker("exits", 0))


@pytest.mark.parametrize("error", ERRORS, ids=errno.errorcode.get)
def test_no_root_further_up_is_used_where_the_nearest_cannot_be_looked_at(
    faulty: Faults, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    monkeypatch.delenv("AGENTCTL_ROOT")
    run("new", "Far", cwd=tmp_path)
    run("new", "Near", "--root", ".agentctl", cwd=tmp_path / "work")
    near = tmp_path / "work" / ".agentctl"
    faulty.fail(near, STAT, error, times=1)
    refused("spawn", "--", *worker("exits", 0), file=near, error=error)
    assert not list((root / "tasks").glob("*/agents/*"))


@pytest.mark.parametrize("error", ERRORS, ids=errno.errorcode.get)
def test_an_end_is_given_once_although_the_cursor_could_not_be_read(faulty: Faults, root: Path, error: int) -> None:
    task = new_task()
    names = {f"w{number}" for number in range(4)}
    for name in names:
        spawn(worker("exits", 0), name=name)
    task.ended(*names)
    wait = ("wait-any", "--consumer", "c", "--json")
    given = [run(*wait).json for _ in range(2)]
    file = task.path / "cursors" / "c.json"
    before = file.read_bytes()
    faulty.fail(file, OPEN, error, times=1)
    refused(*wait, file=file, error=error)
    assert file.read_bytes() == before
    given += [run(*wait).json for _ in range(2)]
    assert {one["agentInstance"] for one in given} == names
    assert not [one for one in given if one.get("redelivered")]
    assert run(*wait, check=False).code == 6


@pytest.mark.parametrize("command", [("spawn", "--", "true"), ("cancel", "--all"), ("use", "t1"), ("doctor", "--fix")])
@pytest.mark.parametrize("place", ["mark", "origin"])
def test_a_mark_that_cannot_be_read_makes_nobody_trust_anew(
    faulty: Faults, root: Path, place: str, command: tuple[str, ...]
) -> None:
    task = new_task()
    marks = Path(os.environ["HOME"]) / ".config" / "agentctl" / "own"
    before = snapshot(marks), (task.path / "origin").read_bytes()
    calls, file = (STAT, marks) if place == "mark" else (OPEN | READ, task.path / "origin")
    rule = faulty.fail(file, calls, errno.EIO)
    done = run(*command, check=False)
    assert faulty.hits(rule)
    faulty.mend()
    assert (done.code, "Input/output error" in done.out + done.err) == (1, True), done
    assert "trust" not in done.out + done.err
    assert "bug" not in done.out + done.err
    assert (snapshot(marks), (task.path / "origin").read_bytes()) == before
    run("spawn", "--wait", "--", *worker("exits", 0))


@pytest.mark.parametrize("error", ERRORS, ids=errno.errorcode.get)
@pytest.mark.parametrize("everywhere", [False, True])
def test_a_target_that_is_switched_off_stays_so(
    faulty: Faults, root: Path, tmp_path: Path, error: int, *, everywhere: bool
) -> None:
    configure(tmp_path / "home", {name: {"type": "command", "command": ["true"]} for name in ("one", "two")})
    task = new_task()
    where = ["--all"] if everywhere else []
    run("notify", "off", "one", *where)
    file = tmp_path / "home" / ".config" / "agentctl" / "notify.json" if everywhere else task.path / "notify.json"
    before = file.read_bytes()
    faulty.fail(file, OPEN, error, times=1)
    refused("notify", "on", "two", *where, file=file, error=error)
    assert file.read_bytes() == before
    run("notify", "on", "two", *where)
    assert b'"off": ["one"]' in file.read_bytes()


# -- the shim ----------------------------------------------------------------------------------------------------------


def kept(task: Task) -> None:
    """Check that no shim of a task has died of an error."""
    log = task.path / "shim.log"
    assert not log.exists() or "ended unexpectedly" not in log.read_text()


@pytest.mark.slow
def test_a_paused_worker_stays_so_while_its_request_cannot_be_looked_at(faulty: Faults, root: Path) -> None:
    task = new_task()
    spawn(worker("sleeps", 60), name="w")
    run("pause", "w")
    rule = faulty.fail(task.agent("w") / "pause.json", STAT, errno.EIO)
    wait_until(lambda: faulty.hits(rule), what="looks at the request", accept=lambda many: many >= OFTEN)
    faulty.mend()
    assert not task.events("agent.unpaused")
    run("unpause", "w")
    run("cancel", "w")
    kept(task)


@pytest.mark.parametrize(
    "file", ["cancel.json", "children", *alike("worktree.json", "worker.json", "exit.1.json", ".")]
)
def test_an_end_keeps_its_exit_code_whatever_cannot_be_looked_at_meanwhile(
    faulty: Faults, root: Path, tmp_path: Path, file: str
) -> None:
    task, gate = new_task(), tmp_path / "gate"
    spawn(worker("exits", 3, "--after-file", gate), name="w")
    rule = faulty.fail(task.agent("w") / file, STAT | OPEN, errno.EIO, times=OFTEN)
    gate.touch()
    task.ended("w")
    found = task.exit("w")
    assert found is not None
    assert (found["status"], found["reason"], found["exitCode"]) == ("failed", "exit_code", 3)
    assert file in ("worker.json", "exit.1.json") or faulty.hits(rule)
    kept(task)


def test_an_attempt_follows_although_it_could_not_be_known_whether_a_cancel_has_come(
    faulty: Faults, root: Path, tmp_path: Path
) -> None:
    task, gate = new_task(), tmp_path / "gate"
    spawn(worker("exits", 3, "--after-file", gate), "--retries", "1", "--retry-delay-seconds", "0.1", name="w")
    rule = faulty.fail(task.agent("w") / "cancel.json", STAT, errno.EIO, times=OFTEN)
    gate.touch()
    task.ended("w")
    assert faulty.hits(rule) == OFTEN
    assert len(task.events("agent.retried")) == 1
    kept(task)


def test_a_cancel_whose_details_cannot_be_read_is_one(faulty: Faults, root: Path) -> None:
    task = new_task()
    spawn(worker("sleeps", 60), name="w")
    rule = faulty.fail(task.agent("w") / "cancel.json", READ | OPEN, errno.EIO)
    run("cancel", "w", "--no-wait", check=False)
    wait_until(lambda: faulty.hits(rule), what="looks at the request", accept=lambda many: many >= OFTEN)
    wait_until(lambda: not any(is_alive(one["payload"]["pid"]) for one in task.events("agent.started")),
               what="the worker to be stopped")  # fmt: skip
    faulty.mend()
    task.ended("w")
    assert statuses() == {"w": "cancelled"}
    kept(task)


@pytest.mark.slow
@pytest.mark.parametrize("place", ["queue", *alike("slots", "config.json")])
def test_the_next_worker_starts_although_the_queue_could_not_be_read(
    faulty: Faults, root: Path, tmp_path: Path, place: str
) -> None:
    task, gate = new_task(cap=1), tmp_path / "gate"
    first = {"name": "first", "argv": worker("exits", 0, "--after-file", gate)}
    spawn_batch([first, {"name": "second", "argv": worker("exits", 0)}])
    wait_until(lambda: task.events("agent.started"), what="the first one to run")
    rule = faulty.fail(task.path / place, SCAN if place != "config.json" else OPEN | STAT, errno.EIO, times=2)
    gate.touch()
    task.ended("first", "second")
    assert faulty.hits(rule) == 2
    kept(task)


def test_what_stops_a_worker_without_its_shim_goes_on_whatever_cannot_be_read(faulty: Faults, root: Path) -> None:
    task = new_task()
    pid = spawn(worker("sleeps", 60), name="w").json["pid"]
    shim = task.events("agent.started")[0]["payload"]["shimPid"]
    kill(shim)
    for file in ("spec.json", "cancel.json", "worker.json"):
        faulty.fail(task.agent("w") / file, READ, errno.EIO, times=OFTEN)
    wait_until(lambda: run("cancel", "w", "--no-wait", check=False).code == 0, what="the request")
    task.ended("w")
    assert not is_alive(pid)
    assert statuses() == {"w": "cancelled"}


@pytest.mark.parametrize(
    ("name", "text", "command"),
    [
        ("config.yaml", "config: {maxDepth: 2}\n", ["new", "Another"]),
        ("agents/general.md", "---\ndescription: Mine.\n---\nLook.\n", ["spawn", "--agent", "general", "x"]),
    ],
)
@pytest.mark.parametrize("error", [errno.EIO, *alike(errno.EMFILE)], ids=errno.errorcode.get)
def test_what_a_person_has_said_is_not_taken_for_unsaid(
    faulty: Faults, root: Path, name: str, text: str, command: list[str], error: int
) -> None:
    file = Path(os.environ["HOME"]) / ".config" / "agentctl" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    new_task()
    faulty.fail(file, OPEN | READ, error)
    refused(*command, file=file, error=error)
    faulty.mend()
    assert (len(run("tasks", "--json").json), statuses()) == (1, {})
