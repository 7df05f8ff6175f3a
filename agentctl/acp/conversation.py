"""What a client is told of one session: its worker's runs, all workers below them, and their open questions.

Rows of several workers are told in the order of their times. Each look goes on where the one before has stopped.
"""

from __future__ import annotations

import heapq
import os
from collections.abc import Iterator
from typing import Any

from agentctl.acp.updates import (
    COMPLETED,
    FAILED,
    IN_PROGRESS,
    PENDING,
    Place,
    Update,
    WorkerUpdates,
    meta,
    text_content,
)
from agentctl.adapters.activitylog import ActivityReader
from agentctl.adapters.clock import iso_of
from agentctl.adapters.files import read_quietly
from agentctl.adapters.taskdir import WorkerDir
from agentctl.domain.activity.rows import read_line
from agentctl.domain.plaintext import whole_json
from agentctl.domain.states import Status
from agentctl.errors import AgentctlError
from agentctl.lean import NamedTuple
from agentctl.operations.delegate.delegating import error_of
from agentctl.operations.show.results import text_of
from agentctl.supervision.worker.endings import decision_of
from agentctl.supervision.worker.kinship import descendants, parent_of
from agentctl.supervision.worker.questions import read_question, waiting_askers
from agentctl.text.activity import short, telling

_ASKED = ("kind", "question", "options", "tool", "arguments", "isCut", "means", "askedByType", "multiple", "other")
_RESULT_BYTES = 8000
#: Of more workers below a session, the further ones are not shown.
_MOST_WORKERS = 2000


class OpenQuestion(NamedTuple):
    """A question that somebody waits for."""

    worker: WorkerDir
    #: The question as it is shown: an answer counts only for this.
    shown: dict[str, Any]
    #: Asked by the worker that the session is, and not below it.
    is_own: bool
    #: The open tool call that it is about; None if that is not known.
    call: str | None = None


class _Told:
    """What has been told of one worker."""

    def __init__(self, worker: WorkerDir, place: Place, *, with_user: bool) -> None:
        self.worker, self.place = worker, place
        self.updates = WorkerUpdates(place, with_user=with_user)
        self.reader = ActivityReader(worker.activity)
        self.lines = 0
        #: The status on its card.
        self.status: str | None = None
        self.is_over = False


