"""`new`, `use`, `tasks`, `templates`: make tasks, choose one, list them and what they can be made from."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from agentctl.adapters.taskdir import Root, TaskDir
from agentctl.domain.same_request import digests_of
from agentctl.domain.states import task_status
from agentctl.domain.text.plaintext import plain
from agentctl.errors import Argument, ExitCode, Next, UsageError, WithArguments
from agentctl.interfaces.commands.model.command_model import (
    FINDS,
    FLAG,
    SECONDS,
    TARGETS,
    TASKS,
    TEMPLATES,
    TEXT,
    TEXTS,
    WHOLE,
    Carried,
    Command,
    Parameter,
    Showing,
    Shown,
    Table,
)
from agentctl.interfaces.commands.model.invocation import Invocation
from agentctl.interfaces.commands.model.parameters import GRACE, HOSTS, IN_ROOT, KEY, pairs_in
from agentctl.interfaces.commands.start.spawn import spawned_line
from agentctl.interfaces.words.outline import fields
from agentctl.lean import TYPE_CHECKING
from agentctl.operations.show.tasks import list_tasks
from agentctl.operations.start.key_records import Made
from agentctl.operations.start.new_task import create_task, use_task
from agentctl.operations.start.requests import Spawned
from agentctl.operations.start.task_keys import TASK, Note, make_task_once
from agentctl.operations.where.calling import caller
from agentctl.operations.where.chosen_task import ENVIRONMENT, FOLDER, TERMINAL
from agentctl.operations.where.command_lines import command_line
from agentctl.operations.where.locating import root_above
from agentctl.supervision.worker.environment import TASK_VARIABLE

if TYPE_CHECKING:
    from agentctl.domain.documents.hosts import FailedHost
    from agentctl.domain.documents.tasks import ChosenTask, TaskRow, TemplateRow

#: Tasks that are nested deeper are indented like these: only a forged tree is as deep.
_MOST_LEVELS = 20


def new(
    call: Invocation,
    *,
    title: str | None = None,
    task_id: str | None = None,
    max_concurrent: int | None = None,
    timeout_seconds: float | None = None,
    grace_seconds: float | None = None,
    max_depth: int | None = None,
    queue: bool | None = None,
    template: str | None = None,
    values: list[str] | None = None,
    no_use: bool = False,
    start: bool = False,
    notify: list[str] | None = None,
    key: str | None = None,
) -> Carried[ChosenTask]:
    """Make a task and choose it.

    Limits that are not given come from ~/.config/agentctl/config.yaml, then from the defaults.

    On a command line:
        It prints its id and its folder, with a tab between.
    """
    config = {
        "maxConcurrentAgents": max_concurrent,
        "timeoutSeconds": timeout_seconds,
        "graceSeconds": grace_seconds,
        "maxDepth": max_depth,
        "queue": queue,
    }
    limits = {key: value for key, value in config.items() if value is not None}
    named = _named(notify)
    said = {"id": task_id, "config": {**limits, **named}, "template": template, "set": values, "title": title}

    def once(make: Callable[[Root, Note], TaskDir]) -> Made:
        root = call.root(create=True, apart=True)
        made = make_task_once(root, key, digests_of(TASK, said), partial(make, root))
        return made if no_use or caller() is not None else made._replace(task=use_task(root, made.task.id))

    if template is None:
        if title is None or values or start:
            _refuse_without_template(title, Argument("set" if values else "start"))
        _tell_root_above(call)
        made = once(
            lambda root, note: create_task(
                root, str(title), task_id=task_id, config={**limits, **named}, is_chosen=False, note=note
            )
        )
        return _shown(made.task, reused=made.reused)
    if limits:
        raise UsageError("a template brings its own limits", hint="change `config` in the task.yaml of the new task")
    from agentctl.operations.start.from_template import create_from_template

    _tell_root_above(call)
    pairs = pairs_in(Argument("set"), values or ())
    made = once(
        lambda root, note: create_from_template(
            root, template, pairs, title=title, task_id=task_id, is_chosen=False, note=note
        )
    )
    _name(made.task, named)
    return _made(call, made, is_started=start, key=key)


def _made(call: Invocation, made: Made, *, is_started: bool, key: str | None) -> Showing[ChosenTask]:
    """Show a task that was made from a template, with its workers if they are to be started now."""
    from agentctl.operations.start.from_template import start_template

    yield _shown(made.task, start_template(made.task, key) if is_started else [], reused=made.reused)
    if not is_started:
        call.note(f"hint: {command_line(made.task, 'spawn-template')} starts its workers")
    return ExitCode.DONE


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


def _refuse_without_template(title: str | None, option: Argument) -> None:
    if title is None:
        raise UsageError("a task needs a title", hint=Next("new"))
    raise UsageError(WithArguments(option, " is for templates"), hint=Next("templates"))


def _tell_root_above(call: Invocation) -> None:
    """Say that a new root is made although there is one above the repository."""
    above = root_above(call.root_named)
    if above is not None:
        call.note(f"{above.message}: this task has a root of its own")


def _shown(task: TaskDir, spawned: list[Spawned] | None = None, *, reused: bool = False) -> Shown[ChosenTask]:
    value: ChosenTask = {"taskId": task.id, "path": str(task.path)}
    if spawned is not None:
        value["workers"] = [one.to_json() for one in spawned]
    if reused:
        value["reused"] = True
    return Shown(value, [fields(task.id, task.path), *map(spawned_line, spawned or [])])


def use(call: Invocation, *, task: str | None = None) -> Shown[ChosenTask]:
    """Choose the task that later commands mean, or say which.

    It is chosen for this terminal, which keeps it whatever is chosen in others; a script that runs without a terminal
    keeps its own, too. Where none was chosen, the one is meant that was chosen last for this .agentctl folder. --task
    and AGENTCTL_TASK come before both. Prints the id and the folder, with a tab between; without TASK those that are
    meant now, and who says so: `terminal`, `folder` or `environment`.
    """
    if task is None:
        return _meant(call)
    chosen = use_task(call.root(), task)
    named = os.environ.get(TASK_VARIABLE)
    notes = [f"AGENTCTL_TASK names {plain(named)}: until it is unset, that one is meant"] if named else []
    return _shown(chosen)._replace(notes=notes)


def _meant(call: Invocation) -> Shown[ChosenTask]:
    task, by = call.meant_task()
    value: ChosenTask = {"taskId": task.id, "path": str(task.path), "chosenBy": by}
    return Shown(value, [fields(task.id, task.path, by)], lambda: [f"{plain(task.id)}: {_SAYS[by]}"])


_SAYS = {
    TERMINAL: "chosen in this terminal",
    FOLDER: "the one last chosen in this folder; none was chosen in this terminal",
    ENVIRONMENT: "named by AGENTCTL_TASK",
}


def tasks(call: Invocation, *, hosts: str | None = None) -> Showing[Iterable[TaskRow | FailedHost]]:
    """List the tasks.

    Each is followed by its sub-tasks. A parent says what it waits for: `awaits children`, or `a child asks`.

    On a command line:
        To a pipe, one line each: task, state, workers, `*` if it is the chosen one, createdAt, path, title, what the
        parent waits for; with --hosts the host comes first.
    """
    if hosts is not None:
        from agentctl.interfaces.commands.model.far_line import far_line
        from agentctl.interfaces.commands.parts.merged_rows import ask_hosts, show_merged

        answers = ask_hosts(hosts, far_line("tasks", call, json=True))
        return (yield from show_merged(call, answers, _HEADS, _cells, _line, "title", _KEPT))
    rows, unreadable = list_tasks(call.root())
    yield Shown(rows, map(_line, rows), lambda: _table(rows))
    return call.report_unreadable(unreadable)


def _line(row: TaskRow) -> str:
    mark = "*" if row["current"] else None
    known = (row["taskId"], row["state"], row["workers"], mark, row["createdAt"], row["path"], row["title"])
    return fields(*known, _awaited_by(row))


def _awaited_by(row: TaskRow) -> str | None:
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


def _table(rows: list[TaskRow]) -> Table | list[str]:
    if not rows:
        return ['no task yet: agentctl new "TITLE" makes one']
    return Table(_HEADS, map(_cells, rows), wide="title", kept=_KEPT)


_HEADS = ("", "task", "state", "workers", "title")
#: Which one is chosen, and how each stands, is never cut.
_KEPT = ("", "state")


def _cells(row: TaskRow) -> tuple[str, ...]:
    """Return the cells of a task, one for each of `_HEADS`."""
    counts = {
        "failed": row["failed"], "blocked": row["blocked"], "running": row["running"], "queued": row["queued"],
        "completed": row["completed"], "cancelled": row["cancelled"],
    }  # fmt: skip
    return (
        "*" if row["current"] else " ",
        "  " * min(row["level"], _MOST_LEVELS) + row["taskId"],
        task_status(row["state"]) + (f" ({awaited})" if (awaited := _awaited_by(row)) else ""),
        ", ".join(f"{count} {status}" for status, count in counts.items() if count) or "none",
        plain(row["title"]),
    )


def templates(call: Invocation) -> Shown[list[TemplateRow]]:
    """List the templates from which a task can be made.

    A project's templates are the folders in `templates/` of the root. Such a template hides a shipped one of the same
    name, and is used only if you trust it.

    On a command line:
        `agentctl new --template NAME` makes the task, `agentctl trust FOLDER` trusts a template. To a pipe, one line
        each: name, source, description, `untrusted`.
    """
    from agentctl.operations.start.from_template import list_templates

    rows = list_templates(call.root_if_any())
    return Shown(rows, map(_template_line, rows), lambda: _outline(rows))


def _template_line(row: TemplateRow) -> str:
    return fields(row["name"], row["source"], row["description"], None if row["usable"] else "untrusted")


def _outline(rows: list[TemplateRow]) -> Iterator[str]:
    for row in rows:
        untrusted = "" if row["usable"] else f"  (untrusted: {plain(row['source'])})"
        yield f"{plain(row['name'])}  {plain(row['description'])}{untrusted}"
        for key, parameter in row["parameters"].items():
            default = parameter.get("default")
            shown = "" if not default else f" [default: {plain(default)}]"
            yield f"    --set {plain(key)}=...  {plain(parameter.get('description') or '')}{shown}"


COMMANDS = (
    Command(
        "new",
        new,
        IN_ROOT,
        """
