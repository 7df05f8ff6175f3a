"""Which workers a command means: those that are named, or those that a person selects by what they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from agentctl.adapters.taskdir import TaskDir
from agentctl.domain.states import Status
from agentctl.domain.text.plaintext import plain
from agentctl.errors import Argument, UsageError, WithArguments
from agentctl.interfaces.commands.model.command_model import AGENTS, CHOICE, FLAG, TEXT, Parameter
from agentctl.interfaces.words.filter_words import filter_words, has_words, texts_of
from agentctl.lean import TYPE_CHECKING, NamedTuple, TypeVar
from agentctl.operations.show.listing import each_worker

if TYPE_CHECKING:
    from agentctl.domain.documents.workers.worker import WorkerRow
    from agentctl.errors import AgentctlError

_R = TypeVar("_R")
_GROUP = "Instead of names"
SELECT = (
    Parameter("failed", FLAG, "Those that have failed.", group=_GROUP),
    Parameter("status", CHOICE, "Those of this status.", choices=tuple(Status), group=_GROUP),
    Parameter("agent", TEXT, "Those of this agent.", "AGENT", completes=AGENTS, group=_GROUP),
    Parameter(
        "words", TEXT, "Those with these words, as in `watch`: s:failed -a:explore n:build.", "WORDS", typed="filter",
        group=_GROUP,
    ),
)  # fmt: skip


class Selection(NamedTuple):
    """What workers have to be; nothing means all of them."""

    failed: bool = False
    status: str | None = None
    agent: str | None = None
    words: str | None = None

    def has(self, row: WorkerRow, task: str) -> bool:
        """Return whether a worker is selected."""
        if (self.failed and row["status"] != Status.FAILED) or self.status not in (None, row["status"]):
            return False
        if self.agent not in (None, row["agent"]):
            return False
        return not self.words or has_words(texts_of(row, task=row.get("taskId", task)), filter_words(self.words))


#: The next steps where it is not said which workers are meant.
NAMED_OR_SELECTED = (
    "name them",
    WithArguments(
        "or select them by ", Argument("failed"), ", ", Argument("status"), ", ", Argument("agent"), " or ",
        Argument("filter"),
    ),
)  # fmt: skip


def selected_rows(rows: Iterable[WorkerRow], selection: Selection, task: str) -> Iterable[WorkerRow]:
    """Return the rows of the workers that are selected; all of them as they are where nothing is selected."""
    return rows if selection == Selection() else (row for row in rows if selection.has(row, task))


def workers_chosen(task: TaskDir, named: Sequence[str] | None, selection: Selection) -> list[str]:
    """Return the workers that are named, or the newest tries of the works that are selected.

    Raises:
        UsageError: Neither or both are given.
    """
    is_selected = selection != Selection()
    if bool(named) == is_selected:
        said = "name the workers or select them, not both" if named else "no worker is named"
        raise UsageError(said, hint=NAMED_OR_SELECTED)
    if named:
        return list(named)
    return [row["agentInstance"] for row in each_worker(task).rows if is_newest(row) and selection.has(row, task.id)]


def one_or_all(rows: list[_R], named: Sequence[str] | None) -> _R | list[_R]:
    """Return the document of a command: the row of the one worker that was named, or a list."""
    return rows[0] if named is not None and len(named) == 1 and rows else rows


def left_out_lines(left_out: Mapping[str, AgentctlError]) -> list[str]:
    """Return a line for each worker that was selected and is left out, with the reason and the next step."""
    return [
        f"left out: {plain(f'{why.message} ({why.hint})' if why.hint else why.message)}" for why in left_out.values()
    ]


def headed(instance: str, named: Sequence[str] | None) -> str:
    """Return the line above what is shown of a worker; nothing above the only one that was named."""
    return "" if named is not None and len(named) == 1 else f"==> {instance} <=="


#: Where a selection finds nobody.
NOBODY = "no worker is selected"


def is_newest(row: WorkerRow) -> bool:
    """Return whether a worker is the one of its work that counts."""
    return row.get("supersededBy") is None
