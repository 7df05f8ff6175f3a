"""`wait`, `wait-all`: wait until workers have ended; a question does not end the wait."""

import contextlib
import sys
from collections.abc import Callable, Iterator

from agentctl.adapters.taskdir import TaskDir
from agentctl.cli import options as opt
from agentctl.cli.bell import Bell
from agentctl.cli.ends import ended_line, reporting_the_stop
from agentctl.cli.foreground import in_foreground
from agentctl.cli.invocation import Invocation
from agentctl.cli.render import HeldNotes, QuestionNotes, RefusedNotes, StrandedNotes, is_terminal
from agentctl.cli.verb import FINDS, module, verb
from agentctl.domain.states import EndStatus
from agentctl.domain.worker_row import WorkerRow
from agentctl.errors import ExitCode
from agentctl.lean import NamedTuple
from agentctl.operations.wait.rounds import OnHeld, OnStranded
from agentctl.operations.wait.waiting import OnAsked, WaitedEnd, wait_all
from agentctl.operations.where.command_lines import command_line, root_words

app = module()

_EXITS = (*FINDS, ExitCode.TIMED_OUT, ExitCode.NOTHING_LEFT, ExitCode.UNSUCCESSFUL)


@verb(
    app,
    "wait",
    exits=_EXITS,
    examples="""
agentctl wait explore-1
agentctl wait explore-1 explore-2 --timeout-seconds 600
agentctl wait build && agentctl result build
""",
)
def wait(call: opt.InTask, instances: opt.Instances, timeout_seconds: opt.WaitSeconds = None) -> int:
    """Wait until the named workers have ended.

    Questions do not end the wait; stderr says that they are open. Exits with 0 only if all of them completed.
    """
    with reporting_the_stop(call):
        ends = _wait(call.task(), instances, timeout_seconds)
    return _show(call, ends, one=len(instances) == 1)


@verb(
    app,
    "wait-all",
    exits=_EXITS,
    examples="""
agentctl wait-all
agentctl wait-all --timeout-seconds 600 --json
""",
)
def wait_all_command(call: opt.InTask, timeout_seconds: opt.WaitSeconds = None) -> int:
    """Wait until all workers of the task have ended.

    On a terminal it shows them at work. Exits with 0 only if all of them completed.
    """
    with reporting_the_stop(call):
        ends = _wait(call.task(), [], timeout_seconds)
    return _show(call, ends, one=False)


def _wait(task: TaskDir, instances: list[str], timeout_s: float | None) -> list[WaitedEnd]:
    bell = Bell(task)
    command = command_line(task, "resume", "--lost")
    with _following(task, command) as said, in_foreground(timeout_s) as limit_s:
        try:
            return wait_all(
                task, instances, timeout_s=limit_s, on_change=said.on_change, on_asked=bell.before(said.on_asked),
                on_stranded=said.on_stranded, on_held=said.on_held, on_refused=RefusedNotes(),
            )  # fmt: skip
        finally:
            bell.ring(is_last=True)


class _Said(NamedTuple):
    """What a wait calls: one draws the workers, if stderr is a terminal; the others report what is unusual."""

    on_change: Callable[[list[WorkerRow]], None] | None
    on_asked: OnAsked
    on_stranded: OnStranded
    on_held: OnHeld


@contextlib.contextmanager
def _following(task: TaskDir, command: str) -> Iterator[_Said]:
    """Yield the functions for the wait.

    Args:
        command: The command line that has stranded workers started.
    """
    if not is_terminal(sys.stderr):
        yield _Said(None, QuestionNotes(task.root), StrandedNotes(command), HeldNotes())
        return
    from agentctl.cli.tables import LiveWorkers

    with LiveWorkers(command, root_words(task.root)) as live:
        yield _Said(live.show, live.note_asked, live.note_stranded, live.note_held)


def _show(call: Invocation, ends: list[WaitedEnd], *, one: bool) -> int:
    rows = [end.to_json() for end in ends]
    call.show(rows[0] if one else rows, map(ended_line, ends))
    completed = all(end.status is EndStatus.COMPLETED for end in ends)
    return ExitCode.DONE if completed else ExitCode.UNSUCCESSFUL
