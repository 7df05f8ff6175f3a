"""Follows one worker: its state, its output, its questions, and its end."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Generator, Iterator

from agentctl.adapters.clock import monotonic
from agentctl.adapters.taskdir import Root, TaskDir
from agentctl.adapters.wake_pipe import WakePipe
from agentctl.domain.names import WorkerId
from agentctl.domain.states import TERMINAL, Status
from agentctl.domain.worker.last_output import LOOKED_AT, last_line_in
from agentctl.errors import ExitCode, NotFound
from agentctl.interfaces.commands.model.command_model import Raw, Showing, Shown
from agentctl.interfaces.commands.model.invocation import Invocation
from agentctl.interfaces.commands.parts.told_ends import end_of_row, ended_line
from agentctl.interfaces.commands.parts.wait_notes import AskedHere
from agentctl.interfaces.commands.show.logs import drawn_transcript, followed_output
from agentctl.interfaces.commands.watch.sentences import Fact, SaidFacts, asks_key
from agentctl.interfaces.words.activity import paragraph
from agentctl.lean import TYPE_CHECKING, NamedTuple
from agentctl.operations.fleet.fleet import Fleet
from agentctl.operations.fleet.glance import FleetWorker
from agentctl.operations.fleet.seen import SeenEnds
from agentctl.operations.show.activity import follow_transcript, has_transcript
from agentctl.operations.show.askers import PendingQuestion
from agentctl.operations.show.logs import follow_logs
from agentctl.operations.wait.rounds import WakeReasons
from agentctl.operations.where.locating import find_worker

if TYPE_CHECKING:
    from typing import TypeAlias

    from agentctl.domain.activity.transcript import TranscriptEntry
    from agentctl.domain.documents.views import LogPiece
    from agentctl.domain.documents.workers.worker import WorkerRow

    #: A paragraph for a pipe, what an agent has said or done, or what a command has printed.
    _Piece: TypeAlias = "str | TranscriptEntry | _Bytes"


def follow_worker(call: Invocation, instance: str) -> Showing:
    """Yield what a worker does until it has ended; return the exit code that `wait` has for that end.

    Raises:
        NotFound: It was removed.
    """
    task = call.task_to_show()
    find_worker(task, instance)
    text = _Text(is_seen=call.draws)
    with Fleet(task.root, SeenEnds(task.root), only=task.id) as fleet:
        try:
            row = yield from _follow(call, task, instance, fleet, text)
        except (KeyboardInterrupt, NotFound):
            yield text.end()  # What was held back is not lost.
            raise
    return ExitCode.DONE if row["status"] == Status.COMPLETED else ExitCode.UNSUCCESSFUL


def _follow(
    call: Invocation, task: TaskDir, instance: str, fleet: Fleet, text: _Text
) -> Generator[Raw | Shown[LogPiece], None, WorkerRow]:
    said = SaidFacts()
    questions = _PutQuestions(call, task.root, text)
    output: _OutputThread | None = None
    while True:
        glance = fleet.look()
        worker = glance.workers.get(WorkerId(task.id, instance))
        if worker is not None:
            is_over = worker.row["status"] in TERMINAL
            for fact in questions.without(said.new(worker)):
                if not is_over:  # Its end is said once, behind what it wrote.
                    yield text.line(fact.text)
            output = output or _OutputThread(task, instance, is_seen=call.draws)
            if is_over:
                questions.close()
                yield from map(text.piece, output.rest())
                yield text.end()
                is_said = text.ends_with(worker.row["lastLine"])
                yield text.line(ended_line(end_of_row({**worker.row, "lastLine": None} if is_said else worker.row)))
                return worker.row
            for piece in () if questions.is_asking else output.pieces():
                questions.came()
                yield text.piece(piece)
            yield text.quiet()
            yield from map(text.line, questions.put(worker))
        elif not glance.is_partial:
            find_worker(task, instance)  # It is gone, with its task, unless its first event is yet to come.
        wakes = questions.wakes()
        within_s = min((one for one in (wakes.within_s, text.within_s) if one is not None), default=None)
        fleet.sleep(within_s, [*wakes.fds, *(() if output is None or questions.is_asking else output.awaited())])


#: What was put out before a question is shown before it: so long it has to be quiet, and so long that is waited for.
_QUIET_S, _AT_MOST_S = 0.2, 2.0


class _PutQuestions:
    """Puts the questions of a worker to whoever follows it at this terminal. Its output waits while one is there."""

    def __init__(self, call: Invocation, root: Root, text: _Text) -> None:
        self._is_seen = call.is_terminal("stdin") and call.draws
        self._asked = AskedHere(call, root, self._take_others, lambda: text.make_room(call.note))
        #: What is said of those that have to be answered elsewhere, by the keys of the facts; and which those are.
        self._facts: dict[str, str] = {}
        self._others: list[str] = []
        #: Since when something is asked, and when output has come last (monotonic).
        self._since: float | None = None
        self._came_at = 0.0

    def _take_others(self, others: list[PendingQuestion]) -> None:
        self._others = [asks_key(one.id) for one in others]

    def without(self, facts: list[Fact]) -> list[Fact]:
        """Return the facts without the questions, or all of them where nobody can be asked."""
        if not self._is_seen:
            return facts
        self._facts |= {fact.key: fact.text for fact in facts if fact.key.startswith(asks_key(""))}
        return [fact for fact in facts if fact.key not in self._facts]

    @property
    def is_asking(self) -> bool:
        """Return whether a question is on the terminal."""
        return self._asked.is_asking

    def came(self) -> None:
        """Note that output has come."""
        self._came_at = monotonic()

    def put(self, worker: FleetWorker) -> list[str]:
        """Go on with what a worker asks; return what is said of the questions that have to be answered elsewhere."""
        if not self._is_seen:
            return []
        self._since = (self._since or monotonic()) if worker.questions else None
        if self.is_asking or self._left_s() == 0:
            self._asked([PendingQuestion(*worker.id, one.id) for one in worker.questions])
        return [self._facts.pop(key) for key in self._others if key in self._facts]

    def close(self) -> None:
        """Ask nothing any more: the worker has ended."""
        if self._is_seen:
            self._asked([])

    def wakes(self) -> WakeReasons:
        """Return what ends the sleep."""
        wakes, left_s = self._asked.wakes(), self._left_s()
        return wakes if self.is_asking or not left_s else wakes._replace(within_s=left_s)

    def _left_s(self) -> float | None:
        """Return how long a question has to wait for what was put out before it; None where there is none."""
        if self._since is None:
            return None
        until = min(max(self._since, self._came_at) + _QUIET_S, self._since + _AT_MOST_S)
        return max(0.0, until - monotonic())


#: How much is read before it is shown.
_MOST_PIECES = 64


class _Bytes(NamedTuple):
    """What a command has printed."""

    stream: str
    data: bytes


class _Text:
    """What is shown so far: the output, and lines of ours above what of it still changes.

    Args:
        is_seen: A person sees it at a terminal.
    """

    def __init__(self, *, is_seen: bool) -> None:
        self._output = followed_output(is_seen=is_seen)
        #: Of what has come of one stream without a break: the end, and the size.
        self._end, self._size, self._stream = b"", 0, ""

    @property
    def within_s(self) -> float | None:
        """How long may be slept before `quiet` is called; None where that is all one."""
        return self._output.within_s()

    def ends_with(self, line: str | None) -> bool:
        """Return whether a line is the last one of the output, as its worker's end has it."""
        return line is not None and last_line_in(self._end, self._size) == line

    def line(self, text: str) -> Raw:
        """Return a line of ours."""
        return Raw(self._output.beside(f"{text}\n"))

    def make_room(self, note: Callable[[str], None]) -> None:
        """Print what is held, and end the line in which the output stands: a question is put below it."""
        if text := self._output.leave():
            note(text.removesuffix("\n"))

    def piece(self, piece: _Piece) -> Raw | Shown[LogPiece]:
        """Return a piece of the output, or what an agent has said or done."""
        if isinstance(piece, str):
            return Raw(piece)
        if not isinstance(piece, _Bytes):
            return drawn_transcript(piece)
        if piece.stream != self._stream:
            self._end, self._size, self._stream = b"", 0, piece.stream
        self._end, self._size = (self._end + piece.data)[-LOOKED_AT:], self._size + len(piece.data)
        return Raw(self._output.feed(piece.stream, piece.data))

    def quiet(self) -> Raw:
        """Return what is shown since it has not changed for a while."""
        return Raw(self._output.quiet())

    def end(self) -> Raw:
        """Return what of the output is shown at its end."""
        return Raw(self._output.end())


