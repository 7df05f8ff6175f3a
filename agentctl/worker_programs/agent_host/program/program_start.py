"""Starts the agent program before most of its host is loaded, so that both get ready at the same time.

So this module and its imports are kept small: asyncio, and the code that waits, asks and records, are loaded later.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from agentctl.adapters.descriptors import write_some
from agentctl.adapters.files import make_folder
from agentctl.adapters.taskdir import WorkerDir
from agentctl.domain.agent.driver_names import COMMAND
from agentctl.domain.states import Reason
from agentctl.domain.text.plaintext import whole
from agentctl.drivers.dialogue import Action, AgentOutcome, Dialogue, Driver, Say
from agentctl.drivers.order import Order
from agentctl.errors import Refused
from agentctl.lean import NamedTuple
from agentctl.supervision.worker.environment import SECRETS
from agentctl.supervision.worker.mount_points import note_mount_points
from agentctl.worker_programs.agent_host.program.program_environ import program_environ
from agentctl.worker_programs.agent_host.program.tool_offer import Offering
from agentctl.worker_programs.agent_host.records.full_disk import when_there_is_room
from agentctl.worker_programs.agent_host.usage_meter import UsageMeter


class StartedProgram(NamedTuple):
    """A started program, or why it was not started, and what was read before the program could change it."""

    order: Order
    driver: Driver
    meter: UsageMeter
    #: The outbox, held open: another folder in its place is never read.
    outbox: int
    dialogue: Dialogue
    #: What has been written to the program already.
    said: bytes
    #: The first actions of the dialogue, without that.
    opening: Sequence[Action]
    process: subprocess.Popen[bytes] | None
    offering: Offering | None
    refusal: AgentOutcome | None

    def kill(self) -> None:
        """Kill what was started."""
        if self.offering is not None:
            self.offering.end()
        if self.process is not None:
            _kill(self.process)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a program with its group, unless it has ended."""
    if process.poll() is None:
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)


