"""At stake: a shim does not adopt what its worker leaves behind, since a function of the C library was not called."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from agentctl.adapters.libc import libc
from agentctl.supervision.worker.endings import signal_name
from tests.support import REPOSITORY

_DOCUMENTED = (
    "import _ctypes; del _ctypes.call_function; from agentctl.adapters.libc import libc;"
    " print(libc('abs', -7), libc('no_such_function'))"
)


def test_a_function_is_called_with_its_arguments() -> None:
    assert libc("abs", -7) == 7
    assert libc("atoi", b"41") == 41
    assert libc("getpid") == os.getpid()
    assert libc("no_such_function", 1) is None


def test_without_what_is_not_documented_the_documented_way_says_the_same() -> None:
    argv = [sys.executable, "-c", _DOCUMENTED]
    done = subprocess.run(argv, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert done.stdout == "7 None\n"


@pytest.mark.parametrize(
    ("number", "name"), [(9, "SIGKILL"), (6, "SIGABRT"), (17, "SIGCHLD"), (29, "SIGIO"), (50, "SIG50")]
)
def test_of_two_names_of_a_signal_the_same_one_is_told_as_ever(number: int, name: str) -> None:
    assert signal_name(number) == name
