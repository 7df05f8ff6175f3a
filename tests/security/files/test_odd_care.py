"""At stake: `doctor` calls a task sound in which a file is none of ours or a shim frozen; `trust` takes it over."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from agentctl.adapters.files import write_all
from agentctl.adapters.taskdir import TaskDir
from agentctl.adapters.treedir import tree_at
from agentctl.shim.notes import write_note
from tests.steps import Task, new_task, spawn
from tests.support import alike, by_turns, remove, run


def findings(*options: str) -> list[dict[str, str]]:
    return list(json.loads(run("doctor", "--json", *options, check=False).out))


def told(found: list[dict[str, str]], where: Path) -> list[str]:
    return [row["what"] for row in found if row["where"] == str(where)]


def link(path: Path) -> None:
    path.symlink_to(path.parent / "missing")


def sealed(path: Path) -> None:
    path.write_bytes(b"{}\n")
    path.chmod(0)


ODD: dict[str, Callable[[Path], None]] = {
    "a link": link,
    "a FIFO": os.mkfifo,
    "a folder": Path.mkdir,
    "the mode": sealed,
}


@pytest.mark.parametrize("kind", by_turns(ODD))
@pytest.mark.slow
def test_doctor_names_what_is_no_file_of_ours_and_mends_it(root: Path, kind: str) -> None:
    task = new_task()
    spawn(["true"], name="w")
    run("wait-all")
    places = [task.path / name for name in ("observed.jsonl", "agents/w/progress.json", "cursors/x.json")]
    for place in places:
        ODD[kind](place)
    found = findings()
    assert all(kind in "".join(told(found, place)) for place in places), found
    fixed = [row for row in findings("--fix") if row["where"] in map(str, places)]
    assert all(row["fixed"] for row in fixed)
    assert not [row for row in findings() if row["severity"] == "error"]


@pytest.mark.parametrize("folder", ["slots", *alike("queue", "keys"), "agents/w/interactions", "agents/x"])
@pytest.mark.slow
def test_a_link_in_the_place_of_a_folder_is_told_and_set_aside(root: Path, tmp_path: Path, folder: str) -> None:
    task = new_task()
    spawn(["true"], name="w")
    run("wait-all")
    place = task.path / folder
    if place.is_dir():
        shutil.rmtree(place)
    (tmp_path / "mine").mkdir()
    place.symlink_to(tmp_path / "mine")
    run("spawn", "--name", "late", "--key", "k", "--", "true", check=False)
    assert "is not a folder, but a link" in "".join(told(findings(), place))
    assert not list((tmp_path / "mine").iterdir())
    findings("--fix")
    assert not place.is_symlink()


def test_what_a_template_brought_is_left_alone(root: Path) -> None:
    (root.parent / "work" / "x.py").write_text("# TODO: one\n")
    run("new", "--template", "survey", "--set", "path=.")
    (folder,) = root.glob("tasks/*/template/workers")
    (folder / "data").mkdir()
    for options in ([], ["--fix"]):
        assert not [row for row in findings(*options) if row["severity"] == "error"]
    assert (folder / "data").is_dir()


def test_a_task_whose_folder_was_set_aside_goes_on(root: Path, tmp_path: Path) -> None:
    task = new_task()
    for name in ("slots", "queue", "cursors"):
        remove(task.path / name)
        (task.path / name).symlink_to(tmp_path)
    findings("--fix")
    spawn(["true"], "--queue", name="w")
    run("wait-any", "--consumer", "c")


@pytest.mark.parametrize("name", ["tasks", *alike("worktrees", "root.lock", "current", "chosen", ".gitignore")])
def test_a_link_in_a_root_is_told_and_mended(root: Path, tmp_path: Path, name: str) -> None:
    new_task()
    place = root / name
    if place.exists():
        place.rename(tmp_path / "was")
    place.symlink_to(tmp_path)
    assert "but a link" in "".join(told(findings(), place))
    assert place.is_symlink()
    assert [row for row in findings("--fix") if row["where"] == str(place) and row["fixed"]]
    run("new", "another")
    assert not [row for row in findings() if row["severity"] == "error"]


def test_a_link_in_a_foreign_task_is_said_to_be_looked_at(root: Path) -> None:
    task = foreign()
    link(task.path / "agents/w/outcome.json")
    (task.path / "events.jsonl").rename(task.path / "was")
    link(task.path / "events.jsonl")
    assert "look at it, and remove it" in run("list", "--task", task.path.name, check=False).err


@pytest.mark.slow
def test_doctor_tells_a_live_worker_whose_shim_is_frozen(root: Path) -> None:
    task = new_task()
    for name in ("w", "v"):
        spawn(["sleep", "100"], name=name)
    assert not [row for row in findings() if "its shim" in row["what"]]
    shim = json.loads((task.path / "agents/w/shim.json").read_text())["pid"]
    os.kill(shim, signal.SIGSTOP)
    try:
        frozen = [row for row in findings() if "its shim is stopped" in row["what"]]
    finally:
        os.kill(shim, signal.SIGCONT)
    assert [row["where"] for row in frozen] == [f"{task.path.name}/w"]
    assert frozen[0]["next"] == f"kill -CONT {shim}"
    run("cancel", "--all")


def test_what_a_shim_noted_is_a_warning_and_only_a_traceback_is_to_be_reported(root: Path) -> None:
    log = new_task().path / "shim.log"
    log.write_text("2026-11-22T17:44:53.245Z pid 1 t/w: q1.json is not a plain file: it is a FIFO\n")
    (row,) = [row for row in findings() if row["where"] == str(log)]
    assert (row["severity"], row["what"]) == (
        "warning", "a shim met something that it could not read: t/w: q1.json is not a plain file: it is a FIFO",
    )  # fmt: skip
    log.write_text("2026-11-22T17:44:53.245Z pid 1 ended unexpectedly\nTraceback (most recent call last):\n  x\n")
    (row,) = [row for row in findings() if row["where"] == str(log)]
    assert row["severity"] == "error"
    assert "report" in row["next"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("2026-11-22T17:44:53.245Z pid 1 ended unexpectedly\nTraceback (most recent call last):\n  x\n", "report it"),
        ("2026-11-22T17:44:53.245Z pid 1 t/w: q1.json is not a plain file: it is a FIFO\n", "it is a FIFO"),
    ],
)
def test_what_shims_noted_is_told_once_more_and_set_aside(root: Path, text: str, says: str) -> None:
    log = new_task().path / "shim.log"
    log.write_text(text)
    (row,) = [row for row in findings("--fix") if row["where"].startswith(str(log))]
    assert row["fixed"]
    assert says in row["what"]
    assert not log.exists()
    assert Path(row["where"]).read_text() == text
    again = run("doctor", "--json").json
    assert not [row for row in again if "shim.log" in row["where"]]
    assert again[-1]["severity"] == "ok"


def test_what_a_shim_writes_while_its_log_is_set_aside_is_told_by_the_next_look(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = new_task()
    log, asides = task.path / "shim.log", list[Path]()

    def set_aside_first(fd: int, data: bytes) -> None:
        if not asides:
            asides.append(log.rename(f"{log}.aside"))
        write_all(fd, data)

    monkeypatch.setattr("agentctl.shim.notes.write_all", set_aside_first)
    write_note(tree_at(str(task.path)), "t/w: met something")
    assert "met something" in asides[0].read_text()
    assert "met something" in log.read_text()


# -- trust -------------------------------------------------------------------------------------------------------------


def foreign() -> Task:
    """Return a task as it comes with somebody's repository, with a worker that has ended."""
    task = new_task()
    spawn(["true"], name="w")
    run("wait-all")
    run("trust", "--revoke", str(task.path))
    assert "was not made here by you" in run("list", "--task", task.path.name).err
    return task


