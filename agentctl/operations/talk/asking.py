"""How a worker asks: its question is written to disk and waits until it is answered, or closed unanswered."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Mapping, Sequence

from agentctl.adapters import eventlog, processes
from agentctl.adapters.clock import monotonic, now_iso
from agentctl.adapters.files import create_whole, make_folder, read_json, set_aside, to_json, write_whole
from agentctl.adapters.locks import hold_alive, locked
from agentctl.adapters.opening import read_bytes
from agentctl.adapters.taskdir import WorkerDir
from agentctl.adapters.watch import Watch
from agentctl.domain import events as ev
from agentctl.domain.answers import check_question
from agentctl.domain.names import check_name
from agentctl.domain.question import AnswerOption, Question
from agentctl.domain.text.plaintext import whole_json
from agentctl.encoding import as_utf8
from agentctl.errors import (
    AgentctlError,
    Argument,
    BrokenOff,
    Damaged,
    Next,
    Refused,
    StorageError,
    WaitTimedOut,
    WithArguments,
)
from agentctl.lean import TYPE_CHECKING, Any, NamedTuple
from agentctl.operations.where.calling import caller_or_refuse
from agentctl.operations.where.lineage import who
from agentctl.operations.where.ownership import check_own
from agentctl.supervision.worker.control import poke
from agentctl.supervision.worker.endings import status_at_end
from agentctl.supervision.worker.placed import is_away
from agentctl.supervision.worker.questions import read_question, waiting_askers

if TYPE_CHECKING:
    from agentctl.domain.documents.workers.questions import GivenAnswer

_EVENT_KEYS = (
    "id", "kind", "question", "options", "default", "deadlineSeconds", "tool", "askedBy", "askedByType",
)  # fmt: skip


class StillOpen(AgentctlError):
    """The time limit of the call has passed, the question is still open: asking again with its id resumes the wait."""

    def __init__(self, question_id: str) -> None:
        super().__init__(f"nobody has answered {question_id} yet", hint="ask again with its id to go on waiting")
        self.question_id = question_id


class Unanswered(WaitTimedOut):
    """A question was closed: its deadline passed and it has no default."""

    def __init__(self, question_id: str) -> None:
        super().__init__(
            f"nobody answered {question_id} in time",
            hint=WithArguments("ask with ", Argument("default"), " to go on without an answer"),
        )
        self.question_id = question_id


def ask_as_caller(
    question: str,
    *,
    kind: str,
    options: Sequence[tuple[str, str]],
    default: str | None,
    deadline_s: float | None,
    question_id: str | None,
) -> GivenAnswer:
    """Ask as the calling worker; see `ask_as`.

    Args:
        kind: `select` (an option's id is the answer), `confirm` (yes or no), `input` (any text).
        options: The id and the label of each.
        default: The answer taken at the deadline.
        deadline_s: None waits without a limit.
        question_id: Take up a question that was asked before, whether it was answered meanwhile or not.
    """
    worker = caller_or_refuse("interact ask").worker
    check_own(worker.task)
    labelled = tuple(AnswerOption(key, as_utf8(label)) for key, label in options)
    return ask_as(worker, Question(question_id or "", kind, as_utf8(question), labelled, default, None, deadline_s))


def ask_as(
    worker: WorkerDir, question: Question, *, limit_s: float | None = None, broken: int | None = None
) -> GivenAnswer:
    """Ask as a worker, and wait for the answer. The worker is blocked meanwhile.

    Args:
        question: Without an id, it gets a new one; with that of a question that was asked before, this one is taken
            up again, whether it was answered meanwhile or not.
        limit_s: The longest wait, whatever the question's deadline is; None waits without a limit.
        broken: A descriptor that becomes readable once nobody waits for this call any more.

    Raises:
        Unanswered: The deadline passed and there is no default; the question is closed.
        StillOpen: `limit_s` has passed.
        BrokenOff: Nobody waits for the call any more; the question stays open.
        Refused: The worker has ended, or somebody else waits for this question's answer.
    """
    check_question(question)
    wait = _Wait(worker, question.default, question.deadline_s, limit_s, broken)
    with Watch() as watch:
        try:
            asked = put_question(worker, question)
        except (StorageError, OSError) as error:
            return _ask_through_driver(worker, question, watch, error)
        try:
            watch.add(worker.interactions)
            return wait.answer(asked.question_id, watch)
        finally:
            leave(worker, asked)


def _ask_through_driver(worker: WorkerDir, question: Question, watch: Watch, error: Exception) -> GivenAnswer:
    """Ask through the driver, since a sandbox keeps this process from writing the question; wait for the answer.

    The answer is read from its usual place. The driver enforces the deadline: only it can close the question.
    """
    from agentctl.operations.talk import outbox

    if not outbox.is_walled(worker, error):
        raise error
    name = question.id or f"q{os.urandom(4).hex()}"
    watch.add(worker.interactions)
    with outbox.delivered(worker, {"verb": "ask", **question._replace(id=name).to_json()}):
        if not worker.question(name).exists():
            raise Refused(f"the question {name} was not accepted", hint=Next("logs", worker.instance, "says why"))
        return _Wait(worker).answer(name, watch)


class Asked(NamedTuple):
    """A question on disk whose asker waits; holding the lock proves that the asker is alive."""

    question: Question
    lock: int
    #: That of its file.
    content: Mapping[str, Any]

    @property
    def question_id(self) -> str:
        """Return the id under which it is answered."""
        return self.question.id


def put_question(worker: WorkerDir, question: Question, used: Collection[str] = (), stem: str = "q") -> Asked:
    """Write a question to disk, or find it there, and take its asker's lock.

    Args:
        question: Without an id, it gets a new one.
        used: Ids that are not given again, whatever the files say: an answer names its question by its id.
        stem: How a new id begins.
    """
    make_folder(worker.interactions)
    with locked(worker.lock):
        refuse_if_ended(worker, "ask questions")
        name = check_name(question.id, Argument("id")) if question.id else _next_id(worker, used, stem)
        is_new = not worker.question(name).exists()
        lock = hold_alive(worker.asker_lock(name))
        if lock is None:
            raise Refused(f"another process already waits for the answer to {name}")
        try:
            asked = _put(worker, question._replace(id=name), lock, is_new=is_new)
        except BaseException:
            os.close(lock)
            if is_new:  # Without its event, a question would stay open forever.
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(worker.question(name))
            raise
    poke(worker)
    return asked


def _put(worker: WorkerDir, question: Question, lock: int, *, is_new: bool) -> Asked:
    known = None if is_new else read_question(worker, question.id)
    question = question._replace(asked_at=now_iso()) if known is None else known
    me = processes.identify(os.getpid())
    content = {**whole_json(question.to_json()), "asker": me.to_json() if me else None}
    write_whole(worker.question(question.id), to_json(content))
    events = []
    if is_new:
        payload = {key: content[key] for key in _EVENT_KEYS if key in content}
        events.append(event_of(worker, ev.ASKED, payload))
    if not worker.answer(question.id).exists():
        events.append(event_of(worker, ev.BLOCKED, {"id": question.id}))
    with contextlib.suppress(eventlog.NotFlushed):  # The log has it, and a power cut would end the asker, too.
        eventlog.append(worker.task.events, events)
    return Asked(question, lock, content)


def put_again(worker: WorkerDir, asked: Asked) -> bool:
    """Restore a question's file if it was changed since it was written; return whether that was done.

    If the disk has no room for it now, the next look does it.
    """
    file, content = worker.question(asked.question_id), to_json(asked.content)
    try:
        if read_bytes(file) == content:
            return False
        set_aside(file)  # A folder in its place would block the write.
    except (FileNotFoundError, NotADirectoryError, Damaged):
        pass
    except (StorageError, OSError):
        return False  # It cannot be known what is there now.
    with contextlib.suppress(StorageError, OSError):
        write_whole(file, content)
        return True
    return False


def leave(worker: WorkerDir, asked: Asked) -> None:
    """Stop waiting for an answer."""
    os.close(asked.lock)
    poke(worker)


def _next_id(worker: WorkerDir, used: Collection[str], stem: str) -> str:
    """Return an unused id: an answer that exists under it would be taken as the answer to the new question."""
    number = len(worker.question_ids()) + 1
    stem = "h" if is_away(worker) else stem  # At the head of a worker on a node: that one has a `q1` of its own.

    def is_used(name: str) -> bool:
        return name in used or worker.question(name).exists() or worker.answer(name).exists()

    while is_used(f"{stem}{number}"):
        number += 1
    return f"{stem}{number}"


def event_of(worker: WorkerDir, kind: str, payload: dict[str, Any], *, by: str | None = None) -> ev.Event:
    """Return an event about a worker; `by` defaults to the caller."""
    return ev.make_event(now_iso(), kind, worker.task.id, by or who(), payload, worker.instance)


def refuse_if_ended(worker: WorkerDir, verb: str) -> None:
    """Raise `Refused` if a worker has ended; the message says what it can no longer do."""
    if worker.has_ended:
        raise Refused(f"{worker.instance} has ended ({status_at_end(worker)}): it can no longer {verb}")


class _Wait:
    """The wait for an answer: until there is one, the deadline has passed, or the asker stops waiting."""

    def __init__(
        self,
        worker: WorkerDir,
        default: str | None = None,
        deadline_s: float | None = None,
        limit_s: float | None = None,
        broken: int | None = None,
    ) -> None:
        now = monotonic()
        self._worker, self._default, self._broken = worker, default, broken
        self._deadline = None if deadline_s is None else now + deadline_s
        self._until = None if limit_s is None else now + limit_s

    def answer(self, name: str, watch: Watch) -> GivenAnswer:
        """Return the answer to a question; it looks before it sleeps, so no answer is missed."""
        while True:
            answer = read_json(self._worker.answer(name))
            if answer is not None:
                return self._given(name, answer)
            now = monotonic()
            if self._worker.has_ended:
                raise Refused(f"{self._worker.instance} has ended; nobody will answer {name}")
            if self._deadline is not None and now >= self._deadline:
                close_question(self._worker, name, self._default)
            elif self._until is not None and now >= self._until:
                raise StillOpen(name)
            else:
                self._sleep(watch, now)

    def _given(self, name: str, answer: Mapping[str, Any]) -> GivenAnswer:
        if answer.get("expired"):
            raise Unanswered(name)
        if answer.get("answer") is None:
            raise Damaged(
                f"{self._worker.answer(name)} holds no answer",
                hint=WithArguments("ask again, under another ", Argument("id")),
            )
        return {"id": name, "answer": str(answer["answer"]), "by": str(answer.get("by"))}

    def _sleep(self, watch: Watch, now: float) -> None:
        left = [until - now for until in (self._deadline, self._until) if until is not None]
        if self._broken in watch.sleep(min(left, default=None), [] if self._broken is None else [self._broken]):
            raise BrokenOff("the call was aborted; the question stays open")


def close_question(worker: WorkerDir, name: str, default: str | None, why: str = "deadline") -> None:
    """Answer with the default, or close the question unanswered; an answer that came first wins."""
    if not worker.path.exists():
        return  # Somebody removed the folder of a running worker.
    with locked(worker.lock):
        if worker.answer(name).exists() or worker.has_ended:
            return
        body = {"id": name, "at": now_iso(), "by": "agentctl", "answer": default, "expired": default is None}
        if default is None and why != "deadline":
            body["why"] = why
        create_whole(worker.answer(name), to_json(body))
        kind = ev.EXPIRED if default is None else ev.ANSWERED
        eventlog.append(worker.task.events, [event_of(worker, kind, body), *resumed_by(worker, name)])


def resumed_by(worker: WorkerDir, name: str) -> list[ev.Event]:
    """Return the event that the worker goes on, unless another of its questions still has a live asker."""
    return [] if set(waiting_askers(worker)) - {name} else [event_of(worker, ev.RESUMED, {"id": name})]
