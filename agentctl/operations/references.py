"""Files that are handed to a sub-task: paths, or what another worker has left (`task/instance/file`)."""

from __future__ import annotations

import os
from collections.abc import Sequence

from agentctl.adapters.files import read_quietly
from agentctl.adapters.taskdir import AgentDir, Root
from agentctl.domain.names import is_name
from agentctl.errors import UsageError


def find_artifacts(root: Root, references: Sequence[str]) -> list[str]:
    """Return the path of each artifact.

    Raises:
        UsageError: One is not there.
    """
    return [find_artifact(root, reference) for reference in references]


def find_artifact(root: Root, reference: str) -> str:
    """Return the path of an artifact: a file or folder, else a file in a worker's folder, else one that it declared."""
    if reference and os.path.exists(reference):
        return os.path.abspath(reference)
    agent, name = _worker_in(root, reference)
    if agent is not None:
        place = os.path.normpath(agent.path / name)
        if place.startswith(f"{agent.path}/") and os.path.exists(place):
            return place
        for declared in _declared_by(agent):
            if name in (declared, os.path.basename(declared)) and os.path.exists(declared):
                return declared
    raise UsageError(
        f"there is no artifact {reference!r}",
        hint="a path that exists, or TASK/INSTANCE/FILE of what a worker has left",
    )


def _worker_in(root: Root, reference: str) -> tuple[AgentDir | None, str]:
    task_id, _, rest = reference.partition("/")
    instance, _, name = rest.partition("/")
    if not (is_name(task_id) and is_name(instance) and name):
        return None, ""
    agent = root.task(task_id).agent(instance)
    return (agent if agent.path.exists() else None), name


def _declared_by(agent: AgentDir) -> list[str]:
    from agentctl.operations.results import artifacts_in  # It brings git along: few sub-tasks are handed a result.

    return [one["path"] for one in artifacts_in(read_quietly(agent.result))]
