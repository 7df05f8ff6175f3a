"""The long tests of this folder are tried by turns."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import order


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark them."""
    for item in items:
        if Path(__file__).parent in item.path.parents and any(map(item.get_closest_marker, order.LONG)):
            item.add_marker(pytest.mark.turns)
