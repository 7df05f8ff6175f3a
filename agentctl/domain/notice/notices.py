"""Which events become notices for a person, as a pure function of the logs of a tree of tasks.

A notice is about a question that is still open, a worker that failed or completed, a usage window that is nearly used
up, or the end of all workers. Nobody is told what is over by the time somebody looks (an answered question, a tree at
work again).
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, islice

from agentctl.domain import events as ev
from agentctl.domain.events import BadLine, Event
from agentctl.domain.names import is_name
from agentctl.domain.notice.notice_text import clean, clean_question
from agentctl.domain.states import Status
from agentctl.domain.text.numbers import finite
from agentctl.domain.worker.ends import end_in_words
from agentctl.domain.worker.removals import Removals
from agentctl.domain.worker.tries import Tries
from agentctl.lean import Any, NamedTuple

BLOCKED, FAILED, COMPLETED, ENDED, LIMIT = "blocked", "failed", "completed", "ended", "limit"
#: What a person can be told of, in the words of a configuration; and of that what they are told if they choose nothing.
KINDS: tuple[str, ...] = (BLOCKED, FAILED, COMPLETED, ENDED, LIMIT)
DEFAULT_KINDS: tuple[str, ...] = tuple(kind for kind in KINDS if kind != COMPLETED)

#: More are not remembered of one task: a forged log may have any number.
_MOST = 10_000
_LONGEST_QUESTION, _LONGEST_LINE, _LONGEST_WORD = 200, 200, 60


class Notice(NamedTuple):
    """Something that a person wants to know."""

    #: The same for everybody who reads the log: the task's id and the number of the event, `survey:17`.
    key: str
    kind: str
    task_id: str
    #: When it happened, as the event has it.
    at: str
    text: str
    instance: str | None = None
    #: More about it, under the names of the message: status, reason, question, window, usedPercent, counts.
    facts: Mapping[str, Any] = {}
    #: Of a question: its id, if that is a name.
    question_id: str | None = None


class _End(NamedTuple):
    at: str
    task_id: str
    seq: int


class TaskNotices:
    """What the log of one task says so far; rows are applied as they are appended."""

    def __init__(self, task_id: str) -> None:
        self.task_id = task_id
        self.live: set[str] = set()
        self._known: set[str] = set()
        self._tries = Tries()
        self._ended_as: dict[str, str] = {}
        self._removals = Removals()
        self.last_end: _End | None = None
        #: The random text of each sub-task, by its name.
        self.subtasks: dict[str, object] = {}
        #: By kind: many completed workers must not push out the failed ones.
        self._past: dict[str, deque[Notice]] = {kind: deque(maxlen=_MOST) for kind in (FAILED, COMPLETED, LIMIT)}
        #: The open questions that block a worker, by worker and question.
        self._open: dict[tuple[str, str], Notice] = {}
        self._questions: dict[tuple[str, str], str] = {}
        #: The key of the first notice about a question: it may be taken up again and again.
        self._first: dict[tuple[str, str], str] = {}
        #: The usage windows that were told of: account, window, reset.
        self._near: set[tuple[str, ...]] = set()
        self._steps: dict[str, Callable[[int, Event], None]] = {
            **dict.fromkeys((ev.QUEUED, ev.STARTED, ev.RETRIED), self._began),
            ev.ASKED: self._asked,
            ev.BLOCKED: self._blocked,
            **dict.fromkeys((ev.RESUMED, ev.ANSWERED, ev.EXPIRED), self._resumed),
            **dict.fromkeys(ev.END_STATUS, self._ended),
            ev.NEAR_LIMIT: self._near_limit,
            ev.SUBTASK_CREATED: self._subtask,
            ev.SUBTASK_REMOVED: self._no_subtask,
            ev.REMOVED: self._removed,
        }

    def apply(self, rows: Iterable[tuple[int, Event] | BadLine]) -> None:
        """Take in further rows of the log, in their order."""
        for row in rows:
            if isinstance(row, BadLine):
                continue
            seq, event = row
            step = self._steps.get(event["type"])
            if step is not None and not self._removals.hides(event):
                step(seq, event)

    @property
    def counts(self) -> Counter[str]:
        """How the works have ended: of one that was tried again its newest worker counts."""
        tries = self._tries
        return Counter(status for name, status in self._ended_as.items() if tries.newest(tries.work_of(name)) == name)

    def notices(self) -> list[Notice]:
        """Return what there is to be told of this task alone, in the order of the log."""
        return sorted(chain(*self._past.values(), self._open.values()), key=lambda one: _seq_of(one.key))

    def _notice(self, seq: int, kind: str, event: Event, text: str, **facts: Any) -> Notice:
        at = str(event.get("ts"))[:_LONGEST_WORD]
        key = f"{self.task_id}:{seq}"
        return Notice(key, kind, self.task_id, at, text, event.get("agentInstance"), facts)

    def _note(self, seq: int, kind: str, event: Event, text: str, **facts: Any) -> None:
        self._past[kind].append(self._notice(seq, kind, event, text, **facts))

    def _began(self, _seq: int, event: Event) -> None:
        if (name := _worker_in(event)) is None or len(self._known) >= 10 * _MOST:
            return
        before = event["payload"].get("retryOf") or event["payload"].get("continues")
        if name not in self._known and isinstance(before, str) and before in self._known:
            self._tries.add(name, before)
        self._known.add(name)
        self.live.add(name)

    def _removed(self, _seq: int, event: Event) -> None:
        if (name := _worker_in(event)) is None:
            return
        self._close_all(name)
        self.live.discard(name)
        self._known.discard(name)
        self._tries.remove(name)
        self._ended_as.pop(name, None)
        for kind, past in self._past.items():
            self._past[kind] = deque((one for one in past if one.instance != name), maxlen=_MOST)
        for key in [key for key in self._questions if key[0] == name]:
            del self._questions[key]
        for key in [key for key in self._first if key[0] == name]:
            del self._first[key]

    def _asked(self, _seq: int, event: Event) -> None:
        name, question = _question_in(event)
        if len(self._questions) < _MOST:
            is_permission = event["payload"].get("tool") is not None
            text = event["payload"].get("question")
            self._questions[name, question] = clean_question(text, _LONGEST_QUESTION, is_permission=is_permission)

    def _blocked(self, seq: int, event: Event) -> None:
        name, question = _question_in(event)
        if _worker_in(event) is None or len(self._open) >= _MOST or len(self._first) >= 10 * _MOST:
            return
        asked = self._questions.get((name, question), "")
        text = f"{name} asks: {asked}" if asked else f"{name} waits for an answer"
        notice = self._notice(seq, BLOCKED, event, text, status=Status.BLOCKED.value, question=asked)
        key = self._first.setdefault((name, question), notice.key)
        self._open[name, question] = notice._replace(key=key, question_id=_name_in(event["payload"].get("id")))

    def _resumed(self, _seq: int, event: Event) -> None:
        name, question = _question_in(event)
        if "id" in event["payload"]:
            self._open.pop((name, question), None)
        else:
            self._close_all(name)

    def _close_all(self, name: str) -> None:
        for key in [key for key in self._open if key[0] == name]:
            del self._open[key]

    def _ended(self, seq: int, event: Event) -> None:
        name = _worker_in(event)
        if name is None:
            return
        self._close_all(name)
        self.live.discard(name)
        status, payload = ev.END_STATUS[event["type"]], event["payload"]
        if len(self._ended_as) < 10 * _MOST:
            self._ended_as[name] = status.value
        self.last_end = _End(str(event.get("ts"))[:_LONGEST_WORD], self.task_id, seq)
        if status is Status.FAILED:
            reason = clean(payload.get("reason"), _LONGEST_WORD) or None
            code, signal = payload.get("exitCode"), payload.get("signal")
            code = code if isinstance(code, int) else None
            signal = clean(signal, _LONGEST_WORD) or None
            said = clean(payload.get("lastLine"), _LONGEST_LINE) or None
            why = said or clean(payload.get("message"), _LONGEST_LINE)  # Of an agent its driver has put it there.
            text = f"{name} {end_in_words(status.value, reason, code, signal)}{f': {why}' if why else ''}"
            facts = {"status": status.value, "reason": reason, "exitCode": code, "signal": signal, "lastLine": said}
            self._note(seq, FAILED, event, text, **facts)
        elif status is Status.COMPLETED:
            self._note(seq, COMPLETED, event, f"{name} completed", status=status.value)

    def _near_limit(self, seq: int, event: Event) -> None:
        name, payload = _worker_in(event), event["payload"]
        if name is None:
            return
        used, window = finite(payload.get("usedPercent")), clean(payload.get("window"), _LONGEST_WORD)
        same = tuple(str(payload.get(key))[:_LONGEST_WORD] for key in ("account", "window", "resetsAt"))
        if same in self._near or len(self._near) >= _MOST:
            return  # Another worker that uses the account has said so.
        self._near.add(same)
        text = f"{name}: {'most' if used is None else f'{used:g} %'} of the usage window {window} is used up"
        self._note(seq, LIMIT, event, text, window=window, usedPercent=used)

    def _subtask(self, _seq: int, event: Event) -> None:
        name = event["payload"].get("taskId")
        if isinstance(name, str) and is_name(name) and len(self.subtasks) < _MOST:
            self.subtasks[name] = event["payload"].get("origin")

    def _no_subtask(self, _seq: int, event: Event) -> None:
        self.subtasks.pop(str(event["payload"].get("taskId")), None)


def all_ended(tasks: Sequence[TaskNotices]) -> Notice | None:
    """Return the notice that no worker of a tree of tasks is left; None while one is, or where there never was one."""
    ends = [task.last_end for task in tasks if task.last_end is not None]
    if not ends or any(task.live for task in tasks):
        return None
    last = max(ends)
    counts: Counter[str] = sum((task.counts for task in tasks), Counter())
    total = sum(counts.values())
    if not total:  # All of them were removed.
        return None
    shown = ", ".join(f"{counts[status]} {status}" for status in ev.END_EVENT if counts[status])
    text = f"the only worker has ended: {shown}" if total == 1 else f"all {total} workers have ended: {shown}"
    key = f"{last.task_id}:{last.seq}:{ENDED}"
    return Notice(key, ENDED, tasks[0].task_id, last.at, text, None, {"counts": dict(counts)})


def of_tree(tasks: Sequence[TaskNotices]) -> list[Notice]:
    """Return all that there is to be told of a tree of tasks; its root task is the first."""
    found = [notice for task in islice(tasks, _MOST) for notice in task.notices()]
    over = all_ended(tasks)
    return found if over is None else [*found, over]


def _worker_in(event: Event) -> str | None:
    return _name_in(event.get("agentInstance"))


def _name_in(value: object) -> str | None:
    return value if isinstance(value, str) and is_name(value) else None


def _question_in(event: Event) -> tuple[str, str]:
    return str(event.get("agentInstance"))[:_LONGEST_WORD], str(event["payload"].get("id"))[:_LONGEST_WORD]


def _seq_of(key: str) -> int:
    return int(key.split(":")[1])