class Conversation:
    """One session, as far as it has been told."""

    def __init__(self) -> None:
        self._told: dict[str, _Told] = {}
        #: The runs of the session's own agent, oldest first.
        self.runs: list[WorkerDir] = []

    def add_run(self, worker: WorkerDir, *, with_user: bool = False) -> WorkerUpdates:
        """Go on with a run of the session's agent; return its updates."""
        known = self._told.get(str(worker.path))
        if known is None:
            self.runs.append(worker)
            cwd = str(read_quietly(worker.spec).get("cwd") or "/")
            known = self._told[str(worker.path)] = _Told(worker, Place(_name(worker), cwd), with_user=with_user)
        known.updates.with_user = with_user
        return known.updates

    def workers(self) -> list[WorkerDir]:
        """Return the workers of which more may come."""
        return [told.worker for told in self._told.values() if not told.is_over]

    def look(self) -> Iterator[Update]:
        """Yield what has come since the last look."""
        for run in self.runs:
            if not self._told[str(run.path)].is_over:
                self._find_below(run)
        streams = [self._stream(told) for told in self._told.values() if not told.is_over]
        for _, updates in heapq.merge(*streams, key=lambda item: item[0]):
            yield from updates

    def close_run(self, worker: WorkerDir) -> Iterator[Update]:
        """Yield the ends of what a run that has ended has left open; it is not looked at again."""
        told = self._told[str(worker.path)]
        told.is_over = True
        yield from told.updates.close()

    def questions(self) -> dict[str, OpenQuestion]:
        """Return the open questions, each by a name of its own; without those of idle workers."""
        found = {}
        for told in self._told.values():
            if told.is_over or told.worker.has_ended or not told.worker.interactions.exists():
                continue
            for question_id in waiting_askers(told.worker):
                question = self._question(told, question_id)
                if question is not None:
                    found[f"{told.place.name}:{question_id}"] = question
        return found

    def _question(self, told: _Told, question_id: str) -> OpenQuestion | None:
        body = read_question(told.worker, question_id)
        if body is None or body.get("idle"):
            return None
        shown = {"id": question_id, **{key: body[key] for key in _ASKED if body.get(key)}}
        call = told.updates.open_call(str(body.get("tool")), body.get("arguments")) if body.get("tool") else None
        return OpenQuestion(told.worker, whole_json(shown), told.place.call is None, call)

    # -- workers below -------------------------------------------------------------------------------------------

    def _find_below(self, run: WorkerDir) -> None:
        for worker in descendants(run):
            if str(worker.path) in self._told or len(self._told) >= _MOST_WORKERS:
                continue
            above = parent_of(worker)
            over = self._told.get(str(above.path)) if above is not None else None
            depth = over.place.depth + 1 if over is not None else 1
            cwd = str(read_quietly(worker.spec).get("cwd") or "/")
            place = Place(_name(worker), cwd, f"worker:{_name(worker)}", depth)
            self._told[str(worker.path)] = _Told(worker, place, with_user=False)

    def _stream(self, told: _Told) -> Iterator[tuple[str, Iterator[Update]]]:
        """Yield (time, updates) of what has come of one worker."""
        decision = decision_of(told.worker)  # Before the rows: so that none comes after it.
        if told.place.call is not None and told.status is None:
            yield _begun_at(told.worker), iter([self._card(told)])
        yield from _rows(told)
        if told.place.call is None:
            return
        at = (decision.ended_at if decision is not None else None) or "~"  # Behind all times.
        if decision is not None:
            told.is_over = True
            yield at, _ended(told)
        elif told.status != _status_of(told.worker):
            told.status = _status_of(told.worker)
            yield at, iter([{**_of_card(told), "status": told.status}])

    def _card(self, told: _Told) -> Update:
        """Return the tool call that stands for a worker below the session's."""
        spec, above = read_quietly(told.worker.spec), parent_of(told.worker)
        over = self._told.get(str(above.path)) if above is not None else None
        order, agent = spec.get("order"), str(spec.get("agent") or "command")
        work = order.get("prompt") if isinstance(order, dict) else telling({"command": spec.get("argv")})
        told.status = _status_of(told.worker)
        title = f"{told.worker.instance} [{short(agent)}] {short(work)}".strip()
        return {
            "sessionUpdate": "tool_call", "toolCallId": told.place.call, "title": title, "status": told.status,
            "kind": "execute" if agent == "command" else "think",
            "_meta": meta(told.place.name, over.place.call if over is not None else None, told.place.depth - 1),
        }  # fmt: skip


def _name(worker: WorkerDir) -> str:
    return f"{worker.task.id}/{worker.instance}"


def _begun_at(worker: WorkerDir) -> str:
    try:
        return iso_of(os.stat(worker.spec).st_mtime)
    except OSError:
        return ""


def _status_of(worker: WorkerDir) -> str:
    return IN_PROGRESS if worker.process.exists() else PENDING


def _of_card(told: _Told) -> Update:
    return {"sessionUpdate": "tool_call_update", "toolCallId": told.place.call}


def _rows(told: _Told) -> Iterator[tuple[str, Iterator[Update]]]:
    """Yield the rows that were appended; an activity that cannot be read has no further rows."""
    try:
        if told.reader.is_replaced():
            told.reader.restart()
            told.lines = 0
        for block in told.reader.blocks():
            for text in block.split(b"\n")[:-1]:
                told.lines += 1
                line = read_line(text, told.lines)
                if line is not None:
                    yield line.at.decode("utf-8", "replace"), told.updates.take(line)
    except (AgentctlError, OSError):
        return


def _ended(told: _Told) -> Iterator[Update]:
    """Yield the end of a worker below the session's, with its result."""
    yield from told.updates.close()
    decision = decision_of(told.worker)
    assert decision is not None
    text = str(text_of(told.worker, _RESULT_BYTES)["text"])
    is_good = decision.status is Status.COMPLETED
    if not is_good:
        text = "\n\n".join(part for part in (error_of(told.worker, decision), text) if part)
    status = COMPLETED if is_good else FAILED
    yield {**_of_card(told), "status": status} | ({"content": text_content(text)} if text else {})
