"""`subtask`: a piece of work for one agent, in a task of its own, and its answer."""

from __future__ import annotations

import signal
from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any

from agentctl.adapters.taskdir import TaskDir
from agentctl.domain.text.plaintext import plain
from agentctl.errors import AgentctlError, ExitCode, NotFound
from agentctl.interfaces.commands.model.command_model import (
    AGENTS,
    FINDS,
    FLAG,
    SECONDS,
    TEXT,
    TEXTS,
    Command,
    Parameter,
    Showing,
    Shown,
)
from agentctl.interfaces.commands.model.invocation import Invocation
from agentctl.interfaces.commands.model.parameters import IN_TASK, of_start
from agentctl.interfaces.commands.parts.foreground import in_foreground
from agentctl.interfaces.commands.parts.wait_notes import QuestionNotes, StrandedNotes
from agentctl.operations.start.options import OPTIONS, SUBTASK, given_options
from agentctl.operations.where.command_lines import command_line

if TYPE_CHECKING:
    from agentctl.domain.documents.workers.starts import BegunSubtask, RunningSubtask, SubtaskAnswer
    from agentctl.operations.delegate.subtasks import Subtask
    from agentctl.operations.show.subtask_answer import SubtaskEnd


def subtask(
    call: Invocation,
    *,
    agent: str,
    title: str,
    intent: str | None = None,
    artifact: list[str] | None = None,
    task_id: str | None = None,
    no_wait: bool = False,
    wait_seconds: float | None = None,
    **options: Any,
) -> Showing[SubtaskAnswer | RunningSubtask | BegunSubtask]:
    """Give an agent a task of its own below this one, and wait for its answer.

    It waits for a slot in the queue of the whole tree, and then until the end, through any questions. Exits with 0 for
    Success, 7 for Error and Cancel, 4 if it keeps running. Ctrl-C leaves the sub-task running. Without a task above,
    one is made.
    """
    made: list[TaskDir] = []

    def begin() -> Subtask:
        parent = _parent(call)
        from agentctl.operations.delegate.subtasks import SubtaskRequest, begin_subtask

        of_agent, of_worker = given_options(options)
        request = SubtaskRequest(
            agent=agent, title=title, intent=intent, artifacts=artifact or [], task_id=task_id,
            agent_options=of_agent, **of_worker,
        )  # fmt: skip
        return begin_subtask(parent, request, on_made=made.append)

    try:
        begun = yield from _or_refusal(call, begin)
        return (yield from _begun(call, begun) if no_wait else _stay(call, begun, wait_seconds))
    except KeyboardInterrupt:
        # The worker of a sub-task may be at work before `begin` returns.
        if not made or not made[0].instances():
            raise
        return (yield from _interrupted(call, made[0]))


def _or_refusal(
    call: Invocation, begin: Callable[[], Subtask]
) -> Generator[Shown[SubtaskAnswer | RunningSubtask], None, Subtask]:
    """Begin; with --json, a refusal is an answer too."""
    try:
        return begin()
    except AgentctlError as error:
        if call.json:
            from agentctl.operations.show.subtask_answer import refusal

            yield Shown(refusal(error).to_json())
        raise


def _parent(call: Invocation) -> TaskDir:
    """Return the task above; if none is chosen, one is made."""
    try:
        return call.task()
    except NotFound:
        if call.task_named is not None:
            raise
        from agentctl.operations.start.spawning import task_for_spawn  # Few sub-tasks make the task above them.

        return task_for_spawn(None, root=call.root_named, force=call.force)


def _begun(call: Invocation, begun: Subtask) -> Showing[BegunSubtask]:
    yield Shown(begun.to_json(), [f"{begun.task.id}: {begun.agent_id} {begun.spawned.status}"])
    call.warn(begun.spawned.warnings)
    return ExitCode.DONE


