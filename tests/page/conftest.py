"""A browser, the server of the test's root, and visits to it; where they are not installed, there are no such tests."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.agent_steps import agent_world
from tests.page.bundle import AGAIN, is_current
from tests.page.install import browser
from tests.page.site import Site
from tests.steps import Task
from tests.support import run

if TYPE_CHECKING:
    from tests.page.visiting import Visit

HERE = Path(__file__).parent
TIMEOUT_S = 120
IS_INSTALLED = find_spec("playwright") is not None and browser() is not None
collect_ignore_glob = [] if IS_INSTALLED else ["test_*.py"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give all tests in this folder their time."""
    for item in items:
        if HERE in item.path.parents and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(TIMEOUT_S))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """Keep what was seen when a test failed."""
    report = yield
    visits = getattr(item, "funcargs", {}).get("visits")
    if report.when == "call" and report.failed and visits:
        folder = item.funcargs["tmp_path"]  # type: ignore[attr-defined]
        for number, visit in enumerate(visits):
            file = folder / f"failed-{number}.png"
            try:
                visit.picture(file)
            except Exception as error:  # noqa: BLE001 - of a failed test, whose own failure is told
                report.sections.append(("picture", f"none: {error}"))
            else:
                report.sections.append(("picture", str(file)))
            report.sections.append(("problems", "\n".join(visit.problems)))
    return report


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """The browser, for all tests of this process."""
    from tests.page.visiting import running_browser

    if not is_current():
        pytest.fail(f"a module of the page is newer than page.js, which is what a browser gets: {AGAIN}", pytrace=False)
    with running_browser() as running:
        yield running


@pytest.fixture
def task(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Task]:
    """A task, in an environment whose only agent program needs no model; its workers end with the test."""
    made = agent_world(tmp_path, monkeypatch, cap=6, grace=0.2)
    yield made
    for folder in made.path.parent.iterdir():
        run("cancel", "--all", "--task", folder.name, check=False)


@pytest.fixture
def options() -> list[str]:
    """Options of the server."""
    return []


@pytest.fixture
def site(chromium: Any, task: Task, tmp_path: Path, options: list[str]) -> Iterator[Site]:
    """The server of the test's root."""
    server = Site(tmp_path, *options)
    yield server
    server.stop()


@pytest.fixture
def visits() -> list[Visit]:
    """The visits of the test, so far."""
    return []


@pytest.fixture
def visiting(chromium: Any, site: Site, visits: list[Visit]) -> Iterator[Callable[..., Visit]]:
    """Begin a visit, with options of a browser's context."""
    from tests.page.visiting import Visit

    def begin(**options: Any) -> Visit:
        visits.append(Visit(chromium, site, **options))
        return visits[-1]

    yield begin
    problems = []
    for visit in visits:
        try:
            visit.close()
        except AssertionError:
            problems += visit.problems
    if problems:
        pytest.fail("the browser tells:\n" + "\n".join(problems))


@pytest.fixture
def visit(visiting: Callable[..., Visit]) -> Visit:
    """A visit with an ordinary window."""
    return visiting()
