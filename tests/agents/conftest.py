"""The real agent programs for the tests, and the matrix of what they can do at the end of a run."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.agents.cannot import cannot
from tests.agents.facts import VERSIONS
from tests.agents.install import Unavailable, install_acpx, install_all
from tests.agents.lab import Lab
from tests.agents.matrix import Matrix
from tests.agents.standin import StandIn
from tests.steps import new_task
from tests.turns import ALL, TURNS

HERE = Path(__file__).parent
TIMEOUT_S = 150
#: Names a file for the matrix: `AGENT_MATRIX=matrix.md make test-agents`.
MATRIX_FILE = "AGENT_MATRIX"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give all tests in this folder their time, and keep the cell of the matrix that each fills."""
    for place, item in enumerate(items):
        if HERE not in item.path.parents:
            continue
        item.add_marker(pytest.mark.timeout(TIMEOUT_S))
        if isinstance(item, pytest.Function) and "program" in getattr(item, "fixturenames", ()):
            chosen = {name: str(value) for name, value in item.callspec.params.items()}
            behaviour = (item.function.__doc__ or item.originalname).split("\n")[0].rstrip(".").format(**chosen)
            item.user_properties += [("behaviour", behaviour), ("program", chosen["program"]), ("place", place)]
            _expect_what_it_can(item, chosen)


def _expect_what_it_can(item: pytest.Function, chosen: Mapping[str, str]) -> None:
    """Expect a test to fail for a program that cannot do what it is about."""
    parameters = "-".join(value for name, value in sorted(chosen.items()) if name != "program")
    reason = cannot(item.path.stem, item.originalname, parameters, chosen["program"])
    if reason is not None:
        item.add_marker(pytest.mark.xfail(reason=reason.reason, run=reason.is_tried, strict=True))


@pytest.fixture(scope="session")
def installed() -> dict[str, Path]:
    """The agent programs; the tests are skipped where they cannot be had."""
    try:
        return install_all()
    except Unavailable as error:
        pytest.skip(f"no agent programs: {error}")


@pytest.fixture(scope="session")
def client() -> list[str]:
    """The command line of a client of ACP, found before a test has a home of its own."""
    try:
        return install_acpx()
    except Unavailable as error:
        pytest.skip(f"no acpx: {error}")


@pytest.fixture(params=VERSIONS)
def program(request: pytest.FixtureRequest) -> str:
    """The agent program to test."""
    return str(request.param)


@pytest.fixture
def lab(
    installed: dict[str, Path],
    program: str,
    root: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> Iterator[Lab]:
    """A task, and the one agent program in PATH beside a stand-in for its model."""
    if program in installed:  # `llm` is a part of agentctl.
        monkeypatch.setenv("PATH", f"{installed[program].parent}{os.pathsep}{os.environ['PATH']}")
    with StandIn() as standin:
        lab = Lab(program, tmp_path, new_task(cap=5, grace=3), standin)
        yield lab
        if request.node.get_closest_marker("xfail") is not None:
            lab.crash()  # What has failed as expected may have left agents at work.


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the matrix behaviour x program, and write it where that was asked for."""
    matrix = Matrix.of(terminalreporter.stats)
    if not matrix.rows:
        return
    terminalreporter.section("agent programs")
    if (turn := terminalreporter.config.getoption("turn")) != ALL:
        terminalreporter.write_line(f"turn {turn} of {len(TURNS)} alone: `-` may also be what another turn tries")
    terminalreporter.write_line(matrix.text())
    if file := os.environ.get(MATRIX_FILE):
        Path(file).write_text(matrix.text() + "\n", encoding="utf-8")
