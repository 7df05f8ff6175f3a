"""`wait`, `wait-all`: wait until workers have ended; a question does not end the wait. `wait --any` is `wait-any`."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator

from agentctl.adapters.taskdir import TaskDir
from agentctl.domain.states import EndStatus
from agentctl.errors import Argument, AtTerminal, ExitCode, Next, UsageError, WithArguments
from agentctl.interfaces.commands.model.command_model import FINDS, FLAG, Command, Parameter, Showing, Shown
from agentctl.interfaces.commands.model.invocation import Invocation
from agentctl.interfaces.commands.model.parameters import IN_TASK, NAMED_INSTANCES, TIMEOUT
from agentctl.interfaces.commands.parts.bell import Bell
from agentctl.interfaces.commands.parts.foreground import in_foreground
from agentctl.interfaces.commands.parts.told_ends import ended_line, reporting_the_stop
from agentctl.interfaces.commands.parts.wait_notes import (
    AskedHere,
    HeldNotes,
    QuestionNotes,
    RefusedNotes,
    StrandedNotes,
    ends_shown,
)
from agentctl.lean import TYPE_CHECKING, NamedTuple
from agentctl.operations.wait.rounds import OnHeld, OnStranded
from agentctl.operations.wait.waiting import WaitedEnd, wait_all
from agentctl.operations.where.command_lines import command_line, root_words

if TYPE_CHECKING:
    from agentctl.domain.documents.workers.ends import EndedWorker, Ends, StoppedWait
    from agentctl.domain.documents.workers.worker import WorkerRow

_EXITS = (*FINDS, ExitCode.TIMED_OUT, ExitCode.NOTHING_LEFT, ExitCode.UNSUCCESSFUL)


def wait(
    call: Invocation,
    *,
    instances: list[str] | None = None,
    is_all: bool = False,
    is_any: bool = False,
    timeout_seconds: float | None = None,
) -> Showing[Ends]:
    """Wait until workers have ended.

    Questions do not end the wait.

    On a command line:
        At a terminal you answer them there and then, elsewhere stderr says that they are open. It exits with 0 only if
        all of the workers completed. With --all it waits for all workers of the task (`wait-all`); with --any for the
        next of them, or of those that are named, to end or to block (`wait-any`).
    """
    if is_all and (is_any or instances):
        raise UsageError(
            WithArguments(Argument("all"), " goes with no other worker and not with ", Argument("any")),
            hint=Next("help", "wait"),
        )
    if is_any:
        from agentctl.interfaces.commands.wait.wait_any import wait_any_command

        return wait_any_command(call, instances=instances, timeout_seconds=timeout_seconds)
    if is_all:
        return wait_all_command(call, timeout_seconds=timeout_seconds)
    if not instances:
        raise UsageError("no worker is named", hint=("its name", AtTerminal("or --all or --any of the task")))
    return reporting_the_stop(call, _wait(call, instances, timeout_seconds))


def wait_all_command(
    call: Invocation, *, timeout_seconds: float | None = None
) -> Showing[list[EndedWorker] | StoppedWait]:
    """Wait until all workers of the task have ended.

    On a command line:
        On a terminal it shows them at work, and you answer their questions there and then. It exits with 0 only if all
        of them completed.
    """
    return reporting_the_stop(call, _wait_all(call, timeout_seconds))


def _wait(call: Invocation, instances: list[str], timeout_s: float | None) -> Showing[EndedWorker | list[EndedWorker]]:
    ends = _awaited(call, call.task(), instances, timeout_s)
    rows = [end.to_json() for end in ends]
    yield Shown(rows[0] if len(instances) == 1 else rows, map(ended_line, ends))
    return _code(ends)


def _wait_all(call: Invocation, timeout_s: float | None) -> Showing[list[EndedWorker]]:
    ends = _awaited(call, call.task(), [], timeout_s)
    yield Shown([end.to_json() for end in ends], map(ended_line, ends))
    return _code(ends)


def _code(ends: list[WaitedEnd]) -> ExitCode:
    completed = all(end.status is EndStatus.COMPLETED for end in ends)
    return ExitCode.DONE if completed else ExitCode.UNSUCCESSFUL


def _awaited(call: Invocation, task: TaskDir, instances: list[str], timeout_s: float | None) -> list[WaitedEnd]:
    bell = Bell(call, task)
    with _following(call, task) as said, in_foreground(timeout_s) as limit_s:
        try:
            return wait_all(
                task, instances, timeout_s=limit_s, on_change=said.on_change, on_asked=bell.before(said.on_asked),
                on_stranded=said.on_stranded, on_held=said.on_held, on_refused=RefusedNotes(call.note),
                wakes=said.on_asked.wakes,
            )  # fmt: skip
        finally:
            bell.ring(is_last=True)


class _Said(NamedTuple):
    """What a wait calls: one shows the workers, if stderr is a terminal; the others report what is unusual."""

    on_change: Callable[[list[WorkerRow]], None] | None
    on_asked: AskedHere
    on_stranded: OnStranded
    on_held: OnHeld


@contextlib.contextmanager
def _following(call: Invocation, task: TaskDir) -> Iterator[_Said]:
    """Yield the functions for the wait."""
    command = command_line(task, "resume", "--lost")
    if not call.is_terminal("stderr") or os.environ.get("TERM") == "dumb":
        asked = AskedHere(call, task.root, QuestionNotes(call.note, task.root))
        on_change = ends_shown(call, asked)
        yield _Said(on_change, asked, StrandedNotes(call.note, command), HeldNotes(call.note))
        return
    from agentctl.interfaces.commands.parts.tables import LiveWorkers

    with LiveWorkers(command, root_words(task.root)) as live:
        asked = AskedHere(call, task.root, live.note_asked, live.hide)
        on_change = ends_shown(call, asked, live.show)
        yield _Said(on_change, asked, live.note_stranded, live.note_held)


COMMANDS = (
    Command(
        "wait",
        wait,
        IN_TASK,
        """
agentctl wait explore-1
agentctl wait explore-1 explore-2 --timeout-seconds 600
agentctl wait --all
agentctl wait build && agentctl result build
""",
        (
            NAMED_INSTANCES,
            Parameter("is_all", FLAG, "Wait for all workers of the task.", typed="all"),
            Parameter("is_any", FLAG, "Wait for the next one to end or to block.", typed="any"),
            TIMEOUT,
        ),
        exits=_EXITS,
    ),
    Command(
        "wait-all",
        wait_all_command,
        IN_TASK,
        """
agentctl wait-all
agentctl wait-all --timeout-seconds 600 --json
""",
        (TIMEOUT,),
        exits=_EXITS,
    ),
)