def bound(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        os.chdir(path.parent)
        one.bind(path.name)


@pytest.mark.parametrize(("kind", "make"), [("a link", link), *alike(("a FIFO", os.mkfifo), ("a socket", bound))])
@pytest.mark.parametrize("place", ["report.md", "agents/w/control.json", "deep/er/x"])
@pytest.mark.slow
def test_a_task_with_something_odd_in_it_is_not_taken_over(
    root: Path, kind: str, make: Callable[[Path], None], place: str
) -> None:
    task = foreign()
    path = task.path / place
    path.parent.mkdir(parents=True, exist_ok=True)
    make(path)
    refused = run("trust", str(task.path), check=False)
    assert refused.code == 1
    assert f"{path} is {kind}" in refused.err
    assert "look at it, and remove it" in refused.err
    assert run("cancel", "w", "--task", task.path.name, check=False).code == 1
    path.unlink()
    run("trust", str(task.path))
    assert run("list", "--task", task.path.name).err == ""
    spawn(["sleep", "100"], name="v")
    run("cancel", "v", "--task", task.path.name)
    run("wait", "v", "--task", task.path.name, check=False)


def test_the_files_of_a_task_that_is_trusted_are_counted_no_further_than_any_has(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from agentctl.errors import Refused
    from agentctl.operations.where import odd_files

    task = foreign()
    folder = task.path / "many"
    folder.mkdir()
    for number in range(50):
        (folder / str(number)).touch()
    monkeypatch.setattr(odd_files, "_MOST_ENTRIES", 40)
    with pytest.raises(Refused, match="more than 40 files"):
        odd_files.refuse_odd_within(TaskDir(task.path))
