"""The current state of a task: the fold of its log, and a judgement of each worker that has no end in the log."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

from agentctl.adapters.eventlog import LogReader
from agentctl.adapters.taskdir import TaskDir
from agentctl.domain.worker.projection import TaskView
from agentctl.errors import AgentctlError
from agentctl.lean import TYPE_CHECKING
from agentctl.operations.where.folding import fold
from agentctl.operations.where.ownership import may_be_stopped

if TYPE_CHECKING:
    from agentctl.adapters.taskyaml.roster import RosterRow
    from agentctl.supervision.life.judging import Condition


def read_task(task: TaskDir) -> tuple[TaskView, dict[str, Condition]]:
    """Return the current state of a task, and the condition of each worker that had no end in the log.

    What is proven is written down; if nothing can be written (a read-only folder), the view is healed in memory. Of a
    task that is not this person's own only the log counts, and nothing is judged or written.
    """
    return read_own_task(task) if may_be_stopped(task) else (fold(task), {})


def read_own_task(task: TaskDir) -> tuple[TaskView, dict[str, Condition]]:
    """Return the same of a task that is known to be this person's own, or to have been."""
    reader, view = LogReader(task.events), TaskView()
    view.apply(reader.rows())
    live = [worker for worker in view.workers.values() if not worker.is_terminal]
    conditions = {}
    if live:
        from agentctl.operations.show.live_workers import judge_workers  # `list` of ended workers does without it.

        conditions = judge_workers(task, view, reader, live)
    if any(worker.runner is not None for worker in view.workers.values()):
        from agentctl.operations.show.late_exits import note_late_exits  # Few workers run on nodes.

        if note_late_exits(task, view.workers.values()):
            view.apply(reader.rows())
    if task.stale_roster.exists():
        mend_roster(task)
    return view, conditions


def mend_roster(task: TaskDir) -> None:
    """Make the roster equal to the log, if that can be done: nothing depends on it."""
    from agentctl.adapters.taskyaml import roster  # Few rosters are behind.
    from agentctl.operations.where.task_config import usable_config  # It may have to load YAML.

    usable_config(task)  # A head that was saved meanwhile becomes the one that was parsed last.
    with contextlib.suppress(AgentctlError, OSError):
        roster.mend(task, lambda: _roster_by_log(task))


def _roster_by_log(task: TaskDir) -> tuple[dict[str, RosterRow], Iterable[str]]:
    from agentctl.adapters.taskyaml.roster import RosterRow

    view = fold(task)
    rows = {worker.instance: RosterRow(worker.agent, worker.status, worker.reason) for worker in view.workers.values()}
    return rows, view.subtasks
