"""At stake: what the system refuses reaches a Python program as agentctl's own error, with the file and the cause."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults import CHANGES, OPEN, READ, SCAN, STAT, Faults
from tests.steps import new_task, spawn
from tests.support import alike, environment, run, worker

LOOKS = OPEN | READ | STAT | SCAN
_SCRIPT = """
import asyncio, sys, agentctl
from agentctl import AgentctlError, Task, TaskExecutor
task = Task.find("t1")
def in_loop(make):
    async def run():
        executor = TaskExecutor(task=task)
        return await make(executor)
    return asyncio.run(run())
print("ready", flush=True)
sys.stdin.readline()
try:
    print(eval(sys.argv[1]))
except AgentctlError as error:
    print(type(error).__name__, error, "hint:", error.hint, sep="|")
"""


def told(faulty: Faults, call: str, break_it: Callable[[], object]) -> str:
    """Return what a call says: the error of ours that it raises, or else its traceback."""
    program = subprocess.Popen(
        [faulty.program[0], "-c", _SCRIPT, call], env=environment(), text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert program.stdout is not None
    assert program.stdout.readline() == "ready\n"
    break_it()
    out, _ = program.communicate("\n", timeout=30)
    return out.strip()


CALLS = (
    "task.workers()", "task.show('a')", "task.result('a')", "task.wait('a', timeout_seconds=0.5)",
    "task.wait_any(timeout_seconds=0.5)", "task.questions()", "task.spawn(argv=['true'], name='b')",
    "in_loop(lambda one: one.wait_task('a', 0.5))", "in_loop(lambda one: one.get_session_tasks())",
    "Task.find('t1').workers()", "Task.create('another')",
)  # fmt: skip
#: What each call meets where nothing can be read.
ANY = "."
_NEXT = "the disk does not answer as it should"


@pytest.mark.parametrize(
    ("file", "call"),
    [
        ("events.jsonl", "task.workers()"),
        ("agents/a/shim.json", "in_loop(lambda one: one.wait_task('a', 5))"),
        *alike(*((file, call) for file in ("events.jsonl", "task.yaml", "agents/a/shim.json", ANY) for call in CALLS)),
    ],
)
def test_what_cannot_be_read_is_an_error_of_ours(root: Path, faulty: Faults, file: str, call: str) -> None:
    task = new_task()
    spawn(worker("sleeps", 100), name="a")
    said = told(faulty, call, lambda: faulty.fail(root if file == ANY else task.path / file, LOOKS, errno.EIO))
    faulty.mend()
    assert "Traceback" not in said, said
    if file == ANY or (file, call) == ("events.jsonl", "task.workers()") or "wait_task('a', 5)" in call:
        kind, message, _, hint = said.split("|")
        assert kind == "StorageError"
        assert os.strerror(errno.EIO) in message
        assert str(root) in message
        assert hint.startswith(_NEXT)
    run("cancel", "--all", "--grace-seconds", "0", "--task", "t1")


@pytest.mark.parametrize("call", [CALLS[6], *alike(*CALLS)])
def test_what_cannot_be_written_is_an_error_of_ours(root: Path, faulty: Faults, call: str) -> None:
    new_task()
    spawn(worker("exits", 3), "--wait", name="a", check=False)
    said = told(faulty, call, lambda: faulty.fail(root, CHANGES, errno.EROFS))
    assert "Traceback" not in said, said
    assert call != CALLS[6] or os.strerror(errno.EROFS) in said


def test_what_was_removed_meanwhile_is_told_as_that(root: Path, faulty: Faults) -> None:
    task = new_task()
    said = told(faulty, "task.spawn(argv=['true'])", lambda: task.path.rename(root / "elsewhere"))
    assert "Traceback" not in said, said
    assert str(task.path) in said
