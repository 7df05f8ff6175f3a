"""An item of an agent's activity, with all that is kept of it: what was called, and what it returned or said.

What a call returned is shown as a terminal shows an output, what somebody said as Markdown. What draws them is imported
where there is any: the list is drawn before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from agentctl.domain.activity.row import RowType
from agentctl.domain.activity.view import Node
from agentctl.domain.text.plaintext import beginning, whole
from agentctl.interfaces.screen.fleet.drawing import Piece
from agentctl.interfaces.words.activity import node_parts
from agentctl.interfaces.words.question_pieces import STEP, argument_pieces, text_within

if TYPE_CHECKING:
    from agentctl.interfaces.words.looks.look import SpanLine

#: More of what a call returned is left to the transcript.
_LONGEST_OUTPUT, _MOST_LINES = 24_000, 400


def item_pieces(node: Node, width: int) -> Iterator[Piece]:
    """Yield what is shown of an item."""
    first, *rest = node_parts(node) or [""]
    yield (whole(first), "name")
    yield (STEP + whole(STEP.join(rest)) + "\n", "dim")
    for key, value in (node.detail or {}).items():
        yield from argument_pieces(key, value, width)
    if node.text and node.type == RowType.TOOL:
        from agentctl.interfaces.words.looks.printed_rows import printed_lines

        yield from _pieces(printed_lines(beginning(node.text, _LONGEST_OUTPUT))[:_MOST_LINES], width)
    elif node.text:
        yield from drawn_pieces(text_within(node.text), width)


def drawn_pieces(text: str, width: int) -> Iterator[Piece]:
    """Yield a text in Markdown."""
    from agentctl.interfaces.words.looks.markdown_lines import markdown_lines

    yield from _pieces(markdown_lines(text, width), width)


def _pieces(lines: Iterable[SpanLine], width: int) -> Iterator[Piece]:
    from agentctl.interfaces.words.looks.span_tables import wrapped

    for line in lines:
        for row in wrapped(line, width):
            yield from row
            yield ("\n", "text")
