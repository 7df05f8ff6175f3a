"""At stake: a server that was killed and started again has lost nothing, and the open page has missed nothing."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import Page, expect

from tests.page.seen import group, insist, pressed, row, tree_item
from tests.page.site import Site
from tests.page.visiting import Visit
from tests.steps import Task, spawn
from tests.support import run, wait_until, worker

ASKS = worker("asks", "--kind", "confirm", "Delete the old logs?")
#: Keeps what the page has drawn of the log, so that a row that was there twice or late is seen.
SEQS = """() => [...document.querySelectorAll('[aria-label=Events] [role=listitem]')]
    .sort((a, b) => a.getBoundingClientRect().top - b.getBoundingClientRect().top)
    .map((one) => Number(one.querySelector('.seq').innerText))"""

_HIDDEN = """
globalThis.isBehind = true;
Object.defineProperty(Document.prototype, 'hidden', { get: () => isBehind });
Object.defineProperty(Document.prototype, 'visibilityState', { get: () => (isBehind ? 'hidden' : 'visible') });
"""


def offline(page: Page) -> None:
    """Wait until the page says that it does not hear the server."""
    expect(page.get_by_role("banner")).to_contain_text(re.compile(r"offline, last seen \d+s ago"))


def test_events_during_a_restart_are_neither_missed_nor_doubled(task: Task, site: Site, visit: Visit) -> None:
    spawn(worker("exits", 0), "--wait", name="before")
    page = visit.open("/tasks/t1/events")
    listed = page.get_by_role("list", name="Events").get_by_role("listitem")
    expect(listed.first).to_be_visible()
    other = visit.another("/")
    expect(group(other, "Done")).to_be_visible()
    for round_ in range(2):
        spawn(ASKS, name=f"asks-{round_}")
        expect(row(other, f"asks-{round_}").get_by_role("article")).to_be_visible()
        site.kill()
        offline(page)
        spawn(worker("exits", 3), "--wait", name=f"meanwhile-{round_}", check=False)
        run("interact", "respond", f"asks-{round_}", "--id", "q1", "no")
        task.ended(f"asks-{round_}", f"meanwhile-{round_}")
        site.again()
        visit.live()
        spawn(worker("exits", 0), "--wait", name=f"after-{round_}")
    seqs = list(range(1, len(task.events()) + 1))
    wait_until(lambda: page.evaluate(SEQS), accept=lambda found: found[-1:] == seqs[-1:], what="the last event")
    assert page.evaluate(SEQS) == seqs[-len(page.evaluate(SEQS)) :]
    assert listed.first.get_attribute("aria-setsize") == str(len(seqs))
    expect(other.get_by_role("region", name=re.compile("^Done 5"))).to_be_visible()
    group(other, "Done").get_by_role("button").first.click()
    listed_now = run("list", "--json").json
    expect(other.locator("[data-key]")).to_have_count(len(listed_now))
    keys = other.locator("[data-key]").evaluate_all("(all) => all.map((one) => one.dataset.key)")
    assert sorted(keys) == sorted(f"t1/{row['agentInstance']}" for row in listed_now)
    expect(other).to_have_title("agentctl")


def test_it_says_that_it_is_offline_and_keeps_what_it_shows(task: Task, site: Site, visit: Visit) -> None:
    spawn(ASKS, name="asks")
    page = visit.open()
    expect(row(page, "asks").get_by_role("article")).to_be_visible()
    site.kill()
    offline(page)
    expect(row(page, "asks").get_by_role("article")).to_be_visible()
    unheard = page.get_by_text("the server cannot be reached")
    insist(page, row(page, "asks").get_by_role("button", name="Yes").click, unheard)
    site.again()
    visit.live()
    pressed(page, "asks", "Yes")
    run("wait", "asks")
    assert "answer: yes" in run("logs", "asks").out


def test_a_session_survives_a_restart(task: Task, site: Site, visit: Visit) -> None:
    page = visit.open("/tree")
    token = site.token
    site.stop()
    offline(page)
    site.again()
    assert site.token == token
    visit.live()
    page.reload()
    expect(tree_item(page, "t1")).to_be_visible()
    visit.live()
    other = visit.another("/tree")
    expect(tree_item(other, "t1")).to_be_visible()
    site.kill()
    other.close()
    page.goto("about:blank")
    site.again()
    visit.page.goto(f"{site.url}/tree")  # No page remembers what the next run of the server knows.
    expect(page.get_by_label("Link or token")).to_be_visible()


def test_a_transcript_and_an_output_go_on_after_a_restart(task: Task, site: Site, visit: Visit, tmp_path: Any) -> None:
    gate = tmp_path / "gate"
    line = f"echo one; while [ ! -e {gate} ]; do sleep 0.05; done; echo two; sleep 60"
    spawn(["sh", "-c", line], name="prints")
    page = visit.open("/tasks/t1/workers/prints")
    output = page.get_by_role("region", name="stdout of prints")
    expect(output).to_contain_text("one")
    site.kill()
    offline(page)
    gate.touch()
    site.again()
    expect(output).to_contain_text("two")
    assert [line for line in str(output.inner_text()).splitlines() if line] == ["one", "two"]


def test_tabs_in_the_background_leave_the_connections_to_the_one_that_is_seen(task: Task, visit: Visit) -> None:
    """A browser opens six connections to a server at once; a headless one calls no tab hidden."""
    page = visit.open()
    visit.context.add_init_script(_HIDDEN)
    behind = [visit.context.new_page() for _ in range(7)]
    for hidden in behind:  # None of them hears the server.
        hidden.goto(visit.site.url)
    spawn(worker("sleeps", 60), name="seen")
    expect(row(page, "seen")).to_be_visible()
    row(page, "seen").get_by_role("link").click()
    expect(page.get_by_role("region", name="stdout of seen")).to_be_visible()
    behind[-1].evaluate("isBehind = false; document.dispatchEvent(new Event('visibilitychange'))")
    expect(row(behind[-1], "seen")).to_be_visible()
