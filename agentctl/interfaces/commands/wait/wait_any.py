"""`wait-any`: the next end or block, each given out once."""

from __future__ import annotations

from functools import partial

from agentctl.domain.states import PARKED, STALLED, Status
from agentctl.errors import Argument, ExitCode, UsageError, WithArguments
from agentctl.interfaces.commands.model.command_model import (
    CONSUMERS,
    END_LIST,
    FINDS,
    TEXT,
    Command,
    Parameter,
    Showing,
    Shown,
)
from agentctl.interfaces.commands.model.far_line import far_line
from agentctl.interfaces.commands.model.invocation import Invocation
from agentctl.interfaces.commands.model.parameters import ANY_INSTANCES, HOSTS, IN_TASK, RECURSIVE, TIMEOUT
from agentctl.interfaces.commands.parts.bell import Bell
from agentctl.interfaces.commands.parts.foreground import in_foreground
from agentctl.interfaces.commands.parts.told_ends import ended_line, reporting_the_stop
from agentctl.interfaces.commands.parts.wait_notes import HeldNotes, QuestionNotes, RefusedNotes, StrandedNotes
from agentctl.interfaces.hosts.printed import until_printed
from agentctl.lean import TYPE_CHECKING
from agentctl.operations.wait.waiting import next_end
from agentctl.operations.where.command_lines import command_line

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from agentctl.adapters.taskdir import TaskDir
    from agentctl.domain.documents.workers.ends import EndedElsewhere, EndedWorker, StoppedWait
    from agentctl.operations.wait.waiting import WaitedEnd

#: What can be waited for.
KINDS: tuple[str, ...] = (Status.COMPLETED, Status.FAILED, Status.CANCELLED, Status.BLOCKED, STALLED, PARKED)


def wait_any_command(
    call: Invocation,
    *,
    instances: list[str] | None = None,
    timeout_seconds: float | None = None,
    consumer: str | None = None,
    kinds: str | None = None,
    recursive: bool = False,
    hosts: str | None = None,
) -> Showing[EndedWorker | EndedElsewhere | StoppedWait]:
    """Wait for the next worker to end or to block.

    It tells the earliest end or block that this consumer has not been given yet, at once if there is one. Where no
    limit is named, the task's `timeoutSeconds` is the limit.

    On a command line:
        With --hosts it is one wait over several hosts: each remembers what its consumer was given, and the name of the
        host comes first.
    """
    statuses = _statuses(kinds)
    if hosts is not None:
        line = partial(
            far_line, "wait-any", call, instances=instances, consumer=consumer, kinds=kinds, recursive=recursive,
            json=True,
        )  # fmt: skip
        return _across(call, hosts, line, timeout_seconds)
    task = call.task()
    ending = partial(next_end, task, instances or [], consumer=consumer, kinds=statuses, recursive=recursive)
    return reporting_the_stop(call, _next(call, task, ending, timeout_seconds))


def _next(
    call: Invocation, task: TaskDir, ending: Callable[..., AbstractContextManager[WaitedEnd]], timeout_s: float | None
) -> Showing[EndedWorker]:
    """Yield the next end: once that returns, it is printed, and counts as given.

    Args:
        ending: `next_end`, with what is waited for.
    """
    bell = Bell(call, task)
    with (
        in_foreground(timeout_s) as limit_s,
        ending(
            timeout_s=limit_s,
            on_asked=bell.before(QuestionNotes(call.note, task.root)),
            on_stranded=StrandedNotes(call.note, command_line(task, "resume", "--lost")),
            on_refused=RefusedNotes(call.note),
            on_held=HeldNotes(call.note),
        ) as end,
    ):
        yield Shown(end.to_json(), [ended_line(end) + (" [given again]" if end.redelivered else "")])
        until_printed()
        bell.ring(is_last=True)
    return ExitCode.DONE


def _across(
    call: Invocation, hosts: str, line: Callable[..., list[str]], timeout_s: float | None
) -> Showing[EndedElsewhere]:
    from agentctl.interfaces.commands.wait.wait_on_hosts import wait_any_across

    with in_foreground(timeout_s) as limit_s:
        yield from wait_any_across(call, hosts, line, limit_s)
    return ExitCode.DONE


def _statuses(kinds: str | None) -> frozenset[str] | None:
    if kinds is None:
        return None
    names = [name.strip() for name in kinds.split(",") if name.strip()]
    unknown = [name for name in names if name not in KINDS]
    if unknown or not names:
        raise UsageError(
            WithArguments(Argument("for"), f" cannot wait for {', '.join(unknown) or 'nothing'}"),
            hint=f"known: {', '.join(KINDS)}",
        )
    return frozenset(names)


COMMANDS = (
    Command(
        "wait-any",
        wait_any_command,
        IN_TASK,
        """
agentctl wait-any
agentctl wait-any explore-1 explore-2 --timeout-seconds 60 --json
agentctl wait-any --recursive
agentctl wait-any --hosts all
while line=$(agentctl wait-any --for completed,failed,cancelled); do echo "$line"; done
""",
        (
            ANY_INSTANCES,
            TIMEOUT,
            Parameter(
                "consumer",
                TEXT,
                "Who is asking: each consumer is given each end once; by default `default`.",
                "NAME",
                completes=CONSUMERS,
            ),
            Parameter(
                "kinds",
                TEXT,
                "Any of completed,failed,cancelled,blocked,stalled,parked; by default all but the last two.",
                "LIST",
                typed="for",
                listed=KINDS,
                completes=END_LIST,
            ),
            RECURSIVE,
            HOSTS,
        ),
        exits=(*FINDS, ExitCode.TIMED_OUT, ExitCode.NOTHING_LEFT),
    ),
)
