"""`new`, `use`, `tasks`, `templates`: make tasks, choose one, list them and what they can be made from."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from agentctl.adapters.taskdir import TaskDir
from agentctl.cli import options as opt
from agentctl.cli.completing import complete_tasks, complete_templates
from agentctl.cli.invocation import Invocation
from agentctl.cli.render import fields, note, plain, report_unreadable
from agentctl.cli.starting import spawned_line
from agentctl.cli.verb import FINDS, module, verb
from agentctl.errors import UsageError
from agentctl.operations.show.tasks import list_tasks
from agentctl.operations.start.new_task import create_task, use_task
from agentctl.operations.start.requests import Spawned
from agentctl.operations.where.command_lines import command_line
from agentctl.operations.where.locating import root_above

app = module()

#: Tasks that are nested deeper are indented like these: only a forged tree is as deep.
_MOST_LEVELS = 20


@verb(
    app,
    "new",
    examples="""
agentctl new "Survey the auth module" --max-concurrent 3
agentctl new --template survey --set path=. --start
agentctl new "Port the parser" --notify phone:blocked,failed
""",
)
def new(
    call: opt.InRoot,
    title: Annotated[str | None, typer.Argument(metavar="[TITLE]", help="What the task is about.")] = None,
    task_id: Annotated[
        str | None, typer.Option("--id", metavar="TASK", help="Its id, instead of one made from the title.")
    ] = None,
    max_concurrent: Annotated[
        int | None, typer.Option("--max-concurrent", metavar="N", help="How many workers may run at once.")
    ] = None,
    timeout_seconds: Annotated[
        float | None,
        typer.Option("--timeout-seconds", metavar="N", parser=opt.seconds, help="How long each worker may run."),
    ] = None,
    grace_seconds: opt.GraceSeconds = None,
    max_depth: Annotated[
        int | None, typer.Option("--max-depth", metavar="N", help="How many levels deep workers may start workers.")
    ] = None,
    template: Annotated[
        str | None,
        typer.Option(
            "--template",
            metavar="NAME",
            help="Make it from a template; shipped:NAME means the shipped one.",
            autocompletion=complete_templates,
        ),
    ] = None,
    values: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="K=V", help="A parameter of the template; repeatable."),
    ] = None,
    no_use: Annotated[bool, typer.Option("--no-use", help="Do not choose it.")] = False,
    start: Annotated[bool, typer.Option("--start", help="Start the template's workers at once.")] = False,
    notify: Annotated[
        list[str] | None,
        typer.Option(
            "--notify",
            metavar="TARGET",
            help="Tell you there: a target of your config.yaml, phone:blocked; repeatable.",
        ),
    ] = None,
) -> None:
    """Make a task and choose it.

    Prints its id and its folder, with a tab between. Limits that are not given come from
    ~/.config/agentctl/config.yaml, then from the defaults.
    """
    config = {
        "maxConcurrentAgents": max_concurrent,
        "timeoutSeconds": timeout_seconds,
        "graceSeconds": grace_seconds,
        "maxDepth": max_depth,
    }
    limits = {key: value for key, value in config.items() if value is not None}
    named = _named(notify)
    if template is None:
        if title is None or values or start:
            _refuse_without_template(title, "--set" if values else "--start")
        _tell_root_above(call)
        task = create_task(call.root(create=True, apart=True), str(title), task_id=task_id,
                           config={**limits, **named}, is_chosen=not no_use)  # fmt: skip
        _show(call, task)
        return
    if limits:
        raise UsageError("a template brings its own limits", hint="change `config` in the task.yaml of the new task")
    from agentctl.operations.start.from_template import create_from_template, start_template

    _tell_root_above(call)
    root = call.root(create=True, apart=True)
    task = create_from_template(
        root, template, _pairs(values or []), title=title, task_id=task_id, is_chosen=not no_use
    )
    _name(task, named)
    _show(call, task, start_template(task) if start else [])
    if not start:
        note(f"hint: {command_line(task, 'spawn-template')} starts its workers")


def _named(notify: list[str] | None) -> dict[str, list[str]]:
    """Return the part of a task's configuration that names the targets of `--notify`."""
    if not notify:
        return {}
    from agentctl.operations.notify.applied_targets import check_named

    return {"notify": check_named(notify)}


def _name(task: TaskDir, named: dict[str, list[str]]) -> None:
    """Name targets for a task that was made from a template, whose task.yaml is the template's."""
    if named:
        from agentctl.operations.notify.applied_targets import switch_target

        for text in named["notify"]:
            switch_target(task, text, on=True)


def _refuse_without_template(title: str | None, option: str) -> None:
    if title is None:
        raise UsageError("a task needs a title", hint='agentctl new "Survey the auth module"')
    raise UsageError(f"{option} is for templates", hint="agentctl templates lists them")


def _pairs(values: list[str]) -> dict[str, str]:
    pairs = {}
    for value in values:
        key, equals, text = value.partition("=")
        if not key or not equals:
            raise UsageError(f"--set {value!r} is not of the form K=V")
        pairs[key] = text
    return pairs


