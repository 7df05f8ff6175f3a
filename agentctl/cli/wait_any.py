"""`wait-any`: the next end or block, each given out once."""

from typing import TYPE_CHECKING, Annotated

import typer

from agentctl.cli import options as opt
from agentctl.cli.bell import Bell
from agentctl.cli.ends import ended_line, reporting_the_stop
from agentctl.cli.foreground import in_foreground
from agentctl.cli.invocation import Invocation
from agentctl.cli.render import HeldNotes, QuestionNotes, RefusedNotes, StrandedNotes
from agentctl.cli.verb import FINDS, module, verb
from agentctl.domain.states import PARKED, STALLED, Status
from agentctl.errors import ExitCode, UsageError
from agentctl.hosts.printed import until_printed
from agentctl.operations.wait.waiting import wait_any
from agentctl.operations.where.command_lines import command_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from agentctl.operations.wait.waiting import WaitedEnd

app = module()

_KINDS: tuple[str, ...] = (Status.COMPLETED, Status.FAILED, Status.CANCELLED, Status.BLOCKED, STALLED, PARKED)


@verb(
    app,
    "wait-any",
    exits=(*FINDS, ExitCode.TIMED_OUT, ExitCode.NOTHING_LEFT),
    examples="""
agentctl wait-any
agentctl wait-any explore-1 explore-2 --timeout-seconds 60 --json
agentctl wait-any --recursive
agentctl wait-any --hosts all
while line=$(agentctl wait-any --for completed,failed,cancelled); do echo "$line"; done
""",
)
def wait_any_command(
    call: opt.InTask,
    instances: opt.AnyInstances = None,
    timeout_seconds: opt.WaitSeconds = None,
    consumer: Annotated[
        str | None,
        typer.Option(
            "--consumer",
            metavar="NAME",
            help="Who is asking: each consumer is given each end once; by default `default`.",
        ),
    ] = None,
    kinds: Annotated[
        str | None,
        typer.Option(
            "--for",
            metavar="LIST",
            help="Any of completed,failed,cancelled,blocked,stalled,parked; by default all but the last two.",
        ),
    ] = None,
    recursive: opt.Recursive = False,
    hosts: opt.Hosts = None,
) -> None:
    """Wait for the next worker to end or to block.

    Prints the earliest end or block that this consumer has not been given yet, at once if there is one. Without
    --timeout-seconds the task's `timeoutSeconds` is the limit. With --hosts it is one wait over several hosts: each
    keeps what its consumer was given, and the host stands in front of the end.
    """
    if hosts is not None:
        from agentctl.cli.wait_across import wait_any_across

        _statuses(kinds)
        options = {"--consumer": consumer, "--for": kinds, "--task": call.task_named, "--root": call.root_named}
        argv = ["wait-any", "--json", *[f"{name}={value}" for name, value in options.items() if value is not None]]
        argv += ["--recursive"] * recursive + ["--force"] * call.force
        with in_foreground(timeout_seconds) as limit_s:
            wait_any_across(call, hosts, argv, instances or [], limit_s)
        return
    task = call.task()
    bell = Bell(task)
    with reporting_the_stop(call), in_foreground(timeout_seconds) as limit_s:
        wait_any(
            task,
            instances or [],
            timeout_s=limit_s,
            consumer=consumer,
            kinds=_statuses(kinds),
            deliver=_delivery(call, bell),
            recursive=recursive,
            on_asked=bell.before(QuestionNotes(task.root)),
            on_stranded=StrandedNotes(command_line(task, "resume", "--lost")),
            on_refused=RefusedNotes(),
            on_held=HeldNotes(),
        )


def _delivery(call: Invocation, bell: Bell) -> "Callable[[WaitedEnd], None]":
    """Return a function that prints an end; once it returns, the end counts as given."""

    def deliver(end: "WaitedEnd") -> None:
        call.show(end.to_json(), [ended_line(end) + (" [given again]" if end.redelivered else "")])
        until_printed()
        bell.ring(is_last=True)

    return deliver


def _statuses(kinds: str | None) -> frozenset[str] | None:
    if kinds is None:
        return None
    names = [name.strip() for name in kinds.split(",") if name.strip()]
    unknown = [name for name in names if name not in _KINDS]
    if unknown or not names:
        raise UsageError(f"--for cannot wait for {', '.join(unknown) or 'nothing'}", hint=f"known: {', '.join(_KINDS)}")
    return frozenset(names)
