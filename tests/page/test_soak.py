"""At stake: a page that is open while much happens stays as small as it was; `make soak-page` takes longer."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from playwright.sync_api import Page, expect

from agentctl.adapters import eventlog
from agentctl.adapters.clock import now_iso
from agentctl.adapters.taskdir import Root, TaskDir
from agentctl.domain import events as ev
from tests.page.seen import row
from tests.page.visiting import Visit
from tests.steps import Task, spawn
from tests.support import worker

MINUTES = float(os.environ.get("SOAK_MINUTES", "1"))
EVENTS_A_SECOND, SAMPLES = 200, 12
#: What a page remembers of events is full by then.
_FILLED_S = 45
#: How much larger than at first it may be later: what is remembered goes up and down.
MOST_GROWTH, SLACK_BYTES, SLACK_NODES = 1.4, 2 << 20, 300

pytestmark = [pytest.mark.slow, pytest.mark.timeout(MINUTES * 60 + 240)]


class Size(NamedTuple):
    """What a page takes once what nobody needs is gone."""

    heap: int
    nodes: int
    listeners: int


def size_of(page: Page, session: Any) -> Size:
    """Return what a page takes."""
    session.send("HeapProfiler.collectGarbage")
    counters = session.send("Memory.getDOMCounters")
    return Size(session.send("Runtime.getHeapUsage")["usedSize"], counters["nodes"], counters["jsEventListeners"])


@contextlib.contextmanager
def happening(task: TaskDir, names: list[str]) -> Iterator[None]:
    """Have many events a second, each of which changes a row, within the block."""
    over = threading.Event()

    def make() -> None:
        began = time.monotonic()
        number = 0
        while not over.is_set():
            kind = ev.STALLED if number // len(names) % 2 else ev.UNSTALLED
            event = ev.make_event(now_iso(), kind, task.id, "agentctl", {"n": number}, names[number % len(names)])
            eventlog.append(task.events, [event], durable=False)
            number += 1
            over.wait(max(0.0, number / EVENTS_A_SECOND - (time.monotonic() - began)))

    thread = threading.Thread(target=make)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_a_page_that_is_open_for_long_stays_as_it_was(task: Task, visit: Visit) -> None:
    names = [f"busy-{number}" for number in range(4)]
    for name in names:
        spawn(worker("sleeps", 7200), name=name)
    pages = [visit.open(), visit.another("/tasks/t1/events"), visit.another("/tasks/t1/timeline")]
    expect(row(pages[0], names[0])).to_be_visible()
    expect(pages[1].get_by_role("list", name="Events")).to_be_visible()
    expect(pages[2].locator(".bar-row").first).to_be_visible()
    sessions = [visit.context.new_cdp_session(page) for page in pages]
    sizes: list[list[Size]] = [[] for _ in pages]
    with happening(Root(str(task.path.parents[1])).task(task.path.name), names):
        pages[0].wait_for_timeout(_FILLED_S * 1000)
        for _ in range(SAMPLES):
            pages[0].wait_for_timeout(MINUTES * 60_000 / SAMPLES)
            for found, page, session in zip(sizes, pages, sessions, strict=True):
                found.append(size_of(page, session))
    for name, found in zip(("list", "events", "timeline"), sizes, strict=True):
        print(f"\n{name}: " + ", ".join(f"{one.heap / 1e6:.1f} MB {one.nodes} nodes" for one in found))
        first, later = found[: SAMPLES // 2], found[SAMPLES // 2 :]
        for what, slack in (("heap", SLACK_BYTES), ("nodes", SLACK_NODES), ("listeners", SLACK_NODES)):
            before = max(getattr(one, what) for one in first)
            assert max(getattr(one, what) for one in later) <= before * MOST_GROWTH + slack, f"{what} of the {name}"
