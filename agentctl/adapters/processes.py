"""Processes: their identity, whether they live, what /proc says of them, and signals that reach no other process.

A pid alone identifies nothing, since it is reused. An identity is machine + boot + pid namespace + pid + start ticks.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import struct
import sys
from collections.abc import Iterable
from enum import Enum
from functools import cache, lru_cache

from agentctl.adapters.files import storage_errors
from agentctl.adapters.signals import signal
from agentctl.lean import Any, NamedTuple

LINUX = sys.platform == "linux"


class Identity(NamedTuple):
    """The only safe name of a process."""

    machine: str
    boot: str
    pid_namespace: str
    pid: int
    #: Clock ticks since boot (Linux) or epoch seconds (elsewhere); does not move with the wall clock on Linux.
    start: int

    def to_json(self) -> dict[str, Any]:
        """Return it as shim.json and worker.json have it."""
        return {
            "machine": self.machine,
            "boot": self.boot,
            "pidNamespace": self.pid_namespace,
            "pid": self.pid,
            "start": self.start,
        }


@lru_cache(maxsize=2)
def identity_text(identity: Identity | None) -> bytes:
    """Return an identity as JSON, `null` for none; cached, since a shim writes its own for each worker."""
    return json.dumps(identity.to_json() if identity else None).encode()


class Life(Enum):
    """Whether the process of an identity lives, as far as that can be judged from here."""

    ALIVE = "alive"
    GONE = "gone"
    #: Another machine or pid namespace: it cannot be judged from here.
    ELSEWHERE = "elsewhere"


def identity_from(value: object) -> Identity | None:
    """Return the identity in a file's value; None where there is none."""
    if not isinstance(value, dict):
        return None
    try:
        identity = Identity(
            value["machine"], value["boot"], value["pidNamespace"], int(value["pid"]), int(value["start"])
        )
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
    return identity if identity.pid > 1 else None


@cache
def machine_id() -> str:
    """Return the machine's own id; the host's name where it has none."""
    for path in ("/etc/machine-id", "/var/lib/dbus/machine-id"):
        text = _read_text(path)
        if text:
            return text
    return os.uname().nodename


@cache
def boot_id() -> str:
    """Return an id that changes with every boot."""
    text = _read_text("/proc/sys/kernel/random/boot_id")
    if text:
        return text
    with contextlib.suppress(FileNotFoundError):  # A system without that program.
        text = _ask("sysctl", "-n", "kern.bootsessionuuid")
    return text or "unknown"


@cache  # It never changes: unshare(2) and setns(2) move only a process's children.
def pid_namespace() -> str:
    """Return the pid namespace of this process; pids of another one mean nothing here (pid_namespaces(7))."""
    try:
        return os.readlink("/proc/self/ns/pid")
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return "none"


def user_of(pid: int) -> int | None:
    """Return the user as whom a process acts; the owner of its folder does not say so if it is closed."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/status", "rb") as file:
        return next((int(row.split()[2]) for row in file if row.startswith(b"Uid:")), None)
    return None


#: The namespace that the system began with always has this number (linux/proc_ns.h, PROC_PID_INIT_INO).
INITIAL_NAMESPACE = "pid:[4026531836]"
#: Programs that are process 1 of a sandbox and of nothing else.
_SANDBOX_INITS = frozenset({"bwrap", "codex-linux-san", "codex-linux-sandbox"})


@cache
def is_in_sandbox() -> bool:
    """Return whether process 1, as seen from here, is the init of a sandbox."""
    return _read_text("/proc/1/comm").strip() in _SANDBOX_INITS


def _read_text(path: str) -> str:
    """Return the text that the system has in a file; empty where it has none, or shows none to this process."""
    try:
        return _content_of(path).decode("ascii").strip()
    except UnicodeDecodeError:
        return ""


def _content_of(path: str) -> bytes:
    """Return what the system has in a file; empty where it has none, or shows none to this process.

    Raises:
        StorageError: It is not known what is there: this process has no free descriptor, for example.
    """
    with storage_errors(path, "read"):
        try:
            with open(path, "rb") as file:
                return file.read()
        except (FileNotFoundError, NotADirectoryError, ProcessLookupError, PermissionError):
            return b""


def _ask(*argv: str) -> str:
    """Return what a program prints; for systems without /proc.

    Raises:
        OSError: It cannot be run: what it would have said is not known, and not nothing.
    """
    import subprocess

    from agentctl.adapters.searchpath import OF_THE_SYSTEM

    environ = {"PATH": OF_THE_SYSTEM, "LC_ALL": "C"}
    return os.fsdecode(subprocess.run(argv, env=environ, capture_output=True, check=False).stdout).strip()


#: Of the flags of a task (include/linux/sched.h).
_PF_EXITING = 0x4


class Stat(NamedTuple):
    """The fields of /proc/PID/stat that are used."""

    state: str
    ppid: int
    session: int
    start: int
    #: Clock ticks of processor time, with those of the children that it has waited for; only on Linux.
    cpu: int = 0


def read_stat(pid: int) -> Stat | None:
    """Return the stat of a process; None where there is none (proc_pid_stat(5), fields 3 to 6, 14 to 17, 20 and 22)."""
    if not LINUX:
        return _read_stat_by_ps(pid)
    fields = _stat_fields(pid)
    if not fields:
        return None
    state, cpu = fields[0].decode(), sum(map(int, fields[11:15]))
    if state == "Z" and int(fields[17]) > 1:  # Its first thread has ended, and others may run on.
        state = next((thread[0].decode() for thread in _threads_of(pid) if thread[0] not in b"ZX"), state)
    return Stat(state, int(fields[1]), int(fields[3]), int(fields[19]), cpu)


def is_exiting(pid: int) -> bool:
    """Return whether a process is gone, or about to be: each of its threads is in exit(2) and runs no program any more.

    By then its memory has been given back, so its command line and environment are empty. How long it takes depends on
    what the kernel has to close (PF_EXITING of the flags in field 9, include/linux/sched.h); false where that is not
    known.
    """
    return LINUX and all(int(thread[6]) & _PF_EXITING for thread in _threads_of(pid))


def _threads_of(pid: int) -> list[list[bytes]]:
    """Return the fields of the stat of each thread of a process; those of a process have its first thread's state."""
    try:
        names = os.listdir(f"/proc/{pid}/task")
    except (FileNotFoundError, ProcessLookupError):
        return []
    return list(filter(None, (_stat_fields(f"{pid}/task/{name}") for name in names)))


