"""`join`: one report of what several workers have brought."""

from typing import Annotated

import typer

from agentctl.cli import options as opt
from agentctl.cli.render import note_foreign, out, out_json, plain
from agentctl.cli.verb import module, verb
from agentctl.operations.show.joining import join_results
from agentctl.operations.where.locating import find_task

app = module()

_BYTES = 4000


@verb(
    app,
    "join",
    examples="""
agentctl wait-all && agentctl join
agentctl join explore-1 explore-2 --out build/report
agentctl join --max-bytes 20000 --json
""",
)
def join(
    instances: opt.AnyInstances = None,
    folder: Annotated[
        str | None, typer.Option("--out", metavar="FOLDER", help="Where the report goes; else the task's folder.")
    ] = None,
    max_bytes: Annotated[
        int, typer.Option(metavar="N", min=0, help="How much of each worker's text to take.")
    ] = _BYTES,
    task: opt.Task = None,
    root: opt.Root = None,
    force: opt.Force = False,
    json: opt.Json = False,
) -> None:
    """Write one report of what several workers have brought.

    report.md is to be read, report.json is for programs: each worker's status, summary, questions, files and errors,
    in the order of the roster, whether it has ended or not. A text that is cut says so, with the size, the sha256
    and the path of the whole.
    """
    place = note_foreign(find_task(task, root=root, force=force))
    joined = join_results(place, instances or (), out=folder, max_bytes=max_bytes)
    if json:
        out_json({**joined.report, "report": joined.text_path, "data": joined.data_path})
    else:
        out(plain(joined.text_path))
        out(plain(joined.data_path))
