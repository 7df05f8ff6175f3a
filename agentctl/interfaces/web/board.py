"""What is known of all tasks, kept up to date by one thread for all clients, and encoded once for all of them.

It owns nothing: everything comes from the files, and a new one after a restart says the same.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Generic, TypeVar

from agentctl.adapters.taskdir import Root
from agentctl.domain.names import WorkerId
from agentctl.domain.question import AnswerOption, Question, in_one_line, offered, question_within, takes_text
from agentctl.domain.states import TERMINAL, task_status
from agentctl.domain.text.plaintext import whole
from agentctl.domain.worker.need import Need
from agentctl.domain.worker_row import BLANK
from agentctl.errors import AtTerminal, Refused
from agentctl.interfaces.web.json_bytes import json_bytes
from agentctl.interfaces.words.activity import words_at_beginning
from agentctl.lean import TYPE_CHECKING, NamedTuple
from agentctl.operations.fleet.event_stream import EventStream, MovingCursor, Positions, StreamedEvent
from agentctl.operations.fleet.glance import Doing, FleetTask, FleetWorker, Glance
from agentctl.operations.fleet.reader import Reader

if TYPE_CHECKING:
    from agentctl.domain.documents.server_answers import FleetTaskRow

#: Changes that come faster are told together.
_PAUSE_S = 0.02
#: What is kept for clients that are a little behind: a client that is further behind reads the files.
_MOST_EVENTS, _MOST_PATCHES = 4096, 256
_MOST_BYTES = 8 << 20
#: So many tasks and workers that are gone are remembered, for clients that still know them.
_MOST_GONE = 4096
_RESTART_S = 1.0
#: So long the end of the server waits for a look to end.
_CLOSE_S = 0.2
#: Of so many live workers it is read what they do, and so much of the end of an output is told.
_MOST_FOLLOWED, _LONGEST_WORDS = 100, 400
#: What stands in a patch for what is gone.
_NOTHING = b"null"
#: No version has as many digits: what is not one need not become a number.
_LONGEST_NUMBER = 18
#: The longest text, and call, of which a page draws all, in characters (`question_card.js`).
_LONGEST_CALL = 24_000


T = TypeVar("T")


class EncodedEvent(NamedTuple):
    """An event as it is sent, with the cursor of a reader who has had it."""

    task_id: str
    data: bytes


class Board:
    """The tasks of a root. Made and used in the loop; one thread reads."""

    def __init__(self, root: Root) -> None:
        self.root = root
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._events = EventStream(root)
        self._positions: Positions = self._events.positions
        #: Of a reader who is there.
        self._cursor = MovingCursor(self._positions)
        self.history: RecentItems[EncodedEvent] = RecentItems(_MOST_EVENTS)
        self.patches: RecentItems[bytes] = RecentItems(_MOST_PATCHES)
        #: Names this board: versions of different ones cannot be compared.
        self.epoch = os.urandom(6).hex()
        self._fleet = _EncodedFleet(0, {}, {}, _Departed(), Glance({}, {}, {}, is_partial=True))
        self._changed = asyncio.Event()
        self._first = asyncio.Event()
        self._asked: list[asyncio.Future[Glance]] = []
        self._begun: list[asyncio.Future[Glance]] = []
        self._is_over = False
        #: Nobody reads at the moment.
        self._is_down = False
        #: All events up to the positions have gone into the history.
        self._has_all = True
        #: Why reading fails at the moment.
        self.problem: str | None = None
        self._reader = self._new_reader()
        self._reader.start()

    def _new_reader(self) -> Reader:
        return Reader(self.root, self._take, self._failed, self._beside, before=self._before, pause_s=_PAUSE_S)

    def close(self) -> None:
        """Stop reading. A look that takes long ends by itself, with the process at the latest."""
        self._is_over = True
        self._reader.close(_CLOSE_S)

    # -- in the thread that reads ----------------------------------------------------------------------------------

    def _before(self) -> None:
        with self._lock:
            self._begun, self._asked = self._asked + self._begun, []

    def _take(self, glance: Glance) -> None:
        self._reader.want(_live(glance))
        fleet, patch = self._fleet.after(glance)
        message = b"" if patch is None else _fleet_message(self.epoch, fleet, patch, is_whole=False)
        with self._lock:
            self._fleet = fleet
            if message:
                self.patches.add(message, len(message))

    def _beside(self, glance: Glance) -> None:
        if self._begun and glance is not self._fleet.glance:
            self._take(glance)  # Whoever waits is told of it, and asks for what is in it.
        self._follow()
        with self._lock:
            begun, self._begun = self._begun, []
        self.problem = None
        self._call(self._announce, begun, glance)

    def _follow(self) -> None:
        """Bring the history up to date.

        It begins anew where events may be missing in it: if there were too many, or if this has failed in between.
        Clients find them in the files.
        """
        had_all, self._has_all = self._has_all, False
        if had_all:
            rows = self._events.update()
        else:
            rows = None
            self._events.pass_over()
        positions = self._events.positions
        encoded = None if rows is None else list(_with_cursors(rows, self._cursor))
        if encoded is None or positions.keys() != self._positions.keys():
            self._cursor = MovingCursor(positions)
        with self._lock:
            if encoded is None:
                self.history.forget()
            for one in encoded or ():
                self.history.add(one, len(one.data))
            self._positions = positions  # Together with the history: a reader begins behind both.
        self._has_all = True

    def _failed(self, error: BaseException) -> None:
        """Note why reading ended, and begin anew: what was wrong with the files may pass."""
        self.problem = f"{type(error).__name__}: {error}"
        with self._lock:
            self._is_down = True
            waiting, self._begun, self._asked = [*self._begun, *self._asked], [], []
        self._call(self._give_up, waiting, self.problem)
        self._call(self._loop.call_later, _RESTART_S, self._restart)

    def _call(self, function: Any, *arguments: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(function, *arguments)
        except RuntimeError:
            pass  # The loop is closed: the server ends.

    # -- in the loop -----------------------------------------------------------------------------------------------

    def _restart(self) -> None:
        """Begin to read again; where there is no pipe or no thread to be had, later."""
        if self._is_over:
            return
        try:
            self._reader.close(_CLOSE_S)
            self._reader = self._new_reader()
            with self._lock:
                self._is_down = False
            self._reader.start()
        except (OSError, RuntimeError, MemoryError) as error:
            self._failed(error)

    @staticmethod
    def _give_up(waiting: list[asyncio.Future[Glance]], problem: str) -> None:
        for one in waiting:
            if not one.done():
                one.set_exception(_unreadable(problem))

    def _announce(self, begun: list[asyncio.Future[Glance]], glance: Glance) -> None:
        for one in begun:
            if not one.done():
                one.set_result(glance)
        self._first.set()
        self._changed.set()
        self._changed = asyncio.Event()

    def change(self) -> asyncio.Event:
        """Return an event that is set after the next look: take it before looking at what there is."""
        return self._changed

    async def fresh(self) -> Glance:
        """Return what there is now: everything that happened before this call is in it.

        Raises:
            Refused: The tasks cannot be read.
        """
        asked: asyncio.Future[Glance] = self._loop.create_future()
        with self._lock:
            if self._is_down:
                raise _unreadable(self.problem or "")
            self._asked.append(asked)
        self._reader.wake()
        return await asked

    async def caught_up(self) -> None:
        """Return once everything that happened before this call is known; if reading fails, what was known before."""
        with contextlib.suppress(Refused):
            await self.fresh()
        await self._first.wait()

    def task(self, task_id: str) -> bytes | None:
        """Return a task with its workers, as JSON, a `TaskSnapshot`; None if there is none."""
        fleet = self._fleet
        task = fleet.task(task_id)
        if task is None:
            return None
        return b'%s,"workers":[%s]}' % (task[:-1], b",".join(fleet.rows_of(task_id)))

    def events_since(self, place: int) -> tuple[list[EncodedEvent] | None, int, Positions]:
        """Return the events from a place on; the place behind them; and where a reader is who has had them.

        The events are None if some of them are not kept any more.
        """
        with self._lock:
            return self.history.since(place), self.history.end, self._positions

    def patches_since(self, place: int) -> tuple[list[bytes] | None, int]:
        """Return the same of the patches."""
        with self._lock:
            return self.patches.since(place), self.patches.end

    def fleet_since(self, version: str | None) -> tuple[int, bytes]:
        """Return what leads a client from the version that it has to the present one, and the place behind that.

        That is everything, if the version is another board's, or too old for what is remembered.
        """
        with self._lock:
            place, fleet = self.patches.end, self._fleet
        epoch, _, number = (version or "").partition("-")
        known = epoch == self.epoch and number.isdecimal() and len(number) < _LONGEST_NUMBER
        patch = fleet.patch_since(int(number)) if known else None
        whole_patch = fleet.patch_since(0) or b"" if patch is None else patch
        return place, _fleet_message(self.epoch, fleet, whole_patch, is_whole=patch is None)

    def version_at(self, place: int) -> str:
        """Return the version that a client has which has had all patches up to a place: each patch makes a version."""
        return f"{self.epoch}-{place}"

    def place(self) -> tuple[int, Positions]:
        """Return the place behind the last event in the history, and where a reader is who has had it."""
        with self._lock:
            return self.history.end, self._positions

    def positions_at(self, cursor: str, now: Positions) -> Positions | None:
        """Return where a reader with this cursor is; None if that cannot be told.

        Args:
            now: Where a reader is who has had everything.
        """
        return self._events.positions_at(cursor, now)

    def read_again(self, old: Positions, new: Positions, only: frozenset[str] | None) -> Iterator[EncodedEvent]:
        """Return the events between two positions, to be read from the files."""
        return _with_cursors(self._events.between(old, new, only), MovingCursor(old))


class RecentItems(Generic[T]):
    """The last of many things, each with a number; at most so many, of bounded size together."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: deque[tuple[T, int]] = deque()
        self._bytes = 0
        self.end = 0

    def add(self, one: T, size: int) -> None:
        """Add the next one."""
        self._kept.append((one, size))
        self._bytes += size
        self.end += 1
        while len(self._kept) > self._most or (self._bytes > _MOST_BYTES and len(self._kept) > 1):
            self._bytes -= self._kept.popleft()[1]

    def forget(self) -> None:
        """Keep none of them, and let nobody go on from a place before."""
        self._kept.clear()
        self._bytes = 0
        self.end += 1

    def since(self, place: int) -> list[T] | None:
        """Return those from a place on; None if some of them are not kept any more."""
        if place < self.end - len(self._kept):
            return None
        # From the end: mostly they are few.
        return [one for one, _ in islice(reversed(self._kept), self.end - place)][::-1]


