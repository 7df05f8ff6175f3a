"""Questions of workers: asked by one, shown anywhere, answered by the first valid answer from any terminal."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agentctl.adapters import eventlog, processes
from agentctl.adapters.clock import monotonic, now_iso
from agentctl.adapters.files import create_whole, make_folder, read_json, read_quietly, to_json, write_whole
from agentctl.adapters.locks import hold_alive, locked
from agentctl.adapters.taskdir import AgentDir, Root, TaskDir
from agentctl.adapters.watch import Watch
from agentctl.domain import events as ev
from agentctl.domain.answers import check_answer, check_question
from agentctl.domain.names import check_name, first_of
from agentctl.errors import NotFound, Refused, UsageError, WaitTimedOut
from agentctl.operations.locating import caller_or_refuse, current_task, who
from agentctl.supervision import failpoints
from agentctl.supervision.control import poke
from agentctl.supervision.questions import open_questions, waiting_askers


def ask(
    question: str,
    *,
    kind: str,
    options: Sequence[tuple[str, str]],
    default: str | None,
    deadline_s: float | None,
    question_id: str | None,
) -> dict[str, str]:
    """Ask, as the calling worker, and wait for the answer. The worker is blocked meanwhile; its clock stands still.

    Args:
        kind: `select` (an option's id is the answer), `confirm` (yes or no), `input` (any text).
        default: The answer at the deadline.
        deadline_s: None waits without a limit.
        question_id: Take a question up again that was asked before, answered meanwhile or not.

    Returns:
        {id, answer, by}: `by` is `agentctl` where the default was taken at the deadline.

    Raises:
        WaitTimedOut: The deadline passed and there is no default; the question is closed.
        Refused: The worker has ended, or somebody else waits for this question's answer.
    """
    agent = caller_or_refuse("interact ask").agent
    body = {"kind": kind, "question": question, "options": [{"id": key, "label": label} for key, label in options]}
    check_question(body, default)
    deadline = None if deadline_s is None else monotonic() + deadline_s
    with Watch() as watch:
        asked = _put(agent, {**body, "default": default, "deadlineSeconds": deadline_s}, question_id)
        try:
            watch.add(agent.interactions)
            return _await_answer(agent, asked.question_id, watch, default, deadline)
        finally:
            os.close(asked.lock)
            poke(agent)


@dataclass(frozen=True, slots=True)
class _Asked:
    question_id: str
    lock: int


def _put(agent: AgentDir, body: dict[str, Any], question_id: str | None) -> _Asked:
    """Put a question on disk, or find it there, and hold its asker's lock."""
    make_folder(agent.interactions)
    with locked(agent.lock):
        _refuse_if_ended(agent, "asks")
        name = check_name(question_id, "--id") if question_id else _next_id(agent)
        is_new = not agent.question(name).exists()
        lock = hold_alive(agent.asker_lock(name))
        if lock is None:
            raise Refused(f"somebody waits for the answer to {name} already")
        me = processes.identify(os.getpid())
        known = read_quietly(agent.question(name))
        value = known or {"id": name, "askedAt": now_iso(), **body}
        write_whole(agent.question(name), to_json({**value, "asker": me.to_json() if me else None}))
        events = []
        if is_new:
            payload = {key: value[key] for key in ("id", "kind", "question", "options", "default", "deadlineSeconds")}
            events.append(_event(agent, ev.ASKED, payload))
        if not agent.answer(name).exists():
            events.append(_event(agent, ev.BLOCKED, {"id": name}))
        eventlog.append(agent.task.events, events)
    poke(agent)
    return _Asked(name, lock)


def _next_id(agent: AgentDir) -> str:
    return f"q{len(agent.question_ids()) + 1}"


def _event(agent: AgentDir, kind: str, payload: dict[str, Any]) -> ev.Event:
    return ev.make_event(now_iso(), kind, agent.task.id, who(), payload, agent.instance)


def _refuse_if_ended(agent: AgentDir, verb: str) -> None:
    if agent.has_ended:
        raise Refused(
            f"{agent.instance} has ended ({read_quietly(agent.exit).get('status')}): it {verb} nothing any more"
        )


def _await_answer(
    agent: AgentDir, name: str, watch: Watch, default: str | None, deadline: float | None
) -> dict[str, str]:
    while True:
        answer = read_json(agent.answer(name))
        if answer is not None:
            if answer.get("expired"):
                raise WaitTimedOut(f"nobody answered {name} in time", hint="ask with --default to go on without")
            return {"id": name, "answer": str(answer["answer"]), "by": str(answer.get("by"))}
        if agent.has_ended:
            raise Refused(f"{agent.instance} has ended; nobody will answer {name}")
        left = None if deadline is None else deadline - monotonic()
        if left is not None and left <= 0:
            _close_at_deadline(agent, name, default)
            continue
        watch.sleep(left)


def _close_at_deadline(agent: AgentDir, name: str, default: str | None) -> None:
    """Answer with the default, or close the question unanswered; an answer that came first wins."""
    with locked(agent.lock):
        if agent.answer(name).exists():
            return
        body = {"id": name, "at": now_iso(), "by": "agentctl", "answer": default, "expired": default is None}
        create_whole(agent.answer(name), to_json(body))
        kind = ev.EXPIRED if default is None else ev.ANSWERED
        eventlog.append(agent.task.events, [_event(agent, kind, body), *_resumed(agent, name)])


def _resumed(agent: AgentDir, name: str) -> list[ev.Event]:
    """Return the event that the worker goes on, unless another question of it still has a live asker."""
    return [] if set(waiting_askers(agent)) - {name} else [_event(agent, ev.RESUMED, {"id": name})]


def list_questions(root: Root, task: TaskDir | None = None) -> list[dict[str, Any]]:
    """Return the open questions of a task, or of all tasks of a root, oldest first."""
    tasks = [task] if task is not None else [root.task(name) for name in root.task_ids()]
    found = []
    for one in tasks:
        for instance in one.instances():
            agent = one.agent(instance)
            if agent.interactions.exists() and not agent.has_ended:
                waiting = set(waiting_askers(agent))
                found += [_row(agent, name, name in waiting) for name in open_questions(agent)]
    return sorted(found, key=lambda row: str(row["askedAt"]))


def _row(agent: AgentDir, name: str, waiting: bool) -> dict[str, Any]:
    body = read_quietly(agent.question(name))
    keys = ("kind", "question", "options", "default", "askedAt", "deadlineSeconds")
    return {
        "taskId": agent.task.id,
        "agentInstance": agent.instance,
        "id": name,
        **{key: body.get(key) for key in keys},
        "waiting": waiting,
    }


def respond(
    root: Root, *, task: TaskDir | None, instance: str | None, question_id: str | None, answer: str
) -> dict[str, Any]:
    """Answer a question; the first valid answer wins.

    Raises:
        NotFound: There is no such question, or none is open.
        UsageError: More than one is open and none was named, or the answer is none of its options.
        Refused: It was answered before, or its worker has ended; nothing was changed.
    """
    agent, name = _chosen(root, task, instance, question_id)
    with locked(agent.lock):
        body = read_json(agent.question(name))
        if body is None:
            raise NotFound(f"{agent.instance} has asked no question {name!r}", hint="agentctl interact list")
        known = read_json(agent.answer(name))
        if known is not None:
            raise Refused(_too_late(agent, name, known), hint="agentctl interact list shows what is open")
        _refuse_if_ended(agent, "hears")
        value = check_answer(body, answer)
        reply = {"id": name, "answer": value, "by": who(), "at": now_iso()}
        create_whole(agent.answer(name), to_json(reply))
        failpoints.reached("respond.after-answer")
        eventlog.append(agent.task.events, [_event(agent, ev.ANSWERED, reply), *_resumed(agent, name)])
    poke(agent)
    return {"taskId": agent.task.id, "agentInstance": agent.instance, "id": name, "answer": value}


def _too_late(agent: AgentDir, name: str, known: dict[str, Any]) -> str:
    if known.get("expired"):
        return f"{name} of {agent.instance} is closed: its deadline passed"
    return f"{name} of {agent.instance} was answered already, with {known.get('answer')!r} by {known.get('by')}"


def _chosen(root: Root, task: TaskDir | None, instance: str | None, question_id: str | None) -> tuple[AgentDir, str]:
    """Return the question that is meant: the named one, else the only open one."""
    agent = _named(root, task, instance) if instance is not None else None
    if agent is not None and question_id is not None:
        return agent, check_name(question_id, "--id")
    rows = [row for row in list_questions(root, agent.task if agent else task) if _fits(row, instance, question_id)]
    if len(rows) == 1:
        return root.task(rows[0]["taskId"]).agent(rows[0]["agentInstance"]), str(rows[0]["id"])
    if rows:
        names = first_of([f"{row['agentInstance']} --id {row['id']} (task {row['taskId']})" for row in rows])
        raise UsageError(
            f"{len(rows)} questions are open: {names}", hint="say which: interact respond INSTANCE --id ID ANSWER"
        )
    if agent is not None:
        _refuse_if_ended(agent, "asks")
    which = (
        f"{instance} has no open question"
        if agent
        else f"no open question is {question_id}"
        if question_id
        else "no question is open"
    )
    raise NotFound(which, hint="agentctl interact list")


def _fits(row: dict[str, Any], instance: str | None, question_id: str | None) -> bool:
    return instance in (None, row["agentInstance"]) and question_id in (None, row["id"])


def _named(root: Root, task: TaskDir | None, instance: str) -> AgentDir:
    """Return the worker that is meant: of the task, else of the current one, else of any that has it."""
    check_name(instance, "the instance")
    current = current_task(root)
    tasks = [task] if task else [root.task(current)] if current else []
    others = [] if task else [root.task(name) for name in root.task_ids() if name != current]
    found = [one.agent(instance) for one in (*tasks, *others) if one.agent(instance).path.exists()]
    asking = [agent for agent in found if agent.question_ids()]
    if not found:
        raise NotFound(f"no worker {instance!r}", hint="agentctl interact list shows who asks")
    open_ones = [agent for agent in asking if open_questions(agent)]
    return (open_ones or asking or found)[0]
