"""Which agent programs are installed here, and whether their drivers know these versions."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

from agentctl.adapters.extras import install_command
from agentctl.adapters.versions import version_of
from agentctl.domain.text.versions import parts
from agentctl.drivers.dialogue import Driver
from agentctl.drivers.registry import AGENT_DRIVERS, load, program_of
from agentctl.errors import UsageError
from agentctl.operations.where.findings import Finding, finding


def examine_programs() -> Iterator[Finding]:
    """Yield a finding for each driver, and one if agents get no tools from agentctl."""
    if find_spec("mcp") is None:
        what = "agents get no tools to start others with: the Model Context Protocol's library is not installed"
        yield finding("note", what, "", install_command("mcp"))
    drivers: list[Driver] = []
    try:
        # Of our own program it is told what it can use (`models`).
        drivers.extend(driver for driver in map(load, AGENT_DRIVERS) if not driver.is_ours)
    except UsageError as error:  # In a person's own rows; the drivers that are modules come before.
        yield finding("error", error.message, "", error.steps)
    installed = {driver.name: program for driver in drivers if (program := program_of(driver)) is not None}
    for driver in drivers:
        if driver.name in installed:
            yield _of_installed(driver, installed[driver.name])
        elif driver.extra is None:
            yield finding("note", f"{driver.name}: {driver.program} is not installed", "", driver.install)
    others = [driver.name for driver in drivers if driver.extra is not None]
    absent = [name for name in others if name not in installed]
    if absent:
        yield finding("note", f"of the programs that speak ACP, not installed: {', '.join(absent)}", "", "")
    if len(absent) < len(others) and find_spec("acp") is None:
        what = "none of the programs that speak ACP can be run: its library is missing"
        yield finding("note", what, "", install_command("acp"))


def _of_installed(driver: Driver, program: str) -> Finding:
    version, named = version_of(program, tuple(driver.version_argv)), f"{driver.name}: {driver.program}"
    if version is None:
        asked = " ".join([driver.program, *driver.version_argv])
        return finding("warning", f"{named} does not report its version", program, f"see what this prints: {asked}")
    if not driver.tested:
        return finding("note", f"{named} {version}; no version of it was tested", program, "")
    if parts(version) < parts(driver.oldest):
        what = f"{named} {version} is too old: agentctl needs {driver.oldest} or newer"
        return finding("warning", what, program, driver.install)
    if version == driver.tested:
        return finding("ok", f"{named} {version}, as tested", program, "")
    kind = "older" if parts(version) < parts(driver.tested) else "newer"
    what = f"{named} {version} is {kind} than the tested {driver.tested}"
    return finding("note", what, program, driver.install if kind == "older" else "")