def _with_cursors(rows: Iterable[StreamedEvent], at: MovingCursor) -> Iterator[EncodedEvent]:
    """Yield events as they are sent; `at` moves on behind each."""
    for row in rows:
        at.move(row.key, row.seq)
        data = b"id: %s\nevent: event\ndata: %s\n\n" % (at.text().encode(), json_bytes(row.to_json()))
        yield EncodedEvent(row.key.task_id, data)


def _unreadable(problem: str) -> Refused:
    return Refused(f"the tasks cannot be read: {problem}", hint=AtTerminal("agentctl doctor says more"))


# -- the fleet as JSON -------------------------------------------------------------------------------------------------


class _Departed(NamedTuple):
    """Which tasks and workers are gone, each with the version that first lacked it: the last ones, in their order."""

    tasks: tuple[tuple[int, str], ...] = ()
    workers: tuple[tuple[int, str], ...] = ()
    #: None that went after this version was forgotten.
    complete_from: int = 0

    def after(self, version: int, tasks: Iterable[str], workers: Iterable[str]) -> _Departed:
        """Return what is gone once these are."""
        all_tasks = (*self.tasks, *((version, one) for one in tasks))
        all_workers = (*self.workers, *((version, one) for one in workers))
        forgotten = (*all_tasks[:-_MOST_GONE], *all_workers[:-_MOST_GONE])
        complete_from = max([self.complete_from, *(one for one, _ in forgotten)])
        return _Departed(all_tasks[-_MOST_GONE:], all_workers[-_MOST_GONE:], complete_from)


