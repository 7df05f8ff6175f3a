"""At stake: the roster in a person's file keeps their bytes, is valid YAML, and in the end says what the log says."""

from __future__ import annotations

import contextlib
import json
import operator
import os
import signal
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from agentctl.adapters import files
from agentctl.adapters.taskdir import TaskDir
from agentctl.adapters.taskyaml import roster
from agentctl.adapters.taskyaml.cache import TaskConfig, store
from agentctl.adapters.taskyaml.roster import MARKER, RosterRow
from agentctl.domain.states import ROSTER_STATE, Reason, Status, task_state
from agentctl.domain.tree.limits import Limits
from agentctl.errors import UsageError
from agentctl.operations.show.current_state import read_task
from tests.life import stands
from tests.moments import at_openings
from tests.steps import Task, new_task, spawn_batch, statuses
from tests.support import alike, run, start, wait_until, worker

NAMES = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,63}", fullmatch=True)
#: Valid names that YAML would read as something other than text.
AMBIGUOUS = [
    "1", "0", "007", "0x1F", "1_000", "0b1", "1e5", "true", "True", "TRUE", "false", "null", "Null", "NULL", "yes",
    "No", "on", "OFF", "y", "N", "2026-11-21", "_", "__", "1-2", "e1", "nan", "inf", "12e03",
]  # fmt: skip
STATES = list(Status)
STATUSES = st.sampled_from(Status)
Save = Callable[[Path, bytes], None]
ROWS = st.dictionaries(st.sampled_from(["a1", "a11", "a", "1", "true", "b-1"]), STATUSES, min_size=1, max_size=4)


def loaded(data: bytes) -> dict[str, Any]:
    value: dict[str, Any] = yaml.safe_load(data)
    return value


def rows_in(lines: bytes) -> list[dict[str, str]]:
    rows: list[dict[str, str]] = loaded(b"roster:\n" + lines)["roster"]
    return rows


def row_of(status: Status, agent: str = "command") -> RosterRow:
    return RosterRow(agent, status, Reason.EXIT_CODE if status is Status.FAILED else None)


# -- a line ------------------------------------------------------------------------------------------------------


@given(st.lists(NAMES | st.sampled_from(AMBIGUOUS), min_size=1, max_size=30), NAMES)
def test_every_name_reads_back_as_the_text_that_it_is(names: list[str], agent: str) -> None:
    lines = b"".join(row_of(Status.RUNNING, agent).line(name) for name in names)
    rows = rows_in(lines)
    assert [row["instance"] for row in rows] == names
    assert {row["agent"] for row in rows} == {agent}


@pytest.mark.parametrize("name", AMBIGUOUS)
def test_a_name_that_yaml_would_take_for_something_else_is_text(name: str) -> None:
    (row,) = rows_in(row_of(Status.COMPLETED, name).line(name))
    assert row == {"instance": name, "agent": name, "state": "completed"}


def test_a_reason_that_could_not_stand_there_is_left_out() -> None:
    (row,) = rows_in(RosterRow("command", Status.FAILED, "x}\n  - {instance: evil").line("a1"))
    assert row == {"instance": "a1", "agent": "command", "state": "failed"}


# -- the file ----------------------------------------------------------------------------------------------------


def task_with(folder: Path, head: bytes, tail: bytes | None = None) -> TaskDir:
    """Return a task whose head has been parsed, as a command would have done."""
    task = TaskDir(str(folder))
    (folder / "task.yaml").write_bytes(roster.initial(head) if tail is None else head + MARKER + tail)
    store(task, head, TaskConfig(limits=Limits()))
    return task


HEADS = st.lists(
    st.sampled_from(["id: t", "# a comment", "", "  # - {instance: a1, agent: x}", "title: é \u2028 x", "\r",
                     "roster: mine", "x: '" + MARKER.decode().strip() + "'"]),
    max_size=6,
).map(lambda lines: "".join(line + "\n" for line in lines).encode())  # fmt: skip


