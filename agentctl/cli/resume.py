"""`resume`: continue ended agents."""

from typing import Annotated

import typer

from agentctl.cli import options as opt
from agentctl.cli.completing import complete_instances
from agentctl.cli.starting import spawned_line
from agentctl.cli.verb import FINDS, module, verb
from agentctl.errors import ExitCode, UsageError
from agentctl.operations.delegate.resuming import resume_lost, resume_worker

app = module()


@verb(
    app,
    "resume",
    exits=(*FINDS, ExitCode.NO_SLOT),
    examples="""
agentctl resume explore-1 "And which of them are tested?"
agentctl resume --lost
""",
)
def resume(
    call: opt.InTask,
    instance: Annotated[
        str | None, typer.Argument(metavar="INSTANCE", help="The ended agent.", autocompletion=complete_instances)
    ] = None,
    prompt: Annotated[
        str | None, typer.Argument(metavar="PROMPT", help="What to do now; by default, to carry on.")
    ] = None,
    lost: Annotated[bool, typer.Option("--lost", help="All agents that a crash or a reboot ended.")] = False,
    name: Annotated[str | None, typer.Option("--name", metavar="INSTANCE", help="The new worker's name.")] = None,
    queue: Annotated[bool, typer.Option("--queue", help="Wait for a slot instead of being refused.")] = False,
) -> None:
    """Continue an ended agent in its own session.

    This starts a new worker with the same agent id, model and role. Messages that the ended worker had not read are
    passed on.
    """
    if lost == (instance is not None):
        raise UsageError("give one of INSTANCE and --lost", hint="agentctl resume --help")
    place = call.task()
    if instance is not None:
        spawned = [resume_worker(place, instance, prompt, queue=queue, name=name)]
    else:
        spawned = resume_lost(place, queue=True)
    rows = [one.to_json() for one in spawned]
    notes = [] if spawned else ["no agent was lost that could be continued"]
    call.show(rows if lost else rows[0], map(spawned_line, spawned), notes=notes)
