"""Named places at which a test may kill the process that gets there: `AGENTCTL_FAILPOINT=shim.after-fork`.

The names, in the order of a worker's life: spawn.after-mkdir spawn.after-worktree spawn.after-spec spawn.after-ticket
spawn.after-queued dispatch.after-launch shim.locked shim.after-fork shim.after-identity shim.after-started
shim.after-ticket shim.after-gate shim.after-leader shim.after-sweep shim.after-exit-file shim.after-end-event
shim.before-release cancel.after-request respond.after-answer wait.after-claim wait.after-print
"""

from __future__ import annotations

import os
import signal

VARIABLE = "AGENTCTL_FAILPOINT"


def reached(name: str) -> None:
    """Die by SIGKILL here if the environment asks for it."""
    if os.environ.get(VARIABLE) == name:
        os.kill(os.getpid(), signal.SIGKILL)
