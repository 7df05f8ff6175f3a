"""`retry`: the work of an ended worker once more."""

from typing import Annotated

import typer

from agentctl.cli import options as opt
from agentctl.cli.render import warn
from agentctl.cli.starting import spawned_line
from agentctl.cli.verb import FINDS, module, verb
from agentctl.errors import ExitCode
from agentctl.operations.start.again import retry_worker

app = module()


@verb(
    app,
    "retry",
    exits=(*FINDS, ExitCode.NO_SLOT),
    examples="""
agentctl retry build
agentctl retry explore-1 --name explore-anew --queue
""",
)
def retry(
    call: opt.InTask,
    instance: opt.Instance,
    name: Annotated[
        str | None,
        typer.Option("--name", metavar="INSTANCE", help="The new worker's name; by default INSTANCE-2, -3, ..."),
    ] = None,
    queue: Annotated[bool, typer.Option("--queue", help="Wait for a slot instead of being refused.")] = False,
) -> None:
    """Start the work of an ended worker once more.

    A new worker gets the same command, or the same agent, prompt and options, in the same folder; if the old one had a
    worktree, in a new one. It has the environment of this call, waits for no other worker, and what it may do is
    decided as for a new start. `resume` continues an agent instead.
    """
    spawned = retry_worker(call.task(), instance, queue=queue, name=name)
    call.show(spawned.to_json(), [spawned_line(spawned)])
    warn(() if call.json else spawned.warnings)