@given(HEADS, st.lists(ROWS, max_size=8))
def test_updates_of_any_order_say_the_last_of_each_and_keep_every_byte_above(
    tmp_path_factory: pytest.TempPathFactory, head: bytes, updates: list[dict[str, Status]]
) -> None:
    folder = tmp_path_factory.mktemp("task")
    task = task_with(folder, head)
    known: dict[str, Status] = {}
    for update in updates:
        assert roster.update(task, {name: row_of(status) for name, status in update.items()})
        known.update(update)
    data = (folder / "task.yaml").read_bytes()
    assert data.startswith(head + MARKER)
    ours = loaded(data[len(head) :])
    assert ours["state"] == task_state(known.values())
    assert {row["instance"]: row["state"] for row in ours["roster"]} == {k: ROSTER_STATE[v] for k, v in known.items()}
    assert roster.read_head(task) == head


@pytest.mark.parametrize("last", [b"", b"\n", b"\n\n"], ids=["no newline", "newline", "two"])
def test_a_file_that_was_saved_without_its_last_newline_is_still_a_roster(tmp_path: Path, last: bytes) -> None:
    rows = row_of(Status.RUNNING).line("a1") + row_of(Status.RUNNING).line("a2")
    task = task_with(tmp_path, b"id: t\n", b"state: working\nroster:\n" + rows.rstrip(b"\n") + last)
    assert roster.update(task, {"a2": row_of(Status.COMPLETED), "a3": row_of(Status.QUEUED)})
    ours = loaded((tmp_path / "task.yaml").read_bytes())["roster"]
    assert [(row["instance"], row["state"]) for row in ours] == [
        ("a1", "active"),
        ("a2", "completed"),
        ("a3", "pending"),
    ]


@pytest.mark.parametrize("tail", [b"", b"state: x\n", b"roster: []\n", b"state: working\nroster:\n", b"rubbish\n{{{\n"])
def test_a_damaged_lower_half_is_made_anew(tmp_path: Path, tail: bytes) -> None:
    task = task_with(tmp_path, b"id: t\n", tail)
    assert roster.update(task, {"a1": row_of(Status.RUNNING)})
    assert loaded((tmp_path / "task.yaml").read_bytes())["roster"][0]["instance"] == "a1"


def test_what_is_not_the_parsed_head_is_left_alone(tmp_path: Path) -> None:
    task = task_with(tmp_path, b"id: t\n")
    saved = b"id: t\nconfig: {maxDepth: [\n" + MARKER + b"state: created\nroster: []\n"
    (tmp_path / "task.yaml").write_bytes(saved)
    assert not roster.update(task, {"a1": row_of(Status.RUNNING)})
    assert (tmp_path / "task.yaml").read_bytes() == saved
    assert task.stale_roster.exists()


def save_in_place(file: Path, data: bytes) -> None:
    file.write_bytes(data)


def save_by_name(file: Path, data: bytes) -> None:
    file.with_name("draft").write_bytes(data)
    file.with_name("draft").rename(file)


SAVES = pytest.mark.parametrize("save", [save_in_place, save_by_name])


@SAVES
@pytest.mark.parametrize("can_exchange", [True, False])
def test_what_a_person_saves_at_the_last_moment_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, save: Save, can_exchange: bool
) -> None:
    """The new file is flushed before it takes the place of the other one: on a slow disk that is a long moment."""
    task, flush = task_with(tmp_path, b"id: t\nconfig: {maxConcurrentAgents: 2}\n"), os.fsync
    saved = roster.initial(b"id: t\nconfig: {maxConcurrentAgents: 0}\n")

    def fsync(fd: int) -> None:
        flush(fd)
        monkeypatch.undo()
        if not can_exchange:
            monkeypatch.setattr(files, "libc", lambda *_: -1)  # As where the file system has no such exchange.
        save(tmp_path / "task.yaml", saved)

    monkeypatch.setattr(os, "fsync", fsync)
    assert not roster.update(task, {"a1": row_of(Status.RUNNING)})
    assert (tmp_path / "task.yaml").read_bytes() == saved
    assert sorted(os.listdir(tmp_path)) == ["config.json", "roster.stale", "task.lock", "task.yaml"]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says who has a file open for writing")
