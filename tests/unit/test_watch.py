"""At stake: a wait with an answer does not wait for the kernel to close its watch, and gives the watch back."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentctl.adapters.watch import Watch
from tests.support import wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")

#: The instance in use, and those that threads are closing.
_AT_ONCE = 1 + 8
#: Makes thread stacks too large for the address space, so that no thread can be started.
_WITHOUT_THREADS = """
import os, sys, _thread
_thread.stack_size(1 << 47)
from agentctl.adapters.watch import Watch
watch = Watch([sys.argv[1]])
fd = watch.fd
watch.close()
try:
    os.fstat(fd)
except OSError:
    print("given back")
"""


def _instances() -> int:
    found = 0
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):  # A thread may have closed it meanwhile.
            found += "inotify" in os.readlink(f"/proc/self/fd/{name}")
    return found


def _marks(fd: int) -> int:
    return Path(f"/proc/self/fdinfo/{fd}").read_text(encoding="ascii").count("inotify wd:")


def test_more_watches_come_and_go_than_the_system_has_instances(tmp_path: Path) -> None:
    before = most = _instances()
    for number in range(400):
        with Watch([tmp_path]) as watch:
            assert watch.fd is not None
            (tmp_path / f"{number}").touch()
            watch.sleep(None)
            most = max(most, _instances())
    assert most <= before + _AT_ONCE
    wait_until(_instances, accept=lambda now: now == before, what="all instances to be given back")


def test_no_mark_is_left_for_which_the_end_of_a_process_would_wait(tmp_path: Path) -> None:
    watch = Watch([tmp_path, tmp_path.parent])
    assert watch.fd is not None
    same = os.dup(watch.fd)  # This descriptor keeps the instance open.
    try:
        assert _marks(same) == 2
        watch.close()
        assert _marks(same) == 0
    finally:
        os.close(same)


def test_an_instance_is_given_back_where_no_thread_is_left(tmp_path: Path) -> None:
    told = subprocess.run(
        [sys.executable, "-c", _WITHOUT_THREADS, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert told.stdout == "given back\n"
