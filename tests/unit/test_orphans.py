"""At stake: processes end while `doctor` looks at them; none of that is a bug, and none that lives is passed over."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from agentctl.adapters.taskdir import Root
from agentctl.operations.doctor.orphans import examine_orphans
from agentctl.operations.where.findings import Finding
from tests.moments import at_openings, nothing

SLEEPS = "import sys; print(flush=True); sys.stdin.read()"


@pytest.fixture
def seeming_shim(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Start a process with the command line of a shim whose task is gone."""
    argv = [sys.executable, "-c", SLEEPS, "/x/agentctl/shim/__main__.py", str(tmp_path / ".agentctl/tasks/gone")]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.kill()


def end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


def findings_about(process: subprocess.Popen[bytes], folder: Path) -> list[Finding]:
    return [one for one in examine_orphans(Root(folder / ".agentctl"), fix=False) if f"pid {process.pid}," in one.what]


@pytest.mark.slow
@pytest.mark.parametrize("looks", range(3))
def test_a_shim_that_ends_between_two_looks_is_passed_over(
    tmp_path: Path, seeming_shim: subprocess.Popen[bytes], looks: int
) -> None:
    """It ends only if it is looked at so often."""
    ends = partial(end, seeming_shim)
    with at_openings(f"/proc/{seeming_shim.pid}/cmdline", [*[nothing] * looks, ends]):
        found = findings_about(seeming_shim, tmp_path)
    assert len(found) == (seeming_shim.poll() is None)


@pytest.mark.slow
def test_a_shim_that_lives_is_found(tmp_path: Path, seeming_shim: subprocess.Popen[bytes]) -> None:
    assert len(findings_about(seeming_shim, tmp_path)) == 1
