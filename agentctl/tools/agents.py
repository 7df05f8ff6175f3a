"""`spawn_agent`, `send_input`, `close_agent`, `resume_agent`, `list_agents`: agents that are started and go on."""

from __future__ import annotations

from typing import Any

from agentctl.adapters.files import read_quietly
from agentctl.adapters.taskdir import AgentDir
from agentctl.domain.states import TERMINAL
from agentctl.errors import NotFound
from agentctl.operations.agents import find_agent_spec
from agentctl.operations.answering import who_answers
from agentctl.operations.cancelling import cancel_workers
from agentctl.operations.gathering import Key
from agentctl.operations.interacting import respond
from agentctl.operations.listing import read_task
from agentctl.operations.messaging import send
from agentctl.operations.requests import AgentWork, SpawnRequest
from agentctl.operations.resuming import resume_worker
from agentctl.operations.spawning import spawn_workers
from agentctl.supervision.questions import waiting_askers
from agentctl.tools.definition import Arguments, Call, Ends, Pending, Target, Tool, flag, number, text
from agentctl.tools.place import Place, Situation
from agentctl.tools.results import question_of, result_of
from agentctl.tools.words import agent_types, bounds, limits

_LAST_MESSAGE = 300
_ID = text("The id of the agent, as spawn_agent gave it.")
_ID_SYNONYMS = {"target": "id", "agent_id": "id"}


def _spawn(place: Place, given: Arguments, _call: Call) -> Any:
    kind = given.get("agent_type", "general")
    work = AgentWork(
        prompt=given["instruction"], agent=kind, driver=driver_for(place, kind), model=given.get("model"),
        max_turns=given.get("max_turns"), keep=given.get("keep", False),
    )  # fmt: skip
    request = SpawnRequest(work=work, name=given.get("id"), cwd=given.get("working_dir") or place.folder)
    started = spawn_workers(place.task, [request], queue=True)[0]
    target = Target(id=started.agent_instance, key=Key(place.task.id, started.agent_instance))
    if not given.get("run_in_background", True):
        return Pending(tool=SPAWN_AGENT.name, targets=(target,))
    told = {"id": started.agent_instance, "status": started.status}
    return told | ({"warnings": list(started.warnings)} if started.warnings else {})


def driver_for(place: Place, kind: str) -> str | None:
    """Return the driver of the calling agent, for a child whose definition leaves the choice."""
    if place.me is None or find_agent_spec(place.task.root, kind).driver is not None:
        return None
    order = read_quietly(place.me.agent.spec).get("order")
    driver = order.get("driver") if isinstance(order, dict) else None
    return driver if isinstance(driver, str) and driver != "command" else None


def _spawned(place: Place, pending: Pending) -> Any:
    target = pending.targets[0]
    agent = place.agent_of(target.key)
    status = status_of(agent)
    return {"id": target.id, "status": status, **result_of(agent, status)}


def _send(place: Place, given: Arguments, _call: Call) -> Any:
    """Answer the question that the agent waits with, or else leave it a message."""
    agent = place.find(given["id"])
    question = given.get("question_id") or next(iter(waiting_askers(agent)), None)
    if question is not None and not given.get("interrupt"):
        answered = respond(
            place.task.root, task=agent.task, instance=agent.instance, question_id=question, answer=given["message"],
            answerer=who_answers(by_tool=True),
        )  # fmt: skip
        return {"submission_id": answered["id"], "answered": answered["answer"]}
    sent = send(agent.task, agent.instance, given["message"], interrupt=given.get("interrupt", False))
    return {"submission_id": sent["messageId"]} | ({"warning": sent["warning"]} if sent["warning"] else {})


def _close(place: Place, given: Arguments, _call: Call) -> Any:
    agent = place.find(given["id"])
    before = status_of(agent)
    if before in TERMINAL:
        return {"previous_status": before}
    ended = cancel_workers(agent.task, [agent.instance])
    told: dict[str, Any] = {"previous_status": before, "status": ended[0].status}
    if len(ended) > 1:
        told["closed_with_it"] = [one.agent_instance for one in ended[1:]]
    if ended[0].note:
        told |= {"note": ended[0].note, "survivors": ended[0].survivors}
    return told


def _resume(place: Place, given: Arguments, _call: Call) -> Any:
    agent = place.find(given["id"])
    told = read_quietly(agent.spec).get("agentId")
    started = resume_worker(agent.task, agent.instance, given.get("message"), queue=True)
    return {"id": str(told or given["id"]), "instance": started.agent_instance, "status": started.status}


def _list(place: Place, given: Arguments, _call: Call) -> Any:
    rows = [_row(place, agent) for agent in place.below()]
    prefix = given.get("path_prefix", "").strip("/")
    return [row for row in rows if not prefix or f"{row['path']}/".startswith(f"{prefix}/")]


