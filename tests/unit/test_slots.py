"""At stake: a failed survey of the slots keeps none of them, since a server lives on; a race hides no shim."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from agentctl.adapters import processes
from agentctl.adapters.locks import try_lock
from agentctl.adapters.opening import read_bytes
from agentctl.adapters.paths import FilePath
from agentctl.adapters.taskdir import TreeDir
from agentctl.adapters.treedir import tree_at
from agentctl.domain.names import WorkerId
from agentctl.errors import StorageError
from agentctl.supervision.dispatch import slots
from agentctl.supervision.dispatch.slots import guest_place, has_slot, held_places, move_guests, survey
from agentctl.supervision.queue import places
from agentctl.supervision.queue.places import Occupant, Place, names_shim
from agentctl.supervision.queue.queue_hold import QueueHolds


@contextmanager
def _descriptors_left(count: int) -> Iterator[None]:
    """Let this process open `count` more files, and no others."""
    lowest = os.open(os.devnull, os.O_RDONLY)
    os.close(lowest)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest + count, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_where_not_all_slots_can_be_opened_none_is_kept(tmp_path: Path) -> None:
    tree = tree_at(str(tmp_path))
    (tmp_path / "slots").mkdir()
    before = survey(tree, 4, 4)
    assert len(before.free) == 4
    before.release()
    with _descriptors_left(2), pytest.raises(StorageError, match="Too many open files") as refused:
        survey(tree, 4, 4)
    assert refused.value.hint == "raise the limit of open files: ulimit -n"
    after = survey(tree, 4, 4)
    assert len(after.free) == 4
    after.release()


@pytest.mark.parametrize("name", ["1", "2.guest", "ahead-1.guest"])
def test_where_a_place_cannot_be_read_none_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """A process that lives on, such as the host of an agent, kept the lock of the place that the disk did not show."""
    tree = tree_at(str(tmp_path))
    (tmp_path / "slots").mkdir()
    Path(tree.slots, name).write_text('{"taskId": "t1", "instance": "gone"}')
    with monkeypatch.context() as broken:
        broken.setattr(slots, "read_occupant", _unreadable)
        with pytest.raises(StorageError):
            _moved(tree)
    for place in os.listdir(tree.slots):
        fd = try_lock(tree.slots / place)
        assert fd is not None, place
        os.close(fd)


def _moved(tree: TreeDir) -> None:
    found = survey(tree, 2, 2)
    try:
        move_guests(tree, found, QueueHolds(tree))
    finally:
        found.release()


def _unreadable(path: FilePath) -> None:
    raise StorageError(f"{path} cannot be read")


@pytest.mark.parametrize("nearest_first", [True, False])
def test_a_chain_that_moves_up_loses_none_of_its_guests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, nearest_first: bool
) -> None:
    """In whatever order a file system lists them: a free place at the end took the name of a guest that was at work."""
    tree = tree_at(str(tmp_path))
    (tmp_path / "slots").mkdir()
    (lender,) = survey(tree, 1, 1).free
    first, second = _guest_place(tree, "1"), _guest_place(tree, "1.guest")
    assert first is not None
    assert second is not None
    first.occupy(Occupant(WorkerId("t1", "first")))
    second.occupy(Occupant(WorkerId("t1", "second")))
    Path(tree.slots, "1.guest.guest.guest").write_text('{"shim": null}')
    lender.let_go()
    by_length = partial(sorted, key=len, reverse=not nearest_first)
    monkeypatch.setattr(slots, "_names", lambda _: by_length(os.listdir(tree.slots)))
    found = survey(tree, 1, 1)
    move_guests(tree, found, QueueHolds(tree))
    assert dict(held_places(tree)) == {
        "1": Occupant(WorkerId("t1", "first")), "1.guest": Occupant(WorkerId("t1", "second")),
    }  # fmt: skip
    first.let_go()
    second.let_go()


def _guest_place(tree: TreeDir, place: str) -> Place | None:
    return guest_place(tree, place, survey(tree, 0, 0))


MOVES = """
import os, sys, time
guest, slot = sys.argv[1] + "/1.guest", sys.argv[1] + "/1"
print("ready", flush=True)
while True:
    for old, new in ((guest, slot), (slot, guest)):
        os.rename(old, new)
        time.sleep(0.001)
"""


def test_a_shim_that_is_moved_while_the_places_are_read_is_met(tmp_path: Path) -> None:
    """A reader that misses the shim would take it for a process of the worker above it, and kill it."""
    me = processes.identify(os.getpid())
    assert me is not None
    (tmp_path / "1.guest").write_text(json.dumps({"shim": me.to_json()}), encoding="ascii")
    (tmp_path / "2").write_text("", encoding="ascii")
    with subprocess.Popen([sys.executable, "-c", MOVES, str(tmp_path)], stdout=subprocess.PIPE) as mover:
        assert mover.stdout is not None
        mover.stdout.readline()
        met = [names_shim(FilePath(str(tmp_path)), me) for _ in range(2000)]
        mover.kill()
    assert met.count(False) == 0
    assert not names_shim(FilePath(str(tmp_path)), me._replace(pid=me.pid + 1))


def test_a_shim_that_is_moved_in_two_looks_in_a_row_is_met(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    me = processes.identify(os.getpid())
    assert me is not None
    (tmp_path / "1").write_text(json.dumps({"shim": me.to_json()}), encoding="ascii")
    looks = iter([True, True])

    def read_while_it_is_moved(path: FilePath) -> bytes:
        if not next(looks, False):
            return read_bytes(path)
        os.rename(path, tmp_path / "1.guest")
        try:
            return read_bytes(path)
        finally:
            os.rename(tmp_path / "1.guest", path)

    monkeypatch.setattr(places, "read_bytes", read_while_it_is_moved)  # Only the moment: file and error are real.
    assert names_shim(FilePath(str(tmp_path)), me)


def test_a_worker_beyond_the_slots_has_none_by_a_start_that_was_cut_off(tmp_path: Path) -> None:
    """Its launch would begin beside as many others as the cap allows."""
    tree = tree_at(str(tmp_path))
    (tmp_path / "slots").mkdir()
    ahead = WorkerId("t1", "ahead")
    cut_off = survey(tree, 1, 1).free[0]
    cut_off.occupy(Occupant(ahead))
    cut_off.let_go()
    found = survey(tree, 0, 0)
    place = guest_place(tree, "ahead-1", found)
    assert place is not None
    place.occupy(Occupant(ahead))
    assert [name for name, _ in held_places(tree)].count("1") == 1
    assert not has_slot(tree, ahead)
    found = survey(tree, 1, 1)
    move_guests(tree, found, QueueHolds(tree))
    assert has_slot(tree, ahead)
    place.let_go()
