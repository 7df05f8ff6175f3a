"""Takes up the entries in a worker's outbox (reports and questions from within a sandbox), in its name alone.

The writer is not trusted. Files are opened without following links and without blocking, read up to a limit, checked
key by key, and removed; a file without a valid entry is noted. The folder is held open from the start, so that another
one in its place is never read. The amount that is read at once, and in total, is limited too.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable
from itertools import islice
from typing import TYPE_CHECKING

from agentctl.adapters.clock import monotonic
from agentctl.adapters.locks import is_held_elsewhere
from agentctl.adapters.opening import OF_THE_FILE
from agentctl.adapters.taskdir import WorkerDir
from agentctl.domain.activity.row import RowType
from agentctl.domain.question import Question
from agentctl.errors import AgentctlError
from agentctl.lean import NamedTuple
from agentctl.operations.talk.asking import Asked, close_question, leave, put_question
from agentctl.operations.talk.outbox import LONGEST
from agentctl.worker_programs.agent_host.records.full_disk import when_there_is_room
from agentctl.world_errors import error_in_words

if TYPE_CHECKING:
    from agentctl.operations.talk.outbox_entry import Entry

#: The number of files that one look takes up, the pause after a look that took some, and the number of final looks.
_AT_ONCE, _PAUSE_S, _LAST_LOOKS = 16, 0.2, 16
#: The number of names that one look goes through.
_LOOKED_AT = 1000
#: The number of bytes that one run takes up in total; each file counts as `_LEAST` more.
_BUDGET, _LEAST = 16 << 20, 1 << 10
_MOST_QUESTIONS = 20
_MOST_NOTES = 10


class Outbox:
    """Reads the outbox of one run.

    Args:
        folder: Its descriptor.
    """

    def __init__(self, worker: WorkerDir, folder: int) -> None:
        self.worker, self._folder = worker, folder
        self._questions = _Questions(worker)
        self._budget, self._notes, self._rests_until = _BUDGET, 0, 0.0
        #: The names of files that could not be removed, and are not read again.
        self._stuck: set[str] = set()

    def look(self, again: Callable[[], None]) -> None:
        """Read what is there; `again` is called if more is left for a later look."""
        self._questions.update()
        if monotonic() < self._rests_until:
            again()
        elif taken := self._take_up():
            self._rests_until = monotonic() + _PAUSE_S
            if taken == _AT_ONCE:
                again()

    def close(self) -> None:
        """Read the last entries, and close all questions."""
        try:
            for _ in range(_LAST_LOOKS):
                if self._take_up() < _AT_ONCE:
                    break
        except OSError as error:
            self._note(f"its outbox could not be read to the end: {error_in_words(error)}")
        self._questions.close()
        os.close(self._folder)

    def _take_up(self) -> int:
        """Read some files; return how many.

        Raises:
            OSError: The disk does not give one now: it is still there at the next look.
        """
        names = self._names() if self._budget > 0 else []
        refusals = [refusal for name in names if (refusal := self._take(name)) is not None]
        if refusals:
            raise refusals[0]
        if names and self._budget <= 0:
            self._note("its outbox has reached the limit of one run; the rest is not read")
        return len(names)

    def _names(self) -> list[str]:
        """Return some names; those that begin with a dot are drafts, or what a sandbox puts there to protect itself."""
        fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self._folder)
        try:
            with os.scandir(fd) as entries:
                some = islice(entries, _LOOKED_AT)
                names = (one.name for one in some if not one.name.startswith(".") and one.name not in self._stuck)
                return list(islice(names, _AT_ONCE))
        finally:
            os.close(fd)

    def _take(self, name: str) -> OSError | None:
        """Take up one file and remove it; return why the disk does not give it, if that has nothing to do with it."""
        fd = -1
        try:
            fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=self._folder)
            self._accept(_content(fd), fd)
        except FileNotFoundError:
            return None  # Its writer has withdrawn it.
        except OSError as error:
            if error.errno not in OF_THE_FILE:
                return error
            self._note(f"a file in its outbox was not accepted: {error}")
        finally:
            if fd >= 0 and not self._questions.has_file(fd):
                os.close(fd)
        self._budget -= _LEAST
        self._remove(name)
        return None

    def _accept(self, data: bytes, fd: int) -> None:
        from agentctl.operations.talk.outbox_entry import BadEntry, entry_in  # Most agents write no entries.

        self._budget -= len(data)
        try:
            self._do(entry_in(data), fd)
        except (BadEntry, OSError, AgentctlError) as error:
            self._note(f"a file in its outbox was not accepted: {error}")

    def _do(self, entry: Entry, fd: int) -> None:
        if isinstance(entry, Question):
            self._questions.put(entry, fd)
            return
        from agentctl.operations.talk.reporting import keep_report

        when_there_is_room(lambda: keep_report(self.worker, entry))

    def _note(self, text: str) -> None:
        """Add a note about what was not accepted or not read, up to `_MOST_NOTES` times."""
        from agentctl.operations.talk.reporting import note_in_activity

        self._notes += 1
        if self._notes <= _MOST_NOTES:
            when_there_is_room(lambda: note_in_activity(self.worker, RowType.NOTE, text))

    def _remove(self, name: str) -> None:
        try:
            os.unlink(name, dir_fd=self._folder)
        except FileNotFoundError:
            return
        except OSError:
            try:
                os.rmdir(name, dir_fd=self._folder)
            except OSError:
                self._stuck.add(name)


class _OutboxQuestion(NamedTuple):
    """A question from the outbox. Its asker holds the lock of the file in which it came."""

    asked: Asked
    file: int
    default: str | None
    deadline: float | None


class _Questions:
    """The questions from the outbox."""

    def __init__(self, worker: WorkerDir) -> None:
        self.worker = worker
        self._waiting: dict[str, _OutboxQuestion] = {}
        #: The names of all that were asked in this run: no others may be taken up again.
        self._known: set[str] = set()

    def put(self, question: Question, fd: int) -> None:
        """Put a question, or take up an earlier one from the outbox again.

        Raises:
            BadEntry: It did not come from the outbox, or too many are open.
        """
        from agentctl.operations.talk.outbox_entry import BadEntry

        name, limit_s = question.id, question.deadline_s
        if name not in self._known and (self.worker.question(name).exists() or self.worker.answer(name).exists()):
            raise BadEntry(f"the question {name} was not asked through the outbox")
        if len(self._waiting) >= _MOST_QUESTIONS:
            raise BadEntry(f"{_MOST_QUESTIONS} questions are already waiting for answers")
        asked = when_there_is_room(lambda: put_question(self.worker, question))
        self._known.add(name)
        self._waiting[name] = _OutboxQuestion(
            asked, fd, question.default, None if limit_s is None else monotonic() + limit_s
        )

    def has_file(self, fd: int) -> bool:
        """Return whether a file belongs to an open question."""
        return any(one.file == fd for one in self._waiting.values())

    def update(self) -> None:
        """Drop questions that are answered or abandoned; close those whose deadline has passed."""
        for name, one in list(self._waiting.items()):
            if one.deadline is not None and monotonic() >= one.deadline:
                self._close(name, one.default, "deadline")
            elif self.worker.answer(name).exists() or not is_held_elsewhere(one.file):
                self._leave(name)

    def close(self) -> None:
        """Close all questions: their agent has ended."""
        for name in list(self._waiting):
            self._close(name, None, "its agent has ended")

    def _close(self, name: str, default: str | None, why: str) -> None:
        with contextlib.suppress(AgentctlError):
            when_there_is_room(lambda: close_question(self.worker, name, default, why))
        self._leave(name)

    def _leave(self, name: str) -> None:
        one = self._waiting.pop(name)
        os.close(one.file)
        leave(self.worker, one.asked)


def _content(fd: int) -> bytes:
    """Return the content of an open file; nothing if it is not a regular file, or too long."""
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        return b""
    parts, size = [], 0
    while size <= LONGEST and (part := os.read(fd, LONGEST + 1 - size)):
        parts.append(part)
        size += len(part)
    return b"".join(parts) if size <= LONGEST else b""
