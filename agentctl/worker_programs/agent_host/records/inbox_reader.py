"""Reads the messages to a running agent, and answers to "what next?": in order, and without losing any."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from agentctl.adapters.taskdir import WorkerDir
from agentctl.lean import NamedTuple
from agentctl.operations.talk.messaging import mark_read, next_message
from agentctl.worker_programs.agent_host.records.full_disk import when_there_is_room
from agentctl.worker_programs.agent_host.records.idle_place import Idle


class Message(NamedTuple):
    """A message. Without a text it only says that no other one will follow."""

    text: str
    #: For the agent's running turn rather than the next one.
    is_now: bool = False
    is_last: bool = False


class Inbox:
    """The messages to one run. A message that comes too late stays unread."""

    def __init__(self, worker: WorkerDir, idle: Idle) -> None:
        self.worker, self.idle = worker, idle

    def messages(self, is_open: Callable[[], bool], again: Callable[[], None]) -> Iterator[Message]:
        """Yield the messages that are there; each counts as read when the next one is requested.

        Args:
            is_open: Returns whether the agent still takes messages.
            again: Called if the agent needs its slot for a message, and a guest is in it.
        """
        while is_open():
            message = when_there_is_room(lambda: next_message(self.worker))
            if message is None and self.idle.answer() is None:
                return
            said: Mapping[str, object] = message or {}
            text, is_last = str(said.get("text") or ""), bool(said.get("close"))
            # An agent with nothing left to do needs no slot.
            if (text.strip() or not is_last) and not self.idle.take_back():
                again()
                return
            answer = self.idle.end("it goes on with a message")
            if answer is not None:
                yield Message(answer)
            elif message is not None:
                yield Message(text, bool(said.get("interrupt")), is_last)
                when_there_is_room(lambda: mark_read(self.worker))
