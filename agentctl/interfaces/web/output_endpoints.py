"""The endpoints for what a worker printed: its text, the rows that a terminal would show, its bytes, and a search."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Mapping, Sequence
from functools import partial

from agentctl.adapters.clock import iso_of
from agentctl.adapters.taskdir import Root, WorkerDir
from agentctl.domain.activity.row import RowType
from agentctl.domain.text.terminal_output import TerminalRow, rows_of_text
from agentctl.interfaces.web.endpoint import NAME, PATH, CheckedRequest, Endpoint, Input, JsonAnswer, RawAnswer
from agentctl.interfaces.web.paging import OFFSET, PAGED, behind_page
from agentctl.interfaces.web.raw_content import MOST_RAW, PLAIN, RawContent
from agentctl.lean import TYPE_CHECKING, Any
from agentctl.operations.output.finding import find_in_output
from agentctl.operations.output.row_pages import KeptTerminals, rows_of_output
from agentctl.operations.show.text_pages import output_between, output_in_pieces, page_of_output
from agentctl.operations.where.locating import find_task, find_worker

if TYPE_CHECKING:
    from agentctl.domain.documents.server_answers import OutputHits, OutputPage, OutputRow, OutputStream

_TASK = Input("task", NAME, "The task.", PATH, is_required=True)
_INSTANCE = Input("instance", NAME, "The worker.", PATH, is_required=True)
_NAMES = ("stdout", "stderr")
_STREAM = {"type": "string", "enum": list(_NAMES)}
_WHICH = Input("stream", _STREAM, "Which one; stdout.")
_LOGS = "/tasks/{task}/workers/{instance}/logs"
_LONGEST_PAGE = 1 << 20
#: So many hits are in an answer, unless others are asked for; and so long is looked for them.
_HITS, _MOST_HITS, _LOOK_S = 1000, 10_000, 0.8
#: What a text has that is more for a terminal than letters, tabs and ends of lines.
_FOR_TERMINALS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]|\r(?!\n)")


class OutputEndpoints:
    """Makes them for the tasks of a root."""

    def __init__(self, root: Root, *, force: bool) -> None:
        self._root, self._force = root, force
        self._kept = KeptTerminals()

    def all(self) -> list[Endpoint]:
        """Return them."""
        return [self._pages(), self._search(), self._raw()]

    def _worker(self, call: CheckedRequest) -> WorkerDir:
        task = find_task(call.values["task"], root=str(self._root.path), force=self._force)
        return find_worker(task, call.values["instance"])

    def _pages(self) -> Endpoint:
        def carry_out(call: CheckedRequest) -> JsonAnswer:
            worker, given = self._worker(call), call.values
            ended, stream = worker.has_ended, given.get("stream", "stdout")
            begin, before, limit = given.get("from"), behind_page(call), given.get("limit", 1 << 16)
            rows: list[OutputRow] = []
            text, how = "", given.get("rows")
            if how is None:
                page = page_of_output(worker, stream, begin=begin, before=before, limit=limit)
                text, place = page.data.decode("utf-8", "backslashreplace"), page[1:]
            else:
                found_rows = rows_of_output(
                    worker, stream, begin=begin, before=before, limit=limit, kept=self._kept, is_source=how == "source"
                )
                rows, place = list(map(_row, found_rows.rows)), found_rows[1:]
            found: OutputPage = {
                "stream": stream, "text": text, "rows": rows, "begin": place[0], "end": place[1], "size": place[2],
                "ended": ended, "streams": [_stream(worker, name) for name in _NAMES],
            }  # fmt: skip
            return JsonAnswer(found)

        return Endpoint(
            "GET", _LOGS, "logs", "Return what a worker printed, in pages.", carry_out,
            (_TASK, _INSTANCE, _WHICH, *PAGED,
             Input("limit", {"type": "integer", "minimum": 4, "maximum": _LONGEST_PAGE}, "How many bytes; 65536."),
             Input("rows", {"type": "string", "enum": ["shown", "source"]},
                   "Return rows in place of the text: `shown`, as a terminal shows them, or `source`, with each control"
                   " character spelled out.")),
            "Bytes that are not UTF-8 are `\\xNN` in the text. Rows begin at `begin`, which may be before the place"
            " that was asked for: what came there has changed them.", "OutputPage",
        )  # fmt: skip

    def _search(self) -> Endpoint:
        def carry_out(call: CheckedRequest) -> JsonAnswer:
            given = call.values
            result = find_in_output(
                self._worker(call), given.get("stream", "stdout"), given["words"], begin=given.get("from", 0),
                line=given.get("line", 1), most=given.get("limit", _HITS), limit_s=_LOOK_S,
            )  # fmt: skip
            found: OutputHits = {
                "hits": [{"at": hit.at, "line": hit.line} for hit in result.hits], "looked": result.looked,
                "line": result.line, "size": result.size, "more": result.looked < result.size,
            }  # fmt: skip
            return JsonAnswer(found)

        return Endpoint(
            "GET", f"{_LOGS}/search", "logs.search", "Find words in what a worker printed.", carry_out,
            (_TASK, _INSTANCE, _WHICH,
             Input("words", {"type": "string", "minLength": 1, "maxLength": 1000},
                   "A text as it is shown in one row, in small letters or capitals.", is_required=True),
             Input("from", OFFSET, "Where to begin: `looked` of the answer before; 0."),
             Input("line", {"type": "integer", "minimum": 1, "maximum": 1 << 50}, "`line` of the answer before; 1."),
             Input("limit", {"type": "integer", "minimum": 1, "maximum": _MOST_HITS}, f"How many at most; {_HITS}.")),
            "It answers within about a second: `looked` says how far it got, and `more` whether there is any output"
            " behind that.", "OutputHits",
        )  # fmt: skip

    def _raw(self) -> Endpoint:
        def carry_out(call: CheckedRequest) -> RawAnswer:
            worker, stream = self._worker(call), call.values["stream"]
            page = page_of_output(worker, stream, begin=0, before=None, limit=0)
            content = RawContent(
                page.size, partial(output_between, worker, stream), lambda: output_in_pieces(worker, stream, page.size)
            )
            return content.answer(call.headers, f"{worker.instance}.{stream}", PLAIN)

        return Endpoint(
            "GET", f"{_LOGS}/{{stream}}", "logs.raw", "Return the bytes that a worker printed.", carry_out,
            (_TASK, _INSTANCE, Input("stream", _STREAM, "Which one.", PATH, is_required=True)),
            f"All of them, or some with `Range: bytes=N-M`, at most {MOST_RAW}.", None, "text/plain",
        )  # fmt: skip


def shown_in(row: Mapping[str, Any]) -> dict[str, list[OutputRow]]:
    """Return what a call of an agent returned as a terminal shows it; nothing where that is its text, or far more."""
    text = row.get("text")
    if row.get("type") != RowType.TOOL or not isinstance(text, str) or len(text) > _LONGEST_PAGE:
        return {}
    if _FOR_TERMINALS.search(text) is None:
        return {}
    rows = rows_of_text(text)
    # Of rows that are wide and blank, an answer would have tens of megabytes.
    return {"shown": list(map(_row, rows))} if _size_of(rows) <= _LONGEST_PAGE else {}


def _size_of(rows: Sequence[TerminalRow]) -> int:
    return sum(len(span.text) for row in rows for span in row.spans)


def _row(row: TerminalRow) -> OutputRow:
    found: OutputRow = {"at": row.at, "spans": [list(span) if span.style else [span.text] for span in row.spans]}
    return {**found, "continued": True} if row.is_continued else found


def _stream(worker: WorkerDir, name: str) -> OutputStream:
    """Return how much there is of a stream, and when something was written there last."""
    size, at = 0, None
    with contextlib.suppress(FileNotFoundError):
        found = os.stat(worker.stdout if name == "stdout" else worker.stderr, follow_symlinks=False)
        size, at = found.st_size, found.st_mtime
    return {"stream": name, "size": size, "writtenAt": iso_of(at) if size and at is not None else None}
