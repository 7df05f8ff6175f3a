"""At stake: shims that are started ahead work like any other, block nothing, and none is left behind."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

import agentctl
from agentctl.adapters.treedir import tree_of
from agentctl.supervision.dispatch.launching import keep_spares
from tests.life import state_of
from tests.processes import has_ended, words_of
from tests.steps import Task, held, new_task, spawn_batch
from tests.support import run, start_argv, wait_until


def shims_of_mine() -> list[int]:
    """Return the live shims that this process has started."""
    children = psutil.Process().children()
    return [one.pid for one in children if "shim/__main__.py" in " ".join(words_of(one)) and not has_ended(one)]


def test_a_batch_leaves_no_shim_that_it_started_ahead(root: Path) -> None:
    task = new_task(cap=4)
    told = spawn_batch([{"name": "a", "argv": ["true"]}, {"name": "b", "argv": ["true"], "after": ["a"]}])
    assert [one["status"] for one in told] == ["running", "queued"]
    task.ended("a", "b")
    refused = run("spawn", "--batch", "-", stdin='{"argv": ["true"]}\n{"argv": ["no-such-program"]}\n', check=False)
    assert refused.code == 2, refused
    wait_until(lambda: shims_of(task), accept=lambda left: not left, what="the shims to end")


def shims_of(task: Task) -> list[int]:
    """Return all shims of a task, no matter which process has started them.

    A shim forks another one through a process that ends at once: a child of a shim is not a shim yet.
    """
    found = {}
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if str(task.path) in words_of(process):
                found[process.pid] = process.ppid()
    return [pid for pid, parent in found.items() if parent not in found]


def test_an_executor_keeps_one_shim_ready_and_uses_it(root: Path) -> None:
    async def main() -> None:
        async with agentctl.TaskExecutor(agentctl.Task.find(task.path.name)) as executor:
            # The command line of a process that was just started may not be there yet.
            (ready,) = wait_until(shims_of_mine, what="the first one")
            first = await executor.execute_task("x", argv=["true"])
            assert first.status == "completed"
            assert task.events("agent.started")[0]["payload"]["shimPid"] == ready
            # As above.
            others = wait_until(lambda: [pid for pid in shims_of_mine() if pid != ready], what="another one")
            (other,) = others
            os.kill(other, signal.SIGKILL)  # The next worker gets another one.
            wait_until(lambda: state_of(other), accept=lambda state: state in ("gone", "Z"))
            second = await executor.execute_task("x", argv=["true"])
            assert second.status == "completed"
            assert task.events("agent.started")[1]["payload"]["shimPid"] not in (ready, other)

    task = new_task()
    asyncio.run(main())
    wait_until(shims_of_mine, accept=lambda left: not left, what="the shims to end")


def test_a_program_that_is_killed_takes_its_spare_shim_along(root: Path, tmp_path: Path) -> None:
    task = new_task()
    code = (
        "import sys, agentctl; from agentctl.supervision.dispatch.launching import keep_spares;"
        "from agentctl.adapters.treedir import tree_of;"
        "keep_spares(tree_of(agentctl.Task.find().folder), 2); print('ready', flush=True); sys.stdin.read()"
    )
    program = start_argv([sys.executable, "-c", code], stdin=subprocess.PIPE)
    assert program.stdout is not None
    assert program.stdout.readline() == "ready\n"
    wait_until(lambda: shims_of(task), accept=lambda ready: len(ready) == 2, what="two shims")
    program.kill()
    program.wait()
    wait_until(lambda: shims_of(task), accept=lambda left: not left, what="the shims to end")


def test_a_program_that_starts_many_workers_collects_their_shims(root: Path) -> None:
    task = agentctl.Task.find(new_task().path.name)
    for number in range(4):
        name = f"a{number}"
        task.spawn(argv=["true"], name=name)
        task.wait(name)
        wait_until(shims_of_mine, accept=lambda left: not left, what="the shim to end")
    zombies = [one for one in psutil.Process().children() if one.status() == psutil.STATUS_ZOMBIE]
    assert len(zombies) <= 1, zombies


@pytest.mark.parametrize("count", [0, 3])
def test_spares_are_kept_in_the_number_that_was_asked_for(root: Path, count: int) -> None:
    task = new_task()
    tree = tree_of(agentctl.Task.find(task.path.name).folder)
    keep_spares(tree, 2)
    keep_spares(tree, count)
    wait_until(lambda: shims_of(task), accept=lambda ready: len(ready) == count, what="as many shims")
    keep_spares(tree, 0)
    wait_until(lambda: shims_of(task), accept=lambda left: not left, what="the shims to end")


def test_a_twin_serves_and_is_no_child_of_the_shim_that_forked_it(root: Path, tmp_path: Path) -> None:
    task = new_task(cap=3)
    spawn_batch([held(tmp_path / name, name) for name in "abc"])
    shims = {task.shim_of(name) for name in "abc"}
    assert len(shims) == 3
    assert not [one for one in shims if psutil.Process(one).ppid() in shims]
    for name in "cab":
        (tmp_path / name).touch()
    task.ended("a", "b", "c")


def test_twins_of_a_shim_that_was_killed_are_replaced(root: Path, tmp_path: Path) -> None:
    task = new_task(cap=3)
    tree = tree_of(agentctl.Task.find(task.path.name).folder)
    keep_spares(tree, 3)
    for pid in wait_until(lambda: shims_of(task), accept=lambda ready: len(ready) == 3, what="three shims"):
        os.kill(pid, signal.SIGKILL)
    started = agentctl.Task.find(task.path.name).spawn_many([{"argv": ["true"]} for _ in range(3)])
    assert [one.status for one in started] == ["running"] * 3
    keep_spares(tree, 0)
    task.ended(*[one.agent_instance for one in started])
