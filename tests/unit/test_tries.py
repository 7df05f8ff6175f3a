"""At stake: which worker counts of a work is the same for whoever folds the log and for whoever only searches it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentctl.adapters.eventlog import LogReader
from agentctl.adapters.taskdir import TaskDir
from agentctl.domain import events as ev
from agentctl.domain.events import Event, make_event
from agentctl.domain.states import Status
from agentctl.domain.worker.projection import TaskView
from agentctl.errors import NotFound
from agentctl.operations.where.tries_in_log import tries_of, worker_meant

NAMES = [f"w{number}" for number in range(8)]


def queued(instance: str, **payload: object) -> Event:
    return make_event("2027-01-01T00:00:00.000Z", ev.QUEUED, "t", "person", dict(payload), instance)


def view_of(*events: Event) -> TaskView:
    view = TaskView()
    view.apply(enumerate(events, 1))
    return view


@st.composite
def logs(draw: st.DrawFn) -> list[Event]:
    """The starts of some workers, each on its own, or as a further try of any that was there before."""
    names = draw(st.permutations(NAMES))
    found = []
    for number, name in enumerate(names[: draw(st.integers(1, len(names)))]):
        before = draw(st.sampled_from(["", *names[:number]]))
        found.append(queued(name, **({draw(st.sampled_from(["retryOf", "continues"])): before} if before else {})))
    return found


@given(logs())
def test_exactly_one_worker_of_each_work_counts_and_it_is_the_one_that_came_last(log: list[Event]) -> None:
    view, order = view_of(*log), [str(event["agentInstance"]) for event in log]
    works: dict[str, list[str]] = {}
    for name in order:
        works.setdefault(view.tries.work_of(name), []).append(name)
    assert [worker.instance for worker in view.newest()] == [name for name in order if name in last(works)]
    for work, names in works.items():
        assert (names[0], view.tries.of_work(work), view.tries.newest(work)) == (work, names, names[-1])
        if len(names) > 1:
            rows = [view.workers[name] for name in names]
            assert [(row.work, row.nth_try) for row in rows] == [(work, nth) for nth in range(1, len(names) + 1)]
            assert [row.superseded_by for row in rows] == [*names[1:], None]


def last(works: dict[str, list[str]]) -> set[str]:
    return {names[-1] for names in works.values()}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(log=logs(), noise=st.text())
def test_a_search_of_the_log_finds_what_its_fold_says(tmp_path: Path, log: list[Event], noise: str) -> None:
    task = TaskDir(str(tmp_path / os.urandom(8).hex()))
    Path(task.path).mkdir()
    Path(task.tries_lock).touch()
    said = make_event("2027-01-01T00:00:00.000Z", "note", "t", "person", {"retryOf": NAMES[0], "text": noise}, NAMES[1])
    lines = [line for event in log for line in (json.dumps(event), json.dumps(said))]
    Path(task.events).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    view, tries = TaskView(), tries_of(task)
    view.apply(LogReader(task.events).rows())
    for name in view.workers:
        work = view.tries.work_of(name)
        assert (tries.work_of(name), tries.of_work(work)) == (work, view.tries.of_work(work))
        assert worker_meant(task, work) == tries.newest(work)
        assert [worker_meant(task, f"{work}@{nth + 1}") for nth in range(len(tries.of_work(work)))] == tries.of_work(
            work
        )


@pytest.mark.parametrize("before", ["a", "nobody", "../x", "", 7, None, ["b"]])
def test_what_a_start_claims_of_itself_or_of_nobody_counts_for_nothing(before: object) -> None:
    view = view_of(queued("b"), queued("a", retryOf=before))
    assert [worker.superseded_by for worker in view.workers.values()] == [None, None]
    assert view.workers["b"].status is Status.QUEUED


def test_a_work_has_no_try_beyond_its_last(tmp_path: Path) -> None:
    task = TaskDir(str(tmp_path))
    Path(task.tries_lock).touch()
    Path(task.events).write_text(
        "".join(f"{json.dumps(one)}\n" for one in (queued("a"), queued("a-2", retryOf="a"))), encoding="utf-8"
    )
    assert [worker_meant(task, name) for name in ("a", "a@1", "a@2", "a-2", "a-2@1", "b")] == [
        "a-2", "a", "a-2", "a-2", "a", "b",
    ]  # fmt: skip
    with pytest.raises(NotFound, match=r"no worker 'a@3' in task .*: a has had 2 tries"):
        worker_meant(task, "a@3")
    with pytest.raises(NotFound, match="b has had 1 try"):
        worker_meant(task, "b@2")
