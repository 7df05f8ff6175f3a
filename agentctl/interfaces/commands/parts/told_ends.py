"""The line of an end that a wait returns; and what is shown of a wait that was stopped before there was one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentctl.domain.states import EndStatus
from agentctl.domain.text.plaintext import beginning, plain
from agentctl.domain.worker.ends import end_in_words, said_at_end
from agentctl.errors import WaitStopped
from agentctl.interfaces.commands.model.command_model import Shown
from agentctl.interfaces.commands.model.invocation import Invocation
from agentctl.interfaces.words.worker import waiting_for

if TYPE_CHECKING:
    from agentctl.domain.documents.workers.ends import StoppedWait
    from agentctl.domain.documents.workers.worker import WorkerRow
    from agentctl.interfaces.commands.model.command_model import Showing, V
    from agentctl.operations.wait.waiting import WaitedEnd

_LONGEST = 300


def ended_line(end: WaitedEnd) -> str:
    """Return an end in one line."""
    name = end.agent_instance if end.task_id is None else f"{end.task_id}/{end.agent_instance}"
    left = f" [{end.uncollected} uncollected]" if end.uncollected else ""
    if end.until is not None:
        return plain(f"{name} {waiting_for({'until': end.until, 'window': end.window}, is_parked=True)}")
    how = end_in_words(end.status, end.reason, end.exit_code, end.signal)
    said = said_at_end(end.message, end.last_line) if end.status is EndStatus.FAILED else ()
    return f"{name} {how}{left}{because(*said)}"


def end_of_row(row: WorkerRow) -> WaitedEnd:
    """Return the end of a worker as its row in `list` has it."""
    from agentctl.operations.wait.waiting import WaitedEnd  # Not above: whoever has a row may not have waited.

    return WaitedEnd(
        agent_instance=row["agentInstance"], status=EndStatus(row["status"]), reason=row["reason"],
        exit_code=row["exitCode"], signal=row["signal"], message=row["message"], last_line=row["lastLine"],
        uncollected=row["uncollected"],
    )  # fmt: skip


def because(*said: str) -> str:
    """Return the text after an end that says why it failed, in the words of the program or its provider."""
    if not said:
        return ""
    return f": {beginning(plain(' '.join('; '.join(said).split())), _LONGEST, '...')}"


def reporting_the_stop(call: Invocation, waiting: Showing[V]) -> Showing[V | StoppedWait]:
    """Show as JSON too that the waiting worker was cancelled or paused: stdout is what its program reads."""
    try:
        return (yield from waiting)
    except WaitStopped as stop:
        if call.json:
            yield Shown({"agentInstance": stop.instance, "stopped": stop.stopped})
        raise
