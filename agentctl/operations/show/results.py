"""A worker's result, limited in size: an agent's last words; what a command declared, else the tail of its output.

It comes with size, hash and path of the full text. What an agent declared is added to its last words and never
replaces them.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agentctl.adapters.activitylog import last_lines
from agentctl.adapters.files import read_known
from agentctl.adapters.opening import MOST_BYTES, OddFile, kind_of, open_plain, read_bytes
from agentctl.adapters.tails import read_tail
from agentctl.adapters.taskdir import TaskDir, WorkerDir
from agentctl.domain.activity.row import REPORTED, Phase, RowType
from agentctl.domain.activity.rows import read_line
from agentctl.domain.states import Status
from agentctl.domain.text.numbers import finite
from agentctl.domain.text.plaintext import whole
from agentctl.domain.tree.limits import RESULT_BYTES
from agentctl.operations.show.failed_lines import failed_lines
from agentctl.operations.show.one_worker import show_worker, worktree_of
from agentctl.operations.show.sessions_by_hand import opening_of
from agentctl.operations.show.whole_texts import keep_text, keep_wrapped, text_paths
from agentctl.operations.where.locating import find_worker
from agentctl.operations.worktree.changes import kept_files
from agentctl.supervision.worker.relative_paths import from_disk, with_artifacts
from agentctl.supervision.worker.spec import is_for_agent, order_of

if TYPE_CHECKING:
    from agentctl.domain.documents.workers.worker import (
        BoundedText,
        CutText,
        DeclaredSummary,
        LastWords,
        ResultFile,
        ResultUsage,
        ToldByAgent,
        WhereWhole,
        WorkerResult,
        WorkerRow,
    )

#: As much output as a worker may produce by default.
_MOST_HASHED = 1 << 30
#: How many bytes at the end of an agent's activity are searched for its last message, and how many times as many if it
#: is not found there: the message may be long, with the results of tools after it.
_LOOKED_BACK, _FURTHER = 1 << 20, 4
_DIGEST = re.compile(r"[0-9a-f]{64}")
#: What a driver writes of an agent's answer -> the types that it may have; anything else was not written by one.
_OF_AGENT: Mapping[str, tuple[type, ...]] = {
    "success": (bool,), "turnsUsed": (int, type(None)), "model": (str, type(None)), "sessionId": (str, type(None)),
}  # fmt: skip
_TOKENS = ("input", "output", "cached")


def read_result(task: TaskDir, instance: str, *, max_bytes: int = RESULT_BYTES) -> WorkerResult:
    """Return a worker's result: an agent's last words; for a command what it declared, else the tail of its stdout.

    Returns:
        Its `text` has at most `max_bytes` bytes. The file at `path` has exactly the full text; except for stdout,
        `path` is None if nothing was cut or no file could be written. `wrapped`: see `KeptText`.
    """
    worker = find_worker(task, instance)
    return result_by_row(worker, show_worker(task, worker.instance), max_bytes=max_bytes)


def result_by_row(worker: WorkerDir, row: WorkerRow, *, max_bytes: int = RESULT_BYTES) -> WorkerResult:
    """Return what `read_result` does of a worker whose row of `list` is known; reads its folder alone."""
    worktree = worktree_of(worker)
    found = text_fields(worker, max_bytes)
    found["files"] = [*found["files"], *kept_files(worktree)]
    return {
        "agentInstance": row["agentInstance"], "status": row["status"], "reason": row["reason"],
        "exitCode": row["exitCode"], "signal": row["signal"], "message": row["message"],
        "lastLine": row["lastLine"], **failed_lines(worker, row["status"]),
        **found, **_usage_and_success(row, found),
        "worktree": worktree, "openSession": opening_of(worker),
    }  # fmt: skip


def _usage_and_success(row: WorkerRow, found: LastWords) -> ToldByAgent:
    """Return the usage so far, and `success: False` after a bad end: the result may be of an earlier answer."""
    current: ToldByAgent = {}
    used = row["usage"]
    if used and any(used.values()):
        tokens: ResultUsage = {"input": used["input"], "output": used["output"], "cached": used["cached"]}
        if "atLeast" in used:
            tokens["atLeast"] = used["atLeast"]
        current = {"usage": tokens, "costUsd": used["costUsd"]}
    if "success" in found and row["status"] in (Status.FAILED, Status.CANCELLED):
        current["success"] = False
    return current


def text_fields(worker: WorkerDir, max_bytes: int = RESULT_BYTES) -> LastWords:
    """Return what a worker has said last; reads the worker directory alone, and no event log."""
    known = read_known(worker.result)
    summary = declared_summary(known)
    source, text = _last_words(worker, known)
    if text or is_agent(worker):
        before = _cut_before(known) if source == "agent" else None
        bounded = _beginning(worker, text, before, max_bytes) if before else _bounded(worker, text, max_bytes)
    elif known:
        source, bounded = "declared", _bounded(worker, summary or "", max_bytes)
    else:
        source, bounded = _tail(worker, max_bytes)
    return {
        "source": source, **bounded, **_summary(worker, summary, max_bytes), "files": artifacts_in(known, worker),
        **_told_by_agent(known),
    }  # fmt: skip


def cut_of(found: LastWords) -> WhereWhole:
    """Return what each answer with a text of `text_fields` says if it was cut: that it was, and where the full text is.

    Empty if it was not cut.
    """
    if not found["truncated"]:
        return {}
    where: WhereWhole = {"truncated": True}
    if found["size"]:
        where["size"] = found["size"]
    if found["sha256"]:
        where["sha256"] = found["sha256"]
    if found["path"]:
        where["path"] = found["path"]
    if found.get("wrapped"):
        where["wrapped"] = found["wrapped"]
    return where


def is_agent(worker: WorkerDir) -> bool:
    """Return whether a worker runs an agent: its stdout is then a protocol and not its own words."""
    return is_for_agent(order_of(worker))


def declared_summary(result: Mapping[str, Any]) -> str | None:
    """Return the summary that a worker declared itself, from its result.json; None if it declared none."""
    is_declared = bool(result) and bool(result.get("isDeclared", "success" not in result))
    summary = result.get("summary")
    return whole(summary) if is_declared and isinstance(summary, str) and summary else None


def last_words(worker: WorkerDir, looked_back: int = _LOOKED_BACK) -> str:
    """Return an agent's last words, also while it works; empty if it has said nothing.

    Args:
        looked_back: How many bytes at the end of its activity are searched first.
    """
    return _last_words(worker, read_known(worker.result), looked_back)[1]


def _last_words(worker: WorkerDir, known: Mapping[str, Any], looked_back: int = _LOOKED_BACK) -> tuple[str, str]:
    """Return (source, text). Without a final message the text comes from an agent's activity, not from its stdout: that
    is the protocol of its program, with everything that its tools have read.
    """
    final, at = known.get("finalMessage"), known.get("at")
    answer = whole(final) if isinstance(final, str) else ""
    if is_agent(worker) and (not answer or _went_on(worker)):
        text, said_at = _last_message(worker, looked_back)
        if text and (not answer or said_at > str(at)):
            return "activity", text
    return ("agent", answer) if answer else ("none", "")


def _went_on(worker: WorkerDir) -> bool:
    """Return whether there is activity after a result: from a later turn or attempt that has no result yet."""
    try:
        return os.stat(worker.activity).st_mtime_ns > os.stat(worker.result).st_mtime_ns
    except OSError:
        return False


def _last_message(worker: WorkerDir, looked_back: int) -> tuple[str, str]:
    """Return an agent's last message in its activity, and its time; empty if there is none."""
    for most in (looked_back, _FURTHER * looked_back):
        found = next(filter(None, map(_message_in, last_lines(worker.activity, most))), None)
        if found:
            return found
    return "", ""


