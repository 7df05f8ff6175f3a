"""At stake: what a program tells of its calls, and of the work of its sub-agents, is in the transcript, each once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from agentctl.domain.activity.row import Phase, Row, RowType, encode_row
from agentctl.domain.activity.rows import read_line
from agentctl.domain.activity.transcript import Transcript, TranscriptEntry
from agentctl.drivers.dialogue import Note
from agentctl.interfaces.words.activity import paragraph
from agentctl.interfaces.words.looks.transcript_lines import entry_lines
from tests.claude_lines import feed, recorded, started
from tests.claude_lines import rows as rows_in
from tests.unit.test_acp_recordings import ALL, Played
from tests.unit.test_codex_driver import HELD, held, rows_of

#: What the sub-agent of each recording is to do.
PROMPT = "Report back. SCENARIO:tool"
CLAUDE = [file.stem for file in sorted((Path(__file__).parent.parent / "recordings" / "claude").glob("*.jsonl"))]
#: A recording of the history of a session is not of its work.
ACP = [(program, name) for program, name in ALL if name not in {"load", "resume"}]


def entries(rows: Iterable[Row]) -> Iterator[TranscriptEntry]:
    transcript = Transcript()
    for number, row in enumerate(rows, 1):
        line = read_line(encode_row(row, "2026-01-01T10:00:00.000Z"), number)
        assert line is not None
        entry = transcript.take(line)
        if entry is not None:
            yield entry


def drawn(rows: Iterable[Row]) -> str:
    return "\n".join(line.text for entry in entries(rows) for line in entry_lines(entry, 10_000))


def written(rows: Iterable[Row]) -> str:
    return "".join(map(paragraph, entries(rows)))


def texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping | list):
        for key, inner in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from () if key == "status" else texts_in(inner)
    elif isinstance(value, str):
        yield from filter(None, map(str.strip, value.split("\n")))


def are_there(told: Iterable[Any], rows: list[Row], form: Callable[[Iterable[Row]], str]) -> None:
    shown = form(rows)
    missing = [text for value in told for text in texts_in(value) if text[:80] not in shown]
    assert not missing, (missing, shown)


@pytest.mark.parametrize("form", [drawn, written])
@pytest.mark.parametrize("name", CLAUDE)
def test_the_arguments_of_claude_code(name: str, form: Callable[[Iterable[Row]], str]) -> None:
    lines = recorded(name)
    blocks = [block for line in lines if line["type"] == "assistant" for block in line["message"]["content"]]
    told = [block["input"] for block in blocks if block["type"] == "tool_use"]
    are_there(told, rows_in(feed(started(), lines)), form)


@pytest.mark.parametrize("form", [drawn, written])
@pytest.mark.parametrize("case", HELD, ids=lambda case: case[0])
def test_the_arguments_of_codex(case: tuple[Any, ...], form: Callable[[Iterable[Row]], str]) -> None:
    name = f"app-server-{case[0]}"
    items = [row["msg"].get("params", {}).get("item", {}) for row in rows_of(name) if row["dir"] == "out"]
    told = [
        {key: item.get(key) for key in ("arguments", "changes", "prompt", "query", "text", "cwd")}
        for item in items
        if item.get("type") != "reasoning"
    ]
    are_there(told, held(name, *case[1:3]).rows, form)


@pytest.mark.parametrize("form", [drawn, written])
@pytest.mark.parametrize(("program", "name"), ACP)
def test_the_arguments_of_a_program_that_speaks_acp(
    program: str, name: str, form: Callable[[Iterable[Row]], str]
) -> None:
    played = Played(program, name)
    updates = [message["params"].get("update", {}) for message in played.heard if "update" in message.get("params", {})]
    told = [update.get("rawInput") for update in updates if update.get("sessionUpdate", "").startswith("tool_call")]
    are_there(told, [note.row for note in played.of(Note)], form)


@pytest.mark.parametrize(
    "rows",
    [
        rows_in(feed(started(), recorded("subagent"))),
        held("app-server-subagent", next(case[1] for case in HELD if case[0] == "subagent")).rows,
        *([note.row for note in Played(one, "subagent").of(Note)] for one in ("claude-agent-acp", "qwen", "opencode")),
    ],
    ids=["claude", "codex", "claude-agent-acp", "qwen", "opencode"],
)  # fmt: skip
def test_what_a_sub_agent_is_to_do_is_told_once_and_by_its_own_row(rows: list[Row]) -> None:
    (beginning,) = [row for row in rows if row.type == "agent" and row.phase == "start"]
    assert (beginning.detail or {}).get("prompt") == PROMPT
    # To Codex the name of a sub-agent is the first line of it.
    for form, times in ((drawn, 1), (written, 2 if beginning.name == PROMPT else 1)):
        shown = form(rows)
        assert shown.count(PROMPT) - shown.count(f"{PROMPT} ->") == times, shown


def test_a_call_of_which_more_is_told_later_begins_once_more() -> None:
    call = Row(RowType.TOOL, "c", Phase.START, status="running", name="Bash", detail={"title": "Terminal"})
    more = call._replace(phase=Phase.PROGRESS, detail={"command": "make"})
    end = more._replace(phase=Phase.END, status="completed", detail={"command": "make", "exitCode": 0}, text="ok")

    def shape(*rows: Row) -> list[tuple[bool, bool]]:
        return [(entry.begins, entry.ends) for entry in entries(rows)]

    assert shape(call, more, more, end, more) == [(True, False), (True, False), (False, True)]
    assert shape(more, more, end) == [(True, False), (False, True)]
    most = more._replace(detail={"command": "make", "cwd": "/etc"})
    assert shape(call._replace(detail=None), more, most, most, end) == [(True, False)] * 3 + [(False, True)]
    assert "cwd: /etc" in drawn([call._replace(detail=None), more, most, end._replace(detail=None)])
    assert shape(call._replace(detail=None), end) == [(True, False), (True, True)]
    assert shape(call, end, more) == [(True, False), (True, True)], "its title stood for them"
    assert shape(end, call) == [(True, True)]
    assert "$ make" in drawn([call._replace(detail=None), end])
