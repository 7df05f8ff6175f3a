"""`resume`: continue ended agents."""

from __future__ import annotations

from collections.abc import Iterator

from agentctl.domain.names import first_of
from agentctl.errors import Argument, AtTerminal, ExitCode, Next, UsageError, WithArguments
from agentctl.interfaces.commands.model.command_model import (
    FINDS,
    FLAG,
    INSTANCES,
    TEXT,
    Carried,
    Command,
    Parameter,
    Showing,
    Shown,
)
from agentctl.interfaces.commands.model.invocation import Invocation
from agentctl.interfaces.commands.model.parameters import IN_TASK, KEY, QUEUE_UP
from agentctl.interfaces.commands.start.spawn import spawned_line
from agentctl.interfaces.words.value_words import local_time
from agentctl.lean import TYPE_CHECKING
from agentctl.operations.delegate.recovering import Recovered, recover_root, recover_task
from agentctl.operations.delegate.resuming import resume_worker
from agentctl.operations.where.calling import caller
from agentctl.operations.where.command_lines import program_words, root_option

if TYPE_CHECKING:
    from agentctl.domain.documents.workers.starts import SpawnedWorker


def resume(
    call: Invocation,
    *,
    instance: str | None = None,
    prompt: str | None = None,
    lost: bool = False,
    name: str | None = None,
    queue: bool | None = None,
    key: str | None = None,
) -> Carried[SpawnedWorker | list[SpawnedWorker]]:
    """Continue an ended agent in its own session.

    This starts a new worker with the same agent id, model and role. Messages that the ended worker had not read are
    passed on.

    On a command line:
        With --lost, what a crash or a reboot has stopped goes on: the queues of all tasks of the root (with your
        environment, where theirs is lost), and the agents that were found lost since the machine was started, but no
        more than a day ago. Agents lost earlier are only named; with --task, everything of that task goes on, whenever
        it was lost. `agentctl install boot` runs this at each boot.
    """
    if lost == (instance is not None):
        raise UsageError(WithArguments("give one of INSTANCE and ", Argument("lost")), hint=Next("help", "resume"))
    if instance is None:
        if key is not None:
            raise UsageError(
                WithArguments(Argument("key"), " is for one agent"),
                hint=AtTerminal("resume --lost may be typed again as it is"),
            )
        return _recover(call)
    spawned = resume_worker(call.task(), instance, prompt, queue=queue, name=name, key=key)
    return Shown(spawned.to_json(), [spawned_line(spawned)])


def _recover(call: Invocation) -> Showing[list[SpawnedWorker]]:
    """Continue what was lost. Where nothing was, nothing is printed but at a terminal: at boot nobody reads it."""
    if call.task_named is not None or caller() is not None:
        found = recover_task(call.task())
    else:
        found = recover_root(call.root(), call.task_if_any())
    notes = list(_notes(found)) if call.is_terminal("stderr") else []
    yield Shown([one.to_json() for one in found.workers], map(spawned_line, found.workers), notes=notes)
    for problem in found.problems:
        call.note_error(problem)
    return ExitCode.REFUSED if found.problems else ExitCode.DONE


def _notes(found: Recovered) -> Iterator[str]:
    """Yield what a person wants to know besides; at boot it would come as mail, each time."""
    if not found.workers and not found.problems and not found.left:
        yield "nothing was lost that could be continued, and no queue stands still"
    for one in found.left:
        words = [*program_words(), "resume", "--lost", "--task", one.task.id, *root_option(one.task.root)]
        lost = f"{first_of(one.instances)} of {one.task.id}"
        yield f"left alone, because lost earlier ({local_time(one.lost_at)}): {lost}; to continue: {' '.join(words)}"


COMMANDS = (
    Command(
        "resume",
        resume,
        IN_TASK,
        """
agentctl resume explore-1 "And which of them are tested?"
agentctl resume --lost
""",
        (
            Parameter("instance", TEXT, "The ended agent.", "INSTANCE", is_argument=True, completes=INSTANCES),
            Parameter("prompt", TEXT, "What to do now; by default, to carry on.", "PROMPT", is_argument=True),
            Parameter("lost", FLAG, "All that a crash or a reboot stopped, queues too."),
            Parameter("name", TEXT, "The new worker's name.", "INSTANCE"),
            QUEUE_UP,
            KEY,
        ),
        exits=(*FINDS, ExitCode.NO_SLOT, ExitCode.CONFLICT),
    ),
)
