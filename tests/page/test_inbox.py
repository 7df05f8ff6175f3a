"""At stake: whoever looks at the page sees at once who needs them, and comes back to what they saw."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.page.seen import row
from tests.page.visiting import Visit
from tests.steps import Task, spawn
from tests.support import worker


def test_a_filter_is_in_the_address(task: Task, visit: Visit) -> None:
    for name in ("lint", "long"):
        spawn(worker("sleeps", 60), name=name)
    page = visit.open()
    field = page.get_by_role("searchbox", name="Filter the workers")
    field.fill("n:lint")
    expect(row(page, "long")).to_have_count(0)
    expect(page).to_have_url(re.compile(r"/\?filter=n%3Alint$"))
    page.reload()
    visit.live()
    expect(field).to_have_value("n:lint")
    expect(row(page, "lint")).to_be_visible()
    expect(row(page, "long")).to_have_count(0)
    row(page, "lint").get_by_role("link").click()
    expect(page).to_have_url(re.compile("/tasks/t1/workers/lint$"))
    page.get_by_role("main").get_by_role("link", name="t1").click()
    expect(page).to_have_url(re.compile(r"/tasks/t1\?filter=n%3Alint$"))
    field.press("Escape")
    expect(row(page, "long")).to_be_visible()
    expect(page).to_have_url(re.compile(r"/tasks/t1$"))
