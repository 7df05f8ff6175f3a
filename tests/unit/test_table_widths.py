"""At stake: at any width a table says what it is about, how that stands, and why it failed; all else gives way."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from agentctl.domain.states import Status
from agentctl.domain.worker_row import BLANK
from agentctl.interfaces.commands.model.command_model import Table
from agentctl.interfaces.commands.parts.tables import LiveWorkers, layout_of, lines_of_table, workers
from agentctl.interfaces.commands.start.tasks import _HEADS, _KEPT, _cells

LONG = "a-name-that-is-far-longer-than-any-column"


def drawn(made: Table, width: int = 80) -> list[str]:
    """Return the lines of a table, each at most `width` cells long."""
    console = Console(width=width, highlight=False, color_system=None)
    with console.capture() as captured:
        console.print(lines_of_table(made, width).drawn())
    lines = captured.get().splitlines()
    assert all(cell_len(line) <= width for line in lines)
    return lines


def row(**keys: Any) -> Any:
    return {**BLANK, "agentInstance": LONG, "command": "a command that goes on and on " * 9, **keys}


VENDORS = ("claude", "codex", "opencode", "qwen", "gemini")


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"status": Status.FAILED, "reason": "exit_code", "exitCode": 3}, "exit_code 3"),
        ({"status": Status.FAILED, "reason": "signal", "signal": "SIGKILL"}, "signal SIGKILL"),
        ({"status": Status.FAILED, "reason": "exit_code", "exitCode": 3, "agent": "general", "driver": "opencode"},
         "general:opencode"),
        ({"status": Status.QUEUED, "after": ["a", "b"]}, "after a, b"),
        ({"status": Status.QUEUED, "after": [LONG, "a", "b", "c", "d"]}, "after a-name-t…"),
    ],
    ids=repr,
)  # fmt: skip
def test_the_reason_the_driver_and_what_a_worker_waits_for_are_never_cut_at_80_columns(
    keys: dict[str, Any], words: str
) -> None:
    for more in ({}, {"progress": {"at": None, "percent": 40.0, "text": "reading all of the files"}}):
        line = drawn(workers([row(**keys, **more), row(status=Status.RUNNING)]))[2]
        assert words.rstrip("…") in line, line
        assert keys["status"] in line, line
        assert "a-" in line.split()[0], "a name keeps both of its ends"
        assert line.split()[0].endswith("n"), line


def test_five_vendors_can_be_told_apart_at_80_columns() -> None:
    rows = [row(status=Status.FAILED, reason="permission_denied", agent="general", driver=one) for one in VENDORS]
    for vendor, line in zip(VENDORS, drawn(workers(rows))[2:], strict=True):
        assert f"general:{vendor}" in line


def test_that_a_persons_own_settings_count_is_shown_at_80_columns() -> None:
    one = row(agentInstance="a", status=Status.RUNNING, agent="general", driver="claude", permissions="own")
    (line,) = drawn(workers([one]))[2:]
    assert "general:claude (permissions own)" in line


def test_a_long_agent_loses_its_middle_and_not_its_driver() -> None:
    (line,) = drawn(workers([row(status=Status.RUNNING, agent=LONG, driver="codex")]))[2:]
    assert "mn:codex" in line, line


def test_the_chosen_task_its_state_and_its_failures_are_never_cut_at_80_columns() -> None:
    counts = dict.fromkeys(("queued", "running", "blocked", "completed", "cancelled"), 100)
    chosen: Any = {
        "taskId": LONG * 3, "state": "input-required", "title": LONG * 3, "level": 0, "current": True, "failed": 100,
        "stranded": 0, "held": None, "blockedBelow": 2, "awaitsChildren": True, **counts,
    }  # fmt: skip
    made = Table(_HEADS, [_cells(chosen)], wide="title", kept=_KEPT)
    line = drawn(made)[2]
    assert line.startswith("*   a-name"), line
    assert "blocked (a child asks)" in line
    assert "100 failed" in line
    coloured = Console(width=80, highlight=False, force_terminal=True, color_system="standard")
    with coloured.capture() as captured:
        coloured.print(lines_of_table(made, 80).drawn())
    assert "\x1b[31m100 failed" in captured.get()


def test_the_foot_of_a_wait_counts_the_failures_in_red() -> None:
    live = LiveWorkers("", "")
    live._console = Console(width=80, height=24, force_terminal=True, color_system="standard", file=None)
    with live._console.capture() as captured:
        live._live.console = live._console
        live.show([row(status=Status.FAILED, reason="lost"), row(status=Status.CANCELLED), row(status=Status.RUNNING)])
        live._console.print(live._live.renderable)
    foot = captured.get()
    assert "2 of 3 ended" in foot
    assert "31m, 1 failed" in foot, foot


def test_a_table_may_have_no_rows() -> None:
    assert drawn(workers([]))[0].startswith("instance")


WIDTHS = [40, 60, 80, 100, 160]
NAME = "migrate-database-schema-and-check"
REASONS = [
    'psycopg2.OperationalError: connection to server at "db.internal" failed: FATAL: password',
    "錯誤 無法連線到資料庫伺服器 密碼驗證失敗 使用者",
    "💥 build failed: 🚀 deploy step 3 of 7 returned 502",
    "x" * 80,
]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("reason", REASONS)
def test_who_has_failed_and_why_is_whole_at_any_width(reason: str, width: int) -> None:
    failed = row(agentInstance=NAME, status=Status.FAILED, reason="exit_code", exitCode=3, lastLine=reason)
    others = [row(agentInstance=f"{NAME}-{n}", status=Status.RUNNING, agent="plan", driver="codex") for n in range(2)]
    text = "\n".join(drawn(workers([failed, *others]), width))
    row_of, *below = text.splitlines()[2:6]
    said = "".join("".join(line.split()) for line in (row_of, *below))
    assert "".join(reason.split()) in said, text
    name = row_of.split()[0]
    assert name == NAME or len(name) >= min(28, width - 12), text
    assert (name[:9], name[-8:]) == (NAME[:9], NAME[-8:])
    assert row_of.split()[1] == "failed"
    assert "exit_code 3" in text


@pytest.mark.parametrize("width", WIDTHS)
def test_one_that_wrote_nothing_says_its_reason_and_one_in_the_queue_what_it_waits_for(width: int) -> None:
    rows = [
        row(agentInstance=NAME, status=Status.FAILED, reason="exit_code", exitCode=9),
        row(agentInstance=NAME, status=Status.QUEUED, after=["build"]),
    ]
    text = "\n".join(drawn(workers(rows), width))
    assert "exit_code 9" in text
    assert "after build" in text


def test_what_fits_stands_in_its_column() -> None:
    short = row(agentInstance="a", command="make", status=Status.FAILED, reason="lost", lastLine="no space")
    assert [line.split() for line in drawn(workers([short]))[2:]] == [
        ["a", "failed", "lost", "-", "no", "space", "make"]
    ]


@pytest.mark.parametrize("width", WIDTHS)
def test_a_number_is_whole_or_not_there(width: int) -> None:
    heads = ("name", "uncommitted", "files", "path")
    gives_way = ("path", "files", "uncommitted")
    made = Table(heads, [(NAME, "1234567", "7654321", "/a/b" * 20)], "path", (), gives_way, right=heads[1:3])
    numbers = {word for word in drawn(made, width)[2].split() if word.isdigit()}
    assert numbers <= {"1234567", "7654321"}
    assert len(numbers) == (2 if width >= 60 else 0)


def test_a_long_message_has_three_lines_and_says_that_it_is_cut() -> None:
    failed = row(status=Status.FAILED, reason="lost", message="word " * 300)
    *below, last = drawn(workers([failed]), 60)[3:]
    assert len(below) == 2
    assert last.endswith("…")


def test_a_wait_draws_no_more_lines_than_the_terminal_has() -> None:
    live = LiveWorkers("", "")
    live._console = Console(width=60, height=12, force_terminal=True, color_system=None, file=None)
    rows = [row(agentInstance=f"f{n}", status=Status.FAILED, reason="lost", lastLine="why " * 30) for n in range(9)]
    with live._console.capture() as captured:
        live._live.console = live._console
        live.show([*rows, row(agentInstance="runs", status=Status.RUNNING)])
    lines = captured.get().splitlines()
    assert len(lines) < 12
    assert any(line.startswith("runs") for line in lines)


@given(st.lists(st.tuples(st.text(max_size=60), st.booleans()), min_size=1, max_size=8), st.integers(20, 200))
def test_columns_fit_whatever_they_hold(columns: list[tuple[str, bool]], width: int) -> None:
    heads = [f"h{at}" for at in range(len(columns))]
    kept = [head for head, (_, is_kept) in zip(heads, columns, strict=True) if is_kept]
    gives_way = heads[1:3] if len(heads) > 3 else ()
    made = Table(heads, [[text for text, _ in columns]], "h0", kept, gives_way)
    found = layout_of({head: [text] for head, (text, _) in zip(heads, columns, strict=True)}, width, made).widths
    assert all(one >= 1 for one in found.values())
    assert sum(found.values()) + 3 * (len(found) - 1) <= max(width, 4 * len(found))
    assert all(cell_len(line) <= max(width, 4 * len(found)) for line in drawn(made, width))
