"""Formats the rows of an activity: one line each in a tree, paragraphs in a transcript."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from itertools import islice
from typing import Any

from agentctl.domain.activity.row import RowType
from agentctl.domain.activity.transcript import TranscriptEntry
from agentctl.domain.activity.view import INTERRUPTED, RUNNING, Node
from agentctl.domain.agent.telling_argument import telling_of
from agentctl.domain.markdown.markdown_words import words_of_markdown
from agentctl.domain.text.nesting import TOO_DEEP
from agentctl.domain.text.plaintext import beginning, plain, shortened, whole
from agentctl.domain.worker.ends import end_in_words
from agentctl.interfaces.words.value_words import NOTHING, duration, short_number, shown_json
from agentctl.interfaces.words.worker import agent_with_policy, elapsed, full_standing, progress_words, said_words
from agentctl.operations.show.tree_view import WorkerTree

_LONGEST = 100
#: So much of what an agent says is looked at for a line, and is in it at most: addresses of links are not.
_SAID_LOOKED_AT, _MOST_WORDS = 2000, 400
#: What agents write as Markdown; of a sub-agent, what it has answered.
_SAID = (RowType.MESSAGE, RowType.THOUGHT, RowType.AGENT)
#: The name of a message that a person has sent: what they wrote stays as it is.
_USER = "user"
_STEP = "  "
_DEEPEST_INDENT, _DEEPEST_PARAGRAPH = 30, 20
#: How much of a tool's result is shown; `activity --json` has all of it.
RETURNED_LINES, RETURNED_CHARACTERS = 20, 4000
#: So many arguments of a call are shown, and of each as much as of a result: a long one does not hide the others.
_MOST_ARGUMENTS = 100
#: The types of rows that are shown in full, and the prefix of each.
_MARKS = {RowType.MESSAGE: "", RowType.THOUGHT: "(thinks) ", RowType.QUESTION: "? ", RowType.NOTE: "note: "}


def tree_lines(tree: WorkerTree) -> Iterator[str]:
    """Yield the lines of a worker's tree."""
    indent = _STEP * tree.depth
    yield indent + worker_line(tree)
    if tree.bad_lines:
        yield f"{indent}{_STEP}({_count(tree.bad_lines, 'line')} of its activity cannot be read)"
    if tree.unknown_types:
        types = ", ".join(f"{plain(kind)} {number}" for kind, number in sorted(tree.unknown_types.items()))
        yield f"{indent}{_STEP}(rows of unknown types: {types})"
    for node in tree.nodes:
        deep = indent + _STEP * min(node.depth, _DEEPEST_INDENT)
        if node.depth:
            yield deep + node_line(node, is_expanded=tree.is_expanded)
        if tree.is_expanded and node.earlier:
            more = _count(node.earlier, "earlier item")
            yield f"{deep}{_STEP}... {more}: agentctl activity {plain(tree.row['agentInstance'])}"


def worker_line(tree: WorkerTree) -> str:
    """Return the line of a worker: name, kind, status, time, what it says, what it did or runs."""
    row, own = tree.row, tree.nodes[0]
    status = end_in_words(row["status"], row["reason"], row["exitCode"], row["signal"])
    unusual = None if row["reason"] else full_standing(row)
    agent = agent_with_policy(row)
    parts = [
        plain(row["agentInstance"]),
        None if agent == "command" else f"[{plain(agent)}]",
        status,
        unusual and plain(unusual),
        _known(duration(elapsed(row))),
        (said := said_words(row)) and plain(" ".join(said.split())),
        *_totals(own),
        short_line(row["command"]) if agent == "command" else None,
    ]
    return "  ".join(part for part in parts if part)


def node_line(node: Node, *, is_expanded: bool) -> str:
    """Return the line of an item; a group is marked `-` if its items follow, else `+`."""
    mark = ("- " if is_expanded else "+ ") if node.is_group else ""
    return mark + "  ".join(node_parts(node))


def node_parts(node: Node) -> list[str]:
    """Return what is said of an item: what it is, its status and time, the totals of a group."""
    badge = f"[{short_line(node.agent_type or 'agent')}]" if node.type == RowType.AGENT else None
    parts = [
        badge,
        label(node.type, node.name, node.text, node.detail, node.percent),
        None if node.status is None else plain(node.status),
        _known(duration(_seconds(node))) if node.status else None,
        *(_totals(node) if node.is_group else ()),
        f"(of {short_line(node.parent)}, which is not known)" if node.is_orphan and node.parent else None,
    ]
    return [part for part in parts if part]


def label(
    kind: str, name: str | None, text: str | None, detail: Mapping[str, Any] | None, percent: float | None
) -> str:
    """Return in one line what an item is."""
    words = words_in_row(kind, name, text)
    said = short_line(text) if words is None else whole(short_line(words))
    match kind:
        case RowType.TOOL:
            return " ".join(part for part in (short_line(name or "tool"), short_line(telling(detail))) if part)
        case RowType.AGENT:
            return short_line(name) if name else said
        case RowType.PROGRESS:
            return short_line(progress_words({"percent": percent, "text": text}) or kind)
        case RowType.MESSAGE:
            return f"{short_line(name)}: {said}" if name else said
        case RowType.THOUGHT if said and not name:
            return f"{kind}: {said}"
        case _:
            return (
                f"{short_line(kind)}: {short_line(' '.join(part for part in (name, text) if part) or telling(detail))}"
            )


