"""Messages to a worker: put into its inbox by anybody, read there by the worker."""

from __future__ import annotations

import contextlib
import os
from typing import Any

from agentctl.adapters import eventlog
from agentctl.adapters.clock import monotonic, now_iso
from agentctl.adapters.files import make_folder, read_json, to_json, write_whole
from agentctl.adapters.locks import locked
from agentctl.adapters.taskdir import AgentDir, TaskDir
from agentctl.adapters.watch import Watch
from agentctl.domain import events as ev
from agentctl.errors import Refused, UsageError, WaitTimedOut
from agentctl.operations.locating import caller_or_refuse, find_agent, who

_READ = "read"


def send(task: TaskDir, instance: str, text: str) -> dict[str, Any]:
    """Put a message into a worker's inbox, durably.

    Raises:
        Refused: The worker has ended.
    """
    if not text.strip():
        raise UsageError("the message is empty")
    agent = find_agent(task, instance)
    make_folder(agent.inbox)
    with locked(agent.lock):
        if agent.has_ended:
            raise Refused(f"{instance} has ended; nobody would read the message", hint=f"agentctl result {instance}")
        number = len(_messages(agent)) + 1
        message = {"id": f"m{number}", "from": who(), "at": now_iso(), "text": text}
        write_whole(agent.inbox / f"{number:06d}.json", to_json(message))
        payload = {"id": message["id"], "size": len(text)}
        event = ev.make_event(now_iso(), ev.MESSAGE_SENT, task.id, who(), payload, instance)
        eventlog.append(task.events, [event])
    return {"agentInstance": instance, "messageId": message["id"]}


def receive(*, wait: bool, timeout_s: float | None) -> dict[str, Any] | None:
    """Return the calling worker's next unread message; None where there is none and `wait` is off.

    Raises:
        WaitTimedOut: None came within `timeout_s`.
    """
    agent = caller_or_refuse("inbox").agent
    make_folder(agent.inbox)
    deadline = None if timeout_s is None else monotonic() + timeout_s
    with Watch([agent.inbox]) as watch:
        while True:
            message = _take(agent)
            left = None if deadline is None else deadline - monotonic()
            if message is not None or not wait:
                return message
            if left is not None and left <= 0:
                raise WaitTimedOut(f"no message came within {timeout_s:g} s")
            watch.sleep(left)


def _messages(agent: AgentDir) -> list[str]:
    return sorted(name for name in os.listdir(agent.inbox) if name.endswith(".json"))


def _take(agent: AgentDir) -> dict[str, Any] | None:
    with locked(agent.lock):
        mark = agent.inbox / _READ
        done = 0
        with contextlib.suppress(FileNotFoundError, ValueError):
            done = int(mark.read_text(encoding="ascii"))
        names = _messages(agent)
        if done >= len(names):
            return None
        message = read_json(agent.inbox / names[done])
        write_whole(mark, str(done + 1).encode(), durable=False)
        return message
