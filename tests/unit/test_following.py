"""How a stand-in rests while its worker runs quietly."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentctl.adapters.clock import monotonic
from agentctl.adapters.taskdir import LaunchDir, Root
from agentctl.worker_programs.on_node.exchange.heartbeat import HeardFrom, Heart
from agentctl.worker_programs.on_node.exchange.written_state import ChangesOnNode

LONG_S, SHORT_S = 30.0, 0.6


def not_due() -> float:
    """Say that the engine is not to be asked soon."""
    return LONG_S


LAUNCH = "0123456789abcdef"


@pytest.fixture
def launch(root: Path, tmp_path: Path) -> LaunchDir:
    """A launch whose node has begun."""
    folder = tmp_path / LAUNCH
    folder.mkdir()
    made = LaunchDir(str(folder))
    Heart(made).beat()
    return made


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """What wakes, and its other end."""
    ends = os.pipe()
    yield ends
    for fd in ends:
        os.close(fd)


def test_it_rests_until_its_time_while_the_node_only_gives_signs_of_life(
    launch: LaunchDir, pipe: tuple[int, int]
) -> None:
    heard = HeardFrom(launch, pipe[0], 60)
    heard.rest(monotonic(), monotonic() + LONG_S, not_due)  # The first look at it is always worth one.
    os.utime(launch.heartbeat)
    began = monotonic()
    heard.rest(began, began + SHORT_S, not_due)
    assert monotonic() - began >= SHORT_S
    assert heard.silent_s() < LONG_S


def test_news_of_the_node_end_the_rest(launch: LaunchDir, pipe: tuple[int, int]) -> None:
    heard = HeardFrom(launch, pipe[0], 60)
    heard.rest(monotonic(), monotonic() + LONG_S, not_due)
    Heart(launch).tell()
    began = monotonic()
    heard.rest(began, began + LONG_S, not_due)
    assert monotonic() - began < LONG_S / 2


def test_news_that_could_not_be_told_are_told_with_the_next_sign_of_life(
    launch: LaunchDir, pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentctl.worker_programs.on_node.exchange.heartbeat.BEAT_S", 0.0)
    heart, heard = Heart(launch), HeardFrom(launch, pipe[0], 60)
    heard.rest(monotonic(), monotonic() + LONG_S, not_due)
    os.unlink(launch.heartbeat)
    os.mkdir(launch.heartbeat)
    heart.tell()
    os.rmdir(launch.heartbeat)
    heart.beat()
    began = monotonic()
    heard.rest(began, began + LONG_S, not_due)
    assert monotonic() - began < LONG_S / 2


def test_a_wake_up_ends_the_rest(launch: LaunchDir, pipe: tuple[int, int]) -> None:
    heard = HeardFrom(launch, pipe[0], 60)
    heard.rest(monotonic(), monotonic() + LONG_S, not_due)
    os.write(pipe[1], b"!")
    began = monotonic()
    heard.rest(began - LONG_S, began + LONG_S, not_due)
    assert monotonic() - began < SHORT_S


def test_a_question_to_the_engine_that_is_due_ends_the_rest(launch: LaunchDir, pipe: tuple[int, int]) -> None:
    heard = HeardFrom(launch, pipe[0], 60)
    heard.rest(monotonic(), monotonic() + LONG_S, not_due)
    began, asked = monotonic(), []

    def due_in_s() -> float:
        asked.append(monotonic())
        return began + SHORT_S - asked[-1]

    heard.rest(began, began + LONG_S, due_in_s)
    assert SHORT_S <= monotonic() - began < LONG_S / 2
    assert len(asked) == 2, "it looks again when it is time, and not before"


def test_silence_of_the_node_ends_the_rest(launch: LaunchDir, pipe: tuple[int, int]) -> None:
    heard = HeardFrom(launch, pipe[0], SHORT_S)
    heard.rest(monotonic(), monotonic() + LONG_S, not_due)
    began = monotonic()
    heard.rest(began, began + LONG_S, not_due)
    assert SHORT_S / 2 < monotonic() - began < LONG_S / 2


def test_a_node_tells_of_all_that_the_head_copies(launch: LaunchDir, tmp_path: Path) -> None:
    worker = Root(str(tmp_path / "root")).task("t").worker("w")
    os.makedirs(worker.path)
    os.makedirs(launch.calls)
    changes = ChangesOnNode(worker, launch)
    assert changes.have_come()
    assert not changes.have_come()
    grow = (worker.task.events, worker.stdout, worker.stderr, worker.activity, worker.dialogue, worker.turns)
    replaced = (worker.progress, worker.result, worker.session, worker.spent)
    for path in (*grow, *replaced, launch.calls / "1-0"):
        Path(path).write_bytes(b"x")
        assert changes.have_come(), path
        assert not changes.have_come(), path
    for path in grow:
        with open(path, "ab") as file:
            file.write(b"y")
        assert changes.have_come(), path
