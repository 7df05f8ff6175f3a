"""At stake: what a person sees of a task is true of the task that lies there now."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentctl.adapters.taskdir import Root
from agentctl.adapters.watch import Watch
from agentctl.operations.fleet import fleet as fleet_module
from agentctl.operations.fleet.event_stream import EventStream
from agentctl.operations.fleet.fleet import _TURN_S, Fleet
from agentctl.operations.fleet.glance import Glance
from agentctl.operations.fleet.seen import SeenEnds
from tests.steps import Task, new_task, spawn
from tests.support import remove, run, wait_until, worker


def names(glance: Glance) -> set[str]:
    return {key.instance for key in glance.workers}


def ended_worker(task: Task, name: str) -> None:
    """Start a worker that ends at once; return when its shim has gone too, which writes until then."""
    spawn(worker("exits", 0), "--wait", name=name)
    shim = json.loads((task.agent(name) / "shim.json").read_bytes())["pid"]
    wait_until(lambda: not Path(f"/proc/{shim}").exists(), what="the end of the shim")


@pytest.mark.slow
def test_another_task_in_the_place_of_one_is_another(root: Path, tmp_path: Path) -> None:
    """Between two looks: removed and made anew; and one that is not one's own, put in its place."""
    task = new_task()
    ended_worker(task, "old")
    shutil.copytree(task.path, tmp_path / "copy", ignore=shutil.ignore_patterns("origin", "control"))
    with Fleet(Root(root), SeenEnds(Root(root))) as fleet:
        assert names(fleet.look()) == {"old"}
        remove(task.path)
        run("new", "Another one", "--id", "t1")
        ended_worker(task, "new")
        assert names(wait_until(fleet.look, accept=names, what="the new task")) == {"new"}
        assert fleet.look().tasks["t1"].is_own
        remove(task.path)
        shutil.move(tmp_path / "copy", task.path)
        found = wait_until(fleet.look, accept=lambda glance: not glance.tasks["t1"].is_own, what="a foreign task")
        assert names(found) == {"old"}


def test_a_task_is_seen_once_it_is_made_however_long_that_took(root: Path) -> None:
    """Its folder was listed before it had its files: what comes into it later changes nothing where the tasks lie."""
    whole = new_task().path
    late = whole.with_name("t2")
    late.mkdir()
    os.utime(late.parent, (1, 1))
    with Fleet(Root(root), SeenEnds(Root(root))) as fleet:
        stream = EventStream(Root(root))
        assert set(fleet.look().tasks) == {"t1"}
        shutil.copytree(whole, late, ignore=shutil.ignore_patterns("control", "*.tmp"), dirs_exist_ok=True)
        assert set(fleet.look().tasks) == {"t1", "t2"}
        assert {row.key.task_id for row in stream.update() or ()} == {"t2"}


def late(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that takes longer than a look may read."""

    def called(*args: Any) -> Any:
        time.sleep(1.2 * _TURN_S)
        return function(*args)

    return called


def test_tasks_that_take_long_leave_time_to_read_the_others(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    new_task()
    for name in ("t2", "t3"):
        run("new", "Another one", "--id", name)
    for place, name in ((Fleet, "_update"), (fleet_module, "open_feed")):
        monkeypatch.setattr(place, name, late(getattr(place, name)))
    with Fleet(Root(root), SeenEnds(Root(root))) as fleet:
        found = fleet.look()
        for _ in range(3):
            found = fleet.look() if found.is_partial else found
        assert found.tasks.keys() == {"t1", "t2", "t3"}


def marks_of(fleet: Fleet) -> int:
    """Return how many files and folders a fleet watches, as the kernel counts them."""
    fd = fleet._watch.fd
    return Path(f"/proc/self/fdinfo/{fd}").read_text().count("inotify wd:")


def test_what_nobody_wants_any_more_is_not_watched_any_more(root: Path) -> None:
    new_task()
    for name in ("a", "b", "c"):
        spawn(worker("sleeps", 60), name=name)
    with Fleet(Root(root), SeenEnds(Root(root))) as fleet:
        keys = list(fleet.look().workers)
        before = marks_of(fleet)
        fleet.want(dict.fromkeys(keys, False))
        assert marks_of(fleet) == before + 3
        for key in keys:
            fleet.want({key: True})
            assert marks_of(fleet) == before + 1
        fleet.want({})
        assert marks_of(fleet) == before
    run("cancel", "--all")


def test_what_another_still_needs_stays_watched(tmp_path: Path) -> None:
    (tmp_path / "log").touch()
    with Watch() as watch:
        first, second = watch.add(tmp_path), watch.add(tmp_path)
        assert first is not None
        watch.remove(first)
        watch.drain()
        (tmp_path / "log").write_text("more")
        assert watch.fd is not None
        assert os.read(watch.fd, 4096)
        assert second is not None
        watch.remove(second)
        watch.drain()
        (tmp_path / "log").write_text("even more")
        with pytest.raises(BlockingIOError):
            os.read(watch.fd, 4096)
