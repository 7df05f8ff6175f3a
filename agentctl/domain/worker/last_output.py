"""The last lines that a program wrote, each as one line of text, as a terminal would show it."""

from __future__ import annotations

from collections.abc import Sequence

from agentctl.domain.text.plaintext import shortened

#: How much of an output is looked at, from its end, and how many lines of that are shown.
LOOKED_AT, MOST_LINES = 4096, 20
#: How long the last line is where it stands in a row, in characters.
_LONGEST = 300


def lines_at_end(data: bytes, size: int, most: int = MOST_LINES) -> list[str]:
    r"""Return the last lines of an output, without colours, and of a progress bar its last state; none below the text.

    Args:
        data: The end of the output.
        size: The size of all of it.
        most: How many lines.

    >>> lines_at_end(b"one\n\x1b[31mtwo\x1b[m\n 1 %\r99 %\r\n\n", 28)
    ['one', 'two', '99 %']
    """
    from agentctl.domain.text.terminal_output import rows_of_end  # Most workers do not fail: memory.

    lines: list[str] = []
    for row in rows_of_end(data, is_cut=size > len(data)):
        if row.is_continued and lines:
            lines[-1] += row.text
        else:
            lines.append(row.text)
    lines = [line.rstrip() for line in lines]
    while lines and not lines[-1]:
        lines.pop()
    return lines[-most:]


def last_line_in(data: bytes, size: int) -> str | None:
    r"""Return the last line with a letter or a digit, else the last that has anything; None where there is none.

    >>> last_line_in(b"Error: no  such file\n  ^^^^\n", 28), last_line_in(b"\n", 1)
    ('Error: no such file', None)
    """
    return last_line_of(lines_at_end(data, size))


def last_line_of(lines: Sequence[str]) -> str | None:
    """Return the same of lines, as long as it may be in a row."""
    lines = [" ".join(line.split()) for line in reversed(lines)]
    seen = [line for line in lines if line]
    found = next((line for line in seen if any(map(str.isalnum, line))), seen[0] if seen else None)
    return None if found is None else shortened(found, _LONGEST, "…")
