"""The events of one worker for the pager, one line each, by their offsets in the log of the task."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator

from agentctl.adapters.files import AnyPath
from agentctl.domain.events import REMOVED, BadLine, Event, decode
from agentctl.domain.text.plaintext import whole
from agentctl.interfaces.screen.texts.line_source import LineSource
from agentctl.interfaces.screen.texts.needle import Needle
from agentctl.interfaces.screen.texts.shown import GONE, ShownLine, Spot, Tone, parts_of_line, spots
from agentctl.interfaces.screen.texts.source_file import BLOCK, LineBlock
from agentctl.interfaces.words.event import event_line

#: More than any worker has: 16 MB in memory.
_MOST_EVENTS = 1_000_000


class EventsSource(LineSource):
    """The events about a worker, as `agentctl events INSTANCE` prints them."""

    def __init__(self, path: AnyPath, instance: str) -> None:
        self._instance, self._name = instance, instance.encode()
        super().__init__(path, _MOST_EVENTS, "events are shown: `agentctl events` has all")

    def _begin(self) -> None:
        super()._begin()
        self._seq = 0
        self._offsets, self._seqs = array("Q"), array("Q")

    def __len__(self) -> int:
        return len(self._offsets)

    def _take(self, block: LineBlock) -> None:
        """Remember the lines about the worker; no other line is parsed, unless an escape may hide the name."""
        if self._name not in block.lines and b"\\u" not in block.lines:
            self._seq += block.lines.count(b"\n") + block.skipped
            return
        offset = block.begin
        for line in block.lines.split(b"\n")[:-1]:
            self._seq += 1
            event = self._event(line) if self._name in line or b"\\u" in line else None
            if event is not None and event["type"] == REMOVED:  # What follows is about another worker of its name.
                self._offsets, self._seqs = array("Q"), array("Q")
                self.generation += 1
            elif event is not None:
                self._seqs.append(self._seq)
                self._offsets.append(offset)
            offset += len(line) + 1

    def _event(self, line: bytes) -> Event | None:
        row = next(iter(decode(line + b"\n", 0)), None)
        if row is None or isinstance(row, BadLine) or row[1].get("agentInstance") != self._instance:
            return None
        return row[1]

    def paragraph(self, number: int) -> tuple[ShownLine, ...]:
        """Return the line of an event, in parts if it is too long."""
        seqs, offsets = self._seqs, self._offsets
        return self._lines(seqs[number], self._file.line_at(offsets[number])) if number < len(offsets) else GONE

    def _lines(self, seq: int, line: bytes) -> tuple[ShownLine, ...]:
        event = self._event(line)
        if event is None:
            return GONE
        tone = Tone.PROBLEM if str(event["type"]).endswith(("failed", "lost")) else Tone.USUAL
        return tuple(ShownLine(part, tone) for part in parts_of_line(whole(event_line({**event, "seq": seq}))))

    def stretch(self, number: int) -> tuple[int, int]:
        """Return the paragraphs that are searched together: (the first, the one behind the last)."""
        window = self._offsets[number] // BLOCK * BLOCK
        return bisect_left(self._offsets, window), bisect_left(self._offsets, window + BLOCK)

    def hits(self, needle: Needle, first: int, last: int) -> Iterator[Spot]:
        """Yield the lines with a needle, from paragraph `first` to before `last`, which are of one stretch."""
        for number in range(first, last):
            yield from spots(needle, number, self.paragraph(number))
