"""`activity`: the rows that a worker's driver made from the output of its program."""

import sys
from typing import Annotated

import typer

from agentctl.adapters.taskdir import WorkerDir
from agentctl.cli import options as opt
from agentctl.cli.invocation import Invocation
from agentctl.cli.render import as_json, fields, warn
from agentctl.cli.verb import module, verb
from agentctl.errors import Refused, UsageError
from agentctl.operations.show.activity import follow_activity, rebuild
from agentctl.operations.where.locating import find_worker
from agentctl.operations.where.ownership import check_own
from agentctl.supervision.worker.spec import read_order
from agentctl.text.activity import row_label

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
    call: opt.InTaskByLine,
    instance: opt.Instance,
    remake: Annotated[
        bool, typer.Option("--rebuild", help="Make the rows again from the raw output of a worker that has ended.")
    ] = False,
    follow: opt.Follow = False,
) -> None:
    """Print the rows of a worker's activity, or make them again.

    One line per row: time, type, phase, id, parent, status, what it is, separated by tabs, with `-` for nothing.
    With -f it continues until the worker has ended. --rebuild prints how many rows it made.
    """
    if remake and follow:
        raise UsageError("--rebuild and --follow exclude each other")
    task = call.task_to_show()
    if remake:
        _rebuild(call, find_worker(task, instance))
        return
    for row in follow_activity(task, instance, follow=follow):
        if "problem" in row:
            warn([f"{task.worker(instance).activity}:{row['line']}: {row['problem']}"])
        if call.json:
            print(as_json(row))
        elif "problem" not in row:
            known = (row.get(key) for key in ("at", "type", "phase", "id", "parent", "status"))
            print(fields(*known, row_label(row)))
        if follow:
            sys.stdout.flush()


def _rebuild(call: Invocation, worker: WorkerDir) -> None:
    from agentctl.driving.replay import replay

    check_own(worker.task)
    if read_order(worker) is None:
        raise Refused(f"{worker.instance} is a command: only what an agent's program has said is turned into rows")
    rows = rebuild(worker, replay(worker))
    result = {"agentInstance": worker.instance, "rows": rows, "path": str(worker.activity)}
    call.show(result, [fields(*result.values())])
