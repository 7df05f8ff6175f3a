"""Completes the environment of an agent's own server, where the agent's program has passed on hardly any of its own."""

from __future__ import annotations

import os
from collections.abc import MutableMapping

from agentctl.adapters import descent, processes
from agentctl.adapters.files import read_known
from agentctl.domain.agent.own_tools import INHERIT_VARIABLE
from agentctl.operations.where.lineage import shown_caller

_OWN = b"AGENTCTL_"


def complete_environment(environ: MutableMapping[bytes, bytes] = os.environb) -> None:
    """Add what the worker was started with, if this server is told to: its children need the worker's keys.

    The worker's first process has to be above this one; what is there already stays as it is.
    """
    if environ.pop(os.fsencode(INHERIT_VARIABLE), None) is None:
        return
    found = shown_caller()
    pid = read_known(found.worker.process).get("pid") if found is not None else None
    if not isinstance(pid, int) or pid not in descent.pids_above(os.getpid()):
        return
    for name, value in processes.environment_of(pid).items():
        if not name.startswith(_OWN):
            environ.setdefault(name, value)