class _OutputThread:
    """Reads what a worker puts out, in a thread of its own: it sleeps until there is more.

    The thread does not keep this process alive, which may be interrupted at any time.
    """

    def __init__(self, task: TaskDir, instance: str, *, is_seen: bool) -> None:
        self._task, self._instance, self._is_seen = task, instance, is_seen
        self._error: BaseException | None = None
        #: Bounded: where nobody reads what is printed, no more of a long log is read.
        self._pieces: queue.Queue[_Piece | None] = queue.Queue(_MOST_PIECES)
        self._wake, self._is_over = WakePipe(), False
        threading.Thread(target=self._read, daemon=True).start()

    def awaited(self) -> list[int]:
        """Return what is readable once there is more, for a sleep; nothing if all was read."""
        return [] if self._is_over else [self._wake.fd]

    def pieces(self) -> Iterator[_Piece]:
        """Yield what has come.

        Raises:
            Exception: The thread has ended by it.
        """
        self._wake.drain()
        while not self._is_over and not self._pieces.empty():
            yield from self._next()

    def rest(self) -> Iterator[_Piece]:
        """Yield all that comes, until the thread has ended; raises as `pieces` does."""
        while not self._is_over:
            yield from self._next()

    def _next(self) -> Iterator[_Piece]:
        piece = self._pieces.get()
        if piece is not None:
            yield piece
            return
        self._is_over = True
        if self._error is not None:
            raise self._error

    def _read(self) -> None:
        try:
            if has_transcript(find_worker(self._task, self._instance)):
                for entry in follow_transcript(self._task, self._instance, follow=True, tail=None):
                    self._put(entry if self._is_seen else paragraph(entry))
            else:
                for stream, data in follow_logs(self._task, self._instance, follow=True, tail=None):
                    self._put(_Bytes(stream, data))
        except BaseException as error:  # noqa: BLE001 - the main thread raises it
            self._error = error
        finally:
            self._put(None)

    def _put(self, piece: _Piece | None) -> None:
        self._pieces.put(piece)
        self._wake.wake()
