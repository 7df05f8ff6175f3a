"""Carries over what happens on the node: its events that concern others, and its questions, answered at the head.

A question of a worker on a node is asked at the head by its stand-in, which waits there in its place. The first valid
answer, given at the head, goes to the node under the seal of the launch.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping

from agentctl.adapters import eventlog
from agentctl.adapters.clock import now_iso
from agentctl.adapters.files import file_text, make_folder, read_json, read_known, set_aside, to_json, write_whole
from agentctl.adapters.taskdir import LaunchDir, WorkerDir
from agentctl.domain import events as ev
from agentctl.domain.names import is_name
from agentctl.errors import AgentctlError, Damaged, StorageError
from agentctl.lean import TYPE_CHECKING, Any
from agentctl.supervision.worker.questions import read_question
from agentctl.supervision.worker.spec import order_of
from agentctl.worker_programs.on_node.exchange.seal import known_key, sealed
from agentctl.worker_programs.on_node.exchange.written_state import READ

if TYPE_CHECKING:
    from agentctl.operations.talk.asking import Asked

#: What others see of the worker in its log; the rest of its life is carried by the shim here.
_CARRIED = frozenset({
    ev.RESULT_DECLARED, ev.STALLED, ev.UNSTALLED, ev.PAUSED, ev.UNPAUSED, ev.CANCEL_FAILED, ev.NEAR_LIMIT,
})  # fmt: skip
#: Begins the ids of the questions that the post puts for those that are asked at the head.
ASKED_AT_HEAD = "at-head-"


class Relay:
    """The log of a worker on its node, and the questions that it has asked there."""

    def __init__(self, here: WorkerDir, launch: LaunchDir) -> None:
        self._here, self._launch = here, launch
        self._there = launch.worker_on_node(here)
        #: Everything before this offset is in the log of the task here; before the other, it was looked at.
        self._carried = _offset_in(launch)
        self._read = 0
        self._open: dict[str, Asked | None] = {}
        #: Its log was seen and read to the end, at least once.
        self._knows_log = False
        #: How many messages the worker had read there before its log was read the last time.
        self.messages_read = 0
        #: It asks for a permission that cannot be given any more: the key of its launch is gone.
        self.has_unanswerable = False
        #: The log says that a node has begun it.
        self._is_placed = False

    def tell_placed(self, runner: str) -> None:
        """Append the event that a node has begun the worker, unless the log has it."""
        if self._is_placed:
            return
        claim, log, instance = read_known(self._launch.claim), self._here.task.events, self._here.instance
        if not claim or claim.get("by") == "head":
            return
        placements = eventlog.events_about(log, instance, (ev.PLACED,))
        if not any(event["payload"].get("launch") == self._launch.id for event in placements):
            payload = {"launch": self._launch.id, "runner": runner} | {key: claim.get(key) for key in ("node", "job")}
            event = ev.make_event(now_iso(), ev.PLACED, self._here.task.id, "agentctl", payload, instance)
            eventlog.append(log, [event])
        self._is_placed = True

    def step(self) -> bool:
        """Carry over what has come; return whether anything has."""
        # Before the log, which then has the end of each wait for one of these messages.
        messages_read = _messages_read_by(self._there)
        news = self._read_log()
        self.messages_read, self._knows_log = messages_read, self._read > 0
        for name in [name for name, asked in self._open.items() if asked is None]:
            self._ask(name)
        is_answered = self._pass_answers(name for name in self._open if name not in self._idle)
        return news or is_answered

    @property
    def is_idle(self) -> bool:
        """Whether the agent was kept, and waits for a message."""
        return bool(self._idle)

    @property
    def may_be_idle(self) -> bool:
        """Whether that may be so: also while it is not known what the agent asks."""
        return not self._knows_log or any(map(self._may_be_idle_by, self._open))

    @property
    def is_told_next(self) -> bool:
        """Whether "what next?" was answered here, and the node has yet to be told."""
        return any(self._answer_here(name) is not None for name in self._idle)

    def tell_next(self) -> None:
        """Take the answer to "what next?" to the node, if there is one; the agent then goes on."""
        self._pass_answers(self._idle)

    @property
    def has_open(self) -> bool:
        """Whether a question is open on the node."""
        return bool(self._open)

    def has(self, name: str) -> bool:
        """Return whether a question was asked on the node."""
        return name in self._open

    def close(self, why: str) -> None:
        """Close all questions that are open here: nobody waits on the node any more."""
        if not self._open:
            return
        from agentctl.operations.talk.asking import close_question, leave

        for name, asked in self._open.items():
            if asked is not None:
                with contextlib.suppress(AgentctlError, OSError):
                    close_question(self._here, name, None, why)
                leave(self._here, asked)
        self._open.clear()

    # -- its log ---------------------------------------------------------------------------------------------------

    def _read_log(self) -> bool:
        carried, before = [], self._read
        for offset, event in self._events():
            self._note(event)
            if event["type"] in _CARRIED and offset > self._carried:
                carried.append({**event, "taskId": self._here.task.id})
        if carried:
            eventlog.append(self._here.task.events, carried)
        if self._read > self._carried:
            self._carried = self._read
            write_whole(self._launch.mirrored, to_json({"events": self._carried}), durable=False)
        return self._read > before

    def _events(self) -> Iterator[tuple[int, ev.Event]]:
        with contextlib.suppress(NotADirectoryError):
            for offset, lines in eventlog.blocks_of(self._there.task.events, self._read):
                for row in ev.decode(lines, 0) if lines else ():
                    if not isinstance(row, ev.BadLine) and row[1].get("agentInstance") == self._here.instance:
                        yield offset, row[1]
                self._read = offset

    def _note(self, event: Mapping[str, Any]) -> None:
        """Note which questions are open on the node, and whose askers have gone."""
        name = event["payload"].get("id")
        if event["type"] == ev.RESUMED and event["payload"].get("reason") == "asker_gone":
            for one in list(self._open):
                self._abandon(one)
        elif not isinstance(name, str) or not is_name(name) or name.startswith(ASKED_AT_HEAD):
            return
        elif event["type"] == ev.BLOCKED:
            self._open.setdefault(name, None)
        elif event["type"] in (ev.ANSWERED, ev.EXPIRED) and name in self._open:
            self._closed_there(name)

    def _abandon(self, name: str) -> None:
        """Wait no longer for an answer: nobody on the node does. The question stays open, and can be taken up again."""
        asked = self._open.pop(name, None)
        if asked is not None:
            from agentctl.operations.talk.asking import leave

            leave(self._here, asked)

    # -- its questions ---------------------------------------------------------------------------------------------

    def _ask(self, name: str) -> None:
        from agentctl.operations.talk.asking import put_question  # It takes 2.7 MB, and most workers ask nothing.

        question = read_question(self._there, name)
        if question is None:
            return
        if question.is_permission and known_key(self._launch.id) is None:
            self.has_unanswerable = True
            return
        with contextlib.suppress(AgentctlError):
            self._open[name] = put_question(self._here, question)

    def _may_be_idle_by(self, name: str) -> bool:
        asked = self._open[name]
        question = read_question(self._there, name) if asked is None else asked.question
        return question is None or question.idle

    @property
    def _idle(self) -> list[str]:
        """The questions "what next?" that are open."""
        return [name for name, asked in self._open.items() if asked is not None and asked.question.idle]

    def _pass_answers(self, names: Iterable[str]) -> bool:
        """Take the answers to these questions to the node; return whether there was one."""
        asked_here = [(name, asked) for name in names if (asked := self._open[name]) is not None]
        answered = [name for name, asked in asked_here if self._answer(name, asked)]
        for name in answered:
            del self._open[name]
        return bool(answered)

    def _answer_here(self, name: str) -> dict[str, Any] | None:
        try:
            return read_json(self._here.answer(name))
        except Damaged:
            return None

    def _answer(self, name: str, asked: Asked) -> bool:
        """Take an answer that was given here to the node; return whether there was one."""
        answer = self._answer_here(name)
        if answer is None:
            return False
        from agentctl.operations.talk.asking import leave
        from agentctl.operations.where.ownership import take_answer

        marks = str(order_of(self._here).get("marks") or "")
        if asked.question.is_permission and not take_answer(marks, self._here, asked.content, answer):
            set_aside(self._here.answer(name))  # It did not come through agentctl.
            return False
        key = known_key(self._launch.id)
        given = answer if key is None else sealed(key, f"answer {name}", answer)
        make_folder(self._launch.inbound.answers)
        write_whole(self._launch.inbound.answers / f"{name}.json", to_json(given))
        leave(self._here, asked)
        return True

    def _closed_there(self, name: str) -> None:
        """Close a question here as it was closed on the node: by its deadline, or by the program that asked."""
        asked = self._open.pop(name)
        if asked is None:
            return
        from agentctl.operations.talk.asking import close_question, leave

        answer = read_known(self._there.answer(name))
        value = answer.get("answer") if answer.get("by") == "agentctl" else None
        with contextlib.suppress(AgentctlError, OSError):
            close_question(
                self._here, name, value if isinstance(value, str) else None, str(answer.get("why") or "deadline")
            )
        leave(self._here, asked)


def _messages_read_by(worker: WorkerDir) -> int:
    """Return how many messages a worker has read; 0 where that cannot be said."""
    with contextlib.suppress(StorageError, ValueError):
        return int(file_text(worker.inbox / READ, "ascii"))
    return 0


def _offset_in(launch: LaunchDir) -> int:
    offset = read_known(launch.mirrored).get("events")
    return offset if isinstance(offset, int) and offset >= 0 else 0
