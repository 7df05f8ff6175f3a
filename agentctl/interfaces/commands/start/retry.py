"""`retry`: the work of ended workers once more."""

from __future__ import annotations

from agentctl.errors import ExitCode, UsageError
from agentctl.interfaces.commands.model.command_model import (
    FINDS,
    TEXT,
    Command,
    Parameter,
    Shown,
)
from agentctl.interfaces.commands.model.invocation import Invocation
from agentctl.interfaces.commands.model.parameters import IN_TASK, KEY, NAMED_INSTANCES, QUEUE_UP
from agentctl.interfaces.commands.parts.selection import (
    NOBODY,
    SELECT,
    Selection,
    left_out_lines,
    one_or_all,
    workers_chosen,
)
from agentctl.interfaces.commands.start.spawn import spawned_line
from agentctl.interfaces.words.outline import warning
from agentctl.lean import TYPE_CHECKING
from agentctl.operations.start.again import retry_workers

if TYPE_CHECKING:
    from agentctl.domain.documents.workers.starts import SpawnedWorker


def retry(
    call: Invocation,
    *,
    instances: list[str] | None = None,
    name: str | None = None,
    queue: bool | None = None,
    failed: bool = False,
    status: str | None = None,
    agent: str | None = None,
    words: str | None = None,
    key: str | None = None,
) -> Shown[SpawnedWorker | list[SpawnedWorker]]:
    """Start the work of an ended worker once more.

    A new worker gets the same command, or the same agent, prompt and options, in the same folder, or in a new worktree
    if the old worker had one. It has the environment of this call, and what it may do is decided as for a new start.
    From now on it is the one that counts of their work. It waits for what the old one waited for; where that has
    failed, name both. Of workers that are selected, those that cannot be started again are left out, and told.
    `resume` continues an agent instead.
    """
    task, selection = call.task(), Selection(failed, status, agent, words)
    if key is not None and selection != Selection():
        raise UsageError("a key is for workers that are named", hint="a selection has others the next time: name them")
    chosen = workers_chosen(task, instances, selection)
    if not chosen:
        return Shown([], notes=[f"nothing to try again: {NOBODY}"])
    done = retry_workers(task, chosen, queue=queue, name=name, as_far_as_possible=selection != Selection(), key=key)
    rows = [one.to_json() for one in done.spawned]
    return Shown(
        one_or_all(rows, instances),
        map(spawned_line, done.spawned),
        notes=[
            *(warning(text) for one in done.spawned for text in one.warnings),
            *left_out_lines(done.left_out),
        ],
        code=ExitCode.REFUSED if done.left_out else ExitCode.DONE,
    )


COMMANDS = (
    Command(
        "retry",
        retry,
        IN_TASK,
        """
agentctl retry build
agentctl retry --failed
agentctl retry explore-1 --name explore-anew --queue
""",
        (
            NAMED_INSTANCES,
            Parameter("name", TEXT, "The new worker's name; by default INSTANCE-2, -3, ...", "INSTANCE"),
            QUEUE_UP._replace(
                help="Wait for a slot instead of being refused; by default several do, and one as the task says."
            ),
            KEY,
            *SELECT,
        ),
        exits=(*FINDS, ExitCode.NO_SLOT, ExitCode.CONFLICT),
    ),
)
