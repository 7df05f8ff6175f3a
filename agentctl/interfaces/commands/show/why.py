"""`why`: why a worker is in its state, and from which files, locks and processes that follows."""

from __future__ import annotations

from agentctl.interfaces.commands.model.command_model import Command, Shown
from agentctl.interfaces.commands.model.invocation import Invocation
from agentctl.interfaces.commands.model.parameters import IN_TASK, NAMED_INSTANCES
from agentctl.interfaces.commands.parts.selection import SELECT, Selection, one_or_all, workers_chosen
from agentctl.interfaces.words.why import why_lines
from agentctl.lean import TYPE_CHECKING
from agentctl.operations.show.why import why_worker

if TYPE_CHECKING:
    from agentctl.domain.documents.workers.worker import WorkerReasons


def why(
    call: Invocation,
    *,
    instances: list[str] | None = None,
    failed: bool = False,
    status: str | None = None,
    agent: str | None = None,
    words: str | None = None,
) -> Shown[WorkerReasons | list[WorkerReasons]]:
    """Say why a worker is in its state, and what would change it.

    Below each sentence stand the files, locks, processes and events from which it follows. The first line says since
    when. What cannot be known from here is called unknown. Starts nothing.
    """
    task = call.task_to_show()
    chosen = workers_chosen(task, instances, Selection(failed, status, agent, words))
    found = [why_worker(task, one) for one in chosen]
    lines = (line for one in found for line in (*([""] if one is not found[0] else []), *why_lines(one)))
    return Shown(one_or_all([one.to_json() for one in found], instances), lines)


COMMANDS = (Command("why", why, IN_TASK, "agentctl why explore-1\nagentctl why --failed", (NAMED_INSTANCES, *SELECT)),)
