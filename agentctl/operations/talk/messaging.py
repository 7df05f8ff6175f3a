"""Messages to a worker: put into its inbox by anybody, read there by the worker."""

from __future__ import annotations

import contextlib
from typing import Any

from agentctl.adapters.clock import monotonic
from agentctl.adapters.files import make_folder, read_quietly, write_whole
from agentctl.adapters.locks import locked
from agentctl.adapters.taskdir import AgentDir, TaskDir
from agentctl.adapters.watch import Watch
from agentctl.errors import UsageError, WaitTimedOut
from agentctl.operations.where.lineage import shown_caller, who
from agentctl.operations.where.locating import caller_or_refuse, find_agent
from agentctl.operations.where.ownership import check_own
from agentctl.supervision.worker.inboxes import message_names, put_message
from agentctl.supervision.worker.kinship import ancestors
from agentctl.supervision.worker.spec import read_order, read_spec

_READ = "read"


def send(task: TaskDir, instance: str, text: str, *, interrupt: bool = False, close: bool = False) -> dict[str, Any]:
    """Put a message into a worker's inbox, durably.

    Args:
        interrupt: An agent that works gets it now, and not in its next turn.
        close: Let an agent that was kept end; there may be no text then.

    Returns:
        {agentInstance, messageId, warning}; `warning` says why the worker will not read it, and who will.

    Raises:
        Refused: The worker has ended; or an agent would have one do what it may not do itself.
    """
    if not text.strip() and not close:
        raise UsageError("the message is empty")
    check_own(task)
    agent = find_agent(task, instance)
    if text.strip():
        _refuse_freer(agent)
    message_id = put_message(agent, who(), text, interrupt=interrupt, close=close)
    return {"agentInstance": instance, "messageId": message_id, "warning": _why_unread(agent)}


def _refuse_freer(agent: AgentDir) -> None:
    """Refuse what a worker would have an agent do that it could not start: but those above it decide themselves."""
    me, order = shown_caller(), read_order(agent)
    if me is None or order is None or any(one.path == agent.path for one in (me.agent, *ancestors(me.agent))):
        return
    from agentctl.operations.start.permissions import check_policy_again  # Most messages are a person's.

    check_policy_again(agent.task, read_spec(agent.spec).agent, order.get("permissions") or [])


def _why_unread(agent: AgentDir) -> str | None:
    way = read_quietly(agent.fallback).get("driver")
    if way is None:
        return None
    told = f"{agent.instance} runs by `{way}`, which takes no messages"
    return f"{told}: whoever resumes it reads them"


def receive(*, wait: bool, timeout_s: float | None) -> dict[str, Any] | None:
    """Return the calling worker's next unread message; None where there is none and `wait` is off.

    Raises:
        WaitTimedOut: None came within `timeout_s`.
    """
    agent = caller_or_refuse("inbox").agent
    check_own(agent.task)
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


def _take(agent: AgentDir) -> dict[str, Any] | None:
    with locked(agent.lock):
        message = next_message(agent)
        if message is not None:
            mark_read(agent)
        return message


def unread(agent: AgentDir) -> list[str]:
    """Return the texts of the messages that a worker has not been passed."""
    if not agent.inbox.exists():
        return []
    names = message_names(agent)[_read_count(agent) :]
    return [text for name in names if (text := str(read_quietly(agent.inbox / name).get("text") or "").strip())]


def next_message(agent: AgentDir) -> dict[str, Any] | None:
    """Return a worker's first unread message, which stays unread until `mark_read`; a damaged one is empty."""
    names, done = message_names(agent), _read_count(agent)
    return read_quietly(agent.inbox / names[done]) if done < len(names) else None


def mark_read(agent: AgentDir) -> None:
    """Note that the first unread message has been passed on."""
    write_whole(agent.inbox / _READ, str(_read_count(agent) + 1).encode(), durable=False)


def _read_count(agent: AgentDir) -> int:
    with contextlib.suppress(OSError, ValueError):
        return max(0, int((agent.inbox / _READ).read_text(encoding="ascii")))
    return 0
