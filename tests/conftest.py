"""Every test starts from a known environment, leaves no process behind, and cannot touch a person's files."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from hypothesis import settings

from tests import leaks, support
from tests.strangers import Strangers

#: A soak test may take this long, where an ordinary one has the limit in pyproject.toml.
SOAK_TIMEOUT_S = 840
SLOW_TIMEOUT_S = 180

# The machine's speed is no property of the code: nothing in this suite fails for being slow.
# Half of the usual examples: each run tries others, and there are many runs.
settings.register_profile("agentctl", deadline=None, print_blob=True, max_examples=50)
settings.load_profile("agentctl")

# Bytecode is kept whatever the shell says: without it each of the thousands of commands would compile itself anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A shell without job control starts what is to run in the background with SIGINT ignored, and so would be all that
# these tests start: no Ctrl-C of theirs would reach anybody.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the long tests a longer limit, unless they state their own."""
    for item in items:
        if item.get_closest_marker("timeout") is not None:
            continue
        if item.get_closest_marker("soak") is not None:
            item.add_marker(pytest.mark.timeout(SOAK_TIMEOUT_S))
        elif item.get_closest_marker("slow") is not None:
            item.add_marker(pytest.mark.timeout(SLOW_TIMEOUT_S))


@pytest.fixture(scope="session")
def real_places() -> tuple[Path, ...]:
    """Where agentctl would put its files if a test forgot to say where: nothing may appear there."""
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
def no_fallback(
    real_places: tuple[Path, ...], tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Point home and root below a plain file, so that a test without the `root` fixture fails by name."""
    there_before = {place for place in real_places if place.exists()}
    nowhere = tmp_path_factory.getbasetemp() / "this-test-lacks-the-root-fixture"
    nowhere.touch()
    for name in [
        name
        for name in os.environ
        if name.startswith(("AGENTCTL_", "XDG_", "CLAUDECODE", "CODEX_", "GEMINI_CLI", "OPENCODE"))
    ]:
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
    """Fail a test that leaves a process behind, and kill what it left."""
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
    """A root of the test's own, not yet made, with a home, a runtime folder and an empty current folder."""
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
    """Two processes that are none of agentctl's business."""
    found = Strangers(tmp_path / "notes")
    yield found
    found.end()
