"""At stake: shims that are started ahead serve as any other, are never in anybody's way, and none is left behind."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

import agentctl
from agentctl.adapters.config import root_of_tree
from agentctl.supervision.launching import keep_spares
from tests.life import state_of
from tests.steps import new_task, spawn_batch
from tests.support import run, start_argv, wait_until


def shims_of_mine() -> list[int]:
    """Return the shims that this process started and that live."""
    found = []
    for child in psutil.Process().children():
        try:
            if "shim/__main__.py" in " ".join(child.cmdline()) and child.status() != psutil.STATUS_ZOMBIE:
                found.append(child.pid)
        except psutil.Error:
            continue
    return found


def test_a_batch_leaves_no_shim_that_it_started_ahead(root: Path) -> None:
    task = new_task(cap=4)
    told = spawn_batch([{"name": "a", "argv": ["true"]}, {"name": "b", "argv": ["true"], "after": ["a"]}])
    assert [one["status"] for one in told] == ["running", "queued"]
    task.ended("a", "b")
    refused = run("spawn", "--batch", "-", stdin='{"argv": ["true"]}\n{"argv": ["no-such-program"]}\n', check=False)
    assert refused.code == 2, refused
    wait_until(
        lambda: [p.pid for p in psutil.process_iter() if _names(p, task.path)],
        accept=lambda left: not left,
        what="the shims to end",
    )


def _names(process: psutil.Process, folder: Path) -> bool:
    try:
        return str(folder) in process.cmdline()
    except psutil.Error:
        return False


def test_an_executor_keeps_one_shim_ready_and_uses_it(root: Path) -> None:
    async def main() -> None:
        async with agentctl.TaskExecutor(agentctl.Task.find(task.path.name)) as executor:
            (ready,) = shims_of_mine()
            first = await executor.execute_task("x", argv=["true"])
            assert first.status == "completed"
            assert task.events("agent.started")[0]["payload"]["shimPid"] == ready
            (other,) = [pid for pid in shims_of_mine() if pid != ready]
            os.kill(other, signal.SIGKILL)  # Somebody kills it: the next worker gets another one.
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
        "import sys, agentctl; from agentctl.supervision.launching import keep_spares;"
        "from agentctl.adapters.config import root_of_tree;"
        "keep_spares(root_of_tree(agentctl.Task.find().folder), 2); print('ready', flush=True); sys.stdin.read()"
    )
    program = start_argv([sys.executable, "-c", code], stdin=subprocess.PIPE)
    assert program.stdout is not None
    assert program.stdout.readline() == "ready\n"
    spares = psutil.Process(program.pid).children()
    assert len(spares) == 2
    program.kill()
    program.wait()
    wait_until(lambda: [p for p in psutil.process_iter() if _names(p, task.path)], accept=lambda left: not left)


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
    tree = root_of_tree(agentctl.Task.find(new_task().path.name).folder)
    keep_spares(tree, 2)
    keep_spares(tree, count)
    assert len(shims_of_mine()) == count
    keep_spares(tree, 0)
    assert shims_of_mine() == []
