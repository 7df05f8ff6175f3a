"""How long a command may wait in the shell of a model: Claude Code stops whatever takes longer than two minutes."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from agentctl.errors import WaitTimedOut

#: Set by Claude Code for the commands of its model.
VARIABLE = "CLAUDECODE"
FOREGROUND_S = 90.0
GO_ON = (
    "no worker was stopped; wait again, or in the background with a limit of your own:"
    " agentctl wait-any --timeout-seconds 86400"
)


@contextlib.contextmanager
def in_foreground(given_s: float | None) -> Iterator[float | None]:
    """Yield how long to wait: as given, otherwise 90 s under Claude Code; its timeout says how to continue."""
    if given_s is not None or not os.environ.get(VARIABLE):
        yield given_s
        return
    try:
        yield FOREGROUND_S
    except WaitTimedOut as error:
        error.hint = GO_ON
        raise
