"""The options and arguments that several commands share, each declared once."""

from __future__ import annotations

import math
from typing import Annotated, TypeAlias

import typer

from agentctl.cli.completing import complete_instances, complete_tasks


def seconds(text: str) -> float:
    """Return a time limit; `nan` and `inf` are none."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise typer.BadParameter(f"{text!r} is not a number of seconds, 0 or more")
    return value


Task: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--task",
        "-t",
        metavar="TASK",
        help="The task; else the chosen one (agentctl use).",
        autocompletion=complete_tasks,
    ),
]
Root: TypeAlias = Annotated[
    str | None,
    typer.Option("--root", metavar="FOLDER", help="Where the tasks are, instead of the nearest .agentctl."),
]
Force: TypeAlias = Annotated[
    bool, typer.Option("--force", help="Use a root of somebody else or on a network file system.")
]
Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
JsonLines: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one JSON object a line.")]

Instance: TypeAlias = Annotated[
    str, typer.Argument(metavar="INSTANCE", help="The worker.", autocompletion=complete_instances)
]
Instances: TypeAlias = Annotated[
    list[str], typer.Argument(metavar="INSTANCE...", help="The workers.", autocompletion=complete_instances)
]
AnyInstances: TypeAlias = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[INSTANCE]...", help="The workers; else all of the task.", autocompletion=complete_instances
    ),
]
WaitSeconds: TypeAlias = Annotated[
    float | None,
    typer.Option("--timeout-seconds", metavar="N", parser=seconds, help="How long to wait; nobody is stopped by it."),
]
GraceSeconds: TypeAlias = Annotated[
    float | None,
    typer.Option("--grace-seconds", metavar="N", parser=seconds, help="The time between two signals of a cancel."),
]
Recursive: TypeAlias = Annotated[bool, typer.Option("--recursive", help="Those of its sub-tasks too.")]
Follow: TypeAlias = Annotated[bool, typer.Option("--follow", "-f", help="Go on with what is added.")]
