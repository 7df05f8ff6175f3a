"""What a test has changed in the process that runs it: the tests behind it run there, too."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
from collections.abc import Iterator
from typing import Any

#: Those that tests of this project set.
_LIMITS = (resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE, resource.RLIMIT_NPROC, resource.RLIMIT_CORE)
#: Those that agentctl handles, or that tests ignore.
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE, signal.SIGCHLD)


def inherited() -> dict[str, Any]:
    """Return what a program that this process starts would inherit, but for the environment and open files."""
    mask = os.umask(0o077)
    os.umask(mask)
    return {
        "working folder": os.getcwd(),
        "umask": oct(mask),
        "limits": [resource.getrlimit(limit) for limit in _LIMITS],
        "signals": {number.name: signal.getsignal(number) for number in _SIGNALS},
        "blocked signals": signal.pthread_sigmask(signal.SIG_BLOCK, ()),
    }


@contextlib.contextmanager
def environment_restored() -> Iterator[None]:
    """Undo at the end whatever was done to the environment meanwhile."""
    before = dict(os.environ)
    try:
        yield
    finally:
        for name in os.environ.keys() - before.keys():
            del os.environ[name]
        os.environ.update(before)
