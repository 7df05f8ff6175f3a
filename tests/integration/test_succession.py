"""At stake: a shim's shortcut to the next worker does not check everything, but nothing is missed for long."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.steps import held, kill, new_task, row, spawn, spawn_batch
from tests.support import is_alive, wait_until


@pytest.mark.slow
def test_the_slot_of_a_killed_shim_is_taken_again_while_workers_follow_another(root: Path, tmp_path: Path) -> None:
    task = new_task(cap=2)
    names = [f"w{number}" for number in range(60)]
    spawn_batch([held(tmp_path / name, name) for name in names])
    (tmp_path / "w1").touch()
    task.has("agent.started", "w2")  # So its shim has just dispatched fully, and found both slots taken.
    kill(task.shim_of("w0"), row("w0")["pid"])
    ended = {"w0", "w1"}

    def release_one() -> int:
        """Return how many workers run; 2: the slot was taken again. If only one runs, end it: the next follows."""
        started = set(task.order("agent.started")) - ended
        if len(started) == 1:
            name = started.pop()
            (tmp_path / name).touch()
            task.ended(name)
            ended.add(name)
            return 1
        return len(started)

    wait_until(release_one, accept=lambda count: count == 2, what="the second slot to be taken")
    for name in names:
        (tmp_path / name).touch()
    task.ended(*names[1:])


def test_a_lowered_cap_is_seen_by_a_shim_that_has_just_looked(root: Path, tmp_path: Path) -> None:
    task = new_task(cap=2)
    spawn_batch([held(tmp_path / name, name) for name in ("a", "b", "c", "d")])
    (tmp_path / "a").touch()
    task.has("agent.started", "c")
    shim = task.shim_of("c")
    task.set_cap(1)
    assert spawn(["true"], check=False).code == 5  # A spawn parses task.yaml; shims do not.

    (tmp_path / "c").touch()
    task.ended("c")
    wait_until(lambda: is_alive(shim), accept=lambda alive: not alive, what="the shim of c to leave")
    assert "d" not in task.order("agent.started")
    for name in ("b", "d"):
        (tmp_path / name).touch()
    task.ended("b", "d")


def test_a_long_queue_of_short_workers_is_worked_off_in_order(root: Path) -> None:
    task = new_task(cap=1)
    names = [f"w{number}" for number in range(40)]
    spawn_batch([{"name": name, "argv": ["true"], "priority": number % 3} for number, name in enumerate(names)])
    task.ended(*names)
    assert task.order("agent.started") == sorted(names, key=lambda name: (-(int(name[1:]) % 3), int(name[1:])))