def _cut_before(known: Mapping[str, Any]) -> tuple[int, str] | None:
    """Return size and hash of the full final message if result.json has only its beginning."""
    cut = known.get("finalMessageCut")
    size, digest = (cut.get("size"), cut.get("sha256")) if isinstance(cut, dict) else (None, None)
    is_valid = isinstance(size, int) and isinstance(digest, str) and _DIGEST.fullmatch(digest)
    return (size, digest) if is_valid else None  # type: ignore[return-value]


def _beginning(worker: WorkerDir, text: str, before: tuple[int, str], max_bytes: int) -> BoundedText:
    """Return a text that the driver cut after writing it to a file in full; the file may have changed since."""
    size, digest = before
    path, wrapped = text_paths(worker, digest)
    is_there = _hashed_tail(path, 0)[:2] == before
    has_wrapped = is_there and wrapped is not None and os.path.exists(wrapped) and kind_of(wrapped) is None
    found: BoundedText = {
        "text": text.encode()[:max_bytes].decode(errors="ignore"), "truncated": True,
        "size": size, "sha256": digest, "path": path if is_there else None,
    }  # fmt: skip
    return _with_wrapped(found, wrapped if has_wrapped else None)


def _with_wrapped(found: BoundedText, path: str | None) -> BoundedText:
    if path:
        found["wrapped"] = path
    return found


def _bounded(worker: WorkerDir, text: str, max_bytes: int) -> BoundedText:
    data = text.encode()
    cut = data[:max_bytes].decode(errors="ignore")
    kept = keep_text(worker, text) if cut != text else None
    found: BoundedText = {
        "text": cut, "truncated": cut != text, "size": len(data),
        "sha256": hashlib.sha256(data).hexdigest() if text else None, "path": kept.path if kept else None,
    }  # fmt: skip
    return _with_wrapped(found, kept.wrapped if kept else None)


