"""`new`, `use`, `tasks`: make tasks, choose one, list them."""

import sys
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from agentctl.adapters.taskdir import TaskDir
from agentctl.cli import options as opt
from agentctl.cli.completing import complete_tasks, complete_templates
from agentctl.cli.render import is_terminal, note, out, out_fields, out_json, plain
from agentctl.cli.starting import spawned_line
from agentctl.cli.verb import FINDS, module, verb
from agentctl.errors import UsageError
from agentctl.operations.show.tasks import list_tasks
from agentctl.operations.start.new_task import create_task, use_task
from agentctl.operations.start.requests import Spawned
from agentctl.operations.where.locating import find_root

app = module()


@verb(
    app,
    "new",
    examples="""
agentctl new "Survey the auth module" --max-concurrent 3
agentctl new --template survey --set path=. --start
""",
)
def new(
    title: Annotated[str | None, typer.Argument(metavar="[TITLE]", help="What the task is about.")] = None,
    task_id: Annotated[
        str | None, typer.Option("--id", metavar="TASK", help="Its id, instead of one made from the title.")
    ] = None,
    max_concurrent: Annotated[int | None, typer.Option(metavar="N", help="How many workers may run at once.")] = None,
    timeout_seconds: Annotated[
        float | None, typer.Option(metavar="N", parser=opt.seconds, help="How long each worker may run.")
    ] = None,
    grace_seconds: opt.GraceSeconds = None,
    max_depth: Annotated[
        int | None, typer.Option(metavar="N", help="How deep workers may start workers of their own.")
    ] = None,
    template: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Make it from a template; shipped:NAME means none but the shipped one.",
            autocompletion=complete_templates,
        ),
    ] = None,
    values: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="K=V", help="A parameter of the template; repeatable."),
    ] = None,
    start: Annotated[bool, typer.Option("--start", help="Start the template's workers at once.")] = False,
    root: opt.Root = None,
    force: opt.Force = False,
    json: opt.Json = False,
) -> None:
    """Make a task and choose it.

    Prints its id and its folder, with a tab between. The limits that are not given come from
    ~/.config/agentctl/config.yaml, else from the defaults.
    """
    config = {
        "maxConcurrentAgents": max_concurrent,
        "timeoutSeconds": timeout_seconds,
        "graceSeconds": grace_seconds,
        "maxDepth": max_depth,
    }
    limits = {key: value for key, value in config.items() if value is not None}
    if template is None:
        if title is None or values or start:
            _refuse_without_template(title, "--set" if values else "--start")
        task = create_task(find_root(root, create=True, force=force), str(title), task_id=task_id, config=limits)
        _tell(json, task)
        return
    if limits:
        raise UsageError("a template brings its own limits", hint="change `config` in the task.yaml of the new task")
    from agentctl.operations.start.from_template import create_from_template, start_template

    found = find_root(root, create=True, force=force)
    task = create_from_template(found, template, _pairs(values or []), title=title, task_id=task_id)
    _tell(json, task, start_template(task) if start else [])
    if not start:
        note("hint: agentctl spawn --roster starts its workers")


def _refuse_without_template(title: str | None, option: str) -> None:
    if title is None:
        raise UsageError("a task needs a title", hint='agentctl new "Survey the auth module"')
    raise UsageError(f"{option} is for templates", hint="agentctl templates lists them")


def _pairs(values: list[str]) -> dict[str, str]:
    pairs = {}
    for value in values:
        key, equals, told = value.partition("=")
        if not key or not equals:
            raise UsageError(f"--set {value!r} is not of the form K=V")
        pairs[key] = told
    return pairs


def _tell(json: bool, task: TaskDir, spawned: list[Spawned] | None = None) -> None:
    if json:
        workers = {} if spawned is None else {"workers": [one.to_json() for one in spawned]}
        out_json({"taskId": task.id, "path": str(task.path), **workers})
        return
    out_fields(task.id, task.path)
    for one in spawned or []:
        out(spawned_line(one))


@verb(app, "use", examples="agentctl use survey-auth\nagentctl use survey-auth --json")
def use(
    task: Annotated[str, typer.Argument(metavar="TASK", help="Its id.", autocompletion=complete_tasks)],
    root: opt.Root = None,
    force: opt.Force = False,
    json: opt.Json = False,
) -> None:
    """Choose the task that later commands mean.

    It holds for all terminals that work below the same .agentctl folder. Prints its id and its folder, with a
    tab between.
    """
    _tell(json, use_task(find_root(root, force=force), task))


@verb(app, "tasks", examples="agentctl tasks\nagentctl tasks --json", exits=FINDS)
def tasks(root: opt.Root = None, force: opt.Force = False, json: opt.Json = False) -> None:
    """List the tasks.

    To a pipe, a line each: task, state, workers, `*` where it is the chosen one, createdAt, path, title.
    """
    rows = list_tasks(find_root(root, force=force))
    if json:
        out_json(rows)
    elif is_terminal(sys.stdout):
        _draw(rows)
    else:
        for row in rows:
            mark = "*" if row["current"] else None
            out_fields(row["taskId"], row["state"], row["workers"], mark, row["createdAt"], row["path"], row["title"])


def _draw(rows: list[dict[str, Any]]) -> None:
    if not rows:
        out('no task yet: agentctl new "TITLE" makes one')
        return
    from agentctl.cli.tables import draw

    statuses = ("running", "queued", "blocked", "completed", "failed", "cancelled")
    cells = [
        (
            "*" if row["current"] else " ",
            "  " * level + row["taskId"],
            row["state"],
            _counts(row, statuses),
            plain(row["title"]),
        )
        for row, level in _nested(rows)
    ]
    draw(("", "task", "state", "workers", "title"), cells, wide="title")


def _nested(rows: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], int]]:
    """Yield each task and how deep it stands, sub-tasks below the task that asked for them; each once."""
    left = {row["taskId"]: row for row in rows}
    below = {name for row in rows for name in row["childTaskIds"]}
    for first in [*(row for row in rows if row["taskId"] not in below), *rows]:
        stack = [(first["taskId"], 0)]
        while stack:
            name, level = stack.pop()
            row = left.pop(name, None)
            if row is not None:
                yield row, level
                stack += [(child, level + 1) for child in reversed(row["childTaskIds"])]


def _counts(row: dict[str, Any], statuses: tuple[str, ...]) -> str:
    told = ", ".join(f"{row[status]} {status}" for status in statuses if row[status])
    return told or "none"
