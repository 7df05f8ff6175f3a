"""Reads lines of an activity: the heads of a whole block at once, the rest of a line only where it is wanted.

A full parse of 100 MB takes seconds. All lines that `encode_row` writes begin alike, so one regular expression reads
the heads of a whole block; any other line is parsed. A line of which only the head was read counts as good if it ends
with a brace.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from agentctl.domain.activity.row import Phase, RowType
from agentctl.domain.text.nesting import may_be_too_deep, shallow
from agentctl.domain.text.numbers import MOST
from agentctl.lean import NamedTuple

_TEXT = rb'"([^"\\\n]*+)"'
#: (at, type, id, phase, parent, rest, a line of another form). It never backtracks, and it skips no line.
HEADS = re.compile(
    rb'\{"at":' + _TEXT + rb',"type":"([a-z]++)","id":' + _TEXT + rb',"phase":"(start|progress|end)"'
    rb'(?:,"parent":' + _TEXT + rb')?+(?!,"parent")(.*+)(?<=\})\n|(.*+)\n'
)
KINDS = frozenset(RowType)
_PHASES = frozenset(Phase)
_OF_THE_HEAD = ("at", "type", "id", "phase", "parent")
_KNOWN = frozenset((*_OF_THE_HEAD, "status", "agentType", "name", "text", "detail", "percent"))
Fields = dict[str, Any]

TOKENS = ("input", "output", "cached")
#: Time and rest of a usage row in its usual form: faster to match than to parse.
TOKENS_OF = re.compile(rb'[^,]*+,"detail":\{"input":(\d++),"output":(\d++),"cached":(\d++)\}\}$')


class Line(NamedTuple):
    """A parsed line, with the values of its head."""

    at: bytes
    kind: str
    id: bytes
    phase: str
    parent: bytes
    fields: Fields


def read_line(line: bytes, number: int) -> Line | None:
    """Parse a line; None where it is not a row.

    Args:
        number: Names a row without an id, as older versions wrote them.
    """
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        return None
    if may_be_too_deep(line):
        value = shallow(value)
    phase = value.get("phase")
    return Line(
        at=_bytes(value.get("at")),
        kind=value["type"],
        id=_bytes(value.get("id")) or b"line-%d" % number,
        phase=phase if isinstance(phase, str) and phase in _PHASES else Phase.END,
        parent=_bytes(value.get("parent")),
        fields={key: item for key, item in value.items() if key not in _OF_THE_HEAD and item is not None},
    )


def _bytes(value: object) -> bytes:
    return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else b""


def fields_of(rest: bytes) -> Fields | None:
    """Return the fields in the rest of a line whose head was read; None where it is damaged."""
    try:
        value = json.loads(b'{"":0' + rest)
    except (ValueError, RecursionError):
        return None
    del value[""]
    if may_be_too_deep(rest):
        value = shallow(value)
    return {key: item for key, item in value.items() if item is not None}


def rest_of(fields: Mapping[str, Any]) -> bytes:
    """Return fields in the form of the rest of a line."""
    return b"," + json.dumps(fields, separators=(",", ":")).encode()[1:]


def unknown_fields(fields: Mapping[str, Any]) -> list[str]:
    """Return the names that no version of this program writes."""
    return [key for key in fields if key not in _KNOWN]


def tokens_in(fields: Mapping[str, Any]) -> dict[str, int]:
    """Return the tokens that a usage row reports."""
    detail = fields.get("detail")
    found = {key: detail.get(key) for key in TOKENS} if isinstance(detail, Mapping) else {}
    return {key: value for key, value in found.items() if type(value) is int and 0 <= value <= MOST}
