"""At stake: whatever a worker writes into records, or calls itself, its guardian, limits and everybody else go on."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.life import forge, is_settled, kill_shims, known, leader_of, lives, living, orphan, says_ready
from tests.steps import held, kill, new_task, spawn, spawn_batch, statuses
from tests.support import alike, is_alive, run, wait_for_json, wait_until, worker

#: What a command says that met something which it does not know.
BUG = "a bug in agentctl"
READERS = (
    ("list",),
    ("show", "w"),
    ("why", "w"),
    ("tree",),
    ("usage",),
    ("tasks",),
    ("search", "w"),
    ("result", "w"),
    ("doctor",),
)


def test_what_a_process_calls_itself_takes_no_guardian_away(root: Path, tmp_path: Path) -> None:
    """Its command line names a folder that no system call takes."""
    task = new_task(cap=1, grace=0.05)
    words = [sys.executable, "-c", "import time; print('ready', flush=True); time.sleep(60)"]
    script = "import os, sys; os.execv(sys.argv[1], ['agentctl/shim/__main__.py', *sys.argv[2:]])"
    folder = "/" + "x" * 300 + "/T/agents/w"
    called = shlex.join([sys.executable, "-c", script, *words, "--bury", folder])
    spawn(["sh", "-c", f"{called} & echo $! >{tmp_path / 'pid'}; wait"], "--timeout-seconds", "0.6", name="w")
    says_ready(task, "w")
    impostor = known(wait_for_json(tmp_path / "pid"))
    task.ended("w")
    assert is_settled(task, "w")["reason"] == "timed_out"
    assert not living([impostor])


@pytest.mark.parametrize("grace", ["1e400", *alike("1e9")])
def test_a_request_that_a_worker_wrote_for_itself_switches_no_limit_off(root: Path, grace: str) -> None:
    task = new_task(grace=0.05)
    spawn(worker("ignores_term", "--int"), "--timeout-seconds", "1", "--grace-seconds", "0.05", name="w")
    says_ready(task, "w")
    leader = leader_of(task, "w")
    (task.agent("w") / "cancel.json").write_text(f'{{"graceSeconds": {grace}}}', encoding="ascii")
    task.ended("w")
    assert is_settled(task, "w")["status"] in ("cancelled", "failed")
    assert not living([leader])


ODD = {"attempt": "x", "startedAt": 5, "cookie": "\ud800"}


@pytest.mark.slow
def test_an_odd_record_of_a_worker_without_a_shim_stops_nobody(root: Path) -> None:
    task = new_task(cap=2, grace=0.05)
    orphan(task, "w")
    forge(task.agent("w") / "worker.json", **ODD)
    for command in READERS:
        assert BUG not in run(*command, check=False).err, command
    spawn(["true"], "--wait", name="next")
    run("cancel", "w")
    assert is_settled(task, "w")["status"] == "cancelled"


@pytest.mark.parametrize("attempt", ["x", *alike(None, float("inf"))])
@pytest.mark.slow
def test_a_lost_worker_that_no_attempt_can_be_told_of_stops_nobody(root: Path, attempt: object) -> None:
    task = new_task(cap=2)
    leader = orphan(task, "w")
    forge(task.agent("w") / "worker.json", attempt=attempt)
    kill(leader.pid)
    for command in READERS:
        assert BUG not in run(*command, check=False).err, command
    assert is_settled(task, "w")["reason"] == "lost"


def test_a_socket_in_the_place_of_a_queued_workers_control_keeps_nobody_waiting(root: Path, tmp_path: Path) -> None:
    task = new_task(cap=1)
    gate = tmp_path / "gate"
    spawn(worker("exits", 0, "--after-file", gate), name="a")
    spawn(["true"], "--queue", name="b")
    with socket.socket(socket.AF_UNIX) as odd, contextlib.chdir(task.agent("b")):
        odd.bind("control")
    gate.touch()
    task.ended("a", "b")
    assert statuses() == {"a": "completed", "b": "completed"}


def test_odd_names_in_slots_and_queue_keep_nobody_from_starting(root: Path) -> None:
    task = new_task(cap=2)
    for folder, name in (("slots", "\u00b2"), ("queue", f"4000.999999999999.{'0' * 16}.r.t1.a")):
        (task.path / folder).mkdir(exist_ok=True)
        (task.path / folder / name).touch()
    spawn(["true"], "--queue", "--wait", name="w")
    assert statuses()["w"] == "completed"


def no_token(ticket: Path) -> None:
    ticket.rename(ticket.with_name(re.sub(r"\.[0-9a-f]{16}\.", "..", ticket.name)))


def stored(ticket: Path) -> Path:
    """Return where its environment waits."""
    return Path(os.environ["XDG_RUNTIME_DIR"], "agentctl", ticket.name.split(".")[2])


def no_file(ticket: Path) -> None:
    waiting = stored(ticket)
    waiting.unlink()
    waiting.mkdir()


def no_plain_file(ticket: Path) -> None:
    waiting = stored(ticket)
    waiting.rename(waiting.with_name("0" * 16))
    waiting.symlink_to("0" * 16)


def no_end(ticket: Path) -> None:
    os.truncate(stored(ticket), 1 << 40)


@pytest.mark.parametrize("odd", [no_token, no_file, no_plain_file, no_end])
def test_a_ticket_whose_environment_cannot_be_had_keeps_no_shim_busy(
    root: Path, tmp_path: Path, odd: Callable[[Path], None]
) -> None:
    task = new_task(cap=1)
    gate = tmp_path / "gate"
    spawn_batch([held(gate, "a"), {"name": "b", "argv": ["true"]}])
    shim = task.shim_of("a")
    odd(next((task.path / "queue").iterdir()))
    gate.touch()
    wait_until(lambda: not is_alive(shim), what="the shim to leave")
    assert task.exit("b") is None, "nobody started it"


def test_a_ticket_of_one_that_runs_ends_nobody(root: Path) -> None:
    task = new_task(cap=2, grace=0.05)
    spawn(worker("sleeps", 60), name="w")
    says_ready(task, "w")
    ticket = task.path / "queue" / "0000.000000000001.0.w.t1.w"
    ticket.touch()
    spawn(["true"], "--wait", name="next")
    assert task.exit("w") is None
    leader = leader_of(task, "w")
    kill_shims(task, "w")
    ticket.touch()
    assert run("cancel", "w", "--json").json["status"] == "cancelled"
    assert not lives(leader)


def test_a_child_at_a_path_that_can_be_none_stops_no_cancel(root: Path) -> None:
    task = new_task(grace=0.05)
    spawn(worker("sleeps", 60), name="w")
    says_ready(task, "w")
    children = task.agent("w") / "children"
    children.mkdir(exist_ok=True)
    (children / "t1.x.1-1").write_text('{"path": "/\\ud800"}', encoding="ascii")
    assert run("cancel", "w", "--json").json["status"] == "cancelled"
    assert is_settled(task, "w")["status"] == "cancelled"
