"""What an engine is given to start for a worker: the post of its launch."""

from __future__ import annotations

from agentctl.adapters.taskdir import LaunchDir, WorkerDir
from agentctl.domain.placement import Placement
from agentctl.runners.program import POST, argv_of
from agentctl.runners.runner import LaunchOrder


def launch_for(worker: WorkerDir, launch: LaunchDir, placement: Placement) -> LaunchOrder:
    """Return what the runner is to launch."""
    return LaunchOrder(
        id=launch.id,
        argv=argv_of(POST, str(launch.path), placement.python),
        log=str(launch.engine_log),
        what=f"{worker.task.id}/{worker.instance}",
        placement=placement,
    )