def switches_of(pid: int) -> int | None:
    """Return how often the threads of a process have given up a processor; None where that cannot be read.

    The count grows with anything that a process does. Only a process that sleeps on is never switched
    (proc_pid_status(5)).
    """
    found = 0
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/status", "rb") as file:
                found += sum(int(row.split()[1]) for row in file if b"voluntary_ctxt_switches:" in row[:27])
    except (OSError, ValueError, IndexError):
        return None
    return found


def _stat_fields(pid: int | str) -> list[bytes]:
    """Return the fields of /proc/PID/stat from the third on; [] where there is no such process (or PID/task/TID).

    The name in field 2 may hold spaces and parentheses, so the fields are counted from the last `)`.
    """
    try:
        fd = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, ProcessLookupError):
        return []
    try:
        data = os.read(fd, 4096)
    except ProcessLookupError:
        return []
    finally:
        os.close(fd)
    return data[data.rindex(b")") + 2 :].split()


def _read_stat_by_ps(pid: int) -> Stat | None:
    row = _ask("ps", "-o", "state=,ppid=,lstart=", "-p", str(pid)).split(None, 2)
    if len(row) < 3:
        return None
    import time

    started = int(time.mktime(time.strptime(row[2].strip(), "%a %b %d %H:%M:%S %Y")))
    with contextlib.suppress(ProcessLookupError):
        return Stat(row[0][0], int(row[1]), os.getsid(pid), started)
    return None


def identify(pid: int) -> Identity | None:
    """Return the identity of a process that lives here; None where there is none."""
    stat = read_stat(pid)
    return stat and Identity(machine_id(), boot_id(), pid_namespace(), pid, stat.start)


def life_of(identity: Identity) -> Life:
    """Return whether a process lives; a zombie has ended."""
    if identity.machine != machine_id():
        return Life.ELSEWHERE
    if identity.boot != boot_id():
        return Life.GONE
    if identity.pid_namespace != pid_namespace():
        return Life.ELSEWHERE
    stat = read_stat(identity.pid)
    alive = stat is not None and stat.start == identity.start and stat.state not in "ZX"
    return Life.ALIVE if alive else Life.GONE


def open_pidfd(identity: Identity) -> int | None:
    """Return a pidfd of exactly this process, readable once it has ended; None where it is gone or cannot be judged.

    The start time is checked after the open, which may have met a reused pid.
    """
    if not hasattr(os, "pidfd_open") or life_of(identity) is not Life.ALIVE:
        return None
    try:
        fd = os.pidfd_open(identity.pid)
    except ProcessLookupError:
        return None
    if life_of(identity) is Life.ALIVE:
        return fd
    os.close(fd)
    return None


# struct pidfd_info of the first version, 64 bytes: mask, cgroup id, eleven ids, exit_code; ioctl 11 of pidfs (0xFF).
_PIDFD_INFO = struct.Struct("QQ11Ii")
_PIDFD_GET_INFO = 3 << 30 | _PIDFD_INFO.size << 16 | 0xFF << 8 | 11
_PIDFD_INFO_EXIT = 1 << 3