def test_what_is_open_for_writing_is_left_alone(tmp_path: Path) -> None:
    """A program that reads the file, changes it and writes it back has it open all the time."""
    task, saved = task_with(tmp_path, b"id: t\n"), roster.initial(b"id: t\ntitle: mine\n")
    with (tmp_path / "task.yaml").open("r+b") as file:
        assert not roster.update(task, {"a1": row_of(Status.RUNNING)})
        file.write(saved)
        file.truncate()
    assert (tmp_path / "task.yaml").read_bytes() == saved
    assert not list(tmp_path.glob("*.tmp"))


def test_a_save_that_begins_only_after_the_exchange_stays(tmp_path: Path) -> None:
    """The kernel had found the file for it before the exchange: it writes into the one that lies beside by now."""
    task, saved = task_with(tmp_path, b"id: t\n"), roster.initial(b"id: t\ntitle: mine\n")

    def save() -> None:
        (beside,) = tmp_path.glob("*.tmp")
        beside.write_bytes(saved)

    with at_openings(str(tmp_path), [save]):  # It is opened to be made durable, once the files have changed places.
        assert not roster.update(task, {"a1": row_of(Status.RUNNING)})
    assert (tmp_path / "task.yaml").read_bytes() == saved
    assert not list(tmp_path.glob("*.tmp"))


@SAVES
def test_what_a_person_saves_stays_while_the_roster_is_written_all_the_time(tmp_path: Path, save: Save) -> None:
    task, file, updates, is_over = task_with(tmp_path, b"id: t\n"), tmp_path / "task.yaml", [0], threading.Event()

    def update() -> None:
        while not is_over.is_set():
            with contextlib.suppress(UsageError):  # It is being saved.
                store(task, roster.read_head(task), TaskConfig(limits=Limits()))
            roster.update(task, {f"a{updates[0] % 2}": row_of(STATES[updates[0] % len(STATES)])})
            updates[0] += 1

    writer = threading.Thread(target=update)
    writer.start()
    try:
        for number in range(50):
            head = b"id: t\n# %03d\n" % number
            save(file, roster.initial(head))
            written_twice = partial(operator.le, updates[0] + 2)
            wait_until(lambda: updates[0], accept=written_twice, what="the roster to be written")
            assert file.read_bytes().startswith(head)
    finally:
        is_over.set()
        writer.join()


@pytest.mark.parametrize(
    "title", ["x\n" + MARKER.decode() + "y", *alike(MARKER.decode(), "'\"\n: {", "\x1b[31m", "# no", "")]
)
def test_no_title_can_break_the_file(root: Path, title: str) -> None:
    task = Task(Path(run("new", title, "--id", "t1", "--json").json["path"]))
    assert loaded((task.path / "task.yaml").read_bytes())["title"] == title
    run("spawn", "--wait", "--name", "a1", "--", "true")
    at_rest(task)
    assert task.roster() == {"a1": "completed"}


# -- with workers ------------------------------------------------------------------------------------------------

WORDS = {"completed": "completed", "failed": "failed", "cancelled": "failed", "queued": "pending", "running": "active"}


def at_rest(task: Task) -> None:
    """Wait until the roster says what the log says; reading the log repairs what a shim could not write."""

    def both() -> tuple[dict[str, str], dict[str, str]]:
        return {name: WORDS[status] for name, status in statuses().items()}, task.roster()

    wait_until(both, accept=lambda pair: pair[0] == pair[1], what="the roster to be the fold of the log")


