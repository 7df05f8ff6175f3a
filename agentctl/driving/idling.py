"""An agent that is kept after its answer: blocked until the next message, its slot lent to whoever is next.

It waits on a question of its own ("what next?"), so that every command shows it as blocked, its clock stands still,
and an answer is a message too. `slots/N.idle`, held locked, lends its place to anybody; before it goes on it takes the
place back, which may mean to wait until the guest has ended.
"""

from __future__ import annotations

import os
from typing import Any

from agentctl.adapters.config import root_of_tree
from agentctl.adapters.files import read_quietly
from agentctl.adapters.locks import locked, try_lock
from agentctl.adapters.taskdir import AgentDir
from agentctl.operations.asking import Asked, close_question, leave, put_question
from agentctl.supervision.dispatch import carry_out, dispatch, dispatch_locked
from agentctl.supervision.slots import IDLE, guest_place, place_of


class Idle:
    """Whether the agent waits for a message, and what it has lent meanwhile."""

    def __init__(self, agent: AgentDir) -> None:
        self.agent = agent
        self.root = root_of_tree(agent.task)
        self._asked: Asked | None = None
        self._loan: int | None = None

    @property
    def is_idle(self) -> bool:
        """Tell whether it waits."""
        return self._asked is not None

    def begin(self) -> None:
        """Wait for a message, and lend the slot."""
        if self._asked is not None:
            return
        body: dict[str, Any] = {
            "kind": "input", "question": f"{self.agent.instance} has answered: what next?", "options": [],
            "default": None, "deadlineSeconds": None, "idle": True,
        }  # fmt: skip
        self._asked = put_question(self.agent, body, None)
        place = place_of(self.root, self.agent.task.id, self.agent.instance)
        if place is not None:
            self._loan = try_lock(self.root.slots / (place + IDLE))
            dispatch(self.root)

    def answer(self) -> str | None:
        """Return what somebody has answered to "what next?"; None while nobody has."""
        if self._asked is None:
            return None
        answer = read_quietly(self.agent.answer(self._asked.question_id))
        return str(answer["answer"]) if answer.get("answer") else None

    def wake(self) -> bool:
        """Take the slot back and go on; False while a guest is in it: ask again later."""
        if self._asked is None:
            return True
        self._end_loan()
        if not self._has_place():
            return False
        self.end()
        return True

    def end(self) -> None:
        """Wait no longer."""
        self._end_loan()
        if self._asked is not None:
            close_question(self.agent, self._asked.question_id, None, "it goes on with a message")
            leave(self.agent, self._asked)
            self._asked = None

    def _end_loan(self) -> None:
        """Let no new guest in."""
        if self._loan is not None:
            os.close(self._loan)
            self._loan = None

    def _has_place(self) -> bool:
        """Tell whether no guest is in this worker's place; a guest moves to a free slot, if there is one."""
        with locked(self.root.queue_lock):
            done = dispatch_locked(self.root)
            place = place_of(self.root, self.agent.task.id, self.agent.instance)
            guest = guest_place(self.root, place) if place is not None else None
        carry_out(self.root, done)
        if guest is not None:
            guest.let_go()
        return place is None or guest is not None
