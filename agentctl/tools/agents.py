"""The tools `spawn_agent`, `send_input`, `close_agent` and `resume_agent`, for agents that run in the background."""

from __future__ import annotations

from typing import Any

from agentctl.adapters.files import read_known
from agentctl.adapters.taskdir import WorkerDir
from agentctl.domain.names import WorkerId
from agentctl.domain.states import TERMINAL
from agentctl.errors import NotFound
from agentctl.operations.delegate.delegating import DEFAULT_AGENT
from agentctl.operations.delegate.resuming import resume_worker
from agentctl.operations.show.current_state import read_task
from agentctl.operations.start.request_keys import START, done_by_key
from agentctl.operations.start.requests import AgentWork, SpawnRequest
from agentctl.operations.start.spawning import spawn_workers
from agentctl.operations.stop.cancelling import cancel_found, cancel_workers
from agentctl.operations.talk.answerers import who_answers
from agentctl.operations.talk.interacting import answer_open_question, question_of_key
from agentctl.operations.talk.messaging import deliver_message
from agentctl.operations.trust.definitions import find_agent_spec
from agentctl.operations.wait.keys import gather
from agentctl.supervision.worker.inboxes import is_idle
from agentctl.supervision.worker.kinship import cancelled_with
from agentctl.supervision.worker.questions import waiting_askers
from agentctl.tools.awaited_worker import Target
from agentctl.tools.definition import Arguments, Call, Ends, Pending, Tool, flag, some_text, text
from agentctl.tools.descriptions import agent_types, bounds
from agentctl.tools.foreign_arguments import OTHERS, adapted, not_honoured
from agentctl.tools.results import result_of
from agentctl.tools.scope import Scope, Situation
from agentctl.tools.start_arguments import KEY, MODEL, START_ARGUMENTS, start_fields

#: How long an agent may take to end after it was let go; then it is stopped.
_CLOSE_S = 10.0
_ID = text("The agent's id, task_id or taskId; TASKID/NAME for one that a sub-task's agent has started.")
_ID_SYNONYMS = {"target": "id", "agent_id": "id", "to": "id", "task_id": "id", "taskId": "id", "agentId": "id"}


def _spawn(scope: Scope, given: Arguments, _call: Call) -> Any:
    spec = find_agent_spec(scope.task.root, given.get("agent_type", DEFAULT_AGENT))
    work = AgentWork(
        prompt=given["instruction"],
        agent=spec.name,
        spec=spec,
        keep=given.get("keep", False),
        **start_fields(scope, spec, given),
    )
    request = SpawnRequest(
        work=work, name=given.get("id"), cwd=given.get("working_dir"), callers_cwd=scope.folder,
        worktree=given.get("worktree", False), label=given.get("description"), by_tool=True, key=given.get("key"),
    )  # fmt: skip
    started = spawn_workers(scope.task, [request], queue=True)[0]
    target = Target(id=started.agent_instance, key=WorkerId(scope.task.id, started.agent_instance))
    warnings = [*started.warnings, *not_honoured(given)]
    scope.note(target)
    if not given.get("run_in_background", True):
        return Pending(tool=SPAWN_AGENT.name, targets=(target,), given={"warnings": warnings})
    return {"id": started.agent_instance, "status": started.status} | ({"warnings": warnings} if warnings else {})


def _spawned(scope: Scope, pending: Pending) -> Any:
    target = pending.targets[0]
    worker = scope.agent_of(target.key)
    status, warnings = status_of(worker), pending.given.get("warnings")
    answer = {"id": target.id, "status": status, **result_of(worker, status)}
    return answer | ({"warnings": warnings} if warnings else {})


def _send(scope: Scope, given: Arguments, _call: Call) -> Any:
    """Answer the agent's open question, or else send it a message; continue an ended agent with the message."""
    worker, message, key = scope.find(given["id"]), given["message"], given.get("key")
    done, answered_before = done_by_key(worker.task, key), question_of_key(worker, key)
    is_to_go_on = done is None and answered_before is None and status_of(worker) in TERMINAL
    if done == START or is_to_go_on:
        continued = _continued(scope, worker, given["id"], message, key)
        return {"submission_id": continued["instance"], **continued}
    question = given.get("question_id") or answered_before
    if question is None and done is None:
        question = next(iter(waiting_askers(worker)), None)
    if question is not None and not given.get("interrupt") and not given.get("as_message"):
        answered = answer_open_question(
            scope.task.root, task=worker.task, instance=worker.instance, question_id=question, answer=message,
            answerer=who_answers(by_tool=True), key=key,
        )  # fmt: skip
        return {"submission_id": answered["id"], "answered": answered["answer"]}
    sent = deliver_message(worker.task, worker.instance, message, interrupt=given.get("interrupt", False), key=key)
    return {"submission_id": sent["messageId"]}


def _close(scope: Scope, given: Arguments, call: Call) -> Any:
    worker = scope.find(given["id"])
    before = status_of(worker)
    if before in TERMINAL:
        return {"previous_status": before}
    if is_idle(worker):
        closed = _let_go(scope, worker, call)
        if closed is not None:
            return {"previous_status": before, **closed}
    ended = cancel_workers(worker.task, [worker.instance])
    answer: dict[str, Any] = {"previous_status": before, "status": ended[0].status}
    if len(ended) > 1:
        answer["closed_with_it"] = [one.agent_instance for one in ended[1:]]
    if ended[0].note:
        answer |= {"note": ended[0].note, "survivors": ended[0].survivors}
    return answer


