"""The open questions of a worker, with descriptors that wake its shim when an asker ends."""

from __future__ import annotations

import os

from agentctl.adapters.processes import Identity
from agentctl.adapters.taskdir import WorkerDir
from agentctl.supervision.worker import questions


class OpenQuestions:
    """The open questions of a worker that have a live asker: while there is one, the worker is blocked."""

    def __init__(self, worker: WorkerDir) -> None:
        self.worker = worker
        #: Readable once the asker of a question has ended.
        self.fds: dict[int, str] = {}
        self.is_any = False
        #: Questions whose asker was already reported as gone; kept over all attempts.
        self.abandoned: set[tuple[str, Identity | None]] = set()

    def look(self) -> bool:
        """Look for open questions; return whether an asker has gone that was not reported, and no other waits."""
        asked = questions.open_questions(self.worker)
        waiting = questions.waiting_askers(self.worker, asked)
        for fd, question in list(self.fds.items()):
            if question not in waiting:
                os.close(fd)
                del self.fds[fd]
        for question in waiting:
            asker = questions.watch_asker(self.worker, question) if question not in self.fds.values() else None
            if asker is not None:
                self.fds[asker] = question
        # Decided by the recorded asker, not by earlier looks: it may be gone before the first look.
        abandoned = questions.abandoned(self.worker, asked, waiting)
        is_news = not waiting and bool(abandoned - self.abandoned)
        self.abandoned |= abandoned
        self.is_any = bool(waiting)
        return is_news

    def askers(self) -> list[Identity]:
        """Return the processes that wait for the answers."""
        return questions.askers_of(self.worker, self.fds.values())

    def close(self) -> None:
        """Close the descriptors."""
        for fd in self.fds:
            os.close(fd)
