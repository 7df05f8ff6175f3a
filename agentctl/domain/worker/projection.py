"""The fold of a task's events into its current state: the only answer to "what is this worker's status?"."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from agentctl.domain import events as ev
from agentctl.domain.events import BadLine, Event
from agentctl.domain.names import is_name
from agentctl.domain.states import MOVES, OWN, PARKED, STALLED, TERMINAL, Status
from agentctl.domain.text.numbers import finite
from agentctl.domain.worker.removals import Removals
from agentctl.domain.worker.tries import Tries
from agentctl.errors import StorageError
from agentctl.lean import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from agentctl.domain.documents.workers.worker import RefusedByDisk, Survivor


class Deliverable(NamedTuple):
    """An end, a block, a stall or a parking that a wait gives to its consumer."""

    seq: int
    instance: str
    #: A status, `stalled` or `parked`.
    status: str


_NOTHING: RefusedByDisk = {}


class WorkerView:
    """One worker, as its events describe it."""

    # The defaults belong to the class: each of 10,000 workers sets only what its events say.
    agent = "command"
    command = ""
    status = Status.QUEUED
    reason: str | None = None
    parent: str | None = None
    depth = 0
    attempt = 1
    paused = False
    pid: int | None = None
    shim_pid: int | None = None
    queued_at: str | None = None
    started_at: str | None = None
    ended_at: str | None = None
    exit_code: int | None = None
    signal: str | None = None
    #: Why it failed, in the words of the system, the program or its provider.
    message: str | None = None
    #: What it wrote last, if it failed, in one line.
    last_line: str | None = None
    duration_s: float | None = None
    survivors: Sequence[Survivor] = ()
    #: How many workers that it had started were alive when it ended.
    uncollected = 0
    #: Its own processes have ended, and it waits for the workers that it started.
    awaits_children = False
    end_seq: int | None = None
    block_seq: int | None = None
    stall_seq: int | None = None
    #: While it is parked: since which event, until when, and for which usage window of its account.
    park_seq: int | None = None
    parked_until: str | None = None
    window: str | None = None
    agent_id: str | None = None
    #: The worker whose work it tries again, or goes on with; and the one that does so after it.
    retry_of: str | None = None
    continues: str | None = None
    superseded_by: str | None = None
    #: The work that it belongs to, and which try of it; None where it is the only one.
    work: str | None = None
    nth_try = 1
    driver: str | None = None
    #: `own` where the person's own settings of its program count; None for any other policy.
    permissions: str | None = None
    #: The workers after which it starts.
    after: Sequence[str] = ()
    #: What places it on a node, and that node once it has begun there.
    runner: str | None = None
    node: str | None = None
    #: Taken for lost, it has told how it ended after all: its status then.
    late_exit: str | None = None
    #: What the disk refuses of it, as its guardian says; no event says so.
    refused: RefusedByDisk = _NOTHING
    #: Why it is not known how it is: what of it could not be read at the last look.
    unreadable: StorageError | None = None

    def __init__(self, instance: str) -> None:
        self.instance = instance

    @property
    def is_paused(self) -> bool:
        """Return whether it is paused, be it that the disk refuses the event of that."""
        return bool(self.refused.get("paused", self.paused))

    @property
    def before(self) -> str | None:
        """Return the worker that did its work before; None where it is the first."""
        return self.retry_of or self.continues

    @property
    def is_terminal(self) -> bool:
        """Return whether it has ended."""
        return self.status in TERMINAL

    def move(self, status: Status) -> bool:
        """Move to a status if `MOVES` allows it; return whether it did."""
        if status not in MOVES[self.status]:
            return False
        self.status = status
        return True


#: So many lines that could not be read are kept; a log that is nothing but such lines must not fill the memory.
MOST_DAMAGE = 100


class TaskView:
    """All workers of a task, in the order in which they were accepted, and the lines that could not be read."""

    def __init__(self) -> None:
        self.workers: dict[str, WorkerView] = {}
        self.tries = Tries()
        #: The workers that were removed, in that order: whoever keeps something about them forgets it.
        self.removed: list[str] = []
        self._removals = Removals()
        #: The first of the lines that could not be read, and how many they all are.
        self.damage: list[BadLine] = []
        self.bad_lines = 0
        #: The sub-tasks of the task, in the order in which they were made.
        self.subtasks: dict[str, None] = {}
        #: How often the queue of the task was held or let go.
        self.hold_changes = 0

    def apply(self, rows: Iterable[tuple[int, Event] | BadLine]) -> None:
        """Fold in further rows of the log; an event that cannot apply to the current state is ignored."""
        workers = self.workers
        for row in rows:
            if isinstance(row, BadLine):
                self._note_damage(row)
                continue
            seq, event = row
            fold = _FOLDS.get(event["type"])
            instance = event.get("agentInstance")
            if self.removed and self._removals.hides(event):
                continue
            if fold is None or not instance:
                if event["type"] == ev.REMOVED:
                    self._remove(event)
                if event["type"] in _SUBTASKS:
                    self._apply_subtask(event)
                self.hold_changes += event["type"] in _HOLDS
                continue
            worker = workers.get(instance)
            if worker is not None:
                fold(worker, seq, event)
            elif is_name(instance):
                worker = workers[instance] = WorkerView(instance)
                fold(worker, seq, event)
                self._link(worker)
            else:  # It would be a path out of the task.
                self._note_damage(BadLine(seq, f"{instance!r} is not the name of a worker"))

    def _link(self, worker: WorkerView) -> None:
        """Put a worker that was just accepted into its work."""
        if worker.before in self.workers:
            self._note_try(worker, worker.before)
        elif worker.before is not None:  # It was removed meanwhile: its name may soon be another worker's.
            worker.retry_of = worker.continues = None

    def _note_try(self, worker: WorkerView, before: str) -> None:
        if before == worker.instance:
            return
        newest = self.workers[self.tries.add(worker.instance, before)]
        newest.superseded_by, work = worker.instance, self.tries.work_of(worker.instance)
        newest.work, worker.work, worker.nth_try = work, work, newest.nth_try + 1

    def _remove(self, event: Event) -> None:
        """Forget a worker; those that are left of its work stay one work."""
        instance = str(event.get("agentInstance"))
        self._removals.hides(event)
        self.removed.append(instance)
        self.workers.pop(instance, None)
        left = [self.workers[one] for one in self.tries.remove(instance)]
        work = left[0].instance if len(left) > 1 else None
        for number, worker in enumerate(left, 1):
            worker.work, worker.nth_try = work, number
            worker.superseded_by = left[number].instance if number < len(left) else None
            if worker.before == instance:
                before = left[number - 2].instance if number > 1 else None
                worker.retry_of, worker.continues = (before, None) if worker.retry_of else (None, before)

    def newest(self) -> Iterator[WorkerView]:
        """Yield the worker of each work that counts: its newest try."""
        return (worker for worker in self.workers.values() if worker.superseded_by is None)

    def _note_damage(self, bad: BadLine) -> None:
        self.bad_lines += 1
        if len(self.damage) < MOST_DAMAGE:
            self.damage.append(bad)

    def _apply_subtask(self, event: Event) -> None:
        name = event["payload"].get("taskId")
        if isinstance(name, str) and is_name(name):
            if event["type"] == ev.SUBTASK_CREATED:
                self.subtasks[name] = None
            else:
                self.subtasks.pop(name, None)

    def deliverables(self) -> list[Deliverable]:
        """Return every end, and every block, stall or parking that still holds, in the order of the log."""
        found = []
        for worker in self.workers.values():
            if worker.end_seq is not None:
                found.append(Deliverable(worker.end_seq, worker.instance, worker.status))
            elif worker.block_seq is not None and worker.status is Status.BLOCKED:
                found.append(Deliverable(worker.block_seq, worker.instance, worker.status))
            elif worker.park_seq is not None:
                found.append(Deliverable(worker.park_seq, worker.instance, PARKED))
            elif worker.stall_seq is not None:
                found.append(Deliverable(worker.stall_seq, worker.instance, STALLED))
        found.sort()
        return found

    def descendants(self, instance: str) -> list[str]:
        """Return the workers that `instance` started, and those that they started, nearest first."""
        found = [instance]
        for name in found:
            found += [worker.instance for worker in self.workers.values() if worker.parent == name]
        return found[1:]


def _typed(payload: Mapping[str, Any], key: str, kind: type, default: Any = None) -> Any:
    """Return the value of `key` in a payload; the default where it is missing or of another type."""
    value = payload.get(key, default)
    return value if isinstance(value, kind) else default


def _text(value: object) -> str | None:
    return value if type(value) is str else None


def _is_object(value: object) -> bool:
    return isinstance(value, dict)


def _whole(value: object) -> int | None:
    return value if type(value) is int else None


def _queued(worker: WorkerView, seq: int, event: Event) -> None:
    payload = event["payload"]
    worker.queued_at = _text(event.get("ts"))
    worker.command = _text(payload.get("command")) or ""
    agent = payload.get("agent", worker.agent)
    if agent != worker.agent and isinstance(agent, str) and is_name(agent):
        worker.agent = agent
    if "driver" in payload:
        worker.driver = _typed(payload, "driver", str)
        worker.agent_id = _typed(payload, "agentId", str)
    if payload.get("permissions") == OWN:
        worker.permissions = OWN
    if "after" in payload:
        worker.after = [name for name in _typed(payload, "after", list, []) if isinstance(name, str) and is_name(name)]
    if "retryOf" in payload:
        worker.retry_of = _text(payload["retryOf"])
    elif "continues" in payload:
        worker.continues = _text(payload["continues"])
    if "parent" in payload:
        worker.parent = _typed(payload, "parent", str)
    if "depth" in payload:  # In a sub-task the parent is in another task.
        worker.depth = _typed(payload, "depth", int, 0)


def _started(worker: WorkerView, seq: int, event: Event) -> None:
    payload = event["payload"]
    if "runner" in payload:  # It waits for its node, and runs once it has begun there.
        worker.runner = _text(payload["runner"])
    if worker.status is Status.QUEUED if worker.runner else worker.move(Status.RUNNING):
        worker.started_at = _text(event.get("ts"))
        worker.pid = None if worker.runner else _whole(payload.get("pid"))  # Here only its stand-in has one.
        worker.shim_pid = _whole(payload.get("shimPid"))


def _placed(worker: WorkerView, seq: int, event: Event) -> None:
    if worker.move(Status.RUNNING):
        worker.node = _text(event["payload"].get("node"))
        worker.started_at = _text(event.get("ts"))


def _late_exit(worker: WorkerView, seq: int, event: Event) -> None:
    """Note what a worker that was taken for lost has told after all: its end stays as it is."""
    if worker.is_terminal:
        worker.late_exit = _text(event["payload"].get("status"))


def _retrying(worker: WorkerView, seq: int, event: Event) -> None:
    if not worker.is_terminal:
        worker.attempt = _typed(event["payload"], "attempt", int, worker.attempt + 1)
        worker.pid = None  # It has no process during the pause.


def _retried(worker: WorkerView, seq: int, event: Event) -> None:
    if not worker.is_terminal and worker.runner is None:
        worker.pid = _whole(event["payload"].get("pid"))
    if worker.status is Status.QUEUED and worker.runner is None:
        worker.move(Status.RUNNING)
        worker.park_seq = None


def _parked(worker: WorkerView, seq: int, event: Event) -> None:
    if worker.status is not Status.QUEUED and not worker.move(Status.QUEUED):
        return
    payload = event["payload"]
    worker.park_seq, worker.stall_seq, worker.paused, worker.pid = seq, None, False, None
    worker.parked_until = _typed(payload, "until", str)
    worker.window = _typed(payload, "window", str)
    worker.attempt = _typed(payload, "attempt", int, worker.attempt)


def _blocked(worker: WorkerView, seq: int, event: Event) -> None:
    if worker.move(Status.BLOCKED):
        worker.block_seq = seq


def _resumed(worker: WorkerView, seq: int, event: Event) -> None:
    if worker.status is Status.BLOCKED:
        worker.move(Status.RUNNING)


def _paused(worker: WorkerView, seq: int, event: Event) -> None:
    worker.paused = event["type"] == ev.PAUSED and not worker.is_terminal


def _stalled(worker: WorkerView, seq: int, event: Event) -> None:
    worker.stall_seq = seq if event["type"] == ev.STALLED and not worker.is_terminal else None


def _awaiting_children(worker: WorkerView, seq: int, event: Event) -> None:
    worker.awaits_children = not worker.is_terminal


def _cancel_failed(worker: WorkerView, seq: int, event: Event) -> None:
    if not worker.is_terminal:
        worker.survivors = [*filter(_is_object, _typed(event["payload"], "survivors", list, []))]


def _ended(worker: WorkerView, seq: int, event: Event) -> None:
    if not worker.move(ev.END_STATUS[event["type"]]):
        return
    worker.end_seq = seq
    worker.ended_at = _text(event.get("ts"))
    worker.paused = worker.awaits_children = False
    worker.survivors = ()
    worker.stall_seq = worker.park_seq = None
    payload = event["payload"]
    worker.exit_code = _whole(payload.get("exitCode"))
    worker.duration_s = finite(payload.get("durationSeconds"))
    for key, name, kind in _RARE_KEYS:
        if key in payload:
            setattr(worker, name, _typed(payload, key, kind, getattr(worker, name)))


_SUBTASKS = frozenset({ev.SUBTASK_CREATED, ev.SUBTASK_REMOVED})
_HOLDS = frozenset({ev.QUEUE_HELD, ev.QUEUE_LET_GO})
#: Keys that few ends have, the field of the view, and the type of the value.
_RARE_KEYS = (
    ("reason", "reason", str), ("signal", "signal", str), ("message", "message", str), ("lastLine", "last_line", str),
    ("uncollected", "uncollected", int),
)  # fmt: skip
_FOLDS: dict[str, Callable[[WorkerView, int, Event], None]] = {
    ev.QUEUED: _queued,
    ev.STARTED: _started,
    ev.PLACED: _placed,
    ev.LATE_EXIT: _late_exit,
    ev.RETRYING: _retrying,
    ev.RETRIED: _retried,
    ev.PARKED: _parked,
    ev.BLOCKED: _blocked,
    ev.RESUMED: _resumed,
    ev.PAUSED: _paused,
    ev.UNPAUSED: _paused,
    ev.STALLED: _stalled,
    ev.UNSTALLED: _stalled,
    ev.AWAITING_CHILDREN: _awaiting_children,
    ev.CANCEL_FAILED: _cancel_failed,
    ev.COMPLETED: _ended,
    ev.FAILED: _ended,
    ev.CANCELLED: _ended,
}
