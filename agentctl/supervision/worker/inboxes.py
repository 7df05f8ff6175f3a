"""Messages to a worker, as files in its inbox: put there by anybody, in order; read there by the worker."""

from __future__ import annotations

from agentctl.adapters import eventlog
from agentctl.adapters.clock import now_iso
from agentctl.adapters.files import make_folder, read_known, to_json, write_whole
from agentctl.adapters.locks import locked
from agentctl.adapters.taskdir import WorkerDir, names_in
from agentctl.domain import events as ev
from agentctl.errors import Next, Refused
from agentctl.lean import Any
from agentctl.supervision import failpoints
from agentctl.supervision.worker.control import poke
from agentctl.supervision.worker.questions import open_questions, read_question

_MOST_MESSAGES = 10_000


def message_names(worker: WorkerDir) -> list[str]:
    """Return the names of the messages' files, oldest first."""
    return sorted(name for name in names_in(worker.inbox, _MOST_MESSAGES + 2) if name.endswith(".json"))


def message_of_key(worker: WorkerDir, key: str) -> str | None:
    """Return the id of the message that was put into a worker's inbox under a key; None if there is none."""
    name = _name_of_key(worker, key)
    return None if name is None else _id_of(name)


def _name_of_key(worker: WorkerDir, key: str) -> str | None:
    names = (name for name in message_names(worker) if name.endswith(f".{key}.json"))
    return next((name for name in names if name.partition(".")[0].isdecimal()), None)


def _id_of(name: str) -> str:
    return f"m{int(name.partition('.')[0])}"


def put_message(
    worker: WorkerDir, sender: str, text: str, *, interrupt: bool = False, close: bool = False, key: str = ""
) -> str:
    """Put a message into a worker's inbox, durably; return its id.

    Args:
        key: A text of letters and digits that stands in the name of the message's file: by it the same message is
            found, and not put there a second time.

    Raises:
        Refused: The worker has ended, or the inbox is full.
    """
    make_folder(worker.inbox)
    with locked(worker.lock):
        name = _name_of_key(worker, key) if key else None
        if name is not None:
            return _id_of(name)
        if worker.has_ended:
            raise Refused(
                f"{worker.instance} has ended; nobody would read the message", hint=Next("read result", worker.instance)
            )
        number = len(message_names(worker)) + 1
        if number > _MOST_MESSAGES:
            what = f"the inbox of {worker.instance} is full: {_MOST_MESSAGES} messages"
            raise Refused(what, hint=f"look at {worker.inbox}")
        message: dict[str, Any] = {"id": f"m{number}", "from": sender, "at": now_iso(), "text": text}
        message |= ({"interrupt": True} if interrupt else {}) | ({"close": True} if close else {})
        name = f"{number:06d}.{key}.json" if key else f"{number:06d}.json"
        write_whole(worker.inbox / name, to_json(message))
        failpoints.reached("send.after-message")
        payload = {"id": message["id"], "size": len(text)}
        event = ev.make_event(now_iso(), ev.MESSAGE_SENT, worker.task.id, sender, payload, worker.instance)
        eventlog.append(worker.task.events, [event])
    if worker.launch.exists():
        poke(worker)  # What stands in here for a worker on a node passes the message on.
    return str(message["id"])


def is_idle(worker: WorkerDir) -> bool:
    """Return whether an agent that was kept has answered, and waits for a message."""
    bodies = (read_question(worker, name) for name in open_questions(worker))
    return any(body.idle for body in bodies if body is not None)


def let_go(worker: WorkerDir, sender: str) -> None:
    """Tell an agent that was kept to end, if it has answered and was not told so yet."""
    if not is_idle(worker):
        return
    names = message_names(worker)
    if not names or not read_known(worker.inbox / names[-1]).get("close"):
        put_message(worker, sender, "", close=True)
