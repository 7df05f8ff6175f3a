"""Follows one worker: its state, its output, its questions, and its end."""

from __future__ import annotations

import queue
import threading
from collections.abc import Generator, Iterator

from agentctl.adapters.taskdir import TaskDir
from agentctl.adapters.wake_pipe import WakePipe
from agentctl.domain.names import WorkerId
from agentctl.domain.states import TERMINAL, EndStatus, Status
from agentctl.domain.text.plaintext import plain
from agentctl.errors import ExitCode
from agentctl.interfaces.commands.model.command_model import Raw, Showing
from agentctl.interfaces.commands.model.invocation import Invocation
from agentctl.interfaces.commands.parts.told_ends import ended_line
from agentctl.interfaces.commands.show.logs import decoded
from agentctl.interfaces.commands.watch.sentences import SaidFacts
from agentctl.interfaces.words.activity import paragraph
from agentctl.lean import TYPE_CHECKING
from agentctl.operations.fleet.fleet import Fleet
from agentctl.operations.fleet.seen import SeenEnds
from agentctl.operations.show.activity import follow_transcript, has_transcript
from agentctl.operations.show.logs import follow_logs
from agentctl.operations.wait.waiting import WaitedEnd
from agentctl.operations.where.locating import find_worker

if TYPE_CHECKING:
    from agentctl.domain.documents.workers.worker import WorkerRow


def follow_worker(call: Invocation, instance: str) -> Showing:
    """Yield what a worker does until it has ended; return the exit code that `wait` has for that end.

    Raises:
        NotFound: It was removed.
    """
    task = call.task_to_show()
    find_worker(task, instance)
    with Fleet(task.root, SeenEnds(task.root), only=task.id) as fleet:
        row = yield from _follow(task, instance, fleet)
    return ExitCode.DONE if row["status"] == Status.COMPLETED else ExitCode.UNSUCCESSFUL


def _follow(task: TaskDir, instance: str, fleet: Fleet) -> Generator[Raw, None, WorkerRow]:
    text, said = _Text(), SaidFacts()
    output: _OutputThread | None = None
    while True:
        glance = fleet.look()
        worker = glance.workers.get(WorkerId(task.id, instance))
        if worker is not None:
            is_over = worker.row["status"] in TERMINAL
            for fact in said.new(worker):
                if output is None or not is_over:
                    yield text.line(fact.text)
            output = output or _OutputThread(task, instance)
            yield from map(text.piece, output.rest() if is_over else output.pieces())
            if is_over:
                yield text.line(ended_line(_end_of(worker.row)))
                return worker.row
        elif not glance.is_partial:
            find_worker(task, instance)  # It is gone, with its task, unless its first event is yet to come.
        fleet.sleep(None, () if output is None else output.awaited())


def _end_of(row: WorkerRow) -> WaitedEnd:
    return WaitedEnd(
        agent_instance=row["agentInstance"], status=EndStatus(row["status"]), reason=row["reason"],
        exit_code=row["exitCode"], signal=row["signal"], message=row["message"], uncollected=row["uncollected"],
    )  # fmt: skip


#: How much is read before it is shown.
_MOST_PIECES = 64


class _Text:
    """What is shown so far: a line that follows output which does not end its own begins below it."""

    def __init__(self) -> None:
        self._is_within_line = False

    def line(self, text: str) -> Raw:
        """Return a line of ours."""
        return self.piece(f"\n{text}\n" if self._is_within_line else f"{text}\n")

    def piece(self, text: str) -> Raw:
        """Return a piece of the output."""
        self._is_within_line = not text.endswith("\n") if text else self._is_within_line
        return Raw(text)


class _OutputThread:
    """Reads what a worker puts out, in a thread of its own: it sleeps until there is more.

    The thread does not keep this process alive, which may be interrupted at any time.
    """

    def __init__(self, task: TaskDir, instance: str) -> None:
        self._task, self._instance = task, instance
        self._error: BaseException | None = None
        #: Bounded: where nobody reads what is printed, no more of a long log is read.
        self._pieces: queue.Queue[str | None] = queue.Queue(_MOST_PIECES)
        self._wake, self._is_over = WakePipe(), False
        threading.Thread(target=self._read, daemon=True).start()

    def awaited(self) -> list[int]:
        """Return what is readable once there is more, for a sleep; nothing if all was read."""
        return [] if self._is_over else [self._wake.fd]

    def pieces(self) -> Iterator[str]:
        """Yield what has come.

        Raises:
            Exception: The thread has ended by it.
        """
        self._wake.drain()
        while not self._is_over and not self._pieces.empty():
            yield from self._next()

    def rest(self) -> Iterator[str]:
        """Yield all that comes, until the thread has ended; raises as `pieces` does."""
        while not self._is_over:
            yield from self._next()

    def _next(self) -> Iterator[str]:
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
                    self._put(paragraph(entry))
            else:
                for _, text in decoded(follow_logs(self._task, self._instance, follow=True, tail=None)):
                    self._put(plain(text, keep="\n\t"))
        except BaseException as error:  # noqa: BLE001 - the main thread raises it
            self._error = error
        finally:
            self._put(None)

    def _put(self, piece: str | None) -> None:
        self._pieces.put(piece)
        self._wake.wake()
