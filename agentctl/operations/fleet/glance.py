"""What there is of all tasks of a root at one moment; nothing in it changes later."""

from __future__ import annotations

from collections.abc import Mapping

from agentctl.adapters.taskdir import TaskDir
from agentctl.domain.activity.view import Node
from agentctl.domain.names import WorkerId
from agentctl.domain.question import Question
from agentctl.domain.worker.need import Need
from agentctl.lean import TYPE_CHECKING, NamedTuple
from agentctl.supervision.queue.queue_hold import QueueHold

if TYPE_CHECKING:
    from agentctl.domain.documents.workers.worker import WorkerRow


class TaskTotals(NamedTuple):
    """The workers of a task, or of several, taken together."""

    workers: int = 0
    #: How many of them have not ended, and how many ask.
    live: int = 0
    asking: int = 0
    #: How many of them have failed.
    failed: int = 0
    #: Input and output, without cached ones.
    tokens: int = 0
    #: None if no cost is known.
    cost_usd: float | None = None
    #: Whether these two are the least that it was: of some worker they are not known.
    lacks_tokens: bool = False
    lacks_cost: bool = False
    #: When the first one was started; when the last one ended, which counts only if none is live.
    began: str | None = None
    ended: str | None = None

    def plus(self, other: TaskTotals) -> TaskTotals:
        """Return both together."""
        costs = [cost for cost in (self.cost_usd, other.cost_usd) if cost is not None]
        return TaskTotals(
            self.workers + other.workers,
            self.live + other.live,
            self.asking + other.asking,
            self.failed + other.failed,
            self.tokens + other.tokens,
            sum(costs) if costs else None,
            self.lacks_tokens or other.lacks_tokens,
            self.lacks_cost or other.lacks_cost,
            min(filter(None, (self.began, other.began)), default=None),
            max(filter(None, (self.ended, other.ended)), default=None),
        )


class FleetWorker(NamedTuple):
    """A worker, or an observed sub-agent, as a person looks at it."""

    task: TaskDir
    row: WorkerRow
    need: Need
    #: Its open questions whose asker waits, oldest first; not that with which an idle agent waits for a message.
    questions: tuple[Question, ...]
    #: It has answered, and waits for a message by this question.
    idle: Question | None
    changed_files: int

    @property
    def id(self) -> WorkerId:
        """Its name among all workers of the root."""
        return WorkerId(self.task.id, self.row["agentInstance"])

    @property
    def since(self) -> str:
        """Since when it has its need: its place among those of the same need. Empty if that is unknown."""
        match self.need:
            case Need.NEEDS_YOU:
                return str(self.questions[0].asked_at) if self.questions else ""
            case Need.REVIEW | Need.FAILED | Need.DONE | Need.EARLIER:
                return self.end or ""
            case Need.QUEUED:
                return self.row["queuedAt"] or ""
            case _:
                return self.row["startedAt"] or ""

    @property
    def end(self) -> str | None:
        """The time of what can be looked at: its end, or the answer of an idle agent."""
        return str(self.idle.asked_at) if self.idle is not None else self.row["endedAt"]


class FleetTask(NamedTuple):
    """A task of a root."""

    task: TaskDir
    title: str
    state: str
    is_own: bool
    #: The task above it that exists, and the worker there that asked for it.
    parent: str | None
    parent_instance: str | None
    #: Its workers together, with those of the tasks below it.
    totals: TaskTotals = TaskTotals()
    #: What holds its queue.
    hold: QueueHold | None = None


class Doing(NamedTuple):
    """What one worker does."""

    #: The first is the worker itself, with its totals.
    nodes: list[Node]
    #: Of a command the last lines of its output.
    last_words: str
    #: Its activity has not been read to its end.
    is_behind: bool


class Glance(NamedTuple):
    """Everything at one moment; nothing in it changes later."""

    tasks: dict[str, FleetTask]
    workers: dict[WorkerId, FleetWorker]
    #: Only of the workers that somebody wants to see.
    doings: Mapping[WorkerId, Doing]
    #: Some tasks have not been read yet.
    is_partial: bool


def parent_in_fleet(
    tasks: Mapping[str, FleetTask], workers: Mapping[WorkerId, FleetWorker], key: WorkerId
) -> WorkerId | None:
    """Return the worker that started another: in the same task, or the one that asked for the sub-task."""
    parent = workers[key].row["parent"]
    if parent is not None and (near := WorkerId(key.task_id, parent)) in workers:
        return near
    task = tasks.get(key.task_id)
    if task is None or task.parent is None or task.parent_instance is None:
        return None
    far = WorkerId(task.parent, task.parent_instance)
    return far if far in workers else None
