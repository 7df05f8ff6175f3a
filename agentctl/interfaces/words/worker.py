"""What is said of a worker in a few words: how long, how far, what is unusual, who below it asks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agentctl.domain.names import WorkerId, first_of
from agentctl.domain.states import HELD, STRANDED, Status
from agentctl.domain.text.numbers import finite
from agentctl.domain.text.plaintext import plain, shortened_inside
from agentctl.domain.tree.windows import label_of
from agentctl.domain.worker.ends import reason_in_words, said_at_end
from agentctl.interfaces.words.value_words import local_time
from agentctl.lean import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentctl.domain.documents.workers.worker import WorkerRow
    from agentctl.operations.show.askers import PendingQuestion
    from agentctl.operations.wait.live_view import DiskRefusal

#: Of the workers that one waits for, so many are named, each in so many characters.
_MOST_NAMES, _LONGEST_NAME = 3, 16


def questions_open(asked: Sequence[PendingQuestion], root: str) -> str:
    """Return how many questions are open, who asks them, and the command that answers the only one, or shows all.

    Args:
        root: As `root_words` returns it.
    """
    if len(asked) == 1:
        one = asked[0]
        command = respond_command(WorkerId(one.task_id, one.instance), one.id, one.answers, root)
        text = f" ({one.text})" if one.text else ""
        return f"{plain(f'1 question is open, of {one.task_id}/{one.instance}{text}')}: {command}"
    who = first_of(list(dict.fromkeys(f"{one.task_id}/{one.instance}" for one in asked)))
    return plain(f"{len(asked)} questions are open, of {who}: agentctl interact list{root}")


def stranded_words(stranded: Sequence[WorkerId], command: str) -> str:
    """Return who is stranded in the queue, and the command that has them started."""
    who = first_of([one.instance for one in stranded])
    verb, them = ("is", "it") if len(stranded) == 1 else ("are", "them")
    return plain(f"{who} {verb} stranded in the queue, nothing will start {them}: {command}")


def refused_words(worker: WorkerId, refusal: DiskRefusal) -> str:
    """Return what a disk refuses of a worker that is waited for, and what helps."""
    who = f"{worker.task_id}/{worker.instance}"
    if not refusal.is_end:
        return plain(f"the state of {who} is unknown: {refusal.problem}; the wait goes on with the others")
    what = f"{who} has ended, and its end waits in memory: {refusal.problem}"
    return plain(f"{what}; its shim writes it once the disk takes it: leave the shim alone")


def respond_command(worker: WorkerId, question_id: str, answers: str, root: str) -> str:
    """Return the command that answers a question, and which answers whoever reads that may give.

    Args:
        root: As `root_words` returns it.
    """
    command = f"agentctl answer {worker.instance} --task {worker.task_id}{root} --id {question_id} ANSWER"
    return plain(f"{command} (ANSWER: {answers})" if answers else command)


def agent_words(row: WorkerRow) -> str:
    """Return a worker's agent, and the driver that runs it: `general:codex`."""
    agent, driver = row["agent"], row["driver"]
    return agent if driver in (None, agent) else f"{agent}:{driver}"


def agent_with_policy(row: WorkerRow) -> str:
    """Return the same, and its policy where the person's own settings of its program count."""
    agent = agent_words(row)
    return f"{agent} (permissions {row['permissions']})" if row["permissions"] else agent


def name_with_try(row: WorkerRow) -> str:
    """Return a worker's name, and which try of its work it is where that has several."""
    if "nthTry" not in row:
        return row["agentInstance"]
    word = "run" if row["continues"] else "try"
    return f"{row['agentInstance']} ({ordinal(row['nthTry'])} {word})"


def ordinal(number: int) -> str:
    """Return a number as one that counts.

    >>> [ordinal(number) for number in (1, 2, 3, 4, 11, 22, 113)]
    ['1st', '2nd', '3rd', '4th', '11th', '22nd', '113th']
    """
    ending = "th" if number // 10 % 10 == 1 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def elapsed(row: WorkerRow) -> float | None:
    """Return how long a worker ran, or has been running; the wall clock is good enough to show it."""
    measured, began = row["durationSeconds"], row["startedAt"]
    if measured is not None or began is None or row["endedAt"] is not None:
        return measured
    from datetime import UTC, datetime

    try:
        return max(0.0, (datetime.now(UTC) - datetime.fromisoformat(began)).total_seconds())
    except (TypeError, ValueError):
        return None  # a line of the log that someone else wrote


