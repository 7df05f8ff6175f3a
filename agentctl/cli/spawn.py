"""`spawn`, `spawn-template`, `resume-queue`: start workers, one or many, now or when there is a slot."""

from typing import Annotated, Any

import typer

from agentctl.cli import options as opt
from agentctl.cli.spawnline import SpawnVerb
from agentctl.cli.starting import requeue, start_and_report, start_from_template
from agentctl.cli.startoptions import with_start_options
from agentctl.cli.verb import FINDS, module, verb
from agentctl.errors import ExitCode
from agentctl.operations.start.options import OPTIONS, OUTPUT, QUEUE, WORK

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
@with_start_options(OPTIONS)
def spawn(
    call: opt.InTask,
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PROMPT | -- CMD ARGS...]", help="Work for an agent (- reads stdin), or a command."),
    ] = None,
    prompt: Annotated[str | None, typer.Option("--prompt", hidden=True)] = None,
    shell: Annotated[
        str | None,
        typer.Option(
            "--shell", metavar="LINE", help="A line for /bin/sh -c, instead of a command.", rich_help_panel=WORK
        ),
    ] = None,
    batch: Annotated[
        str | None,
        typer.Option(
            "--batch",
            metavar="FILE",
            help="Many workers: JSON lines whose keys are the names of these options; - is stdin.",
            rich_help_panel=WORK,
        ),
    ] = None,
    queue: Annotated[
        bool, typer.Option("--queue", help="Wait for a slot instead of being refused.", rich_help_panel=QUEUE)
    ] = False,
    wait: Annotated[
        bool,
        typer.Option("--wait", help="Stay until it has ended; exit with its exit code.", rich_help_panel=OUTPUT),
    ] = False,
    roster: Annotated[bool, typer.Option("--roster", hidden=True)] = False,
    resume_queue: Annotated[bool, typer.Option("--resume-queue", hidden=True)] = False,
    **options: Any,
) -> int:
    """Start an agent or a command as a worker.

    It keeps running when this terminal is closed. Without a task, one is made.
    With --wait the exit code is the worker's own (128 + n for signal n; 7 if it has none); Ctrl-C then
    leaves the worker running.
    """
    given = locals()
    return start_and_report(**given.pop("options"), **given)


@verb(
    app,
    "spawn-template",
    exits=(*FINDS, ExitCode.UNSUCCESSFUL),
    examples="""
agentctl new --template survey --set path=. && agentctl spawn-template
agentctl spawn-template --wait --json
""",
)
def spawn_template(
    call: opt.InTask,
    wait: Annotated[bool, typer.Option("--wait", help="Stay until they have ended.")] = False,
) -> int:
    """Start the workers of the template that the task was made from.

    They go to the queue, and can be started once. `new --template NAME --start` does both steps. With --wait the exit
    code is 0 only if all of them completed.
    """
    return start_from_template(call, wait=wait)


@verb(app, "resume-queue", examples="agentctl resume-queue\nagentctl resume-queue --task survey-auth --json")
def resume_queue(call: opt.InTask) -> int:
    """Give this command's environment to queued workers that have lost theirs.

    The environments of queued workers are kept in memory: a reboot or a logout takes them, and the workers stay
    queued. Prints the workers that have one again; `doctor` names those that lack one.
    """
    return requeue(call)
