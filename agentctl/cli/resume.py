"""`resume`: continue ended agents."""

from typing import Annotated

import typer

from agentctl.cli import options as opt
from agentctl.cli.completing import complete_instances
from agentctl.cli.render import note, out_json, out_now
from agentctl.cli.starting import spawned_line
from agentctl.cli.verb import FINDS, module, verb
from agentctl.errors import ExitCode, UsageError
from agentctl.operations.delegate.resuming import resume_lost, resume_worker
from agentctl.operations.where.locating import find_task

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
    instance: Annotated[
        str | None, typer.Argument(metavar="INSTANCE", help="The ended agent.", autocompletion=complete_instances)
    ] = None,
    prompt: Annotated[str | None, typer.Argument(metavar="PROMPT", help="What it is to do now; else go on.")] = None,
    lost: Annotated[bool, typer.Option("--lost", help="All agents that a crash or a reboot took.")] = False,
    name: Annotated[str | None, typer.Option(metavar="INSTANCE", help="The new worker's name.")] = None,
    queue: Annotated[bool, typer.Option("--queue", help="Wait for a slot instead of being refused.")] = False,
    task: opt.Task = None,
    root: opt.Root = None,
    force: opt.Force = False,
    json: opt.Json = False,
) -> None:
    """Continue an ended agent from its own session.

    It is a new worker of the same agent id, with the same model and role. Messages that the ended one had not
    read are passed on.
    """
    if lost == (instance is not None):
        raise UsageError("give one of INSTANCE and --lost", hint="agentctl resume --help")
    place = find_task(task, root=root, force=force)
    if instance is not None:
        spawned = [resume_worker(place, instance, prompt, queue=queue, name=name)]
    else:
        spawned = resume_lost(place, queue=True)
    if json:
        out_json([one.to_json() for one in spawned] if lost else spawned[0].to_json())
        return
    for one in spawned:
        out_now(spawned_line(one))
    if not spawned:
        note("no agent was lost that could be continued")
