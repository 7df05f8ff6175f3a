"""`join`: one report of the results of several workers."""

from typing import Annotated

import typer

from agentctl.cli import options as opt
from agentctl.cli.render import plain
from agentctl.cli.verb import module, verb
from agentctl.domain.limits import RESULT_BYTES
from agentctl.operations.show.joining import join_results

app = module()


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
    call: opt.InTask,
    instances: opt.AnyInstances = None,
    folder: Annotated[
        str | None, typer.Option("--out", metavar="FOLDER", help="Where the report goes; by default the task's folder.")
    ] = None,
    max_bytes: Annotated[
        int, typer.Option("--max-bytes", metavar="N", min=0, help="How much of each worker's text to take.")
    ] = RESULT_BYTES,
) -> None:
    """Write one report of the results of several workers.

    report.md is for people, report.json for programs: each worker's status, summary, questions, files and errors, in
    the order of the roster, whether it has ended or not. Where a text is cut, the report gives the size, the sha256
    and the path of the full text.
    """
    joined = join_results(call.task_to_show(), instances or (), out=folder, max_bytes=max_bytes)
    report = {**joined.report, "report": joined.text_path, "data": joined.data_path}
    call.show(report, [plain(joined.text_path), plain(joined.data_path)])
