"""Runs an agent; uses its driver's fallback if the program cannot even open the conversation.

One that is busy with another start of it is started again. The agent has done nothing by then: nothing is done twice.
`fallback.json` and a row of the activity say that the fallback is used, and why.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Mapping
from random import random
from typing import Any

from agentctl.adapters.clock import now_iso
from agentctl.adapters.files import to_json, write_whole
from agentctl.adapters.taskdir import WorkerDir
from agentctl.adapters.taskyaml.cache import known_limits, root_task_of
from agentctl.domain.budget import unheld
from agentctl.domain.states import Reason
from agentctl.drivers.dialogue import AgentOutcome, Driver, Fallback
from agentctl.drivers.order import Order
from agentctl.driving.fulldisk import when_there_is_room
from agentctl.driving.host import UNHAPPY, Host
from agentctl.driving.querying import Query
from agentctl.driving.recording import Recorder
from agentctl.driving.starting import HeldSignals, StartedProgram, start
from agentctl.errors import Refused
from agentctl.operations.start.answer_schema import ask_for

#: Between two starts of a program that is busy with another start of it, at least, and up to twice as long: those that
#: were started at the same time then are not once more.
_PAUSES_S = (0.5, 1.0, 2.0, 4.0, 8.0)
#: So often a pause looks whether somebody has cancelled meanwhile.
_LOOK_S = 0.1


async def run_agent(
    worker: WorkerDir, started: StartedProgram, changes: Mapping[str, Any], signals: HeldSignals
) -> int:
    """Run an agent to its end, with the fallback if the conversation cannot be opened; return the exit code.

    Args:
        changes: The fields in which the order differs from `spec.json`.
        signals: Those that arrived while this module was being loaded.
    """
    with contextlib.suppress(OSError):
        os.unlink(worker.fallback)  # Left by an earlier attempt.
    host, driver = Host(worker, started, changes, signals, may_try_again=True), started.driver
    code = await host.run()
    for number, pause_s in enumerate(_PAUSES_S, 1):
        if host.unbegun is None or not host.unbegun.is_busy:
            break
        if await _is_stopped(pause_s * (1 + random()), host, signals):
            return _refused(worker, str(host.unbegun.message))
        again = start(worker, _with_messages(host), driver)
        changes = {**changes, "again": number}
        host = Host(worker, again, changes, signals, may_try_again=number < len(_PAUSES_S))
        code = await host.run()
    if host.unbegun is None or driver.fallback is None:
        return code
    why = str(host.unbegun.message)
    try:
        _check_limits(worker, driver.fallback.driver)
        order = _ready(_with_messages(host), driver.fallback)
    except Refused as refusal:
        return _refused(worker, f"{why}; {refusal}" + (f" ({refusal.hint})" if refusal.hint else ""))
    record = {"driver": driver.fallback.driver.name, "why": why, "at": now_iso()}
    when_there_is_room(lambda: write_whole(worker.fallback, to_json(record)))
    other = start(worker, order, driver.fallback.driver)
    return await Host(worker, other, {**changes, "fallback": why}, signals).run()


async def _is_stopped(pause_s: float, host: Host, signals: HeldSignals) -> bool:
    """Wait before another try; return whether it is cancelled, which may be told before a host hears of it."""
    for _ in range(int(pause_s / _LOOK_S)):
        if host.is_interrupted or signals.are_held:
            return True
        await asyncio.sleep(_LOOK_S)
    return False


def _check_limits(worker: WorkerDir, way: Driver) -> None:
    found = unheld(known_limits(root_task_of(worker.task)), way.reports)
    if found is not None:
        unit, key = found
        raise Refused(
            f"`{way.name}` does not report the {unit} that it uses while it works: {key} cannot be enforced",
            hint="only a person can lift this limit",
        )


def _with_messages(host: Host) -> Order:
    """Return the order with the messages that were read meanwhile but reached no program."""
    return host.order._replace(prompt="\n\n".join([host.order.prompt, *host.messages]))


def _ready(order: Order, fallback: Fallback) -> Order:
    if order.output_schema and "outputSchema" not in fallback.driver.honours:
        order = order._replace(prompt=f"{order.prompt}\n\n{ask_for(order.output_schema)}")
    return fallback.ready(order, lambda argv: Query(argv, order, fallback.driver).printed())


def _refused(worker: WorkerDir, message: str) -> int:
    Recorder(worker).outcome(AgentOutcome(reason=Reason.NOT_STARTED, message=message))
    return UNHAPPY
