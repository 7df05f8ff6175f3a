"""Codex's threads, one for the agent and one for each sub-agent: their rows, tokens and tool rounds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentctl.domain.activity.row import PROMPT, Phase, Row, RowType
from agentctl.domain.text.plaintext import shortened
from agentctl.drivers.codex.items import is_tool, row_id
from agentctl.drivers.values import bounded_values, count_in, list_in, object_in, text_in

_LONGEST_NAME = 80
#: The status of a sub-agent's turn, or the one reported to its parent -> the status in the activity.
_ENDS = {
    "completed": "completed",
    "failed": "failed",
    "errored": "failed",
    "notFound": "failed",
    "interrupted": "cancelled",
    "shutdown": "cancelled",
}


class Thread:
    """One thread: its parent, its state, and the tokens that it has used."""

    def __init__(self, thread_id: str, parent: str | None) -> None:
        self.id = thread_id
        #: The id of the thread that started it; None if that is the agent itself.
        self.parent = parent
        self.agent_type: str | None = None
        self.name: str | None = None
        self.is_active = False
        self.was_announced = False
        self.has_ended = False
        self.message: str | None = None
        #: What it was started with; its prompt until it is told anything, which is that one first, and then nothing.
        self.detail: dict[str, Any] = {}
        self.prompt: str | None = None
        self.turns: set[str] = set()
        self._before: dict[str, int] | None = None
        self._total: dict[str, int] = {}

    def count(self, turn: str, usage: Mapping[str, Any]) -> bool:
        """Record the tokens that the thread has used so far; return whether this run has used any more.

        Codex's totals go on over a resume, and the earlier total of a resumed thread is reported once more: under a
        turn that is not of this run.
        """
        total = _tokens(object_in(usage.get("total")))
        if turn not in self.turns:
            self._before, self._total = total, total
            return False
        if self._before is None:
            last = _tokens(object_in(usage.get("last")))
            self._before = {key: max(0, total[key] - last[key]) for key in total}
        is_new = total != self._total
        self._total = total
        return is_new

    def spent(self) -> dict[str, int]:
        """Return the tokens of this run."""
        if self._before is None:
            return {}
        return {key: max(0, value - self._before[key]) for key, value in self._total.items()}


class AgentThreads:
    """All threads of one run. The activity also has rows of the `earlier` runs."""

    def __init__(self, earlier: int = 0) -> None:
        self._earlier = earlier
        #: The agent's own thread; all others are those of its sub-agents.
        self.root: str | None = None
        self._known: dict[str, Thread] = {}

    def get(self, thread_id: str) -> Thread:
        """Return a thread; an unknown one is added."""
        return self._known.setdefault(thread_id, Thread(thread_id, None))

    def is_child(self, thread_id: str) -> bool:
        """Return whether a thread is a sub-agent's."""
        return bool(thread_id) and self.root is not None and thread_id != self.root

    def parent_of(self, thread_id: str) -> str | None:
        """Return the parent of a thread's rows; None for the agent itself."""
        return thread_id if self.is_child(thread_id) else None

    def are_children_working(self) -> bool:
        """Return whether a sub-agent is at work."""
        return any(thread.is_active for thread in self._known.values() if self.is_child(thread.id))

    def spent(self) -> dict[str, int]:
        """Return the tokens of this run: of the agent and its sub-agents, each once."""
        sums: dict[str, int] = {}
        for thread in self._known.values():
            for key, value in thread.spent().items():
                sums[key] = sums.get(key, 0) + value
        return sums

    def usage_row(self, thread_id: str) -> Row:
        """Return the row of the tokens that a thread has used in this run."""
        thread = self.get(thread_id)
        parent = self.parent_of(thread_id)
        return Row(RowType.USAGE, row_id(f"usage:{thread_id}", self._earlier), parent=parent, detail=thread.spent())

    def turn_started(self, thread_id: str, turn: str) -> list[Row]:
        """Record the beginning of a turn."""
        thread = self.get(thread_id)
        thread.turns.add(turn)
        thread.is_active = True
        return self._announce(thread) if self.is_child(thread_id) else []

    def turn_completed(self, thread_id: str, status: str) -> list[Row]:
        """Record the end of a turn; a sub-agent ends with it."""
        thread = self.get(thread_id)
        if not self.is_child(thread_id):
            thread.is_active = False
            return []
        return [*self._announce(thread), self._end(thread, status, thread.message)]

    def parent_call(self, item: Mapping[str, Any], *, is_done: bool) -> list[Row]:
        """Record a tool call about sub-agents: it names them, and reports which of them have ended."""
        rows: list[Row] = []
        states = object_in(item.get("agentsStates"))
        is_spawn = item.get("tool") == "spawnAgent"
        for thread_id in filter(None, map(text_in, list_in(item.get("receiverThreadIds")))):
            if not self.is_child(thread_id):
                continue
            thread, state = self.get(thread_id), object_in(states.get(thread_id))
            if is_spawn:
                thread.parent = self.parent_of(text_in(item.get("senderThreadId")))
                # Until its first turn begins, nothing else shows that there is a sub-agent to wait for.
                thread.is_active = thread.is_active or not (thread.turns or thread.has_ended)
                rows += self._started_with(thread, item)
            if is_done and text_in(state.get("status")) in _ENDS and not thread.has_ended:
                rows += self._announce(thread)
                rows.append(self._end(thread, text_in(state.get("status")), text_in(state.get("message")) or None))
        return rows

    def _started_with(self, thread: Thread, item: Mapping[str, Any]) -> list[Row]:
        """Record with which arguments a sub-agent was started; its first row may have come before them."""
        before, prompt = thread.detail, text_in(item.get(PROMPT))
        arguments = {key: item[key] for key in (PROMPT, "model", "reasoningEffort") if item.get(key)}
        thread.detail = before | bounded_values(arguments)
        if thread.prompt is None:
            thread.prompt = prompt or None
        if not thread.was_announced or thread.detail == before:
            return self._announce(thread, prompt)
        thread.name = thread.name or _name_in(prompt)
        return [self._row(thread, Phase.PROGRESS, "running")]

    def is_prompt(self, thread_id: str, text: str) -> bool:
        """Return whether a sub-agent is told with a text what its own row tells; once."""
        thread = self.get(thread_id)
        prompt, thread.prompt = thread.prompt, ""
        return bool(prompt) and prompt == text

    def sub_agent_activity(self, item: Mapping[str, Any], sender: str) -> list[Row]:
        """Record an item of Codex's own about a sub-agent (`subAgentActivity`)."""
        thread_id, kind = text_in(item.get("agentThreadId")), text_in(item.get("kind"))
        if not self.is_child(thread_id):
            return []
        thread = self.get(thread_id)
        thread.parent = self.parent_of(sender)
        rows = self._announce(thread, text_in(item.get("agentPath")))
        if kind in _ENDS and not thread.has_ended:
            rows.append(self._end(thread, kind, thread.message))
        return rows

    def started(self, value: Mapping[str, Any]) -> list[Row]:
        """Record a new thread: its parent, and its type of agent."""
        thread_id = text_in(value.get("id"))
        if not self.is_child(thread_id):
            return []
        thread = self.get(thread_id)
        thread.parent = self.parent_of(text_in(value.get("parentThreadId")))
        thread.agent_type = text_in(value.get("agentRole")) or None
        return self._announce(thread, text_in(value.get("agentNickname")))

    def closed(self, thread_id: str) -> list[Row]:
        """Record the end of a thread."""
        thread = self.get(thread_id)
        was_active, thread.is_active = thread.is_active, False
        return [self._end(thread, "shutdown", thread.message)] if was_active and self.is_child(thread_id) else []

    def _announce(self, thread: Thread, name: str = "") -> list[Row]:
        if thread.was_announced:
            return []
        thread.was_announced, thread.name = True, _name_in(name)
        return [self._row(thread, Phase.START, "running")]

    def _end(self, thread: Thread, status: str, text: str | None) -> Row:
        thread.is_active, thread.has_ended = False, True
        return self._row(thread, Phase.END, _ENDS.get(status, "failed"))._replace(text=text)

    def _row(self, thread: Thread, phase: Phase, status: str) -> Row:
        row = Row(RowType.AGENT, thread.id, phase, thread.parent, status, thread.agent_type)
        return row if phase is Phase.END else row._replace(name=thread.name, detail=thread.detail or None)


