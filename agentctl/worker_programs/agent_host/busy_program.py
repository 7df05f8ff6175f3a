"""Runs an agent; if its program cannot begin because another start of it is under way, starts it again.

The agent has done nothing by then: nothing is done twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from random import random
from typing import Any

from agentctl.adapters.taskdir import WorkerDir
from agentctl.domain.states import Reason
from agentctl.drivers.dialogue import AgentOutcome
from agentctl.drivers.order import Order
from agentctl.worker_programs.agent_host.host import UNHAPPY, Host
from agentctl.worker_programs.agent_host.program.program_start import HeldSignals, StartedProgram, start_program
from agentctl.worker_programs.agent_host.records.recorder import Recorder

#: Between two starts of a program that is busy with another start of it, at least, and up to twice as long: those that
#: were started at the same time then are not once more.
_PAUSES_S = (0.5, 1.0, 2.0, 4.0, 8.0)
#: So often a pause looks whether somebody has cancelled meanwhile.
_LOOK_S = 0.1


async def run_agent(
    worker: WorkerDir, started: StartedProgram, changes: Mapping[str, Any], signals: HeldSignals
) -> int:
    """Run an agent to its end; return the exit code.

    Args:
        changes: The fields in which the order differs from `spec.json`.
        signals: Those that arrived while this module was being loaded.
    """
    host = Host(worker, started, changes, signals, may_try_again=True)
    code = await host.run()
    for number, pause_s in enumerate(_PAUSES_S, 1):
        if host.busy is None:
            break
        if await _is_stopped(pause_s * (1 + random()), host, signals):
            return _not_started(worker, str(host.busy.message))
        again = start_program(worker, _with_messages(host), started.driver)
        may_try_again = number < len(_PAUSES_S)
        host = Host(worker, again, {**changes, "again": number}, signals, may_try_again=may_try_again)
        code = await host.run()
    return code


async def _is_stopped(pause_s: float, host: Host, signals: HeldSignals) -> bool:
    """Wait before another try; return whether it is cancelled, which may be told before a host hears of it."""
    for _ in range(int(pause_s / _LOOK_S)):
        if host.is_interrupted or signals.are_held:
            return True
        await asyncio.sleep(_LOOK_S)
    return False


def _with_messages(host: Host) -> Order:
    """Return the order with the messages that were read meanwhile but reached no program."""
    return host.order._replace(prompt="\n\n".join([host.order.prompt, *host.messages]))


def _not_started(worker: WorkerDir, message: str) -> int:
    Recorder(worker).outcome(AgentOutcome(reason=Reason.NOT_STARTED, message=message))
    return UNHAPPY
