"""`activity`: the rows that a worker's driver made from the output of its program."""

from __future__ import annotations

from agentctl.adapters.taskdir import WorkerDir
from agentctl.errors import Argument, ExitCode, Refused, UsageError, WithArguments
from agentctl.interfaces.commands.model.command_model import FLAG, Command, Parameter, Showing, Shown
from agentctl.interfaces.commands.model.invocation import Invocation
from agentctl.interfaces.commands.model.parameters import BY_LINE_IN_TASK, FOLLOW, INSTANCE
from agentctl.interfaces.words.activity import row_label
from agentctl.interfaces.words.outline import fields
from agentctl.lean import TYPE_CHECKING
from agentctl.operations.show.activity import follow_activity, rebuild
from agentctl.operations.where.locating import find_worker
from agentctl.operations.where.ownership import check_own
from agentctl.supervision.worker.spec import read_order

if TYPE_CHECKING:
    from agentctl.domain.documents.views import ActivityRow, BadActivity, RebuiltActivity


def activity(
    call: Invocation, *, instance: str, remake: bool = False, follow: bool = False
) -> Showing[ActivityRow | BadActivity | RebuiltActivity]:
    """Print the rows of a worker's activity, or make them again.

    One line per row: time, type, phase, id, parent, status, what it is, separated by tabs, with `-` for nothing.
    With -f it continues until the worker has ended. --rebuild prints how many rows it made.
    """
    if remake and follow:
        raise UsageError(WithArguments(Argument("rebuild"), " and ", Argument("follow"), " exclude each other"))
    task = call.task_to_show()
    if remake:
        yield _rebuild(find_worker(task, instance))
        return ExitCode.DONE
    for row in follow_activity(task, instance, follow=follow):
        if "problem" in row:
            call.warn([f"{task.worker(instance).activity}:{row['line']}: {row['problem']}"])
        known = (row.get(key) for key in ("at", "type", "phase", "id", "parent", "status"))
        yield Shown(row, [] if "problem" in row else [fields(*known, row_label(row))])
    return ExitCode.DONE


def _rebuild(worker: WorkerDir) -> Shown[RebuiltActivity]:
    from agentctl.worker_programs.agent_host.replay import replay

    check_own(worker.task)
    if read_order(worker) is None:
        raise Refused(f"{worker.instance} is a command: only what an agent's program has said is turned into rows")
    rows = rebuild(worker, replay(worker))
    result: RebuiltActivity = {"agentInstance": worker.instance, "rows": rows, "path": str(worker.activity)}
    return Shown(result, [fields(*result.values())])


COMMANDS = (
    Command(
        "activity",
        activity,
        BY_LINE_IN_TASK,
        """
agentctl activity explore-1
agentctl activity explore-1 -f --json
agentctl activity explore-1 --rebuild
""",
        (
            INSTANCE,
            Parameter(
                "remake", FLAG, "Make the rows again from the raw output of a worker that has ended.", typed="rebuild"
            ),
            FOLLOW,
        ),
    ),
)
