"""Shims that get ready before there is a place for them: an interpreter needs 40 ms to become one.

One start has them ready while its workers are put on disk; a program that starts one worker after the other keeps one.

Measured in memory, on two busy processors, in alternation: `spawn --batch` of 8 returns after 256 ms instead of 409 ms
(slower without in 15 of 15 rounds), of 16 after 319 ms instead of 610 ms (11 of 11); for a single `spawn` no difference
was found (23 of 41). A sub-task makes its task first: where its shim gets ready meanwhile, `subtask --no-wait` returns
after 99 ms instead of 109 ms (150 of 200). To start it before the command line has loaded that code, too, gained 3 ms
at most (87 of 160).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from agentctl.adapters.locks import locked
from agentctl.adapters.taskdir import TaskDir
from agentctl.adapters.taskyaml.cache import known_limits, root_task_of
from agentctl.errors import AgentctlError
from agentctl.supervision.dispatch import launching
from agentctl.supervision.dispatch.slots import survey

#: So many shims get ready ahead of a batch: each takes three descriptors.
_MOST_AHEAD = 16


@contextlib.contextmanager
def shims_ahead(root_task: TaskDir, wanted: int) -> Iterator[None]:
    """Let as many shims get ready as are wanted and slots are free; at the end, those that were not used are ended.

    Where as many are ready, nothing is done: whoever has more to prepare than the workers enters this first.
    """
    wanted = min(wanted, _MOST_AHEAD)
    if launching.count_spares(root_task) < wanted:
        with contextlib.suppress(AgentctlError, OSError):  # Whatever is in the way, the start itself will tell.
            launching.start_ahead(root_task, _count_free(root_task, wanted))
    try:
        yield
    finally:
        launching.trim_spares(root_task)


def _count_free(root_task: TaskDir, wanted: int) -> int:
    with locked(root_task.queue_lock, limit_s=0):  # Whoever has it is about to use what is free.
        found = survey(root_task, known_limits(root_task).max_concurrent_agents, wanted)
        try:
            return len(found.free)
        finally:
            found.release()


def keep_spares(task: TaskDir, count: int) -> None:
    """Have so many shims ready for the workers of a task's tree from now on; 0 ends those that were kept."""
    launching.keep_spares(root_task_of(task), count)
