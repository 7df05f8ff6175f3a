"""`wait`, `wait-all`: to the end, through questions."""

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

from agentctl.adapters.taskdir import TaskDir
from agentctl.cli import options as opt
from agentctl.cli.ends import ended_line, reporting_the_stop
from agentctl.cli.foreground import in_foreground
from agentctl.cli.render import QuestionNotes, is_terminal, out, out_json
from agentctl.cli.verb import FINDS, module, verb
from agentctl.domain.states import Status
from agentctl.errors import ExitCode
from agentctl.operations.wait.waiting import OnAsked, WaitedEnd, wait_all
from agentctl.operations.where.locating import find_task

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
def wait(
    instances: opt.Instances,
    timeout_seconds: opt.WaitSeconds = None,
    task: opt.Task = None,
    root: opt.Root = None,
    force: opt.Force = False,
    json: opt.Json = False,
) -> int:
    """Wait until the named workers have ended.

    Questions do not end the wait; stderr tells that there are some. Exits with 0 only if all of them completed.
    """
    with reporting_the_stop(json):
        ends = _wait(find_task(task, root=root, force=force), instances, timeout_seconds)
    return _answer(ends, json=json, one=len(instances) == 1)


@verb(
    app,
    "wait-all",
    exits=_EXITS,
    examples="""
agentctl wait-all
agentctl wait-all --timeout-seconds 600 --json
""",
)
def wait_all_command(
    timeout_seconds: opt.WaitSeconds = None,
    task: opt.Task = None,
    root: opt.Root = None,
    force: opt.Force = False,
    json: opt.Json = False,
) -> int:
    """Wait until all workers of the task have ended.

    On a terminal it shows them at work. Exits with 0 only if all of them completed.
    """
    with reporting_the_stop(json):
        ends = _wait(find_task(task, root=root, force=force), [], timeout_seconds)
    return _answer(ends, json=json, one=False)


def _wait(place: TaskDir, instances: list[str], timeout_s: float | None) -> list[WaitedEnd]:
    with _shown() as (on_change, on_asked), in_foreground(timeout_s) as limit_s:
        return wait_all(place, instances, timeout_s=limit_s, on_change=on_change, on_asked=on_asked)


@contextlib.contextmanager
def _shown() -> Iterator[tuple[Callable[[list[dict[str, Any]]], None] | None, OnAsked]]:
    """Give what draws the workers while they are waited for (None where nobody looks), and what tells of questions."""
    if not is_terminal(sys.stderr):
        yield None, QuestionNotes()
        return
    from agentctl.cli.tables import LiveWorkers

    with LiveWorkers() as live:
        yield live.show, live.note_asked


def _answer(ends: list[WaitedEnd], *, json: bool, one: bool) -> int:
    if json:
        told = [end.to_json() for end in ends]
        out_json(told[0] if one else told)
    else:
        for end in ends:
            out(ended_line(end))
    completed = all(end.status == Status.COMPLETED for end in ends)
    return ExitCode.DONE if completed else ExitCode.UNSUCCESSFUL
