"""At stake: the prompt of a continued agent depends on whether its model had said anything before."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentctl.adapters.taskdir import WorkerDir
from agentctl.domain.activity.row import Phase, Row, RowType, encode_row
from agentctl.drivers.order import Order
from agentctl.operations.show.further_runs import has_spoken
from agentctl.operations.start.continuation import continued

#: All of these take long; the quick tests beside them cover the usual case.
pytestmark = pytest.mark.slow

AT = "2026-01-01T00:00:00Z"
ORDER = Order(driver="claude", program="claude", agent="general", prompt="do it", model="big", session="s1")
TOLD = Row(RowType.MESSAGE, "user-1", name="user", text="do it")
SILENT = [
    [],
    [TOLD],
    [TOLD, Row(RowType.NOTE, "n1", text="api retry 1")],
]
SPOKEN = [
    Row(RowType.MESSAGE, "m1", text="I begin"),
    Row(RowType.THOUGHT, "t1", text="hm"),
    Row(RowType.TOOL, "c1", Phase.START, name="Bash"),
    Row(RowType.USAGE, "u1", detail={"input": 1, "output": 1, "cached": 0}),
]


def agent_with(folder: Path, rows: list[Row], torn: bytes = b"") -> WorkerDir:
    """Return a worker's folder with these rows of activity."""
    worker = WorkerDir(str(folder))
    (folder / "activity.jsonl").write_bytes(b"".join(encode_row(row, AT) for row in rows) + torn)
    return worker


@pytest.mark.parametrize("rows", SILENT)
def test_one_that_never_spoke_is_told_everything_again_in_a_new_session(tmp_path: Path, rows: list[Row]) -> None:
    order = continued(agent_with(tmp_path, rows), ORDER, "s1", ["and hurry"])
    assert (order.prompt, order.resume, order.model) == ("do it\n\nand hurry", None, "big")
    assert order.session not in {None, "s1"}


@pytest.mark.parametrize("rows", SILENT)
def test_one_that_was_continued_and_never_spoke_keeps_the_session_before(tmp_path: Path, rows: list[Row]) -> None:
    before = ORDER._replace(session=None, resume="s0")
    order = continued(agent_with(tmp_path, rows), before, "s0")
    assert (order.prompt, order.session, order.resume) == ("do it", None, "s0")


@pytest.mark.parametrize("row", SPOKEN, ids=lambda row: row.type)
def test_one_that_has_spoken_goes_on_in_its_session(tmp_path: Path, row: Row) -> None:
    order = continued(agent_with(tmp_path, [TOLD, row]), ORDER, "s1", ["and hurry"])
    assert (order.prompt, order.session, order.resume) == ("and hurry", None, "s1")
    broken_off = continued(WorkerDir(str(tmp_path)), ORDER, "s1").prompt
    assert broken_off == "You were interrupted before you had finished. Go on from where you were."
    (tmp_path / "exit.json").write_text('{"status": "completed"}', encoding="utf-8")
    assert continued(WorkerDir(str(tmp_path)), ORDER, "s1").prompt == "Go on from where you were."


def test_a_torn_line_and_a_missing_file_are_no_word(tmp_path: Path) -> None:
    assert not has_spoken(WorkerDir(str(tmp_path / "nobody")))
    assert not has_spoken(agent_with(tmp_path, [TOLD], torn=encode_row(SPOKEN[0], AT)[:-5]))
