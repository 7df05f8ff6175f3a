"""Hands the terminal over to another program, an editor or a pager, and takes it back whatever happens there."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from textual.app import App


@contextlib.contextmanager
def handed_over(app: App[Any]) -> Iterator[None]:
    """Leave the terminal to another program as long as the block lasts.

    Textual's `suspend` alone would not come back after an exception: the terminal would stay without a screen.

    Raises:
        SuspendNotSupported: This terminal cannot be left.
    """
    problem: Exception | None = None
    with app.suspend():
        try:
            yield
        except Exception as error:  # noqa: BLE001 - it is raised again as soon as the screen is back
            problem = error
    if problem is not None:
        raise problem
