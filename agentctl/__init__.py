"""agentctl: many agents at once, each an OS process, everything in plain files, no daemon.

The shim and every command load this package too, so it imports nothing at first: a name of the Python interface is
loaded when it is first used. `__init__.pyi` declares the names for type checkers.
"""

from __future__ import annotations

__version__ = "0.1.0"

#: Name -> the module that defines it.
_OFFERED = {
    "Task": "agentctl.interfaces.python.task",
    "TaskExecutor": "agentctl.interfaces.python.executor",
    "TaskResult": "agentctl.operations.delegate.delegating",
    "Question": "agentctl.interfaces.python.questions",
    "SpawnOptions": "agentctl.interfaces.python.spawn_options",
    "Spawned": "agentctl.operations.start.requests",
    "WaitedEnd": "agentctl.operations.wait.waiting",
    "Cancelled": "agentctl.operations.stop.cancelling",
    "SubtaskEnd": "agentctl.operations.show.subtask_answer",
    "EndStatus": "agentctl.domain.states",
    "OnQuestion": "agentctl.interfaces.python.answering",
    "ShownWorker": "agentctl.domain.documents.workers.worker",
    "Status": "agentctl.domain.states",
    "TaskStatus": "agentctl.operations.delegate.delegating",
    "WorkerResult": "agentctl.domain.documents.workers.worker",
    "WorkerRow": "agentctl.domain.documents.workers.worker",
    "spawn": "agentctl.interfaces.python.verbs",
    "wait_any": "agentctl.interfaces.python.verbs",
    "cancel": "agentctl.interfaces.python.verbs",
    "respond": "agentctl.interfaces.python.verbs",
    "AgentctlError": "agentctl.errors",
    "Refused": "agentctl.errors",
    "UsageError": "agentctl.errors",
    "NotFound": "agentctl.errors",
    "NoFreeSlot": "agentctl.errors",
    "WaitTimedOut": "agentctl.errors",
    "WaitStopped": "agentctl.errors",
    "NothingLeft": "agentctl.errors",
}


def __getattr__(name: str) -> object:
    module = _OFFERED.get(name)
    if module is None:
        raise AttributeError(f"module 'agentctl' has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(module), name)
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_OFFERED])
