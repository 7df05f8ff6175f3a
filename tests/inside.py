"""Calls the program within this process, at a hundredth of a process's cost: for long tables of refused input.

Properties of a whole process (its streams, its exit, what it loads) are tested with `support.run`.
"""

from __future__ import annotations

import pytest

from agentctl.interfaces.cli.app import main
from tests.support import Completed


def call(capsys: pytest.CaptureFixture[str], *args: str) -> Completed:
    """Call `agentctl ARGS` and return how it ended."""
    capsys.readouterr()
    code = main(list(args))
    said = capsys.readouterr()
    return Completed(argv=("agentctl", *args), code=code, out=said.out, err=said.err)
