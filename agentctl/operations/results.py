"""What came of a worker, bounded: declared, else the tail of its output; with size, hash and path of the whole."""

from __future__ import annotations

import hashlib
from typing import Any

from agentctl.adapters.files import read_quietly
from agentctl.adapters.taskdir import AgentDir, TaskDir
from agentctl.operations.listing import show_worker
from agentctl.operations.locating import find_agent
from agentctl.operations.worktrees import ensure_recorded, patch_of

DEFAULT_MAX_BYTES = 4000
_OF_AGENTS = ("success", "turnsUsed", "usage", "costUsd", "model", "sessionId", "touchedFiles")


def read_result(task: TaskDir, instance: str, *, max_bytes: int = DEFAULT_MAX_BYTES) -> dict[str, Any]:
    """Return a worker's result: what it declared, else the tail of its stdout.

    Returns:
        {agentInstance, status, reason, source: declared|agent|stdout|none, summary, text, truncated, size, sha256,
        path, files}
        `text` holds at most `max_bytes` bytes; `size` and `sha256` are those of the whole text, which `path` has (of a
        declared result or an agent's last words: in result.json). `files`: [{path, size, sha256}], what came with it.
    """
    agent = find_agent(task, instance)
    row = _row(task, agent)
    found = text_of(agent, max_bytes)
    found["files"] = [*found["files"], *patch_of(row["worktree"])]
    head = {"agentInstance": instance, "status": row["status"], "reason": row["reason"], "exitCode": row["exitCode"]}
    return {**head, **found, "worktree": row["worktree"]}


def text_of(agent: AgentDir, max_bytes: int = DEFAULT_MAX_BYTES) -> dict[str, Any]:
    """Return what a worker's result says of it alone: as `read_result`, from `source` to `files`; reads no log."""
    declared = read_quietly(agent.result)
    return _declared(declared, agent.result, max_bytes) if declared else _tail(agent, max_bytes)


def _row(task: TaskDir, agent: AgentDir) -> dict[str, Any]:
    row = show_worker(task, agent.instance)
    if row["worktree"] and not row["worktree"]["changes"]:  # Its shim died before it could make the patch.
        ensure_recorded(agent)
        row = show_worker(task, agent.instance)
    return row


def _declared(value: dict[str, Any], path: str, max_bytes: int) -> dict[str, Any]:
    summary, final = str(value.get("summary") or ""), value.get("finalMessage")
    is_final = isinstance(final, str) and not value.get("isDeclared")
    text = final if is_final and isinstance(final, str) else summary
    cut = text.encode()[:max_bytes].decode(errors="ignore")
    return {
        "source": "agent" if is_final else "declared",
        "summary": summary.encode()[:max_bytes].decode(errors="ignore") if not is_final else None,
        "text": cut,
        "truncated": cut != text,
        "size": len(text.encode()),
        "sha256": hashlib.sha256(text.encode()).hexdigest(),
        "path": path,
        "files": value.get("artifacts") or [],
        **{key: value[key] for key in _OF_AGENTS if key in value},
    }


def _tail(agent: AgentDir, max_bytes: int) -> dict[str, Any]:
    path = agent.stdout
    size, digest, tail = _read_tail(path, max_bytes)
    whole = tail.decode(errors="replace").encode()  # What is no UTF-8 takes three bytes as text.
    shown = whole[max(0, len(whole) - max_bytes) :].decode(errors="ignore")
    return {
        "source": "stdout" if size else "none",
        "summary": None,
        "text": shown,
        "truncated": size > len(tail) or len(whole) > max_bytes,
        "size": size,
        "sha256": digest,
        "path": str(path) if size else None,
        "files": [],
    }


def _read_tail(path: str, max_bytes: int) -> tuple[int, str | None, bytes]:
    """Return size, hash and tail of a file, holding no more than the tail in memory."""
    digest, size, tail = hashlib.sha256(), 0, b""
    try:
        with open(path, "rb") as file:
            while chunk := file.read(1 << 20):
                digest.update(chunk)
                size += len(chunk)
                tail = (tail + chunk)[-max_bytes:] if max_bytes else b""
    except FileNotFoundError:
        return 0, None, b""
    return size, digest.hexdigest() if size else None, tail
