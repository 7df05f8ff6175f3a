"""At stake: what `doctor` proposes for what it finds deals with it: it is not found again."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.advice import follow
from tests.agent_steps import define
from tests.life import orphan
from tests.ready import ended_task
from tests.repositories import new_repository
from tests.steps import Task, kill, new_task, row, spawn, statuses
from tests.support import is_alive, remove, run, wait_until, worker

pytestmark = pytest.mark.slow

FIX = "agentctl doctor --fix"


@pytest.fixture
def task(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Task:
    """Return a task whose three workers have ended."""
    return ended_task(tmp_path_factory)


def found(*places: str) -> list[dict[str, Any]]:
    """Return what is found at places whose paths or names end so, and not fixed."""
    told: list[dict[str, Any]] = run("doctor", "--json", check=False).json
    return [one for one in told if not one["fixed"] and one["severity"] != "ok" and one["where"].endswith(places)]


def deal_with(place: str, command: str, **options: Any) -> None:
    """Do what is proposed for what is found at a place, which is then not found again."""
    assert found(place), "nothing is found there"
    follow(run("doctor", check=False), command, **options)
    assert found(place) == []


# -- damage ------------------------------------------------------------------------------------------------------------


def damage(name: str, content: bytes = b"{") -> Callable[[Task], str]:
    """Return what damages a file of a worker."""

    def make(task: Task) -> str:
        (task.agent("a2") / name).write_bytes(content)
        return f"a2/{name}"

    return make


def killed_writer(task: Task) -> str:
    (task.path / "current.999999.0123abcd.tmp").touch()
    return ".tmp"


def killed_spawn(task: Task) -> str:
    folder = task.agent("ghost")
    shutil.copytree(task.agent("a1"), folder, ignore=shutil.ignore_patterns("control", "*.tmp"))
    for name in ("shim.json", "exit.json", "worker.json"):
        (folder / name).unlink(missing_ok=True)
    return "/ghost"


def lost_end(task: Task) -> str:
    (task.agent("a2") / "exit.json").unlink()
    return "a2/exit.json"


def odd_file(task: Task) -> str:
    os.mkfifo(task.agent("a2") / "result.json")
    return "a2/result.json"


def odd_root(task: Task) -> str:
    (task.path.parent.parent / "current").unlink()
    (task.path.parent.parent / "current").mkdir()
    return "/current"


def open_root(task: Task) -> str:
    task.path.parent.parent.chmod(0o755)
    task.path.parent.chmod(0o755)
    return ".agentctl"


def note_of_a_shim(task: Task) -> str:
    (task.path / "shim.log").write_text("2026-01-01T00:00:00Z pid 1 cannot read it\n", encoding="utf-8")
    return "shim.log"


def report_of_a_shim(task: Task) -> str:
    (task.path / "shim.log").write_text("Traceback (most recent call last):\nOops\n", encoding="utf-8")
    return "shim.log"


def killed_look(task: Task) -> str:
    folder = task.agent("a2") / "worktree.scratch"
    folder.mkdir()
    return "scratch"


def damaged_order(task: Task) -> str:
    (task.path / "stop.json").write_text('{"workers": 5}', encoding="utf-8")
    return "stop.json"


def torn_marker(task: Task) -> str:
    file = task.path / "task.yaml"
    file.write_text(file.read_text(encoding="utf-8").partition("# ---")[0], encoding="utf-8")
    return "task.yaml"


EXAMINING, ODD = "operations/doctor/examining", "operations/where/odd_files"


@pytest.mark.parametrize(
    ("make", "hint"),
    [
        (killed_writer, f"{EXAMINING}._leftovers: {FIX}"),
        (killed_spawn, f"{EXAMINING}._unfinished: {FIX}"),
        (lost_end, f"{EXAMINING}._missing_decisions: {FIX}"),
        (open_root, f"{EXAMINING}._root: {FIX}"),
        (damaged_order, f"{EXAMINING}._NOTHING_STARTS: {FIX}"),
        (odd_file, f"{ODD}.examine_odd: {FIX}"),
        (odd_root, f"{ODD}.examine_odd_root: {FIX}"),
        (note_of_a_shim, f"{ODD}.examine_notes: {FIX}"),
        (report_of_a_shim, f"{ODD}.examine_notes: {FIX}"),
        (torn_marker, "adapters/taskyaml/roster.read_head: " + FIX),
        (damage("exit.json"), f"{EXAMINING}._agent_files: {FIX}"),
        (damage("exit.json", b"{}"), "supervision/worker/endings.read_decision: " + FIX),
        (damage("worktree.json"), "operations/doctor/worktrees.examine_worktrees: " + FIX),
        (damage("worktree.json", b"{}"), "operations/worktree/changes.worktree_record: " + FIX),
    ],
    ids=lambda value: getattr(value, "__name__", str(value).partition(": ")[0].rpartition("/")[2]),
)
@pytest.mark.follows(
    "operations/doctor/examining._leftovers: agentctl doctor --fix",
    "operations/doctor/examining._unfinished: agentctl doctor --fix",
    "operations/doctor/examining._missing_decisions: agentctl doctor --fix",
    "operations/doctor/examining._privacy: agentctl doctor --fix",
    "operations/doctor/examining._NOTHING_STARTS: agentctl doctor --fix",
    "operations/where/odd_files.examine_odd: agentctl doctor --fix",
    "operations/where/odd_files.examine_odd_root: agentctl doctor --fix",
    "operations/where/odd_files.examine_notes: agentctl doctor --fix",
    "adapters/taskyaml/roster.read_head: agentctl doctor --fix",
    "supervision/worker/endings.read_decision: agentctl doctor --fix",
    "operations/doctor/worktrees.examine_worktrees: agentctl doctor --fix",
    "operations/worktree/changes.worktree_record: agentctl doctor --fix",
)
def test_what_can_be_repaired_is(task: Task, make: Callable[[Task], str], hint: str) -> None:
    deal_with(make(task), FIX)


@pytest.mark.follows("supervision/dispatch/stop_order._HINT: agentctl doctor --fix")
def test_a_decision_to_stop_that_cannot_be_read_holds_nobody_for_ever(task: Task) -> None:
    damaged_order(task)

    follow(run("spawn", "--", "true", check=False), FIX)

    run("spawn", "--wait", "--", "true")


@pytest.mark.follows("operations/doctor/examining._stop_order: agentctl doctor --fix")
def test_a_cancel_that_was_killed_is_carried_out(root: Path) -> None:
    task = new_task(cap=1)
    for name in ("a", "b"):
        spawn(worker("sleeps", 60), "--queue", name=name)
    run("cancel", "--all", env={"AGENTCTL_FAILPOINT": "stop.after-order"}, check=False)
    assert (task.path / "stop.json").exists()

    deal_with("stop.json", FIX)

    task.ended("a", "b")
    assert statuses() == {"a": "cancelled", "b": "cancelled"}


@pytest.mark.follows("adapters/files.json_in: agentctl doctor --fix")
def test_what_a_command_says_of_a_damaged_file(root: Path) -> None:
    task = new_task()
    spawn(worker("sleeps", 60), name="a")
    (task.agent("a") / "spec.json").write_bytes(b"{")

    follow(run("send", "a", "x", check=False), FIX)

    assert "is damaged" not in run("send", "a", "x", check=False).err
    run("cancel", "a")
    assert row("a")["status"] == "cancelled"


@pytest.mark.follows("adapters/opening.ODD_HINT: agentctl doctor --fix")
def test_what_is_no_plain_file_is_set_aside(task: Task) -> None:
    os.mkfifo(task.agent("a1") / "worktree.json")

    follow(run("worktrees", "show", "a1", check=False), FIX)

    assert "has no worktree" in run("worktrees", "show", "a1", check=False).err


# -- whose it is -------------------------------------------------------------------------------------------------------


def forget_marks() -> None:
    for mark in (Path(os.environ["HOME"]) / ".config" / "agentctl" / "own").iterdir():
        mark.unlink()


@pytest.mark.follows("operations/where/ownership.taking_over: agentctl trust")
def test_a_task_of_somebody_else_is_taken_over(task: Task) -> None:
    forget_marks()

    deal_with("/t1", f"agentctl trust {task.path}")


@pytest.mark.follows(
    "operations/where/ownership.taking_over: agentctl trust",
    "operations/doctor/examining._examine_task: agentctl doctor --fix",
)
@pytest.mark.parametrize("way", ["trust", "fix"])
def test_a_task_whose_origin_was_changed(root: Path, way: str) -> None:
    task = new_task()
    spawn(worker("sleeps", 60), name="a")
    origin = (task.path / "origin").read_text()
    (task.path / "origin").write_text("0" * 32 + "\n")
    told = run("doctor", check=False)
    assert f"agentctl trust {task.path}" in told.out

    follow(told, FIX)
    assert found("/t1") == []
    assert (task.path / "origin").read_text() == origin
    (task.path / "origin").write_text("0" * 32 + "\n")
    deal_with("/t1", f"agentctl trust {task.path}")

    run("cancel", "a")


# -- processes ---------------------------------------------------------------------------------------------------------


@pytest.mark.follows("operations/doctor/examining._stray: kill")
def test_a_stray_is_ended(root: Path, tmp_path: Path) -> None:
    task = new_task()
    run("spawn", "--wait", "--keep-children", "--name", "a", "--", *worker("leaves_daemon", tmp_path / "pids"))
    (stray,) = [one for one in found("/a") if "process of an ended worker" in one["what"]]
    pid = int(stray["next"].split()[1].rstrip(","))

    follow(run("doctor", check=False), f"kill {pid}")

    wait_until(lambda: is_alive(pid), accept=lambda alive: not alive, what="its end")
    assert found(str(task.agent("a"))) == []


@pytest.mark.follows("operations/doctor/orphans.examine_orphans: agentctl doctor --fix")
def test_what_runs_for_a_task_that_is_gone_is_ended(root: Path) -> None:
    task = new_task()
    leader = orphan(task, "a")
    remove(task.path)

    follow(run("doctor", check=False), FIX)

    wait_until(lambda: is_alive(leader.pid), accept=lambda alive: not alive, what="its end")


@pytest.mark.follows("operations/doctor/gates.examine_targets: agentctl notify test")
def test_a_target_that_is_mended_is_tried(root: Path, tmp_path: Path) -> None:
    file = Path(os.environ["HOME"]) / ".config" / "agentctl" / "config.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    targets = "notify: {{targets: {{desk: {{type: command, command: ['{}']}}}}}}\n"
    file.write_text(targets.format("false"), encoding="utf-8")
    file.chmod(0o600)
    task = new_task()
    run("notify", "on", "desk")
    spawn(["false"], "--wait", name="a", check=False)
    told = wait_until(lambda: run("doctor", check=False).out, accept=lambda out: "desk" in out, what="a failed notice")
    file.write_text(targets.format("true"), encoding="utf-8")

    follow(told, "agentctl notify test desk")

    kill(json.loads((task.path / "sender.json").read_bytes())["pid"])  # It would try again for minutes.


@pytest.mark.follows("operations/doctor/worktrees._unrecorded: agentctl doctor --fix")
def test_what_was_not_recorded_is_recorded(root: Path, tmp_path: Path) -> None:
    repository = new_repository(tmp_path / "repository")
    task = new_task()
    spawn(["touch", "x"], "--worktree", "--cwd", repository, "--wait", name="w")
    file = task.agent("w") / "worktree.json"
    record = json.loads(file.read_bytes())
    file.write_text(json.dumps({key: value for key, value in record.items() if key != "changes"}))

    deal_with("w/worktree.json", FIX)


@pytest.mark.follows("operations/doctor/worktrees.examine_unknown: git worktree")
def test_a_worktree_of_no_worker_is_removed(root: Path, tmp_path: Path) -> None:
    repository = new_repository(tmp_path / "a repository")
    task = new_task()
    spawn(["true"], "--worktree", "--cwd", repository, "--wait", name="w")
    wait_until(lambda: is_alive(task.shim_of("w")), accept=lambda alive: not alive, what="its shim to leave")
    remove(task.path)
    folder = root / "worktrees" / "t1" / "w"

    deal_with("t1/w", f"git -C {folder} worktree remove {folder}")

    assert not folder.exists()


# -- what is said elsewhere --------------------------------------------------------------------------------------------


LOOK = "agentctl doctor"


def says_more(told: Any, *words: str) -> None:
    """Look where a command says to look, which has to name what is wrong."""
    seen = follow(told, LOOK, check=False)
    assert "nothing is wrong" not in seen.out
    for word in words:
        assert word in seen.out


@pytest.mark.follows("operations/where/locating.find_worker: agentctl doctor")
def test_a_link_in_place_of_a_worker_is_named(task: Task) -> None:
    task.agent("ghost").symlink_to(task.agent("a1"))

    says_more(run("show", "ghost", check=False), "ghost")


@pytest.mark.parametrize("damage", ["lacking", "of another kind", "with an order of another kind"])
@pytest.mark.follows(
    "supervision/worker/spec._spec_from: agentctl doctor",
    "supervision/worker/spec._damaged: agentctl doctor",
    "drivers/order._fields_in: agentctl doctor",
)
def test_a_spec_that_no_spawn_writes_is_named(root: Path, damage: str) -> None:
    task = new_task()
    define(root, "one", "exit 0")
    run("spawn", "--agent", "one", "--name", "a", "--wait", "x")
    file = task.agent("a") / "spec.json"
    spec = json.loads(file.read_bytes())
    if damage == "lacking":
        del spec["cwd"]
    elif damage == "of another kind":
        spec["cwd"] = 5
    else:
        spec["order"]["maxTurns"] = "many"
    file.write_text(json.dumps(spec))

    says_more(run("retry", "a", check=False), "spec.json")

    deal_with("a/spec.json", FIX)


@pytest.mark.follows(
    "operations/show/listing._warnings: agentctl doctor", "operations/show/timeline._warnings: agentctl doctor"
)
def test_lines_that_are_no_events_are_named(task: Task) -> None:
    with open(task.path / "events.jsonl", "a", encoding="utf-8") as log:
        log.write("no event\n" * 30)

    says_more(run("list"), "is not an event")
    says_more(run("timeline"), "is not an event")


@pytest.mark.follows("adapters/files.json_in: agentctl doctor", "adapters/opening.read_bytes: agentctl doctor")
@pytest.mark.parametrize("content", [b"[" * 400 + b"]" * 400 + b"}", b"x" * (17 << 20)], ids=["deep", "large"])
def test_a_file_of_another_kind_is_named(task: Task, content: bytes) -> None:
    (task.agent("a1") / "worktree.json").write_bytes(b'{"a": ' + content)

    says_more(run("worktrees", "show", "a1", check=False), "worktree.json")

    deal_with("a1/worktree.json", FIX)