class _EncodedFleet(NamedTuple):
    """A glance as JSON. It never changes, so any thread may read it; the next one is made from it.

    Each value has the version that first had it, so a client of any version can be told what has changed since.
    """

    version: int
    tasks: Mapping[str, _EncodedTask]
    workers: Mapping[WorkerId, _EncodedWorker]
    gone: _Departed
    glance: Glance

    def after(self, glance: Glance) -> tuple[_EncodedFleet, bytes | None]:
        """Return the next one, and the patch that leads to it, None if nothing has changed.

        Only what has changed is encoded again.
        """
        workers = {key: self._worker(key, one, glance.doings.get(key)) for key, one in glance.workers.items()}
        tasks = {name: self._task(one) for name, one in glance.tasks.items()}
        changed = {str(key): one.shown for key, one in workers.items() if one.version > self.version}
        other = {name: one.shown for name, one in tasks.items() if one.version > self.version}
        gone_workers = [str(key) for key in self.workers.keys() - workers.keys()]
        gone_tasks = self.tasks.keys() - tasks.keys()
        is_gone = bool(gone_workers or gone_tasks)
        if not changed and not other and not is_gone and glance.is_partial == self.glance.is_partial:
            return _EncodedFleet(self.version, tasks, workers, self.gone, glance), None
        gone = self.gone.after(self.version + 1, gone_tasks, gone_workers) if is_gone else self.gone
        patch = _patch(other | dict.fromkeys(gone_tasks, _NOTHING), changed | dict.fromkeys(gone_workers, _NOTHING))
        return _EncodedFleet(self.version + 1, tasks, workers, gone, glance), patch

    def _worker(self, key: WorkerId, worker: FleetWorker, doing: Doing | None) -> _EncodedWorker:
        known = self.workers.get(key)
        if known is not None and known.doing is doing and (known.worker is worker or known.worker == worker):
            return known
        encoded = _encoded_worker(worker, doing, self.version + 1)
        if known is not None and known.shown == encoded.shown:
            return encoded._replace(version=known.version)
        return encoded

    def _task(self, task: FleetTask) -> _EncodedTask:
        known = self.tasks.get(task.task.id)
        if known is not None and known.task == task:
            return known
        shown = _task(task)
        return _EncodedTask(task, shown, self.version + 1 if known is None or known.shown != shown else known.version)

    def patch_since(self, version: int) -> bytes | None:
        """Return the patch that leads to it from a version before, from nothing if that is 0; None if it is not known.

        What went and came back is in it as it is now.
        """
        if version > self.version or 0 < version < self.gone.complete_from:
            return None
        tasks = {name: _NOTHING for at, name in self.gone.tasks if at > version > 0}
        workers = {name: _NOTHING for at, name in self.gone.workers if at > version > 0}
        tasks |= {name: one.shown for name, one in self.tasks.items() if one.version > version}
        workers |= {str(key): one.shown for key, one in self.workers.items() if one.version > version}
        return _patch(tasks, workers)

    def rows_of(self, task_id: str) -> list[bytes]:
        """Return the rows of a task's workers."""
        return [one.row for key, one in self.workers.items() if key.task_id == task_id]

    def task(self, task_id: str) -> bytes | None:
        """Return a task; None if there is none."""
        known = self.tasks.get(task_id)
        return None if known is None else known.shown