def _tell_root_above(call: Invocation) -> None:
    """Say that a new root is made although there is one above the repository."""
    above = root_above(call.root_named)
    if above is not None:
        note(f"{above.message}: this task has a root of its own")


def _show(call: Invocation, task: TaskDir, spawned: list[Spawned] | None = None) -> None:
    workers = {} if spawned is None else {"workers": [one.to_json() for one in spawned]}
    lines = [fields(task.id, task.path), *map(spawned_line, spawned or [])]
    call.show({"taskId": task.id, "path": str(task.path), **workers}, lines)


@verb(app, "use", examples="agentctl use survey-auth\nagentctl use survey-auth --json")
def use(
    call: opt.InRoot,
    task: Annotated[str, typer.Argument(metavar="TASK", help="Its id.", autocompletion=complete_tasks)],
) -> None:
    """Choose the task to which later commands refer.

    This applies to all terminals that work below the same .agentctl folder. Prints its id and its folder, with a tab
    between.
    """
    _show(call, use_task(call.root(), task))


@verb(app, "tasks", examples="agentctl tasks\nagentctl tasks --json\nagentctl tasks --hosts all", exits=FINDS)
def tasks(call: opt.InRoot, hosts: opt.Hosts = None) -> int:
    """List the tasks.

    Each is followed by its sub-tasks. A parent says what it waits for: `awaits children`, or `a child asks`. To a pipe,
    one line each: task, state, workers, `*` if it is the chosen one, createdAt, path, title, what the parent waits for;
    with --hosts the host stands in front.
    """
    if hosts is not None:
        from agentctl.cli.across import ask_hosts, place_options, show_merged

        answers = ask_hosts(hosts, ["tasks", "--json", *place_options(call)])
        return show_merged(call, answers, _HEADS, _cells, _line, "title")
    rows, unreadable = list_tasks(call.root())
    call.show(rows, map(_line, rows), lambda: _draw(rows))
    return report_unreadable(unreadable)


def _line(row: dict[str, Any]) -> str:
    mark = "*" if row["current"] else None
    known = (row["taskId"], row["state"], row["workers"], mark, row["createdAt"], row["path"], row["title"])
    return fields(*known, _awaited_by(row))


def _awaited_by(row: Mapping[str, Any]) -> str | None:
    """Return why nothing is known of a task, that some of it is stranded or held, or what it waits for; mostly None.

    >>> _awaited_by({"awaitsChildren": True, "blockedBelow": 2, "stranded": 0, "held": None})
    'a child asks'
    """
    if "unreadable" in row:
        return str(row["unreadable"])
    if row["stranded"]:
        return f"{row['stranded']} stranded"
    if row["held"]:
        return f"held by {row['held']['by']}" if row["held"]["by"] else "held: maxConcurrentAgents is 0"
    if row["blockedBelow"]:
        return "a child asks"
    return "awaits children" if row["awaitsChildren"] else None


def _draw(rows: list[dict[str, Any]]) -> None:
    if not rows:
        print('no task yet: agentctl new "TITLE" makes one')
        return
    from agentctl.cli.tables import draw

    draw(_HEADS, map(_cells, rows), wide="title")


_HEADS = ("", "task", "state", "workers", "title")
_STATUSES = ("running", "queued", "blocked", "completed", "failed", "cancelled")


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    """Return the cells of a task, one for each of `_HEADS`."""
    return (
        "*" if row["current"] else " ",
        "  " * min(row["level"], _MOST_LEVELS) + row["taskId"],
        row["state"] + (f" ({awaited})" if (awaited := _awaited_by(row)) else ""),
        ", ".join(f"{row[status]} {status}" for status in _STATUSES if row[status]) or "none",
        plain(row["title"]),
    )


@verb(app, "templates", examples="agentctl templates\nagentctl templates --json", exits=())
def templates(call: opt.InRoot) -> None:
    """List the templates that `new --template` knows.

    A project's templates are the folders in `templates/` of the root. One hides a shipped one of the same name, and is
    used once you trust it (`agentctl trust FOLDER`). To a pipe, one line each: name, source, description, `untrusted`.
    """
    from agentctl.operations.start.from_template import list_templates

    rows = list_templates(call.root_if_any())
    call.show(rows, map(_template_line, rows), lambda: _print_templates(rows))


def _template_line(row: dict[str, Any]) -> str:
    return fields(row["name"], row["source"], row["description"], None if row["usable"] else "untrusted")


def _print_templates(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        untrusted = "" if row["usable"] else f"  (untrusted: {plain(row['source'])})"
        print(f"{plain(row['name'])}  {plain(row['description'])}{untrusted}")
        for key, parameter in row["parameters"].items():
            default = parameter.get("default")
            shown = "" if not default else f" [default: {plain(default)}]"
            print(f"    --set {plain(key)}=...  {plain(parameter.get('description') or '')}{shown}")
