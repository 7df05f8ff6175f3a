"""Why a worker is as it is, in lines: each sentence, below it the evidence, at the end what would change it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from agentctl.domain.text.plaintext import plain
from agentctl.interfaces.words.value_words import duration, local_time
from agentctl.lean import TYPE_CHECKING

if TYPE_CHECKING:
    from agentctl.domain.documents.workers.worker import FailedLines
    from agentctl.operations.show.evidence import Evidence, Statement, WayOut
    from agentctl.operations.show.why import Why

_KIND_COLUMN = 7


def why_lines(why: Why) -> Iterator[str]:
    """Yield the lines that explain a worker's state; a screen may wrap them."""
    yield headline(why)
    for number, statement in enumerate(why.statements):
        yield ""
        lines = statement.failed.last_lines if statement.failed else why.last_lines if number == 0 else None
        yield from statement_lines(statement, lines)
    if why.ways_out:
        yield ""
        yield "What would change it:"
        yield from (f"  {way_line(one)}" for one in why.ways_out)


def headline(why: Why) -> str:
    """Return the state in a line: `explore-1 is paused (status running), since 14:03, for 2m05s`."""
    status = "" if why.state == why.status else f" (status {why.status})"
    claimed = "" if why.is_judged or why.state in ("observed", "unknown") else ", by its files alone"
    return plain(f"{why.instance} is {why.state.replace('_', ' ')}{status}{claimed}, {_since(why.since)}")


def _since(at: str | None) -> str:
    if at is None:
        return "since an unknown time"
    try:
        lasted = (datetime.now(UTC) - datetime.fromisoformat(at)).total_seconds()
    except (TypeError, ValueError):
        return "since an unknown time"
    return f"since {local_time(at)}, for {duration(max(0.0, lasted))}"


def statement_lines(statement: Statement, lines: FailedLines | None) -> Iterator[str]:
    """Yield a sentence, and below it, indented, the last lines that say why it is so, and its evidence."""
    yield plain(statement.text)
    if lines:
        yield from last_lines_shown(lines)
    yield from evidence_lines(statement.evidence)


def last_lines_shown(lines: FailedLines, without: str = "") -> Iterator[str]:
    """Yield the last lines of a failed worker, below the name of each stream but one."""
    last = lines.get("lastLines", {})
    for stream, said in (("stderr", last.get("stderr")), ("stdout", last.get("stdout"))):
        if said and stream != without:
            yield f"    the end of its {stream}:"
            yield from (plain(f"    │ {line}", keep="\t").rstrip() for line in said)


def evidence_lines(evidence: Sequence[Evidence]) -> Iterator[str]:
    """Yield a line for each piece of evidence: kind, where, what is seen there, when."""
    for one in evidence:
        at = f" ({local_time(one.at)})" if one.at else ""
        yield plain(f"    {one.kind.ljust(_KIND_COLUMN)} {one.where}: {one.says}{at}")


def way_line(way: WayOut) -> str:
    """Return what would change the state, and the command for it."""
    return plain(f"{way.text}: {way.command.line}" if way.command else way.text)