def _stay(call: Invocation, begun: Subtask, wait_s: float | None) -> Showing[SubtaskAnswer | RunningSubtask]:
    from agentctl.operations.delegate.subtasks import await_subtask

    with in_foreground(wait_s) as limit_s:
        on_asked = QuestionNotes(call.note, begun.task.root)
        on_stranded = StrandedNotes(call.note, command_line(begun.task, "resume", "--lost"))
        end = await_subtask(begun, wait_s=limit_s, on_asked=on_asked, on_stranded=on_stranded)
    _outlast_interrupts()
    return (yield from _ended(end))


def _interrupted(call: Invocation, child: TaskDir) -> Showing[SubtaskAnswer | RunningSubtask]:
    """Show the end of a sub-task whose caller is being cancelled, which begins with SIGINT; otherwise it runs on."""
    from agentctl.operations.delegate.subtasks import end_with_caller, find_subtask

    _outlast_interrupts()
    end = end_with_caller(find_subtask(child))
    if end is not None:
        return (yield from _ended(end))
    call.note(f"interrupted: {child.id} left running")
    call.note(f"hint: {command_line(child, 'wait-all')}; {command_line(child, 'cancel', '--all')}")
    return ExitCode.INTERRUPTED


def _outlast_interrupts() -> None:
    """Let no SIGINT cut or repeat the answer, which is about to be printed: a cancel of the caller sends it just then.

    A handler, and not SIG_IGN, which the programs started from now on would inherit.
    """
    signal.signal(signal.SIGINT, lambda *_: None)


def _ended(end: SubtaskEnd) -> Showing[SubtaskAnswer | RunningSubtask]:
    yield Shown(end.to_json(), _lines(end), notes=_notes(end))
    if end.status is None:
        return ExitCode.TIMED_OUT
    from agentctl.operations.show.subtask_answer import SUCCESS

    return ExitCode.DONE if end.status == SUCCESS else ExitCode.UNSUCCESSFUL


def _lines(end: SubtaskEnd) -> Iterator[str]:
    if end.status is None:
        yield f"{end.task_id} keeps running ({end.stopped})"
        return
    yield f"{end.task_id}: {end.status}" + (f": {plain(end.failure_reason)}" if end.failure_reason else "")
    for text in dict.fromkeys(filter(None, (end.summary, end.final_message))):
        yield plain(text, keep="\n\t")


def _notes(end: SubtaskEnd) -> Iterator[str]:
    if end.summary_cut and end.summary_cut.get("path"):
        yield f"the summary is cut; the full text is in {plain(end.summary_cut['path'])}"
    if end.cut:
        more = f"agentctl result {end.agent_id} --task {end.task_id} --max-bytes {end.cut['size']}"
        yield f"cut; the full text: {end.cut.get('path', more)}"


COMMANDS = (
    Command(
        "subtask",
        subtask,
        IN_TASK,
        """
agentctl subtask explore "Find the slow tests" --intent "Name the ten slowest, with reasons"
agentctl subtask plan "Plan the migration" --artifact docs/schema.md --artifact survey/explore-1/result.json
agentctl subtask general "Fix the flaky test" --no-wait --json
""",
        (
            Parameter(
                "agent", TEXT, "Which agent does it.", "AGENT", is_argument=True, is_required=True, completes=AGENTS
            ),
            Parameter("title", TEXT, "What it is about.", "TITLE", is_argument=True, is_required=True),
            Parameter("intent", TEXT, "What the sub-task is to achieve, at length.", "TEXT"),
            Parameter("artifact", TEXTS, "A file to work with: a path, or TASK/INSTANCE/FILE.", "REF"),
            Parameter("task_id", TEXT, "Its id, instead of one made from the title.", "TASK", typed="id"),
            Parameter("no_wait", FLAG, "Return as soon as its worker runs or is queued."),
            Parameter("wait_seconds", SECONDS, "How long to wait; afterwards it keeps running.", "N"),
            *of_start(tuple(option for option in OPTIONS if SUBTASK in option.also)),
        ),
        exits=(*FINDS, ExitCode.TIMED_OUT, ExitCode.UNSUCCESSFUL, ExitCode.CONFLICT),
    ),
)
