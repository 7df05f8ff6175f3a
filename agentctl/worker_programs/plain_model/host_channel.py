"""What the program says to its host, and what it waits for from it."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from agentctl.adapters.files import write_all
from agentctl.lean import NamedTuple
from agentctl.worker_programs.plain_model.break_off import BreakOff
from agentctl.worker_programs.plain_model.model.provider_key import Mask


class Reply(NamedTuple):
    """An answer of the host: a permission is allowed or not, for a reason; a question has a text."""

    is_allowed: bool = False
    text: str = ""


class SharedParts(NamedTuple):
    """What all parts of the program share: the host, what breaks work off, and what hides the key."""

    host: HostChannel
    breaker: BreakOff
    mask: Mask


class HostChannel:
    """The program's side of the conversation with its host; used by several threads."""

    def __init__(self, fd: int = 1) -> None:
        self._fd = fd
        self._lock = threading.Lock()
        self.mask = Mask(None)
        self._waiting: dict[str, threading.Event] = {}
        self._replies: dict[str, Reply] = {}

    def say(self, kind: str, **fields: Any) -> None:
        """Write a line, without the key in it; a host that is gone is told nothing."""
        line = self.mask.data(json.dumps({"type": kind, **fields}, separators=(",", ":")).encode()) + b"\n"
        with self._lock, contextlib.suppress(OSError):  # The end of the input follows, and ends the program.
            write_all(self._fd, line)

    def call_begins(self, call_id: str, name: str, arguments: Mapping[str, Any]) -> None:
        """Tell that a tool is called."""
        self.say("tool_call", id=call_id, name=name, arguments=dict(arguments))

    def call_ends(self, call_id: str, name: str, status: str, text: str, file: str | None) -> None:
        """Tell what a call came to."""
        self.say("tool_result", id=call_id, name=name, status=status, text=text, file=file)

    def permission(self, key: str, tool: str, arguments: Mapping[str, Any], breaker: BreakOff) -> str | None:
        """Ask for a permission; return None if it is given, else why it is not.

        Raises:
            Interrupted: It was broken off.
        """
        reply = self._asked(key, breaker, tool=tool, arguments=dict(arguments))
        return None if reply.is_allowed else reply.text or "This was denied."

    def question(self, key: str, question: str, options: Sequence[str], breaker: BreakOff) -> str:
        """Ask the person; return their answer as the model gets it.

        Raises:
            Interrupted: It was broken off.
        """
        reply = self._asked(key, breaker, question=question, options=list(options))
        return json.dumps({"answer": reply.text}, ensure_ascii=False)

    def _asked(self, key: str, breaker: BreakOff, **fields: Any) -> Reply:
        answered = threading.Event()
        with self._lock:
            self._waiting[key] = answered
        self.say("ask", key=key, **fields)
        with breaker.stopping(answered.set):
            answered.wait()
        with self._lock:
            del self._waiting[key]
            reply = self._replies.pop(key, None)
        if reply is None:
            self.say("withdraw", key=key)
            breaker.check()
        return reply or Reply()

    def answered(self, key: str, reply: Reply) -> None:
        """Pass on an answer of the host; one that nobody waits for is dropped."""
        with self._lock:
            if key in self._waiting:
                self._replies[key] = reply
                self._waiting[key].set()