def exit_of(identity: Identity, pidfd: int) -> tuple[int, int] | None:
    """Return si_code and si_status of an ended process that is not our child, from a pidfd opened while it lived.

    A zombie has them in its stat (field 52, for processes that may trace it); a reaped one in its pidfd, since Linux
    6.15. None where neither has them. Source: proc_pid_stat(5), include/uapi/linux/pidfd.h.
    """
    fields = _stat_fields(identity.pid)
    if fields and fields[0] == b"Z" and int(fields[19]) == identity.start:
        return _si_of(int(fields[49]))
    data = bytearray(_PIDFD_INFO.pack(_PIDFD_INFO_EXIT, *[0] * 13))
    try:
        fcntl.ioctl(pidfd, _PIDFD_GET_INFO, data)
    except OSError:
        return None
    mask, *_, status = _PIDFD_INFO.unpack(data)
    return _si_of(status) if mask & _PIDFD_INFO_EXIT else None


def _si_of(status: int) -> tuple[int, int]:
    """Return a wait status as the si_code and si_status of waitid(2)."""
    exited = os.WIFEXITED(status)
    return (os.CLD_EXITED, os.WEXITSTATUS(status)) if exited else (os.CLD_KILLED, os.WTERMSIG(status))


def signal_process(identity: Identity, number: int) -> bool:
    """Signal exactly the process of an identity; return whether it was still there.

    Raises:
        PermissionError: It belongs to somebody else.
    """
    if not hasattr(os, "pidfd_open"):
        if life_of(identity) is not Life.ALIVE:
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(identity.pid, number)
            return True
        return False
    fd = open_pidfd(identity)
    if fd is None:
        return False
    try:
        signal.pidfd_send_signal(fd, number)
    except ProcessLookupError:
        return False
    finally:
        os.close(fd)
    return True


class EndedChild(NamedTuple):
    """A child that has ended and is not yet reaped: si_code and si_status of waitid(2)."""

    pid: int
    code: int
    status: int


def ended_child() -> EndedChild | None:
    """Return a child that has ended, left as a zombie; None where none has."""
    try:
        info = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return None
    return EndedChild(info.si_pid, info.si_code, info.si_status) if info is not None else None


def all_pids() -> list[int]:
    """Return the pids of all visible processes."""
    if LINUX:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return [int(pid) for pid in _ask("ps", "-A", "-o", "pid=").split()]


def environment_of(pid: int) -> dict[bytes, bytes]:
    """Return the environment that a process was started with; {} where it cannot be read."""
    found = {}
    for entry in _content_of(f"/proc/{pid}/environ").split(b"\0"):
        name, mark, value = entry.partition(b"=")
        if mark:
            found[name] = value
    return found


def command_line_of(pid: int) -> list[str]:
    """Return the arguments of a process; [] where it is gone or a zombie."""
    if not LINUX:
        return _ask("ps", "-o", "args=", "-p", str(pid)).split()
    return [os.fsdecode(part) for part in _content_of(f"/proc/{pid}/cmdline").split(b"\0")[:-1]]


def is_mounted_over(path: str) -> bool:
    """Return whether something is mounted at a path without links for any process that can be looked at.

    That may be in a mount namespace of its own, as in a sandbox.
    """
    escaped = os.fsencode(path)
    for byte in b"\\ \t\n":  # As in proc_pid_mountinfo(5).
        escaped = escaped.replace(bytes([byte]), b"\\%03o" % byte)
    seen = set()
    for pid in all_pids() if LINUX else ():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError, PermissionError):  # Gone, or somebody else's.
            namespace = os.readlink(f"/proc/{pid}/ns/mnt")
            if namespace in seen:
                continue
            rows = _content_of(f"/proc/{pid}/mountinfo").splitlines()
            if any(row.split(b" ", 5)[4] == escaped for row in rows):
                return True
            if rows:
                seen.add(namespace)
    return False


def names_of(pid: int) -> tuple[str, str]:
    """Return what the kernel calls a process, and the path of its program; "" where it cannot be read."""
    if not LINUX:
        with contextlib.suppress(OSError):
            return "", _ask("ps", "-o", "comm=", "-p", str(pid))
        return "", ""
    program = ""
    with contextlib.suppress(OSError):
        program = os.readlink(f"/proc/{pid}/exe")
    return _read_text(f"/proc/{pid}/comm"), program


def wait_readable(fds: Iterable[int], timeout_s: float | None) -> list[int]:
    """Sleep until one of `fds` is readable or time is up; return the readable ones."""
    poll = select.poll()
    for fd in fds:
        poll.register(fd, select.POLLIN)
    milliseconds = None if timeout_s is None else max(0, round(timeout_s * 1000 + 0.5))
    return [fd for fd, _ in poll.poll(milliseconds)]
