"""At stake: an agent's program is a door to all that its user may do, so it is open to nobody but its worker."""

from __future__ import annotations

import http.client
import os
import stat
from pathlib import Path

import psutil

from tests.agents.lab import Lab
from tests.processes import connections_of

PATIENCE_S = 10
#: The programs that listen at a port; it answers by this status whoever does not know its password.
LISTENING, UNAUTHORIZED = {"opencode"}, 401


def test_strangers(lab: Lab) -> None:
    """While it works, no other user of the machine and no page is heard by it."""
    agent = lab.spawn("ask=file")
    lab.question(agent)
    processes = lab.processes()
    answers = [asked(*place) for process in processes for place in ports(process)]
    open_sockets = [name for process in processes for name in sockets(process, lab.folder)]
    lab.cancel(agent)
    assert ({*answers}, open_sockets) == ({UNAUTHORIZED} if lab.program in LISTENING else set(), [])


def ports(process: psutil.Process) -> list[tuple[str, int]]:
    """Return the addresses at which a process listens."""
    listening = [one.laddr for one in connections_of(process) if one.status == psutil.CONN_LISTEN]
    return [(place.ip, place.port) for place in listening]


def asked(host: str, port: int) -> int | str:
    """Return the status with which a question of no name is answered, or what else happens."""
    connection = http.client.HTTPConnection(host, port, timeout=PATIENCE_S)
    try:
        connection.request("GET", "/config")
        return connection.getresponse().status
    except (http.client.HTTPException, OSError) as error:
        return repr(error)
    finally:
        connection.close()


def sockets(process: psutil.Process, home: Path) -> list[str]:
    """Return the names of a process's sockets in the file system, or beside it, to which other users have a way."""
    names = {str(one.laddr) for one in connections_of(process, kind="unix")} - {""}
    return sorted(name for name in names if not name.startswith("/") or is_open(Path(name), home))


def is_open(path: Path, home: Path) -> bool:
    """Whether neither a socket nor a folder above it is closed to others; what is above a test's is not counted."""
    places = {path, *path.parents} - {*home.parents}
    try:
        return all(os.lstat(place).st_mode & (stat.S_IRWXO | stat.S_IRWXG) for place in places)
    except FileNotFoundError:
        return False  # Its process has ended since it was asked.
