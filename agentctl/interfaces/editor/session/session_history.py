"""The sessions that there are, with their titles, and what was said in one: for clients that list, load or resume."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from typing import Any

from agentctl.adapters.clock import iso_of
from agentctl.adapters.files import read_known
from agentctl.adapters.taskdir import Root, TaskDir, WorkerDir
from agentctl.domain.text.plaintext import whole
from agentctl.errors import UsageError
from agentctl.interfaces.editor.session.prompt_delivery import SESSION_PREFIX, find_session
from agentctl.interfaces.editor.session.session_view import EditorConversation
from agentctl.interfaces.editor.updates.client_bounds import pieces_of_text
from agentctl.interfaces.editor.updates.contents import as_said
from agentctl.interfaces.editor.updates.row_updates import Update
from agentctl.interfaces.words.activity import short_line
from agentctl.lean import NamedTuple
from agentctl.operations.delegate.resuming import chains_of
from agentctl.operations.show.current_state import read_task
from agentctl.operations.show.results import text_fields
from agentctl.operations.where.ownership import is_own
from agentctl.supervision.worker.spec import order_of

PAGE = 50
_RESULT_BYTES = 100_000


class Loaded(NamedTuple):
    """A session as it is on disk."""

    worker: WorkerDir
    conversation: EditorConversation


def load(root: Root, session_id: str) -> Loaded:
    """Return a session with all of its runs, of which nothing has been told yet.

    Raises:
        NotFound: There is no such session.
    """
    worker, conversation = find_session(root, session_id), EditorConversation()
    agent_id = str(read_known(worker.spec).get("agentId"))
    for instance in chains_of(worker.task).get(agent_id, [worker.instance]):
        conversation.add_run(worker.task.worker(instance), with_user=True)
    return Loaded(worker, conversation)


def replay_session(loaded: Loaded) -> Iterator[Update]:
    """Yield all that has been said and done in a session."""
    conversation = loaded.conversation
    silent = [run for run in conversation.runs if not run.activity.exists()]
    for run in silent:
        yield from _of_silent(run)
    yield from conversation.look()
    for run in conversation.runs:
        if run.has_ended:
            yield from conversation.close_run(run)
        conversation.add_run(run)  # From here on, the client knows what its user says.


def _of_silent(run: WorkerDir) -> Iterator[Update]:
    """Yield prompt and answer of a program that tells nothing of what it does."""
    said = (("user_message_chunk", order_of(run).get("prompt")), ("agent_message_chunk", final_text(run)))
    for kind, text in said:
        for piece in pieces_of_text(as_said(str(text or ""))):
            if piece:
                yield {"sessionUpdate": kind, "content": {"type": "text", "text": piece}}


def final_text(run: WorkerDir) -> str:
    """Return the last words of a run that has ended; empty if there are none."""
    return str(text_fields(run, _RESULT_BYTES)["text"]) if run.has_ended else ""


# -- the list ----------------------------------------------------------------------------------------------------------


def list_sessions(root: Root, cwd: str | None, cursor: str | None) -> dict[str, Any]:
    """Return a page of the sessions, those that were begun last first; with `cwd` only those of that folder.

    Every agent that a person has started is one, however it was started.

    Raises:
        UsageError: The cursor was not given out here.
    """
    before = None if cursor is None else _read_cursor(cursor)
    found = sorted((row for name in root.task_ids() for row in _sessions_of(root.task(name))), reverse=True)
    if cwd is not None:
        found = [row for row in found if _is_in(row.cwd, cwd)]
    left = [row for row in found if before is None or (row.begun, row.id) < before]
    page = [_shown(row) for row in left[:PAGE]]
    more = {"nextCursor": _cursor(left[PAGE - 1])} if len(left) > PAGE else {}
    return {"sessions": page, **more}


class _ListedSession(NamedTuple):
    """A session: the first run of an agent, and the newest."""

    begun: str
    id: str
    cwd: str
    title: str
    newest: str


def _sessions_of(task: TaskDir) -> Iterator[_ListedSession]:
    if not is_own(task):
        return
    view, _ = read_task(task)
    newest: dict[str, str] = {}
    for worker in view.workers.values():
        if worker.agent_id is not None:
            newest[worker.agent_id] = worker.instance
    for worker in view.workers.values():
        if worker.agent_id == worker.instance and worker.parent is None and worker.depth == 0:
            cwd = read_known(task.worker(worker.instance).spec).get("cwd")
            last = str(task.worker(newest[worker.instance]).path)
            name = worker.instance if worker.instance.startswith(SESSION_PREFIX) else f"{task.id}/{worker.instance}"
            yield _ListedSession(worker.queued_at or "", name, str(cwd or "/"), short_line(worker.command), last)


def _shown(row: _ListedSession) -> dict[str, Any]:
    return {"sessionId": row.id, "cwd": whole(row.cwd), "title": whole(row.title), "updatedAt": _updated(row)}


def _updated(row: _ListedSession) -> str:
    """Return when something has happened in a session last."""
    times = [_modified(os.path.join(row.newest, name)) for name in ("activity.jsonl", "exit.json", "spec.json")]
    return iso_of(max(times)) if any(times) else row.begun


def _modified(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0


def _is_in(cwd: str, wanted: str) -> bool:
    return cwd == wanted or os.path.realpath(cwd) == os.path.realpath(wanted)


def _cursor(row: _ListedSession) -> str:
    return base64.urlsafe_b64encode(f"{row.begun} {row.id}".encode()).decode()


def _read_cursor(cursor: str) -> tuple[str, str]:
    try:
        begun, mark, name = base64.urlsafe_b64decode(cursor.encode()).decode().partition(" ")
    except ValueError:
        mark = begun = name = ""
    if not mark:
        raise UsageError("the cursor was not given out here", hint="leave it out to begin anew")
    return begun, name
