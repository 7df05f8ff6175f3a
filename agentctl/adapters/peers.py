"""Which processes hold the other end of a TCP connection of this machine, as Linux tells it; elsewhere nothing does.

The kernel lists the sockets of this network namespace in /proc/net/tcp and tcp6 (proc_pid_net(5)), each with its inode.
A descriptor of a process leads to it by the name `socket:[INODE]`. Several processes may hold one socket: a fork shares
it, and a message of a Unix socket can carry it.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import socket
import sys
from collections.abc import Iterator

from agentctl.adapters import processes
from agentctl.lean import NamedTuple

#: A search through more descriptors than that is given up: a worker may open as many as it likes.
MOST_DESCRIPTORS = 200_000
_TABLES = {4: "/proc/net/tcp", 6: "/proc/net/tcp6"}
#: The columns of a row that are used, after both addresses (net/ipv4/tcp_ipv4.c, get_tcp4_sock).
_UID, _INODE = 4, 6
#: The state of a socket that listens (include/net/tcp_states.h).
_LISTENS = b"0A"


class Address(NamedTuple):
    """One end of a connection."""

    host: str
    port: int


class Socket(NamedTuple):
    """A socket, as the kernel lists it."""

    #: 0 once no process holds it any more.
    inode: int
    #: The user who made it; of one that no process holds, this says nothing.
    uid: int


class Holders(NamedTuple):
    """The processes that hold a socket, as far as this process may look."""

    pids: list[int]
    #: False if the search was given up.
    is_complete: bool


def other_end(peer: Address, own: Address) -> Socket | None:
    """Return the socket at the other end of a connection; None if it is not of this network namespace.

    Args:
        peer: The address of the other end.
        own: The address of this end.
    """
    for version, near, far in _forms(peer, own):
        wanted = b" %s %s " % (near, far)
        with contextlib.suppress(OSError), open(_TABLES[version], "rb") as table:
            rows = table.read()
            found = rows.find(wanted)
            if found >= 0:
                fields = rows[found + len(wanted) :].split(None, _INODE + 1)
                return Socket(int(fields[_INODE]), int(fields[_UID]))
    return None


def listeners_at(port: int) -> list[Socket]:
    """Return the sockets that listen at a port of this network namespace, at whatever address; [] if nothing tells."""
    found: dict[int, Socket] = {}
    for place in _TABLES.values():
        with contextlib.suppress(OSError), open(place, "rb") as table:
            for row in table.read().splitlines()[1:]:
                fields = row.split()
                if fields[3] == _LISTENS and fields[1].endswith(b":%04X" % port):
                    found[int(fields[3 + _INODE])] = Socket(int(fields[3 + _INODE]), int(fields[3 + _UID]))
    return list(found.values())


def is_of_this_machine(host: str) -> bool:
    """Return whether an address is one of this network namespace: only to such a one can a socket be bound."""
    address, _, scope = host.partition("%")
    real = _unmapped(address)
    if real.is_loopback:
        return True
    family = socket.AF_INET6 if real.version == 6 else socket.AF_INET
    with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
        if real.version == 6:
            probe.bind((str(real), 0, 0, socket.if_nametoindex(scope) if scope else 0))
        else:
            probe.bind((str(real), 0))
        return True
    return False


def _unmapped(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Return an address; an IPv4 one that is written as IPv6 (::ffff:127.0.0.1) as what it is."""
    found = ipaddress.ip_address(host.partition("%")[0])
    return (found.ipv4_mapped or found) if isinstance(found, ipaddress.IPv6Address) else found


def _forms(peer: Address, own: Address) -> Iterator[tuple[int, bytes, bytes]]:
    """Yield the tables that may list a connection, each with both addresses as they are written there."""
    near, far = _unmapped(peer.host), _unmapped(own.host)
    if isinstance(near, ipaddress.IPv4Address) and isinstance(far, ipaddress.IPv4Address):
        yield 4, _written(near.packed, peer.port), _written(far.packed, own.port)
        mapped = b"\0" * 10 + b"\xff" * 2
        yield 6, _written(mapped + near.packed, peer.port), _written(mapped + far.packed, own.port)
    else:
        yield 6, _written(near.packed, peer.port), _written(far.packed, own.port)


def _written(packed: bytes, port: int) -> bytes:
    """Return an address as the tables have it: each four bytes as one number of this machine, in hexadecimal."""
    words = (int.from_bytes(packed[at : at + 4], sys.byteorder) for at in range(0, len(packed), 4))
    return b"%s:%04X" % (b"".join(b"%08X" % word for word in words), port)


def holders_of(inode: int, most: int = MOST_DESCRIPTORS) -> Holders:
    """Return the processes that hold a socket. Those of other users are found only by root."""
    found: list[int] = []
    for pid in processes.all_pids():
        descriptors = _descriptors_of(pid)
        most -= len(descriptors)
        if most < 0:
            return Holders(found, is_complete=False)
        if _leads(pid, descriptors, inode):
            found.append(pid)
    return Holders(found, is_complete=True)


def holds(pid: int, inode: int) -> bool:
    """Return whether a process holds a socket."""
    return _leads(pid, _descriptors_of(pid), inode)


def closed_ones() -> list[int]:
    """Return the processes of this user whose descriptors may not be looked at (PR_SET_DUMPABLE, prctl(2)).

    A process is closed like that if it has changed its user, as an SSH server does for a session, or if it wants to be.
    """
    return [
        pid for pid in processes.all_pids() if _is_ours(pid) and not os.access(f"/proc/{pid}/fd", os.R_OK | os.X_OK)
    ]


def _is_ours(pid: int) -> bool:
    return processes.user_of(pid) == os.geteuid()


def _descriptors_of(pid: int) -> list[str]:
    try:
        return os.listdir(f"/proc/{pid}/fd")
    except OSError:  # It has ended, or is not ours to look at.
        return []


def _leads(pid: int, descriptors: list[str], inode: int) -> bool:
    """Return whether one of the descriptors of a process leads to a socket."""
    name = f"socket:[{inode}]"
    for descriptor in descriptors:
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/{pid}/fd/{descriptor}") == name:
                return True
    return False
