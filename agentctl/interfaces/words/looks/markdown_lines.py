"""Markdown as lines of spans, for a width: what it says and no less, and nothing that a terminal would obey.

markdown-it-py reads it, as rich does. What it would leave out is shown as it stands: raw HTML, definitions of links,
what is nested too deep, a table of which a row has more cells than its head, what is behind the name of a language at a
fence. A link is its text, its host and its title, and cannot be clicked: whatever it is called, one sees where it
leads.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from agentctl.interfaces.words.looks.code_words import code_lines, is_coloured
from agentctl.interfaces.words.looks.look import SpanLine, TextLook, TextSpan, joined_spans, safe_span
from agentctl.interfaces.words.looks.span_tables import LEFT, Spans, cells_wide, table_lines
from agentctl.lean import NamedTuple

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock
    from markdown_it.token import Token

#: What is behind so many characters, or nested deeper, is shown as its source; so is a table of more columns.
_LONGEST, _DEEPEST, _MOST_COLUMNS = 50_000, 40, 50
_HOST = re.compile(r"(?:[a-z0-9.-]+|\[[0-9a-f:.]+\])(?::\d+)?", re.IGNORECASE)
_PIPE = re.compile(r"(?<!\\)\|")
_LOOKS = {"strong": TextLook.STRONG, "em": TextLook.EMPHASIS, "s": TextLook.STRUCK}
_BAR, _BULLET = "▏ ", "• "
_CODE_INDENT = "    "
_LONGEST_RULE = 40


def markdown_lines(text: str, width: int) -> list[SpanLine]:
    r"""Return the lines of a text in Markdown; they are not wrapped, but its tables fit the width.

    >>> [line.text for line in markdown_lines("# A\n- *b*\n- [c](http://d.org/x)", 80)]
    ['A', '', '• b', '• c (d.org)']
    """
    head, rest = text, ""
    if len(text) > _LONGEST:
        cut = text.rfind("\n", 0, _LONGEST) + 1 or _LONGEST
        head, rest = text[:cut], text[cut:]
    tokens = _parser().parse(head)
    is_deep = max((token.level for token in tokens), default=0) >= _DEEPEST - 1
    lines = _source_lines(head) if is_deep else _Layout(width).lines(tokens)
    return [*lines, *(_source_lines(rest) if rest else ())]


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt  # Heavy, and mostly nobody draws Markdown.

    made = MarkdownIt("commonmark", {"html": False, "maxNesting": _DEEPEST})
    made.block.ruler.at("table", _table_with_source, {"alt": ["paragraph", "reference"]})
    return made.enable(["table", "strikethrough"]).disable("reference")


def _table_with_source(state: StateBlock, begin: int, end: int, silent: bool) -> bool:
    """Read a table as the parser does; the content of its first token is its source if its cells are not all of it."""
    from markdown_it.rules_block import table

    is_table = table(state, begin, end, silent)
    if is_table and not silent:
        rows = [state.src[state.bMarks[at] + state.tShift[at] : state.eMarks[at]] for at in range(begin, state.line)]
        if max(map(_cell_count, rows)) > min(_cell_count(rows[0]), _MOST_COLUMNS):
            opening = next(token for token in reversed(state.tokens) if token.type == "table_open")
            opening.content = "\n".join(rows)
    return is_table


def _cell_count(row: str) -> int:
    r"""Return how many cells the parser finds in a row of a table.

    >>> _cell_count("| a | b |"), _cell_count("a | b"), _cell_count(r"| a \| b | c")
    (2, 2, 2)
    """
    cells = _PIPE.split(row)
    return len(cells) - (not cells[0]) - (not cells[-1].strip())


def _source_lines(text: str) -> list[SpanLine]:
    return [SpanLine((safe_span(line),)) for line in text.removesuffix("\n").split("\n")]


class _Indent(NamedTuple):
    """What stands before the first line of a block, and before its further lines."""

    first: TextSpan
    further: TextSpan
    has_begun: bool = False


class _Layout:
    """Lays the tokens of one text out."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._lines: list[SpanLine] = []
        self._indents: list[_Indent] = []
        #: Of each list that is open: whether its items stand close together, and the number of the next item.
        self._lists: list[tuple[bool, int | None]] = []
        #: Whether a blank line comes before the next block.
        self._is_apart = False

    def lines(self, tokens: Sequence[Token]) -> list[SpanLine]:
        """Return the lines of all tokens."""
        at = 0
        while at < len(tokens):
            at = self._take(tokens, at)
        return self._lines

    def _take(self, tokens: Sequence[Token], at: int) -> int:
        """Lay out a token; return the place of the next one."""
        token = tokens[at]
        match token.type:
            case "inline":
                look = TextLook.HEADING if at and tokens[at - 1].type == "heading_open" else TextLook.TEXT
                self._block(_inline_lines(token.children or (), look))
            case "fence" | "code_block":
                lines = _code_block(token.content.removesuffix("\n"), token.info.strip())
                self._block([(TextSpan(_CODE_INDENT), *line) for line in lines], len(_CODE_INDENT))
            case "hr":
                self._block([(TextSpan("─" * max(1, min(_LONGEST_RULE, self._room())), TextLook.QUIET),)])
            case "table_open":
                return self._table(tokens, at)
            case _:
                self._nest(tokens, at)
        return at + 1

    def _nest(self, tokens: Sequence[Token], at: int) -> None:
        """Go into a block that has others in it, or out of it."""
        token = tokens[at]
        match token.type:
            case "blockquote_open":
                self._indents.append(_Indent(TextSpan(_BAR, TextLook.QUIET), TextSpan(_BAR, TextLook.QUIET)))
            case "bullet_list_open" | "ordered_list_open":
                number = int(token.attrs.get("start", 1)) if token.type.startswith("ordered") else None
                self._lists.append((_is_tight(tokens, at), number))
            case "list_item_open":
                self._open_item()
            case "list_item_close":
                self._close_item()
            case "blockquote_close":
                self._indents.pop()
            case "bullet_list_close" | "ordered_list_close":
                self._lists.pop()
                self._is_apart = not (self._lists and self._lists[-1][0])

    def _open_item(self) -> None:
        is_tight, number = self._lists[-1]
        mark = _BULLET if number is None else f"{number}. "
        if number is not None:
            self._lists[-1] = is_tight, number + 1
        self._indents.append(_Indent(TextSpan(mark, TextLook.QUIET), TextSpan(" " * len(mark))))

    def _close_item(self) -> None:
        if not self._indents[-1].has_begun:  # Nothing is in it.
            self._block([()])
        self._indents.pop()
        self._is_apart = not self._lists[-1][0]

    def _room(self) -> int:
        return max(self._width - sum(cells_wide(one.first.text) for one in self._indents), 2)

    def _block(self, lines: Sequence[Spans], hang: int = 0) -> None:
        """Put lines behind what stands before them where they are."""
        if self._is_apart and self._lines:
            self._lines.append(SpanLine(_without_end([one.further for one in self._indents if one.has_begun])))
        for line in lines:
            before = [one.further if one.has_begun else one.first for one in self._indents]
            self._indents = [one._replace(has_begun=True) for one in self._indents]
            indent = sum(cells_wide(span.text) for span in before)
            self._lines.append(SpanLine(joined_spans((*before, *line)), indent + hang))
        self._is_apart = not (self._lists and self._lists[-1][0])

    def _table(self, tokens: Sequence[Token], at: int) -> int:
        end = next(place for place in range(at, len(tokens)) if tokens[place].type == "table_close")
        rows: list[list[Spans]] = []
        aligned: list[str] = []
        for place in range(at, end):
            token = tokens[place]
            if token.type == "tr_open":
                rows.append([])
            elif token.type in ("th_open", "td_open"):
                look = TextLook.HEADING if token.type == "th_open" else TextLook.TEXT
                rows[-1].append(_in_one_line(_inline_lines(tokens[place + 1].children or (), look)))
                if len(rows) == 1:
                    aligned.append(str(token.attrs.get("style", "")).removeprefix("text-align:") or LEFT)
        if source := tokens[at].content:
            self._block([(safe_span(line),) for line in source.split("\n")])
        else:
            self._block(list(table_lines(rows, aligned, self._room())))
        return end + 1


