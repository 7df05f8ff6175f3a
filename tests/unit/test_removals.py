"""At stake: a log with removals says what it would say if the removed workers had never been, and names are free."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st

from agentctl.adapters import eventlog
from agentctl.adapters.taskdir import TaskDir
from agentctl.domain import events as ev
from agentctl.domain.events import Event, encode, make_event
from agentctl.domain.notice.notices import TaskNotices, of_tree
from agentctl.domain.timeline.timeline import History
from agentctl.domain.worker.projection import TaskView
from agentctl.operations.where.names_in_log import accepted_in, first_seq_of
from agentctl.operations.where.tries_in_log import tries_of
from tests.unit.test_projection import all_told

NAMES = ("a", "b", "c", "d")
AT = "2027-01-01T00:00:00.000Z"
#: What a worker is started as, besides a first try.
LINKS = ("retryOf", "continues")


class Worker:
    """One worker of a history, which may have the name of an earlier one."""

    def __init__(self, name: str, link: str | None, before: Worker | None, work: list[Worker]) -> None:
        self.name, self.link, self.before, self.work = name, link, before, work
        self.is_gone = False
        self.events: list[Event] = []

    def queued(self, before: Worker | None) -> Event:
        payload = {} if self.link is None or before is None else {self.link: before.name}
        return make_event(AT, ev.QUEUED, "t", "user", payload, self.name)

    def told_of(self) -> Worker | None:
        """Return the worker whose work it would name if those that were removed had never been."""
        if self.before is None or not self.before.is_gone:
            return self.before
        earlier = [one for one in self.work[: self.work.index(self)] if not one.is_gone]
        return earlier[-1] if earlier else None


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[Event], list[Event]]:
    """Return a log with removals, and what it would be if the removed workers had never been."""
    log: list[Event] = []
    order: list[tuple[Worker, Event | None]] = []
    there: dict[str, Worker] = {}
    for _ in range(draw(st.sampled_from([4, 12, 24, 40]))):
        free, ended = [name for name in NAMES if name not in there], [one for one in there.values() if one.events]
        step = draw(st.sampled_from(["start", "start", "end", "end", "remove", "stray"]))
        if step == "start" and free:
            before = draw(st.sampled_from([None, *ended]))
            worker = Worker(
                draw(st.sampled_from(free)), draw(st.sampled_from(LINKS)), before, before.work if before else []
            )
            worker.work.append(worker)
            there[worker.name] = worker
            log.append(worker.queued(before))
            order.append((worker, None))
        elif step == "end" and (live := [one for one in there.values() if not one.events]):
            worker, kind = draw(st.sampled_from(live)), draw(st.sampled_from(sorted(ev.END_STATUS)))
            worker.events = [make_event(AT, kind, "t", "agentctl", {"exitCode": 1}, worker.name)]
            log += worker.events
            order += [(worker, event) for event in worker.events]
        elif step == "remove" and ended:
            worker = draw(st.sampled_from(ended))
            worker.is_gone = True
            del there[worker.name]
            log.append(make_event(AT, ev.REMOVED, "t", "user", {"removal": "x"}, worker.name))
        elif step == "stray" and free and any(event["type"] == ev.REMOVED for event in log):
            gone = [name for name in free if any(one.name == name for one, _ in order)]
            if gone:  # What somebody writes who had looked before the removal.
                log.append(make_event(AT, ev.FAILED, "t", "agentctl", {"reason": "lost"}, draw(st.sampled_from(gone))))
    kept = [event or worker.queued(worker.told_of()) for worker, event in order if not worker.is_gone]
    return log, kept


def view_of(log: list[Event]) -> TaskView:
    view = TaskView()
    view.apply(enumerate(log, 1))
    return view


SEQS = ("end_seq", "block_seq", "stall_seq", "park_seq")


@given(histories())
def test_the_state_is_that_of_a_log_in_which_they_never_were(history: tuple[list[Event], list[Event]]) -> None:
    log, kept = map(view_of, history)
    assert all_told(log, SEQS) == all_told(kept, SEQS)
    assert [one.instance for one in log.newest()] == [one.instance for one in kept.newest()]
    assert [one.instance for one in log.deliverables()] == [one.instance for one in kept.deliverables()]


@given(histories())
def test_whoever_searches_the_log_finds_the_same(history: tuple[list[Event], list[Event]]) -> None:
    view = view_of(history[0])
    with tempfile.TemporaryDirectory() as folder:
        task = TaskDir(folder)
        Path(task.events).write_bytes(encode(history[0]))
        Path(task.tries_lock).touch()
        tries = tries_of(task)
        assert accepted_in(task.events) == {*view.workers}
        for name, worker in view.workers.items():
            assert tries.of_work(tries.work_of(name)) == view.tries.of_work(view.tries.work_of(name))
            ends = eventlog.events_about(task.events, name, ev.END_STATUS)
            assert len(ends) == worker.is_terminal
            begins = first_seq_of(eventlog.blocks_of(task.events, 0), name)
            assert not any(
                one["type"] == ev.REMOVED and one["agentInstance"] == name for one in history[0][begins - 1 :]
            )
        with Path(task.events).open("rb") as file:
            terminal = {name for name, worker in view.workers.items() if worker.is_terminal}
            assert eventlog.instances_in(file.fileno(), ev.END_STATUS) >= terminal


@given(histories())
def test_a_person_is_told_the_same(history: tuple[list[Event], list[Event]]) -> None:
    log, kept = (TaskNotices("t") for _ in history)
    log.apply(enumerate(history[0], 1))
    kept.apply(enumerate(history[1], 1))
    assert [(one.kind, one.text) for one in of_tree([log])] == [(one.kind, one.text) for one in of_tree([kept])]


@given(histories())
@example(([], []))
def test_a_timeline_shows_the_same(history: tuple[list[Event], list[Event]]) -> None:
    bars = []
    for log in history:
        drawn = History("t")
        drawn.apply(enumerate(log, 1))
        bars.append([(bar.id, bar.status, bar.is_open) for bar in drawn.bars(2e9)])
    assert bars[0] == bars[1]
