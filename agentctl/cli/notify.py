"""`notify list|test|on|off`: where you are told what happens in a task, and whether that works."""

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from agentctl.adapters.taskdir import Root, TaskDir
from agentctl.cli import options as opt
from agentctl.cli.invocation import Invocation
from agentctl.cli.render import fields, plain
from agentctl.cli.verb import FINDS, family, verb
from agentctl.domain.notices import DEFAULT_KINDS, KINDS
from agentctl.errors import ExitCode, NotFound
from agentctl.operations.notify.applied_targets import switch_target
from agentctl.operations.notify.telling import list_targets, test_target

app = family(
    "Show, try and choose where you are told what happens in a task.",
    exits=FINDS,
    examples="""
agentctl notify
agentctl notify test phone
agentctl notify on phone:blocked,failed
""",
)
_HEADS = ("target", "where", "applies", "events", "told", "last error")

_Target = Annotated[
    str, typer.Argument(metavar="TARGET", help="A target of your config.yaml; for `on` also phone:blocked,failed.")
]
_WholeRoot = Annotated[bool, typer.Option("--all", help="For all tasks of the root, instead of this one.")]


@app.callback(invoke_without_command=True)
def notify(context: typer.Context, json: opt.Json = False) -> None:
    """Show, try and choose where you are told what happens in a task.

    Targets (a phone, a desktop, a webhook) are defined in ~/.config/agentctl/config.yaml and nowhere else. Without a
    subcommand: `notify list` of the chosen task.
    """
    if context.invoked_subcommand is None:
        list_targets_command(Invocation(json=json))


@verb(app, "list", examples="agentctl notify list\nagentctl notify list --json --task survey-auth")
def list_targets_command(call: opt.InTask) -> None:
    """List your targets, which of them apply to a task and its sub-tasks, and what they were told.

    To a pipe, one line each: target, type, where, named by (always, root, task.yaml or task), events, how many notices
    were sent, wait (for quiet hours to end, or for the next sender) and fail, the last error.
    """
    rows = list_targets(_task_if_any(call))
    call.show(rows, map(_line, rows), lambda: _draw(rows), _quiet(rows))


def _line(row: dict[str, Any]) -> str:
    failing = row["failing"] + row["refused"]
    events = ",".join(row["events"])
    return fields(
        row["target"],
        row["type"],
        row["where"],
        row["by"],
        events,
        row["sent"],
        row["waiting"],
        failing,
        row["lastError"],
    )


def _task_if_any(call: Invocation) -> TaskDir | None:
    try:
        return call.task()
    except NotFound:
        if call.task_named is not None:
            raise
        return None


def _quiet(rows: list[dict[str, Any]]) -> Iterator[str]:
    if rows and rows[0]["isQuietNow"]:
        yield f"these are quiet hours ({plain(rows[0]['quiet'])}): nothing is sent until they end"


def _draw(rows: list[dict[str, Any]]) -> None:
    if not rows:
        print("no target is defined: docs/notifications.md shows how")
        return
    from agentctl.cli.tables import draw

    cells = [(row["target"], row["where"], row["by"], _events(row), _told(row), row["lastError"]) for row in rows]
    draw(_HEADS, cells, wide="last error")


def _events(row: dict[str, Any]) -> str:
    words = {KINDS: "all", DEFAULT_KINDS: "all but completed"}
    return words.get(tuple(kind for kind in KINDS if kind in row["events"])) or ", ".join(row["events"])


def _told(row: dict[str, Any]) -> str:
    counts = {
        "sent": row["sent"],
        "seen": row["seen"],
        "waiting": row["waiting"],
        "failed": row["failing"] + row["refused"],
    }
    return ", ".join(f"{number} {word}" for word, number in counts.items() if number)


@verb(app, "test", examples="agentctl notify test phone\nagentctl notify test phone --json", exits=FINDS)
def test(call: opt.Anywhere, target: _Target) -> int:
    """Send one message to a target now, and print what came back.

    Quiet hours do not matter. Exits with 1 if it was not delivered.
    """
    found = test_target(target)
    word = "delivered" if found["delivered"] else "not delivered"
    call.show(found, [f"{plain(target)}: {word} ({found['said']})"])
    return ExitCode.DONE if found["delivered"] else ExitCode.REFUSED


@verb(app, "on", examples="agentctl notify on phone\nagentctl notify on desk:failed --all")
def on(call: opt.InTask, target: _Target, whole_root: _WholeRoot = False) -> None:
    """Let a target be told of a task and its sub-tasks, from now on."""
    _show(call, switch_target(_place(call, whole_root=whole_root), target, on=True))


@verb(app, "off", examples="agentctl notify off phone\nagentctl notify off phone --all")
def off(call: opt.InTask, target: _Target, whole_root: _WholeRoot = False) -> None:
    """Let a target not be told of a task and its sub-tasks, even if it is always told otherwise."""
    _show(call, switch_target(_place(call, whole_root=whole_root), target, on=False))


def _place(call: Invocation, *, whole_root: bool) -> TaskDir | Root:
    return call.root() if whole_root else call.task()


def _show(call: Invocation, found: dict[str, Any]) -> None:
    of = f"the tasks of {found['root']}" if "root" in found else found["taskId"]
    call.show(found, [plain(f"{found['target']} is {'told' if found['on'] else 'not told'} of {of}")])
