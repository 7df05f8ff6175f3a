"""The commands of the command line as functions, for the chosen task or a named one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Unpack

from agentctl.interfaces.python.questions import Question
from agentctl.interfaces.python.spawn_options import SpawnOptions
from agentctl.interfaces.python.task import Task
from agentctl.operations.start.requests import Spawned
from agentctl.operations.stop.cancelling import Cancelled
from agentctl.operations.wait.waiting import WaitedEnd


def spawn(
    prompt: str | None = None,
    *,
    agent: str | None = None,
    argv: Sequence[str] | None = None,
    queue: bool | None = None,
    timeout_seconds: float | None = None,
    task: Task | str | None = None,
    root: str | None = None,
    **options: Unpack[SpawnOptions],
) -> Spawned:
    """Start an agent with a prompt, or a command (`Task.spawn`); if no task is named or chosen, one is made."""
    chosen = Task.find_or_create(root=root) if task is None else _found(task, root)
    return chosen.spawn(prompt, agent=agent, argv=argv, queue=queue, timeout_seconds=timeout_seconds, **options)


def wait_any(
    *instances: str,
    timeout_seconds: float | None = None,
    consumer: str | None = None,
    kinds: Iterable[str] | None = None,
    task: Task | str | None = None,
    root: str | None = None,
) -> WaitedEnd:
    """Return the earliest end or block that this consumer has not been given (`Task.wait_any`)."""
    return _found(task, root).wait_any(*instances, timeout_seconds=timeout_seconds, consumer=consumer, kinds=kinds)


def cancel(
    *instances: str,
    grace_seconds: float | None = None,
    wait: bool = True,
    task: Task | str | None = None,
    root: str | None = None,
) -> list[Cancelled]:
    """Cancel the named workers, by default all of the task (`Task.cancel`)."""
    return _found(task, root).cancel(*instances, grace_seconds=grace_seconds, wait=wait)


def respond(
    answer: str,
    *,
    question: Question | None = None,
    instance: str | None = None,
    question_id: str | None = None,
    reason: str | None = None,
    task: Task | str | None = None,
    root: str | None = None,
) -> None:
    """Answer a worker's question (`Task.respond`)."""
    _found(task, root).respond(answer, question=question, instance=instance, question_id=question_id, reason=reason)


def _found(task: Task | str | None, root: str | None) -> Task:
    return task if isinstance(task, Task) else Task.find(task, root=root)
