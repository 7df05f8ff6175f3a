"""A set of hashes that takes 12 to 24 bytes for each, where a `set` of numbers takes up to 100."""

from __future__ import annotations

from array import array

_FIRST_SIZE = 1 << 10
_BITS = (1 << 64) - 1


class SeenHashes:
    """The hashes that were added; two hashes of 64 bits that happen to be equal are one."""

    def __init__(self) -> None:
        self._slots = array("Q", bytes(8 * _FIRST_SIZE))
        self._count = 0

    def __contains__(self, value: int) -> bool:
        return bool(self._slots[self._place(value)])

    def __len__(self) -> int:
        return self._count

    def add(self, value: int) -> None:
        """Add a hash."""
        place = self._place(value)
        if not self._slots[place]:
            self._slots[place] = value & _BITS or 1
            self._count += 1
            if 3 * self._count > 2 * len(self._slots):
                self._grow()

    def _place(self, value: int) -> int:
        """Return the slot of a value, or the free one where it belongs."""
        slots, wanted = self._slots, value & _BITS or 1
        mask = len(slots) - 1
        place = (wanted ^ wanted >> 32) & mask
        while slots[place] and slots[place] != wanted:
            place = place + 1 & mask
        return place

    def _grow(self) -> None:
        before, self._slots = self._slots, array("Q", bytes(16 * len(self._slots)))
        for value in before:
            if value:
                self._slots[self._place(value)] = value
