"""What an engine is given to start: the post of a launch, by the interpreter that the nodes have."""

from __future__ import annotations

import os
import sys

import agentctl
from agentctl.adapters.paths import FilePath
from agentctl.adapters.taskdir import LaunchDir, WorkerDir
from agentctl.domain.placement import Placement
from agentctl.runners.runner import LaunchOrder
from agentctl.supervision.life.strangers import POST

SCRIPT = str(FilePath(os.path.realpath(agentctl.__file__)).parent / "placing/__main__.py")


def launch_for(worker: WorkerDir, launch: LaunchDir, placement: Placement) -> LaunchOrder:
    """Return what the runner is to launch."""
    return LaunchOrder(
        id=launch.id,
        argv=[placement.python or sys.executable, "-I", SCRIPT, POST, str(launch.path)],
        log=str(launch.engine_log),
        what=f"{worker.task.id}/{worker.instance}",
        placement=placement,
    )