def _let_go(scope: Scope, worker: WorkerDir, call: Call) -> dict[str, Any] | None:
    """Let an idle agent end, and cancel the workers below it; return None if it does not end in time."""
    below = [one for one in cancelled_with(worker) if not one.has_ended]
    if below:
        cancel_found(below, seen_from=worker.task)
    deliver_message(worker.task, worker.instance, "", close=True)
    key = worker.id
    sight = gather(
        scope.task, [key], is_enough=lambda seen: key in seen and seen[key].is_terminal,
        timeout_s=call.within(_CLOSE_S), broken=call.broken,
    )  # fmt: skip
    if key not in sight or not sight[key].is_terminal:
        return None
    answer: dict[str, Any] = {"status": str(sight[key].status)}
    return answer | ({"closed_with_it": [one.instance for one in below]} if below else {})


def _without_task(given: Arguments) -> Any:
    """Raise `NotFound`: there is no task yet, and so no worker."""
    raise NotFound(f"no worker {given['id']!r}: nothing was started")


def _resume(scope: Scope, given: Arguments, _call: Call) -> Any:
    return _continued(scope, scope.find(given["id"]), given["id"], given.get("message"), given.get("key"))


def _continued(scope: Scope, worker: WorkerDir, name: str, message: str | None, key: str | None) -> dict[str, Any]:
    """Continue an ended agent; answer with its agent id or, if it is in another task, the name that the caller used."""
    started = resume_worker(worker.task, worker.instance, message, queue=True, by_tool=True, key=key)
    own_id = str(read_known(worker.spec).get("agentId") or name) if worker.task.id == scope.task.id else name
    scope.note(Target(id=own_id, key=WorkerId(worker.task.id, started.agent_instance)))
    return {"id": own_id, "instance": started.agent_instance, "status": started.status}


def status_of(worker_dir: WorkerDir) -> str:
    """Return a worker's status."""
    worker = read_task(worker_dir.task)[0].workers.get(worker_dir.instance)
    if worker is None:
        raise NotFound(f"no worker {worker_dir.instance!r} in task {worker_dir.task.id}")
    return str(worker.status)


def _about_spawn(situation: Situation) -> str:
    return (
        "Start a sub-agent with its own history; returns its id at once. Start several in one message, then wait for"
        f" them. For a follow-up, call send_input with the same id. {bounds(situation)}\n{agent_types(situation)}"
    )


SPAWN_AGENT = Tool(
    name="spawn_agent",
    describe=_about_spawn,
    properties={
        "instruction": some_text("What the agent should do. It sees nothing of this conversation."),
        "agent_type": text(f"Which agent; default: {DEFAULT_AGENT}."),
        "id": text("A name that no other agent has had: letters, digits, - and _. Default: made from its type."),
        **MODEL,
        **START_ARGUMENTS,
        "working_dir": text("Its working folder; default: yours."),
        "run_in_background": flag("false: answer only when it has ended; default: true."),
        "keep": flag("Keep it after its answer, for more input in the same process, until close_agent."),
        **KEY,
    },
    required=("instruction",),
    also=OTHERS,
    synonyms={
        "message": "instruction", "prompt": "instruction", "task": "instruction", "objective": "instruction",
        "subagent_type": "agent_type", "name": "id", "cwd": "working_dir", "reasoning_effort": "effort",
    },
    adapt=adapted("instruction"),
    run=_spawn,
    answers="StartedAgent | EndedAgent | AgentsAtWork",
    ends=Ends(_spawned),
    spawns=True,
)  # fmt: skip

SEND_INPUT = Tool(
    name="send_input",
    describe=lambda _situation: (
        "Answer an agent's open question (with an option's id; with any text if `other` is true or there are no"
        " options). If there is none, send it a message for its next turn; an ended agent is continued with it, under"
        " the same id. You can deny a request for permission (it names a tool); only the user can allow it, unless your"
        " own rules allow exactly that call."
    ),
    properties={
        "id": _ID,
        "message": some_text("The answer or the message."),
        "interrupt": flag("Send it as a message at once, even in the middle of a turn."),
        "as_message": flag("Send it as a message, not as an answer, even if a question is open."),
        "question_id": text("Which of its questions to answer; default: the oldest."),
        **KEY,
    },
    required=("id", "message"),
    synonyms={**_ID_SYNONYMS, "input": "message", "prompt": "message"},
    other_names=("SendMessage",),
    adapt=adapted("message"),
    without_task=_without_task,
    run=_send,
    answers="InputTaken",
)

CLOSE_AGENT = Tool(
    name="close_agent",
    describe=lambda _situation: (
        "Close an agent that you no longer need, and all agents below it. A kept agent that has answered ends normally"
        " (completed); one at work is stopped with all its processes (cancelled). Its results stay readable."
    ),
    properties={"id": _ID},
    required=("id",),
    synonyms=_ID_SYNONYMS,
    without_task=_without_task,
    run=_close,
    answers="ClosedAgent",
    destructive=True,
)

RESUME_AGENT = Tool(
    name="resume_agent",
    describe=lambda _situation: (
        "Continue an ended agent from its own history, under the same id; send_input with a message does the same."
    ),
    properties={"id": _ID, "message": text("What it should do now; default: go on where it stopped."), **KEY},
    required=("id",),
    synonyms={**_ID_SYNONYMS, "prompt": "message", "instruction": "message"},
    without_task=_without_task,
    run=_resume,
    answers="ContinuedAgent",
    spawns=True,
)