class _EncodedTask(NamedTuple):
    """A task, and what clients of the stream know of it since a version."""

    task: FleetTask
    shown: bytes
    version: int


class _EncodedWorker(NamedTuple):
    """A worker, its row as `list` has it, and what clients of the stream know of it since a version."""

    worker: FleetWorker
    doing: Doing | None
    row: bytes
    shown: bytes
    version: int


def _live(glance: Glance) -> Mapping[WorkerId, bool]:
    """Return the workers of which it is read what they do: those that live; of too many, the last ones."""
    live = [key for key, one in glance.workers.items() if one.row["status"] not in TERMINAL]
    return dict.fromkeys(live[-_MOST_FOLLOWED:], False)


def _encoded_worker(worker: FleetWorker, doing: Doing | None, version: int) -> _EncodedWorker:
    row = dict(worker.row)
    known = {key: value for key, value in row.items() if key not in BLANK or value != BLANK[key]}  # type: ignore[literal-required]
    more = {
        "taskId": worker.task.id,
        "status": worker.row["status"],
        "need": _NEEDS[worker.need],
        "needSince": worker.since,
        "questions": [page_question(one) for one in worker.questions],
        "idle": None if worker.idle is None else worker.idle.to_json(),
        "changedFiles": worker.changed_files,
        "calls": doing.nodes[0].calls if doing is not None and doing.nodes else 0,
        "lastWords": _last_words(worker, doing),
    }
    shown = json_bytes({**known, **{key: value for key, value in more.items() if value}})
    return _EncodedWorker(worker, doing, json_bytes(row), shown, version)