def _row(place: Place, agent: AgentDir) -> dict[str, Any]:
    spec, view = read_quietly(agent.spec), read_task(agent.task)[0]
    worker = view.workers.get(agent.instance)
    row = {
        "id": place.name_of(agent),
        "agent_type": spec.get("agent", "command"),
        "status": str(worker.status) if worker else "queued",
        "parent": spec.get("parent"),
        "path": _path(agent, spec),
        "last_message": _last_message(agent),
    }
    question = None if agent.has_ended else question_of(agent)
    more = {"reason": worker.reason if worker else None, "question": question}
    return row | {key: value for key, value in more.items() if value}


def _path(agent: AgentDir, spec: dict[str, Any]) -> str:
    """Return `a/b/c`: the worker behind those that it descends from."""
    names, seen, task = [agent.instance], {agent.instance}, agent.task
    while (parent := spec.get("parent")) and parent not in seen:
        task = task.sibling(spec["parentTask"]) if spec.get("parentTask") else task
        names.append(parent)
        seen.add(parent)
        spec = read_quietly(task.agent(parent).spec)
    return "/".join(reversed(names))


def _last_message(agent: AgentDir) -> str | None:
    result = read_quietly(agent.result)
    told = result.get("finalMessage") or result.get("summary")
    if not isinstance(told, str) or not told:
        return None
    return told if len(told) <= _LAST_MESSAGE else f"{told[:_LAST_MESSAGE]} [cut]"


def status_of(agent: AgentDir) -> str:
    """Return a worker's status."""
    worker = read_task(agent.task)[0].workers.get(agent.instance)
    if worker is None:
        raise NotFound(f"no worker {agent.instance!r} in task {agent.task.id}")
    return str(worker.status)


def _about_spawn(situation: Situation) -> str:
    return (
        "Start a sub-agent with a history of its own; returns its id at once. Start several, then `wait` for them."
        f" {limits(situation)}\n{agent_types(situation)}"
    )


SPAWN_AGENT = Tool(
    name="spawn_agent",
    describe=_about_spawn,
    properties={
        "instruction": text("What the agent is to do. It sees nothing of this conversation.", minLength=1),
        "agent_type": text("Which agent; `general` without it."),
        "id": text("The name it is to have: letters, digits, - and _."),
        "model": text("Another model than the agent's own."),
        "max_turns": number("After so many tool rounds it is stopped.", low=1, high=100_000, whole=True),
        "working_dir": text("Its working folder; yours without it."),
        "run_in_background": flag("false: answer only when it has ended."),
        "keep": flag("Stay after the answer, for more input, until close_agent."),
    },
    required=("instruction",),
    synonyms={
        "message": "instruction", "prompt": "instruction", "task": "instruction", "subagent_type": "agent_type",
        "name": "id", "cwd": "working_dir",
    },
    run=_spawn,
    ends=Ends(_spawned),
    spawns=True,
)  # fmt: skip

SEND_INPUT = Tool(
    name="send_input",
    describe=lambda _situation: (
        "Answer the question that an agent waits with (an option's id, yes or no, or free text), or else send it a"
        " message: it comes with the agent's next turn, or at once with `interrupt`. A request for permission (it names"
        " a tool) you can deny; to allow it is for the user, unless your own rules allow that very call."
    ),
    properties={
        "id": _ID,
        "message": text("The answer or the message.", minLength=1),
        "interrupt": flag("Send a message now, also in the middle of a turn, and do not take it for an answer."),
        "question_id": text("Which of its questions is answered; the oldest without it."),
    },
    required=("id", "message"),
    synonyms={**_ID_SYNONYMS, "input": "message", "prompt": "message"},
    run=_send,
)

CLOSE_AGENT = Tool(
    name="close_agent",
    describe=lambda _situation: (
        "Stop an agent with all its processes and all agents below it. What it has brought so far stays readable."
    ),
    properties={"id": _ID},
    required=("id",),
    synonyms=_ID_SYNONYMS,
    run=_close,
    destructive=True,
)

RESUME_AGENT = Tool(
    name="resume_agent",
    describe=lambda situation: (
        f"Continue an ended agent from its own history, with a further message. {bounds(situation)}"
    ),
    properties={"id": _ID, "message": text("What it is to do now; without it, it goes on where it was.")},
    required=("id",),
    synonyms={**_ID_SYNONYMS, "prompt": "message", "instruction": "message"},
    run=_resume,
    spawns=True,
)

LIST_AGENTS = Tool(
    name="list_agents",
    describe=lambda _situation: "List the agents below you: id, status, parent, question, last message.",
    properties={"path_prefix": text("Only this agent and those below it: a path as in `path`, `a/b`.")},
    run=_list,
    read_only=True,
)
