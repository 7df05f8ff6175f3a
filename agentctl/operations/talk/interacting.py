"""The questions of workers: shown in any terminal, and answered from any; the first valid answer wins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentctl.adapters import eventlog
from agentctl.adapters.clock import now_iso
from agentctl.adapters.files import create_whole, read_json, read_quietly, to_json
from agentctl.adapters.locks import locked
from agentctl.adapters.taskdir import Root, TaskDir, WorkerDir
from agentctl.domain import events as ev
from agentctl.domain.answers import DENY, check_answer, meaning, question_in
from agentctl.domain.names import check_name, first_of
from agentctl.domain.plaintext import whole
from agentctl.errors import Damaged, Next, NotFound, Refused, UsageError
from agentctl.operations.talk.answerers import Answerer, check_answerer, who_answers
from agentctl.operations.talk.asking import event_of, refuse_if_ended, resumed_by
from agentctl.operations.where.locating import current_task
from agentctl.operations.where.ownership import check_own, is_own, vouch_for_answer
from agentctl.supervision import failpoints
from agentctl.supervision.worker.control import poke
from agentctl.supervision.worker.questions import open_questions, read_question, waiting_askers

_LONGEST_REASON = 10_000


def list_questions_below(task: TaskDir, warnings: list[str] | None = None) -> list[dict[str, Any]]:
    """Return the open questions of a task and of all sub-tasks below it, oldest first.

    Args:
        warnings: Gets a line for each file that holds no question.
    """
    from agentctl.operations.where.subtasks_below import subtree

    return _questions_of(subtree(task), warnings)


def list_questions(root: Root, task: TaskDir | None = None, warnings: list[str] | None = None) -> list[dict[str, Any]]:
    """Return the open questions of a task, or of all tasks of a root, as `list_questions_below` does."""
    return _questions_of([task] if task is not None else [root.task(name) for name in root.task_ids()], warnings)


def _questions_of(tasks: list[TaskDir], warnings: list[str] | None) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for one in filter(is_own, tasks):
        for instance in one.instances():
            worker = one.worker(instance)
            if worker.interactions.exists() and not worker.has_ended:
                waiting = set(waiting_askers(worker))
                for name in open_questions(worker):
                    body = read_question(worker, name)
                    if body is not None:
                        found.append(_row(worker, name, body, name in waiting))
                    elif warnings is not None:
                        warnings.append(f"{worker.question(name)} holds no question: it is left out")
    return sorted(found, key=lambda row: str(row["askedAt"]))


def _row(worker: WorkerDir, name: str, body: Mapping[str, Any], waiting: bool) -> dict[str, Any]:
    keys = ("kind", "question", "options", "default", "askedAt", "deadlineSeconds")
    more = ("tool", "arguments", "isCut", "means", "askedBy", "askedByType", "multiple", "other", "idle")
    return {
        "taskId": worker.task.id,
        "agentInstance": worker.instance,
        "id": name,
        **{key: body.get(key) for key in keys},
        "waiting": waiting,
        **{key: body[key] for key in more if key in body},
    }


def respond(  # noqa: PLR0913 - keyword-only, each known to a caller
    root: Root,
    *,
    task: TaskDir | None,
    instance: str | None,
    question_id: str | None,
    answer: str,
    answerer: Answerer | None = None,
    shown: Mapping[str, Any] | None = None,
    reason: str | None = None,
) -> dict[str, Any]:
    """Answer a question; the first valid answer wins.

    Args:
        reason: Why a permission is denied; the agent that asked reads it.
        answerer: Who answers; None finds out who makes this call.
        shown: The question as the answerer saw it: if it differs from that now, it is not answered.

    Raises:
        NotFound: There is no such question, or none is open.
        UsageError: More than one is open and none was named, or the answer is not one of its options.
        Refused: It was answered before, its worker has ended, or the caller may not answer it; nothing was changed.
    """
    worker, name = _choose(root, task, instance, question_id)
    check_own(worker.task)
    me = answerer or who_answers()
    with locked(worker.lock):
        body = read_json(worker.question(name))
        if body is None:
            raise NotFound(f"{worker.instance} has asked no question {name!r}", hint=Next("look at questions"))
        if question_in(body) is None:
            raise Damaged(f"{worker.question(name)} holds no question", hint=f"agentctl logs {worker.instance}")
        known = read_json(worker.answer(name))
        if known is not None:
            raise Refused(_too_late(worker, name, known), hint=Next("look at questions"))
        refuse_if_ended(worker, "get answers")
        if any(body.get(key) != value for key, value in (shown or {}).items()):
            raise Refused(f"{name} of {worker.instance} is a different question by now", hint=Next("look at questions"))
        value = check_answer(body, answer)
        check_answerer(worker, body, value, me)
        is_waiting = name in waiting_askers(worker)
        # Only a driver asks for permissions, and a restarted one asks again.
        if body.get("tool") and not is_waiting:
            raise Refused(
                f"nobody waits for the answer to {name} of {worker.instance} any more: the program that asked is gone",
                hint=Next("look at questions"),
            )
        reply = {"id": name, "answer": value, "by": me.name(worker), "at": now_iso(), **_reason(body, value, reason)}
        if body.get("tool"):
            vouch_for_answer(worker, body, reply)
        if not create_whole(worker.answer(name), to_json(reply)):  # Somebody without the lock was faster.
            raise Refused(_too_late(worker, name, read_quietly(worker.answer(name))), hint=Next("look at questions"))
        failpoints.reached("respond.after-answer")
        event = event_of(worker, ev.ANSWERED, reply, by=reply["by"])
        eventlog.append(worker.task.events, [event, *resumed_by(worker, name)])
    poke(worker)
    answered = {"taskId": worker.task.id, "agentInstance": worker.instance, "id": name, "answer": value}
    return {**answered, "waiting": is_waiting}


def _reason(body: Mapping[str, Any], answer: str, reason: str | None) -> dict[str, str]:
    """Return the reason of a denial as the file of the answer has it."""
    if reason is None:
        return {}
    if not body.get("tool") or meaning(body.get("means"), answer) != DENY:
        raise UsageError("a reason goes only with the denial of a permission", hint="put it into the answer itself")
    if not reason.strip() or len(reason) > _LONGEST_REASON:
        raise UsageError(f"the reason must have 1 to {_LONGEST_REASON} characters")
    return {"reason": whole(reason)}


def _too_late(worker: WorkerDir, name: str, known: dict[str, Any]) -> str:
    if known.get("expired"):
        why = str(known.get("why") or "its deadline passed")
        return f"{name} of {worker.instance} is closed: {why}"
    return f"{name} of {worker.instance} was answered already, with {known.get('answer')!r} by {known.get('by')}"


def _choose(root: Root, task: TaskDir | None, instance: str | None, question_id: str | None) -> tuple[WorkerDir, str]:
    """Return the question to answer: the named one, else the only open one."""
    worker = _find_worker(root, task, instance) if instance is not None else None
    if worker is not None and question_id is not None:
        return worker, check_name(question_id, "--id")
    named = worker.instance if worker is not None else None
    rows = [row for row in list_questions(root, worker.task if worker else task) if _fits(row, named, question_id)]
    if len(rows) == 1:
        return root.task(rows[0]["taskId"]).worker(rows[0]["agentInstance"]), str(rows[0]["id"])
    if rows:
        names = first_of([f"{row['agentInstance']} --id {row['id']} (task {row['taskId']})" for row in rows])
        raise UsageError(
            f"{len(rows)} questions are open: {names}", hint="say which: interact respond INSTANCE --id ID ANSWER"
        )
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


def _fits(row: dict[str, Any], instance: str | None, question_id: str | None) -> bool:
    return instance in (None, row["agentInstance"]) and question_id in (None, row["id"])


def _find_worker(root: Root, task: TaskDir | None, instance: str) -> WorkerDir:
    """Return the named worker: of the given task, else of the current task, else of any task that has it."""
    check_name(instance, "the instance")
    current = current_task(root)
    tasks = [task] if task else [root.task(current)] if current else []
    others = [] if task else [one for one in map(root.task, root.task_ids()) if one.id != current and is_own(one)]
    found = [one.worker(instance) for one in (*tasks, *others) if one.worker(instance).path.exists()]
    asking = [worker for worker in found if worker.question_ids()]
    if not found and (below := _of_subtask(root, instance)) is not None:
        return below
    if not found:
        raise NotFound(f"no worker or sub-task {instance!r}", hint=Next("look at questions"))
    open_ones = [worker for worker in asking if open_questions(worker)]
    return (open_ones or asking or found)[0]


def _of_subtask(root: Root, task_id: str) -> WorkerDir | None:
    """Return the worker of a sub-task that asks, else its first one; None if there is no sub-task or no worker."""
    task = root.task(task_id)
    workers = [task.worker(name) for name in task.instances()] if task.exists and is_own(task) else []
    return next((worker for worker in workers if open_questions(worker)), workers[0] if workers else None)