def _code_block(code: str, info: str) -> list[Spans]:
    """Return the lines of some code, below what stands behind its fence, but for a language that its colours show."""
    lines = code_lines(code, "".join(info.split()[:1]))
    return lines if not info or is_coloured(info) else [(safe_span(info, TextLook.QUIET),), *lines]


def _is_tight(tokens: Sequence[Token], at: int) -> bool:
    """Return whether no blank lines stand between the items of a list."""
    level = tokens[at].level
    for token in tokens[at + 1 :]:
        if token.level <= level:
            break
        if token.type == "paragraph_open" and token.level == level + 2:
            return token.hidden
    return True


def _without_end(spans: Sequence[TextSpan]) -> Spans:
    *before, last = spans or [TextSpan("")]
    return joined_spans((*before, TextSpan(last.text.rstrip(), last.look)))


def _in_one_line(lines: Sequence[Spans]) -> Spans:
    return joined_spans(span for line in lines for span in line)


def _inline_lines(tokens: Sequence[Token], base: TextLook) -> list[Spans]:
    """Return what is in a paragraph, a heading or a cell, line by line as it was written."""
    lines: list[list[TextSpan]] = [[]]
    looks = [base]
    links: list[tuple[Token, int, int]] = []
    for token in tokens:
        kind, step, last = token.type.rpartition("_")
        if token.type in ("softbreak", "hardbreak"):
            lines.append([])
        elif token.type == "link_open":
            links.append((token, len(lines), len(lines[-1])))
            looks.append(TextLook.LINK if _host_of(str(token.attrs["href"])) else looks[-1])
        elif token.type == "link_close":
            looks.pop()
            link, line, begin = links.pop()
            shown = [*lines[line - 1][begin:], *(span for one in lines[line:] for span in one)]
            lines[-1] += _leads_to(link, "href", "".join(span.text for span in shown))
        elif step and last in ("open", "close") and kind in _LOOKS:
            looks[len(looks) - (last == "close") :] = [_within(looks[-1], _LOOKS[kind])] if last == "open" else []
        elif token.type == "image":
            lines[-1].append(safe_span(f"[picture: {token.content}]", looks[-1]))
            lines[-1] += _leads_to(token, "src", "")
        else:
            lines[-1].append(safe_span(token.content, TextLook.CODE if token.type == "code_inline" else looks[-1]))
    return [joined_spans(line) for line in lines]


def _within(outer: TextLook, inner: TextLook) -> TextLook:
    """Return the look of what is emphasised in something: a heading, or a link, remains one."""
    return outer if outer in (TextLook.HEADING, TextLook.LINK) else inner


def _leads_to(token: Token, key: str, text: str) -> list[TextSpan]:
    """Return what is said of a link behind its text: its host, of what is not on the web where it leads; its title."""
    href, title = str(token.attrs[key]), " ".join(str(token.attrs.get("title", "")).split())
    place = "" if href == text else _host_of(href) or href
    said = " ".join(filter(None, (place, title and f'"{title}"')))
    return [safe_span(f" ({said})", TextLook.QUIET)] if said else []


def _host_of(href: str) -> str:
    """Return the host of an address on the web; all of the address where that can be misread; else nothing.

    >>> _host_of("https://d.org/x"), _host_of("http://bank.org@d.org/"), _host_of("src/a.py")
    ('d.org', 'http://bank.org@d.org/', '')
    """
    try:
        parts = urlsplit(href)
    except ValueError:
        return href
    if parts.scheme not in ("http", "https"):
        return ""
    return parts.netloc if _HOST.fullmatch(parts.netloc) else href
