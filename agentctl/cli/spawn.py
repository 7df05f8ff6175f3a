"""`spawn`: start commands as workers, one or a batch, now or when there is a slot."""

from typing import Annotated, Any

import typer

from agentctl.cli import options as opt
from agentctl.cli.prompts import SpawnVerb
from agentctl.cli.starting import start
from agentctl.cli.startoptions import with_options
from agentctl.cli.verb import FINDS, module, verb
from agentctl.errors import ExitCode

app = module()


@verb(
    app,
    "spawn",
    kind=SpawnVerb,
    allow_interspersed_args=False,
    exits=(*FINDS, ExitCode.NO_SLOT, ExitCode.UNSUCCESSFUL),
    examples="""
agentctl spawn -- make test
agentctl spawn --name lint --queue --retries 2 -- ruff check .
agentctl spawn --agent explore "Which modules read the configuration?"
agentctl spawn --after lint --shell "make build | tee build.log"
printf '{"name": "a1", "argv": ["true"]}\\n' | agentctl spawn --batch -
""",
)
@with_options
def spawn(
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PROMPT | -- CMD ARGS...]", help="Work for an agent (- reads stdin), or a command."),
    ] = None,
    prompt: Annotated[str | None, typer.Option(hidden=True)] = None,
    shell: Annotated[
        str | None, typer.Option(metavar="LINE", help="A line for /bin/sh -c, instead of a command.")
    ] = None,
    queue: Annotated[bool, typer.Option("--queue", help="Wait for a slot instead of being refused.")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Stay until it has ended; exit with its exit code.")] = False,
    batch: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Many workers: JSON lines with these options' names; - is stdin."),
    ] = None,
    roster: Annotated[
        bool, typer.Option("--roster", help="The workers of the template that the task was made from.")
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume-queue", help="Give queued workers whose environment is gone this one.")
    ] = False,
    task: opt.Task = None,
    root: opt.Root = None,
    force: opt.Force = False,
    json: opt.Json = False,
    **options: Any,
) -> int:
    """Start an agent or a command as a worker.

    It goes on when this terminal is closed. Without a task, one is made.
    With --wait the exit code is the worker's own (128 + n for signal n; 7 where it has none); Ctrl-C then
    leaves the worker running.
    """
    given = locals()
    return start(**given.pop("options"), **given)
