"""Delivers, on the node, what the head says to a worker: a cancel, a pause, messages, answers."""

from __future__ import annotations

import contextlib
import os

from agentctl.adapters import eventlog
from agentctl.adapters.files import create_whole, make_folder, read_known, to_json, write_whole
from agentctl.adapters.locks import locked
from agentctl.adapters.opening import read_bytes
from agentctl.adapters.taskdir import LaunchDir, WorkerDir, names_in
from agentctl.domain import events as ev
from agentctl.domain.names import is_name
from agentctl.domain.question import Question, question_in
from agentctl.errors import AgentctlError, StorageError
from agentctl.lean import Any
from agentctl.operations.talk.asking import Asked, close_question, event_of, leave, put_question, resumed_by
from agentctl.operations.talk.outbox_entry import BadEntry, entry_in
from agentctl.operations.talk.reporting import keep_report
from agentctl.operations.where.ownership import vouch_for_answer
from agentctl.supervision.stop.requesting import Request, request_end
from agentctl.supervision.worker.control import poke
from agentctl.worker_programs.on_node.exchange.node_relay import ASKED_AT_HEAD
from agentctl.worker_programs.on_node.exchange.seal import opened

_MOST = 10_000
_NOT_HERE = "it is answered at the head"


class Deliveries:
    """What the head has said to one worker, and what of it was delivered.

    Args:
        key: That of the launch: an answer without its seal does not count.
    """

    def __init__(self, worker: WorkerDir, launch: LaunchDir, key: bytes) -> None:
        self._worker, self._from, self._key, self._kept = worker, launch.inbound, key, launch.kept_report
        self._cancel: bytes | None = None
        self._answered: set[str] = set()
        self._messages = self._reports = 0
        self._asked: dict[str, Asked] = {}

    def step(self) -> None:
        """Deliver what has come; each kind by itself, so that none holds up the others."""
        os.listdir(self._from.path)  # Over NFS: names that were missing at the last look are looked up again.
        for deliver in (
            self._deliver_cancel, self._deliver_pause, self._deliver_answers, self.deliver_messages,
            self._deliver_reports, self._stand,
        ):  # fmt: skip
            with contextlib.suppress(AgentctlError, OSError):
                deliver()

    def close(self) -> None:
        """Close what stood for the questions at the head."""
        for name in list(self._asked):
            self._withdraw(name)

    def _deliver_cancel(self) -> None:
        if not self._from.cancel.exists():
            return
        data = read_bytes(self._from.cancel)
        if data != self._cancel:
            asked = read_known(self._from.cancel)
            grace = asked.get("graceSeconds")
            request_end(
                self._worker, Request(str(asked.get("by") or "user"), grace if isinstance(grace, int | float) else None)
            )
            self._cancel = data

    def _deliver_pause(self) -> None:
        is_wanted = self._from.pause.exists()
        if is_wanted == self._worker.pause.exists():
            return
        if is_wanted:
            write_whole(self._worker.pause, to_json(read_known(self._from.pause)))
        else:
            os.unlink(self._worker.pause)
        poke(self._worker)

    def deliver_messages(self) -> None:
        """Deliver the messages that have come, in their order."""
        names = sorted(name for name in names_in(self._from.inbox, _MOST) if name.endswith(".json"))
        for name in names[self._messages :]:
            make_folder(self._worker.inbox)
            write_whole(self._worker.inbox / name, read_bytes(self._from.inbox / name))
            self._messages += 1

    def _deliver_reports(self) -> None:
        """Keep what the worker has reported by way of the head: its files are written here alone."""
        names = sorted(name for name in names_in(self._from.reports, _MOST) if name.endswith(".json"))
        for name in names[self._reports :]:
            try:
                entry = entry_in(read_bytes(self._from.reports / name))
                if not isinstance(entry, Question):
                    keep_report(self._worker, entry)
            except StorageError:
                raise  # The next look tries again.
            except (AgentctlError, BadEntry):
                pass
            self._reports += 1
            write_whole(self._kept, name.encode())

    def _deliver_answers(self) -> None:
        for file_name in names_in(self._from.answers, _MOST):
            name = file_name.removesuffix(".json")
            is_new = name not in self._answered and is_name(name) and file_name.endswith(".json")
            if is_new and self._answer(name, read_known(self._from.answers / file_name)):
                self._answered.add(name)

    def _answer(self, name: str, given: dict[str, Any]) -> bool:
        """Answer a question here as it was answered at the head; return whether that was an answer.

        To a request for permission only one under the seal is. After a restart of the head there is no key there any
        more, and other questions are answered without it: their asker could write the answer itself.
        """
        body, answer = read_known(self._worker.question(name)), opened(self._key, f"answer {name}", given)
        question = question_in(name, body)
        if question is None or not given or (answer is None and question.is_permission):
            return False
        answer = given if answer is None else answer
        with locked(self._worker.lock):
            if question.is_permission:
                vouch_for_answer(self._worker, body, answer)
            if create_whole(self._worker.answer(name), to_json(answer)):
                event = event_of(self._worker, ev.ANSWERED, answer, by=str(answer.get("by")))
                eventlog.append(self._worker.task.events, [event, *resumed_by(self._worker, name)])
        poke(self._worker)
        return True

    # -- questions that were asked at the head -----------------------------------------------------------------------

    def _stand(self) -> None:
        """Let the worker count as blocked while its commands wait at the head for answers: its clock stands still."""
        asked = read_known(self._from.asked).get("asked")
        wanted = (
            {f"{ASKED_AT_HEAD}{name}" for name in asked if isinstance(name, str)} if isinstance(asked, list) else set()
        )
        for name in set(self._asked) - wanted:
            self._withdraw(name)
        for name in wanted - set(self._asked):
            if is_name(name) and not self._worker.answer(name).exists():
                self._asked[name] = put_question(self._worker, Question(name, "input", _NOT_HERE))

    def _withdraw(self, name: str) -> None:
        asked = self._asked.pop(name)
        with contextlib.suppress(AgentctlError, OSError):
            close_question(self._worker, name, None, _NOT_HERE)
        leave(self._worker, asked)
