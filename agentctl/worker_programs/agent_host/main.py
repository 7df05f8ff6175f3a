"""Runs the agent of a worker: from the worker's folder to an exit code."""

from __future__ import annotations

import gc
import os
from collections.abc import Mapping
from typing import Any

from agentctl.adapters.files import json_in, read_json, read_known, storage_errors
from agentctl.adapters.opening import read_bytes
from agentctl.adapters.taskdir import WorkerDir
from agentctl.domain.agent.own_tools import SERVER
from agentctl.drivers.dialogue import Driver
from agentctl.drivers.order import Order, order_changes, order_from
from agentctl.drivers.registry import driver_for
from agentctl.errors import Damaged
from agentctl.supervision.worker.environment import AGENT_DIR
from agentctl.supervision.worker.spec import SPEC_DIGEST, are_texts, digest_of, with_moved_programs
from agentctl.worker_programs.agent_host.program.program_start import (
    HeldSignals,
    StartedProgram,
    problem_in_project,
    start_program,
)
from agentctl.worker_programs.agent_host.records.full_disk import when_there_is_room
from agentctl.worker_programs.agent_host.usage_meter import UsageMeter


def main() -> int:
    """Run the agent of this worker; return the exit code."""
    signals = HeldSignals()
    worker, digest = WorkerDir(os.environ[AGENT_DIR]), os.environ.pop(SPEC_DIGEST, None)
    set_trace(os.environ)
    spec = when_there_is_room(lambda: _read_spec(worker, digest))
    order, driver = _order_in(spec, worker)
    os.umask(int(spec.get("umask", 0o077)))
    now = when_there_is_room(lambda: _order_of_attempt(worker, order))
    if driver.needs_nonce:
        now = now._replace(nonce=os.urandom(16).hex())
    changes = order_changes(order, now)
    if "maxBudgetUsd" in driver.honours:
        now = UsageMeter(worker).hand_on(now)
    if (folder := driver.home(now)) is None:
        return _run(worker, start_program(worker, now, driver), changes, signals)
    from agentctl.worker_programs.agent_host.program.own_home import OwnHome  # Of few programs.

    home = OwnHome(worker, folder)
    try:
        # Before that, since its databases are made by the program itself.
        problem = problem_in_project(now, driver)
        if problem is None:
            now, problem = home.given(now)
        return _run(worker, start_program(worker, now, driver, problem), {**changes, "home": now.home}, signals)
    finally:
        home.end()


def _run(worker: WorkerDir, started: StartedProgram, changes: Mapping[str, Any], signals: HeldSignals) -> int:
    try:
        import asyncio  # While the program starts.

        from agentctl.adapters.kept_code import keep_open
        from agentctl.worker_programs.agent_host.busy_program import run_agent
        from agentctl.worker_programs.agent_host.later import HOST

        keep_open(HOST)
        gc.freeze()  # What is loaded stays: the collector need not examine it again.
        gc.enable()
        return asyncio.run(run_agent(worker, started, changes, signals))
    except BaseException:
        started.kill()
        raise


def order_and_driver(worker: WorkerDir) -> tuple[Order, Driver]:
    """Return the order of a worker's agent, and its driver.

    Raises:
        Damaged: Its spec has no order.
    """
    return _order_in(read_json(worker.spec) or {}, worker)


def _read_spec(worker: WorkerDir, digest: str | None) -> dict[str, Any]:
    """Return the spec, if it is the one that the shim has checked: it may have been changed since."""
    with storage_errors(worker.spec, "read"):
        data = read_bytes(worker.spec)
    if digest_of(data) != digest:
        raise Damaged(f"{worker.spec} was changed since its worker was started", hint="spawn it again")
    return json_in(data, worker.spec)


def _order_in(spec: Mapping[str, Any], worker: WorkerDir) -> tuple[Order, Driver]:
    if not isinstance(spec.get("order"), dict):
        raise Damaged(f"{worker.spec} does not hold an order for an agent", hint="spawn it again")
    order = order_from(spec["order"])
    server = order.mcp_servers.get(SERVER)
    if server is not None and are_texts(server.get("args")):
        server = {**server, "args": with_moved_programs(server["args"])}
        order = order._replace(mcp_servers={**order.mcp_servers, SERVER: server})
    return order, driver_for(order)


def _order_of_attempt(worker: WorkerDir, order: Order) -> Order:
    """Return the order of this attempt: a later one continues the session that an earlier one has begun."""
    attempt = read_known(worker.process).get("attempt", 1)
    known = read_known(worker.session)
    if attempt == 1:
        return order
    order = order._replace(earlier_attempts=attempt - 1)
    if not known.get("session"):
        return order
    from agentctl.operations.start.continuation import continued

    return continued(worker, order, str(known["session"]))


def set_trace(environ: os._Environ[str]) -> None:
    """Set TRACEPARENT (W3C Trace Context): an existing trace goes on, with a new span for this worker."""
    parts = environ.get("TRACEPARENT", "").split("-")
    trace = parts[1] if len(parts) == 4 and len(parts[1]) == 32 else os.urandom(16).hex()
    flags = parts[3] if len(parts) == 4 and len(parts[3]) == 2 else "01"
    environ["TRACEPARENT"] = f"00-{trace}-{os.urandom(8).hex()}-{flags}"
