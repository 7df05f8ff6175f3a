"""One page of a list: it goes on behind the rows of the page before, whatever was added or removed meanwhile."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import islice
from typing import Any

from agentctl.errors import Refused, UsageError
from agentctl.lean import NamedTuple

#: A cursor names so many rows, of which one has to be there still.
_NAMED = 12
_CURSOR = re.compile(rf"[0-9a-f]{{16}}(\.[0-9a-f]{{16}}){{0,{_NAMED - 1}}}")
#: What tells the rows of most lists from each other.
_IDENTITY = ("taskId", "agentInstance", "id")


class ListChanged(Refused):
    """The rows behind which a page was to begin are gone."""


class ListPage(NamedTuple):
    """Some rows of a list."""

    rows: list[Any]
    #: The cursor of the page behind it; None if it is the last one.
    next: str | None


def page_of_rows(rows: Iterable[Any], limit: int, cursor: str | None, identity: Sequence[str] = _IDENTITY) -> ListPage:
    """Return one page of a list. No row is doubled or left out that was there all the time and kept its place.

    Args:
        rows: All of them, in their order; no more are taken than are needed.
        cursor: That of the page before; None begins.
        identity: The keys that tell rows from each other.

    Raises:
        UsageError: It is not a cursor.
        ListChanged: Nothing is left of what tells where the page before ended.
    """
    marked = _marked(rows, identity)
    page: list[tuple[str, Any]] = []
    before: list[str] = []
    if cursor is not None:
        before, page = _behind(marked, _marks_in(cursor))
    page += islice(marked, max(0, limit + 1 - len(page)))
    here, is_last = page[:limit], len(page) <= limit
    marks = [*before, *(mark for mark, _ in here)][-_NAMED:]
    return ListPage([row for _, row in here], None if is_last else ".".join(reversed(marks)))


def _marks_in(cursor: str) -> list[str]:
    if _CURSOR.fullmatch(cursor) is None:
        raise UsageError("this list has given no such cursor", hint="leave it out, for the first page")
    return cursor.split(".")


def _behind(marked: Iterator[tuple[str, Any]], marks: Sequence[str]) -> tuple[list[str], list[tuple[str, Any]]]:
    """Return the marks up to where a page begins, and the rows behind that which had to be looked at.

    Args:
        marks: Of the rows before it, the nearest one first.
    """
    ranks = {mark: rank for rank, mark in enumerate(marks)}
    nearest, behind = len(marks), list[tuple[str, Any]]()
    for one in marked:
        if ranks.get(one[0], nearest) < nearest:
            nearest, behind = ranks[one[0]], []
            if nearest == 0:
                break
        elif nearest < len(marks):
            behind.append(one)
    if nearest == len(marks):
        raise ListChanged("the rows before this page were removed meanwhile", hint="begin with the first page")
    return list(reversed(marks[nearest:])), behind


def _marked(rows: Iterable[Any], identity: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """Yield the rows, each with a short text that no other one has."""
    seen: dict[str, int] = {}
    for row in rows:
        name = json.dumps([row.get(key) if isinstance(row, Mapping) else str(row) for key in identity])
        seen[name] = seen.get(name, 0) + 1
        yield blake2b(f"{seen[name]} {name}".encode(errors="replace"), digest_size=8).hexdigest(), row
