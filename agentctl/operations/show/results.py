"""What came of a worker, bounded: an agent's last words; what a command declared, else the tail of its output.

With size, hash and path of the whole. What was declared stands beside an agent's words, and never in their place.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from typing import Any

from agentctl.adapters.activitylog import last_lines
from agentctl.adapters.files import read_quietly
from agentctl.adapters.opening import MOST_BYTES, OddFile, kind_of, open_plain, read_bytes
from agentctl.adapters.taskdir import TaskDir, WorkerDir
from agentctl.domain.activity.row import REPORTED, Phase, RowType
from agentctl.domain.activity.rows import read_line
from agentctl.domain.limits import RESULT_BYTES
from agentctl.domain.plaintext import whole
from agentctl.domain.states import Status
from agentctl.operations.show.listing import show_worker
from agentctl.operations.show.whole_texts import keep_text, keep_wrapped, place_of
from agentctl.operations.where.locating import find_worker
from agentctl.operations.worktree.changes import patch_of
from agentctl.supervision.worker.spec import is_for_agent, order_of

#: As much as a worker may put out, unless its task says more.
_MOST_HASHED = 1 << 30
#: Of an agent's activity first so much is looked through for what it said, and then so many times more: there may be a
#: long message, and what tools have brought behind it.
_LOOKED_BACK, _FURTHER = 1 << 20, 4
#: What tells of the whole of a text that was cut.
WHOLE = ("size", "sha256", "path", "wrapped")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_OF_AGENTS = ("success", "turnsUsed", "usage", "costUsd", "model", "sessionId", "touchedFiles")


def read_result(task: TaskDir, instance: str, *, max_bytes: int = RESULT_BYTES) -> dict[str, Any]:
    """Return a worker's result: what an agent said last; of a command what it declared, else the tail of its stdout.

    Returns:
        {agentInstance, status, reason, exitCode, message, source: agent|activity|declared|stdout|none, summary, text,
        truncated, size, sha256, path, wrapped, files}
        `summary` is what was declared, and nothing else. `text` holds at most `max_bytes` bytes; `size` and `sha256`
        are those of the whole text, which the file at `path` holds and nothing else (None where it was not cut, or no
        file could be written); `wrapped` as in `texts`. `files`: [{path, size, sha256}], what came with it.
    """
    worker = find_worker(task, instance)
    row = show_worker(task, worker.instance)
    found = text_of(worker, max_bytes)
    found["files"] = [*found["files"], *patch_of(row["worktree"])]
    head = {key: row[key] for key in ("agentInstance", "status", "reason", "exitCode", "message")}
    return {**head, **found, **_standing(row, found), "worktree": row["worktree"]}


def _standing(row: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an agent has used up by now, and whether that was a success: the result that it wrote last may be of
    an answer before its end.
    """
    standing: dict[str, Any] = {}
    if row["usage"] and any(row["usage"].values()):
        standing = {"usage": {**row["usage"]}, "costUsd": row["usage"]["costUsd"]}
        del standing["usage"]["costUsd"]
    if "success" in found and row["status"] in (Status.FAILED, Status.CANCELLED):
        standing["success"] = False
    return standing


def text_of(worker: WorkerDir, max_bytes: int = RESULT_BYTES) -> dict[str, Any]:
    """Return what a worker's result says of it alone: as `read_result`, from `source` to `files`; reads no log."""
    known = read_quietly(worker.result)
    summary = declared_summary(known)
    source, text = _last_words(worker, known)
    if text or is_agent(worker):
        before = _cut_before(known) if source == "agent" else None
        bounded = _beginning(worker, text, before, max_bytes) if before else _bounded(worker, text, max_bytes)
        found = {"source": source, **bounded}
    elif known:
        found = {"source": "declared", **_bounded(worker, summary or "", max_bytes)}
    else:
        found = _tail(worker, max_bytes)
    return {
        **found,
        **_summary(worker, summary, max_bytes),
        "files": artifacts_in(known),
        **{key: known[key] for key in _OF_AGENTS if key in known},
    }


def is_agent(worker: WorkerDir) -> bool:
    """Tell whether a worker is the program of an agent: its stdout is a protocol, and no words of its own."""
    return is_for_agent(order_of(worker))


def declared_summary(result: Mapping[str, Any]) -> str | None:
    """Return the summary that a worker declared itself, as its result.json tells; None where it declared none."""
    is_declared = bool(result) and bool(result.get("isDeclared", "success" not in result))
    summary = result.get("summary")
    return whole(summary) if is_declared and isinstance(summary, str) and summary else None


def last_words(worker: WorkerDir, looked_back: int = _LOOKED_BACK) -> str:
    """Return what an agent said last, also while it works; empty where it has said nothing.

    Args:
        looked_back: Of its activity, so many bytes are read.
    """
    return _last_words(worker, read_quietly(worker.result), looked_back)[1]


