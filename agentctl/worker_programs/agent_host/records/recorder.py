"""Records a conversation: the raw output, all other inputs of the dialogue, and the activity made from both.

`stdout.log` has the agent program's output byte for byte. `dialogue.jsonl` has the dialogue's other inputs, each with
the time and its offset in that output. From the two files, the activity can be rebuilt.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from typing import Any

from agentctl.adapters.activitylog import ActivityWriter
from agentctl.adapters.clock import monotonic, now_iso
from agentctl.adapters.files import read_known, to_json, write_all, write_whole
from agentctl.adapters.opening import OddFile, open_plain
from agentctl.adapters.taskdir import WorkerDir
from agentctl.domain.activity.row import Row, encode_row
from agentctl.domain.text.plaintext import whole, whole_json
from agentctl.domain.tree.budget import Spent
from agentctl.drivers.dialogue import AgentOutcome, SessionIs
from agentctl.supervision.worker.driver_end import bounded_message
from agentctl.worker_programs.agent_host.records.full_disk import STORAGE_RETRY_S, when_there_is_room
from agentctl.world_errors import FULL

#: Rows that arrive within this time share one timestamp.
TIME_GRAIN_S = 0.1
_SUMMARY = 2000
#: Characters. As JSON this stays within the limits of its readers: 16 MiB, and a number of commas and brackets.
_LONGEST_FINAL = 1_000_000


class Recorder:
    """Writes the files of one run; on a full disk it waits until there is room, so that nothing is lost."""

    def __init__(self, worker: WorkerDir) -> None:
        self.worker = worker
        self.offset = _size_of(worker.stdout)
        self.at = now_iso()
        self._marked: float | None = None
        self._rows: list[bytes] = []
        self._dialogue = open_plain(worker.dialogue, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._activity = ActivityWriter(worker.activity)

    def raw(self, stream: int, data: bytes) -> None:
        """Pass on what the program printed; `stream` is 1 or 2."""
        write_all(stream, data, _until_there_is_room)

    def line_of(self, size: int) -> None:
        """Record that a line of `size` bytes, including its newline, is about to be passed to the dialogue."""
        self._tick()
        self.offset += size

    def input(self, what: str, **more: Any) -> None:
        """Record an input other than a line that is about to be passed to the dialogue."""
        self._tick(force=True, what=what, **more)

    def _tick(self, *, force: bool = False, **more: Any) -> None:
        now = monotonic()
        if self._marked is None or now - self._marked >= TIME_GRAIN_S:
            self._marked, self.at = now, now_iso()
            force = True
        if force:
            line = to_json({"offset": self.offset, "at": self.at, **more})
            write_all(self._dialogue, line, _until_there_is_room)

    def row(self, row: Row) -> None:
        """Add a row of the activity; the next `flush` writes it."""
        self._rows.append(encode_row(row, self.at))

    def flush(self) -> None:
        """Write the added rows to disk."""
        if self._rows:
            lines = b"".join(self._rows)
            self._rows.clear()
            when_there_is_room(lambda: self._activity.write(lines))

    def session(self, driver: str, session: SessionIs) -> None:
        """Write what a later `resume` needs."""
        value: dict[str, Any] = {"driver": driver, "session": session.session, "model": session.model, "at": now_iso()}
        value |= {} if session.used is None else {"used": dict(session.used)}
        when_there_is_room(lambda: write_whole(self.worker.session, to_json(value)))

    def result(self, outcome: AgentOutcome, spent: Spent) -> None:
        """Write the agent's results and usage; what it declared itself (`report result`) is kept."""
        known = when_there_is_room(lambda: read_known(self.worker.result))
        is_declared = bool(known) and bool(known.get("isDeclared", "success" not in known))
        final = outcome.final_message
        value = {
            "summary": known.get("summary") if is_declared else (final or "")[:_SUMMARY] or None,
            "artifacts": known.get("artifacts") or [],
            "at": now_iso(),
            "isDeclared": is_declared,
            **self._final(final),
            "success": outcome.reason is None,
            **_failure(outcome),
            "turnsUsed": outcome.turns_used,
            "usage": {key: item for key, item in spent.to_json().items() if key != "costUsd"},
            "costUsd": spent.cost_usd,
            "model": outcome.model,
            "sessionId": outcome.session,
            "touchedFiles": outcome.touched_files,
        }
        when_there_is_room(lambda: write_whole(self.worker.result, to_json(whole_json(value))))

    def _final(self, text: str | None) -> dict[str, Any]:
        """Return the final message for result.json. A message too long for the file's readers is cut; the size and hash
        of the whole text follow, and the text itself gets a file of its own.
        """
        if text is None or len(text) <= _LONGEST_FINAL:
            return {"finalMessage": text}
        from agentctl.operations.show.whole_texts import put_text  # Hardly ever needed.

        text = whole(text)
        data = text.encode()
        with contextlib.suppress(OddFile):  # The whole text is still in stdout.log.
            when_there_is_room(lambda: put_text(self.worker, text))
        cut = {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        return {"finalMessage": text[:_LONGEST_FINAL], "finalMessageCut": cut}

    def outcome(self, outcome: AgentOutcome) -> None:
        """Write how the agent ended, for the shim; `pid` says in which attempt."""
        value = {
            "pid": os.getpid(),
            "status": "completed" if outcome.reason is None else "failed",
            "reason": outcome.reason,
            "message": outcome.message and bounded_message(outcome.message),
        }
        when_there_is_room(lambda: write_whole(self.worker.outcome, to_json(value)))


def _failure(outcome: AgentOutcome) -> dict[str, str | None]:
    """Return why a turn was no natural end: the program of a kept agent may go on after it."""
    if outcome.reason is None:
        return {}
    return {"reason": outcome.reason, "message": outcome.message and bounded_message(outcome.message)}


def _until_there_is_room(error: OSError) -> None:
    """Wait a moment for room on a full disk; raise any other error."""
    if error.errno not in FULL:
        raise error
    time.sleep(STORAGE_RETRY_S)


def _size_of(path: str) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0
