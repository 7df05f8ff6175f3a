"""Records a conversation: the raw output, what was said to the program, and the activity made from both.

`stdout.log` has the agent program's output byte for byte. `dialogue.jsonl` has, in between, what was told to the
dialogue, each with the offset in that output and the time: from the two, the activity can be made again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from typing import Any

from agentctl.adapters.activitylog import ActivityWriter
from agentctl.adapters.clock import monotonic, now_iso
from agentctl.adapters.files import FULL, read_quietly, to_json, write_whole
from agentctl.adapters.opening import OddFile, open_plain
from agentctl.adapters.taskdir import WorkerDir
from agentctl.domain.activity.row import Row, encode_row
from agentctl.domain.budget import Spent
from agentctl.domain.plaintext import whole, whole_json
from agentctl.drivers.dialogue import AgentOutcome, SessionIs
from agentctl.driving.fulldisk import STORAGE_RETRY_S, when_there_is_room
from agentctl.supervision.worker.driver_end import bounded

#: Rows that are seen within this time have one and the same.
TIME_GRAIN_S = 0.1
_SUMMARY = 2000
#: Characters. In JSON it takes less than the 16 MiB, and holds fewer marks, than readers of such files bear.
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
        _insist(stream, data)

    def line_of(self, size: int) -> None:
        """Note that a line of `size` bytes, its newline with them, is about to be told."""
        self._tick()
        self.offset += size

    def input(self, what: str, **more: Any) -> None:
        """Note what is about to be told to the dialogue beside the program's lines."""
        self._tick(force=True, what=what, **more)

    def _tick(self, *, force: bool = False, **more: Any) -> None:
        now = monotonic()
        if self._marked is None or now - self._marked >= TIME_GRAIN_S:
            self._marked, self.at = now, now_iso()
            force = True
        if force:
            _insist(self._dialogue, to_json({"offset": self.offset, "at": self.at, **more}))

    def row(self, row: Row) -> None:
        """Take a row of the activity; on disk with the next `flush`."""
        self._rows.append(encode_row(row, self.at))

    def flush(self) -> None:
        """Put the rows on disk."""
        if self._rows:
            lines = b"".join(self._rows)
            self._rows.clear()
            when_there_is_room(lambda: self._activity.write(lines))

    def session(self, driver: str, session: SessionIs) -> None:
        """Keep what a later `resume` needs."""
        value: dict[str, Any] = {"driver": driver, "session": session.session, "model": session.model, "at": now_iso()}
        value |= {} if session.used is None else {"used": dict(session.used)}
        when_there_is_room(lambda: write_whole(self.worker.session, to_json(value)))

    def result(self, outcome: AgentOutcome, spent: Spent) -> None:
        """Keep what the agent brought, with what it has used up; what it declared itself (`report result`) stays."""
        known = read_quietly(self.worker.result)
        is_declared = bool(known) and bool(known.get("isDeclared", "success" not in known))
        final = outcome.final_message
        value = {
            "summary": known.get("summary") if is_declared else (final or "")[:_SUMMARY] or None,
            "artifacts": known.get("artifacts") or [],
            "at": now_iso(),
            "isDeclared": is_declared,
            **self._final(final),
            "success": outcome.reason is None,
            "turnsUsed": outcome.turns_used,
            "usage": {"input": spent.input, "output": spent.output, "cached": spent.cached},
            "costUsd": spent.cost_usd,
            "model": outcome.model,
            "sessionId": outcome.session,
            "touchedFiles": outcome.touched_files,
        }
        when_there_is_room(lambda: write_whole(self.worker.result, to_json(whole_json(value))))

    def _final(self, text: str | None) -> dict[str, Any]:
        """Return what result.json tells of the final message. Of one that its readers would refuse for its size it has
        the beginning, and size and hash of the whole, which is put into a file of its own.
        """
        if text is None or len(text) <= _LONGEST_FINAL:
            return {"finalMessage": text}
        from agentctl.operations.show.whole_texts import put_text  # Hardly ever.

        text = whole(text)
        data = text.encode()
        with contextlib.suppress(OddFile):  # The whole is still in stdout.log.
            when_there_is_room(lambda: put_text(self.worker, text))
        cut = {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        return {"finalMessage": text[:_LONGEST_FINAL], "finalMessageCut": cut}

    def outcome(self, outcome: AgentOutcome) -> None:
        """Write how it ended, for the shim; `pid` says which attempt it was."""
        value = {
            "pid": os.getpid(),
            "status": "completed" if outcome.reason is None else "failed",
            "reason": outcome.reason,
            "message": outcome.message and bounded(outcome.message),
        }
        when_there_is_room(lambda: write_whole(self.worker.outcome, to_json(value)))


def _insist(fd: int, data: bytes) -> None:
    """Write all of it, waiting for room on a full disk."""
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(fd, view) :]
        except OSError as error:
            if error.errno not in FULL:
                raise
            time.sleep(STORAGE_RETRY_S)


def _size_of(path: str) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0