def row_label(row: Mapping[str, Any]) -> str:
    """Return in one line what a row of an activity is about."""
    detail, percent = row.get("detail"), row.get("percent")
    return label(
        str(row.get("type")),
        string(row.get("name")),
        string(row.get("text")),
        detail if isinstance(detail, dict) else None,
        percent if isinstance(percent, int | float) else None,
    )


def string(value: object) -> str | None:
    """Return a text, or None for anything else: anyone may have written the row."""
    return value if isinstance(value, str) else None


def telling(detail: Mapping[str, Any] | None) -> str:
    """Return the argument that says most about a call; else all of them."""
    found = telling_of(detail or {})
    return found[1] if found is not None else shown_json(detail) if detail else ""


def short_line(text: object) -> str:
    """Return one line of a text, cut and safe to show."""
    return shortened(plain(" ".join(str(text or "").split())), _LONGEST)


def one_line(text: str) -> str:
    """Return the beginning of a text as one line that is safe to show."""
    return whole(short_line(text[:400]))


def said_line(text: str) -> str:
    """Return the beginning of what an agent says as one line that is safe to show: in words, and not as Markdown.

    >>> said_line("## What I found: **three** of `x`")
    'What I found: three of x'
    """
    return whole(short_line(words_at_beginning(text)))


def words_in_row(kind: str, name: str | None, text: str | None) -> str | None:
    """Return the beginning of what an agent says in a row, in words; None of what no agent says."""
    is_said = kind in _SAID and text and not (kind == RowType.MESSAGE and name == _USER)
    return words_at_beginning(text) if is_said and text else None


def words_at_beginning(text: str) -> str:
    """Return in one line, of at most some hundred characters, how a text in Markdown begins; not yet safe to show.

    Where that is nothing but marks, it is as it was written.
    """
    return _words(text[:_SAID_LOOKED_AT])


@lru_cache(maxsize=500)  # A list that is on the screen is drawn again and again.
def _words(text: str) -> str:
    return (words_of_markdown(text) or " ".join(text.split()))[:_MOST_WORDS]


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _known(text: str) -> str | None:
    return None if text == NOTHING else text


def _totals(node: Node) -> Iterator[str]:
    if node.calls:
        yield _count(node.calls, "call")
    tokens = node.tokens["input"] + node.tokens["output"] if node.tokens else 0
    if tokens:
        yield f"{short_number(tokens)} tokens"


def _seconds(node: Node) -> float | None:
    """Return how long an item took, or has been running."""
    end = node.ended_at or (node.last_at if node.status == INTERRUPTED else None)
    if end is None and node.status != RUNNING:
        return None
    try:
        began = datetime.fromisoformat(node.started_at or "")
        until = datetime.now(UTC) if end is None else datetime.fromisoformat(end)
        return max(0.0, (until - began).total_seconds())
    except (TypeError, ValueError):
        return None


# -- transcripts ---------------------------------------------------------------------------------------------------


def paragraph(entry: TranscriptEntry) -> str:
    """Return an entry as text that is safe to show, each line ended by a newline."""
    before = entry_indent(entry)
    first, *rest = _paragraph_lines(entry)
    lines = [f"{before}{first}", *(f"{'':{len(before)}}{line}" for line in rest)]
    return "".join(f"{line.rstrip()}\n" for line in lines)


def entry_indent(entry: TranscriptEntry) -> str:
    """Return what stands before the first line of an entry: its time, and how deep it is."""
    time = entry.at[11:19] if len(entry.at) > 19 else "--:--:--"
    return f"{plain(time)}  {_STEP * min(entry.depth, _DEEPEST_PARAGRAPH)}"


def said_by(entry: TranscriptEntry) -> str:
    """Return which sub-agent said it; empty for the worker itself."""
    return f"[{short_line(entry.agent_type or 'agent')}] " if entry.depth else ""


def _paragraph_lines(entry: TranscriptEntry) -> Iterator[str]:
    by = said_by(entry)
    if entry.kind in _MARKS:
        yield from _speech_lines(entry, by + _MARKS[RowType(entry.kind)])
    else:
        yield from _call_lines(entry, by)


def _speech_lines(entry: TranscriptEntry, mark: str) -> Iterator[str]:
    """Yield what was said or asked, in full."""
    name, text = string(entry.fields.get("name")), string(entry.fields.get("text")) or ""
    said = ": ".join(filter(None, (name and short_line(name), text)))
    line = f"{mark}{said} {_status(entry)}"
    yield from plain(line.rstrip(), keep="\n\t").split("\n")


