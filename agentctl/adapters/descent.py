"""Descent among processes: the children of a process, all below it, and those above it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from functools import cache

from agentctl.adapters import processes
from agentctl.adapters.opening import read_bytes
from agentctl.lean import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import TypeVar

    T = TypeVar("T")

#: A process and those above it, nearest first, each with its start.
Ancestry = list[tuple[int, int]]
#: How often a look at a line is repeated: a worker can have as many processes above one end as it likes.
_TRIES = 4


@cache
def _has_children_files() -> bool:
    """Return whether the kernel lists the children of a thread (CONFIG_PROC_CHILDREN)."""
    return os.path.exists(f"/proc/self/task/{os.getpid()}/children")


def child_processes(pid: int) -> list[int]:
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
            waiting += child_processes(pid) if table is None else table.get(pid, [])


def ancestry_of(pid: int) -> Ancestry:
    """Return a process and all above it, up to the first that is hidden (hidepid in proc(5)); [] where it is gone.

    None is missing that is above it before and after this look. One that ends meanwhile leaves its children to another
    one above it before it is gone (exit_notify in kernel/exit.c): they are asked again.
    """
    line: Ancestry = []
    missing = 0
    while pid > 0:
        stat = processes.read_stat(pid)
        if stat is not None and all(pid != below for below, _ in line):
            line.append((pid, stat.start))
            pid = stat.ppid
        elif not line or pid == missing:  # Whoever names it once more has a parent that this user may not see.
            return line
        else:
            missing, (pid, _) = pid, line.pop()
    return line


def pids_above(pid: int) -> list[int]:
    """Return the pids of the processes above one, nearest first."""
    return [above for above, _ in ancestry_of(pid)[1:]]


def judged(pid: int, look: Callable[[Ancestry], T]) -> T | None:
    """Return what a look at the line of a process finds, which is [] where it is gone; None if those in it keep ending.

    What is asked of a process that has just ended, such as its environment, hides what it was. So only a look counts
    before and after which the line is the same.
    """
    line = ancestry_of(pid)
    for _ in range(_TRIES):
        found, before = look(line), line
        line = ancestry_of(pid)
        if line == before:
            return found
    return None


def reap_all_but(pid: int) -> list[int]:
    """Reap the children of this process that have ended, except for `pid`; return those that there were before."""
    children = own_children()
    for child in children:
        if child != pid:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(child, os.WNOHANG)
    return children
