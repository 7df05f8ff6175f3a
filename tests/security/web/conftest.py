"""The server that most tests of the interface ask."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.web.support import Server, serving


@pytest.fixture
def server(root: Path) -> Iterator[Server]:
    """Return a server of a new root, at a free port; at the end of the test it ends and leaves nothing."""
    with serving(root) as found:
        yield found