def _call_lines(entry: TranscriptEntry, by: str) -> Iterator[str]:
    """Yield what was called, as it was written, and the beginning of its result."""
    first, *rest = written_call(entry)
    yield f"{by}{first}"
    yield from rest
    text = string(entry.fields.get("text"))
    if entry.ends and entry.kind in (RowType.TOOL, RowType.AGENT) and text:
        yield from (f"{_STEP}{line}" for line in _cut(text))


def written_call(entry: TranscriptEntry) -> list[str]:
    """Return what was called, with its arguments, and how that ended, without what it returned."""
    detail = entry.fields.get("detail")
    if not entry.begins or entry.kind not in (RowType.TOOL, RowType.AGENT) or not isinstance(detail, dict):
        return [call_line(entry)]
    if entry.kind == RowType.AGENT:
        return [call_line(entry), *(f"{_STEP}{line}" for line in argument_lines(detail))]
    status = _status(entry)
    return called_lines(string(entry.fields.get("name")), detail, f" {status}" if status else "")


def call_line(entry: TranscriptEntry) -> str:
    """Return what was called in one line, and how that ended, without what it returned."""
    is_call = entry.kind in (RowType.TOOL, RowType.AGENT)
    shown = entry.fields if entry.begins else {**entry.fields, "detail": None}
    call = row_label({**shown, "type": entry.kind, **({"text": None} if is_call else {})})
    badge = f"[{short_line(entry.fields.get('agentType') or 'agent')}] " if entry.kind == RowType.AGENT else ""
    return f"{badge}{call} {_status(entry)}".rstrip()


def called_lines(name: str | None, arguments: Mapping[str, Any], outcome: str = "") -> list[str]:
    r"""Return a call as it was written: its tool and the argument that says most, then all others.

    Args:
        outcome: What stands behind the first line.

    >>> called_lines("Grep", {"pattern": "foo", "path": "src"})
    ['Grep src  pattern: foo']
    >>> called_lines("Bash", {"command": "cat\nls", "timeout": 5}, " -> failed")
    ['Bash -> failed', '  command:', '    cat', '    ls', '  timeout: 5']
    """
    head, found = short_line(name or "tool"), telling_of(arguments)
    if found is not None and arguments[found[0]] == short_line(found[1]):
        head = f"{head} {found[1]}"
        arguments = {key: value for key, value in arguments.items() if key != found[0]}
    lines = argument_lines(arguments)
    is_clear = len(arguments) > 1 or _STEP not in "".join(lines)
    if len(lines) == 1 and is_clear and len(head) + len(lines[0]) <= _LONGEST:
        return [f"{head}{_STEP}{lines[0]}{outcome}"]
    return [f"{head}{outcome}", *(f"{_STEP}{line}" for line in lines)]


def argument_lines(arguments: Mapping[str, Any]) -> list[str]:
    r"""Return arguments as lines that are safe to show, but for tabs; of a long one the beginning.

    >>> argument_lines({"timeout": 5, "env": {"A": "b"}}), argument_lines({"content": "a\nb"})
    (['timeout: 5  env: {"A":"b"}'], ['content:', '  a', '  b'])
    """
    shown = islice(arguments.items(), _MOST_ARGUMENTS)
    lines = [line for key, value in shown for line in _argument(key, value)]
    in_one = _STEP.join(lines)
    # What has a gap itself could look like two arguments.
    if len(lines) == len(arguments) and len(in_one) <= _LONGEST and in_one.count(_STEP) < len(lines):
        return [in_one]
    more = len(arguments) - _MOST_ARGUMENTS
    return [*lines, f"… {more:,} more arguments"] if more > 0 else lines


def _argument(key: str, value: object) -> Iterator[str]:
    name, text = plain(key), plain(beginning(_text_of(value), RETURNED_CHARACTERS), keep="\n\t")
    if "\n" not in text:
        yield f"{name}: {text}"
        return
    yield f"{name}:"
    lines = text.removesuffix("\n").split("\n")
    yield from (f"{_STEP}{line}" for line in lines[:RETURNED_LINES])
    if len(lines) > RETURNED_LINES:
        yield f"{_STEP}… {len(lines) - RETURNED_LINES:,} more lines"


def _text_of(value: object) -> str:
    try:
        return value if isinstance(value, str) and value else shown_json(value)
    except RecursionError:
        return TOO_DEEP


def _status(entry: TranscriptEntry) -> str:
    """Return the outcome of an end, after an arrow."""
    if not entry.ends or entry.kind not in (RowType.TOOL, RowType.AGENT, RowType.QUESTION):
        return ""
    status = entry.fields.get("status") or "completed"
    if status == "answered" and entry.fields.get("name") and not entry.fields.get("text"):
        status = "allowed"  # A permission that was not denied; with words it would have a text.
    return f"-> {short_line(status)}"


def _cut(text: str) -> Iterator[str]:
    lines = plain(text[:RETURNED_CHARACTERS], keep="\n\t").rstrip("\n").split("\n")
    yield from lines[:RETURNED_LINES]
    if len(lines) > RETURNED_LINES or len(text) > RETURNED_CHARACTERS:
        yield not_all(text)


def not_all(text: str) -> str:
    """Return what stands behind the beginning of what a call returned."""
    return f"... ({len(text):,} characters)"
