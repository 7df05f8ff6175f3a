"""Descent among processes: the children of a process, all below it, and those above it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from functools import cache

from agentctl.adapters import processes
from agentctl.adapters.opening import read_bytes


@cache
def _has_children_files() -> bool:
    """Return whether the kernel lists the children of a thread (CONFIG_PROC_CHILDREN)."""
    return os.path.exists(f"/proc/self/task/{os.getpid()}/children")


def children_of(pid: int) -> list[int]:
    """Return the children of a process, zombies too; [] where it is gone."""
    if not _has_children_files():
        return child_table().get(pid, [])
    found: list[int] = []
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            found += map(int, read_bytes(f"/proc/{pid}/task/{thread}/children").split())
    return found


def own_children() -> list[int]:
    """Return the children of this process, which must have a single thread (proc_tid_children(5))."""
    if not _has_children_files():
        return child_table().get(os.getpid(), [])
    return [int(pid) for pid in read_bytes("/proc/thread-self/children").split()]


def child_table() -> dict[int, list[int]]:
    """Return parent -> children for all processes, read in one pass."""
    table: dict[int, list[int]] = {}
    for pid in processes.all_pids():
        stat = processes.read_stat(pid)
        if stat is not None:
            table.setdefault(stat.ppid, []).append(pid)
    return table


def walk(roots: Iterable[int], skip: Iterable[int] = ()) -> Iterator[int]:
    """Yield `roots` and all below them, parents before children, but not those in `skip` nor what is below them."""
    shunned = set(skip)
    waiting = list(roots)
    table = None if _has_children_files() else child_table()
    for pid in waiting:
        if pid not in shunned:
            shunned.add(pid)
            yield pid
            waiting += children_of(pid) if table is None else table.get(pid, [])


def ancestors_of(pid: int) -> Iterator[int]:
    """Yield the pids of the processes above one, nearest first."""
    seen = {pid}
    stat = processes.read_stat(pid)
    while stat is not None and stat.ppid > 1 and stat.ppid not in seen:
        seen.add(stat.ppid)
        yield stat.ppid
        stat = processes.read_stat(stat.ppid)


def line_of(pid: int) -> list[int]:
    """Return a process and all above it that can be seen, up to the first of all, which adopts what is left behind."""
    line = [pid]
    while (stat := processes.read_stat(line[-1])) is not None and stat.ppid > 0 and stat.ppid not in line:
        line.append(stat.ppid)
    return line


def reap_all_but(pid: int) -> list[int]:
    """Reap the children of this process that have ended, except for `pid`; return those that there were before."""
    children = own_children()
    for child in children:
        if child != pid:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(child, os.WNOHANG)
    return children
