"""Follows one worker: its state, its output, its questions, and its end."""

from __future__ import annotations

import os
import sys
import threading

from agentctl.adapters.taskdir import TaskDir
from agentctl.cli.ends import ended_line
from agentctl.cli.invocation import Invocation
from agentctl.cli.logs import decode_streams
from agentctl.cli.render import plain
from agentctl.cli.sentences import SaidFacts
from agentctl.domain.names import WorkerId
from agentctl.domain.states import TERMINAL, EndStatus, Status
from agentctl.domain.worker_row import WorkerRow
from agentctl.errors import ExitCode
from agentctl.operations.fleet.fleet import Fleet
from agentctl.operations.fleet.seen import SeenEnds
from agentctl.operations.show.activity import follow_transcript, has_transcript
from agentctl.operations.show.logs import follow_logs
from agentctl.operations.wait.waiting import WaitedEnd
from agentctl.operations.where.locating import find_worker
from agentctl.text.activity import paragraph


def follow_worker(call: Invocation, instance: str) -> int:
    """Print what a worker does until it has ended; return the exit code that `wait` has for that end.

    Raises:
        NotFound: It was removed.
    """
    task = call.task_to_show()
    find_worker(task, instance)
    with Fleet(task.root, SeenEnds(task.root), only=task.id) as fleet:
        row = _follow(task, instance, fleet)
    return ExitCode.DONE if row["status"] == Status.COMPLETED else ExitCode.UNSUCCESSFUL


def _follow(task: TaskDir, instance: str, fleet: Fleet) -> WorkerRow:
    printer, said = _Printer(), SaidFacts()
    output: _OutputThread | None = None
    while True:
        glance = fleet.look()
        worker = glance.workers.get(WorkerId(task.id, instance))
        if worker is not None:
            is_over = worker.row["status"] in TERMINAL
            for fact in said.new(worker):
                if output is None or not is_over:
                    printer.line(fact.text)
            output = output or _OutputThread(task, instance, printer)
            if is_over:
                output.join()
                printer.line(ended_line(_end_of(worker.row)))
                return worker.row
        elif not glance.is_partial:
            find_worker(task, instance)  # It is gone, with its task, unless its first event is yet to come.
        fleet.sleep(None, () if output is None else output.unless_done())


def _end_of(row: WorkerRow) -> WaitedEnd:
    return WaitedEnd(
        agent_instance=row["agentInstance"], status=EndStatus(row["status"]), reason=row["reason"],
        exit_code=row["exitCode"], signal=row["signal"], message=row["message"], uncollected=row["uncollected"],
    )  # fmt: skip


class _Printer:
    """Prints the lines of two threads; output that does not end its line gets the next one below it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_within_line = False

    def line(self, text: str) -> None:
        with self._lock:
            self._write(f"\n{text}\n" if self._is_within_line else f"{text}\n")

    def text(self, text: str) -> None:
        with self._lock:
            self._write(text)

    def _write(self, text: str) -> None:
        if text:
            sys.stdout.write(text)
            sys.stdout.flush()
            self._is_within_line = not text.endswith("\n")


class _OutputThread:
    """Prints what a worker puts out, in a thread of its own: it sleeps until there is more.

    The thread does not keep this process alive, which may be interrupted at any time.
    """

    def __init__(self, task: TaskDir, instance: str, printer: _Printer) -> None:
        self._task, self._instance, self._printer = task, instance, printer
        self._error: BaseException | None = None
        #: Readable once the thread has ended.
        self._done, self._running = os.pipe()
        self._thread = threading.Thread(target=self._print, daemon=True)
        self._thread.start()

    def unless_done(self) -> list[int]:
        """Return what is readable once the thread has ended, for a sleep; nothing if that was found already.

        Raises:
            Exception: The thread has ended by it.
        """
        if self._thread.is_alive():
            return [self._done]
        self.join()
        return []

    def join(self) -> None:
        """Wait until everything is printed.

        Raises:
            Exception: The thread has ended by it.
        """
        self._thread.join()
        if self._error is not None:
            raise self._error

    def _print(self) -> None:
        try:
            if has_transcript(find_worker(self._task, self._instance)):
                for entry in follow_transcript(self._task, self._instance, follow=True, tail=None):
                    self._printer.text(paragraph(entry))
            else:
                chunks = follow_logs(self._task, self._instance, follow=True, tail=None)
                decode_streams(chunks, lambda _, text: self._printer.text(plain(text, keep="\n\t")))
        except BaseException as error:  # noqa: BLE001 - the main thread raises it
            self._error = error
        finally:
            os.close(self._running)
