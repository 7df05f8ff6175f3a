"""Formats lines: with tabs between fields for pipes, as an outline for people.

Text that came from a worker or from a file goes through `plain`: a terminal obeys control characters.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from agentctl.domain.text.plaintext import beginning
from agentctl.domain.text.plaintext import plain as plain  # noqa: PLC0414 - commands import it from here
from agentctl.interfaces.words.value_words import NOTHING, shown_json
from agentctl.lean import Any


def fields(*values: object) -> str:
    """Return a line of fields with tabs between; an empty one shows as `-`."""
    return "\t".join(NOTHING if value is None or value == "" else plain(value) for value in values)


def warning(text: str) -> str:
    """Return a warning in one line."""
    return f"warning: {plain(text)}"


def outline(value: Mapping[str, Any], indent: str = "", longest: int | None = None) -> Iterator[str]:
    """Yield the lines that show a nested document to a person; empty values are left out.

    Args:
        longest: How many characters of a value are shown, by default all of them.
    """
    for key, item in value.items():
        if item in (None, "", [], {}):
            continue
        if isinstance(item, Mapping):
            yield f"{indent}{plain(key)}:"
            yield from outline(item, indent + "  ", longest)
        elif isinstance(item, list) and all(isinstance(part, Mapping) for part in item):
            for number, part in enumerate(item, 1):
                yield f"{indent}{plain(key)} {number}:"
                yield from outline(part, indent + "  ", longest)
        else:
            text = plain(item) if isinstance(item, str) else shown_json(item)
            rest = f"... ({len(text)} characters; --json has them all)"
            yield f"{indent}{plain(key)}: {text if longest is None else beginning(text, longest, rest)}"
