"""Whether a worker was placed on a node, and how its launch there has ended."""

from __future__ import annotations

import os

from agentctl.adapters.files import read_known
from agentctl.adapters.taskdir import LaunchDir, WorkerDir
from agentctl.supervision.worker.endings import Decision, decision_in


def launch_of(worker: WorkerDir) -> LaunchDir | None:
    """Return the launch that is under way, or was last; None for a worker that was never placed."""
    path = read_known(worker.launch).get("path") if worker.launch.exists() else None
    return LaunchDir(path) if isinstance(path, str) and os.path.isabs(path) else None


def is_away(worker: WorkerDir) -> bool:
    """Return whether a worker was placed on a node, and it is not known how that has ended."""
    launch = launch_of(worker)
    return launch is not None and not launch.verdict.exists()


def has_launch(worker: WorkerDir, attempt: int) -> bool:
    """Return whether a launch was made for an attempt of a worker."""
    return launch_of(worker) is not None and read_known(worker.launch).get("attempt") == attempt


def has_begun(worker: WorkerDir) -> bool:
    """Return whether a node has begun the launch of a worker that was placed."""
    launch = launch_of(worker)
    return launch is not None and launch.claim.exists()


def verdict_of(worker: WorkerDir, attempt: int | None = None) -> Decision | None:
    """Return how the last launch of a worker has ended, as its stand-in found; None while that is not known.

    Args:
        attempt: Only of this attempt.
    """
    launch = launch_of(worker)
    if launch is None or attempt not in (None, read_known(worker.launch).get("attempt")):
        return None
    return decision_in(read_known(launch.verdict))
