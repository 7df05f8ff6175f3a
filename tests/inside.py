"""The program called within this process: for long tables of what it refuses, at a hundredth of a process each.

What belongs to a process alone (its streams, its exit, what it loads) is tested with `support.run`.
"""

from __future__ import annotations

import pytest

from agentctl.cli.app import main
from tests.support import Completed


def call(capsys: pytest.CaptureFixture[str], *args: str) -> Completed:
    """Call `agentctl ARGS` and return how it ended."""
    capsys.readouterr()
    code = main(list(args))
    said = capsys.readouterr()
    return Completed(argv=("agentctl", *args), code=code, out=said.out, err=said.err)
