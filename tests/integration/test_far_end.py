"""At stake: an end that another host waits for counts as given only once it was printed there, and is never lost."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from agentctl.domain.hosts import CommandHost
from agentctl.interfaces.hosts import frames
from agentctl.interfaces.hosts.far_order import order_for
from agentctl.interfaces.hosts.frames import Frames, Greeting, frame
from tests.steps import new_task, spawn, spawn_batch
from tests.support import is_alive, run, wait_until, worker


class FarEnd:
    """A far end, and this test as the other side."""

    def __init__(self, *argv: str, then: bytes = b"") -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "agentctl", "_far"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )
        greeting = Greeting()
        while greeting.feed(self._read()) is None:
            pass
        self._frames = Frames(frames.FROM_FAR)
        assert self.process.stdin is not None
        self.process.stdin.write(frame(frames.ORDER, order_for(CommandHost("h", "h"), argv).encoded()) + then)

    def _read(self) -> bytes:
        assert self.process.stdout is not None
        data: bytes = self.process.stdout.read(1 << 16)
        assert data, "the far end has left"
        return data

    def say(self, kind: bytes, content: bytes = b"") -> None:
        """Send a frame."""
        assert self.process.stdin is not None
        self.process.stdin.write(frame(kind, content))

    def until(self, wanted: bytes) -> bytes:
        """Read until a frame of a kind comes; return what was printed before it, or its content."""
        out = b""
        while True:
            for kind, content in self._frames.feed(self._read()):
                if kind == wanted:
                    return content or out
                out += content if kind == frames.OUT else b""

    def cut(self) -> None:
        """Cut the connection, and wait for the far end to leave."""
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()
        self.process.wait(timeout=20)


@pytest.fixture
def ended(root: Path) -> None:
    new_task()
    spawn(worker("exits", 0), "--wait", name="w1")


def next_end() -> Any:
    return run("wait-any", "--json", check=False).json


def _killed(far: FarEnd) -> None:
    far.process.send_signal(signal.SIGKILL)
    far.cut()


def _command_killed(far: FarEnd) -> None:
    (command,) = psutil.Process(far.process.pid).children()
    command.kill()
    assert far.until(frames.EXIT) == b"137"
    far.cut()


@pytest.mark.parametrize("breaks", [FarEnd.cut, _killed, _command_killed])
def test_an_end_that_may_have_been_printed_is_given_again_and_marked(
    ended: None, breaks: Callable[[FarEnd], None]
) -> None:
    far = FarEnd("wait-any", "--json")
    assert json.loads(far.until(frames.PRINT))["agentInstance"] == "w1"
    breaks(far)
    assert next_end() == {
        "agentInstance": "w1", "status": "completed", "reason": None, "exitCode": 0, "signal": None,
        "redelivered": True,
    }  # fmt: skip


def test_an_end_that_was_declined_is_given_as_if_nothing_had_been(ended: None) -> None:
    for _ in range(2):
        far = FarEnd("wait-any", "--json")
        far.until(frames.PRINT)
        far.say(frames.DECLINED)
        assert far.until(frames.EXIT) == b"1"
        far.cut()
    assert "redelivered" not in next_end()


def test_an_end_that_was_printed_is_not_given_again(ended: None) -> None:
    far = FarEnd("wait-any", "--json")
    far.until(frames.PRINT)
    far.say(frames.PRINTED)
    assert far.until(frames.EXIT) == b"0"
    far.cut()
    assert run("wait-any", check=False).code == 6


def test_a_mark_of_an_earlier_death_survives_being_declined(ended: None) -> None:
    far = FarEnd("wait-any", "--json")
    far.until(frames.PRINT)
    _killed(far)
    far = FarEnd("wait-any", "--json")
    assert json.loads(far.until(frames.PRINT))["redelivered"]
    far.say(frames.DECLINED)
    far.until(frames.EXIT)
    far.cut()
    assert next_end()["redelivered"]


def test_an_answer_that_comes_before_the_question_is_none(root: Path, tmp_path: Path) -> None:
    """Whoever says "printed" before anything was, loses nothing."""
    new_task()
    spawn_batch([{"name": "w1", "argv": worker("waits_for_file", tmp_path / "gate")}])
    far = FarEnd("wait-any", "--json")
    far.say(frames.PRINTED)
    (tmp_path / "gate").touch()
    far.until(frames.PRINT)
    far.cut()
    assert next_end()["redelivered"]


def test_a_wait_that_is_declined_ends_although_nothing_has(root: Path, tmp_path: Path) -> None:
    task = new_task()
    spawn(worker("waits_for_file", tmp_path / "gate"), name="w1")
    far = FarEnd("wait-any", "--json")
    far.say(frames.DECLINED)
    assert far.until(frames.EXIT) == b"1"
    far.cut()
    (tmp_path / "gate").touch()
    task.ended("w1")
    assert "redelivered" not in next_end()


def test_a_broken_connection_ends_the_command_and_not_its_worker(root: Path, tmp_path: Path) -> None:
    task = new_task()
    far = FarEnd("spawn", "--name", "w1", "--wait", "--", *worker("waits_for_file", tmp_path / "gate"))
    task.has("agent.started", "w1")
    (command,) = psutil.Process(far.process.pid).children()
    far.cut()
    assert not is_alive(command.pid)
    assert run("list", "--json").json[0]["status"] == "running"
    (tmp_path / "gate").touch()
    task.ended("w1")


@pytest.mark.parametrize("ignored", [False, True])
def test_a_ctrl_c_right_behind_the_order_is_not_lost(root: Path, tmp_path: Path, ignored: bool) -> None:
    """Whoever starts a far end may have SIGINT ignored; the command has it all the same."""
    task = new_task()
    spawn(worker("waits_for_file", tmp_path / "gate"), name="w1")
    before = signal.signal(signal.SIGINT, signal.SIG_IGN) if ignored else signal.getsignal(signal.SIGINT)
    try:
        far = FarEnd("wait", "w1", then=frame(frames.INTERRUPT))
    finally:
        signal.signal(signal.SIGINT, before)
    assert far.until(frames.EXIT) == b"130"
    far.cut()
    (tmp_path / "gate").touch()
    task.ended("w1")


def test_a_far_end_without_an_order_leaves(root: Path) -> None:
    argv = [sys.executable, "-m", "agentctl", "_far"]
    for sent, code in ((b"", 0), (b"o\0\0", 0), (b"x" * 99, 2), (b"o\0\0\0\2{}", 2), (b"i\0\0\0\0", 0)):
        done = subprocess.run(argv, input=sent, capture_output=True, timeout=20, check=False)
        assert (done.returncode, done.stdout.count(b"\n")) == (code, 1), done
    process = FarEnd("tasks").process
    process.kill()
    wait_until(lambda: process.poll() is not None and not is_alive(process.pid), what="its end")
    for pipe in (process.stdin, process.stdout):
        assert pipe is not None
        pipe.close()