def _summary(worker: WorkerDir, summary: str | None, max_bytes: int) -> DeclaredSummary:
    """Return the declared summary, limited in size; if it was cut, with a description of the full text."""
    if summary is None:
        return {"summary": None}
    found = _bounded(worker, summary, max_bytes)
    if not found["truncated"]:
        return {"summary": found["text"]}
    cut: CutText = {"truncated": True, "size": found["size"], "sha256": found["sha256"], "path": found["path"]}
    if "wrapped" in found:
        cut["wrapped"] = found["wrapped"]
    return {"summary": found["text"], "summaryCut": cut}


def _told_by_agent(known: Mapping[str, Any]) -> ToldByAgent:
    """Return what a driver has written of an agent's answer: whatever else a worker may have put there is left out."""
    found: Any = {key: known[key] for key, types in _OF_AGENT.items() if key in known and type(known[key]) in types}
    noted: ToldByAgent = found
    usage, touched = known.get("usage"), known.get("touchedFiles")
    if "costUsd" in known:
        noted["costUsd"] = finite(known["costUsd"])
    if isinstance(usage, dict):
        input_, output, cached = (value if type(value := usage.get(key)) is int else None for key in _TOKENS)
        noted["usage"] = {"input": input_, "output": output, "cached": cached}
    if isinstance(touched, list):
        noted["touchedFiles"] = [one for one in touched if isinstance(one, str)]
    return noted


def artifacts_in(result: Mapping[str, Any], worker: WorkerDir) -> list[ResultFile]:
    """Return the files that a worker's result.json names, with whole paths; entries without a path are left out."""
    declared = with_artifacts(result, from_disk, worker.task.root.path).get("artifacts")
    found = (_file_in(one) for one in declared) if isinstance(declared, list) else ()
    return [one for one in found if one is not None]


def _file_in(one: object) -> ResultFile | None:
    if not isinstance(one, dict) or not isinstance(one.get("path"), str):
        return None
    file: ResultFile = {"path": one["path"]}
    if type(one.get("size")) is int:
        file["size"] = one["size"]
    if isinstance(one.get("sha256"), str):
        file["sha256"] = one["sha256"]
    return file


def _message_in(line: bytes) -> tuple[str, str] | None:
    """Return the message and time of a row in which the agent itself speaks: not a sub-agent, not somebody who wrote to
    it, and not a report.
    """
    row = read_line(line, 0) if b'"message"' in line else None
    if row is None or row.kind != RowType.MESSAGE or row.phase != Phase.END or row.parent:
        return None
    is_from_others = row.id.startswith(REPORTED.encode()) or row.fields.get("name") == "user"
    text = "" if is_from_others else whole(str(row.fields.get("text") or ""))
    return (text, row.at.decode(errors="replace")) if text else None


def _tail(worker: WorkerDir, max_bytes: int) -> tuple[str, BoundedText]:
    """Return (source, text) of a command's output."""
    path = worker.stdout
    size, digest, tail = _hashed_tail(path, max_bytes)
    whole = tail.decode(errors="replace").encode()  # What is not UTF-8 becomes characters of three bytes.
    shown = whole[max(0, len(whole) - max_bytes) :].decode(errors="ignore")
    is_cut = size > len(tail) or len(whole) > max_bytes
    wrapped = _wrapped_output(worker, digest) if is_cut and digest and size <= MOST_BYTES and worker.has_ended else None
    found: BoundedText = {
        "text": shown, "truncated": is_cut, "size": size, "sha256": digest, "path": str(path) if size else None,
    }  # fmt: skip
    return "stdout" if size else "none", _with_wrapped(found, wrapped)


def _wrapped_output(worker: WorkerDir, digest: str) -> str | None:
    """Write a wrapped copy of an output with very long lines; None if it has none, or is not text."""
    try:
        data = read_bytes(worker.stdout)
    except OSError:
        return None
    return None if b"\0" in data else keep_wrapped(worker, data.decode(errors="replace"), digest)


def _hashed_tail(path: str, max_bytes: int) -> tuple[int, str | None, bytes]:
    """Return size, hash and tail of a file, keeping only the tail in memory; no hash if the file is too large."""
    try:
        fd = open_plain(path)
    except (FileNotFoundError, OddFile):
        return 0, None, b""
    try:
        tail, size = read_tail(fd, max_bytes)
        digest = hashlib.sha256() if 0 < size <= _MOST_HASHED else None
        while digest and (chunk := os.read(fd, 1 << 20)):
            digest.update(chunk)
        return size, digest.hexdigest() if digest else None, tail
    finally:
        os.close(fd)
