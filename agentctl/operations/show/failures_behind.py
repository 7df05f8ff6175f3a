"""The failures of other workers from which a worker's state follows, in its own task and in others, nearest first.

A worker that waited for another one, or started one, often wrote nothing about its failure: what says why stands in the
output of that one. So each is told with its last lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from agentctl.adapters.files import read_known
from agentctl.adapters.taskdir import TaskDir, WorkerDir
from agentctl.domain.names import is_name
from agentctl.domain.states import Reason, Status
from agentctl.domain.worker.ends import reason_in_words
from agentctl.lean import Any, NamedTuple
from agentctl.operations.show.evidence import (
    FailedWorker,
    Part,
    Statement,
    WayOut,
    evidence_fields,
    file_says,
    part_of,
    shown,
    typed,
)
from agentctl.operations.show.failed_lines import failed_lines
from agentctl.operations.show.worker_facts import WorkerFacts
from agentctl.operations.where.folding import fold
from agentctl.operations.where.ownership import may_be_stopped
from agentctl.supervision.worker.endings import Decision, decision_of
from agentctl.supervision.worker.kinship import ancestors, children_of, task_name, worker_name

#: So many failures are told, found among so many workers.
_MOST, _MOST_LOOKED_AT = 5, 50
_TOLD = ("status", "reason", "exitCode", "signal", "message", "endedAt")


class _Failure(NamedTuple):
    """A worker that has failed, and what it is to the one that is asked about."""

    worker: WorkerDir
    decision: Decision
    #: What stands before its name in a sentence, and behind it: `It waited for `, `, which`.
    around: tuple[str, str]


def failures_behind(facts: WorkerFacts) -> Part:
    """Return the failures from which a worker's state follows, and where all is that those workers wrote."""
    return part_of(_told, facts)


def _told(facts: WorkerFacts) -> Part:
    found, here = list(_found(facts)), facts.worker_dir.task
    workers = [one.worker for one in found]
    return [_statement(one, here) for one in found], [
        WayOut(f"all that {worker_name(one, here)} wrote", typed(one.task, "logs", one.instance, seen_from=here))
        for one in workers
    ]


def _statement(failure: _Failure, seen_from: TaskDir) -> Statement:
    worker, decision = failure.worker, failure.decision
    name = worker_name(worker, seen_from)
    why = reason_in_words(decision.reason, decision.exit_code, decision.signal)
    before, behind = failure.around
    what = f"{before}{name}{behind} failed{f' ({shown(why)})' if why else ''}"
    text = f"{what}: {shown(decision.message)}." if decision.message else f"{what}."
    evidence = [file_says(worker.exit, evidence_fields(decision.to_json(), *_TOLD))]
    task_id = task_name(worker.task, seen_from) or worker.task.id
    return Statement(text, evidence, FailedWorker(task_id, worker.instance, failed_lines(worker, decision.status)))


def _found(facts: WorkerFacts) -> Iterator[_Failure]:
    """Yield each failure once: of the workers that one waited for or started, then those behind these."""
    worker = facts.worker_dir
    seen, left = {str(worker.path)}, [_first(facts)]
    for failures in left:
        for one in failures:
            if str(one.worker.path) in seen:
                continue
            if len(seen) > _MOST:
                return
            seen.add(str(one.worker.path))
            yield one
            name = worker_name(one.worker, worker.task)
            is_in_vain = one.decision.reason == Reason.DEPENDENCY
            left.append(_awaited(one.worker, f"{name} waited for ", read_known(one.worker.spec)) if is_in_vain
                        else _started(one.worker, f"{name} started "))  # fmt: skip


def _first(facts: WorkerFacts) -> Iterator[_Failure]:
    """Yield the failures from which its state follows at once."""
    worker, view = facts.worker_dir, facts.view
    if facts.condition is not None and facts.condition.is_queued:
        yield from _awaited(worker, "It waits for ", facts.spec)
    elif view.reason == Reason.DEPENDENCY:
        yield from _awaited(worker, "It waited for ", facts.spec)
    elif view.status is Status.FAILED or view.awaits_children:
        yield from _started(worker, "It started ")
    if view.status not in (Status.COMPLETED, Status.FAILED):
        yield from _failed(islice(ancestors(worker, facts.spec), _MOST_LOOKED_AT), worker, ("", ", which is above it,"))


def _awaited(worker: WorkerDir, before: str, spec: Mapping[str, Any]) -> Iterator[_Failure]:
    """Yield the failures that a worker waited for in vain, as its spec names them."""
    after = spec.get("after")
    if isinstance(after, list) and not spec.get("afterAny"):
        names = [name for name in after[:_MOST_LOOKED_AT] if isinstance(name, str) and is_name(name)]
        yield from _failed((worker.task.worker(name) for name in names), worker, (before, ", which"))


def _started(worker: WorkerDir, before: str) -> Iterator[_Failure]:
    """Yield the failures of the workers that a worker started, unless it has tried the same work again itself."""
    children = children_of(worker)[-_MOST_LOOKED_AT:] if worker.children.exists() else []
    yield from _failed(_newest(children), worker, (before, ", which"))


def _newest(children: Sequence[WorkerDir]) -> Iterator[WorkerDir]:
    """Yield workers without those of which there is a newer try among them."""
    ids = {(str(one.task.path), one.instance) for one in children}
    tries = {str(one.task.path): fold(one.task).tries for one in children if may_be_stopped(one.task)}
    for one in children:
        of_task = tries.get(str(one.task.path))
        newest = one.instance if of_task is None else of_task.newest(of_task.work_of(one.instance))
        if newest == one.instance or (str(one.task.path), newest) not in ids:
            yield one


def _failed(workers: Iterable[WorkerDir], seen_from: WorkerDir, around: tuple[str, str]) -> Iterator[_Failure]:
    """Yield those that have failed; of a task that is not this person's own nothing is believed."""
    for one in workers:
        is_ours = one.task.path == seen_from.task.path or may_be_stopped(one.task)
        decision = decision_of(one) if is_ours else None
        if decision is not None and decision.status is Status.FAILED:
            yield _Failure(one, decision, around)
