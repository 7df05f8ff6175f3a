"""`retry`: the work of an ended worker once more."""

from __future__ import annotations

from agentctl.errors import ExitCode
from agentctl.interfaces.commands.model.command_model import FINDS, FLAG, TEXT, Command, Parameter, Shown
from agentctl.interfaces.commands.model.invocation import Invocation
from agentctl.interfaces.commands.model.parameters import IN_TASK, INSTANCE
from agentctl.interfaces.commands.start.spawn import spawned_line
from agentctl.interfaces.words.outline import warning
from agentctl.lean import TYPE_CHECKING
from agentctl.operations.start.again import retry_worker

if TYPE_CHECKING:
    from agentctl.domain.documents.workers.starts import SpawnedWorker


def retry(call: Invocation, *, instance: str, name: str | None = None, queue: bool = False) -> Shown[SpawnedWorker]:
    """Start the work of an ended worker once more.

    A new worker gets the same command, or the same agent, prompt and options, in the same folder, or in a new worktree
    if the old worker had one. It has the environment of this call, waits for no other worker, and what it may do is
    decided as for a new start. `resume` continues an agent instead.
    """
    spawned = retry_worker(call.task(), instance, queue=queue, name=name)
    return Shown(spawned.to_json(), [spawned_line(spawned)], notes=map(warning, spawned.warnings))


COMMANDS = (
    Command(
        "retry",
        retry,
        IN_TASK,
        """
agentctl retry build
agentctl retry explore-1 --name explore-anew --queue
""",
        (
            INSTANCE,
            Parameter("name", TEXT, "The new worker's name; by default INSTANCE-2, -3, ...", "INSTANCE"),
            Parameter("queue", FLAG, "Wait for a slot instead of being refused."),
        ),
        exits=(*FINDS, ExitCode.NO_SLOT),
    ),
)
