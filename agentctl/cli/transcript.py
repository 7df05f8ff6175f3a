"""How a transcript reads: paragraphs with the time before them, sub-agents indented."""

from __future__ import annotations

from collections.abc import Iterator

from agentctl.cli.activitytext import label_of, short, string
from agentctl.cli.render import plain
from agentctl.domain.activity.row import RowType
from agentctl.domain.activity.transcript import TranscriptEntry

_STEP = "  "
_DEEPEST_INDENT = 20
#: Of what a tool brought, so much; `activity --json` has the whole.
_MOST_LINES, _MOST_CHARACTERS = 20, 4000
#: What is told whole, and how it begins.
_MARKS = {RowType.MESSAGE: "", RowType.THOUGHT: "(thinks) ", RowType.QUESTION: "? ", RowType.NOTE: "note: "}


def paragraph(entry: TranscriptEntry) -> str:
    """Return an entry as text that is safe to show, each line ended by a newline."""
    time = entry.at[11:19] if len(entry.at) > 19 else "--:--:--"
    first, *rest = _lines(entry)
    indent = _STEP * min(entry.depth, _DEEPEST_INDENT)
    lines = [f"{plain(time)}  {indent}{first}", *(f"          {indent}{line}" for line in rest)]
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _lines(entry: TranscriptEntry) -> Iterator[str]:
    by = f"[{short(entry.agent_type or 'agent')}] " if entry.depth else ""
    if entry.kind in _MARKS:
        yield from _spoken(entry, by + _MARKS[RowType(entry.kind)])
    else:
        yield from _done(entry, by)


def _spoken(entry: TranscriptEntry, mark: str) -> Iterator[str]:
    """Yield what was said or asked, all of it."""
    name, text = string(entry.fields.get("name")), string(entry.fields.get("text")) or ""
    told = f"{mark}{f'{short(name)}: ' if name else ''}{text} {_status(entry)}"
    yield from plain(told.rstrip(), keep="\n\t").split("\n")


def _done(entry: TranscriptEntry, by: str) -> Iterator[str]:
    """Yield what was called, and the beginning of what that brought."""
    text = string(entry.fields.get("text"))
    is_call = entry.kind in (RowType.TOOL, RowType.AGENT)
    shown = entry.fields if entry.begins else {**entry.fields, "detail": None}
    told = label_of({**shown, "type": entry.kind, "text": None if is_call else text})
    badge = f"[{short(entry.fields.get('agentType') or 'agent')}] " if entry.kind == RowType.AGENT else ""
    yield f"{by}{badge}{told} {_status(entry)}".rstrip()
    if entry.ends and is_call and text:
        yield from (f"{_STEP}{line}" for line in _cut(text))


def _status(entry: TranscriptEntry) -> str:
    """Return what an end came to, behind an arrow."""
    if not entry.ends or entry.kind not in (RowType.TOOL, RowType.AGENT, RowType.QUESTION):
        return ""
    return f"-> {short(entry.fields.get('status') or 'completed')}"


def _cut(text: str) -> Iterator[str]:
    lines = plain(text[:_MOST_CHARACTERS], keep="\n\t").rstrip("\n").split("\n")
    yield from lines[:_MOST_LINES]
    if len(lines) > _MOST_LINES or len(text) > _MOST_CHARACTERS:
        yield f"... ({len(text):,} characters)"
