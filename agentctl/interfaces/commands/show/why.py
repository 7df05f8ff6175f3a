"""`why`: why a worker is in its state, and from which files, locks and processes that follows."""

from __future__ import annotations

from agentctl.interfaces.commands.model.command_model import Command, Shown
from agentctl.interfaces.commands.model.invocation import Invocation
from agentctl.interfaces.commands.model.parameters import IN_TASK, INSTANCE
from agentctl.interfaces.words.why import why_lines
from agentctl.lean import TYPE_CHECKING
from agentctl.operations.show.why import why_worker

if TYPE_CHECKING:
    from agentctl.domain.documents.workers.worker import WorkerReasons


def why(call: Invocation, *, instance: str) -> Shown[WorkerReasons]:
    """Say why a worker is in its state, from which evidence, and what would change it.

    Below each sentence stand the files, locks, processes and events from which it follows. The first line says since
    when. What cannot be known from here is called unknown. Starts nothing.
    """
    found = why_worker(call.task_to_show(), instance)
    return Shown(found.to_json(), why_lines(found))


COMMANDS = (Command("why", why, IN_TASK, "agentctl why explore-1\nagentctl why explore-1 --json", (INSTANCE,)),)
