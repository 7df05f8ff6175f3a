"""What came of a worker, bounded: an agent's last words; what a command declared, else the tail of its output.

With size, hash and path of the whole. What was declared stands beside an agent's words, and never in their place.
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
from agentctl.operations.texts import keep_text
from agentctl.operations.worktrees import patch_of

DEFAULT_MAX_BYTES = 4000
#: As much as a worker may put out, unless its task says more.
_MOST_HASHED = 1 << 30
#: An agent that has said nothing within so much of its activity has said nothing.
_LOOKED_BACK = 1 << 20
#: What tells of the whole of a text that was cut.
WHOLE = ("size", "sha256", "path", "wrapped")
_OF_AGENTS = ("success", "turnsUsed", "usage", "costUsd", "model", "sessionId", "touchedFiles")


def read_result(task: TaskDir, instance: str, *, max_bytes: int = DEFAULT_MAX_BYTES) -> dict[str, Any]:
    """Return a worker's result: what an agent said last; of a command what it declared, else the tail of its stdout.

    Returns:
        {agentInstance, status, reason, exitCode, message, source: agent|activity|declared|stdout|none, summary, text,
        truncated, size, sha256, path, wrapped, files}
        `summary` is what was declared, and nothing else. `text` holds at most `max_bytes` bytes; `size` and `sha256`
        are those of the whole text, which the file at `path` holds and nothing else (None where it was not cut, or no
        file could be written); `wrapped` as in `texts`. `files`: [{path, size, sha256}], what came with it.
    """
    agent = find_agent(task, instance)
    row = show_worker(task, agent.instance)
    found = text_of(agent, max_bytes)
    found["files"] = [*found["files"], *patch_of(row["worktree"])]
    head = {key: row[key] for key in ("agentInstance", "status", "reason", "exitCode", "message")}
    return {**head, **found, "worktree": row["worktree"]}


def text_of(agent: AgentDir, max_bytes: int = DEFAULT_MAX_BYTES) -> dict[str, Any]:
    """Return what a worker's result says of it alone: as `read_result`, from `source` to `files`; reads no log."""
    known = read_quietly(agent.result)
    summary = declared_summary(known)
    source, text = _last_words(agent, known)
    if text or is_agent(agent):
        found = {"source": source, **_bounded(agent, text, max_bytes)}
    elif known:
        found = {"source": "declared", **_bounded(agent, summary or "", max_bytes)}
    else:
        found = _tail(agent, max_bytes)
    return {
        **found,
        **_summary(agent, summary, max_bytes),
        "files": artifacts_in(known),
        **{key: known[key] for key in _OF_AGENTS if key in known},
    }


def is_agent(agent: AgentDir) -> bool:
    """Tell whether a worker is the program of an agent: its stdout is a protocol, and no words of its own."""
    order = read_quietly(agent.spec).get("order")
    return isinstance(order, dict) and order.get("driver") != COMMAND


def declared_summary(result: Mapping[str, Any]) -> str | None:
    """Return the summary that a worker declared itself, as its result.json tells; None where it declared none."""
    is_declared = bool(result) and bool(result.get("isDeclared", "success" not in result))
    summary = result.get("summary")
    return whole(summary) if is_declared and isinstance(summary, str) and summary else None


def last_words(agent: AgentDir, looked_back: int = _LOOKED_BACK) -> str:
    """Return what an agent said last, also while it works; empty where it has said nothing.

    Args:
        looked_back: Of its activity, so many bytes are read.
    """
    return _last_words(agent, read_quietly(agent.result), looked_back)[1]


def _last_words(agent: AgentDir, known: Mapping[str, Any], looked_back: int = _LOOKED_BACK) -> tuple[str, str]:
    """Return (source, text). Without a final message an agent's activity has it: stdout is the protocol of its program,
    with all that its tools have read.
    """
    final = known.get("finalMessage")
    if isinstance(final, str) and final:
        return "agent", whole(final)
    if not is_agent(agent):
        return "none", ""
    text = next(filter(None, map(_said, last_lines(agent.activity, looked_back))), "")
    return ("activity", text) if text else ("none", "")


def _bounded(agent: AgentDir, text: str, max_bytes: int) -> dict[str, Any]:
    data = text.encode()
    cut = data[:max_bytes].decode(errors="ignore")
    kept = keep_text(agent, text) if cut != text else None
    return {
        "text": cut,
        "truncated": cut != text,
        "size": len(data),
        "sha256": hashlib.sha256(data).hexdigest() if text else None,
        "path": kept.path if kept else None,
        **({"wrapped": kept.wrapped} if kept and kept.wrapped else {}),
    }


def _summary(agent: AgentDir, summary: str | None, max_bytes: int) -> dict[str, Any]:
    """Return the declared summary, bounded; where it is cut, with what tells of the whole."""
    if summary is None:
        return {"summary": None}
    found = _bounded(agent, summary, max_bytes)
    shown = {"summary": found.pop("text")}
    return shown | ({"summaryCut": found} if found["truncated"] else {})


def artifacts_in(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the files that a worker's result.json names, each with its path; what names none is left out."""
    told = result.get("artifacts")
    found = told if isinstance(told, list) else []
    return [one for one in found if isinstance(one, dict) and isinstance(one.get("path"), str)]


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
        "text": shown,
        "truncated": size > len(tail) or len(whole) > max_bytes,
        "size": size,
        "sha256": digest,
        "path": str(path) if size else None,
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
