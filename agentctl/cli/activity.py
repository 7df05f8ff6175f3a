"""`activity`: the rows that a worker's driver made of what its program printed."""

import sys
from typing import Annotated, Any

import typer

from agentctl.adapters.taskdir import TaskDir
from agentctl.cli import options as opt
from agentctl.cli.activitytext import label_of
from agentctl.cli.render import as_json, note_foreign, out, out_fields, out_json, warn
from agentctl.cli.verb import module, verb
from agentctl.errors import UsageError
from agentctl.operations.show.activity import follow_activity, rebuild
from agentctl.operations.where.locating import find_task, find_worker
from agentctl.operations.where.ownership import check_own

app = module()


@verb(
    app,
    "activity",
    examples="""
agentctl activity explore-1
agentctl activity explore-1 -f --json
agentctl activity explore-1 --rebuild
""",
)
def activity(
    instance: opt.Instance,
    remake: Annotated[
        bool, typer.Option("--rebuild", help="Make the rows again from the raw output; not while it runs.")
    ] = False,
    follow: opt.Follow = False,
    task: opt.Task = None,
    root: opt.Root = None,
    force: opt.Force = False,
    json: opt.JsonLines = False,
) -> None:
    """Print the rows of a worker's activity, or make them again.

    A line each: time, type, phase, id, parent, status, what it is, with tabs between and `-` for nothing.
    With -f it goes on until the worker has ended. --rebuild prints how many rows there are then.
    """
    if remake and follow:
        raise UsageError("--rebuild and --follow exclude each other")
    place = note_foreign(find_task(task, root=root, force=force))
    if remake:
        _rebuild(place, instance, json=json)
        return
    for row in follow_activity(place, instance, follow=follow):
        if "problem" in row:
            warn([f"{place.worker(instance).activity}:{row['line']}: {row['problem']}"])
        if json:
            out(as_json(row))
        elif "problem" not in row:
            out_fields(*(row.get(key) for key in ("at", "type", "phase", "id", "parent", "status")), label_of(row))
        if follow:
            sys.stdout.flush()


def _rebuild(place: TaskDir, instance: str, *, json: bool) -> None:
    from agentctl.driving.replay import replay

    check_own(place)
    worker = find_worker(place, instance)
    rows = rebuild(worker, replay(worker))
    told: dict[str, Any] = {"agentInstance": instance, "rows": rows, "path": str(worker.activity)}
    if json:
        out_json(told)
    else:
        out_fields(*told.values())
