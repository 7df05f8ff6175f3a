"""Has the tests run outside of an agent's session that has started them: there nobody could play a person.

Whoever has become a daemon has no agent above it any more. So a process of its own runs them, and this one waits.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys

import pytest

from agentctl.operations.where.agents_above import PASSED_ON, agent_above

#: Says that this was tried.
_TRIED = "AGENTCTL_TESTS_ALONE"


def leave_session(config: pytest.Config) -> None:
    """Run all of it once more where no agent is above, and end with its exit code; return if none is above here."""
    above = None if hasattr(config, "workerinput") else agent_above()
    if above is None:
        return
    if _TRIED in os.environ:
        pytest.exit(f"an agent is above the tests ({above}): nobody can play a person; run them in a terminal", 2)
    capturing = config.pluginmanager.getplugin("capturemanager")
    if capturing is not None:
        capturing.stop_global_capturing()
    code, told = os.pipe()
    lives, life = os.pipe()
    if os.fork() == 0:
        os.close(life)
        if os.fork() == 0:
            os.close(code)
            os.write(told, bytes([_run(lives)]))
        os._exit(0)
    os.close(told)
    os.wait()
    os._exit(_first_byte(code))


def _run(lives: int) -> int:
    """Run the tests; stop them once the one that waits for them is gone."""
    signal.signal(signal.SIGINT, lambda *_: None)
    environ = {name: value for name, value in os.environ.items() if name not in PASSED_ON}
    tests = subprocess.Popen([sys.executable, *sys.orig_argv[1:]], env={**environ, _TRIED: "1"})
    while tests.poll() is None:
        if select.select([lives], [], [], 0.2)[0]:
            tests.terminate()
            return tests.wait() & 0xFF
    return tests.returncode & 0xFF


def _first_byte(code: int) -> int:
    while True:
        try:
            return (os.read(code, 1) or b"\2")[0]
        except KeyboardInterrupt:  # The tests got it as well.
            continue