def start_program(worker: WorkerDir, order: Order, driver: Driver, problem: str | None = None) -> StartedProgram:
    """Start the program of an order, unless the limits of its tree are used up.

    Args:
        problem: Why it cannot be started as it is ordered.
    """
    if order.driver != COMMAND:
        order = order._replace(prompt=whole(order.prompt), instructions=whole(order.instructions))
    for folder in (worker.inbox, worker.interactions, worker.outbox):
        when_there_is_room(partial(make_folder, folder))
    if driver.leaves_mount_points:
        note_mount_points(worker, os.getcwd())
    outbox = os.open(worker.outbox, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    meter = UsageMeter(worker)
    excess = meter.refusal()
    launched: subprocess.Popen[bytes] | AgentOutcome
    if excess is not None:
        launched = AgentOutcome(reason=Reason.BUDGET, message=excess)
    elif problem is not None:
        launched = AgentOutcome(reason=Reason.NOT_STARTED, message=problem)
    else:
        order, launched = _launched(order, driver)
    if isinstance(launched, AgentOutcome):
        return StartedProgram(order, driver, meter, outbox, driver.dialogue(order), b"", [], None, None, launched)
    offering = Offering(worker, order, program_environ(order, driver))
    dialogue = driver.dialogue(order)
    said, opening = _say(launched, dialogue.begin())
    return StartedProgram(order, driver, meter, outbox, dialogue, said, opening, launched, offering, None)


def _launched(order: Order, driver: Driver) -> tuple[Order, subprocess.Popen[bytes] | AgentOutcome]:
    """Return the order as it counts now, and its program, just started, or why that was not to be.

    A driver may look at the person's own settings: what they deny holds. To tell them takes as long as to get ready, so
    the program does both at once, and is started again where they deny something. Nothing was said to it by then.
    """
    process = _begun(order, driver)
    argv = driver.settings_argv(order) if driver.settings_argv is not None else []
    if isinstance(process, AgentOutcome) or not argv:
        return order, process
    try:
        informed, refusal = _informed(argv, order, driver)
        is_needed_again = refusal is None and driver.environ(informed, {}) != driver.environ(order, {})
        # That took a while, in which somebody may have written something there.
        refusal = refusal or _refusal_in_project(informed, driver)
    except BaseException:
        _end(process)
        raise
    if refusal is None and not is_needed_again:
        return informed, process
    _end(process)
    return informed, refusal or _begun(informed, driver)


def _informed(argv: list[str], order: Order, driver: Driver) -> tuple[Order, AgentOutcome | None]:
    """Return the order with the person's own settings, which a command line prints, or why they cannot be told."""
    from agentctl.worker_programs.agent_host.program.program_query import (  # Few programs need it.
        Busy,
        Query,
        own_settings,
    )

    try:
        query = Query(argv, order, driver)
        driver.dialogue(order)  # What it imports is loaded meanwhile.
        return order._replace(own_settings=own_settings(query)), None
    except Refused as problem:
        message = f"{problem} ({problem.hint})"
        return order, AgentOutcome(reason=Reason.NOT_STARTED, message=message, is_busy=isinstance(problem, Busy))


def _begun(order: Order, driver: Driver) -> subprocess.Popen[bytes] | AgentOutcome:
    """Start the program of an order, or return why that was not to be."""
    refusal = _refusal_in_project(order, driver)
    if refusal is not None:
        return refusal
    try:
        return _popen(driver.argv(order), {**program_environ(order, driver), **_secrets_of(driver)})
    except OSError as error:
        return _not_started(order.program, driver, error)


def _secrets_of(driver: Driver) -> dict[str, str]:
    """Return the new secrets of a program, and their names for the workers below it, which do not inherit them."""
    secrets = {name: os.urandom(16).hex() for name in driver.secrets}
    return {**secrets, SECRETS: ",".join(secrets)} if secrets else {}


def _refusal_in_project(order: Order, driver: Driver) -> AgentOutcome | None:
    problem = problem_in_project(order, driver)
    return None if problem is None else AgentOutcome(reason=Reason.NOT_STARTED, message=problem)


def _end(process: subprocess.Popen[bytes]) -> None:
    with process:  # Closes its pipes, and waits for its end.
        _kill(process)


def problem_in_project(order: Order, driver: Driver) -> str | None:
    """Return why a program is not to run where it was ordered, in any form; None if nothing is against it."""
    if not driver.obeys:
        return None
    from agentctl.operations.start.obeyed import refuse_obeyed  # Few programs need it.

    try:
        refuse_obeyed(driver, order.cwd or os.getcwd())
    except Refused as problem:
        return f"{problem} ({problem.hint})"
    return None


def _popen(argv: list[str], environ: Mapping[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        argv,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environ,
        bufsize=0,
        # Out of reach of the SIGINT that a cancel sends to the worker's group: the dialogue interrupts it instead.
        process_group=0,
    )


def _not_started(program: str, driver: Driver, error: OSError) -> AgentOutcome:
    """Return the outcome of a program that the system could not start."""
    problem = f"{program} could not be started: {error.strerror}"
    if isinstance(error, (FileNotFoundError, PermissionError, NotADirectoryError)):
        return AgentOutcome(reason=Reason.NOT_INSTALLED, message=f"{problem}; {driver.install}")
    if error.errno == errno.E2BIG:
        problem += "; for a long prompt, the definition needs promptOnStdin: true"
    return AgentOutcome(reason=Reason.NOT_STARTED, message=problem)


def _say(process: subprocess.Popen[bytes], opening: Sequence[Action]) -> tuple[bytes, Sequence[Action]]:
    """Write the first input, as far as the pipe takes it; return what was written, and the actions that are left."""
    assert process.stdin is not None
    os.set_blocking(process.stdin.fileno(), False)
    first: list[bytes] = []
    for one in opening:
        if not isinstance(one, Say):
            break
        first.append(one.data)
    data = b"".join(first)
    unwritten = bytearray(data)
    with contextlib.suppress(OSError):  # The program is gone: the host will notice.
        write_some(process.stdin.fileno(), unwritten)
    left = [Say(bytes(unwritten))] if unwritten else []
    return data.removesuffix(unwritten), [*left, *opening[len(first) :]]


class HeldSignals:
    """Holds back signals that arrive before the host can act on them: none is lost, and none reaches the program."""

    NUMBERS = (signal.SIGINT, signal.SIGTERM)

    def __init__(self) -> None:
        self._held: list[int] = []
        for number in self.NUMBERS:
            signal.signal(number, lambda got, _frame: self._held.append(got))

    @property
    def are_held(self) -> bool:
        """Whether any has arrived that was not handed on."""
        return bool(self._held)

    def hand_on(self, handlers: Mapping[int, Callable[[], None]]) -> None:
        """Call the handlers of the signals that were held, once."""
        held, self._held = self._held, []
        for number in held:
            handlers[number]()
