"""At stake: a large activity is read to its end in seconds, and nothing of it is missing in the end."""

from __future__ import annotations

from math import inf
from pathlib import Path

import pytest

from agentctl.adapters.clock import now_iso
from agentctl.adapters.taskdir import Root, WorkerDir
from agentctl.domain.activity.row import Phase, Row, RowType, encode_row
from agentctl.domain.activity.view import view_of
from agentctl.operations.show import activity_nodes
from agentctl.operations.show.activity_nodes import KEPT, ActivityNodes


def worker_with(tmp_path: Path) -> WorkerDir:
    worker = Root(str(tmp_path / ".agentctl")).task("t1").worker("a1")
    worker.path.mkdir(parents=True)
    return worker


def call(worker: WorkerDir, number: int) -> None:
    with open(worker.activity, "ab") as file:
        file.write(encode_row(Row(RowType.TOOL, f"c{number}", Phase.START, name="Bash"), now_iso()))


def test_nodes_are_made_anew_no_sooner_than_they_are_due(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = worker_with(tmp_path)
    call(worker, 1)
    nodes, now = ActivityNodes(worker, KEPT), [100.0]

    monkeypatch.setattr(activity_nodes, "monotonic", lambda: now[0])

    def slow(*args: object, **options: object) -> object:
        now[0] += 0.5
        return view_of(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(activity_nodes, "view_of", slow)
    assert [node.id for node in nodes.nodes(ended=False, until=inf)] == ["", "c1"]
    assert nodes.due is None
    call(worker, 2)
    assert [node.id for node in nodes.nodes(ended=False, until=inf)] == ["", "c1"], "they took long, so they rest"
    assert nodes.due == pytest.approx(102.5)
    now[0] = 102.5
    assert [node.id for node in nodes.nodes(ended=True, until=inf)] == ["", "c1", "c2"], "and no row is lost"
    assert nodes.due is None


def test_who_takes_no_turns_has_every_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(activity_nodes, "_RESTS", inf)
    worker = worker_with(tmp_path)
    nodes = ActivityNodes(worker, KEPT)
    for number in (1, 2):
        call(worker, number)
        assert len(nodes.nodes(ended=False)) == 1 + number


def test_the_end_of_a_worker_is_seen_although_nothing_was_appended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker, now = worker_with(tmp_path), [100.0]
    call(worker, 1)
    nodes = ActivityNodes(worker, KEPT)
    monkeypatch.setattr(activity_nodes, "monotonic", lambda: now[0])
    nodes.nodes(ended=False, until=inf)
    nodes._next_made = 101.0
    nodes.nodes(ended=True, until=inf)
    assert nodes.due == 101.0
    now[0] = 101.0
    assert nodes.nodes(ended=True, until=inf)[1].status == "interrupted"
