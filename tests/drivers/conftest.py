"""Marks the tests in this folder: each of them runs an agent for a while, and many load a library first."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all tests in this folder."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.drivers)
