"""The options and arguments that several commands share, each declared once."""

from __future__ import annotations

import math
from typing import Annotated, Any, TypeAlias

import typer

from agentctl.cli.completing import complete_hosts_list, complete_instances, complete_tasks
from agentctl.cli.invocation import Invocation
from agentctl.lean import NamedTuple


def seconds(text: str) -> float:
    """Return a number of seconds; `nan` and `inf` are refused."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise typer.BadParameter(f"{text!r} is not a number of seconds, 0 or more")
    return value


PLACE, OUTPUT = "Place", "Output"


class Given(NamedTuple):
    """The options from which `verb` makes an `Invocation`; a part of the annotation of `call`."""

    options: dict[str, Any]


Task: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--task",
        "-t",
        metavar="TASK",
        help="The task; by default the chosen one (agentctl use).",
        autocompletion=complete_tasks,
        rich_help_panel=PLACE,
    ),
]
Root: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--root",
        metavar="FOLDER",
        help="The folder that holds the tasks; by default the nearest .agentctl, up to the top of the git repository.",
        rich_help_panel=PLACE,
    ),
]
_Force: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--force",
        help="Use a root that belongs to someone else or is on a network file system.",
        rich_help_panel=PLACE,
    ),
]
Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one JSON document.", rich_help_panel=OUTPUT)]
_JsonByLine: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print one JSON object per line.", rich_help_panel=OUTPUT)
]
_ROOT = {"root": Root, "force": _Force}

# The annotations of a command's `call`: `verb` replaces that parameter by the options listed here.
Anywhere: TypeAlias = Annotated[Invocation, Given({"json": Json})]
InRoot: TypeAlias = Annotated[Invocation, Given({**_ROOT, "json": Json})]
InTask: TypeAlias = Annotated[Invocation, Given({"task": Task, **_ROOT, "json": Json})]
ShownInTask: TypeAlias = Annotated[Invocation, Given({"task": Task, **_ROOT})]
InTaskByLine: TypeAlias = Annotated[Invocation, Given({"task": Task, **_ROOT, "json": _JsonByLine})]

Hosts: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--hosts",
        metavar="LIST",
        help="On these hosts at once: all, or names with commas between; here is this machine.",
        autocompletion=complete_hosts_list,
        rich_help_panel=PLACE,
    ),
]
Instance: TypeAlias = Annotated[
    str, typer.Argument(metavar="INSTANCE", help="The worker.", autocompletion=complete_instances)
]
Instances: TypeAlias = Annotated[
    list[str], typer.Argument(metavar="INSTANCE...", help="The workers.", autocompletion=complete_instances)
]
AnyInstances: TypeAlias = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[INSTANCE]...", help="The workers; by default all of the task.", autocompletion=complete_instances
    ),
]
WaitSeconds: TypeAlias = Annotated[
    float | None,
    typer.Option("--timeout-seconds", metavar="N", parser=seconds, help="How long to wait; this stops no worker."),
]
GraceSeconds: TypeAlias = Annotated[
    float | None,
    typer.Option("--grace-seconds", metavar="N", parser=seconds, help="The pause between the signals of a cancel."),
]
Recursive: TypeAlias = Annotated[bool, typer.Option("--recursive", help="Include the sub-tasks.")]
Follow: TypeAlias = Annotated[bool, typer.Option("--follow", "-f", help="Keep printing as more is added.")]