agentctl new "Survey the auth module" --max-concurrent 3
agentctl new --template survey --set path=. --start
agentctl new "Port the parser" --notify phone:blocked,failed
""",
        (
            Parameter("title", TEXT, "What the task is about.", "[TITLE]", is_argument=True),
            Parameter("task_id", TEXT, "Its id, instead of one made from the title.", "TASK", typed="id"),
            Parameter("max_concurrent", WHOLE, "How many workers may run at once.", "N"),
            Parameter("timeout_seconds", SECONDS, "How long each worker may run.", "N"),
            GRACE,
            Parameter("max_depth", WHOLE, "How many levels deep workers may start workers.", "N"),
            Parameter(
                "queue",
                FLAG,
                "Let what is started in it wait for a slot; by default as your config.yaml says.",
                off="no-queue",
            ),
            Parameter(
                "template",
                TEXT,
                "Make it from a template; shipped:NAME means the shipped one.",
                "NAME",
                completes=TEMPLATES,
            ),
            Parameter("values", TEXTS, "A parameter of the template.", "K=V", typed="set"),
            Parameter("no_use", FLAG, "Do not choose it."),
            Parameter("start", FLAG, "Start the template's workers at once."),
            Parameter(
                "notify",
                TEXTS,
                "Where to tell you: a target of your config.yaml, as in phone:blocked.",
                "TARGET",
                completes=TARGETS,
            ),
            KEY,
        ),
        exits=(ExitCode.CONFLICT,),
    ),
    Command(
        "use",
        use,
        IN_ROOT,
        "agentctl use survey-auth\nagentctl use\nagentctl use survey-auth --json",
        (Parameter("task", TEXT, "Its id.", "TASK", is_argument=True, completes=TASKS),),
    ),
    Command(
        "tasks",
        tasks,
        IN_ROOT,
        "agentctl tasks\nagentctl tasks --json\nagentctl tasks --hosts all",
        (HOSTS,),
        exits=FINDS,
    ),
    Command("templates", templates, IN_ROOT, "agentctl templates\nagentctl templates --json", exits=()),
)
