"""What a line that is being typed can be completed to: an agent, a task behind `@`, a folder behind `in:`."""

from __future__ import annotations

import os
import shlex
from collections.abc import Collection, Iterator
from itertools import islice

from agentctl.domain.text.plaintext import plain
from agentctl.encoding import as_typed, how_typed
from agentctl.interfaces.screen.start.start_line import COMMAND_MARK, IN_FRONT, KnownNames, mark_of

#: How many entries of a folder are looked at, and how many completions are offered.
_MOST_ENTRIES, _MOST = 2000, 50


def completions(line: str, known: KnownNames) -> list[str]:
    """Return the whole lines to which the last word of one can be completed, in the order of the alphabet.

    Only the words that stand before a prompt or a command are completed; a quoted word is not.
    """
    before, last = _last_word(as_typed(line))
    words = before.split()
    if any(mark_of(word) is None for word in words) or any(mark in last for mark in "'\""):
        return []
    mark = mark_of(last)
    found = {mark: _of_front(mark, last.removeprefix(mark), known)} if mark else {"": _agents(last, words, known)}
    lines = (how_typed(f"{before}{mark}{text}") for mark, texts in found.items() for text in texts[:_MOST])
    return [line for line in lines if line is not None and plain(line) == line]


def common_beginning(lines: Collection[str]) -> str:
    """Return the longest text with which all lines begin.

    >>> common_beginning(["explore ", "explain "])
    'expl'
    """
    first, last = min(lines), max(lines)  # What these two share, all share.
    differ = (at for at, (one, other) in enumerate(zip(first, last, strict=False)) if one != other)
    return first[: next(differ, min(len(first), len(last)))]


def _last_word(line: str) -> tuple[str, str]:
    """Return a line up to its last word, and that word, in which a space may be behind a backslash."""
    start = len(line)
    while start and not (line[start - 1].isspace() and line[start - 2 : start - 1] != "\\"):
        start -= 1
    return line[:start], line[start:]


def _agents(beginning: str, words: Collection[str], known: KnownNames) -> list[str]:
    if not beginning and not words:
        return []  # An empty line offers nothing: whoever opens it is not to see a guess.
    marks = [mark for mark in IN_FRONT if beginning and mark.startswith(beginning)]
    names = sorted(name for name in known.agents if name.startswith(beginning))
    return [*(f"{name} " for name in names), *marks] if beginning != COMMAND_MARK else []


def _of_front(mark: str, beginning: str, known: KnownNames) -> list[str]:
    if mark == "@":
        return [f"{name} " for name in sorted(known.tasks) if name.startswith(beginning)]
    return sorted(_folders(beginning)) if mark == "in:" else []


def _folders(beginning: str) -> Iterator[str]:
    """Yield the folders whose paths begin so, as they are typed: quoted with backslashes, and with a slash behind."""
    try:
        typed = shlex.split(beginning)[0] if beginning else ""
    except (ValueError, IndexError):
        return
    folder, start = os.path.split(typed)
    place = os.path.expanduser(folder) if folder == "~" or folder.startswith("~/") else folder
    try:
        with os.scandir(place or ".") as entries:
            names = [entry.name for entry in islice(entries, _MOST_ENTRIES) if _is_offered(entry, start)]
    except (OSError, ValueError):
        return
    for name in names:
        yield _escaped(os.path.join(folder, name)) + "/"


def _is_offered(entry: os.DirEntry[str], start: str) -> bool:
    """Return whether an entry is a folder that may be offered: no hidden one unasked, none with odd characters."""
    name = entry.name
    if not name.startswith(start) or (name.startswith(".") and not start) or plain(name) != name:
        return False
    try:
        return entry.is_dir()
    except OSError:
        return False


def _escaped(path: str) -> str:
    return "".join(f"\\{one}" if one in " '\"\\" else one for one in path)
