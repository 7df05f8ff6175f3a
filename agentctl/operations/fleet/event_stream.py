"""All events of a root's tasks as one stream, each event once; a cursor says how far a reader has come.

A cursor comes from the files alone: it is true after a restart, and for any other process that reads them.
"""

from __future__ import annotations

import base64
import binascii
import heapq
import os
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import Any

from agentctl.adapters.clock import now_iso
from agentctl.adapters.eventlog import blocks, blocks_of
from agentctl.adapters.opening import open_plain
from agentctl.adapters.taskdir import Root, TaskDir
from agentctl.domain.events import BadLine, decode
from agentctl.domain.text.nesting import may_be_too_deep, shallow
from agentctl.errors import AgentctlError
from agentctl.lean import NamedTuple
from agentctl.operations.fleet.listing_times import ListingTimes, is_being_made

#: So many tasks are named in a cursor, those that changed last; of the others a cursor has one checksum.
MOST_NAMED = 256
_VERSION = 1
_NAME_BYTES, _SUM_BYTES, _TIME_BYTES = 6, 8, 24
_TOO_LONG = "longer than any event"
_HEAD = 4096
#: So many bytes that were appended between two calls are held in memory; more of them are passed over.
_MOST_AT_ONCE = 1 << 20


class TaskKey(NamedTuple):
    """A task among all that have ever had its id."""

    task_id: str
    #: A hash of how its log begins, which never changes.
    log: str

    def digest(self, size: int, more: bytes = b"") -> bytes:
        """Return a hash of it."""
        return blake2b(f"{self.task_id}\n{self.log}\n".encode() + more, digest_size=size).digest()


#: How many events of each task a reader has had; the tasks that changed last come last.
Positions = Mapping[TaskKey, int]


