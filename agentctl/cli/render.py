"""Formats and prints output: JSON for programs, tab-separated lines for pipes, text for terminals.

Text that came from a worker or from a file goes through `plain`: a terminal obeys control characters.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from agentctl.cli.captured import taker
from agentctl.cli.jsonrows import RowEncoder
from agentctl.domain.plaintext import beginning
from agentctl.domain.plaintext import plain as plain  # noqa: PLC0414 - commands import it from here
from agentctl.errors import ExitCode
from agentctl.lean import TYPE_CHECKING, Any
from agentctl.text.words import JSON_ESCAPES, NOTHING, shown_json
from agentctl.text.worker import questions_open, refused_words, stranded_words

if TYPE_CHECKING:
    from typing import IO

    from agentctl.adapters.taskdir import Root
    from agentctl.domain.names import WorkerId
    from agentctl.errors import StorageError
    from agentctl.operations.show.askers import PendingQuestion
    from agentctl.operations.wait.live_view import DiskRefusal

#: How many rows are turned into text at a time.
_PIECE = 200


def is_terminal(stream: IO[Any]) -> bool:
    """Return whether a stream is a terminal at which somebody has typed this command."""
    if taker() is not None:
        return False
    try:
        return stream.isatty()
    except ValueError:
        return False


def note(line: str) -> None:
    """Print a line on stderr: stdout is for the data."""
    if taker() is not None:
        return
    sys.stdout.flush()
    print(line, file=sys.stderr, flush=True)


def note_questions(asked: Sequence[PendingQuestion], root: Root) -> None:
    """Report which questions are open below what was shown."""
    if asked:
        _note_open(asked, root)


def _note_open(asked: Sequence[PendingQuestion], root: Root) -> None:
    from agentctl.operations.where.command_lines import root_words  # Mostly nobody asks.

    note(questions_open(asked, root_words(root)))


def note_holds(holds: Iterable[str]) -> None:
    """Say on stderr what keeps workers in the queue until somebody lets them go."""
    for hold in holds:
        note(hold)


class QuestionNotes:
    """Reports the open questions during a wait, each once."""

    def __init__(self, root: Root) -> None:
        self._root = root
        self._noted: set[PendingQuestion] = set()

    def __call__(self, asked: Sequence[PendingQuestion]) -> None:
        if not self._noted.issuperset(asked):
            _note_open(asked, self._root)
        self._noted.update(asked)


class StrandedNotes:
    """Reports during a wait the workers that nobody starts, each once.

    Args:
        command: The command line that has them started.
    """

    def __init__(self, command: str) -> None:
        self._command = command
        self._noted: set[WorkerId] = set()

    def __call__(self, stranded: Sequence[WorkerId]) -> None:
        if not self._noted.issuperset(stranded):
            note(stranded_words(stranded, self._command))
        self._noted.update(stranded)


class HeldNotes:
    """Reports during a wait what keeps workers in the queue until somebody lets them go, each hold once."""

    def __init__(self) -> None:
        self._noted: set[str] = set()

    def __call__(self, holds: Sequence[str]) -> None:
        for hold in holds:
            if hold not in self._noted:
                note(hold)
        self._noted.update(holds)


class RefusedNotes:
    """Reports during a wait what a disk refuses, each worker once."""

    def __init__(self) -> None:
        self._noted: set[WorkerId] = set()

    def __call__(self, refused: Mapping[WorkerId, DiskRefusal]) -> None:
        for worker, refusal in refused.items():
            if worker not in self._noted:
                note(refused_words(worker, refusal))
        self._noted.update(refused)


def report_unreadable(problems: Sequence[StorageError]) -> ExitCode:
    """Report, after all that could be read was shown, what could not be; return the exit code."""
    if not problems:
        return ExitCode.DONE
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    note(f"error: {plain(problems[0].message)}{more}")
    if problems[0].hint:
        note(f"hint: {plain(problems[0].hint)}")
    return ExitCode.REFUSED


def warn(lines: Iterable[str]) -> None:
    """Print warnings on stderr."""
    for line in lines:
        note(f"warning: {plain(line)}")


def as_json(value: Any) -> str:
    """Return one compact JSON document that is safe wherever stdout goes.

    Where stdout cannot print every character, `backslashreplace` would write escapes that JSON does not have.
    """
    text = _in_utf8(json.dumps(value, ensure_ascii=not _prints_unicode(), separators=(",", ":")))
    return text.translate(JSON_ESCAPES) if is_terminal(sys.stdout) else text


def _in_utf8(text: str) -> str:
    """Escape each byte that is not UTF-8: in a locale that is not in UTF-8, stdout prints it as it was typed."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def _prints_unicode() -> bool:
    return (sys.stdout.encoding or "").lower().startswith("utf")


def out_json(value: Any) -> None:
    """Print one JSON document."""
    print(as_json(value), flush=True)


def out_json_rows(rows: Iterable[Any]) -> None:
    """Print one JSON list, some rows at a time: those of many workers are never in memory together."""
    left, before = iter(rows), "["
    encoder, is_shown = RowEncoder(ensure_ascii=not _prints_unicode()), is_terminal(sys.stdout)
    while piece := list(islice(left, _PIECE)):
        text = _in_utf8(encoder.encode(piece))
        sys.stdout.write(before + (text.translate(JSON_ESCAPES) if is_shown else text))
        before = ","
    print("]" if before == "," else "[]", flush=True)


def fields(*values: object) -> str:
    """Return a line of fields with tabs between; an empty one shows as `-`."""
    return "\t".join(NOTHING if value is None or value == "" else plain(value) for value in values)


def outline(value: Mapping[str, Any], indent: str = "", longest: int | None = None) -> Iterator[str]:
    """Yield the lines that show a nested document to a person; empty values are left out.

    Args:
        longest: How many characters of a value are shown, by default all of them.
    """
    for key, item in value.items():
        if item in (None, "", [], {}):
            continue
        if isinstance(item, Mapping):
            yield f"{indent}{plain(key)}:"
            yield from outline(item, indent + "  ", longest)
        elif isinstance(item, list) and all(isinstance(part, Mapping) for part in item):
            for number, part in enumerate(item, 1):
                yield f"{indent}{plain(key)} {number}:"
                yield from outline(part, indent + "  ", longest)
        else:
            text = plain(item) if isinstance(item, str) else shown_json(item)
            rest = f"... ({len(text)} characters; --json has them all)"
            yield f"{indent}{plain(key)}: {text if longest is None else beginning(text, longest, rest)}"
