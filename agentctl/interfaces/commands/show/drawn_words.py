"""What agents say as a terminal shows it: Markdown drawn, calls as what they do, in rows as wide as the terminal.

Each function loads what it draws with: a pipe, which has the source, does without.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from agentctl.lean import TYPE_CHECKING

if TYPE_CHECKING:
    from agentctl.domain.activity.transcript import TranscriptEntry
    from agentctl.interfaces.words.looks.look import SpanLine, TextSpan

#: Longer rows than these nobody likes to read, however wide the terminal is.
_WIDEST = 120

Rows = Iterable[Iterable["TextSpan"]]


def drawn_markdown(text: str) -> Rows:
    """Return a text in Markdown as rows for the terminal."""
    from agentctl.interfaces.words.looks.markdown_lines import markdown_lines

    width = _width()
    return _rows(markdown_lines(text, width), width)


def drawn_entry(entry: TranscriptEntry) -> Rows:
    """Return an entry of a transcript as rows for the terminal."""
    from agentctl.interfaces.words.looks.transcript_lines import entry_lines

    width = _width()
    return _rows(entry_lines(entry, width), width)


def drawn_entries(entries: Iterable[TranscriptEntry]) -> Iterator[Rows]:
    """Yield the paragraphs of a transcript that is complete: files that were read in a row are one."""
    from agentctl.interfaces.words.looks.transcript_lines import paragraphs

    width = _width()
    yield from (_rows(lines, width) for lines in paragraphs(entries, width))


def _width() -> int:
    from agentctl.interfaces.commands.parts.tables import width_of_terminal

    return min(width_of_terminal(), _WIDEST)


def _rows(lines: Iterable[SpanLine], width: int) -> Iterator[Iterable[TextSpan]]:
    from agentctl.interfaces.words.looks.span_tables import wrapped

    for line in lines:
        yield from wrapped(line, width)
