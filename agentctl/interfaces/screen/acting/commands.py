"""What the keys of the screen do to workers: each carries out one operation, and says in a line what came of it.

An operation is imported where it is carried out: the list is drawn before a person can press a key.
"""

from __future__ import annotations

import contextlib
from collections.abc import Hashable, Iterator, Sequence
from typing import TYPE_CHECKING

from agentctl.adapters.taskdir import Root, TaskDir
from agentctl.domain.question import Question
from agentctl.domain.text.plaintext import plain
from agentctl.encoding import as_typed
from agentctl.errors import AgentctlError, StorageError
from agentctl.interfaces.screen.kept_keys import KeptKeys
from agentctl.operations.fleet.glance import FleetTask, FleetWorker
from agentctl.world_errors import missing_part

if TYPE_CHECKING:
    from agentctl.operations.stop.cancelling import Cancelled


def answer(root: Root, worker: FleetWorker, question: Question, text: str, reason: str | None = None) -> str:
    """Answer a question as it was shown.

    Raises:
        AgentctlError: It was answered before, it has changed, or it does not take this answer.
    """
    from agentctl.operations.talk.interacting import answer_open_question

    done = answer_open_question(
        root, task=worker.task, instance=worker.row["agentInstance"], question_id=question.id,
        answer=as_typed(text), shown=question, reason=reason,
    )  # fmt: skip
    return f"{worker.row['agentInstance']} was answered: {_label(question, str(done['answer']))}"


def _label(question: Question, value: str) -> str:
    labels = {one.id: one.label for one in question.options}
    return plain(", ".join(labels.get(part, part) for part in value.split(",")) if labels else value)[:100]


def by_task(workers: Sequence[FleetWorker]) -> dict[str, list[str]]:
    """Return the names of workers by their task."""
    found: dict[str, list[str]] = {}
    for worker in workers:
        found.setdefault(worker.task.id, []).append(worker.row["agentInstance"])
    return found


def cancel_all_of(workers: Sequence[FleetWorker]) -> str:
    """Cancel workers with all below them; returns when all of it is proven gone, or its survivors are known."""
    from agentctl.operations.stop.cancelling import cancel_found
    from agentctl.operations.where.ownership import check_may_be_stopped

    dirs = [worker.task.worker(worker.row["agentInstance"]) for worker in workers]
    for task in {worker.task.path: worker.task for worker in workers}.values():
        check_may_be_stopped(task)
    return _all_cancelled(cancel_found(dirs, seen_from=workers[0].task), len(workers))


def _all_cancelled(done: Sequence[Cancelled], asked: int = 1) -> str:
    """Return what became of workers, the first ones, and of those below them.

    >>> from agentctl.operations.stop.cancelling import Cancelled
    >>> ended = Cancelled(agent_instance="a", cancelled=True, status="cancelled")
    >>> lives = Cancelled(agent_instance="b", cancelled=False, status="running", survivors=[{"pid": 7}])
    >>> _all_cancelled([ended, lives])
    'a is cancelled, with 1 below it; still alive: pid 7'
    >>> _all_cancelled([ended, ended], asked=2)
    '2 workers are cancelled'
    """
    survivors = [f"pid {one.get('pid')}" for each in done for one in each.survivors]
    below = len(done) - asked
    if asked == 1:
        first, them = _cancelled(done[0]), "it"
    else:
        others = [one for one in done[:asked] if one.note or not one.cancelled]
        first, them = f"{asked - len(others)} workers are cancelled", "them"
        first = "; ".join([first, *map(_cancelled, others)])
    more = f", with {below} below {them}" if below else ""
    alive = f"; still alive: {', '.join(survivors)}" if survivors else ""
    return f"{first}{more}{alive}"


def _cancelled(one: Cancelled) -> str:
    if one.cancelled and not one.note:
        return f"{one.agent_instance} is cancelled"
    return f"{one.agent_instance} is {one.status}" + (f": {plain(one.note)}" if one.note else "")


def _tasks_of(workers: Sequence[FleetWorker]) -> Iterator[tuple[TaskDir, list[str]]]:
    tasks = {worker.task.id: worker.task for worker in workers}
    return ((tasks[name], names) for name, names in by_task(workers).items())


