"""At stake: a wait with an answer does not wait for the kernel to close its watch, and keeps no more than it needs."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentctl.adapters.processes import wait_readable
from agentctl.adapters.watch import _MOST_SPARE as MOST_SPARE
from agentctl.adapters.watch import Watch

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")


def _instances() -> int:
    found = 0
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):  # A thread may have closed it meanwhile.
            found += "inotify" in os.readlink(f"/proc/self/fd/{name}")
    return found


def _marks(fd: int) -> int:
    return Path(f"/proc/self/fdinfo/{fd}").read_text(encoding="ascii").count("inotify wd:")


def test_watches_that_come_and_go_share_an_instance(tmp_path: Path) -> None:
    before = _instances()
    for number in range(400):
        with Watch([tmp_path]) as watch:
            assert watch.fd is not None
            (tmp_path / f"{number}").touch()
            watch.sleep(None)
    assert _instances() <= before + 1


def test_many_watches_at_once_leave_few_instances(tmp_path: Path) -> None:
    before = _instances()
    watches = [Watch([tmp_path]) for _ in range(30)]
    assert _instances() >= before + 30 - MOST_SPARE
    for watch in watches:
        watch.close()
    assert _instances() <= before + MOST_SPARE


def test_a_watch_does_not_see_what_the_one_before_it_watched(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    new.mkdir()
    with Watch([old]) as watch:
        (old / "unread").touch()
        fd = watch.fd
    with Watch([new]) as watch:
        assert watch.fd is not None
        assert watch.fd == fd
        (old / "later").touch()
        assert not wait_readable([watch.fd], 0)
        (new / "seen").touch()
        assert wait_readable([watch.fd], 0)


def test_a_forked_child_has_watches_of_its_own(tmp_path: Path) -> None:
    """A child that took its parent's spare instance would take the changes from it."""
    Watch([tmp_path]).close()
    pid = os.fork()
    if pid == 0:
        os._exit(_instances())
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert _instances() > 0


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


def test_a_process_that_has_waited_ends_without_threads(tmp_path: Path) -> None:
    """CPython (seen with 3.11.2) may crash at its end while a thread comes back from a system call."""
    code = "import sys; from agentctl.adapters.watch import Watch; Watch(sys.argv[1:]).close()"
    count = "import os; print(len(os.listdir('/proc/self/task')))"
    ran = subprocess.run([sys.executable, "-c", f"{code}; {count}", tmp_path], capture_output=True, check=True)
    assert ran.stdout == b"1\n"