def _last_words(worker: FleetWorker, doing: Doing | None) -> str:
    """Return what an agent says, in words, since a row draws no Markdown; of a command the end of its output."""
    if doing is None:
        return ""
    if worker.row["driver"] is None:
        return whole(doing.last_words[-_LONGEST_WORDS:])
    return whole(words_at_beginning(doing.last_words))


def page_question(question: Question) -> dict[str, Any]:
    """Return a question as a page draws it: with the answers that may be given where all that it shows was seen."""
    seen = question_within(question, _LONGEST_CALL)
    return {
        **question.to_json(),
        "offered": [_offer(question, one) for one in offered(question, seen)],
        "takesText": takes_text(question, seen),
        "isWhole": seen.is_whole,
        "isPermission": question.is_permission,
        "line": in_one_line(question).text,
    }


def _offer(question: Question, option: AnswerOption) -> dict[str, Any]:
    means = question.meaning(option.id) if question.is_permission else None
    return {"id": option.id, "label": option.label or option.id, "means": means}


_NEEDS = {need: need.name.lower() for need in Need}


def _task(task: FleetTask) -> bytes:
    totals = task.totals
    row: FleetTaskRow = {
        "taskId": task.task.id, "title": whole(task.title), "state": task.state,
        "status": task_status(task.state), "own": task.is_own,
        "held": None if task.hold is None else task.hold.to_json(),
        "parent": task.parent, "parentInstance": task.parent_instance,
        "totals": {
            "workers": totals.workers, "live": totals.live, "asking": totals.asking,
            "failed": totals.failed,
            "tokens": totals.tokens, "lacksTokens": totals.lacks_tokens, "lacksCost": totals.lacks_cost,
            "costUsd": totals.cost_usd, "began": totals.began, "ended": totals.ended,
        },
    }  # fmt: skip
    return json_bytes(row)


def _patch(tasks: Mapping[str, bytes], workers: Mapping[str, bytes]) -> bytes:
    return b'"tasks":{%s},"workers":{%s}' % (_members(tasks), _members(workers))


def _members(values: Mapping[str, bytes]) -> bytes:
    return b",".join(b"%s:%s" % (json_bytes(key), value) for key, value in values.items())


def _fleet_message(epoch: str, fleet: _EncodedFleet, patch: bytes, *, is_whole: bool) -> bytes:
    head = json_bytes({"version": f"{epoch}-{fleet.version}", "whole": is_whole, "isPartial": fleet.glance.is_partial})
    return b"event: fleet\ndata: %s,%s}\n\n" % (head[:-1], patch)