class OnceOnly:
    """Does each thing once: what met an error has its key still, or its meaning, when it is done again."""

    def __init__(self) -> None:
        self._keys = KeptKeys()
        #: What a key that does one of two things means, of whatever it has begun with and may have done or not.
        self._meant: dict[Hashable, bool] = {}

    def pauses(self, workers: Sequence[FleetWorker]) -> bool:
        """Return whether the key for both pauses workers: those that are not paused; else it lets all continue."""
        return self._meant.get(_which(workers), not all(worker.row["paused"] for worker in workers))

    def holds(self, task: FleetTask) -> bool:
        """Return whether the key for both holds the queue of a task; else it lets it go: where the task is held."""
        return self._meant.get(task.task.path, task.hold is None or task.hold.task_id != task.task.id)

    def turn_pauses(self, workers: Sequence[FleetWorker], *, pauses: bool) -> str:
        """Pause workers, or let them continue."""
        from agentctl.operations.stop.pausing import pause_workers, unpause_workers

        change = pause_workers if pauses else unpause_workers
        with self._meaning(_which(workers), pauses):
            done = [one for task, names in _tasks_of(workers) for one in change(task, names)]
        if len(done) > 1:
            return f"{len(done)} workers {'are paused' if pauses else 'continue'}"
        below = f", with {len(done[0]['withIt'])} below it" if done[0]["withIt"] else ""
        return f"{done[0]['agentInstance']} {'is paused' if done[0]['paused'] else 'continues'}{below}"

    def turn_hold(self, task: FleetTask, *, holds: bool) -> str:
        """Hold the queue of a task, or let it go."""
        from agentctl.operations.stop.holding import hold_task, let_task_go

        with self._meaning(task.task.path, holds):
            done = (hold_task if holds else let_task_go)(task.task)
        return f"the queue of {task.task.id} {'is held: nothing is started' if done['held'] else 'goes on'}"

    @contextlib.contextmanager
    def _meaning(self, what: Hashable, means: bool) -> Iterator[None]:
        """Let a key that does one of two things mean the same until that is done, or refused.

        Behind another error it may have been done: by then the screen may show what that was to make, and the other
        thing would undo it.
        """
        self._meant[what] = means
        try:
            yield
        except BaseException as error:
            if isinstance(error, AgentctlError) and not isinstance(error, StorageError):
                self._meant.pop(what, None)
            else:
                self._meant[what] = means  # Another press, carried out meanwhile, may have taken it away.
            raise
        self._meant.pop(what, None)

    def start_again(self, workers: Sequence[FleetWorker]) -> str:
        """Start the work of ended workers once more; pressed again before that is done, it is the same.

        Where an error was told, the newest tries are by now those that were started: the works are the same, and in the
        same order.
        """
        from agentctl.operations.start.again import retry_workers

        workers = sorted(workers, key=_path_of_work)
        with self._keys.once("retry", *map(_path_of_work, workers), joins=True) as key:
            done = [
                one
                for task, names in _tasks_of(workers)
                for one in retry_workers(task, names, queue=True, key=key).spawned
            ]
        before = sum(one.reused for one in done)
        is_known = before == len(done)
        if len(done) > 1:
            if is_known:
                return f"{before} works were tried again before"
            begun = len(done) - before
            again = f"{begun} works are" if begun > 1 else "1 work is"
            earlier = f", and {before} {'were' if before > 1 else 'was'} before" if before else ""
            return f"{again} tried again{earlier}"
        name = _work_of(workers[0]) if is_known else workers[0].row["agentInstance"]
        again = "was tried again before" if is_known else "is tried again"
        return f"{name} {again} as {done[0].agent_instance} ({done[0].status})"

    def send(self, workers: Sequence[FleetWorker], text: str) -> str:
        """Send a message to workers; of several, say to whom it could not be sent.

        Raises:
            AgentctlError, OSError: To one worker it could not be sent.
        """
        text = as_typed(text)
        what = ("send", text, *_paths(workers))
        done, refused = [], list[str]()
        with self._keys.once(*what) as key:
            for worker in workers:
                try:
                    done.append(
                        _message(worker, text, key if len(workers) == 1 else f"{key} {worker.row['agentInstance']}")
                    )
                except AgentctlError as error:
                    if len(workers) == 1:
                        raise
                    refused.append(f"not to {worker.row['agentInstance']}: {error_line(error)}")
        if refused:
            self._keys.keep(key, *what)
        return done[0] if len(workers) == 1 else "; ".join([f"it was sent to {len(done)} workers", *refused])


def _paths(workers: Sequence[FleetWorker]) -> list[str]:
    return [str(worker.task.worker(worker.row["agentInstance"]).path) for worker in workers]


def _which(workers: Sequence[FleetWorker]) -> Hashable:
    """Return what tells workers from others, and from those that have their names once they are removed."""
    return frozenset(zip(_paths(workers), (worker.row["queuedAt"] for worker in workers), strict=True))


def _path_of_work(worker: FleetWorker) -> str:
    return str(worker.task.worker(_work_of(worker)).path)


def _work_of(worker: FleetWorker) -> str:
    return worker.row.get("work", worker.row["agentInstance"])


def _message(worker: FleetWorker, text: str, key: str) -> str:
    """Send a message to a worker; an ended agent is continued with it, and an idle one gets it as its next turn."""
    from agentctl.operations.delegate.telling import tell_worker
    from agentctl.operations.start.requests import Spawned

    name = worker.row["agentInstance"]
    done = tell_worker(worker.task.worker(name), text, key=key)
    if isinstance(done, Spawned):
        return f"{name} continues as {done.agent_instance} ({done.status})"
    return f"{done} was sent to {name}"


def error_line(error: BaseException) -> str:
    """Return an error and its next step in one line."""
    if isinstance(error, AgentctlError):
        return plain(f"{error.message} ({error.hint})" if error.hint else error.message)
    if isinstance(error, OSError):
        return plain(f"{error.strerror}: {error.filename}" if error.filename else str(error.strerror or error))
    return plain(missing_part(error) or f"{type(error).__name__}: {error}")
