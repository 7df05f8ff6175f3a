"""Which worker calls a command, according to the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping

from agentctl.adapters.taskdir import Root, TaskDir, WorkerDir
from agentctl.domain.names import check_name
from agentctl.errors import Next, Refused
from agentctl.lean import NamedTuple
from agentctl.supervision.worker.environment import INSTANCE_VARIABLE, ROOT_VARIABLE, TASK_VARIABLE

#: Set where a worker of another host calls by --host, and where an agent does that a person has started by hand there:
#: no process tree shows them here.
FROM_WORKER, FROM_AGENT = "AGENTCTL_FROM_WORKER", "AGENTCTL_FROM_AGENT"
#: Set where another host has ordered this command: the name under which that host knows this one.
BY_HOST = "AGENTCTL_BY_HOST"
#: And the seat there from which it was ordered: it keeps the task that was chosen from it.
BY_SEAT = "AGENTCTL_BY_SEAT"


class Caller(NamedTuple):
    """The worker in which a command runs."""

    task: TaskDir
    instance: str

    @property
    def worker(self) -> WorkerDir:
        """Its folder."""
        return self.task.worker(self.instance)


def caller(environ: Mapping[str, str] = os.environ) -> Caller | None:
    """Return the worker in which this process runs; None outside of one."""
    root, task, instance = (environ.get(name) for name in (ROOT_VARIABLE, TASK_VARIABLE, INSTANCE_VARIABLE))
    if not (root and task and instance):
        return None
    return Caller(Root(root).task(check_name(task, TASK_VARIABLE)), check_name(instance, INSTANCE_VARIABLE))


def is_from_worker(environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether a worker of another host calls by --host: no process tree shows it here."""
    return bool(environ.get(FROM_WORKER))


def caller_or_refuse(what: str) -> Caller:
    """Return the calling worker.

    Raises:
        Refused: This process runs in none; `what` names the command.
    """
    found = caller()
    if found is None or not found.worker.spec.exists():
        raise Refused(f"{what} is for workers; this process is in none", hint=Next("spawn", does="starts one"))
    return found