class StreamedEvent(NamedTuple):
    """An event, or a line that does not hold one, with its number in the log of its task."""

    key: TaskKey
    seq: int
    #: As the log has it; of a line that does not hold an event {problem}.
    event: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Return what a client gets: the event with its task and its seq."""
        return {**self.event, "taskId": self.key.task_id, "seq": self.seq}


class EventStream:
    """The events of a root. `update` is called by one thread; all else by any."""

    def __init__(self, root: Root) -> None:
        self._root = root
        self._tails: dict[str, _Tail] = {}
        self._listing = ListingTimes(root)
        self._list()
        self.positions: Positions = {}
        self.pass_over()
        self.positions = {tail.key: tail.seq for tail in sorted(self._tails.values(), key=_changed_at)}

    def update(self) -> list[StreamedEvent] | None:
        """Return the events that were appended since the last call, and move on behind them.

        Returns:
            None if they are too many to be held: `between` reads them.
        """
        self._list()
        grown = [(tail, size) for tail in self._tails.values() if (size := tail.unread_bytes()) > 0]
        if sum(size for _, size in grown) > _MOST_AT_ONCE:
            before = self.positions
            self.pass_over()
            return None if self.positions != before else []  # A line that is not whole yet may be as long.
        found = [row for tail, _ in grown for row in tail.read_new()]
        if grown or len(self.positions) != len(self._tails):
            self._note()
        return found

    def pass_over(self) -> None:
        """Move on behind all events that there are."""
        for tail in self._tails.values():
            tail.skip()
        self._note()

    def _note(self) -> None:
        """Make the positions those that were reached; the tasks that have moved on come last."""
        live = {tail.key: tail.seq for tail in self._tails.values()}
        last = {key: seq for key, seq in live.items() if seq > self.positions.get(key, 0)}
        kept = {key: seq for key, seq in self.positions.items() if key in live and key not in last}
        new = {key: 0 for key in live if key not in kept and key not in last}
        self.positions = {**new, **kept, **last}

    def _list(self) -> None:
        """Find the tasks that were made or removed."""
        if not self._listing.is_due():
            return
        found: dict[str, _Tail] = {}
        for name in self._listing.task_ids():
            tail = self._tails.get(name)
            try:
                if tail is not None and tail.is_replaced():
                    tail = None
                if tail is None:
                    tail = self._tail_of(self._root.task(name))
            except OSError:  # It cannot be told which log is there: it is looked at again.
                self._listing.expire()
            if tail is not None:
                found[name] = tail
        self._tails = found  # In one step: others read it.

    def _tail_of(self, task: TaskDir) -> _Tail | None:
        """Return the tail of a log; None where it is missing: it is looked for again if it may still be made."""
        # Before the look: of a log that appears just after it, nothing else would tell.
        is_unfinished = is_being_made(task)
        head = _head_of(task)
        if not head and is_unfinished:
            self._listing.expire()
        return _Tail(task, head) if head else None

    def start(self) -> Positions:
        """Return where a reader is who has had nothing."""
        return dict.fromkeys(self.positions, 0)

    def positions_at(self, cursor: str, now: Positions | None = None) -> Positions | None:
        """Return where a reader with this cursor is; None if that cannot be told any more.

        Args:
            now: Where a reader is who has had everything; None is where this stream is.
        """
        said = _decoded(cursor)
        now = self.positions if now is None else now
        if said is None:
            return None
        named = {key: said.named[name] for key in now if (name := key.digest(_NAME_BYTES)) in said.named}
        rest = [key for key in now if key not in named]
        if not said.checksum:  # It names every task there was: the others are new.
            return {**dict.fromkeys(rest, 0), **named}
        for known in (rest, [key for key in rest if self._began(key) < said.at]):
            if _checksum({key: now[key] for key in known}) == said.checksum:
                return {**dict.fromkeys(rest, 0), **{key: now[key] for key in known}, **named}
        return None

    def _began(self, key: TaskKey) -> str:
        tail = self._tails.get(key.task_id)
        return "" if tail is None else tail.began

    def between(self, old: Positions, new: Positions, only: Collection[str] | None = None) -> Iterator[StreamedEvent]:
        """Yield the events between two positions, read from the files: each task in its order, all by time.

        Args:
            only: The ids of the tasks that matter; None is all.
        """
        wanted = [key for key, seq in new.items() if seq > old.get(key, 0) and (only is None or key.task_id in only)]
        return _by_time(
            (self._began(key), _events_of(self._root.task(key.task_id), key, old.get(key, 0), new[key]))
            for key in wanted
        )


class _Tail:
    """The log of one task, and how far it was read."""

    def __init__(self, task: TaskDir, head: bytes) -> None:
        self._path, self._task, self._head = task.events, task, head
        self._folder = _identity(task)
        self.key = TaskKey(task.id, blake2b(head, digest_size=16).hexdigest())
        self._offset = self.seq = 0
        first = _rows(self.key, head if head.endswith(b"\n") else b"", 1)
        #: When its first event happened.
        self.began = _time_of(first[0])
        self.changed = 0

    def is_replaced(self) -> bool:
        """Return whether another task lies in its place now; its folder may have the number of the old one."""
        folder = _identity(self._task)
        if folder == self._folder:
            return False
        head = _head_of(self._task)
        self._folder = folder
        return head != self._head

    def unread_bytes(self) -> int:
        """Return how much was appended since it was read."""
        try:
            return os.stat(self._path).st_size - self._offset
        except OSError:
            return 0

    def skip(self) -> None:
        """Pass over what is there."""
        for behind, lines in self._blocks():
            self._move(behind, lines.count(b"\n") if lines else 1)

    def read_new(self) -> list[StreamedEvent]:
        """Return what was appended since the last call."""
        found: list[StreamedEvent] = []
        for behind, lines in self._blocks():
            rows = _rows(self.key, lines, self.seq + 1)
            found += rows
            self._move(behind, len(rows))
        return found

    def _move(self, offset: int, count: int) -> None:
        """Note that so many more lines were read: only then, so that whatever fails leaves a seq that is true."""
        self._offset, self.seq = offset, self.seq + count

    def _blocks(self) -> Iterator[tuple[int, bytes]]:
        """Yield what was not read yet, as far as it can be read: what is behind an error is tried again."""
        try:
            if self.unread_bytes() <= 0:
                return
            self.changed = os.stat(self._path).st_mtime_ns
            yield from blocks_of(self._path, self._offset)
        except (OSError, AgentctlError):  # It has no log any more, or none that can be read: `doctor` tells.
            return


def _changed_at(tail: _Tail) -> int:
    return tail.changed


def _identity(task: TaskDir) -> object:
    """Return which folder is there, and when something in it was made or removed."""
    try:
        found = os.stat(task.path)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_ctime_ns


def _head_of(task: TaskDir) -> bytes:
    """Return the first line of a task's log, or enough of it to tell it from any other; empty if there is none yet."""
    fd = _open_log(task)
    if fd is None:
        return b""
    try:
        data = os.pread(fd, _HEAD, 0)
    finally:
        os.close(fd)
    end = data.find(b"\n") + 1
    return data[:end] if end else data if len(data) == _HEAD else b""


