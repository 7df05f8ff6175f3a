"""Keeps an agent after its answer: it is blocked until the next message, and lends its slot meanwhile.

It waits on a question of its own ("what next?"): so every command shows it as blocked, its clock stands still, and an
answer counts as a message. The lock of `slots/TASK.INSTANCE.idle` lends its place to any worker. Before the agent goes
on it takes the place back, which may mean waiting for the guest to end. If the queue's lock is not free, the next look
tries again: the agent can be cancelled meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable

from agentctl.adapters.files import read_known
from agentctl.adapters.taskdir import WorkerDir
from agentctl.adapters.treedir import tree_of
from agentctl.domain.question import Question
from agentctl.operations.talk.asking import Asked, close_question, leave, put_question
from agentctl.supervision.dispatch.standby import Standby
from agentctl.worker_programs.agent_host.records.full_disk import when_there_is_room


class Idle:
    """The idle state of an agent: its open question, and the loan of its slot."""

    def __init__(self, worker: WorkerDir) -> None:
        self.worker = worker
        self._place = Standby(worker, tree_of(worker.task))
        self._asked: Asked | None = None
        self._is_to_lend = False

    @property
    def is_idle(self) -> bool:
        """Return whether the agent waits for a message."""
        return self._asked is not None

    def begin(self) -> None:
        """Begin to wait for a message; `lend` then lends the slot."""
        if self._asked is not None:
            return
        question = Question("", "input", f"{self.worker.instance} has answered: what next?", idle=True)
        self._asked = when_there_is_room(lambda: put_question(self.worker, question))
        self._is_to_lend = True

    def lend(self, again: Callable[[], None]) -> None:
        """Lend the slot, once for each wait.

        Args:
            again: Called if that cannot be done now.
        """
        if self._is_to_lend:
            self._is_to_lend = not self._place.lend()
            if self._is_to_lend:
                again()

    def answer(self) -> str | None:
        """Return the answer to "what next?"; None while there is none."""
        if self._asked is None:
            return None
        file = self.worker.answer(self._asked.question_id)
        answer = when_there_is_room(lambda: read_known(file)).get("answer")
        return str(answer) if answer and str(answer).strip() else None

    def take_back(self) -> bool:
        """Take the slot back; return False while a guest may be in it."""
        if self._asked is None:
            return True
        self._end_loan()
        return self._place.has_own()

    def end(self, why: str) -> str | None:
        """Stop waiting; return the answer that came before that, if any."""
        self._end_loan()
        if self._asked is None:
            return None
        asked = self._asked
        when_there_is_room(lambda: close_question(self.worker, asked.question_id, None, why))
        answer = self.answer()
        leave(self.worker, asked)
        self._asked = None
        return answer

    def _end_loan(self) -> None:
        self._is_to_lend = False
        self._place.end_loan()
