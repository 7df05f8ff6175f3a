"""Makes the folder of settings that a program is given in place of the person's, for as long as it runs.

It lies in the worker's folder, behind its walls. What may hold secrets lies in memory, held by a lock: what a killed
host has left there is removed by the next one that makes such a folder.
"""

from __future__ import annotations

import contextlib
import fcntl
import glob
import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from fnmatch import fnmatch
from urllib.parse import quote

from agentctl.adapters.files import make_folder, make_folders, write_all
from agentctl.adapters.opening import open_plain
from agentctl.adapters.paths import FilePath
from agentctl.adapters.personal import home_folder
from agentctl.adapters.taskdir import WorkerDir, names_in
from agentctl.domain.agent.own_tools import SERVER
from agentctl.drivers.dialogue import HomeFolder
from agentctl.drivers.order import Order
from agentctl.errors import AgentctlError, Refused
from agentctl.supervision.worker.environment import store_folder

_PREFIX = "home-"
#: What is left of a database that a program has open.
_OF_DATABASES = ("-journal", "-shm", "-wal")
_MOST_BYTES = 4 << 20
_MOST_LEFT = 10_000
#: How long the program may take to make its databases.
_DATABASES_S = 120


class OwnHome:
    """The settings of one worker's program; they are gone at the end."""

    def __init__(self, worker: WorkerDir, folder: HomeFolder) -> None:
        self.worker, self.folder = worker, folder
        self._held: list[tuple[int, str]] = []

    def given(self, order: Order) -> tuple[Order, str | None]:
        """Make them; return the order with them, or why that is not possible."""
        try:
            return self._made(order), None
        except AgentctlError as error:
            return order, f"{error.message}" + (f" ({error.hint})" if error.hint else "")
        except OSError as error:
            return order, f"its own settings cannot be made: {error}"

    def end(self) -> None:
        """Remove them."""
        for fd, folder in self._held:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(fd)
        self._held = []
        with contextlib.suppress(AgentctlError):
            shutil.rmtree(self.worker.home, ignore_errors=True)

    def _made(self, order: Order) -> Order:
        folder = self.folder
        persons = _persons(folder)
        own = self.worker.home
        shutil.rmtree(own, ignore_errors=True)  # Of an earlier attempt.
        make_folder(own)
        home = {
            "variable": folder.variable, "own": os.path.realpath(own), "persons": persons,
            "resolved": os.path.realpath(persons),
        }  # fmt: skip
        servers = {name: _told(name, server, folder.variable, persons) for name, server in order.mcp_servers.items()}
        order = order._replace(home=home, mcp_servers=servers)
        replaced = folder.replaced(order, dict(_read(persons, folder.reads)))
        self._copy_databases(order, replaced.databases)
        _link(persons, own, folder)
        for name, data in replaced.files.items():
            place = os.path.join(own, name)
            make_folders(os.path.dirname(place))
            if name in folder.secret:
                os.symlink(self._in_memory(f"{own}/{name}", data), place)
            else:
                _write(place, data)
        return order._replace(home={**home, "notes": list(replaced.notes)})

    def _copy_databases(self, order: Order, databases: str) -> None:
        """Copy the person's databases; where there are none yet, the program makes them first."""
        pattern = self.folder.copied
        if not glob.glob(pattern, root_dir=databases):
            with contextlib.suppress(OSError, subprocess.SubprocessError):
                subprocess.run(
                    self.folder.makes_databases(order), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL, timeout=_DATABASES_S, check=False,
                )  # fmt: skip
        for name in glob.glob(pattern, root_dir=databases):
            _copy(os.path.join(databases, name), self.worker.home / name)

    def _in_memory(self, place: str, data: bytes) -> str:
        """Keep data in memory for as long as this process lives, and remove what others have left; return its path.

        It lies in a folder of its own, which is locked: the program may replace the file by another one.
        """
        store = store_folder()
        _sweep(store)
        folder = store / f"{_PREFIX}{hashlib.sha256(place.encode()).hexdigest()[:32]}"
        shutil.rmtree(folder, ignore_errors=True)  # Of an earlier attempt.
        self._held.append((_held_new(folder), str(folder)))
        path = os.path.join(folder, os.path.basename(place))
        _write(path, data)
        return path


def _persons(folder: HomeFolder) -> str:
    """Return the person's own folder; a usual one that is missing is made, as the program would do."""
    named = os.environ.get(folder.variable)
    path = os.path.abspath(named or os.path.join(home_folder(os.environ), folder.usual))
    if not named:
        make_folders(path)
    if not os.path.isdir(path):
        raise Refused(
            f"{folder.variable} is {path}, and there is no folder at that path",
            hint=f"make it, or unset {folder.variable}",
        )
    return path


def _read(persons: str, names: Iterable[str]) -> Iterable[tuple[str, bytes]]:
    """Yield the files that there are; a person may keep them elsewhere, and link to them."""
    for pattern in names:
        for path in sorted(glob.glob(pattern, root_dir=persons)):
            with open(os.path.join(persons, path), "rb") as file:
                data = file.read(_MOST_BYTES + 1)
            if len(data) > _MOST_BYTES:
                raise Refused(f"{os.path.join(persons, path)} is larger than {_MOST_BYTES} bytes")
            yield path, data


def _copy(database: str, copy: FilePath) -> None:
    """Copy a database that others may be writing; without a copy, the program makes one of its own."""
    try:
        import sqlite3
    except ImportError:
        return
    try:
        reading = sqlite3.connect(f"file:{quote(database)}?mode=ro", uri=True)
        with contextlib.closing(reading) as found, contextlib.closing(sqlite3.connect(copy)) as made:
            found.backup(made)
    except sqlite3.Error:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(copy)


def _link(persons: str, own: FilePath, folder: HomeFolder) -> None:
    """Have all else lead to what the person has, and to what the program may make there."""
    for name in folder.folders:
        os.makedirs(os.path.join(persons, name), mode=0o700, exist_ok=True)
    for name in {*os.listdir(persons), *folder.files} - {*folder.omitted}:
        if not name.endswith(_OF_DATABASES) and not fnmatch(name, folder.copied):
            os.symlink(os.path.join(persons, name), os.path.join(own, name))


def _told(name: str, server: Mapping[str, object], variable: str, persons: str) -> Mapping[str, object]:
    """Return our server as one that works for the person, whose settings those are: it starts other agents."""
    environ = server.get("env")
    if name != SERVER or not isinstance(environ, Mapping):
        return server
    return {**server, "env": {**environ, variable: persons}}


def _write(path: str, data: bytes) -> None:
    fd = open_plain(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        write_all(fd, data)
    finally:
        os.close(fd)


def _held_new(folder: FilePath) -> int:
    """Make a folder and lock it; whoever sweeps may have taken it for one that is left, before it was locked."""
    while True:
        make_folder(folder)
        with contextlib.suppress(FileNotFoundError):
            fd = _open_folder(folder)
            fcntl.flock(fd, fcntl.LOCK_EX)
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(fd), os.stat(folder)):
                    return fd
            os.close(fd)


def _sweep(store: FilePath) -> None:
    """Remove what no process holds."""
    for name in names_in(store, _MOST_LEFT):
        if name.startswith(_PREFIX):
            with contextlib.suppress(OSError):
                _remove_left(store / name)


def _remove_left(folder: FilePath) -> None:
    fd = _open_folder(folder)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(fd)


def _open_folder(folder: FilePath) -> int:
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
