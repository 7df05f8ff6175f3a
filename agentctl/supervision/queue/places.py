"""The places to run in: the file of a place names its occupant, whose shim holds the lock on that file."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator

from agentctl.adapters import processes
from agentctl.adapters.files import json_in, read_known, storage_errors, write_in_place
from agentctl.adapters.opening import OddFile, read_bytes
from agentctl.adapters.paths import FilePath
from agentctl.adapters.processes import Identity
from agentctl.domain.names import WorkerId, is_name
from agentctl.errors import Damaged
from agentctl.lean import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from typing import TypeVar

    _T = TypeVar("_T")

#: How many looks are made at places that keep changing; each takes less than a millisecond.
_MOST_LOOKS = 100


class Occupant(NamedTuple):
    """The worker to which a place was given, with its shim."""

    worker_id: WorkerId
    shim: Identity | None = None


class Place(NamedTuple):
    """A slot or guest place that is held: the lock is on the file, whatever its name is by now."""

    fd: int

    def occupy(self, occupant: Occupant) -> None:
        """Write down the occupant. Overwritten in place: a rename would leave the lock on the old file."""
        head, shim = head_for(occupant.worker_id), processes.identity_text(occupant.shim)
        write_in_place(self.fd, b'%b, "shim": %b}\n' % (head, shim))

    def vacate(self, shim: Identity | None) -> None:
        """Give the place back.

        Its file keeps naming the shim, which may be about to take another worker. Otherwise the sweep of a worker
        further up would take the shim, which no place names, for a process of its own worker.
        """
        with contextlib.suppress(OSError):
            write_in_place(self.fd, b'{"shim": %b}\n' % processes.identity_text(shim) if shim else b"")
        os.close(self.fd)

    def let_go(self) -> None:
        """Close this process's descriptor: the place is free then, unless a shim holds it as well."""
        os.close(self.fd)


def head_for(worker_id: WorkerId) -> bytes:
    """Return the beginning of a place's file that names this worker, as `Place.occupy` writes it."""
    return f'{{"taskId": "{worker_id.task_id}", "instance": "{worker_id.instance}"'.encode()


def place_head(data: bytes) -> bytes:
    """Return the part of a place's file that `head_for` makes; JSON is not parsed."""
    return data[: data.find(b', "shim"')]


def is_slot(name: str) -> bool:
    """Return whether a name is that of a slot: nothing but the digits 0 to 9."""
    return name.isascii() and name.isdecimal()


def occupants_in(slots: FilePath) -> Iterator[tuple[str, Occupant]]:
    """Yield (name, occupant) of each place of a tree, of any kind, that names an occupant."""
    for name, value in _files_in(slots):
        occupant = _occupant_from(value)
        if occupant is not None:
            yield name, occupant


def names_shim(slots: FilePath, shim: Identity) -> bool:
    """Return whether any place of a tree, even one that was given back, names a shim."""
    return _found_in(slots, lambda value: processes.identity_from(value.get("shim")) == shim or None) is not None


def occupant_by_shim(slots: FilePath, shim: Identity | None) -> Occupant | None:
    """Return the occupant of the place of a tree that names this shim."""

    def found(value: dict[str, Any]) -> Occupant | None:
        occupant = _occupant_from(value)
        return occupant if occupant is not None and occupant.shim == shim else None

    return _found_in(slots, found)


def shim_beside(slots: FilePath, worker_id: WorkerId) -> Identity | None:
    """Return the shim that a tree's places name for a worker."""

    def found(value: dict[str, Any]) -> Identity | None:
        occupant = _occupant_from(value)
        return occupant.shim if occupant is not None and occupant.worker_id == worker_id else None

    return _found_in(slots, found)


def _found_in(slots: FilePath, find: Callable[[dict[str, Any]], _T | None]) -> _T | None:
    """Return the first result of `find` in the places of a tree; None only if at one moment no place had any.

    A process that changes the places holds the queue's lock, but a reader mostly does not. A place that is renamed
    during a look may be met under neither name, and one that is read while it is written is not JSON. So nothing counts
    as absent before two looks in a row have read the same, and all that was listed: with two renames both may miss one.
    """
    before: dict[str, bytes | None] | None = None
    for _ in range(_MOST_LOOKS):
        read = dict(_read_in(slots))
        for name, data in read.items():
            with contextlib.suppress(Damaged, OddFile):
                found = find(json_in(data or b"", slots / name))
                if found is not None:
                    return found
        if read == before and None not in read.values():
            break
        before = read
    return None


def _read_in(slots: FilePath) -> Iterator[tuple[str, bytes | None]]:
    """Yield each place and what it holds; None where it has gone, or got another name, since it was listed."""
    for name in _names_in(slots):
        data: bytes | None
        with storage_errors(slots / name, "read"):
            try:
                data = read_bytes(slots / name)
            except FileNotFoundError:
                data = None
            except (NotADirectoryError, OddFile):
                data = b""
        yield name, data


def _files_in(slots: FilePath) -> Iterator[tuple[str, dict[str, Any]]]:
    for name in _names_in(slots):
        yield name, read_known(slots / name)


def _names_in(slots: FilePath) -> list[str]:
    with storage_errors(slots, "look into"):
        try:
            return os.listdir(slots)
        except (FileNotFoundError, NotADirectoryError):
            return []


def read_occupant(path: FilePath) -> Occupant | None:
    """Return the occupant that a place names; None if it names none."""
    return _occupant_from(read_known(path))


def _occupant_from(value: dict[str, Any]) -> Occupant | None:
    task_id, instance = str(value.get("taskId")), str(value.get("instance") or "")
    if not is_name(task_id) or not is_name(instance):  # A path could lead anywhere.
        return None
    return Occupant(WorkerId(task_id, instance), processes.identity_from(value.get("shim")))