def _name_in(text: str) -> str | None:
    return shortened(text.strip().partition("\n")[0], _LONGEST_NAME, "…") or None


def _tokens(counts: Mapping[str, Any]) -> dict[str, int]:
    """Return token counts; Codex's input includes what came from the cache."""
    cached = count_in(counts.get("cachedInputTokens"))
    whole, output = count_in(counts.get("inputTokens")), count_in(counts.get("outputTokens"))
    return {"input": max(0, whole - cached), "output": output, "cached": cached}


#: Items that may come between two responses although the model has called nothing.
_NO_ANSWER = frozenset({"userMessage", "contextCompaction", "hookPrompt"})


class Rounds:
    """Counts the tool rounds of one thread: model responses that called a tool.

    Codex does not number them. Each response ends with new token counts, after the items of its tools. A call that the
    sandbox or the policy refuses has no item: its only sign is that the model goes on within the turn.
    """

    def __init__(self) -> None:
        self.used = 0
        self._has_called = False
        self._is_open = False

    def item(self, item: Mapping[str, Any]) -> None:
        """Record the beginning of an item."""
        if self._is_open and item.get("type") not in _NO_ANSWER:
            self.used += 1
        self._is_open = False
        self._has_called = self._has_called or is_tool(item)

    def called(self) -> None:
        """Record a call that is not an item: a question to the user."""
        self._has_called = True

    def response_ended(self) -> None:
        """Record the end of a response; an earlier one that is still open was not the turn's last."""
        self.used += int(self._has_called) + int(self._is_open)
        self._is_open = not self._has_called
        self._has_called = False

    def turn_ended(self) -> None:
        """Record the end of a turn; its last response is not a round."""
        self._has_called = self._is_open = False
