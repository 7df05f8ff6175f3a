"""What differs between two texts: their lines, and within a line that was changed the words.

Both texts are in the result whole: the lines that are kept or removed are the old one, those that are kept or added
are the new one. Texts for which that would take long count as wholly replaced.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from agentctl.lean import NamedTuple

KEPT, REMOVED, ADDED = " ", "-", "+"
#: How many steps a comparison may take: a tenth of a second for the lines of two texts, and for all of their words.
_MOST_STEPS = 1_000_000
#: Lines that have less than this in common are two different ones, not one that was changed.
_LEAST_ALIKE = 0.35
_WORD = re.compile(r"\w+|\s+|.", re.DOTALL)

#: Where something begins and ends in a line.
Range = tuple[int, int]


class DiffLine(NamedTuple):
    """A line of two texts that are compared."""

    #: KEPT, REMOVED or ADDED.
    kind: str
    text: str
    #: What of a changed line is not in the other one.
    words: tuple[Range, ...] = ()


class _StepsLeft:
    """The steps that are left for a comparison."""

    def __init__(self) -> None:
        self.left = _MOST_STEPS

    def take(self, old: Sequence[str], new: Sequence[str]) -> bool:
        """Return whether there are enough to compare these, which are taken then.

        `SequenceMatcher` looks at each pair of equal items, and does so again for each part that it finds.
        """
        counted = Counter(new)
        pairs = len(old) + sum(counted[one] for one in old)
        needed = pairs * (1 + min(len(old), len(new)))
        if needed > self.left:
            return False
        self.left -= needed
        return True


def lines_diff(old: str, new: str) -> Iterator[DiffLine]:
    r"""Yield the lines of two texts, each kept, removed or added.

    >>> [line[:2] for line in lines_diff("a\nb", "a\nc")]
    [(' ', 'a'), ('-', 'b'), ('+', 'c')]
    """
    before, after = old.split("\n"), new.split("\n")
    same_head = _common(before, after)
    same_tail = _common(before[same_head:][::-1], after[same_head:][::-1])
    olds, news = before[same_head : len(before) - same_tail], after[same_head : len(after) - same_tail]
    steps = _StepsLeft()
    yield from (DiffLine(KEPT, line) for line in before[:same_head])
    for kind, (begin, end), (first, last) in _parts(olds, news, steps):
        if kind == "equal":
            yield from (DiffLine(KEPT, line) for line in olds[begin:end])
        else:
            yield from changed_lines(olds[begin:end], news[first:last], steps)
    yield from (DiffLine(KEPT, line) for line in before[len(before) - same_tail :])


def changed_lines(olds: Sequence[str], news: Sequence[str], steps: _StepsLeft | None = None) -> Iterator[DiffLine]:
    """Yield lines that were removed, and those in their place; as many as stand opposite each other word by word."""
    steps = steps or _StepsLeft()
    words = [_words_of(old, new, steps) for old, new in zip(olds, news, strict=False)]
    nothing = [((), ())] * (max(len(olds), len(news)) - len(words))
    for kind, lines, at in ((REMOVED, olds, 0), (ADDED, news, 1)):
        for line, found in zip(lines, [*words, *nothing], strict=False):
            yield DiffLine(kind, line, found[at])


def words_diff(old: str, new: str) -> tuple[tuple[Range, ...], tuple[Range, ...]]:
    """Return what of a line is not in the other one, and the other way round; nothing where they have little in common.

    >>> words_diff("replicas: 2", "replicas: 3"), words_diff("one", "another line")
    ((((10, 11),), ((10, 11),)), ((), ()))
    """
    return _words_of(old, new, _StepsLeft())


def _words_of(old: str, new: str, steps: _StepsLeft) -> tuple[tuple[Range, ...], tuple[Range, ...]]:
    olds, news = _WORD.findall(old), _WORD.findall(new)
    removed, added = [], []
    kept = at = to = 0
    for kind, (begin, end), (first, last) in _parts(olds, news, steps):
        gone, come = len("".join(olds[begin:end])), len("".join(news[first:last]))
        if kind == "equal":
            kept += len("".join(olds[begin:end]).replace(" ", ""))
        else:
            removed += [(at, at + gone)] * bool(gone)
            added += [(to, to + come)] * bool(come)
        at, to = at + gone, to + come
    is_alike = kept >= _LEAST_ALIKE * max(len(old.replace(" ", "")), len(new.replace(" ", "")))
    return (tuple(removed), tuple(added)) if is_alike else ((), ())


def _common(before: Sequence[str], after: Sequence[str]) -> int:
    """Return how many items at the beginning are the same."""
    least = min(len(before), len(after))
    return next((at for at in range(least) if before[at] != after[at]), least)


def _parts(old: Sequence[str], new: Sequence[str], steps: _StepsLeft) -> Iterator[tuple[str, Range, Range]]:
    """Yield the parts of two lists that are equal, or differ; where that would take too long, all as one part."""
    if not steps.take(old, new):
        yield "replace", (0, len(old)), (0, len(new))
        return
    from difflib import SequenceMatcher  # Mostly nothing is compared.

    for kind, begin, end, first, last in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        yield kind, (begin, end), (first, last)
