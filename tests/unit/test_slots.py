"""At stake: a look at the slots that fails keeps none of them, in a server that lives on."""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agentctl.adapters.taskdir import TaskDir
from agentctl.supervision.slots import survey


@contextmanager
def _descriptors_left(count: int) -> Iterator[None]:
    """Let this process open so many files more, and no others."""
    lowest = os.open(os.devnull, os.O_RDONLY)
    os.close(lowest)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest + count, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_where_not_all_slots_can_be_opened_none_is_kept(tmp_path: Path) -> None:
    task = TaskDir(str(tmp_path))
    (tmp_path / "slots").mkdir()
    before = survey(task, 4, 4)
    assert len(before.free) == 4
    before.release()
    with _descriptors_left(2), pytest.raises(OSError, match="Too many open files") as refused:
        survey(task, 4, 4)
    assert refused.value.errno == errno.EMFILE
    after = survey(task, 4, 4)
    assert len(after.free) == 4
    after.release()