def progress_words(report: Mapping[str, Any] | None) -> str | None:
    """Return how far a worker says it has got: `40% reading`."""
    report = report or {}
    percent, text = finite(report.get("percent")), report.get("text")
    parts = ["" if percent is None else f"{percent:g}%", text if isinstance(text, str) else ""]
    return " ".join(part for part in parts if part) or None


def said_words(row: WorkerRow) -> str | None:
    """Return what a row says in a worker's own words: how far it has got, or, if it failed, what it wrote last."""
    if row["status"] != Status.FAILED:
        return progress_words(row["progress"])
    return "; ".join(said_at_end(row["message"], row["lastLine"])) or None


def _then_late(row: WorkerRow, reason: str) -> str:
    """Return why a worker failed, and how it ended after all if its node has told of that later."""
    late = row["placement"]["lateExit"] if "placement" in row else None
    return reason if late is None else f"{reason}, then {late}"


def standing_words(row: WorkerRow) -> str | None:
    """Return what a program reads beside the status: why it failed, or what is unusual about a live worker."""
    if "unreadable" in row:
        return f"unknown: {row['unreadable']}"
    if row["reason"]:
        return _then_late(row, row["reason"])
    if "refused" in row:
        what = next((words for key, words in _HELD if key in row["refused"]), "it is asked to stop")
        return f"{what}: {row['refused'].get('problem')}"
    account, health = row["awaitsAccount"], row["health"]
    if health in (STRANDED, HELD):
        return health
    if account:
        return waiting_for(account, is_parked=row["parked"])
    unusual = next((words for key, words in _UNUSUAL if row.get(key)), None)
    if unusual is None and row["uncollected"]:
        return f"{row['uncollected']} uncollected"
    is_strange = health in ("unsupervised", "unfollowed", "elsewhere", "observed")
    return unusual or (health if is_strange else on_node(row))


def full_standing(row: WorkerRow) -> str | None:
    """Return the same for a person: a reason with its exit code or signal, and what a queued worker waits for."""
    if row["reason"] and "unreadable" not in row:
        return _then_late(row, reason_in_words(row["reason"], row["exitCode"], row["signal"]))
    return standing_words(row) or _after(row)


def _after(row: WorkerRow) -> str | None:
    """Return after which workers one in the queue starts: `after build, test`."""
    names = [shortened_inside(name, _LONGEST_NAME) for name in row.get("after", ())]
    return f"after {first_of(names, _MOST_NAMES)}" if names else None


def on_node(row: WorkerRow) -> str | None:
    """Return where a worker on a node is, or why it is not there yet: `on n1`, `slurm: PENDING (Resources)`."""
    placed = row.get("placement")
    if placed is None or row["endedAt"] is not None:
        return None
    runner = placed["runner"]
    if placed["problem"]:
        return f"{runner}: {placed['problem']}" if placed["node"] is None else placed["problem"]
    if placed["state"] == "unknown":
        return f"{runner} does not answer"
    if placed["node"] and placed["state"] in (None, "running"):
        return f"on {placed['node']}"
    if placed["state"] == "running":
        return f"{runner}: it has a node, and waits for a slot"
    why = f" ({placed['reason']})" if placed["reason"] else ""
    return f"{runner}: {placed['words'] or placed['state'] or 'submitting'}{why}"


#: By what the disk refuses of a worker: what of it is held.
_HELD = (("end", "its end is held"), ("start", "its start is held"))
#: The field of a row and the words for it, the most pressing first.
_UNUSUAL = (
    ("survivors", "survivors"), ("paused", "paused"), ("askedBelow", "a child asks"), ("stalled", "stalled"),
    ("awaitsChildren", "awaits children"),
)  # fmt: skip


def waiting_for(account: Mapping[str, Any], *, is_parked: bool) -> str:
    """Return until when a worker waits for its account: `parked until 03:30 (5 h window)`."""
    until, window = local_time(account.get("until")), account.get("window")
    which = f" ({label_of(str(window))} window)" if window else ""
    return f"{'parked' if is_parked and window else 'waits for its account'} until {until}{which}"
