"""What the keys of the screen do to workers: each carries out one operation, and says in a line what came of it."""

from __future__ import annotations

from collections.abc import Sequence

from agentctl.adapters.files import read_known
from agentctl.adapters.taskdir import Root
from agentctl.domain.names import WorkerId
from agentctl.domain.question import Question
from agentctl.domain.text.plaintext import plain
from agentctl.encoding import as_typed
from agentctl.errors import AgentctlError
from agentctl.operations.delegate.resuming import resume_worker
from agentctl.operations.fleet.glance import FleetTask, FleetWorker
from agentctl.operations.start.again import retry_worker
from agentctl.operations.stop.cancelling import Cancelled, cancel_workers
from agentctl.operations.stop.holding import hold_task, let_task_go
from agentctl.operations.stop.pausing import pause_worker, unpause_worker
from agentctl.operations.talk.interacting import answer_open_question
from agentctl.operations.talk.messaging import deliver_message
from agentctl.world_errors import missing_part


def answer(root: Root, worker: FleetWorker, question: Question, text: str, reason: str | None = None) -> str:
    """Answer a question as it was shown.

    Raises:
        AgentctlError: It was answered before, it has changed, or it does not take this answer.
    """
    done = answer_open_question(
        root, task=worker.task, instance=worker.row["agentInstance"], question_id=question.id,
        answer=as_typed(text), shown=question, reason=reason,
    )  # fmt: skip
    return f"{worker.row['agentInstance']} was answered: {_label(question, str(done['answer']))}"


def _label(question: Question, value: str) -> str:
    labels = {one.id: one.label for one in question.options}
    return plain(", ".join(labels.get(part, part) for part in value.split(",")) if labels else value)[:100]


def what_became_of(root: Root, worker: WorkerId, question_id: str) -> str:
    """Return what became of a question that is no longer open."""
    reply = read_known(root.task(worker.task_id).worker(worker.instance).answer(question_id))
    asked = f"{question_id} of {worker.instance}"
    if not reply:
        return f"{asked} is no longer open: nobody waits for its answer"
    if reply.get("expired"):
        return f"{asked} is closed: {plain(reply.get('why') or 'its deadline passed')}"
    return f"{asked} was answered with {plain(reply.get('answer'))!r} by {plain(reply.get('by'))}"


def cancel_worker(worker: FleetWorker) -> str:
    """Cancel a worker with all below it; returns when all of it is proven gone, or its survivors are known."""
    return _all_cancelled(cancel_workers(worker.task, [worker.row["agentInstance"]]))


def _all_cancelled(done: Sequence[Cancelled]) -> str:
    """Return what became of a worker, the first one, and of those below it.

    >>> ended = Cancelled(agent_instance="a", cancelled=True, status="cancelled")
    >>> lives = Cancelled(agent_instance="b", cancelled=False, status="running", survivors=[{"pid": 7}])
    >>> _all_cancelled([ended, lives])
    'a is cancelled, with 1 below it; still alive: pid 7'
    """
    survivors = [f"pid {one.get('pid')}" for each in done for one in each.survivors]
    first = _cancelled(done[0])
    more = f", with {len(done) - 1} below it" if len(done) > 1 else ""
    alive = f"; still alive: {', '.join(survivors)}" if survivors else ""
    return f"{first}{more}{alive}"


def _cancelled(one: Cancelled) -> str:
    if one.cancelled and not one.note:
        return f"{one.agent_instance} is cancelled"
    return f"{one.agent_instance} is {one.status}" + (f": {plain(one.note)}" if one.note else "")


def turn_pause(worker: FleetWorker) -> str:
    """Pause a worker, or let a paused one continue."""
    change = unpause_worker if worker.row["paused"] else pause_worker
    done = change(worker.task, worker.row["agentInstance"])
    below = f", with {len(done['withIt'])} below it" if done["withIt"] else ""
    return f"{done['agentInstance']} {'is paused' if done['paused'] else 'continues'}{below}"


def turn_hold(task: FleetTask) -> str:
    """Hold the queue of a task, or let it go where the task itself is held."""
    is_held = task.hold is not None and task.hold.task_id == task.task.id
    done = (let_task_go if is_held else hold_task)(task.task)
    return f"the queue of {task.task.id} {'is held: nothing is started' if done['held'] else 'goes on'}"


def start_again(worker: FleetWorker) -> str:
    """Start the work of an ended worker once more."""
    spawned = retry_worker(worker.task, worker.row["agentInstance"], queue=True)
    return f"{worker.row['agentInstance']} is tried again as {spawned.agent_instance} ({spawned.status})"


def message_worker(root: Root, worker: FleetWorker, text: str) -> str:
    """Send a message to a worker; an ended agent is continued with it, and an idle one gets it as its next turn."""
    name, text = worker.row["agentInstance"], as_typed(text)
    if worker.row["driver"] is not None and worker.row["endedAt"] is not None:
        spawned = resume_worker(worker.task, name, text, queue=True)
        return f"{name} continues as {spawned.agent_instance} ({spawned.status})"
    return f"{deliver_message(worker.task, name, text)['messageId']} was sent to {name}"


def error_line(error: BaseException) -> str:
    """Return an error and its next step in one line."""
    if isinstance(error, AgentctlError):
        return plain(f"{error.message} ({error.hint})" if error.hint else error.message)
    if isinstance(error, OSError):
        return plain(f"{error.strerror}: {error.filename}" if error.filename else str(error.strerror or error))
    return plain(missing_part(error) or f"{type(error).__name__}: {error}")
