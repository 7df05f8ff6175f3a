"""At stake: a message to a worker waits on disk, is read once and in order, and is refused for an ended worker."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.steps import held, new_task, spawn, spawn_batch
from tests.support import run, start


def inbox(*options: str) -> str:
    """Return a shell command that reads the next message inside a worker."""
    return f"{sys.executable} -m agentctl inbox {' '.join(options)}"


def test_messages_are_read_once_and_in_order(root: Path, tmp_path: Path) -> None:
    task = new_task()
    gate = tmp_path / "gate"
    script = f"while [ ! -e {gate} ]; do sleep 0.01; done; {inbox()}; {inbox()}; {inbox()}; echo code $?"
    spawn(["sh", "-c", script], name="a")
    sent = run("send", "a", "first \u00e9\n  line", "--json").json
    assert sent == {"agentInstance": "a", "messageId": "m1", "warning": None}
    run("send", "a", "second")
    gate.touch()
    task.ended("a")
    assert (task.agent("a") / "stdout.log").read_text() == "first \u00e9\n  line\nsecond\ncode 6\n"
    assert [event["payload"]["id"] for event in task.events("message.sent")] == ["m1", "m2"]


def test_a_waiting_reader_wakes(root: Path) -> None:
    task = new_task()
    spawn(["sh", "-c", f"touch ready; {inbox('--wait', '--json')}"], name="a")
    run("send", "a", "hello")
    task.ended("a")
    assert '"text":"hello"' in (task.agent("a") / "stdout.log").read_text()


@pytest.mark.slow
def test_many_senders_at_once_lose_nothing(root: Path, tmp_path: Path) -> None:
    task = new_task()
    spawn_batch([held(tmp_path / "gate", "a")])
    senders = [start("send", "a", f"text-{number}") for number in range(8)]
    assert [sender.wait(timeout=30) for sender in senders] == [0] * 8
    texts = {file.name: file.read_text() for file in (task.agent("a") / "inbox").glob("*.json")}
    assert sorted(texts) == [f"{number:06d}.json" for number in range(1, 9)]
    assert all(sum(f'"text-{number}"' in text for text in texts.values()) == 1 for number in range(8))
    (tmp_path / "gate").touch()
    task.ended("a")


@pytest.mark.slow
def test_what_cannot_be_sent_is_refused(root: Path) -> None:
    task = new_task()
    spawn(["true"], name="a")
    task.ended("a")
    late = run("send", "a", "hello", check=False)
    assert late.code == 1
    assert "a has ended" in late.err
    assert run("send", "nobody", "hello", check=False).code == 3
    assert run("send", "a", "  ", check=False).code == 2
    assert run("inbox", check=False).code == 1
    assert task.events("message.sent") == []


def test_a_reader_gives_up_at_its_time_limit(root: Path) -> None:
    task = new_task()
    spawn(["sh", "-c", inbox("--wait", "--timeout-seconds", "0.05")], name="a")
    task.ended("a")
    assert (task.exit("a") or {})["exitCode"] == 4
