"""Keeps calls that answer later on disk, under a secret name, so that a later server can answer them too."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from agentctl.adapters.clock import now_iso
from agentctl.adapters.files import make_folder, read_json, to_json, write_whole
from agentctl.adapters.taskdir import TaskDir, names_in
from agentctl.errors import NotFound
from agentctl.tools.definition import Pending, pending_from

_TOKEN = re.compile(r"([A-Za-z0-9_][A-Za-z0-9_-]*)\.([0-9a-f]{32})")
#: How long a call is kept after its file was last written.
KEPT_S = 30 * 86_400
_MOST_LOOKED_AT = 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class Handle:
    """A call that answers later. A client that knows its token, `TASK.RANDOM`, may ask for the answer."""

    token: str
    pending: Pending
    created_at: str
    #: When its client has cancelled it.
    cancelled_at: str | None = None
    #: Questions that the client was asked and did not answer: `TASK.INSTANCE.ID.HASH`.
    declined: tuple[str, ...] = field(default_factory=tuple)
    #: The digest of the call that the client sends again with the filled form; empty if it need not.
    call: str = ""
    #: The answer that was given while its workers went on, and when: a task that has answered never changes.
    answer: Mapping[str, Any] | None = None
    answered_at: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return it as its file has it."""
        return {
            "pending": self.pending.to_json(),
            "createdAt": self.created_at,
            "cancelledAt": self.cancelled_at,
            "declined": list(self.declined),
            "call": self.call,
            "answer": self.answer,
            "answeredAt": self.answered_at,
        }


def task_of(token: str) -> str:
    """Return the task id in a token.

    Raises:
        NotFound: It is not a token.
    """
    return _parts(token)[0]


def _parts(token: str) -> tuple[str, str]:
    found = _TOKEN.fullmatch(token)
    if found is None:
        raise NotFound("there is no such task")
    return found[1], found[2]


def create(task: TaskDir, pending: Pending, *, call: str = "") -> Handle:
    """Keep a call, durably, under a new token."""
    handle = Handle(token=f"{task.id}.{os.urandom(16).hex()}", pending=pending, created_at=now_iso(), call=call)
    make_folder(task.handles)
    _remove_old(task)
    _write(task, handle)
    return handle


def load(task: TaskDir, token: str) -> Handle:
    """Return a call that was kept.

    Raises:
        NotFound: There is none with this token.
    """
    task_id, name = _parts(token)
    value = read_json(task.handles / f"{name}.json") if task_id == task.id else None
    if value is None:
        raise NotFound("there is no such task")
    return Handle(
        token=token, pending=pending_from(value["pending"]), created_at=value["createdAt"],
        cancelled_at=value["cancelledAt"], declined=tuple(value["declined"]), call=value["call"],
        answer=value["answer"], answered_at=value["answeredAt"],
    )  # fmt: skip


def cancelled(task: TaskDir, handle: Handle) -> None:
    """Note that its client has cancelled it."""
    _write(task, replace(handle, cancelled_at=handle.cancelled_at or now_iso()))


def declined(task: TaskDir, handle: Handle, key: str) -> Handle:
    """Note that the client's user declined a question; others may still answer it."""
    changed = replace(handle, declined=(*handle.declined, key))
    _write(task, changed)
    return changed


def answered(task: TaskDir, handle: Handle, answer: Mapping[str, Any]) -> Handle:
    """Note the final answer of a call whose workers are still at work."""
    changed = replace(handle, answer=answer, answered_at=now_iso())
    _write(task, changed)
    return changed


def forget_call(task: TaskDir, handle: Handle) -> None:
    """Forget a call that was answered."""
    with contextlib.suppress(OSError):
        os.unlink(_file(task, handle))


def _remove_old(task: TaskDir) -> None:
    """Remove the calls whose clients have not come back for the answer."""
    oldest = time.time() - KEPT_S
    for name in names_in(task.handles, _MOST_LOOKED_AT):
        path = task.handles / name
        with contextlib.suppress(OSError):
            if os.lstat(path).st_mtime < oldest:
                os.unlink(path)


def _write(task: TaskDir, handle: Handle) -> None:
    write_whole(_file(task, handle), to_json(handle.to_json()))


def _file(task: TaskDir, handle: Handle) -> str:
    return task.handles / f"{_parts(handle.token)[1]}.json"
