"""At stake: where there is no /proc, as on macOS, a process is known by what `ps` prints."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from agentctl.adapters import processes
from tests.support import start_argv

pytestmark = pytest.mark.skipif(not os.path.exists("/bin/ps"), reason="there is no ps")


def test_ps_says_the_same_of_a_process() -> None:
    begun = time.time()
    child = start_argv([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    asked, found = processes._read_stat_by_ps(child.pid), processes.read_stat(child.pid)
    assert asked is not None
    assert found is not None
    assert (asked.ppid, asked.session) == (found.ppid, found.session) == (os.getpid(), os.getsid(0))
    assert abs(asked.start - begun) < 120, "a time, by the clock of the wall"
    child.communicate("\n")
    assert processes._read_stat_by_ps(child.pid) is None


#: Asks with no descriptor left, so that no other program can be run.
_WITHOUT_ROOM = """
import os, resource, subprocess
from agentctl.adapters import processes, searchpath
resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
try:
    print("found", processes._read_stat_by_ps(os.getpid()))
except OSError as error:
    print("not known:", error.strerror)
"""


def test_where_ps_cannot_be_run_a_process_is_not_taken_for_gone() -> None:
    told = subprocess.run([sys.executable, "-c", _WITHOUT_ROOM], capture_output=True, text=True, check=True)
    assert told.stdout == "not known: Too many open files\n"
