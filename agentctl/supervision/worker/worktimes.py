"""When the workers of a tree were at work, from what their shims measured: no time counts that nobody measured.

Of an ended worker `exit.json` tells it; of another one `worked.json`, and before its first pause `worker.json`. A span
that has only begun counts as long as the shim lives.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

from agentctl.adapters import processes
from agentctl.adapters.clock import monotonic
from agentctl.adapters.files import read_quietly
from agentctl.adapters.locks import is_alive_held
from agentctl.adapters.taskdir import AgentDir
from agentctl.domain.worktime import Worked, worked_from
from agentctl.lean import Any
from agentctl.supervision.worker.endings import decision_of


class WorkTimes:
    """The times of all workers that were asked for; those of an ended one are read once."""

    def __init__(self) -> None:
        self._final: dict[str, Worked] = {}
        #: What is known of a worker better than by its files: by the path of its folder.
        self.known: Mapping[str, Any] = {}

    def of(self, agent: AgentDir) -> Worked:
        """Return when a worker was at work."""
        if agent.path in self._final:
            return self._final[agent.path]
        if agent.has_ended:
            told = decision_of(agent).get("worked") or read_quietly(agent.worked)
            found = self._final[agent.path] = worked_from(told, processes.boot_id(), monotonic())
            return found
        told = self.known.get(agent.path) or _told_by_files(agent)
        is_measured = agent.path in self.known or _has_shim(agent)
        return worked_from(told, processes.boot_id(), monotonic(), is_at_work=is_measured)


def _told_by_files(agent: AgentDir) -> Mapping[str, Any]:
    told = read_quietly(agent.worked)
    if told:
        return told
    worker = read_quietly(agent.worker)
    return {"boot": worker.get("boot"), "since": worker.get("since")}


def _has_shim(agent: AgentDir) -> bool:
    with contextlib.suppress(OSError):
        return is_alive_held(agent.shim)
    return False
