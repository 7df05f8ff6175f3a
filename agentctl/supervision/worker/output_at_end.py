"""What a failed worker wrote last: the line that its end says, and the lines that views show."""

from __future__ import annotations

import contextlib

from agentctl.adapters.tails import read_tail
from agentctl.adapters.taskdir import WorkerDir
from agentctl.domain.worker.last_output import LOOKED_AT, last_line_in, lines_at_end
from agentctl.errors import AgentctlError
from agentctl.lean import TYPE_CHECKING
from agentctl.supervision.worker.driver_end import end_by_driver
from agentctl.supervision.worker.spec import is_for_agent, order_of

if TYPE_CHECKING:
    from agentctl.domain.documents.workers.worker import LastLines


def line_at_end(worker: WorkerDir) -> str | None:
    """Return the last line on a worker's stderr, else on its stdout; None where there is none.

    An agent's stdout is the protocol of its program. What its driver says of the end is better than either.
    """
    stderr, stdout = last_line_in(*_tail(worker.stderr)), last_line_in(*_tail(worker.stdout))
    if stderr is None and stdout is None:
        return None
    try:
        if not is_for_agent(order_of(worker)):
            return stderr or stdout
        end = end_by_driver(worker)
    except (AgentctlError, OSError):  # An end is not kept back by what else it could say.
        return None
    return None if end is not None and end.message else stderr


def output_lines(worker: WorkerDir) -> LastLines:
    """Return the last lines of each stream of a worker that has any; of an agent those on stderr alone."""
    found: LastLines = {}
    if stderr := lines_at_end(*_tail(worker.stderr)):
        found["stderr"] = stderr
    if not is_for_agent(order_of(worker)) and (stdout := lines_at_end(*_tail(worker.stdout))):
        found["stdout"] = stdout
    return found


def _tail(path: str) -> tuple[bytes, int]:
    with contextlib.suppress(OSError):  # Nothing that an end or a view needs.
        return read_tail(path, LOOKED_AT)
    return b"", 0
