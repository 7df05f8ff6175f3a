"""What `Task.result` returns, key by key, as `result --json` prints it."""

from __future__ import annotations

from typing import Any, TypedDict

from agentctl.domain.states import Status


class _OfAll(TypedDict):
    """What each has."""

    agentInstance: str
    status: Status
    reason: str | None
    exitCode: int | None
    message: str | None
    #: Where the text is from: `agent activity declared stdout none`.
    source: str
    #: Only what was declared.
    summary: str | None
    text: str
    truncated: bool
    #: Of the full text, and the file that has it.
    size: int
    sha256: str | None
    path: str | None
    #: {path, size, sha256} each.
    files: list[dict[str, Any]]
    worktree: dict[str, Any] | None
    openSession: str | None


class WorkerResult(_OfAll, total=False):
    """The result of a worker, limited in size."""

    #: A copy of the full text with shorter lines.
    wrapped: str
    #: About a summary that was cut.
    summaryCut: dict[str, Any]
    #: Of an agent.
    success: bool
    usage: dict[str, Any]
    costUsd: float | None
    turnsUsed: int | None
    model: str | None
    sessionId: str | None
    touchedFiles: list[str]
