"""Seats: where somebody works, which is a terminal, or a script that runs without one; a session of setsid(2).

A seat is named by the identity of the process that leads the session. The kernel gives the number of that process to no
other one while the session has any, so a name never comes to mean another seat.
"""

from __future__ import annotations

import os
import re

from agentctl.adapters.files import storage_errors
from agentctl.adapters.processes import boot_id, identify, machine_id, pid_namespace

#: MACHINE.BOOT.NAMESPACE.PID.START, which is the name of a file, too.
_NAME = re.compile(r"([\w-]+)\.([\w-]+)\.([\w-]+)\.([0-9]+)\.([0-9]+)", re.ASCII)
_OTHERS = re.compile(r"[^\w-]+", re.ASCII)
_LONGEST = 200


def own_seat() -> str | None:
    """Return the name of the seat of this process; None where who leads its session is gone, or hidden from here.

    Raises:
        StorageError: It is not known whether it is gone: this process has no free descriptor, for example.
    """
    return None if boot_id() == "unknown" else _led_by(os.getsid(0))


def is_seat(text: str) -> bool:
    """Return whether a text is the name of a seat."""
    return len(text) <= _LONGEST and _NAME.fullmatch(text) is not None


def is_left(name: str, seen_from: str) -> bool:
    """Return whether nobody sits there any more; False where that cannot be known from here.

    Args:
        seen_from: A seat that is in use, perhaps on another machine: those of an earlier boot of its machine are left.
    """
    found, other = _NAME.fullmatch(name), _NAME.fullmatch(seen_from)
    if found is None:
        return False
    machine, boot, namespace, pid, _ = found.groups()
    here = (_plain(machine_id()), _plain(boot_id()), _plain(pid_namespace()))
    boots = {here[0]: here[1]} | ({} if other is None else {other[1]: other[2]})
    if boots.get(machine, boot) != boot:
        return True
    return (machine, boot, namespace) == here and _led_by(int(pid)) != name


def _led_by(pid: int) -> str | None:
    """Return the name of the seat of which a process leads the session; None where there is none, or it is hidden."""
    if pid <= 0:  # It is outside of our pid namespace (pid_namespaces(7)).
        return None
    with storage_errors(f"/proc/{pid}/stat", "read"):
        try:
            first = identify(pid)
        except PermissionError:
            return None
    name = "" if first is None else ".".join(_plain(str(part)) for part in first)
    return name if is_seat(name) else None


def _plain(text: str) -> str:
    return _OTHERS.sub("_", text).strip("_")
