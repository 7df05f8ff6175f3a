"""Messages to a worker: anybody can put one into its inbox, and the worker reads it there."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from agentctl.adapters.clock import monotonic
from agentctl.adapters.files import file_text, make_folder, read_known, write_whole
from agentctl.adapters.locks import locked
from agentctl.adapters.taskdir import TaskDir, WorkerDir
from agentctl.adapters.watch import Watch
from agentctl.domain.agent.driver_names import COMMAND
from agentctl.encoding import as_utf8
from agentctl.errors import UsageError, WaitTimedOut
from agentctl.operations.where.calling import caller_or_refuse
from agentctl.operations.where.lineage import shown_caller, who
from agentctl.operations.where.locating import find_worker
from agentctl.operations.where.ownership import check_own
from agentctl.supervision.worker.inboxes import message_names, put_message
from agentctl.supervision.worker.kinship import ancestors
from agentctl.supervision.worker.spec import read_order, read_spec

if TYPE_CHECKING:
    from agentctl.domain.documents.workers.messages import ReceivedMessage, SentMessage

_READ = "read"


def deliver_message(
    task: TaskDir,
    instance: str,
    text: str,
    *,
    interrupt: bool = False,
    close: bool = False,
    key: str | None = None,
    among: Sequence[str] = (),
) -> SentMessage:
    """Put a message into a worker's inbox, durably.

    Args:
        key: The same key with the same message puts it there once.
        among: All that the same request is about, if it is about several.
        interrupt: A working agent gets it now, and not in its next turn.
        close: Let an agent end that was kept after its answer; the text may be empty then.

    Raises:
        Conflict: The key has done something else.
        Refused: The worker has ended; or an agent tells another one to do what it may not do itself.
    """
    if not text.strip() and not close:
        raise UsageError("the message is empty")
    check_own(task)
    worker = find_worker(task, instance)
    if text.strip():
        _refuse_freer(worker)
    order = read_order(worker)
    if order is not None and order.get("driver") != COMMAND:  # As for a prompt: it is told in JSON.
        text = as_utf8(text)
    if key is None:
        message_id = put_message(worker, who(), text, interrupt=interrupt, close=close)
    else:
        from agentctl.operations.start.request_keys import put_message_once, work_named  # Few messages have a key.

        said = {
            "worker": among or work_named(task, worker.instance),
            "text": text,
            "interrupt": interrupt,
            "close": close,
        }
        message_id = put_message_once(worker, key, said, who(), text, interrupt=interrupt, close=close)
    return {"agentInstance": instance, "messageId": message_id, "warning": None}


def _refuse_freer(worker: WorkerDir) -> None:
    """Refuse a message to an agent that the calling worker could not start itself; it may write to those above it."""
    me, order = shown_caller(), read_order(worker)
    if me is None or order is None or any(one.path == worker.path for one in (me.worker, *ancestors(me.worker))):
        return
    from agentctl.operations.start.permissions import check_policy_again  # Not above: most messages come from a person.

    check_policy_again(worker.task, read_spec(worker.spec).agent, order.get("permissions") or [])


def receive(*, wait: bool, timeout_s: float | None) -> ReceivedMessage | None:
    """Return the calling worker's next unread message; None where there is none and `wait` is off.

    Raises:
        WaitTimedOut: None came within `timeout_s`.
    """
    worker = caller_or_refuse("inbox").worker
    check_own(worker.task)
    make_folder(worker.inbox)
    deadline = None if timeout_s is None else monotonic() + timeout_s
    with Watch([worker.inbox]) as watch:
        while True:
            message = _take(worker)
            left = None if deadline is None else deadline - monotonic()
            if message is not None or not wait:
                return message
            if left is not None and left <= 0:
                raise WaitTimedOut(f"no message came within {timeout_s:g} s")
            watch.sleep(left)


def _take(worker: WorkerDir) -> ReceivedMessage | None:
    with locked(worker.lock):
        message = next_message(worker)
        if message is not None:
            mark_read(worker)
        return message


def unread(worker: WorkerDir) -> list[str]:
    """Return the texts of the messages that have not been passed to a worker."""
    if not worker.inbox.exists():
        return []
    names = message_names(worker)[_read_count(worker) :]
    return [text for name in names if (text := str(read_known(worker.inbox / name).get("text") or "").strip())]


def next_message(worker: WorkerDir) -> ReceivedMessage | None:
    """Return a worker's first unread message, which stays unread until `mark_read`; a damaged one is empty."""
    names, done = message_names(worker), _read_count(worker)
    message: Any = read_known(worker.inbox / names[done]) if done < len(names) else None
    found: ReceivedMessage | None = message  # As it was put there.
    return found


def mark_read(worker: WorkerDir) -> None:
    """Record that the first unread message has been passed on."""
    write_whole(worker.inbox / _READ, str(_read_count(worker) + 1).encode(), durable=False)


def _read_count(worker: WorkerDir) -> int:
    with contextlib.suppress(ValueError):
        return max(0, int(file_text(worker.inbox / _READ, "ascii")))
    return 0
