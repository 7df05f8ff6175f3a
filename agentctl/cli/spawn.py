"""`spawn`: start commands as workers, one or a batch, now or when there is a slot."""

from typing import Annotated

import typer

from agentctl.cli import options as opt
from agentctl.cli.completing import complete_instances
from agentctl.cli.prompts import SpawnVerb
from agentctl.cli.starting import start
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
def spawn(
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PROMPT | -- CMD ARGS...]", help="Work for an agent (- reads stdin), or a command."),
    ] = None,
    prompt: Annotated[str | None, typer.Option(hidden=True)] = None,
    agent: Annotated[
        str | None,
        typer.Option(metavar="AGENT", help="explore, plan, general or your own (agentctl agents); else general."),
    ] = None,
    driver: Annotated[str | None, typer.Option(metavar="DRIVER", help="claude or codex; else the first found.")] = None,
    model: Annotated[
        str | None, typer.Option(metavar="MODEL", help="The agent's model, as its program names it.")
    ] = None,
    effort: Annotated[str | None, typer.Option(metavar="LEVEL", help="How hard it thinks: low, medium, high.")] = None,
    max_turns: Annotated[int | None, typer.Option(metavar="N", help="How many tool rounds it may take.")] = None,
    max_budget_usd: Annotated[float | None, typer.Option(metavar="N", help="What it may cost, in US dollars.")] = None,
    permissions: Annotated[
        str | None,
        typer.Option(metavar="POLICY", help="ask, allow, deny, or rules in JSON; else the definition's, else ask."),
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the agent after its answer, for `send`.")] = False,
    output_schema: Annotated[
        str | None, typer.Option(metavar="FILE", help="A JSON schema that its final answer has to fit.")
    ] = None,
    shell: Annotated[
        str | None, typer.Option(metavar="LINE", help="A line for /bin/sh -c, instead of a command.")
    ] = None,
    name: Annotated[str | None, typer.Option(metavar="INSTANCE", help="Its name; else CMD and a number.")] = None,
    cwd: Annotated[str | None, typer.Option(metavar="FOLDER", help="Where it runs.")] = None,
    env: Annotated[list[str] | None, typer.Option(metavar="K=V", help="Set in its environment; repeatable.")] = None,
    timeout_seconds: Annotated[
        float | None,
        typer.Option(metavar="N", parser=opt.seconds, help="How long it may run; else the task's limit."),
    ] = None,
    grace_seconds: opt.GraceSeconds = None,
    queue: Annotated[bool, typer.Option("--queue", help="Wait for a slot instead of being refused.")] = False,
    priority: Annotated[int, typer.Option(metavar="N", help="In the queue, the higher starts first.")] = 0,
    after: Annotated[
        list[str] | None,
        typer.Option(
            metavar="INSTANCE",
            help="Start when this one has completed; repeatable; implies --queue.",
            autocompletion=complete_instances,
        ),
    ] = None,
    after_any: Annotated[
        bool, typer.Option("--after-any", help="Start when those of --after have ended, however.")
    ] = False,
    retries: Annotated[int, typer.Option(metavar="N", help="Try again so often when it fails.")] = 0,
    retry_delay_seconds: Annotated[
        float,
        typer.Option(metavar="N", parser=opt.seconds, help="Before the first retry; doubled for each other."),
    ] = 1.0,
    max_park_seconds: Annotated[
        float | None,
        typer.Option(
            metavar="N", parser=opt.seconds, help="Fail, if its account cannot be used for longer, and not wait."
        ),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="The same key twice starts one worker, and answers with it."),
    ] = None,
    reuse: Annotated[
        bool, typer.Option("--reuse", help="Let the same work over the same files (as git sees them) answer again.")
    ] = False,
    keep_children: Annotated[
        bool, typer.Option("--keep-children", help="Let what it leaves behind at its end live.")
    ] = False,
    worktree: Annotated[
        bool, typer.Option("--worktree", help="Run it in a git worktree and on a branch of its own.")
    ] = False,
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
) -> int:
    """Start an agent or a command as a worker.

    It goes on when this terminal is closed. Without a task, one is made.
    With --wait the exit code is the worker's own (128 + n for signal n; 7 where it has none); Ctrl-C then
    leaves the worker running.
    """
    return start(**locals())