def _open_log(task: TaskDir) -> int | None:
    """Open a task's log; None if there is none, or none that one may read.

    Raises:
        OSError: It cannot be opened at the moment: a reader must not count as having had what is in it.
    """
    try:
        return open_plain(task.events)
    except (FileNotFoundError, NotADirectoryError, PermissionError, AgentctlError):
        return None


def _rows(key: TaskKey, lines: bytes, first: int) -> list[StreamedEvent]:
    decoded = decode(lines, first) if lines else [BadLine(first, _TOO_LONG)]
    may_be_deep = may_be_too_deep(lines)
    return [
        StreamedEvent(key, row.seq, {"problem": row.problem})
        if isinstance(row, BadLine)
        else StreamedEvent(key, row[0], shallow(row[1]) if may_be_deep else row[1])
        for row in decoded
    ]


def _events_of(task: TaskDir, key: TaskKey, behind: int, until: int) -> Iterator[StreamedEvent]:
    """Yield the events of a task behind one number, up to another. The file is open only while a piece is read.

    Raises:
        OSError: It cannot be read.
    """
    offset = seq = 0
    while seq < until:
        fd = _open_log(task)
        if fd is None:
            return
        try:
            piece = next(blocks(fd, offset), None)
        finally:
            os.close(fd)
        if piece is None:
            return
        offset, lines = piece
        count = lines.count(b"\n") if lines else 1
        if seq + count > behind:
            yield from (row for row in _one_by_one(key, lines, seq + 1) if behind < row.seq <= until)
        seq += count


def _one_by_one(key: TaskKey, lines: bytes, first: int) -> Iterator[StreamedEvent]:
    """Yield the events of a piece of a log, each decoded only when it is its turn: decoded they are large."""
    start, seq = 0, first
    while start < len(lines) or seq == first:
        end = lines.find(b"\n", start) + 1
        yield from _rows(key, lines[start:end], seq)
        start, seq = end, seq + 1


def _by_time(parts: Iterable[tuple[str, Iterator[StreamedEvent]]]) -> Iterator[StreamedEvent]:
    """Yield the events of several tasks by time, each task in its order.

    Of each task one piece is in memory, and of a task that has not begun yet nothing.

    Args:
        parts: When each task began, and its events.
    """
    waiting = deque(sorted(((began, number, part) for number, (began, part) in enumerate(parts)), key=_turn))
    heap: list[tuple[str, int, StreamedEvent, Iterator[StreamedEvent]]] = []

    def draw(number: int, part: Iterator[StreamedEvent]) -> None:
        row = next(part, None)
        if row is not None:
            heapq.heappush(heap, (_time_of(row), number, row, part))

    while heap or waiting:
        while waiting and (not heap or waiting[0][0] <= heap[0][0]):
            draw(*waiting.popleft()[1:])
        if heap:
            _, number, row, part = heapq.heappop(heap)
            yield row
            draw(number, part)


