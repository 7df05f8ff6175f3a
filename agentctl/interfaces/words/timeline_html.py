"""A timeline as one page of HTML: the picture, and its figures as a table that can be read aloud and copied.

It has no script and loads nothing; its policy forbids both, so text that a browser took for markup could do nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from agentctl.interfaces.words.timeline import BECAUSE, end_of, local, money, name_of, summary, time_of, tokens
from agentctl.interfaces.words.timeline_svg import escaped, shown_rows, svg_of
from agentctl.interfaces.words.value_words import duration
from agentctl.operations.show.timeline import Timeline, TimelineRow

_LONGEST_COMMAND = 120
#: How many stretches of the critical path are listed.
_MOST_STRETCHES = 500
_STYLE = (
    "body{margin:0;padding:24px;background:#f3f5f7;color:#1f2328;"
    "font:14px/1.5 ui-sans-serif,system-ui,-apple-system,'Segoe UI',Roboto,sans-serif}"
    "main{max-width:1200px;margin:auto}svg{width:100%;height:auto;display:block}"
    "details{margin-top:20px}summary{cursor:pointer;font-weight:600}"
    "table{border-collapse:collapse;margin-top:10px;width:100%}"
    "th,td{text-align:left;padding:3px 12px 3px 0;border-bottom:1px solid #d5dbe1;vertical-align:top}"
    "td{font:12px/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;overflow-wrap:anywhere}"
    ".r{text-align:right;font-variant-numeric:tabular-nums}"
    "@media(prefers-color-scheme:dark){body{background:#010409;color:#e6edf3}th,td{border-color:#30363d}}"
)


def html_of(timeline: Timeline) -> str:
    """Return the page."""
    return "\n".join(_lines(timeline)) + "\n"


def _lines(timeline: Timeline) -> Iterator[str]:
    title = escaped(timeline.title or timeline.task_id)
    yield '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">'
    yield (
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
        "base-uri 'none'; form-action 'none'\">"
    )
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>Timeline of {title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>"
    yield svg_of(timeline).rstrip("\n")
    yield from _workers(timeline)
    yield from _path(timeline)
    yield f"<p>{escaped(summary(timeline))}</p>\n</main>\n</body>\n</html>"


def _workers(timeline: Timeline) -> Iterator[str]:
    rows, left_out = shown_rows(timeline)
    heads = ("worker", "status", "queued", "started", "ended", "attempts", "time", "tokens", "cost", "what it runs")
    yield f"<details>\n<summary>{len(timeline.rows):,} workers</summary>\n<table>"
    yield _row(heads, "th")
    for row in rows:
        yield _row(_cells(row, timeline), "td")
    yield "</table>"
    if left_out:
        yield f"<p>{left_out:,} more workers are left out: agentctl timeline --json has all of them</p>"
    yield "</details>"


def _cells(row: TimelineRow, timeline: Timeline) -> list[str]:
    bar = row.bar
    times = (bar.began, bar.started, None if bar.is_open else bar.until)
    stamps = ["-" if at is None else local(at, "%Y-%m-%d %H:%M:%S") for at in times]
    what = (bar.command if bar.driver is None else f"{bar.agent}: {bar.command}")[:_LONGEST_COMMAND]
    figures = [str(bar.attempts), time_of(row), tokens(row.spent), money(row.spent)]
    return [name_of(row, timeline), end_of(row), *stamps, *figures, what]


def _path(timeline: Timeline) -> Iterator[str]:
    if not timeline.path:
        return
    names = {row.bar.id: name_of(row, timeline) for row in timeline.rows}
    yield "<details>\n<summary>The critical path</summary>\n<table>"
    yield _row(("worker", "from", "for", "because"), "th")
    for one in timeline.path[-_MOST_STRETCHES:]:
        began = local(one.began, "%Y-%m-%d %H:%M:%S")
        yield _row((names[one.bar], began, duration(one.until - one.began), BECAUSE[one.because]), "td")
    yield "</table>\n</details>"


def _row(cells: list[str] | tuple[str, ...], kind: str) -> str:
    return f"<tr>{''.join(f'<{kind}>{escaped(cell)}</{kind}>' for cell in cells)}</tr>"
