"""What came of a worker, bounded: declared, else an agent's last words or the tail of a command's output.

With size, hash and path of the whole.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from typing import Any

from agentctl.adapters.activitylog import last_lines
from agentctl.adapters.files import read_quietly
from agentctl.adapters.opening import OddFile, open_plain
from agentctl.adapters.taskdir import AgentDir, TaskDir
from agentctl.domain.activity import REPORTED, Phase, RowType
from agentctl.domain.activityrows import read_line
from agentctl.domain.agentspec import COMMAND
from agentctl.domain.plaintext import whole
from agentctl.operations.listing import show_worker
from agentctl.operations.locating import find_agent
from agentctl.operations.worktrees import patch_of

DEFAULT_MAX_BYTES = 4000
#: As much as a worker may put out, unless its task says more.
_MOST_HASHED = 1 << 30
#: An agent that has said nothing within so much of its activity has said nothing.
_LOOKED_BACK = 1 << 20
_OF_AGENTS = ("success", "turnsUsed", "usage", "costUsd", "model", "sessionId", "touchedFiles")


def read_result(task: TaskDir, instance: str, *, max_bytes: int = DEFAULT_MAX_BYTES) -> dict[str, Any]:
    """Return a worker's result: what it declared, else what an agent said last, or the tail of a command's stdout.

    Returns:
        {agentInstance, status, reason, source: declared|agent|activity|stdout|none, summary, text, truncated, size,
        sha256, path, files}
        `text` holds at most `max_bytes` bytes; `size` and `sha256` are those of the whole text, which `path` has (of a
        declared result or an agent's last words: in result.json). `files`: [{path, size, sha256}], what came with it.
    """
    agent = find_agent(task, instance)
    row = show_worker(task, agent.instance)
    found = text_of(agent, max_bytes)
    found["files"] = [*found["files"], *patch_of(row["worktree"])]
    head = {"agentInstance": instance, "status": row["status"], "reason": row["reason"], "exitCode": row["exitCode"]}
    return {**head, **found, "worktree": row["worktree"]}


def text_of(agent: AgentDir, max_bytes: int = DEFAULT_MAX_BYTES) -> dict[str, Any]:
    """Return what a worker's result says of it alone: as `read_result`, from `source` to `files`; reads no log."""
    declared = read_quietly(agent.result)
    if declared:
        return _declared(declared, agent.result, max_bytes)
    return _last_words(agent, max_bytes) if _is_agent(agent) else _tail(agent, max_bytes)


def _is_agent(agent: AgentDir) -> bool:
    order = read_quietly(agent.spec).get("order")
    return isinstance(order, dict) and order.get("driver") != COMMAND


def _declared(value: dict[str, Any], path: str, max_bytes: int) -> dict[str, Any]:
    summary, final = whole(str(value.get("summary") or "")), value.get("finalMessage")
    is_final = isinstance(final, str) and not value.get("isDeclared")
    text = whole(final) if is_final and isinstance(final, str) else summary
    cut = text.encode()[:max_bytes].decode(errors="ignore")
    return {
        "source": "agent" if is_final else "declared",
        "summary": summary.encode()[:max_bytes].decode(errors="ignore") if not is_final else None,
        "text": cut,
        "truncated": cut != text,
        "size": len(text.encode()),
        "sha256": hashlib.sha256(text.encode()).hexdigest(),
        "path": path,
        "files": artifacts_in(value),
        **{key: value[key] for key in _OF_AGENTS if key in value},
    }


def artifacts_in(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the files that a worker's result.json names, each with its path; what names none is left out."""
    told = result.get("artifacts")
    found = told if isinstance(told, list) else []
    return [one for one in found if isinstance(one, dict) and isinstance(one.get("path"), str)]


def _last_words(agent: AgentDir, max_bytes: int) -> dict[str, Any]:
    """Return what an agent said last: its stdout is the protocol of its program, with all that its tools have read."""
    text = next(filter(None, map(_said, last_lines(agent.activity, _LOOKED_BACK))), "")
    cut = text.encode()[:max_bytes].decode(errors="ignore")
    return {
        "source": "activity" if text else "none",
        "summary": None,
        "text": cut,
        "truncated": cut != text,
        "size": len(text.encode()),
        "sha256": hashlib.sha256(text.encode()).hexdigest() if text else None,
        "path": str(agent.activity) if text else None,
        "files": [],
    }


def _said(line: bytes) -> str:
    """Return what the agent itself says in a row of its activity: no sub-agent, nobody who wrote to it, no report."""
    row = read_line(line, 0)
    if row is None or row.kind != RowType.MESSAGE or row.phase != Phase.END or row.parent:
        return ""
    is_anothers = row.id.startswith(REPORTED.encode()) or row.fields.get("name") == "user"
    return "" if is_anothers else whole(str(row.fields.get("text") or ""))


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
    """Return size, hash and tail of a file, holding no more than the tail in memory; no hash of a monstrous one."""
    try:
        fd = open_plain(path)
    except (FileNotFoundError, OddFile):
        return 0, None, b""
    try:
        size = os.fstat(fd).st_size
        digest = hashlib.sha256() if 0 < size <= _MOST_HASHED else None
        while digest and (chunk := os.read(fd, 1 << 20)):
            digest.update(chunk)
        return size, digest.hexdigest() if digest else None, os.pread(fd, max_bytes, max(0, size - max_bytes))
    finally:
        os.close(fd)
