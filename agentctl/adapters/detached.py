"""Starts a program of our own that outlives its starter, with a new session, new signal settings and new files.

Its own session (setsid(2)) takes it out of the terminal and out of every process group that may be signalled. Ignored
signals (a shell's `&` ignores two) and blocked ones are inherited (execve(2)), so both are reset. Python opens all
descriptors close-on-exec (PEP 446), so the program gets only those that it is given. With `-I -S` neither the
environment nor a site folder decides what it imports.
"""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Mapping, Sequence

from agentctl.adapters.signals import signal
from agentctl.encoding import OPTIONS

#: Above all descriptors that are given, so that none is overwritten while it is still to be copied.
_SPARE_FD = 10
#: No program can catch, ignore or block them (signal(7)).
_FIXED = {signal.SIGKILL, signal.SIGSTOP}


def start_detached(
    arguments: Sequence[str],
    environ: Mapping[bytes, bytes] | Mapping[str, str],
    given: Mapping[int, int] | None = None,
    *,
    is_whole: bool = False,
) -> int:
    """Start this interpreter detached and return its pid, which the caller collects.

    Args:
        arguments: The arguments after `python -X utf8 -I -S`.
        environ: Its whole environment.
        given: Its descriptors: number there -> number here; of 0 to 2, what is not given is `/dev/null`.
        is_whole: `arguments` begin with the path of another program, which is started instead.
    """
    argv = list(arguments) if is_whole else [sys.executable, *OPTIONS, "-I", "-S", *arguments]
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    sources = {**dict.fromkeys(range(3), null), **(given or {})}
    copies: dict[int, int] = {}
    try:
        for target, source in sources.items():
            copies[target] = fcntl.fcntl(source, fcntl.F_DUPFD_CLOEXEC, _SPARE_FD)
        return os.posix_spawn(
            argv[0], argv, environ, setsid=True,
            file_actions=[(os.POSIX_SPAWN_DUP2, copy, target) for target, copy in copies.items()],
            setsigmask=[], setsigdef=sorted(signal.valid_signals() - _FIXED),
        )  # fmt: skip
    finally:
        for fd in (null, *copies.values()):
            os.close(fd)
