"""Calls that answer later: kept on disk under a name that cannot be guessed, so that any later server can answer."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field, replace
from typing import Any

from agentctl.adapters.clock import now_iso
from agentctl.adapters.files import make_folder, read_json, to_json, write_whole
from agentctl.adapters.taskdir import TaskDir
from agentctl.errors import NotFound
from agentctl.tools.definition import Pending, pending_from

_TOKEN = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Handle:
    """A call that answers later. Whoever knows its token may ask for the answer."""

    token: str
    pending: Pending
    created_at: str
    is_cancelled: bool = False
    #: Questions that were put to the client and not answered there: `TASK.INSTANCE.ID.HASH`.
    declined: tuple[str, ...] = field(default_factory=tuple)

    def to_json(self) -> dict[str, Any]:
        """Return it for its file."""
        return {
            "pending": self.pending.to_json(),
            "createdAt": self.created_at,
            "isCancelled": self.is_cancelled,
            "declined": list(self.declined),
        }


def create(task: TaskDir, pending: Pending) -> Handle:
    """Keep a call, durably, under a new token."""
    handle = Handle(token=os.urandom(16).hex(), pending=pending, created_at=now_iso())
    make_folder(task.handles)
    _write(task, handle)
    return handle


def load(task: TaskDir, token: str) -> Handle:
    """Return a call that was kept.

    Raises:
        NotFound: There is none of this token.
    """
    value = read_json(task.handles / f"{token}.json") if _TOKEN.fullmatch(token) else None
    if value is None:
        raise NotFound("there is no such task")
    return Handle(
        token=token, pending=pending_from(value["pending"]), created_at=value["createdAt"],
        is_cancelled=value["isCancelled"], declined=tuple(value["declined"]),
    )  # fmt: skip


def cancelled(task: TaskDir, handle: Handle) -> None:
    """Note that the caller has cancelled it."""
    _write(task, replace(handle, is_cancelled=True))


def declined(task: TaskDir, handle: Handle, key: str) -> Handle:
    """Note that the client's user does not answer a question: it is left to others."""
    changed = replace(handle, declined=(*handle.declined, key))
    _write(task, changed)
    return changed


def _write(task: TaskDir, handle: Handle) -> None:
    write_whole(task.handles / f"{handle.token}.json", to_json(handle.to_json()))
