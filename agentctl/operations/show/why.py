"""`why`: the reasons for which a worker is in the state that it is shown in, each with its evidence. Starts nothing."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from agentctl.adapters.files import read_known
from agentctl.adapters.taskdir import TaskDir, WorkerDir
from agentctl.adapters.treedir import tree_of
from agentctl.domain import events as ev
from agentctl.domain.states import HELD, OWN, PARKED, STALLED, STRANDED, UNKNOWN, Status
from agentctl.errors import AgentctlError, Damaged
from agentctl.lean import TYPE_CHECKING, NamedTuple
from agentctl.operations.show.evidence import (
    Part,
    Statement,
    TypedCommand,
    WayOut,
    evidence_fields,
    file_says,
    part_of,
    shown,
)
from agentctl.operations.show.failed_lines import failed_lines
from agentctl.operations.show.failures_behind import failures_behind
from agentctl.operations.show.queue_holds import queue_hold_of
from agentctl.operations.show.worker_facts import WorkerFacts, facts_of
from agentctl.operations.where.locating import find_worker
from agentctl.operations.where.observed import observed_row
from agentctl.operations.where.ownership import may_be_stopped
from agentctl.supervision.life.judging import Condition
from agentctl.supervision.worker import cancel_request

if TYPE_CHECKING:
    from agentctl.domain.documents.workers.worker import FailedLines, WorkerReasons, WorkerRow

#: States beside the statuses: what is most pressing about a worker that has not ended.
UNSUPERVISED, ELSEWHERE, CANCELLING, PAUSED = "unsupervised", "elsewhere", "cancelling", "paused"
UNFOLLOWED = "unfollowed"
AWAITING_CHILDREN, RETRYING, OBSERVED = "awaiting_children", "retrying", "observed"


class Why(NamedTuple):
    """Why a worker is as it is."""

    task_id: str
    instance: str
    #: As `list` shows it.
    status: str
    #: The status, or what is more pressing: one of the words above.
    state: str
    #: Since when it is in that state; None if that is unknown.
    since: str | None
    #: Whether locks and processes were looked at; otherwise only its files say so.
    is_judged: bool
    statements: Sequence[Statement]
    ways_out: Sequence[WayOut]
    last_lines: FailedLines | None = None

    def to_json(self) -> WorkerReasons:
        """Return what `why --json` prints."""
        return {
            "taskId": self.task_id, "agentInstance": self.instance, "status": self.status, "state": self.state,
            "since": self.since, "judged": self.is_judged,
            "statements": [one.to_json() for one in self.statements], **(self.last_lines or {}),
            "waysOut": [one.to_json() for one in self.ways_out],
        }  # fmt: skip


def why_worker(task: TaskDir, instance: str) -> Why:
    """Return why a worker, or a sub-agent that is only observed, is in its state.

    Raises:
        NotFound: There is no such worker.
    """
    try:
        worker_dir = find_worker(task, instance)
    except AgentctlError:
        observed = observed_row(task, instance)
        if observed is None:
            raise
        return _observed(task, observed)
    facts = facts_of(task, worker_dir)
    if not facts.is_in_log:
        return _unaccepted(facts)
    if not facts.is_ours:
        return _claimed(facts)
    state, since = _state_of(facts)
    statements, ways = _part(facts)
    if not facts.view.is_terminal:
        decided, out = part_of(_stop_order, facts)
        statements, ways = [*decided, *statements], [*out, *ways]
    others, out = failures_behind(facts)
    statements, ways = [*statements[:1], *others, *statements[1:], *_policy(facts)], [*ways, *out]
    lines = failed_lines(worker_dir, facts.view.status)
    return Why(task.id, instance, facts.view.status, state, since, True, statements, ways, lines)


def _part(facts: WorkerFacts) -> Part:
    if facts.view.is_terminal:
        from agentctl.operations.show.end_reasons import end_part  # Each look is at one worker, in one of three states.

        return end_part(facts)
    if facts.condition is not None and facts.condition.is_queued:
        from agentctl.operations.show.queued_reasons import queued_part

        return queued_part(facts)
    from agentctl.operations.show.live_reasons import live_part

    return live_part(facts)


def _stop_order(facts: WorkerFacts) -> Part:
    """Return whether a decision to stop several workers is left over that it is about, or that nobody can read."""
    worker = facts.worker_dir
    order_file = tree_of(worker.task).stop_order
    if not order_file.exists():
        return [], []
    from agentctl.supervision.dispatch.stop_order import read_stop_order  # Hardly ever is one left over.

    try:
        order = read_stop_order(tree_of(worker.task))
    except Damaged as error:
        text = "A decision to stop workers cannot be read: nothing is started until it is gone."
        way = WayOut("this sets it aside", facts.command("doctor", "--fix"))
        return [Statement(text, [file_says(order_file, error.message)])], [way]
    if worker.id not in order.workers:
        return [], []
    text = f"{shown(order.by)} has decided to stop it; the process that was to do so is gone, or is doing it now."
    evidence = file_says(order_file, f"it names {len(order.workers)} workers, this one among them")
    way = WayOut("the next look at the queue carries it out", facts.command("doctor", "--fix"))
    return [Statement(text, [evidence])], [way]


def _policy(facts: WorkerFacts) -> list[Statement]:
    """Say under whose permissions an agent works where that is not agentctl's alone."""
    if facts.view.permissions != OWN:
        return []
    text = f"It does without asking whatever your own settings of {facts.view.driver} allow (permissions: {OWN})."
    return [Statement(text, [file_says(facts.worker_dir.spec, f"order.permissions: {OWN}")])]


