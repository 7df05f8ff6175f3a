"""The facts about one worker from which `why` follows: its row, its condition, its files and its latest events."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial

from agentctl.adapters.eventlog import LogReader
from agentctl.adapters.files import read_known
from agentctl.adapters.processes import Identity, identity_from
from agentctl.adapters.taskdir import TaskDir, WorkerDir
from agentctl.domain import events as ev
from agentctl.domain.events import BadLine, Event
from agentctl.domain.text.numbers import finite
from agentctl.domain.worker.projection import WorkerView
from agentctl.lean import TYPE_CHECKING, Any, NamedTuple
from agentctl.operations.show.askers import PendingQuestion, asked_below
from agentctl.operations.show.current_state import read_own_task
from agentctl.operations.show.evidence import Evidence, TypedCommand, event_says
from agentctl.operations.show.listing import row_of
from agentctl.operations.where.command_lines import line_with, task_options
from agentctl.operations.where.folding import fold
from agentctl.operations.where.ownership import may_be_stopped
from agentctl.supervision.account.accounts import folder_of_accounts
from agentctl.supervision.account.waiters import Awaited

if TYPE_CHECKING:
    from agentctl.domain.documents.workers.worker import WorkerRow
    from agentctl.supervision.life.judging import Condition


#: Only these are kept: a forged log may have a million types.
_KINDS = frozenset(
    {
        ev.QUEUED, ev.STARTED, ev.BLOCKED, ev.RESUMED, ev.RETRYING, ev.RETRIED, ev.PARKED, ev.PAUSED, ev.UNPAUSED,
        ev.STALLED, ev.UNSTALLED,
        ev.PLACED, ev.ADOPTED, ev.LATE_EXIT, ev.AWAITING_CHILDREN, ev.CANCEL_REQUESTED, ev.CANCEL_FAILED, ev.COMPLETED,
        ev.FAILED, ev.CANCELLED,
    }
)  # fmt: skip


class WorkerFacts(NamedTuple):
    """What is known of a worker."""

    worker_dir: WorkerDir
    view: WorkerView
    row: WorkerRow
    #: None if the log has its end, if it is not in the log, or if nothing was judged.
    condition: Condition | None
    #: Its latest event of each kind, with the seq.
    latest: Mapping[str, tuple[int, Event]]
    spec: Mapping[str, Any]
    #: The open questions of the workers below it.
    asked_below: Sequence[PendingQuestion]
    #: Whether its task is this person's own, or was: otherwise nothing in its files is believed.
    is_ours: bool
    #: Reads its worker.json, at the first call alone.
    process: Callable[[], Mapping[str, Any]]
    #: Looks up what a command line about its task needs, at the first call alone.
    options: Callable[[], Sequence[str]]

    @property
    def is_in_log(self) -> bool:
        """Whether any event is about it."""
        return bool(self.latest)

    @property
    def name(self) -> str:
        """Its name."""
        return self.worker_dir.instance

    def time_of(self, kind: str) -> str | None:
        """Return the time of its latest event of a kind; None where there is none."""
        row = self.latest.get(kind)
        at = row[1].get("ts") if row is not None else None
        return at if isinstance(at, str) else None

    def event(self, kind: str, *keys: str) -> list[Evidence]:
        """Return what its latest event of a kind says; nothing where there is none."""
        return event_says(self.worker_dir.task.events, self.latest.get(kind), *keys)

    def leader(self) -> Identity | None:
        """Return its first process; None where worker.json names none."""
        return identity_from(self.process())

    def number(self, key: str) -> float | None:
        """Return a number of its spec; None where there is none."""
        return finite(self.spec.get(key))

    def command(self, *words: str) -> TypedCommand:
        """Return a command line about its task."""
        return TypedCommand(line_with(self.options(), *words), self.worker_dir.task.id, words)


def facts_of(task: TaskDir, worker_dir: WorkerDir) -> WorkerFacts:
    """Return the facts about a worker; like a look at the list, this writes down what is proven, and starts nothing."""
    instance = worker_dir.instance
    is_ours = may_be_stopped(task)
    view, conditions = read_own_task(task) if is_ours else (fold(task), {})
    worker = view.workers.get(instance) or WorkerView(instance)
    asked = sorted(asked_below(task, view).get(instance, ()))
    condition = conditions.get(instance)
    return WorkerFacts(
        worker_dir,
        worker,
        row_of(task, worker, condition, Awaited(folder_of_accounts()), len(asked)),
        condition,
        _latest(task, instance),
        read_known(worker_dir.spec),
        asked,
        is_ours,
        cache(partial(read_known, worker_dir.process)),
        cache(partial(task_options, task)),
    )


def _latest(task: TaskDir, instance: str) -> dict[str, tuple[int, Event]]:
    found: dict[str, tuple[int, Event]] = {}
    for row in LogReader(task.events).rows():
        if isinstance(row, BadLine) or row[1].get("agentInstance") != instance:
            continue
        if row[1]["type"] in (ev.QUEUED, ev.REMOVED):  # What was before is about another worker of its name.
            found.clear()
        if row[1]["type"] in _KINDS:
            found[row[1]["type"]] = row
    return found
