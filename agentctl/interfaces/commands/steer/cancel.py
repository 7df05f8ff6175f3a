"""`cancel`: stop workers, and report truthfully what has ended and what has not."""

from __future__ import annotations

from collections.abc import Iterator

from agentctl.domain.names import first_of
from agentctl.domain.states import TERMINAL
from agentctl.domain.text.plaintext import plain
from agentctl.domain.worker.ends import HIDDEN
from agentctl.errors import Argument, ExitCode, Next, UsageError, WithArguments
from agentctl.interfaces.commands.model.command_model import (
    FLAG,
    Carried,
    Command,
    Parameter,
    Shown,
)
from agentctl.interfaces.commands.model.invocation import Invocation
from agentctl.interfaces.commands.model.parameters import GRACE, IN_TASK, NAMED_INSTANCES, RECURSIVE
from agentctl.interfaces.commands.parts.selection import NOBODY, SELECT, Selection, workers_chosen
from agentctl.lean import TYPE_CHECKING
from agentctl.operations.stop.cancelling import Cancelled, cancel_workers, count_living
from agentctl.operations.where.command_lines import command_line

if TYPE_CHECKING:
    from agentctl.domain.documents.workers.ends import CancelledTree, CancelledWorker


def cancel(
    call: Invocation,
    *,
    instances: list[str] | None = None,
    everyone: bool = False,
    recursive: bool = False,
    grace_seconds: float | None = None,
    no_wait: bool = False,
    yes: bool = False,
    failed: bool = False,
    status: str | None = None,
    agent: str | None = None,
    words: str | None = None,
) -> Carried[CancelledWorker | CancelledTree | list[CancelledWorker]]:
    """Stop workers with all their processes.

    SIGINT, after a grace period SIGTERM, after another one SIGKILL. A worker is cancelled when nothing of its
    process tree is alive; survivors are listed. The workers that it started are cancelled first, in sub-tasks too.

    On a command line:
        Ctrl-C leaves the escalation running. Where you name neither workers nor --task, and have chosen no task in
        this terminal, you are asked first.
    """
    selection = Selection(failed, status, agent, words)
    if everyone == (bool(instances) or selection != Selection()):
        if everyone:
            raise UsageError(
                "all workers are meant, and some by name or selection",
                hint=WithArguments("leave out ", Argument("all"), ", or the names and the selection"),
            )
        hint = (Next("look around"), WithArguments("or give ", Argument("all")))
        raise UsageError("no worker is named or selected", hint=hint)
    if recursive and not everyone:
        raise UsageError(
            "sub-tasks are meant only with all workers",
            hint="a named worker is cancelled together with all that it started",
        )
    task = call.task()
    named = [] if everyone else workers_chosen(task, instances, selection)
    if not (named or everyone):
        return Shown([], notes=[f"nothing to cancel: {NOBODY}"])
    if not (yes or instances) and (count := len(named) or count_living(task, recursive=recursive)):
        call.confirm_for_all(f"Cancel {count} worker{'s' if count > 1 else ''} of task {plain(task.id)}?")
    try:
        done = cancel_workers(task, named, all_=everyone, recursive=recursive, grace_s=grace_seconds, wait=not no_wait)
    except KeyboardInterrupt:
        call.note("interrupted: the cancel goes on without this command")
        call.note(f"hint: {command_line(task, 'list')} shows the outcome")
        return ExitCode.INTERRUPTED
    is_as_asked = all(_is_as_asked(one, waited=not no_wait) for one in done)
    return _shown(done, one=len(instances or ()) == 1)._replace(code=ExitCode.DONE if is_as_asked else ExitCode.REFUSED)


def _shown(done: list[Cancelled], *, one: bool) -> Shown[CancelledWorker | CancelledTree | list[CancelledWorker]]:
    rows = [each.to_json() for each in done]
    return Shown(
        _with_those_below(rows) if one else rows,
        (line for each in done for line in _lines(each)),
        notes=([] if one else [_meanwhile(done)]) if done else ["nothing to cancel: every worker has ended"],
    )


def _with_those_below(rows: list[CancelledWorker]) -> CancelledWorker | CancelledTree:
    return {**rows[0], "withIt": rows[1:]} if rows[1:] else rows[0]


def _meanwhile(done: list[Cancelled]) -> str:
    """Say how many workers have left the queue to run since the command began."""
    started = [_name(one) for one in done if one.started_meanwhile]
    return f"started in the meantime: {len(started)}" + (f" ({first_of(started)})" if started else "")


def _is_as_asked(one: Cancelled, *, waited: bool) -> bool:
    return not one.survivors and (one.status in TERMINAL or not waited)


def _name(one: Cancelled) -> str:
    return one.agent_instance if one.task_id is None else f"{one.task_id}/{one.agent_instance}"


def _lines(one: Cancelled) -> Iterator[str]:
    name = _name(one)
    if one.status in TERMINAL and (one.note or not one.cancelled):
        was = "been cancelled" if one.cancelled else one.status
        yield f"{name} had {was} before; nothing changed"
    elif one.cancelled:
        yield f"{name} cancelled"
    else:
        yield f"{name} is still {one.status}" + (f": {plain(one.note)}" if one.note else "")
    if one.unguarded:
        yield f"  its shim was gone: what could be found of it has ended, and {HIDDEN}"
    for survivor in one.survivors:
        yield f"  pid {survivor.get('pid')}: {plain(survivor.get('command') or '')}"


COMMANDS = (
    Command(
        "cancel",
        cancel,
        IN_TASK,
        """
agentctl cancel explore-1
agentctl cancel explore-1 explore-2 --grace-seconds 1
agentctl cancel --all --recursive --no-wait
""",
        (
            NAMED_INSTANCES,
            Parameter("everyone", FLAG, "All that have not ended.", typed="all"),
            RECURSIVE,
            GRACE,
            Parameter("no_wait", FLAG, "Return as soon as the request is on disk."),
            Parameter("yes", FLAG, "Do not ask."),
            *SELECT,
        ),
        names_task=True,
    ),
)