def _state_of(facts: WorkerFacts) -> tuple[str, str | None]:
    """Return the state in one word, and since when."""
    view, worker = facts.view, facts.worker_dir
    if view.is_terminal:
        return view.status, view.ended_at
    health = facts.row["health"]
    if health in (UNSUPERVISED, UNFOLLOWED, ELSEWHERE):
        return health, None
    if facts.condition is not None and facts.condition.is_queued:
        is_parked = view.park_seq is not None
        if facts.condition is Condition.STRANDED:
            return STRANDED, None
        if facts.condition is Condition.HELD:
            hold = queue_hold_of(worker)
            return HELD, None if hold is None else hold.at
        return (PARKED, facts.time_of(ev.PARKED)) if is_parked else (Status.QUEUED, view.queued_at)
    return next(
        (
            (state, since) for is_so, state, since in (
                (cancel_request.is_asked(worker), CANCELLING, _asked_at(worker) or facts.time_of(ev.CANCEL_REQUESTED)),
                (view.is_paused, PAUSED, facts.time_of(ev.PAUSED)),
                (view.status is Status.BLOCKED, Status.BLOCKED, facts.time_of(ev.BLOCKED)),
                (view.awaits_children, AWAITING_CHILDREN, facts.time_of(ev.AWAITING_CHILDREN)),
                (view.stall_seq is not None, STALLED, facts.time_of(ev.STALLED)),
                (view.pid is None and ev.RETRYING in facts.latest, RETRYING, facts.time_of(ev.RETRYING)),
            ) if is_so
        ),
        (view.status, _running_since(facts)),
    )  # fmt: skip


def _asked_at(worker: WorkerDir) -> str | None:
    at = (cancel_request.cancel_request_of(worker) or {}).get("at")
    return at if isinstance(at, str) else None


def _running_since(facts: WorkerFacts) -> str | None:
    times = (facts.time_of(kind) for kind in (ev.STARTED, ev.PLACED, ev.RETRIED, ev.RESUMED, ev.UNPAUSED, ev.UNSTALLED))
    return max((at for at in times if at is not None), default=None)


# -- workers that cannot be judged -------------------------------------------------------------------------------------


def _unaccepted(facts: WorkerFacts) -> Why:
    task = facts.worker_dir.task
    text = "It is unknown what this is: it has a folder, but no event in the log is about it, so it was never accepted."
    evidence = [
        file_says(facts.worker_dir.path, "its folder is there"),
        file_says(task.events, "no event is about it"),
    ]
    worker, ways = facts.worker_dir, list[WayOut]()
    if not worker.shim.exists() and not worker.has_ended:  # `doctor` keeps what has run.
        ways = [WayOut("if the command that made it was killed, it is left over", facts.command("doctor", "--fix"))]
    is_judged = may_be_stopped(task)
    return Why(task.id, facts.name, UNKNOWN, UNKNOWN, None, is_judged, [Statement(text, evidence)], ways)


def _claimed(facts: WorkerFacts) -> Why:
    """Return what the files of somebody else's task claim; nothing of it is checked."""
    task, view = facts.worker_dir.task, facts.view
    keys = ("reason", "exitCode", "signal", "pid")
    evidence = [one for kind in sorted(facts.latest) for one in facts.event(kind, *keys)]
    if facts.worker_dir.exit.exists():
        says = evidence_fields(read_known(facts.worker_dir.exit), "status", "reason", "by", "message", "endedAt")
        evidence.append(file_says(facts.worker_dir.exit, says))
    text = (
        f"Its log claims that it is {view.status}. That is unproven: the task was not made here by you, or was moved,"
        " so no lock or process was looked at."
    )
    since = view.ended_at if view.is_terminal else view.started_at or view.queued_at
    way = WayOut("if everything in it is yours", TypedCommand(f"agentctl trust {shlex.quote(task.path)}"))
    return Why(task.id, facts.name, view.status, view.status, since, False, [Statement(text, evidence)], [way])


def _observed(task: TaskDir, row: WorkerRow) -> Why:
    text = (
        "It is a sub-agent that another program started by itself: it is known only from what that program's hooks"
        " reported, and nothing here guards it."
    )
    evidence = [file_says(task.observed, evidence_fields(row, "agent", "status", "startedAt", "endedAt"))]
    way = WayOut("only the program that started it can stop it")
    since = row["endedAt"] or row["startedAt"]
    return Why(task.id, row["agentInstance"], row["status"], OBSERVED, since, False, [Statement(text, evidence)], [way])
