"""At stake: at any width a table says first how things stand; names, titles and commands are what is cut."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from agentctl.domain.states import Status
from agentctl.domain.worker_row import BLANK
from agentctl.interfaces.commands.parts.tables import LiveWorkers, table, widths_of, workers
from agentctl.interfaces.commands.start.tasks import _HEADS, _KEPT, _cells

LONG = "a-name-that-is-far-longer-than-any-column"


def drawn(made: Any, width: int = 80) -> list[str]:
    """Return the lines of a table, each at most `width` cells long."""
    console = Console(width=width, highlight=False, color_system=None)
    with console.capture() as captured:
        console.print(made)
    lines = captured.get().splitlines()
    assert all(len(line) <= width for line in lines)
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
        line = drawn(workers([row(**keys, **more), row(status=Status.RUNNING)], 80))[2]
        assert words.rstrip("…") in line, line
        assert keys["status"] in line, line
        assert "a-" in line.split()[0], "a name keeps both of its ends"
        assert line.split()[0].endswith("n"), line


def test_five_vendors_can_be_told_apart_at_80_columns() -> None:
    rows = [row(status=Status.FAILED, reason="permission_denied", agent="general", driver=one) for one in VENDORS]
    for vendor, line in zip(VENDORS, drawn(workers(rows, 80))[2:], strict=True):
        assert f"general:{vendor}" in line


def test_that_a_persons_own_settings_count_is_shown_at_80_columns() -> None:
    one = row(agentInstance="a", status=Status.RUNNING, agent="general", driver="claude", permissions="own")
    (line,) = drawn(workers([one], 80))[2:]
    assert "general:claude (permissions own)" in line


def test_a_long_agent_loses_its_middle_and_not_its_driver() -> None:
    (line,) = drawn(workers([row(status=Status.RUNNING, agent=LONG, driver="codex")], 80))[2:]
    assert "mn:codex" in line, line


def test_the_chosen_task_its_state_and_its_failures_are_never_cut_at_80_columns() -> None:
    counts = dict.fromkeys(("queued", "running", "blocked", "completed", "cancelled"), 100)
    chosen: Any = {
        "taskId": LONG * 3, "state": "input-required", "title": LONG * 3, "level": 0, "current": True, "failed": 100,
        "stranded": 0, "held": None, "blockedBelow": 2, "awaitsChildren": True, **counts,
    }  # fmt: skip
    made = table(_HEADS, [_cells(chosen)], 80, wide="title", kept=_KEPT)
    line = drawn(made)[2]
    assert line.startswith("*   a-name"), line
    assert "blocked (a child asks)" in line
    assert "100 failed" in line
    coloured = Console(width=80, highlight=False, force_terminal=True, color_system="standard")
    with coloured.capture() as captured:
        coloured.print(made)
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
    assert drawn(workers([], 80))[0].startswith("instance")


@given(st.lists(st.tuples(st.text(max_size=60), st.booleans()), min_size=1, max_size=8), st.integers(20, 200))
def test_columns_fit_whatever_they_hold(columns: list[tuple[str, bool]], width: int) -> None:
    heads = [f"h{at}" for at in range(len(columns))]
    kept = [head for head, (_, is_kept) in zip(heads, columns, strict=True) if is_kept]
    found = widths_of([[head, text] for head, (text, _) in zip(heads, columns, strict=True)], width, "h0", kept)
    assert all(one >= 1 for one in found)
    assert sum(found) + 3 * (len(found) - 1) <= max(width, 4 * len(found))
