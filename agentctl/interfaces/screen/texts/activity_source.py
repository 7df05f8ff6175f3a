"""The transcript of an agent for the pager: paragraphs, by the offsets of their rows.

Of each row that is shown is remembered where it lies, and what the rows before it say about it: 32 bytes. It is read
and put into words again when it is drawn.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterator

from agentctl.adapters.files import AnyPath
from agentctl.domain.activity.row import RowType, message_text
from agentctl.domain.activity.rows import Fields, read_line
from agentctl.domain.activity.transcript import Transcript, TranscriptEntry
from agentctl.domain.text.plaintext import whole
from agentctl.interfaces.screen.texts.line_source import LineSource
from agentctl.interfaces.screen.texts.needle import Needle
from agentctl.interfaces.screen.texts.shown import GONE, ShownLine, Spot, Tone, parts_of_line, spots
from agentctl.interfaces.screen.texts.source_file import BLOCK, LineBlock
from agentctl.interfaces.words.activity import paragraph

#: More than any agent does, and 60 MB in memory at worst; 100 MB of activity usually have a tenth of it.
_MOST_PARAGRAPHS = 1_000_000
_MOST_TYPES = 20_000
#: Paragraphs kept as they are drawn: up to so many, and so many characters.
_CACHED, _CACHED_CHARACTERS = 256, 1 << 21
_STAMP, _HANG = len("hh:mm:ss"), len("hh:mm:ss  ")
_BEGINS, _ENDS = 1, 2
#: Words of `agentctl.interfaces.words.activity` that are in no row.
_WORDS = "thinks note agent tool completed answered denied failed cancelled running characters question message cut"
_TONES: dict[str, Tone] = {
    RowType.THOUGHT: Tone.QUIET, RowType.NOTE: Tone.QUIET, RowType.PROGRESS: Tone.QUIET,
    RowType.TOOL: Tone.CALL, RowType.AGENT: Tone.HEADING, RowType.QUESTION: Tone.QUESTION,
}  # fmt: skip


class _RowIndex:
    """Of each row that is shown: its offset, and what it does not say itself."""

    def __init__(self) -> None:
        self.offsets = array("Q")
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

    def add(self, offset: int, entry: TranscriptEntry) -> None:
        """Add the row at an offset; its entry has for a name one more than the offset of the row that has it."""
        namer = entry.fields.get("name") or 0
        self.namers.append(0 if namer == offset + 1 else namer)
        self.depths.append(min(entry.depth, 0xFFFF))
        self.phases.append(_BEGINS * entry.begins | _ENDS * entry.ends)
        self.doers.append(self._number(entry.agent_type))
        self.kinds.append(self._number(entry.fields.get("agentType") if entry.kind == RowType.AGENT else None))
        self.offsets.append(offset)  # Last: their number is the number of paragraphs, for another thread.

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


class ActivitySource(LineSource):
    """What an agent and its sub-agents said, called and returned."""

    def __init__(self, path: AnyPath) -> None:
        super().__init__(path, _MOST_PARAGRAPHS, "paragraphs are shown: `agentctl logs` has all")

    def _begin(self) -> None:
        super()._begin()
        self._transcript, self._number = Transcript(), 0
        self._index = _RowIndex()

    def __len__(self) -> int:
        return len(self._index.offsets)

    def _take(self, block: LineBlock) -> None:
        offset, index, take = block.begin, self._index, self._transcript.take
        for self._number, line in enumerate(block.lines.split(b"\n")[:-1], self._number + 1):  # noqa: B020
            row = read_line(line, self._number)
            if row is not None:
                named = offset + 1 if row.fields.get("name") else None
                entry = take(row._replace(fields={"agentType": row.fields.get("agentType"), "name": named}))
                if entry is not None:
                    index.add(offset, entry)
            offset += len(line) + 1

    def paragraph(self, number: int) -> tuple[ShownLine, ...]:
        """Return the lines of a paragraph."""
        index = self._index
        if number >= len(index.offsets):
            return GONE
        found = index.cached.get(number)
        if found is None:
            found = self._lines(index, number, self._file.line_at(index.offsets[number]))
            index.remember(number, found)
        else:
            index.cached.move_to_end(number)
        return found

    def _lines(self, index: _RowIndex, number: int, line: bytes) -> tuple[ShownLine, ...]:
        entry = self._entry(index, number, line)
        if entry is None:
            return GONE
        first, *rest = whole(paragraph(entry)).removesuffix("\n").split("\n")
        tone = _tone(entry)
        hang = _HANG + 2 * min(entry.depth, 20)
        lines = [ShownLine(part, tone, 0 if place else _STAMP, hang) for place, part in enumerate(parts_of_line(first))]
        below = Tone.USUAL if tone in (Tone.CALL, Tone.HEADING) else tone
        return (*lines, *(ShownLine(part, below, 0, hang) for line in rest for part in parts_of_line(line)))

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
        offsets = self._index.offsets
        window = offsets[number] // BLOCK * BLOCK
        return bisect_left(offsets, window), bisect_left(offsets, window + BLOCK)

    def hits(self, needle: Needle, first: int, last: int) -> Iterator[Spot]:
        """Yield the lines with a needle, from paragraph `first` to before `last`, which are of one stretch."""
        index = self._index
        begin = index.offsets[first]
        data = self._file.read(index.offsets[last - 1] - begin, begin)
        is_common = needle.may_be_in_words(_WORDS)
        for number in range(first, last):
            at = index.offsets[number] - begin
            end = data.find(b"\n", at)
            line = data[at:end] if end >= 0 else self._file.line_at(begin + at)
            # An escape of JSON may stand for any character; what other rows say about this one is not in its bytes.
            elsewhere = index.types[index.doers[number]], index.types[index.kinds[number]]
            if not (
                is_common or index.namers[number] or needle.may_be_in(line) or b"\\u" in line
                or needle.may_be_in_words(*elsewhere)
            ):  # fmt: skip
                continue
            yield from spots(needle, number, self._lines(index, number, line))


def _tone(entry: TranscriptEntry) -> Tone:
    if entry.ends and entry.fields.get("status") in ("failed", "denied", "cancelled"):
        return Tone.PROBLEM
    return _TONES.get(entry.kind, Tone.USUAL)