def _last_words(worker: WorkerDir, known: Mapping[str, Any], looked_back: int = _LOOKED_BACK) -> tuple[str, str]:
    """Return (source, text). Without a final message an agent's activity has it: stdout is the protocol of its program,
    with all that its tools have read.
    """
    final, at = known.get("finalMessage"), known.get("at")
    answer = whole(final) if isinstance(final, str) else ""
    if is_agent(worker) and (not answer or _went_on(worker)):
        text, said_at = _said_last(worker, looked_back)
        if text and (not answer or said_at > str(at)):
            return "activity", text
    return ("agent", answer) if answer else ("none", "")


def _went_on(worker: WorkerDir) -> bool:
    """Tell whether there is activity behind a result: of a later turn or attempt, whose own result is still missing."""
    try:
        return os.stat(worker.activity).st_mtime_ns > os.stat(worker.result).st_mtime_ns
    except OSError:
        return False


def _said_last(worker: WorkerDir, looked_back: int) -> tuple[str, str]:
    """Return what an agent said last as far as its activity tells, and when; empty where it said nothing."""
    for most in (looked_back, _FURTHER * looked_back):
        found = next(filter(None, map(_said, last_lines(worker.activity, most))), None)
        if found:
            return found
    return "", ""


def _cut_before(known: Mapping[str, Any]) -> tuple[int, str] | None:
    """Return size and hash of a final message of which result.json has only the beginning."""
    cut = known.get("finalMessageCut")
    size, digest = (cut.get("size"), cut.get("sha256")) if isinstance(cut, dict) else (None, None)
    is_told = isinstance(size, int) and isinstance(digest, str) and _DIGEST.fullmatch(digest)
    return (size, digest) if is_told else None  # type: ignore[return-value]


def _beginning(worker: WorkerDir, text: str, before: tuple[int, str], max_bytes: int) -> dict[str, Any]:
    """Return a text of which the driver has put the whole into a file; what lies there now may be something else."""
    size, digest = before
    path, wrapped = place_of(worker, digest)
    is_there = _read_tail(path, 0)[:2] == before
    has_wrapped = is_there and wrapped is not None and os.path.exists(wrapped) and kind_of(wrapped) is None
    return {
        "text": text.encode()[:max_bytes].decode(errors="ignore"),
        "truncated": True,
        "size": size,
        "sha256": digest,
        "path": path if is_there else None,
        **({"wrapped": wrapped} if has_wrapped else {}),
    }


def _bounded(worker: WorkerDir, text: str, max_bytes: int) -> dict[str, Any]:
    data = text.encode()
    cut = data[:max_bytes].decode(errors="ignore")
    kept = keep_text(worker, text) if cut != text else None
    return {
        "text": cut,
        "truncated": cut != text,
        "size": len(data),
        "sha256": hashlib.sha256(data).hexdigest() if text else None,
        "path": kept.path if kept else None,
        **({"wrapped": kept.wrapped} if kept and kept.wrapped else {}),
    }


def _summary(worker: WorkerDir, summary: str | None, max_bytes: int) -> dict[str, Any]:
    """Return the declared summary, bounded; where it is cut, with what tells of the whole."""
    if summary is None:
        return {"summary": None}
    found = _bounded(worker, summary, max_bytes)
    shown = {"summary": found.pop("text")}
    return shown | ({"summaryCut": found} if found["truncated"] else {})


def artifacts_in(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the files that a worker's result.json names, each with its path; what names none is left out."""
    declared = result.get("artifacts")
    found = declared if isinstance(declared, list) else []
    return [one for one in found if isinstance(one, dict) and isinstance(one.get("path"), str)]


def _said(line: bytes) -> tuple[str, str] | None:
    """Return what the agent itself says in a row of its activity, and when: no sub-agent, nobody who wrote to it, no
    report.
    """
    row = read_line(line, 0) if b'"message"' in line else None
    if row is None or row.kind != RowType.MESSAGE or row.phase != Phase.END or row.parent:
        return None
    is_anothers = row.id.startswith(REPORTED.encode()) or row.fields.get("name") == "user"
    text = "" if is_anothers else whole(str(row.fields.get("text") or ""))
    return (text, row.at.decode(errors="replace")) if text else None


def _tail(worker: WorkerDir, max_bytes: int) -> dict[str, Any]:
    path = worker.stdout
    size, digest, tail = _read_tail(path, max_bytes)
    whole = tail.decode(errors="replace").encode()  # What is not UTF-8 takes three bytes as text.
    shown = whole[max(0, len(whole) - max_bytes) :].decode(errors="ignore")
    is_cut = size > len(tail) or len(whole) > max_bytes
    wrapped = _wrapped_output(worker, digest) if is_cut and digest and size <= MOST_BYTES and worker.has_ended else None
    return {
        "source": "stdout" if size else "none",
        "text": shown,
        "truncated": is_cut,
        "size": size,
        "sha256": digest,
        "path": str(path) if size else None,
        **({"wrapped": wrapped} if wrapped else {}),
    }


def _wrapped_output(worker: WorkerDir, digest: str) -> str | None:
    """Put an output with very long lines into shorter ones; None where it has none, or is not text."""
    try:
        data = read_bytes(worker.stdout)
    except OSError:
        return None
    return None if b"\0" in data else keep_wrapped(worker, data.decode(errors="replace"), digest)


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
