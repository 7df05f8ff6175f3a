"""A worker's questions on disk: which are open, and which have a live asker."""

from __future__ import annotations

from collections.abc import Collection

from agentctl.adapters import processes
from agentctl.adapters.files import read_known
from agentctl.adapters.locks import is_alive_held
from agentctl.adapters.processes import Identity
from agentctl.adapters.taskdir import WorkerDir
from agentctl.lean import TYPE_CHECKING

if TYPE_CHECKING:
    from agentctl.domain.question import Question


def open_questions(worker: WorkerDir) -> list[str]:
    """Return the ids of the questions without an answer, oldest first."""
    return [question for question in worker.question_ids() if not worker.answer(question).exists()]


def read_question(worker: WorkerDir, question: str) -> Question | None:
    """Return the question in a file; None if the file is missing, or does not hold a question."""
    from agentctl.domain.question import question_in  # A shim reads no question.

    return question_in(question, read_known(worker.question(question)))


def is_open(worker: WorkerDir, question: str) -> bool:
    """Return whether a question still needs an answer: it has none, and its worker has not ended."""
    return not worker.has_ended and not worker.answer(question).exists()


def waiting_askers(worker: WorkerDir, asked: Collection[str] | None = None) -> list[str]:
    """Return the open questions, of those in `asked` or of all, whose asker lives and waits."""
    asked = open_questions(worker) if asked is None else asked
    return [question for question in asked if is_alive_held(worker.asker_lock(question))]


def abandoned(worker: WorkerDir, asked: Collection[str], waiting: Collection[str]) -> set[tuple[str, Identity | None]]:
    """Return the questions of `asked` that nobody waits for any more, each with its last asker."""
    return {
        (question, processes.identity_from(read_known(worker.question(question)).get("asker")))
        for question in asked
        if question not in waiting
    }


def askers_of(worker: WorkerDir, asked: Collection[str]) -> list[Identity]:
    """Return the askers of these questions, as the files of the questions name them."""
    askers = (processes.identity_from(read_known(worker.question(question)).get("asker")) for question in asked)
    return [asker for asker in askers if asker is not None]


def watch_asker(worker: WorkerDir, question: str) -> int | None:
    """Return a descriptor that is readable once the asker of a question has ended; None if there can be none."""
    value = read_known(worker.question(question))
    asker = processes.identity_from(value.get("asker"))
    return processes.open_pidfd(asker) if asker else None
