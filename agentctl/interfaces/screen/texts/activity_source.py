"""The transcript of an agent for the pager: paragraphs, by the offsets of their rows.

Of each row that is shown is remembered where it lies, and what the rows before it say about it: 32 bytes. It is read
and put into words again when it is drawn. Files that were read in a row are one paragraph.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterator
from itertools import chain

from agentctl.adapters.files import AnyPath
from agentctl.domain.activity.row import Phase, RowType, message_text
from agentctl.domain.activity.rows import Fields, Line, read_line
from agentctl.domain.activity.transcript import Transcript, TranscriptEntry
from agentctl.domain.text.plaintext import whole
from agentctl.interfaces.screen.texts.line_source import LineSource
from agentctl.interfaces.screen.texts.needle import Needle
from agentctl.interfaces.screen.texts.shown import (
    GONE,
    DrawnForm,
    ShownLine,
    Spot,
    Tone,
    parts_of_line,
    shown_lines,
    spots,
)
from agentctl.interfaces.screen.texts.source_file import BLOCK, LineBlock
from agentctl.interfaces.words.activity import entry_indent, paragraph
from agentctl.interfaces.words.looks.call_kinds import reads_files
from agentctl.interfaces.words.looks.transcript_lines import BAD_ENDS, entry_lines, reads_lines

#: More than any agent does, and 60 MB in memory at worst; 100 MB of activity usually have a tenth of it.
_MOST_PARAGRAPHS = 1_000_000
_MOST_TYPES = 20_000
#: Paragraphs kept as they are drawn: up to so many, and so many characters.
_CACHED, _CACHED_CHARACTERS = 256, 1 << 21
_STAMP = len("hh:mm:ss")
_BEGINS, _ENDS = 1, 2
#: Words of `agentctl.interfaces.words.activity` that are in no row.
_WORDS = (
    "thinks note agent tool completed answered denied failed cancelled running characters question message cut"
    " more lines arguments picture line break its end"
)
_TONES: dict[str, Tone] = {
    RowType.THOUGHT: Tone.QUIET, RowType.NOTE: Tone.QUIET, RowType.PROGRESS: Tone.QUIET,
    RowType.TOOL: Tone.CALL, RowType.AGENT: Tone.HEADING, RowType.QUESTION: Tone.QUESTION,
}  # fmt: skip


class _RowIndex:
    """Of each row that is shown: its offset, and what it does not say itself; and with which row a paragraph begins."""

    def __init__(self) -> None:
        self.offsets = array("Q")
        self.firsts, self.begins = array("Q"), array("Q")
        #: One more than the offset of the row that names it; 0 where it does so itself, or none does.
        self.namers = array("Q")
        self.depths = array("I")
        self.phases = array("B")
        #: The type of the sub-agent that did it, and of the one that it is about: numbers in `types`.
        self.doers, self.kinds = array("I"), array("I")
        self.types: list[str | None] = [None]
        self.numbers: dict[str | None, int] = {None: 0}
        self.cached: OrderedDict[int, tuple[ShownLine, ...]] = OrderedDict()
        self.characters = 0

    def add(self, offset: int, entry: TranscriptEntry, *, is_further: bool) -> None:
        """Add the row at an offset; its entry has for a name one more than the offset of the row that has it.

        Args:
            is_further: It belongs to the paragraph of the row before.
        """
        namer = entry.fields.get("name") or 0
        self.namers.append(0 if namer == offset + 1 else namer)
        self.depths.append(min(entry.depth, 0xFFFF))
        self.phases.append(_BEGINS * entry.begins | _ENDS * entry.ends)
        self.doers.append(self._number(entry.agent_type))
        self.kinds.append(self._number(entry.fields.get("agentType") if entry.kind == RowType.AGENT else None))
        self.offsets.append(offset)
        if is_further:
            self.forget(len(self.firsts) - 1)
        else:
            self.begins.append(offset)
            self.firsts.append(len(self.offsets) - 1)  # Last: it is the number of paragraphs, for another thread.

    def rows_of(self, number: int) -> range:
        """Return the rows of a paragraph."""
        end = self.firsts[number + 1] if number + 1 < len(self.firsts) else len(self.offsets)
        return range(self.firsts[number], end)

    def forget(self, number: int) -> None:
        """Have a paragraph drawn anew."""
        self.characters -= _size(self.cached.pop(number, ()))

    def _number(self, kind: str | None) -> int:
        number = self.numbers.get(kind)
        if number is None and len(self.types) < _MOST_TYPES:
            number = self.numbers[kind] = len(self.types)
            self.types.append(kind)
        return number or 0

    def remember(self, number: int, lines: tuple[ShownLine, ...]) -> None:
        """Keep a paragraph as it is drawn, and forget those that were drawn long ago."""
        self.cached[number] = lines
        self.characters += _size(lines)
        while len(self.cached) > 1 and (len(self.cached) > _CACHED or self.characters > _CACHED_CHARACTERS):
            _, old = self.cached.popitem(last=False)
            self.characters -= _size(old)


def _size(lines: tuple[ShownLine, ...]) -> int:
    return sum(len(line.text) for line in lines)


class ActivitySource(LineSource, DrawnForm):
    """What an agent and its sub-agents said, called and returned."""

    def __init__(self, path: AnyPath, *, is_source: bool = True) -> None:
        DrawnForm.__init__(self, is_source=is_source)
        LineSource.__init__(self, path, _MOST_PARAGRAPHS, "paragraphs are shown: `agentctl logs` has all")

    def _begin(self) -> None:
        super()._begin()
        self._transcript, self._number = Transcript(), 0
        self._index = _RowIndex()
        #: The calls that read files and have not ended; and of the last row, if it is of one, who called.
        self._reading: set[bytes] = set()
        self._read_by: bytes | None = None

    def __len__(self) -> int:
        return len(self._index.firsts)

    def draw_anew(self) -> None:
        """Forget how paragraphs were drawn."""
        self._index.cached.clear()
        self._index.characters = 0

    def _take(self, block: LineBlock) -> None:
        offset, index, take = block.begin, self._index, self._transcript.take
        for self._number, line in enumerate(block.lines.split(b"\n")[:-1], self._number + 1):  # noqa: B020
            row = read_line(line, self._number)
            if row is not None:
                named = offset + 1 if row.fields.get("name") else None
                known = {key: row.fields.get(key) for key in ("agentType", "detail")}
                entry = take(row._replace(fields={**known, "name": named}))
                if entry is not None:
                    before, self._read_by = self._read_by, self._reader_of(row)
                    index.add(offset, entry, is_further=self._read_by is not None and before == self._read_by)
            offset += len(line) + 1

    def _reader_of(self, row: Line) -> bytes | None:
        """Return who reads a file by a call, that went well so far; None of any other row."""
        is_known = row.id in self._reading
        if row.kind != RowType.TOOL or not (is_known or reads_files(row.fields.get("name"))):
            return None
        if row.phase == Phase.END:
            self._reading.discard(row.id)
        elif len(self._reading) < _MOST_TYPES:
            self._reading.add(row.id)
        return None if row.fields.get("status") in BAD_ENDS else row.parent

    def paragraph(self, number: int) -> tuple[ShownLine, ...]:
        """Return the lines of a paragraph."""
        index = self._index
        if number >= len(index.firsts):
            return GONE
        found = index.cached.get(number)
        if found is None:
            found = self._lines(index, number)
            index.remember(number, found)
        else:
            index.cached.move_to_end(number)
        return found

    def _lines(self, index: _RowIndex, number: int) -> tuple[ShownLine, ...]:
        rows = index.rows_of(number)
        entries = [self._entry(index, row, self._file.line_at(index.offsets[row])) for row in rows]
        found = [entry for entry in entries if entry is not None]
        if len(found) < len(entries):
            return GONE
        if self.is_source:
            return tuple(chain.from_iterable(map(_as_written, found)))
        tone = _tone(found[0])
        first, *rest = reads_lines(found) if len(found) > 1 else entry_lines(found[0], self.width)
        below = Tone.USUAL if tone in (Tone.CALL, Tone.HEADING) else tone
        further = (shown for line in rest for shown in shown_lines(line, below))
        return (*shown_lines(first, tone, _STAMP), *further)

    def _entry(self, index: _RowIndex, number: int, line: bytes) -> TranscriptEntry | None:
        row = read_line(line, 0)
        if row is None:
            return None
        fields: Fields = dict(row.fields)
        if row.kind == RowType.AGENT:
            fields["agentType"] = index.types[index.kinds[number]]
        if index.namers[number]:
            namer = read_line(self._file.line_at(index.namers[number] - 1), 0)
            fields["name"] = None if namer is None else namer.fields.get("name")
        if isinstance(fields.get("text"), str):
            fields["text"] = message_text(fields["text"])
        at, phase = row.at.decode("utf-8", "replace"), index.phases[number]
        doer = index.types[index.doers[number]]
        return TranscriptEntry(at, index.depths[number], doer, row.kind, bool(phase & 1), bool(phase & 2), fields)

    def stretch(self, number: int) -> tuple[int, int]:
        """Return the paragraphs that are searched together: (the first, the one behind the last)."""
        begins = self._index.begins
        window = begins[number] // BLOCK * BLOCK
        return bisect_left(begins, window), bisect_left(begins, window + BLOCK)

    def hits(self, needle: Needle, first: int, last: int) -> Iterator[Spot]:
        """Yield the lines with a needle, from paragraph `first` to before `last`, which are of one stretch."""
        index = self._index
        begin = index.begins[first]
        data = self._file.read(index.begins[last - 1] - begin, begin)
        is_common = needle.may_be_in_words(_WORDS)
        for number in range(first, last):
            if is_common or len(index.rows_of(number)) > 1 or self._may_have(index, needle, number, data, begin):
                yield from spots(needle, number, self._lines(index, number))

    def _may_have(self, index: _RowIndex, needle: Needle, number: int, data: bytes, begin: int) -> bool:
        """Return whether a needle may be in a paragraph of one row; if not, it need not be put into words."""
        row = index.firsts[number]
        at = index.offsets[row] - begin
        end = data.find(b"\n", at)
        line = data[at:end] if end >= 0 else self._file.line_at(begin + at)
        # An escape of JSON may stand for any character; what other rows say about this one is not in its bytes.
        elsewhere = index.types[index.doers[row]], index.types[index.kinds[row]]
        is_escaped = b"\\u" in line or (not self.is_source and b"\\" in line)
        return bool(index.namers[row] or needle.may_be_in(line) or is_escaped or needle.may_be_in_words(*elsewhere))


def _as_written(entry: TranscriptEntry) -> tuple[ShownLine, ...]:
    first, *rest = whole(paragraph(entry)).removesuffix("\n").split("\n")
    tone = _tone(entry)
    hang = len(entry_indent(entry))
    lines = [ShownLine(part, tone, 0 if place else _STAMP, hang) for place, part in enumerate(parts_of_line(first))]
    below = Tone.USUAL if tone in (Tone.CALL, Tone.HEADING) else tone
    return (*lines, *(ShownLine(part, below, 0, hang) for line in rest for part in parts_of_line(line)))


def _tone(entry: TranscriptEntry) -> Tone:
    if entry.ends and entry.fields.get("status") in BAD_ENDS:
        return Tone.PROBLEM
    return _TONES.get(entry.kind, Tone.USUAL)
