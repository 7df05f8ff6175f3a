"""What is printed, and how: JSON for programs, tab-separated lines for pipes, tables for terminals.

Text that came from a worker or from a file goes through `plain`: a terminal obeys control characters.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from agentctl.adapters.taskdir import TaskDir
from agentctl.domain.names import first_of
from agentctl.domain.numbers import finite
from agentctl.domain.plaintext import ESCAPES
from agentctl.domain.plaintext import plain as plain  # noqa: PLC0414 - every command has it from here
from agentctl.domain.windows import label_of
from agentctl.lean import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import IO

    from agentctl.operations.show.askers import PendingQuestion

#: Where a column has nothing to say.
NOTHING = "-"
#: So many rows are made text at a time.
_PIECE = 250
_JSON_ESCAPES = {code: f"\\u{code:04x}" for code in ESCAPES if code >= 0x7F}


def is_terminal(stream: IO[Any]) -> bool:
    """Tell whether a person looks at a stream."""
    try:
        return stream.isatty()
    except ValueError:
        return False


def out(line: str = "") -> None:
    """Print a line of data."""
    print(line)


def out_now(line: str) -> None:
    """Print a line of data that somebody waits for."""
    print(line, flush=True)


def note(line: str) -> None:
    """Print a line beside the data."""
    sys.stdout.flush()
    print(line, file=sys.stderr, flush=True)


def note_foreign(task: TaskDir) -> TaskDir:
    """Say so where a task is not this person's own; return it."""
    from agentctl.operations.where.ownership import is_own  # The waits print, too, and need none of it.

    if not is_own(task):
        note(f"{plain(task.id)} was not made here by you: it is shown as its files tell it")
    return task


def note_questions(asked: Sequence[PendingQuestion]) -> None:
    """Say which questions are open below what was shown."""
    if asked:
        note(questions_open(asked))


def questions_open(asked: Sequence[PendingQuestion]) -> str:
    """Return how many questions are open, who asks, and what shows them."""
    told = "1 question is" if len(asked) == 1 else f"{len(asked)} questions are"
    who = first_of(list(dict.fromkeys(f"{one.task_id}/{one.instance}" for one in asked)))
    return plain(f"{told} open, of {who}: agentctl interact list")


class QuestionNotes:
    """Says beside a wait which questions are open, each once."""

    def __init__(self) -> None:
        self._told: set[PendingQuestion] = set()

    def __call__(self, asked: Sequence[PendingQuestion]) -> None:
        if not self._told.issuperset(asked):
            note(questions_open(asked))
        self._told.update(asked)


def warn(lines: Iterable[str]) -> None:
    """Print warnings beside the data."""
    for line in lines:
        note(f"warning: {plain(line)}")


def as_json(value: Any, *, shown: bool = False) -> str:
    """Return one compact JSON document that is safe wherever stdout goes; `shown` within text for a person.

    Where stdout cannot print every character, `backslashreplace` would write escapes that JSON does not have.
    """
    is_unicode = (sys.stdout.encoding or "").lower().startswith("utf")
    text = json.dumps(value, ensure_ascii=not is_unicode, separators=(",", ":"))
    return text.translate(_JSON_ESCAPES) if shown or is_terminal(sys.stdout) else text


def out_json(value: Any) -> None:
    """Print one JSON document."""
    out_now(as_json(value))


def out_json_rows(rows: Iterable[Any]) -> None:
    """Print one JSON list, some rows at a time: those of many workers never stand in memory together."""
    left, before = iter(rows), "["
    while piece := list(islice(left, _PIECE)):
        sys.stdout.write(before + as_json(piece)[1:-1])
        before = ","
    out_now("]" if before == "," else "[]")


def out_fields(*fields: object) -> None:
    """Print a line of tab-separated fields; one that is empty shows as `-`."""
    out("\t".join(NOTHING if field is None or field == "" else plain(field) for field in fields))


def duration(seconds: float | None) -> str:
    """Return a time as a person says it.

    >>> [duration(value) for value in (None, 4.25, 65, 7384)]
    ['-', '4.2s', '1m05s', '2h03m']
    """
    if seconds is None:
        return NOTHING
    if seconds < 60:
        return f"{seconds:.1f}s"
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}m{rest:02}s" if minutes < 60 else f"{minutes // 60}h{minutes % 60:02}m"


def elapsed(row: Mapping[str, Any]) -> float | None:
    """Return how long a worker ran, or has been running; the wall clock is good enough to show it."""
    measured = row.get("durationSeconds")
    began = row.get("startedAt")
    if measured is not None or began is None or row.get("endedAt") is not None:
        return measured
    from datetime import UTC, datetime

    try:
        return max(0.0, (datetime.now(UTC) - datetime.fromisoformat(began)).total_seconds())
    except (TypeError, ValueError):
        return None  # a line of the log that somebody else wrote


def progress(row: Mapping[str, Any]) -> str | None:
    """Return how far a worker says it is: `40% reading`."""
    told = row.get("progress") or {}
    percent = finite(told.get("percent"))
    parts = ["" if percent is None else f"{percent:g}%", str(told.get("text") or "")]
    return " ".join(part for part in parts if part) or None


def standing(row: Mapping[str, Any]) -> str | None:
    """Return what goes beside the status: why it failed, or what is unusual about one that lives."""
    if row.get("reason"):
        return str(row["reason"])
    if row.get("awaitsAccount"):
        return waiting_for(row["awaitsAccount"], is_parked=bool(row.get("parked")))
    unusual = next((told for key, told in _UNUSUAL if row.get(key)), None)
    if unusual is None and row.get("uncollected"):
        return f"{row['uncollected']} uncollected"
    health = row.get("health")
    return unusual or (health if health in ("unsupervised", "elsewhere", "observed") else None)


#: The field of a row, and what it says, the most pressing first.
_UNUSUAL = (
    ("survivors", "survivors"), ("paused", "paused"), ("stalled", "stalled"), ("askedBelow", "a child asks"),
    ("awaitsChildren", "awaits children"),
)  # fmt: skip


def waiting_for(account: Mapping[str, Any], *, is_parked: bool) -> str:
    """Return until when a worker waits for its account: `parked until 03:30 (5 h window)`."""
    until, window = local_time(account.get("until")), account.get("window")
    told = f" ({label_of(str(window))} window)" if window else ""
    return f"{'parked' if is_parked and window else 'waits for its account'} until {until}{told}"


def local_time(stamp: object) -> str:
    """Return a time stamp as a clock on the wall shows it, with the day where that is another one."""
    from datetime import datetime

    try:
        at = datetime.fromisoformat(str(stamp)).astimezone()
    except (ValueError, OverflowError, OSError):
        return "?"  # a line of the log that somebody else wrote
    return at.strftime("%H:%M" if at.date() == datetime.now().astimezone().date() else "%a %d %b %H:%M")


def how_it_ended(status: str, reason: str | None, exit_code: int | None, signal: Any) -> str:
    """Return an end in a few words, of which no terminal obeys one: `failed (exit_code 3)`."""
    if not reason:
        return status
    detail = {"exit_code": exit_code, "signal": signal}.get(reason)
    return plain(f"{status} ({reason}{'' if detail is None else f' {detail}'})")


def outline(value: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    """Yield the lines in which a nested document is shown to a person; what is empty is left out."""
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
            told = plain(item) if isinstance(item, str) else as_json(item, shown=True)
            yield f"{indent}{plain(key)}: {told}"
