"""Which agent programs are installed here, and whether their drivers were tested with these versions."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

from agentctl.drivers.registry import AGENT_DRIVERS, load, program_of, version_of
from agentctl.operations.where.findings import Finding, finding

#: Installs the library of the server that gives agents their tools.
INSTALL_MCP = "pip install 'agentctl[mcp]'"


def examine_programs() -> Iterator[Finding]:
    """Yield a finding for each driver, and one if agents get no tools from agentctl."""
    if find_spec("mcp") is None:
        what = "agents get no tools to start others with: the Model Context Protocol's library is not installed"
        yield finding("note", what, "", INSTALL_MCP)
    for name in AGENT_DRIVERS:
        driver = load(name)
        if driver.is_ours:
            continue  # What it can use: `models`.
        program = program_of(driver)
        if program is None:
            yield finding("note", f"{name}: {driver.program} is not installed", "", driver.install)
            continue
        version = version_of(driver, program)
        if version is None:
            yield finding("warning", f"{name}: {driver.program} does not report its version", program, driver.install)
        elif version == driver.tested:
            yield finding("ok", f"{name}: {driver.program} {version}, as tested", program, "")
        else:
            kind = "older" if _parts(version) < _parts(driver.tested) else "newer"
            what = f"{name}: {driver.program} {version} is {kind} than the tested {driver.tested}"
            yield finding("note", what, program, driver.install if kind == "older" else "")


def _parts(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
