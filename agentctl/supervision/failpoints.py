"""Failpoints: named lines at which a test kills the process that reaches them, `AGENTCTL_FAILPOINT=shim.after-fork`.

With `:stop` after the name, the process is stopped there instead, until somebody continues it; with `:int`, it gets one
Ctrl-C, with `:ints` two.

The names, in the order of a worker's life: spawn.after-mkdir spawn.after-worktree spawn.after-spec spawn.after-ticket
spawn.after-queued dispatch.after-launch spawn.after-orders spawn.before-roster shim.locked shim.after-fork
shim.after-identity shim.after-started shim.after-ticket shim.after-gate shim.after-leader shim.after-sweep
shim.after-exit-file shim.after-end-event shim.before-release stop.before-order stop.after-order hold.after-write
cancel.after-request respond.after-answer send.after-key send.after-message new.after-key wait.after-claim
wait.after-print judge.seems-lost trust.after-order
use.after-seat park.after-ticket park.after-event remove.after-order remove.after-events remove.after-move
remove.before-delete archive.after-order archive.after-move notify.before-send notify.after-send
"""

from __future__ import annotations

import os

from agentctl.adapters.signals import signal

_armed = os.environ.get("AGENTCTL_FAILPOINT")


def armed() -> str | None:
    """Return the name of the failpoint at which this process is to die."""
    return _armed


def arm(name: str | None) -> None:
    """Set the failpoint: for a shim, which has no environment of its own and gets the name from its launcher."""
    global _armed  # noqa: PLW0603 - a worker passes eleven failpoints: one look at the environment is enough
    _armed = name


def reached(name: str) -> None:
    """Kill this process with SIGKILL, stop or interrupt it, if this failpoint is set."""
    if _armed is not None and _armed.partition(":")[0] == name:
        kinds = {"": [signal.SIGKILL], "stop": [signal.SIGSTOP], "int": [signal.SIGINT], "ints": [signal.SIGINT] * 2}
        for number in kinds[_armed.partition(":")[2]]:
            os.kill(os.getpid(), number)
