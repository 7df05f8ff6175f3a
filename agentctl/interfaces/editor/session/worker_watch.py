"""Follows the worker of a session until its turn is over, and tells what happens meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable
from enum import Enum

from agentctl.adapters.clock import monotonic
from agentctl.adapters.taskdir import WorkerDir
from agentctl.domain.states import Status
from agentctl.domain.worker.projection import WorkerView
from agentctl.errors import AgentctlError
from agentctl.interfaces.editor.session.prompt_delivery import is_at_rest
from agentctl.interfaces.editor.session.session_view import EditorConversation, EditorQuestion
from agentctl.interfaces.editor.updates.contents import text_content
from agentctl.interfaces.editor.updates.row_updates import Update
from agentctl.lean import NamedTuple
from agentctl.operations.show.unreadable import check_any_known
from agentctl.operations.show.why import why_worker
from agentctl.operations.wait.live_view import LiveTree
from agentctl.operations.wait.rounds import WaitRounds, WakeReasons

#: The pause between two looks: what happens meanwhile is told together.
_PAUSE_S = 0.03
#: A worker that is queued for longer is told of.
_QUEUED_S = 1.0
#: How often open questions are looked at: those that a cancel has withdrawn are shown anew if it could not be written.
_ASKED_S = 1.0


class Over(Enum):
    """How following ends."""

    #: The worker is idle: it has answered, and waits for a message.
    IDLE = "idle"
    ENDED = "ended"
    #: It, or a worker below it, asks something that the client has only as a text: the next prompt is the answer.
    ASKS = "asks"
    #: It was cancelled, and some of its processes cannot be killed.
    SURVIVED = "survived"


class Ears(NamedTuple):
    """Whom to tell; each is called in the thread that follows, and may block."""

    tell: Callable[[list[Update]], None]
    #: Takes the open questions; returns whether the turn is to end with one of them.
    asked: Callable[[dict[str, EditorQuestion]], bool]
    #: Returns whether the worker is being cancelled: then only its end is the end of the turn.
    is_cancelled: Callable[[], bool]


def follow(conversation: EditorConversation, worker: WorkerDir, ears: Ears, broken: int) -> Over:
    """Follow a worker, and all below it, until its turn is over.

    Args:
        broken: A descriptor that becomes readable when nobody wants to know any more.

    Raises:
        BrokenOff: That has happened.
        WaitStopped: The worker in which this process runs was cancelled or paused.
    """
    waiting = _QueueNotes(worker)
    with LiveTree(worker.task, recursive=True) as live_tree, WaitRounds(live_tree, broken=broken) as rounds:
        watched: set[str] = set()
        while True:
            for one in [worker, *conversation.workers()]:
                if str(one.path) not in watched:
                    watched.add(str(one.path))
                    live_tree.watch.add(one.path)
            live_tree.update()
            view = live_tree.top.view.workers.get(worker.instance)
            over = _over(worker, view, ears)
            updates = [*waiting.notes(view), *conversation.look()]
            if updates:
                ears.tell(updates)
            questions = conversation.questions() if over is None else {}
            if over is None and ears.asked(questions):
                over = Over.ASKS
            if over is not None:
                rounds.give_back()
                return over
            check_any_known([view] if view is not None else [])
            rounds.serve()
            time.sleep(_PAUSE_S)
            rounds.sleep(WakeReasons(within_s=_ASKED_S if questions else None))


def _over(worker: WorkerDir, view: WorkerView | None, ears: Ears) -> Over | None:
    """Return how the turn is over; read before the rows, so that none of them comes later."""
    if worker.has_ended:
        return Over.ENDED
    if view is not None and view.survivors:
        return Over.SURVIVED
    return Over.IDLE if is_at_rest(worker) and not ears.is_cancelled() else None


class _QueueNotes:
    """Says once why a worker waits in the queue: otherwise its user would see nothing happen."""

    def __init__(self, worker: WorkerDir) -> None:
        self._worker = worker
        self._since = monotonic()
        self._said = ""

    def notes(self, view: WorkerView | None) -> list[Update]:
        """Return what is new about the wait."""
        if view is None or view.status is not Status.QUEUED:
            return []
        if monotonic() - self._since < _QUEUED_S:
            return []
        key = f"parked until {view.parked_until}" if view.parked_until else "queued"
        if key == self._said:
            return []
        self._said = key
        try:
            statements = why_worker(self._worker.task, self._worker.instance).statements
        except AgentctlError:
            return []  # It was removed meanwhile.
        text = " ".join(one.text for one in statements[:3])
        return [thought(f"{self._worker.instance} waits. {text}")]


def thought(text: str) -> Update:
    """Return something that the user should know, as a thought: the agent did not say it."""
    return {"sessionUpdate": "agent_thought_chunk", "content": text_content(text)[0]["content"]}
