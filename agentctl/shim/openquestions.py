"""The questions that a worker waits for: the shim sleeps on the ends of who asked them."""

from __future__ import annotations

import os

from agentctl.adapters.processes import Identity
from agentctl.adapters.taskdir import WorkerDir
from agentctl.supervision.worker import questions


class OpenQuestions:
    """The open questions of a worker whose askers live: as long as there is one, it is blocked."""

    def __init__(self, worker: WorkerDir) -> None:
        self.worker = worker
        #: Readable once the asker of a question has ended.
        self.fds: dict[int, str] = {}
        self.is_any = False
        #: Questions whose asker was told to be gone; kept over all attempts.
        self.abandoned: set[tuple[str, Identity | None]] = set()

    def look(self) -> bool:
        """Look which there are now; tell whether an asker is gone that was not told to be, and nobody else waits."""
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
        # By who asked, not by what was seen: an asker may be gone before this looks for the first time.
        abandoned = questions.abandoned(self.worker, asked, waiting)
        is_news = not waiting and bool(abandoned - self.abandoned)
        self.abandoned |= abandoned
        self.is_any = bool(waiting)
        return is_news

    def askers(self) -> list[Identity]:
        """Return who waits for the answers."""
        return questions.askers_of(self.worker, self.fds.values())

    def close(self) -> None:
        """Let go of the descriptors."""
        for fd in self.fds:
            os.close(fd)
