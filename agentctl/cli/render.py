"""Formats and prints output: JSON for programs, tab-separated lines for pipes, text for terminals.

Text that came from a worker or from a file goes through `plain`: a terminal obeys control characters.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from agentctl.cli.jsonrows import RowEncoder
from agentctl.domain.names import first_of
from agentctl.domain.numbers import finite
from agentctl.domain.plaintext import ESCAPES
from agentctl.domain.plaintext import plain as plain  # noqa: PLC0414 - commands import it from here
from agentctl.domain.windows import label_of
from agentctl.lean import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import IO

    from agentctl.domain.worker_row import WorkerRow
    from agentctl.operations.show.askers import PendingQuestion

#: What an empty column shows.
NOTHING = "-"
#: How many rows are turned into text at a time.
_PIECE = 200
_JSON_ESCAPES = {code: f"\\u{code:04x}" for code in ESCAPES if code >= 0x7F}


def is_terminal(stream: IO[Any]) -> bool:
    """Return whether a stream is a terminal."""
    try:
        return stream.isatty()
    except ValueError:
        return False


def note(line: str) -> None:
    """Print a line on stderr: stdout is for the data."""
    sys.stdout.flush()
    print(line, file=sys.stderr, flush=True)


def note_questions(asked: Sequence[PendingQuestion]) -> None:
    """Report which questions are open below what was shown."""
    if asked:
        note(questions_open(asked))


def questions_open(asked: Sequence[PendingQuestion]) -> str:
    """Return how many questions are open, who asks them, and which command shows them."""
    count = "1 question is" if len(asked) == 1 else f"{len(asked)} questions are"
    who = first_of(list(dict.fromkeys(f"{one.task_id}/{one.instance}" for one in asked)))
    return plain(f"{count} open, of {who}: agentctl interact list")


class QuestionNotes:
    """Reports the open questions during a wait, each once."""

    def __init__(self) -> None:
        self._noted: set[PendingQuestion] = set()

    def __call__(self, asked: Sequence[PendingQuestion]) -> None:
        if not self._noted.issuperset(asked):
            note(questions_open(asked))
        self._noted.update(asked)


def warn(lines: Iterable[str]) -> None:
    """Print warnings on stderr."""
    for line in lines:
        note(f"warning: {plain(line)}")


def as_json(value: Any, *, shown: bool = False) -> str:
    """Return one compact JSON document that is safe wherever stdout goes; `shown`: as part of a text for a person.

    Where stdout cannot print every character, `backslashreplace` would write escapes that JSON does not have.
    """
    text = json.dumps(value, ensure_ascii=not _prints_unicode(), separators=(",", ":"))
    return text.translate(_JSON_ESCAPES) if shown or is_terminal(sys.stdout) else text


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
        text = encoder.encode(piece)
        sys.stdout.write(before + (text.translate(_JSON_ESCAPES) if is_shown else text))
        before = ","
    print("]" if before == "," else "[]", flush=True)


def fields(*values: object) -> str:
    """Return a line of fields with tabs between; an empty one shows as `-`."""
    return "\t".join(NOTHING if value is None or value == "" else plain(value) for value in values)


def duration(seconds: float | None) -> str:
    """Return a time as a person would say it.

    >>> [duration(value) for value in (None, 4.25, 65, 7384)]
    ['-', '4.2s', '1m05s', '2h03m']
    """
    if seconds is None:
        return NOTHING
    if seconds < 60:
        return f"{seconds:.1f}s"
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}m{rest:02}s" if minutes < 60 else f"{minutes // 60}h{minutes % 60:02}m"


def elapsed(row: WorkerRow) -> float | None:
    """Return how long a worker ran, or has been running; the wall clock is good enough to show it."""
    measured, began = row["durationSeconds"], row["startedAt"]
    if measured is not None or began is None or row["endedAt"] is not None:
        return measured
    from datetime import UTC, datetime

    try:
        return max(0.0, (datetime.now(UTC) - datetime.fromisoformat(began)).total_seconds())
    except (TypeError, ValueError):
        return None  # a line of the log that someone else wrote


def progress(report: Mapping[str, Any] | None) -> str | None:
    """Return how far a worker says it has got: `40% reading`."""
    report = report or {}
    percent = finite(report.get("percent"))
    parts = ["" if percent is None else f"{percent:g}%", str(report.get("text") or "")]
    return " ".join(part for part in parts if part) or None


def standing(row: WorkerRow) -> str | None:
    """Return what is shown beside the status: why it failed, or what is unusual about a live worker."""
    if row["reason"]:
        return row["reason"]
    account = row["awaitsAccount"]
    if account:
        return waiting_for(account, is_parked=row["parked"])
    unusual = next((words for key, words in _UNUSUAL if row.get(key)), None)
    if unusual is None and row["uncollected"]:
        return f"{row['uncollected']} uncollected"
    health = row["health"]
    return unusual or (health if health in ("unsupervised", "elsewhere", "observed") else None)


#: The field of a row and the words for it, the most pressing first.
_UNUSUAL = (
    ("survivors", "survivors"), ("paused", "paused"), ("stalled", "stalled"), ("askedBelow", "a child asks"),
    ("awaitsChildren", "awaits children"),
)  # fmt: skip


def waiting_for(account: Mapping[str, Any], *, is_parked: bool) -> str:
    """Return until when a worker waits for its account: `parked until 03:30 (5 h window)`."""
    until, window = local_time(account.get("until")), account.get("window")
    which = f" ({label_of(str(window))} window)" if window else ""
    return f"{'parked' if is_parked and window else 'waits for its account'} until {until}{which}"


def local_time(stamp: object) -> str:
    """Return a time stamp as a wall clock shows it, with the day if that is not today."""
    from datetime import datetime

    try:
        at = datetime.fromisoformat(str(stamp)).astimezone()
    except (ValueError, OverflowError, OSError):
        return "?"  # a line of the log that someone else wrote
    return at.strftime("%H:%M" if at.date() == datetime.now().astimezone().date() else "%a %d %b %H:%M")


def outline(value: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    """Yield the lines that show a nested document to a person; empty values are left out."""
    for key, item in value.items():
        if item in (None, "", [], {}):
            continue
        if isinstance(item, Mapping):
            yield f"{indent}{plain(key)}:"
            yield from outline(item, indent + "  ")
        elif isinstance(item, list) and all(isinstance(part, Mapping) for part in item):
            for number, part in enumerate(item, 1):
                yield f"{indent}{plain(key)} {number}:"
                yield from outline(part, indent + "  ")
        else:
            text = plain(item) if isinstance(item, str) else as_json(item, shown=True)
            yield f"{indent}{plain(key)}: {text}"
