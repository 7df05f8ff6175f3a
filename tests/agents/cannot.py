"""What a program cannot do, and why: the tests of it have to fail, so that the matrix stays true."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Cannot(NamedTuple):
    """Why a program cannot do something."""

    reason: str
    #: False: the test is not run, since it would only wait for something that never comes.
    is_tried: bool = True


#: (file.test, or file.test[parameters], program) -> why it cannot.
CANNOT: Mapping[tuple[str, str], Cannot] = {}


def cannot(file: str, test: str, parameters: str, program: str) -> Cannot | None:
    """Return why a program cannot do what a test is about; None if it can."""
    name = f"{file.removeprefix('test_')}.{test.removeprefix('test_')}"
    return CANNOT.get((name, program)) or CANNOT.get((f"{name}[{parameters}]", program))
