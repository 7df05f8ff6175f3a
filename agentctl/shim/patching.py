"""Records at a worker's end what it changed in its worktree, by a short-lived program of its own.

So the shim stays small, and whatever git does or does not do, the worker's end is published.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping

from agentctl.adapters.clock import monotonic
from agentctl.adapters.detached import start_detached
from agentctl.adapters.git import NEEDED
from agentctl.adapters.paths import FilePath
from agentctl.adapters.signals import signal
from agentctl.adapters.taskdir import WorkerDir
from agentctl.lean import TYPE_CHECKING
from agentctl.shim.unloaded import PAUSE_S, UNLOADED

if TYPE_CHECKING:
    from agentctl.shim.wakeups import Wakeups

#: How long a worker's end waits for its patch; if that is not enough, a later command makes it.
_LIMIT_S = 20.0
_PACKAGES = str(FilePath(os.path.realpath(__file__)).parent.parent.parent)
_CODE = f"""
import sys
sys.path.insert(0, sys.argv[1])
try:
    from agentctl.shim.patching import main
    main(sys.argv[2])
except (ImportError, SyntaxError):
    sys.exit({UNLOADED})
"""
#: The program keeps to that limit itself; one that cannot is killed this much later.
_SLACK_S = 5.0
_TICK_S = 1.0


def record_patch(worker: WorkerDir, environ: Mapping[bytes, bytes], wakeups: Wakeups) -> None:
    """Have the patch made, if there is enough time; otherwise a later command makes it."""
    kept = {name: value for name, value in environ.items() if os.fsdecode(name) in NEEDED}
    until = monotonic() + _LIMIT_S + _SLACK_S
    with contextlib.suppress(OSError):
        while _made(worker, kept, wakeups, until) == UNLOADED and monotonic() < until:
            wakeups.rest(PAUSE_S)


def _made(worker: WorkerDir, environ: Mapping[bytes, bytes], wakeups: Wakeups, until: float) -> int | None:
    """Have the program run; return its exit code, or None if it did not end in time."""
    pid = start_detached(["-c", _CODE, _PACKAGES, worker.path], environ)
    while (ended := os.waitpid(pid, os.WNOHANG)) == (0, 0):
        left = until - monotonic()
        if left <= 0:
            os.killpg(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            _clear(worker)
            return None
        wakeups.rest(min(left, _TICK_S))
    return os.waitstatus_to_exitcode(ended[1])


def _clear(worker: WorkerDir) -> None:
    """Remove what the killed program has left: it may be large, and nobody may ever look at this worktree again."""
    import shutil

    from agentctl.supervision.worktree.aside import abandoned_scratch  # Hardly any shim has to kill it.

    for path in abandoned_scratch(worker):
        shutil.rmtree(path, ignore_errors=True)


def main(folder: str) -> None:
    """Run as that program."""
    from agentctl.supervision.worktree.changes import record_changes

    record_changes(WorkerDir(folder), limit_s=_LIMIT_S)
