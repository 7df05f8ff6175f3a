"""What is said of a worker in one sentence, for a person who hears the lines or reads them in passing."""

from __future__ import annotations

from collections.abc import Iterator

from agentctl.domain.answers import answers_in_words
from agentctl.domain.names import WorkerId
from agentctl.domain.question import in_one_line
from agentctl.domain.states import HELD, STRANDED, TERMINAL, Status
from agentctl.domain.text.plaintext import plain
from agentctl.domain.worker.ends import reason_in_words, said_at_end
from agentctl.domain.worker.need import Need
from agentctl.interfaces.commands.parts.told_ends import because
from agentctl.interfaces.words.worker import full_standing, respond_command
from agentctl.lean import NamedTuple
from agentctl.operations.fleet.glance import FleetWorker, Glance
from agentctl.operations.where.command_lines import root_words

_LIVE = {Status.QUEUED: "is queued", Status.RUNNING: "is running", Status.BLOCKED: "is blocked"}


class Fact(NamedTuple):
    """Something that is true of a worker for a while."""

    #: The same as long as it is the same fact.
    key: str
    text: str


def asks_key(question_id: str) -> str:
    """Return the key of the fact that a question is open."""
    return f"asks {question_id}"


def sentences_of(worker: FleetWorker) -> list[Fact]:
    """Return what there is to say of a worker now: each open question, or else its state."""
    row, task, root = worker.row, worker.task.id, root_words(worker.task.root)
    name = plain(f"{row['agentInstance']} of {task}")
    if worker.questions:
        return [
            Fact(asks_key(one.id), f"{name} needs you: {line.text} {respond_command(worker.id, one.id, answers, root)}")
            for one in worker.questions
            for line in [in_one_line(one)]
            for answers in [answers_in_words(one, line)]
        ]
    if worker.idle is not None:
        next_step = plain(f"agentctl send {row['agentInstance']} --task {task}{root} TEXT")
        return [Fact(f"idle {worker.idle.id}", f"{name} has answered, and waits for a message: {next_step}")]
    if row["status"] in TERMINAL:
        return [Fact("ended", f"{name} {''.join(_end(worker))}")]
    if row["health"] == STRANDED:
        next_step = plain(f"agentctl resume --lost --task {task}{root}")
        return [Fact(STRANDED, f"{name} is stranded in the queue, nothing will start it: {next_step}")]
    if row["health"] == HELD:
        next_step = plain(f"agentctl why {row['agentInstance']} --task {task}{root}")
        return [Fact(HELD, f"{name} is held in the queue: {next_step}")]
    unusual = full_standing(row)
    state = _LIVE.get(Status(row["status"]), row["status"]) if row["status"] in _LIVE else row["status"]
    text = plain(f"{state} ({unusual})" if unusual else state)
    return [Fact(text, f"{name} {text}")]


def _end(worker: FleetWorker) -> Iterator[str]:
    row = worker.row
    yield plain(row["status"])
    if row["reason"]:
        yield plain(f" ({reason_in_words(row['reason'], row['exitCode'], row['signal'])})")
    if row["status"] == Status.FAILED:
        yield because(*said_at_end(row["message"], row["lastLine"]))
    if worker.changed_files:
        yield f", {worker.changed_files} changed file{'' if worker.changed_files == 1 else 's'}"
    if worker.need is Need.REVIEW:
        where = f"--task {worker.task.id}{root_words(worker.task.root)}"
        yield plain(f", ready for review: agentctl result {row['agentInstance']} {where}")


class SaidFacts:
    """Which facts were said of each worker that still is there: each is new once."""

    def __init__(self) -> None:
        self._said: dict[WorkerId, tuple[FleetWorker, frozenset[str]]] = {}

    def new(self, worker: FleetWorker) -> list[Fact]:
        """Return the facts of a worker that were not true of it at the last call, and count them as said."""
        before, keys = self._said.get(worker.id, (None, frozenset()))
        if before is worker:
            return []
        facts = sentences_of(worker)
        self._said[worker.id] = worker, frozenset(fact.key for fact in facts)
        return [fact for fact in facts if fact.key not in keys]

    def forget_others(self, glance: Glance) -> None:
        """Forget the workers that are gone."""
        for key in self._said.keys() - glance.workers.keys():
            del self._said[key]


def is_at_or_below(glance: Glance, worker: FleetWorker, top: str | None) -> bool:
    """Return whether a worker belongs to a task or to one below it; None means any task."""
    name: str | None = worker.task.id
    seen: set[str] = set()
    while name is not None and name not in seen and name != top:
        seen.add(name)  # Forged tasks may lie below each other.
        task = glance.tasks.get(name)
        name = None if task is None else task.parent
    return top is None or name == top
