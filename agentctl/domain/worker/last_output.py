"""The last lines that a program wrote, each as one line of text: what a terminal would obey is left out."""

from __future__ import annotations

import re

from agentctl.domain.text.plaintext import shortened

#: How much of an output is looked at, from its end, and how many lines of that are shown.
LOOKED_AT, MOST_LINES = 4096, 20
#: How long the last line is where it stands in a row, in characters.
_LONGEST = 300
#: What a terminal obeys: CSI; OSC and the other strings, up to their end; any other escape. One pass, without retries.
_SEQUENCES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]?"
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def lines_at_end(data: bytes, size: int) -> list[str]:
    r"""Return the last lines of an output, without colours, and of a progress bar its last state; none below the text.

    Args:
        data: The end of the output.
        size: The size of all of it.

    >>> lines_at_end(b"one\n\x1b[31mtwo\x1b[m\n 1 %\r99 %\r\n\n", 28)
    ['one', 'two', '99 %']
    """
    text = data.decode("utf-8", "replace")
    lines = [_as_drawn(line) for line in _SEQUENCES.sub("", text).split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    if size > len(data) and lines:  # The first one lacks its beginning.
        lines[0:1] = [] if len(lines) > 1 else [f"…{lines[0]}"]
    return lines[-MOST_LINES:]


def last_line_in(data: bytes, size: int) -> str | None:
    r"""Return the last line with a letter or a digit, else the last that has anything; None where there is none.

    >>> last_line_in(b"Error: no  such file\n  ^^^^\n", 28), last_line_in(b"\n", 1)
    ('Error: no such file', None)
    """
    lines = [" ".join(line.split()) for line in reversed(lines_at_end(data, size))]
    seen = [line for line in lines if line]
    found = next((line for line in seen if any(map(str.isalnum, line))), seen[0] if seen else None)
    return None if found is None else shortened(found, _LONGEST, "…")


def _as_drawn(line: str) -> str:
    """Return a line as it stands at its end: what was drawn over since is gone."""
    parts = (_CONTROLS.sub("", part) for part in reversed(line.split("\r")))
    return next((part.rstrip() for part in parts if part.strip()), "")
