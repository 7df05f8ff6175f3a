"""`subtask`: a piece of work for one agent, in a task of its own, and its answer."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentctl.adapters.taskdir import TaskDir
from agentctl.cli import options as opt
from agentctl.cli.completing import complete_agents
from agentctl.cli.foreground import in_foreground
from agentctl.cli.render import QuestionNotes, note, out, out_json, out_now, plain, warn
from agentctl.cli.verb import FINDS, module, verb
from agentctl.errors import AgentctlError, ExitCode, NotFound
from agentctl.operations.where.locating import find_task

if TYPE_CHECKING:
    from agentctl.operations.delegate.subtasks import Subtask
    from agentctl.operations.show.subtask_answer import SubtaskEnd

app = module()


@verb(
    app,
    "subtask",
    exits=(*FINDS, ExitCode.TIMED_OUT, ExitCode.UNSUCCESSFUL),
    examples="""
agentctl subtask explore "Find the slow tests" --intent "Name the ten slowest, with reasons"
agentctl subtask plan "Plan the migration" --artifact docs/schema.md --artifact survey/explore-1/result.json
agentctl subtask general "Fix the flaky test" --no-wait --json
""",
)
def subtask(
    agent: Annotated[str, typer.Argument(metavar="AGENT", help="Who works on it.", autocompletion=complete_agents)],
    title: Annotated[str, typer.Argument(metavar="TITLE", help="What it is about.")],
    intent: Annotated[str | None, typer.Option(metavar="TEXT", help="What is to be brought about, at length.")] = None,
    artifact: Annotated[
        list[str] | None,
        typer.Option(metavar="REF", help="A path, or TASK/INSTANCE/FILE, to work with; repeatable."),
    ] = None,
    priority: Annotated[int, typer.Option(metavar="N", help="In the queue, the higher starts first.")] = 0,
    task_id: Annotated[
        str | None, typer.Option("--id", metavar="TASK", help="Its id, instead of one made from the title.")
    ] = None,
    driver: Annotated[str | None, typer.Option(metavar="DRIVER", help="Which program runs the agent.")] = None,
    model: Annotated[str | None, typer.Option(metavar="MODEL", help="The agent's model.")] = None,
    max_turns: Annotated[int | None, typer.Option(metavar="N", help="How many tool rounds it may take.")] = None,
    permissions: Annotated[
        str | None, typer.Option(metavar="POLICY", help="ask, allow, deny, or rules in JSON; before the task's.")
    ] = None,
    cwd: Annotated[str | None, typer.Option(metavar="FOLDER", help="Where it runs.")] = None,
    timeout_seconds: Annotated[
        float | None, typer.Option(metavar="N", parser=opt.seconds, help="How long it may run; else the task's limit.")
    ] = None,
    worktree: Annotated[
        bool, typer.Option("--worktree", help="Run it in a git worktree and on a branch of its own.")
    ] = False,
    no_wait: Annotated[bool, typer.Option("--no-wait", help="Return when its worker runs or is queued.")] = False,
    wait_seconds: Annotated[
        float | None, typer.Option(metavar="N", parser=opt.seconds, help="How long to wait; it runs on after that.")
    ] = None,
    task: opt.Task = None,
    root: opt.Root = None,
    force: opt.Force = False,
    json: opt.Json = False,
) -> int:
    """Give an agent a task of its own below this one, and wait for its answer.

    It waits for a slot in the queue of the whole tree, and through questions to the end. Exits with 0 for Success,
    7 for Error and Cancel; 4 where it runs on. Ctrl-C leaves the sub-task running. Without a task above, one is made.
    """
    wishes = {"driver": driver, "model": model, "max_turns": max_turns, "permissions": permissions}
    try:
        parent = _parent(task, root, force)
        from agentctl.operations.delegate.subtasks import SubtaskRequest, begin_subtask

        request = SubtaskRequest(
            agent=agent, title=title, intent=intent, artifacts=artifact or [], priority=priority, task_id=task_id,
            wishes={name: value for name, value in wishes.items() if value is not None}, cwd=cwd,
            timeout_seconds=timeout_seconds, worktree=worktree,
        )  # fmt: skip
        begun = begin_subtask(parent, request)
    except AgentctlError as error:
        if json:
            from agentctl.operations.show.subtask_answer import refusal

            out_json(refusal(error).to_json())
        raise
    return _tell_begun(begun, json=json) if no_wait else _stay(begun, wait_seconds, json=json)


def _parent(task: str | None, root: str | None, force: bool) -> TaskDir:
    """Return the task above; where none is chosen, one is made."""
    try:
        return find_task(task, root=root, force=force)
    except NotFound:
        if task is not None:
            raise
        from agentctl.operations.start.spawning import task_for_spawn  # Few sub-tasks make the task above them.

        return task_for_spawn(task, root=root, force=force, tell=note)


def _tell_begun(begun: "Subtask", *, json: bool) -> int:
    if json:
        out_json(begun.to_json())
    else:
        out(f"{begun.task.id}: {begun.agent_id} {begun.spawned.status}")
    warn([plain(warning) for warning in begun.spawned.warnings])
    return ExitCode.DONE


def _stay(begun: "Subtask", wait_s: float | None, *, json: bool) -> int:
    from agentctl.operations.delegate.subtasks import await_subtask, end_with_caller

    try:
        with in_foreground(wait_s) as limit_s:
            return _answer(await_subtask(begun, wait_s=limit_s, on_asked=QuestionNotes()), json=json)
    except KeyboardInterrupt:
        # The cancel of the worker that this runs in ends with SIGINT: its program is told what became of the sub-task.
        end = end_with_caller(begun)
        if end is not None:
            return _answer(end, json=json)
        note(f"interrupted: {begun.task.id} left running")
        note(f"hint: agentctl wait-all --task {begun.task.id}; agentctl cancel --all --task {begun.task.id}")
        return ExitCode.INTERRUPTED


def _answer(end: "SubtaskEnd", *, json: bool) -> int:
    if json:
        out_json(end.to_json())
    else:
        _tell(end)
    if end.status is None:
        return ExitCode.TIMED_OUT
    from agentctl.operations.show.subtask_answer import SUCCESS

    return ExitCode.DONE if end.status == SUCCESS else ExitCode.UNSUCCESSFUL


def _tell(end: "SubtaskEnd") -> None:
    if end.status is None:
        out(f"{end.task_id} runs on ({end.stopped})")
        return
    out(f"{end.task_id}: {end.status}" + (f": {plain(end.failure_reason)}" if end.failure_reason else ""))
    told: dict[str, Any] = {"summary": end.summary, "answer": end.final_message}
    for text in dict.fromkeys(filter(None, told.values())):
        out_now(plain(text, keep="\n\t"))
    if end.summary_cut and end.summary_cut.get("path"):
        note(f"the summary is cut: the whole is in {plain(end.summary_cut['path'])}")
    if end.whole:
        more = f"agentctl result {end.agent_id} --task {end.task_id} --max-bytes {end.whole['size']}"
        note(f"cut: the whole is in {end.whole['path']}" if "path" in end.whole else f"cut: the whole: {more}")