def _turn(one: tuple[str, int, Iterator[StreamedEvent]]) -> tuple[str, int]:
    return one[:2]


def _time_of(row: StreamedEvent) -> str:
    at = row.event.get("ts")
    return at if isinstance(at, str) else ""


# -- cursors -----------------------------------------------------------------------------------------------------------


class _CursorContent(NamedTuple):
    """What a cursor says."""

    named: Mapping[bytes, int]
    #: Of the tasks that it does not name; 0 if it names all.
    checksum: int
    #: When it was made.
    at: str


def cursor_of(positions: Positions) -> str:
    """Return the cursor of a reader who is there: a short text for URLs and headers."""
    return MovingCursor(positions).text()


class MovingCursor:
    """The cursor of a reader who moves on, event by event: however many tasks there are, a step costs the same."""

    def __init__(self, positions: Positions) -> None:
        keys = list(positions)
        self._rest = {key: positions[key] for key in keys[:-MOST_NAMED]}
        self._checksum = _checksum(self._rest)
        #: Their seqs, and how the cursor has them.
        self._named = {key: (positions[key], _entry(key, positions[key])) for key in keys[-MOST_NAMED:]}

    def move(self, key: TaskKey, seq: int) -> None:
        """Note that the reader has had an event: its task is the one that changed last."""
        if self._named.pop(key, None) is None and key in self._rest:
            self._checksum ^= _hash(key, self._rest.pop(key))
        self._named[key] = (seq, _entry(key, seq))
        if len(self._named) > MOST_NAMED:
            oldest = next(iter(self._named))
            self._rest[oldest] = self._named.pop(oldest)[0]
            self._checksum ^= _hash(oldest, self._rest[oldest])

    def text(self) -> str:
        """Return it as it is now."""
        head = bytes([_VERSION]) + self._checksum.to_bytes(_SUM_BYTES) + now_iso().encode().ljust(_TIME_BYTES)
        entries = b"".join([entry for _, entry in self._named.values()])
        return base64.urlsafe_b64encode(head + entries).rstrip(b"=").decode()


def _entry(key: TaskKey, seq: int) -> bytes:
    return key.digest(_NAME_BYTES) + _varint(seq)


def _checksum(positions: Positions) -> int:
    """Return a number that any other positions hardly have, whatever their order; 0 for none."""
    total = 0
    for key, seq in positions.items():
        total ^= _hash(key, seq)
    return total


def _hash(key: TaskKey, seq: int) -> int:
    return int.from_bytes(key.digest(_SUM_BYTES, str(seq).encode()))


def _varint(number: int) -> bytes:
    size = max(1, (number.bit_length() + 7) // 8)
    return bytes([size]) + number.to_bytes(size)


def _decoded(cursor: str) -> _CursorContent | None:
    """Return what a cursor says; None if it is not one."""
    try:
        data = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
    except (ValueError, binascii.Error):
        return None
    head = 1 + _SUM_BYTES + _TIME_BYTES
    if len(data) < head or data[0] != _VERSION:
        return None
    named: dict[bytes, int] = {}
    at = head
    while at < len(data):
        name, size = data[at : at + _NAME_BYTES], data[at + _NAME_BYTES : at + _NAME_BYTES + 1]
        number = data[at + _NAME_BYTES + 1 : at + _NAME_BYTES + 1 + (size[0] if size else 0)]
        if not size or not 0 < size[0] <= _SUM_BYTES or len(number) != size[0]:
            return None
        named[name] = int.from_bytes(number)
        at += _NAME_BYTES + 1 + size[0]
    when = data[1 + _SUM_BYTES : head].decode("ascii", "replace").strip()
    return _CursorContent(named, int.from_bytes(data[1 : 1 + _SUM_BYTES]), when)
