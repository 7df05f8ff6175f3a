"""At stake: a shim that tries again on a broken disk tries once in a while, and not as fast as it can."""

from __future__ import annotations

import subprocess
import sys

_SCRIPT = """
import os, time
from agentctl.shim.wakeups import Wakeups

wakeups = Wakeups()
child = os.fork()
if not child:
    os._exit(0)
os.waitpid(child, 0)
begun = time.monotonic()
wakeups.{how}
print(time.monotonic() - begun)
"""


def _lasted(how: str) -> float:
    argv = [sys.executable, "-c", _SCRIPT.format(how=how)]
    return float(subprocess.run(argv, capture_output=True, text=True, timeout=30, check=True).stdout)


def test_a_child_that_ends_cuts_a_rest_short_and_no_pause() -> None:
    assert _lasted("rest(20)") < 20
    assert _lasted("pause(0.3)") >= 0.3
