"""Codex's threads: the agent itself and its sub-agents, what each of them does, and the tokens that each has used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentctl.domain.activity.row import Phase, Row, RowType
from agentctl.drivers.codex.items import as_dict, as_list, as_number, as_text, row_id

_LONGEST_NAME = 80
#: How a sub-agent's turn, or what its parent is told of it, reads in the activity.
_ENDS = {
    "completed": "completed",
    "failed": "failed",
    "errored": "failed",
    "notFound": "failed",
    "interrupted": "cancelled",
    "shutdown": "cancelled",
}


class Thread:
    """One thread."""

    def __init__(self, thread_id: str, parent: str | None) -> None:
        self.id = thread_id
        #: The id of the thread that started it, where that is not the agent itself.
        self.parent = parent
        self.agent_type: str | None = None
        self.is_active = False
        self.was_announced = False
        self.has_ended = False
        self.message: str | None = None
        self.turns: set[str] = set()
        self._before: dict[str, int] | None = None
        self._total: dict[str, int] = {}

    def count(self, turn: str, usage: Mapping[str, Any]) -> bool:
        """Take the tokens that the thread has used so far; tell whether this run has used any since the last time.

        Codex's totals go on over a resume, and what a resumed thread had used before is told once more: under a turn
        that is not of this run.
        """
        total = _tokens(as_dict(usage.get("total")))
        if turn not in self.turns:
            self._before, self._total = total, total
            return False
        if self._before is None:
            last = _tokens(as_dict(usage.get("last")))
            self._before = {key: max(0, total[key] - last[key]) for key in total}
        is_new = total != self._total
        self._total = total
        return is_new

    def spent(self) -> dict[str, int]:
        """Return the tokens of this run."""
        if self._before is None:
            return {}
        return {key: max(0, value - self._before[key]) for key, value in self._total.items()}


class Threads:
    """All threads of one run, before which there were `earlier` ones in the same activity."""

    def __init__(self, earlier: int = 0) -> None:
        self._earlier = earlier
        #: The agent's own thread; all others are those of its sub-agents.
        self.root: str | None = None
        self._known: dict[str, Thread] = {}

    def get(self, thread_id: str) -> Thread:
        """Return a thread, made known by being asked for."""
        return self._known.setdefault(thread_id, Thread(thread_id, None))

    def is_child(self, thread_id: str) -> bool:
        """Tell whether a thread is a sub-agent's."""
        return bool(thread_id) and self.root is not None and thread_id != self.root

    def parent_of(self, thread_id: str) -> str | None:
        """Return the parent of the rows of a thread; None is the agent itself."""
        return thread_id if self.is_child(thread_id) else None

    def are_children_working(self) -> bool:
        """Tell whether a sub-agent is at work."""
        return any(thread.is_active for thread in self._known.values() if self.is_child(thread.id))

    def spent(self) -> dict[str, int]:
        """Return the tokens of this run: of the agent and its sub-agents, each once."""
        sums: dict[str, int] = {}
        for thread in self._known.values():
            for key, value in thread.spent().items():
                sums[key] = sums.get(key, 0) + value
        return sums

    def usage_row(self, thread_id: str) -> Row:
        """Return the row of what a thread has used in this run."""
        thread = self.get(thread_id)
        parent = self.parent_of(thread_id)
        return Row(RowType.USAGE, row_id(f"usage:{thread_id}", self._earlier), parent=parent, detail=thread.spent())

    def turn_started(self, thread_id: str, turn: str) -> list[Row]:
        """A turn has begun."""
        thread = self.get(thread_id)
        thread.turns.add(turn)
        thread.is_active = True
        return self._announced(thread) if self.is_child(thread_id) else []

    def turn_completed(self, thread_id: str, status: str) -> list[Row]:
        """A turn has ended, and with it what the sub-agent had to do."""
        thread = self.get(thread_id)
        if not self.is_child(thread_id):
            thread.is_active = False
            return []
        return [*self._announced(thread), self._ended(thread, status, thread.message)]

    def told_by_parent(self, item: Mapping[str, Any], *, is_done: bool) -> list[Row]:
        """Take what a tool call about sub-agents tells of them: who they are, and who has ended."""
        rows: list[Row] = []
        states = as_dict(item.get("agentsStates"))
        is_spawn = item.get("tool") == "spawnAgent"
        for thread_id in filter(None, map(as_text, as_list(item.get("receiverThreadIds")))):
            if not self.is_child(thread_id):
                continue
            thread, state = self.get(thread_id), as_dict(states.get(thread_id))
            if is_spawn:
                thread.parent = self.parent_of(as_text(item.get("senderThreadId")))
                # Until its first turn begins nothing else says that there is somebody to wait for.
                thread.is_active = thread.is_active or not (thread.turns or thread.has_ended)
                rows += self._announced(thread, as_text(item.get("prompt")))
            if is_done and as_text(state.get("status")) in _ENDS and not thread.has_ended:
                rows += self._announced(thread)
                rows.append(self._ended(thread, as_text(state.get("status")), as_text(state.get("message")) or None))
        return rows

    def told_of(self, item: Mapping[str, Any], sender: str) -> list[Row]:
        """Take a row of Codex's own about a sub-agent (`subAgentActivity`)."""
        thread_id, kind = as_text(item.get("agentThreadId")), as_text(item.get("kind"))
        if not self.is_child(thread_id):
            return []
        thread = self.get(thread_id)
        thread.parent = self.parent_of(sender)
        rows = self._announced(thread, as_text(item.get("agentPath")))
        if kind in _ENDS and not thread.has_ended:
            rows.append(self._ended(thread, kind, thread.message))
        return rows

    def started(self, value: Mapping[str, Any]) -> list[Row]:
        """Take what Codex tells of a new thread: who started it, and which kind of agent it is."""
        thread_id = as_text(value.get("id"))
        if not self.is_child(thread_id):
            return []
        thread = self.get(thread_id)
        thread.parent = self.parent_of(as_text(value.get("parentThreadId")))
        thread.agent_type = as_text(value.get("agentRole")) or None
        return self._announced(thread, as_text(value.get("agentNickname")))

    def closed(self, thread_id: str) -> list[Row]:
        """A thread is gone."""
        thread = self.get(thread_id)
        was_active, thread.is_active = thread.is_active, False
        return [self._ended(thread, "shutdown", thread.message)] if was_active and self.is_child(thread_id) else []

    def _announced(self, thread: Thread, name: str = "") -> list[Row]:
        if thread.was_announced:
            return []
        thread.was_announced = True
        return [self._row(thread, Phase.START, "running", _first_line(name) or None)]

    def _ended(self, thread: Thread, status: str, text: str | None) -> Row:
        thread.is_active, thread.has_ended = False, True
        return self._row(thread, Phase.END, _ENDS.get(status, "failed"))._replace(text=text)

    def _row(self, thread: Thread, phase: Phase, status: str, name: str | None = None) -> Row:
        row = Row(RowType.AGENT, thread.id, phase, parent=thread.parent, status=status, name=name)
        return row._replace(agent_type=thread.agent_type)


def _first_line(text: str) -> str:
    line = text.strip().partition("\n")[0]
    return line if len(line) <= _LONGEST_NAME else line[: _LONGEST_NAME - 1] + "…"


def _tokens(counts: Mapping[str, Any]) -> dict[str, int]:
    """Return token counts; Codex's input includes what came from the cache."""
    cached = as_number(counts.get("cachedInputTokens"))
    whole, output = as_number(counts.get("inputTokens")), as_number(counts.get("outputTokens"))
    return {"input": max(0, whole - cached), "output": output, "cached": cached}
