"""Fixtures for every test: a known environment, no process left behind, and no access to the user's own files."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import tempfile
import uuid
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import settings

from agentctl.adapters.seats import own_seat
from agentctl.operations.where.agents_above import PASSED_ON
from tests import advice, alone, leaks, order, own_process, reports, support, turns
from tests.faults import faults, faulty  # noqa: F401 - fixtures
from tests.strangers import Strangers

#: The time limit of a soak test and of a slow one; ordinary tests have the limit in pyproject.toml.
SOAK_TIMEOUT_S = 840
SLOW_TIMEOUT_S = 180
_MARKS = ", ".join(turns.MARKS)
HERE = Path(__file__).parent
#: Folders of one subject: each test in them has the mark of the folder's name.
MARKED = frozenset({"agents", "drivers", "hosts", "lint", "nodes", "page", "screen", "slurm"})

# No example of hypothesis fails for being slow: the speed of the machine is not a property of the code.
# Half of the default number of examples: each run tries new ones, and there are many runs.
settings.register_profile("agentctl", deadline=None, print_blob=True, max_examples=50)
settings.load_profile("agentctl")

# Keep bytecode, whatever the environment says: otherwise each of thousands of commands would compile its modules.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A shell without job control starts background programs with SIGINT ignored. Everything that these tests start would
# inherit that, and no Ctrl-C that they send would have an effect.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config: pytest.Config) -> None:
    """Leave the session of an agent that has started the tests, and one whose leader is gone."""
    alone.leave_session(config)
    if own_seat() is None:
        with contextlib.suppress(PermissionError):  # This leads a process group: whoever has started it lives.
            os.setsid()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--turn`."""
    which = f"try this third of the tests marked {_MARKS}"
    parser.addoption("--turn", choices=turns.CHOICES, default=turns.ALL, help=which)


def pytest_report_header(config: pytest.Config) -> str | None:
    """Say which third is tried."""
    turn = config.getoption("turn")
    return None if turn == turns.ALL else f"turn {turn} of {len(turns.TURNS)}: a third of the tests marked {_MARKS}"


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark what has its folder's mark."""
    if HERE in item.path.parents and (folder := item.path.relative_to(HERE).parts[0]) in MARKED:
        item.add_marker(folder)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Let a test pass that says it follows some advice only if it has."""
    yield
    advice.check_follows(item)


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable() -> Generator[None, dict[str, Any] | None, Any]:
    """Let each failure be told, whatever it prints."""
    return reports.sendable((yield))


# Last: what others leave out is not dealt.
@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what has another turn; long tests have a longer limit, and come first where several run at once."""
    _take_turn(config, items)
    for item in items:
        if item.get_closest_marker("timeout") is not None:
            continue
        if item.get_closest_marker("soak") is not None:
            item.add_marker(pytest.mark.timeout(SOAK_TIMEOUT_S))
        elif item.get_closest_marker("slow") is not None:
            item.add_marker(pytest.mark.timeout(SLOW_TIMEOUT_S))
    if (here := getattr(config, "workerinput", None)) is not None:
        items[:] = order.dealt(sorted(items, key=order.length), int(here["workercount"]))


def _take_turn(config: pytest.Config, items: list[pytest.Item]) -> None:
    turn = config.getoption("turn")
    others = [
        item
        for item in items
        if turn not in {turns.ALL, str(turns.turn_of(item.nodeid))} and any(map(item.get_closest_marker, turns.MARKS))
    ]
    if others:
        config.hook.pytest_deselected(items=others)
        left_out = set(others)
        items[:] = [item for item in items if item not in left_out]


@pytest.fixture(scope="session")
def real_places() -> tuple[Path, ...]:
    """Return the places where agentctl would put its files by default: no test may create any of them."""
    home = Path.home()
    runtime = os.environ.get("XDG_RUNTIME_DIR", f"/run/user/{os.getuid()}")
    return (
        home / ".agentctl",
        home / ".config" / "agentctl",
        support.REPOSITORY / ".agentctl",
        Path(runtime) / "agentctl",
        Path(tempfile.gettempdir()) / ".agentctl",
    )


@pytest.fixture(autouse=True)
def as_found() -> Iterator[None]:
    """Undo what a test does to the environment; fail one that leaves anything else changed which programs inherit.

    It begins before all other fixtures of a test, and ends behind them: what these restore is no change.
    """
    before = own_process.inherited()
    with own_process.environment_restored():
        yield
    after = own_process.inherited()
    changed = [f"{what}: {before[what]} before, {after[what]} now" for what in before if before[what] != after[what]]
    if changed:
        pytest.fail("the test left its process changed, in which others run: " + "; ".join(changed))


@pytest.fixture(autouse=True)
def no_fallback(
    as_found: None,
    real_places: tuple[Path, ...],
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[None]:
    """Point home and root below a plain file, whose name tells a test without the `root` fixture what it lacks."""
    there_before = {place for place in real_places if place.exists()}
    nowhere = tmp_path_factory.getbasetemp() / "this-test-lacks-the-root-fixture"
    nowhere.touch()
    of_others = ("AGENTCTL_", "XDG_", "CLAUDECODE", "CODEX_", "GEMINI_CLI", "OPENCODE")
    for name in [name for name in os.environ if name.startswith(of_others) or name in PASSED_ON]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(nowhere))
    monkeypatch.setenv("AGENTCTL_ROOT", str(nowhere / ".agentctl"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(nowhere / "run"))
    yield
    appeared = [str(place) for place in real_places if place not in there_before and place.exists()]
    if appeared:
        pytest.fail(f"the test wrote outside its own folder: {', '.join(appeared)}")


@pytest.fixture(autouse=True)
def no_survivors(no_fallback: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fail a test that leaves processes behind, and kill them."""
    marks = leaks.Marks(test_id=uuid.uuid4().hex, folder=tmp_path, before=frozenset(psutil.pids()))
    monkeypatch.setenv(support.TEST_ID, marks.test_id)
    yield
    left = leaks.settle(marks)
    report = leaks.describe(left)
    immortal = leaks.kill_all(marks) if left else []
    support.forget_background()
    if immortal:
        report += f"\nand these could not be killed:\n{leaks.describe(immortal)}"
    if left:
        pytest.fail(f"the test left processes behind:\n{report}")


@pytest.fixture
def root(tmp_path: Path, no_survivors: None, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the path of a new root, not yet created, with a new home, runtime folder and empty current folder."""
    folders = {name: tmp_path / name for name in ("home", "run", "work")}
    for folder in folders.values():
        folder.mkdir(mode=0o700)
    monkeypatch.setenv("HOME", str(folders["home"]))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folders["run"]))
    monkeypatch.setenv("AGENTCTL_ROOT", str(tmp_path / ".agentctl"))
    monkeypatch.chdir(folders["work"])
    return tmp_path / ".agentctl"


@pytest.fixture
def strangers(root: Path, tmp_path: Path) -> Iterator[Strangers]:
    """Return two unrelated processes that agentctl must not signal."""
    found = Strangers(tmp_path / "notes")
    yield found
    found.end()
