"""Two machines, `a` and `b`, for each test of this folder: what is not installed skips them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hosts.install import is_there
from tests.hosts.machines import Machine, machines


@pytest.fixture
def both(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Machine, Machine]]:
    """Return two machines with a task each; the third is the one of the test."""
    if not is_there():
        pytest.skip("there is no sshd: python -m tests.hosts.install")
    monkeypatch.delenv("AGENTCTL_ROOT")
    with machines(tmp_path / "machines", "a", "b") as found:
        for machine in found.values():
            machine.run("new", "A task", "--id", f"on-{machine.name}", "--grace-seconds", "0.2")
        yield found["a"], found["b"]
