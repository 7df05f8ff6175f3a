"""The words of a filter, such as `s:blocked -a:explore t:login`, and whether a worker has them. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agentctl.interfaces.words.worker import full_standing
from agentctl.lean import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from agentctl.domain.documents.workers.worker import WorkerRow

#: The letters before a colon: the state of a worker, its agent, its task, its name.
_STATE, _AGENT, _TASK, _NAME = "s", "a", "t", "n"
_PLACES = frozenset({_STATE, _AGENT, _TASK, _NAME})


class FilterWord(NamedTuple):
    """One word of a filter: where it is looked for (empty: anywhere), and whether it must be missing."""

    where: str
    text: str
    is_negated: bool


def filter_words(text: str) -> list[FilterWord]:
    """Return the words of a filter. One with spaces stands in quotes; one after `-` must be missing.

    >>> filter_words("s:blocked -a:explore 'log in'")
    [FilterWord(where='s', text='blocked', is_negated=False), \
FilterWord(where='a', text='explore', is_negated=True), FilterWord(where='', text='log in', is_negated=False)]
    """
    import shlex  # Most lists are not filtered.

    try:
        parts = shlex.split(text)
    except ValueError:  # A quote that is not closed yet.
        parts = text.split()
    found = []
    for part in parts:
        is_negated = part.startswith("-") and len(part) > 1
        word = part[1:] if is_negated else part
        where, colon, rest = word.partition(":")
        is_known = bool(colon) and where in _PLACES
        found.append(FilterWord(where if is_known else "", (rest if is_known else word).lower(), is_negated))
    return found


def texts_of(row: WorkerRow, *, need: str = "", task: str) -> dict[str, str]:
    """Return where a filter looks for its words, by the letter before the colon.

    Args:
        need: What a person has to do about the worker.
        task: The words for its task.
    """
    return {
        _STATE: f"{row['status']} {need} {full_standing(row) or ''}",
        _AGENT: f"{row['agent']} {row['driver'] or ''}",
        _TASK: task,
        _NAME: f"{row['agentInstance']} {row['command']}",
    }


def has_words(texts: Mapping[str, str], words: Sequence[FilterWord]) -> bool:
    """Return whether a worker has all words of a filter.

    Args:
        texts: What is said of it, by the letter before the colon.
    """
    return all(_has(texts, word) is not word.is_negated for word in words)


def _has(texts: Mapping[str, str], word: FilterWord) -> bool:
    places = [texts[word.where]] if word.where else texts.values()
    return any(word.text in place.lower() for place in places)
