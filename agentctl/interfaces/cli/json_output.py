"""Prints JSON: one document, or the rows of a list without ever having all of them in memory."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from itertools import islice

from agentctl.interfaces.cli.json_rows import RowEncoder
from agentctl.interfaces.commands.parts.json_text import as_json, fit_for_stdout, prints_unicode
from agentctl.lean import Any

#: How many rows are turned into text at a time.
_PIECE = 200


def print_json(value: Any) -> None:
    """Print one JSON document."""
    print(as_json(value), flush=True)


def print_json_rows(rows: Iterable[Any]) -> None:
    """Print one JSON list, some rows at a time: those of many workers are never in memory together."""
    left, before = iter(rows), "["
    encoder = RowEncoder(ensure_ascii=not prints_unicode())
    while piece := list(islice(left, _PIECE)):
        sys.stdout.write(before + fit_for_stdout(encoder.encode(piece)))
        before = ","
    print("]" if before == "," else "[]", flush=True)
