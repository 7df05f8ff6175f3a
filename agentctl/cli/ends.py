"""How the waits show an end, and that they were stopped before one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from agentctl.cli.render import how_it_ended, out_json, plain, waiting_for
from agentctl.domain.states import Status
from agentctl.errors import WaitStopped

if TYPE_CHECKING:
    from agentctl.operations.wait.waiting import WaitedEnd

_LONGEST = 300


def ended_line(end: WaitedEnd) -> str:
    """Return an end in one line."""
    name = end.agent_instance if end.task_id is None else f"{end.task_id}/{end.agent_instance}"
    left = f" [{end.uncollected} uncollected]" if end.uncollected else ""
    if end.until is not None:
        return plain(f"{name} {waiting_for({'until': end.until, 'window': end.window}, is_parked=True)}")
    how = how_it_ended(end.status, end.reason, end.exit_code, end.signal)
    return f"{name} {how}{left}{because(end.message) if end.status == Status.FAILED else ''}"


def because(message: str | None) -> str:
    """Return what stands behind an end: why, in the words of the program or its provider."""
    if not message:
        return ""
    told = plain(" ".join(message.split()))
    return f": {told if len(told) <= _LONGEST else f'{told[:_LONGEST]}...'}"


@contextlib.contextmanager
def reporting_the_stop(json: bool) -> Iterator[None]:
    """Tell on stdout, too, that the worker which waits was cancelled or paused: it is what its program reads."""
    try:
        yield
    except WaitStopped as stop:
        if json:
            out_json(stop.to_json())
        raise