def test_a_persons_bytes_stay_through_fifty_ends(root: Path) -> None:
    task = new_task(cap=8)
    file = task.path / "task.yaml"
    head, _, tail = file.read_bytes().partition(MARKER)
    words = b"# caf\xc3\xa9: keep   \t\r\n\n   # {instance: a1, agent: command, state: mine}\n" + head
    file.write_bytes(words + MARKER + tail)
    spawn_batch({"name": f"a{number}", "argv": ["true"]} for number in range(50))
    run("wait-all")
    at_rest(task)
    assert file.read_bytes().startswith(words + MARKER)
    assert len(task.roster()) == 50
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_spawn_that_is_late_writes_no_earlier_state_over_a_later_one(root: Path) -> None:
    """It is stopped after the start of its worker, until a shim has written the end into the roster."""
    task = new_task()
    late = start("spawn", "--name", "w", "--", "true", env={"AGENTCTL_FAILPOINT": "spawn.before-roster:stop"})
    wait_until(task.roster, accept=lambda rows: rows == {"w": "completed"}, what="the shim to write its row")
    stands(late.pid)
    late.send_signal(signal.SIGCONT)
    assert late.wait(timeout=20) == 0
    assert task.roster() == {"w": "completed"}


@pytest.mark.slow
def test_a_comment_written_meanwhile_stays_and_nothing_is_missing_afterwards(root: Path, tmp_path: Path) -> None:
    task = new_task(cap=4)
    file = task.path / "task.yaml"
    gate = tmp_path / "gate"
    spawn_batch(
        {"name": f"a{number}", "argv": worker("exits", number % 2, "--after-file", gate)} for number in range(8)
    )
    draft = tmp_path / "draft"
    draft.write_bytes(b"# my note\n" + file.read_bytes())
    draft.rename(file)
    gate.touch()
    task.ended(*(f"a{number}" for number in range(8)))
    at_rest(task)
    assert file.read_bytes().startswith(b"# my note\nid:")


@pytest.mark.slow
def test_at_rest_the_roster_is_the_fold_of_the_log_whatever_came_of_each(root: Path, tmp_path: Path) -> None:
    task = new_task(cap=3)
    (tmp_path / "no-interpreter").write_text(f"#!{tmp_path}/missing\n", encoding="utf-8")
    os.chmod(tmp_path / "no-interpreter", 0o755)
    never = worker("waits_for_file", tmp_path / "never")
    rows: list[dict[str, Any]] = [
        {"name": "true", "argv": ["true"]},
        {"name": "1", "argv": ["false"]},
        {"name": "2026-11-21", "argv": worker("dies_by_signal", "KILL")},
        {"name": "null", "argv": [str(tmp_path / "no-interpreter")]},
        {"name": "a1", "argv": never},
        {"name": "a2", "argv": never, "timeout_seconds": 0.1},
        {"name": "after", "argv": ["true"], "after": ["1"]},
        {"name": "again", "argv": ["false"], "retries": 1, "retry_delay_seconds": 0.01},
    ]
    # The exit code depends on which workers have failed by then.
    run("spawn", "--batch", "-", stdin="".join(json.dumps(row) + "\n" for row in rows), check=False)
    wait_until(statuses, accept=lambda told: {told[name] for name in told if name != "a1"} <= {"completed", "failed"})
    run("cancel", "a1")
    run("wait-all", check=False)
    at_rest(task)
    ours = loaded((task.path / "task.yaml").read_bytes())
    assert ours["state"] == "failed"
    reasons = {row["instance"]: row.get("reason") for row in ours["roster"]}
    listed = {row["agentInstance"]: row for row in json.loads(run("list", "--json").out)}
    for name, row in listed.items():
        assert reasons[name] == (row["reason"] or ("cancelled" if row["status"] == "cancelled" else None))
    assert all(isinstance(row["instance"], str) for row in ours["roster"])


def test_whoever_mends_the_roster_puts_no_earlier_state_over_a_later_one(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between its look at the log and its write, a worker ends, and the worker's shim writes that into the roster."""
    task, gate, mend = new_task(), tmp_path / "gate", roster.mend
    run("spawn", "--name", "a1", "--", *worker("waits_for_file", gate))

    def late(*args: Any) -> None:
        gate.touch()
        wait_until(task.roster, accept=lambda rows: rows == {"a1": "completed"}, what="the shim to write the row")
        mend(*args)

    monkeypatch.setattr(roster, "mend", late)
    roster.mark_stale(TaskDir(task.path))
    read_task(TaskDir(task.path))
    assert task.roster() == {"a1": "completed"}
    assert not TaskDir(task.path).stale_roster.exists()
