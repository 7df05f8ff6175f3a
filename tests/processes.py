"""Looks at processes that may end at any moment: one that has ended has no command line, no sockets, no children."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import psutil

T = TypeVar("T")


def words_of(process: psutil.Process) -> list[str]:
    """Return the command line of a process, word by word."""
    return _told_by(process.cmdline, [])


def variables_of(process: psutil.Process) -> dict[str, str]:
    """Return the environment that a process was started with."""
    return _told_by(process.environ, {})


def name_of(process: psutil.Process) -> str:
    """Return the name of a process, as `ps` shows it."""
    return _told_by(process.name, "")


def connections_of(process: psutil.Process, kind: str = "inet") -> list[Any]:
    """Return the sockets of a process, of one of psutil's kinds, as psutil tells them."""
    return _told_by(lambda: process.net_connections(kind=kind), [])


def files_of(process: psutil.Process) -> list[str]:
    """Return the paths of the files that a process has open."""
    return _told_by(lambda: [one.path for one in process.open_files()], [])


def children_of(process: psutil.Process, *, recursive: bool = False) -> list[psutil.Process]:
    """Return the children of a process, and theirs if asked for."""
    return _told_by(lambda: process.children(recursive=recursive), [])


def has_ended(process: psutil.Process) -> bool:
    """Return whether a process is gone, or a zombie."""
    return _told_by(process.status, psutil.STATUS_DEAD) in {psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD}


def _told_by(question: Callable[[], T], nothing: T) -> T:
    try:
        return question()
    except psutil.Error:
        return nothing
