"""`join`: one report of the results of several workers."""

from __future__ import annotations

from agentctl.domain.text.plaintext import plain
from agentctl.domain.tree.limits import RESULT_BYTES
from agentctl.interfaces.commands.model.command_model import TEXT, WHOLE, Command, Parameter, Shown
from agentctl.interfaces.commands.model.invocation import Invocation
from agentctl.interfaces.commands.model.parameters import ANY_INSTANCES, IN_TASK
from agentctl.lean import TYPE_CHECKING
from agentctl.operations.show.joining import join_results

if TYPE_CHECKING:
    from agentctl.domain.documents.workers.ends import WrittenReport


def join(
    call: Invocation, *, instances: list[str] | None = None, folder: str | None = None, max_bytes: int = RESULT_BYTES
) -> Shown[WrittenReport]:
    """Write one report of the results of several workers.

    report.md is for people, report.json for programs: each worker's status, summary, questions, files and errors, in
    the order of the roster, whether it has ended or not. Where a text is cut, the report gives the size, the sha256
    and the path of the full text.
    """
    joined = join_results(call.task_to_show(), instances or (), out=folder, max_bytes=max_bytes)
    report: WrittenReport = {**joined.report, "report": joined.text_path, "data": joined.data_path}
    return Shown(report, [plain(joined.text_path), plain(joined.data_path)])


COMMANDS = (
    Command(
        "join",
        join,
        IN_TASK,
        """
agentctl wait-all && agentctl join
agentctl join explore-1 explore-2 --out build/report
agentctl join --max-bytes 20000 --json
""",
        (
            ANY_INSTANCES,
            Parameter("folder", TEXT, "Where the report goes; by default the task's folder.", "FOLDER", typed="out"),
            Parameter(
                "max_bytes", WHOLE, "How much of each worker's text to take.", "N", default=RESULT_BYTES, least=0
            ),
        ),
    ),
)
