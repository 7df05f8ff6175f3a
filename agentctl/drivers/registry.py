"""Lists the drivers, and finds out which of their programs are installed."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

from agentctl.adapters.searchpath import program_at
from agentctl.domain.agent.driver_names import ANY_ACP, COMMAND, PLAIN
from agentctl.drivers.dialogue import Driver
from agentctl.drivers.marks import Marks
from agentctl.drivers.order import Order
from agentctl.errors import Argument, NotFound, Refused, WithArguments
from agentctl.parts import part

#: The drivers that are modules of their own, in order of preference: the first one that is installed is taken.
_OWN_DRIVERS = ("claude", "codex")
_TAKEN = (*_OWN_DRIVERS, PLAIN, COMMAND, ANY_ACP)


class _AgentDrivers:
    """The names of the drivers of agent programs, in order of preference."""

    def __iter__(self) -> Iterator[str]:
        """Yield each; the programs that are rows of a file are read only when they are reached. Our own comes last.

        Raises:
            UsageError: The file of a person's own programs is not valid.
        """
        yield from _OWN_DRIVERS
        from agentctl.drivers.acp.known import known_programs

        yield from known_programs(_TAKEN)
        yield PLAIN


class _TestedDrivers(_AgentDrivers):
    """Those whose programs were tried: the others run only where somebody names them."""

    def __iter__(self) -> Iterator[str]:
        """Yield each, as the others."""
        for name in super().__iter__():
            driver = load(name)
            if driver.tested or driver.is_ours:
                yield name


def is_agent_driver(name: str) -> bool:
    """Return whether an agent program has a driver of this name; the file of rows is read only if it has to be."""
    return name in (*_OWN_DRIVERS, PLAIN) or name in AGENT_DRIVERS


AGENT_DRIVERS: Iterable[str] = _AgentDrivers()
TESTED_DRIVERS: Iterable[str] = _TestedDrivers()


def load(name: str) -> Driver:
    """Return a driver; only its own module is imported.

    Raises:
        NotFound: There is no such driver.
        UsageError: The file of a person's own programs is not valid.
    """
    if name in (*_OWN_DRIVERS, PLAIN, COMMAND):
        driver: Driver = part(f"agentctl.drivers.{name}", "DRIVER")
        return driver
    from agentctl.drivers.acp.known import known_programs
    from agentctl.drivers.acp.program import AcpProgram, driver_of

    if name == ANY_ACP:
        return driver_of(name, AcpProgram())
    row = known_programs(_TAKEN).get(name)
    if row is None:
        raise NotFound(f"there is no driver {name!r}", hint=f"known: {', '.join([*AGENT_DRIVERS, COMMAND, ANY_ACP])}")
    return driver_of(name, row)


def own_marks() -> list[Marks]:
    """Return by what the programs are known that a person has added.

    Raises:
        UsageError: Their file is not valid.
    """
    from agentctl.drivers.acp.known import own_programs

    return [row.known_by for row in own_programs(_TAKEN).values()]


def driver_for(order: Order) -> Driver:
    """Return the driver of an order, which has with it what is known of a program that speaks ACP.

    Raises:
        NotFound: There is no such driver.
    """
    if not order.acp:
        return load(order.driver)
    from agentctl.drivers.acp.program import driver_of, program_from

    return driver_of(order.driver, program_from(order.acp))


def program_of(driver: Driver, path: str | None = None) -> str | None:
    """Return the path of a driver's program; None if it is not installed."""
    if driver.is_ours:
        return sys.executable
    return program_at(driver.program, path) if driver.program else None


def choose(wanted: str | None, order: Iterable[str], path: str | None = None) -> Driver:
    """Return the wanted driver, else the first of `order` whose program is installed.

    Raises:
        NotFound: There is no such driver.
        Refused: None of the programs is installed.
    """
    if wanted is not None:
        return load(wanted)
    looked_for: list[Driver] = []
    for name in order:
        looked_for.append(load(name))
        if program_of(looked_for[-1], path):
            return looked_for[-1]
    names = ", ".join(driver.program or driver.name for driver in looked_for)
    hint = looked_for[0].install if looked_for else WithArguments("name one with ", Argument("driver"))
    raise Refused(f"no agent program is installed ({names})", hint=hint)
