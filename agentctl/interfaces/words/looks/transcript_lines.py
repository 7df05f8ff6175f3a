"""A paragraph of a transcript as it is drawn: what was said as Markdown, what was called as what it does.

What a call returned is shown as a terminal shows an output.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby

from agentctl.domain.activity.row import PROMPT, RowType
from agentctl.domain.activity.transcript import TranscriptEntry
from agentctl.domain.text.words_diff import ADDED, KEPT, REMOVED
from agentctl.interfaces.words.activity import (
    RETURNED_CHARACTERS,
    RETURNED_LINES,
    argument_lines,
    call_line,
    entry_indent,
    not_all,
    paragraph,
    said_by,
    short_line,
    string,
    written_call,
)
from agentctl.interfaces.words.looks.call_kinds import reads_files
from agentctl.interfaces.words.looks.call_look import READ_PATHS, CallLine, call_look, is_of_tabs, todo_look
from agentctl.interfaces.words.looks.look import SpanLine, TextLook, TextSpan, joined_spans, safe_span
from agentctl.interfaces.words.looks.markdown_lines import markdown_lines
from agentctl.interfaces.words.looks.printed_rows import printed_lines

BAD_ENDS = ("failed", "denied", "cancelled")
#: What agents write, and what stands before it. What they ask is spelled out.
_WRITTEN: Mapping[str, str] = {RowType.MESSAGE: "", RowType.THOUGHT: "(thinks) "}
#: More lines of one call are counted; a command is longer than these only where it writes a file.
_MOST_LINES = 30
#: Of longer ones: so many that stay are shown beside a change.
_BESIDE = 3
#: How far what was returned stands behind its call.
_STEP = "  "
#: More of what was returned is not looked at: a progress bar is long, and one line in the end.
_LOOKED_AT = 1 << 16
#: So many files are named of several that were read in a row.
_MOST_FILES = 3


def entry_lines(entry: TranscriptEntry, width: int) -> list[SpanLine]:
    """Return the lines of an entry; the first one begins with the time."""
    before = entry_indent(entry)
    spans = _drawn(entry, max(width - len(before), 20))
    if spans is None:
        return [SpanLine((safe_span(line),), len(before)) for line in paragraph(entry).removesuffix("\n").split("\n")]
    blank = TextSpan(" " * len(before))
    return [
        SpanLine(joined_spans((blank if place else TextSpan(before), *line.spans)), len(before) + line.hang)
        if line.spans or not place
        else line
        for place, line in enumerate(spans)
    ]


def paragraphs(entries: Iterable[TranscriptEntry], width: int) -> Iterator[list[SpanLine]]:
    """Yield the lines of entries; of files that were read in a row only one."""
    for reader, group in groupby(entries, _reader_of):
        if reader is None:
            yield from (entry_lines(entry, width) for entry in group)
            continue
        reads = list(group)
        yield reads_lines(reads) if len(reads) > 1 else entry_lines(reads[0], width)


def _reader_of(entry: TranscriptEntry) -> tuple[int, str | None] | None:
    """Return who reads a file by a call, that went well so far; None of any other entry, or where no file is known."""
    is_read = entry.kind == RowType.TOOL and reads_files(entry.fields.get("name"))
    is_odd = entry.begins and bool(entry.fields.get("detail")) and not _files_of(entry)
    is_well = entry.fields.get("status") not in BAD_ENDS
    return (entry.depth, entry.agent_type) if is_read and is_well and not is_odd else None


def reads_lines(entries: Sequence[TranscriptEntry]) -> list[SpanLine]:
    """Return the line of files that were read in a row."""
    begun = [entry for entry in entries if entry.begins]
    files = list(dict.fromkeys(file for entry in begun or entries for file in _files_of(entry)))
    before = entry_indent(entries[0])
    number = len(files) or len(begun) or 1
    named = [short_line(file) for file in files[:_MOST_FILES]]
    more = [f"{number - _MOST_FILES} more"] if len(files) > _MOST_FILES else []
    what = "" if number == 1 else f"{number:,} files"
    words = ": ".join(filter(None, (what, ", ".join(named + more)))) or "a file"
    if not begun and not files:
        words = "-> completed"  # What has ended was called before others that ended otherwise.
    return [SpanLine(joined_spans((TextSpan(before), safe_span(f"{said_by(entries[0])}Read {words}"))), len(before))]


def _files_of(entry: TranscriptEntry) -> list[str]:
    detail = entry.fields.get("detail")
    given = next((detail[name] for name in READ_PATHS if name in detail), None) if isinstance(detail, dict) else None
    return [one for one in (given if isinstance(given, list) else [given]) if isinstance(one, str) and one]


def _drawn(entry: TranscriptEntry, width: int) -> list[SpanLine] | None:
    """Return what stands behind the time; None of what is shown as its words."""
    by, name, text = said_by(entry), string(entry.fields.get("name")), string(entry.fields.get("text")) or ""
    if entry.kind in _WRITTEN:
        said = f"{by}{_WRITTEN[entry.kind]}{f'{short_line(name)}: ' if name else ''}"
        return _behind(said, markdown_lines(text, width - len(said)))
    return _drawn_call(entry, width) if entry.kind in (RowType.TOOL, RowType.AGENT) else None


def _drawn_call(entry: TranscriptEntry, width: int) -> list[SpanLine] | None:
    """Return what was called, if it has a look, and the beginning of what it returned; None if there is neither."""
    text = string(entry.fields.get("text")) if entry.ends else None
    begun = list(_begun(entry, width)) if entry.begins else []
    if not begun and not text:
        return None
    outcome = [call_line(entry)] if begun and entry.ends else [] if begun else written_call(entry)
    returned = _printed(text or "") if entry.kind == RowType.TOOL else _answered(text or "", width - len(_STEP))
    lines = [*begun, *(SpanLine((safe_span(line),)) for line in outcome)]
    return [*_behind(said_by(entry), lines), *(_below(returned) if text else ())]


def _begun(entry: TranscriptEntry, width: int) -> Iterator[SpanLine]:
    """Yield what a call would do, or what a sub-agent is to do; nothing where its arguments say more."""
    detail = entry.fields.get("detail")
    if entry.kind == RowType.TOOL:
        yield from _call_lines(string(entry.fields.get("name")) or "", detail)
        return
    prompt = string(detail.get(PROMPT)) if isinstance(detail, dict) else None
    if prompt and isinstance(detail, dict):
        yield SpanLine((safe_span(call_line(entry._replace(ends=False))),))
        if prompt != entry.fields.get("name"):  # A short one may be its name, too.
            yield from _below(_answered(prompt, width - len(_STEP)))
        rest = argument_lines({key: value for key, value in detail.items() if key != PROMPT})
        yield from _below(SpanLine((safe_span(line, TextLook.QUIET),)) for line in rest)


def _below(lines: Iterable[SpanLine]) -> Iterator[SpanLine]:
    for line in lines:
        yield SpanLine((TextSpan(_STEP), *line.spans), len(_STEP) + line.hang)


def _printed(text: str) -> Iterator[SpanLine]:
    """Yield the beginning of what a call returned, as a terminal shows it."""
    lines = printed_lines(text[:_LOOKED_AT], RETURNED_CHARACTERS)
    yield from lines[:RETURNED_LINES]
    if sum(len(line.text) for line in lines) >= RETURNED_CHARACTERS or len(lines) > RETURNED_LINES or text[_LOOKED_AT:]:
        yield SpanLine((TextSpan(not_all(text), TextLook.QUIET),))


def _answered(text: str, width: int) -> list[SpanLine]:
    """Return the beginning of what a sub-agent was told or has answered, which is Markdown."""
    lines = markdown_lines(text[:RETURNED_CHARACTERS], width)
    is_whole = len(lines) <= RETURNED_LINES and len(text) <= RETURNED_CHARACTERS
    more = [] if is_whole else [SpanLine((TextSpan(not_all(text), TextLook.QUIET),))]
    return [*lines[:RETURNED_LINES], *more]


def _behind(before: str, lines: Sequence[SpanLine]) -> list[SpanLine]:
    first, *rest = lines or [SpanLine(())]
    return [SpanLine(joined_spans((safe_span(before), *first.spans)), first.hang), *rest]


def _call_lines(name: str, detail: object) -> Iterator[SpanLine]:
    """Yield what a call would do, and below it the arguments that are not in that; nothing where it has no look."""
    look = todo_look(name, detail) or call_look(name, detail)
    if look is None:
        return
    for verb, subject, lines in look.parts:
        is_command = lines[:1] and lines[0].sign == "$"
        if not is_command:
            yield SpanLine((safe_span(short_line(f"{verb} {subject}"), TextLook.HEADING),))
        shown = [*map(_with_its_tabs, lines)] if is_of_tabs(lines) else lines
        is_change = any(line.sign in (ADDED, REMOVED) for line in lines)  # The lines of a command have a blank, too.
        is_folded = is_change and len(shown) > _MOST_LINES
        yield from _some([*_beside_changes(shown)] if is_folded else [*map(_line, shown)])
    yield from _below(SpanLine((safe_span(line, TextLook.QUIET),)) for line in argument_lines(look.rest))
    if look.said:
        yield SpanLine((safe_span(f"# {short_line(look.said)}", TextLook.QUIET),))


def _with_its_tabs(line: CallLine) -> CallLine:
    """Return a line with its tabs spelled out."""

    def place_of(at: int) -> int:
        return at + line.text.count("\t", 0, at)

    words = tuple((place_of(begin), place_of(end)) for begin, end in line.words)
    return line._replace(text=line.text.replace("\t", "\\t"), words=words)


def _beside_changes(lines: Sequence[CallLine]) -> Iterator[SpanLine]:
    """Yield lines; of those that stay only the ones beside a change, and how many others there are."""
    runs = [(is_kept, [*run]) for is_kept, run in groupby(lines, lambda line: line.sign == KEPT)]
    for place, (is_kept, run) in enumerate(runs):
        before, behind = _BESIDE * (place > 0), _BESIDE * (place < len(runs) - 1)
        hidden = len(run) - before - behind
        if not is_kept or hidden < 2:
            yield from map(_line, run)
            continue
        yield from map(_line, run[:before])
        yield SpanLine((TextSpan(f"… {hidden:,} lines that stay", TextLook.QUIET),))
        yield from map(_line, run[len(run) - behind :])


def _some(lines: list[SpanLine]) -> Iterator[SpanLine]:
    yield from lines[:_MOST_LINES]
    if len(lines) > _MOST_LINES:
        yield SpanLine((TextSpan(f"… {len(lines) - _MOST_LINES:,} more lines", TextLook.QUIET),))


def _line(line: CallLine) -> SpanLine:
    word = TextLook.REMOVED_WORD if line.look == TextLook.REMOVED else TextLook.ADDED_WORD
    ends = [*chain.from_iterable(line.words), len(line.text)]
    begins = [0, *ends[:-1]]
    parts = [
        safe_span(line.text[begin:end], word if place % 2 else line.look)
        for place, (begin, end) in enumerate(zip(begins, ends, strict=True))
    ]
    sign = TextSpan(f"{line.sign:<1} ", TextLook.TEXT if line.look == TextLook.CODE else line.look)
    return SpanLine(joined_spans((sign, *parts)), len(sign.text))
