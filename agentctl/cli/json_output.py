"""Prints JSON: one document, or the rows of a list without ever having all of them in memory."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from itertools import islice

from agentctl.cli.jsonrows import RowEncoder
from agentctl.cli.surface import is_terminal
from agentctl.lean import Any
from agentctl.text.words import JSON_ESCAPES

#: How many rows are turned into text at a time.
_PIECE = 200


def as_json(value: Any) -> str:
    """Return one compact JSON document that is safe wherever stdout goes.

    Where stdout cannot print every character, `backslashreplace` would write escapes that JSON does not have.
    """
    text = _in_utf8(json.dumps(value, ensure_ascii=not _prints_unicode(), separators=(",", ":")))
    return text.translate(JSON_ESCAPES) if is_terminal(sys.stdout) else text


def _in_utf8(text: str) -> str:
    """Escape each byte that is not UTF-8: in a locale that is not in UTF-8, stdout prints it as it was typed."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def _prints_unicode() -> bool:
    return (sys.stdout.encoding or "").lower().startswith("utf")


def print_json(value: Any) -> None:
    """Print one JSON document."""
    print(as_json(value), flush=True)


def print_json_rows(rows: Iterable[Any]) -> None:
    """Print one JSON list, some rows at a time: those of many workers are never in memory together."""
    left, before = iter(rows), "["
    encoder, is_shown = RowEncoder(ensure_ascii=not _prints_unicode()), is_terminal(sys.stdout)
    while piece := list(islice(left, _PIECE)):
        text = _in_utf8(encoder.encode(piece))
        sys.stdout.write(before + (text.translate(JSON_ESCAPES) if is_shown else text))
        before = ","
    print("]" if before == "," else "[]", flush=True)
