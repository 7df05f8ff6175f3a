"""The questions of workers: shown in any terminal, and answered from any; the first valid answer wins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from agentctl.adapters import eventlog
from agentctl.adapters.clock import now_iso
from agentctl.adapters.files import create_whole, read_json, read_known, to_json
from agentctl.adapters.locks import locked
from agentctl.adapters.taskdir import Root, TaskDir, WorkerDir
from agentctl.domain import events as ev
from agentctl.domain.answers import check_answer
from agentctl.domain.names import WorkerId, check_name, first_of
from agentctl.domain.question import DENY, Question, question_in
from agentctl.domain.text.plaintext import plain, whole
from agentctl.encoding import as_utf8
from agentctl.errors import (
    AgentctlError,
    Argument,
    AtTerminal,
    Damaged,
    Next,
    NotFound,
    Refused,
    StorageError,
    UsageError,
)
from agentctl.lean import TYPE_CHECKING, Any, NamedTuple
from agentctl.operations.show.unreadable import check_all_known, unreadable_problem
from agentctl.operations.talk.answerers import Answerer, check_answerer, who_answers
from agentctl.operations.talk.asking import event_of, refuse_if_ended, resumed_by
from agentctl.operations.where.chosen_task import chosen_task
from agentctl.operations.where.ownership import check_own, is_own, vouch_for_answer
from agentctl.supervision import failpoints
from agentctl.supervision.worker.control import poke
from agentctl.supervision.worker.questions import open_questions, read_question, waiting_askers

if TYPE_CHECKING:
    from agentctl.domain.documents.workers.questions import AcceptedAnswer, QuestionRow

_LONGEST_REASON = 10_000


class OpenQuestion(NamedTuple):
    """A question without an answer, and who asks it."""

    task_id: str
    instance: str
    question: Question
    #: Its asker lives, and waits.
    is_waiting: bool

    def to_json(self) -> QuestionRow:
        """Return it as programs get it."""
        return {
            "taskId": self.task_id,
            "agentInstance": self.instance,
            **self.question.to_json(),
            "waiting": self.is_waiting,
        }


class FoundQuestions(NamedTuple):
    """Open questions, oldest first, and what is to be said beside them."""

    questions: list[OpenQuestion]
    #: A line for each file that holds no question.
    warnings: list[str]
    #: What could not be read: there may be more questions.
    unreadable: list[StorageError]


def find_questions_below(task: TaskDir) -> FoundQuestions:
    """Return the open questions of a task and of all sub-tasks below it."""
    from agentctl.operations.where.subtasks_below import subtree

    return _questions_of(subtree(task))


def list_questions(root: Root, task: TaskDir | None = None) -> list[OpenQuestion]:
    """Return all of the open questions of a task, or of all tasks of a root, oldest first.

    Raises:
        StorageError: It is not known whether these are all.
    """
    found = find_questions(root, task)
    check_all_known(found.unreadable)
    return found.questions


def find_questions(root: Root, task: TaskDir | None = None) -> FoundQuestions:
    """Return the open questions of a task, or of all tasks of a root, as far as they can be read."""
    return _questions_of([task] if task is not None else [root.task(name) for name in root.task_ids()])


def _questions_of(tasks: list[TaskDir]) -> FoundQuestions:
    found = FoundQuestions([], [], [])
    for one in filter(is_own, tasks):
        for instance in one.instances():
            worker = one.worker(instance)
            try:
                if worker.interactions.exists() and not worker.has_ended:
                    found.questions.extend(_open_in(worker, found.warnings))
            except (AgentctlError, OSError) as error:
                found.unreadable.append(unreadable_problem(error))
    found.questions.sort(key=lambda one: str(one.question.asked_at))
    return found


def _open_in(worker: WorkerDir, warnings: list[str]) -> Iterator[OpenQuestion]:
    waiting = set(waiting_askers(worker))
    for name in open_questions(worker):
        question = read_question(worker, name)
        if question is not None:
            yield OpenQuestion(worker.task.id, worker.instance, question, name in waiting)
        else:
            warnings.append(f"{worker.question(name)} holds no question: it is left out")


def open_question(task: TaskDir, instance: str, question_id: str) -> OpenQuestion | None:
    """Return a question of a worker; None if it is not open, or no more."""
    worker = task.worker(instance)
    if worker.has_ended or not is_own(task):
        return None
    return next((one for one in _open_in(worker, []) if one.question.id == question_id), None)


def what_became_of(root: Root, worker: WorkerId, question_id: str) -> str:
    """Return what became of a question that is no longer open."""
    reply = read_known(root.task(worker.task_id).worker(worker.instance).answer(question_id))
    asked = f"{question_id} of {worker.instance}"
    if not reply:
        return f"{asked} is no longer open: nobody waits for its answer"
    if reply.get("expired"):
        return f"{asked} is closed: {plain(reply.get('why') or 'its deadline passed')}"
    return f"{asked} was answered with {plain(reply.get('answer'))!r} by {plain(reply.get('by'))}"


def answer_open_question(  # noqa: PLR0913 - keyword-only, each known to a caller
    root: Root,
    *,
    task: TaskDir | None,
    instance: str,
    question_id: str,
    answer: str,
    answerer: Answerer | None = None,
    shown: Question | None = None,
    reason: str | None = None,
    key: str | None = None,
) -> AcceptedAnswer:
    """Answer a question; the first valid answer wins. Who gives the same one again is told what it was.

    An id names one question of a worker for ever (`driving.questions`): so an answer is to the question that was read,
    and never to one that is open by now.

    Args:
        task: None: the current task, if it has that worker; else the only one that has it.
        reason: Why a permission is denied; the agent that asked reads it.
        answerer: Who answers; None finds out who makes this call.
        shown: The question as the answerer saw it: if it differs from that now, it is not answered.
        key: By it the question is found again, where the same request names none.

    Raises:
        NotFound: There is no such question.
        UsageError: The answer is not one of its options, or several tasks have such a worker.
        Refused: It was answered before, its worker has ended, or the caller may not answer it; nothing was changed.
    """
    name = check_name(question_id, Argument("id"))
    worker = _asker(root, task, instance, name)
    check_own(worker.task)
    me = answerer or who_answers()
    with locked(worker.lock):
        body = read_json(worker.question(name))
        if body is None:
            raise NotFound(f"{worker.instance} has asked no question {name!r}", hint=Next("look at questions"))
        question = question_in(name, body)
        if question is None:
            raise Damaged(f"{worker.question(name)} holds no question", hint=Next("logs", worker.instance))
        known = read_json(worker.answer(name))
        if known is not None:
            return _given_before(worker, question, known, answer, reason, me)
        refuse_if_ended(worker, "get answers")
        if shown is not None and question != shown:
            raise Refused(f"{name} of {worker.instance} is a different question by now", hint=Next("look at questions"))
        value = check_answer(question, answer)
        check_answerer(worker, question, value, me)
        is_waiting = name in waiting_askers(worker)
        # Only a driver asks for permissions, and a restarted one asks again.
        if question.is_permission and not is_waiting:
            raise Refused(
                f"nobody waits for the answer to {name} of {worker.instance} any more: the program that asked is gone",
                hint=Next("look at questions"),
            )
        given = _reason(question, value, reason)
        reply: dict[str, Any] = {"id": name, "answer": value, "by": me.name(worker), "at": now_iso(), **given}
        reply |= ({} if is_waiting else {"waiting": False}) | ({} if key is None else {"key": key})
        if question.is_permission:
            vouch_for_answer(worker, body, reply)
        if not create_whole(worker.answer(name), to_json(reply)):  # Somebody without the lock was faster.
            return _given_before(worker, question, read_known(worker.answer(name)), answer, reason, me)
        failpoints.reached("respond.after-answer")
        event = event_of(worker, ev.ANSWERED, reply, by=reply["by"])
        eventlog.append(worker.task.events, [event, *resumed_by(worker, name)])
    poke(worker)
    return _accepted(worker, reply)


def question_of_key(worker: WorkerDir, key: str | None) -> str | None:
    """Return the question that was answered under a key; None if none was."""
    asked = [] if key is None else worker.question_ids()
    return next((name for name in asked if read_known(worker.answer(name)).get("key") == key), None)


def _accepted(worker: WorkerDir, reply: Mapping[str, Any]) -> AcceptedAnswer:
    return {
        "taskId": worker.task.id, "agentInstance": worker.instance, "id": str(reply["id"]),
        "answer": str(reply["answer"]), "waiting": reply.get("waiting", True),
    }  # fmt: skip


def _given_before(
    worker: WorkerDir, question: Question, known: Mapping[str, Any], answer: str, reason: str | None, me: Answerer
) -> AcceptedAnswer:
    """Return the outcome of an answer that is sent again: whoever has lost it cannot know that it counts.

    Raises:
        Refused: It was another answer, or somebody else's.
    """
    is_same = not known.get("expired") and known.get("by") == me.name(worker)
    if is_same and known.get("answer") == check_answer(question, answer):
        again = _reason(question, str(known["answer"]), reason)
        if known.get("reason") == again.get("reason"):
            return _accepted(worker, known)
    raise Refused(_too_late(worker, question.id, known), hint=Next("look at questions"))


def _reason(question: Question, answer: str, reason: str | None) -> dict[str, str]:
    """Return the reason of a denial as the file of the answer has it."""
    if reason is None:
        return {}
    if not question.is_permission or question.meaning(answer) != DENY:
        raise UsageError("a reason goes only with the denial of a permission", hint="put it into the answer itself")
    if not reason.strip() or len(reason) > _LONGEST_REASON:
        raise UsageError(f"the reason must have 1 to {_LONGEST_REASON} characters")
    return {"reason": whole(as_utf8(reason))}


def _too_late(worker: WorkerDir, name: str, known: Mapping[str, Any]) -> str:
    if known.get("expired"):
        why = str(known.get("why") or "its deadline passed")
        return f"{name} of {worker.instance} is closed: {why}"
    return f"{name} of {worker.instance} was answered already, with {known.get('answer')!r} by {known.get('by')}"


# -- which question ----------------------------------------------------------------------------------------------------


def only_question(
    root: Root, task: TaskDir | None, instance: str | None = None, question_id: str | None = None
) -> OpenQuestion:
    """Return the only open question, of a worker or of all. It is not necessarily the one that somebody has read.

    Raises:
        NotFound: None is open.
        UsageError: Several are open.
    """
    worker = _find_worker(root, task, instance) if instance is not None else None
    named = worker.instance if worker is not None else None
    found = [
        one
        for one in list_questions(root, worker.task if worker else task)
        if named in (None, one.instance) and question_id in (None, one.question.id)
    ]
    if len(found) == 1:
        return found[0]
    if found:
        names = first_of([f"{one.question.id} of {one.instance} (task {one.task_id})" for one in found])
        hint = AtTerminal("say which: agentctl answer INSTANCE --task TASK --id ID ANSWER")
        raise UsageError(f"{len(found)} questions are open: {names}", hint=hint)
    if worker is not None:
        refuse_if_ended(worker, "get answers")
    which = (
        f"{instance} has no open question"
        if worker
        else f"no open question is {question_id}"
        if question_id
        else "no question is open"
    )
    raise NotFound(which, hint=Next("look at questions"))


def questions_of(root: Root, task: TaskDir | None, instance: str) -> list[OpenQuestion]:
    """Return the open questions of a worker; none if nobody has that name."""
    try:
        worker = _find_worker(root, task, instance)
    except AgentctlError:
        return []
    return [] if worker.has_ended or not is_own(worker.task) else list(_open_in(worker, []))


def _asker(root: Root, task: TaskDir | None, instance: str, name: str) -> WorkerDir:
    """Return the worker whose question has this id, whether it is open or not: an answer goes to no other one."""
    found = _workers_called(root, task, instance) or _workers_of_subtask(root, instance)
    asked = [worker for worker in found if worker.question(name).exists()]
    nearest = task.id if task is not None else chosen_task(root)
    if len(asked) > 1 and sum(worker.task.id == nearest for worker in asked) != 1:
        names = first_of([f"{worker.instance} of {worker.task.id}" for worker in asked])
        raise UsageError(
            f"several have asked a question {name}: {names}", hint=AtTerminal("say which: INSTANCE --task TASK")
        )
    asked.sort(key=lambda worker: worker.task.id != nearest)
    return asked[0] if asked else _find_worker(root, task, instance)


def _workers_called(root: Root, task: TaskDir | None, instance: str) -> list[WorkerDir]:
    """Return the workers of a name: of the given task, else of the current task and then of the others."""
    check_name(instance, "the instance")
    current = chosen_task(root)
    tasks = [task] if task else [root.task(current)] if current else []
    others = [] if task else [one for one in map(root.task, root.task_ids()) if one.id != current and is_own(one)]
    return [one.worker(instance) for one in (*tasks, *others) if one.worker(instance).path.exists()]


def _find_worker(root: Root, task: TaskDir | None, instance: str) -> WorkerDir:
    """Return the named worker: of the given task, else of the current task, else of any task that has it."""
    found = _workers_called(root, task, instance)
    asking = [worker for worker in found if worker.question_ids()]
    if not found and (below := _of_subtask(root, instance)) is not None:
        return below
    if not found:
        raise NotFound(f"no worker or sub-task {instance!r}", hint=Next("look at questions"))
    open_ones = [worker for worker in asking if open_questions(worker)]
    return (open_ones or asking or found)[0]


def _of_subtask(root: Root, task_id: str) -> WorkerDir | None:
    """Return the worker of a sub-task that asks, else its first one; None if there is no sub-task or no worker."""
    workers = _workers_of_subtask(root, task_id)
    return next((worker for worker in workers if open_questions(worker)), workers[0] if workers else None)


def _workers_of_subtask(root: Root, task_id: str) -> list[WorkerDir]:
    task = root.task(task_id)
    return [task.worker(name) for name in task.instances()] if task.exists and is_own(task) else []
