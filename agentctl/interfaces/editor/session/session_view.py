"""What a client is told of one session: its worker's runs, all workers below them, and their open questions.

Rows of several workers are told in the order of their times. Each look goes on where the one before has stopped.
"""

from __future__ import annotations

import heapq
import os
from collections.abc import Iterator
from typing import Any

from agentctl.adapters.activitylog import ActivityReader
from agentctl.adapters.clock import iso_of
from agentctl.adapters.files import read_known
from agentctl.adapters.taskdir import WorkerDir
from agentctl.domain.activity.rows import read_line
from agentctl.domain.question import Question
from agentctl.domain.states import Status
from agentctl.errors import AgentctlError
from agentctl.interfaces.editor.updates.contents import Content, as_written, code_content, output_content, text_content
from agentctl.interfaces.editor.updates.row_updates import (
    COMPLETED,
    FAILED,
    IN_PROGRESS,
    PENDING,
    CallPlace,
    Update,
    WorkerUpdates,
    meta,
)
from agentctl.interfaces.words.activity import short_line, telling
from agentctl.lean import NamedTuple
from agentctl.operations.delegate.delegating import told_failure
from agentctl.operations.show.results import is_agent, text_fields
from agentctl.supervision.worker.endings import Decision, decision_of
from agentctl.supervision.worker.kinship import descendants, parent_of
from agentctl.supervision.worker.output_at_end import output_lines
from agentctl.supervision.worker.questions import read_question, waiting_askers

_RESULT_BYTES = 8000
#: Of more workers below a session, the further ones are not shown.
_MOST_WORKERS = 2000


class EditorQuestion(NamedTuple):
    """A question that somebody waits for."""

    worker: WorkerDir
    #: The question as it is shown: an answer counts only for this.
    asked: Question
    #: Asked by the worker that the session is, and not below it.
    is_own: bool
    #: The open tool call that it is about; None if that is not known.
    call: str | None = None
    #: For a tool call of its own: who asks.
    meta: dict[str, Any] = {}  # noqa: RUF012 - never changed


class _Followed:
    """What has been told of one worker."""

    def __init__(self, worker: WorkerDir, place: CallPlace, *, with_user: bool) -> None:
        self.worker, self.place = worker, place
        self.updates = WorkerUpdates(place, with_user=with_user)
        self.reader = ActivityReader(worker.activity)
        self.lines = 0
        #: The status on its card.
        self.status: str | None = None
        self.is_over = False


class EditorConversation:
    """One session, as far as it has been told."""

    def __init__(self) -> None:
        self._followed: dict[str, _Followed] = {}
        #: The runs of the session's own agent, oldest first.
        self.runs: list[WorkerDir] = []

    def add_run(self, worker: WorkerDir, *, with_user: bool = False) -> WorkerUpdates:
        """Go on with a run of the session's agent; return its updates."""
        known = self._followed.get(str(worker.path))
        if known is None:
            self.runs.append(worker)
            cwd = str(read_known(worker.spec).get("cwd") or "/")
            known = self._followed[str(worker.path)] = _Followed(
                worker, CallPlace(_name(worker), cwd), with_user=with_user
            )
        known.updates.with_user = with_user
        return known.updates

    def workers(self) -> list[WorkerDir]:
        """Return the workers of which more may come."""
        return [followed.worker for followed in self._followed.values() if not followed.is_over]

    def look(self) -> Iterator[Update]:
        """Yield what has come since the last look."""
        for run in self.runs:
            if not self._followed[str(run.path)].is_over:
                self._find_below(run)
        streams = [self._stream(followed) for followed in self._followed.values() if not followed.is_over]
        for _, updates in heapq.merge(*streams, key=lambda item: item[0]):
            yield from updates

    def close_run(self, worker: WorkerDir) -> Iterator[Update]:
        """Yield the ends of what a run that has ended has left open; it is not looked at again."""
        followed = self._followed[str(worker.path)]
        followed.is_over = True
        yield from followed.updates.close()

    def questions(self) -> dict[str, EditorQuestion]:
        """Return the open questions, each by a name of its own; without those of idle workers."""
        found = {}
        for followed in self._followed.values():
            if followed.is_over or followed.worker.has_ended or not followed.worker.interactions.exists():
                continue
            for question_id in waiting_askers(followed.worker):
                question = self._question(followed, question_id)
                if question is not None:
                    found[f"{followed.place.name}:{question_id}"] = question
        return found

    def _question(self, followed: _Followed, question_id: str) -> EditorQuestion | None:
        asked = read_question(followed.worker, question_id)
        if asked is None or asked.idle:
            return None
        call = followed.updates.open_call(asked.tool, asked.arguments) if asked.tool else None
        about = followed.updates.meta_below(asked.asked_by)
        return EditorQuestion(followed.worker, asked, followed.place.call is None, call, about)

    # -- workers below -------------------------------------------------------------------------------------------

    def _find_below(self, run: WorkerDir) -> None:
        for worker in descendants(run):
            if str(worker.path) in self._followed or len(self._followed) >= _MOST_WORKERS:
                continue
            above = parent_of(worker)
            over = self._followed.get(str(above.path)) if above is not None else None
            depth = over.place.depth + 1 if over is not None else 1
            cwd = str(read_known(worker.spec).get("cwd") or "/")
            place = CallPlace(_name(worker), cwd, f"worker:{_name(worker)}", depth)
            self._followed[str(worker.path)] = _Followed(worker, place, with_user=False)

    def _stream(self, followed: _Followed) -> Iterator[tuple[str, Iterator[Update]]]:
        """Yield (time, updates) of what has come of one worker."""
        decision = decision_of(followed.worker)  # Before the rows: so that none comes after it.
        if followed.place.call is not None and followed.status is None:
            yield _begun_at(followed.worker), iter([self._card(followed)])
        yield from _rows(followed)
        if followed.place.call is None:
            return
        at = (decision.ended_at if decision is not None else None) or "~"  # Behind all times.
        if decision is not None:
            followed.is_over = True
            yield at, _ended(followed)
        elif followed.status != _status_of(followed.worker):
            followed.status = _status_of(followed.worker)
            yield at, iter([{**_of_card(followed), "status": followed.status}])

    def _card(self, followed: _Followed) -> Update:
        """Return the tool call that stands for a worker below the session's."""
        spec, above = read_known(followed.worker.spec), parent_of(followed.worker)
        over = self._followed.get(str(above.path)) if above is not None else None
        order, agent = spec.get("order"), str(spec.get("agent") or "command")
        work = order.get("prompt") if isinstance(order, dict) else telling({"command": spec.get("argv")})
        followed.status = _status_of(followed.worker)
        title = f"{followed.worker.instance} [{short_line(agent)}] {short_line(work)}".strip()
        return {
            "sessionUpdate": "tool_call", "toolCallId": followed.place.call, "title": title, "status": followed.status,
            "kind": "execute" if agent == "command" else "think",
            "_meta": meta(followed.place.name, over.place.call if over is not None else None, followed.place.depth - 1),
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


def _of_card(followed: _Followed) -> Update:
    return {"sessionUpdate": "tool_call_update", "toolCallId": followed.place.call}


def _rows(followed: _Followed) -> Iterator[tuple[str, Iterator[Update]]]:
    """Yield the rows that were appended; an activity that cannot be read has no further rows."""
    try:
        if followed.reader.is_replaced():
            followed.reader.restart()
            followed.lines = 0
        for block in followed.reader.blocks():
            for text in block.split(b"\n")[:-1]:
                followed.lines += 1
                line = read_line(text, followed.lines)
                if line is not None:
                    yield line.at.decode("utf-8", "replace"), followed.updates.take(line)
    except (AgentctlError, OSError):
        return


def _ended(followed: _Followed) -> Iterator[Update]:
    """Yield the end of a worker below the session's, with its result."""
    yield from followed.updates.close()
    decision = decision_of(followed.worker)
    assert decision is not None
    is_good = decision.status is Status.COMPLETED
    content = [*([] if is_good else _failure(followed.worker, decision)), *_said_last(followed.worker)]
    status = COMPLETED if is_good else FAILED
    yield {**_of_card(followed), "status": status} | ({"content": content} if content else {})


def _failure(worker: WorkerDir, decision: Decision) -> list[Content]:
    """Return why a worker did not succeed, with the last lines on its stderr, unless its driver has said it better."""
    how, lines = told_failure(worker, decision)
    if decision.status is Status.FAILED and not is_agent(worker):
        lines = output_lines(worker).get("stderr", lines)
    return [*text_content(as_written(how)), *(code_content("\n".join(lines)) if lines else ())]


def _said_last(worker: WorkerDir) -> list[Content]:
    """Return what an agent has answered, which is Markdown; of a command its output."""
    found = text_fields(worker, _RESULT_BYTES)
    if found["source"] == "stdout":
        return output_content(found["text"], is_end=found["truncated"])
    return text_content(found["text"]) if found["text"] else []
