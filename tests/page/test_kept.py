"""At stake: what the browser keeps for a person is there again, whatever other tabs keep and however slow it comes."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.page.seen import group, hold, leave_lines, row
from tests.page.site import Site
from tests.page.test_diff import comment, opened_after_its_end
from tests.page.visiting import Visit
from tests.repositories import new_repository
from tests.steps import Task, spawn
from tests.support import wait_until

DIFF = "/tasks/t1/workers/a/diff"


@pytest.fixture
def diff(task: Task, visit: Visit, tmp_path: Path) -> Page:
    """The page of what an agent has changed."""
    new_repository(Path.cwd())
    return opened_after_its_end(visit, tmp_path)


def lines(page: Page) -> Locator:
    """Return the lines of a file with what is said on them."""
    return page.get_by_role("region", name="a.txt", exact=True)


def viewed(page: Page, file: str) -> Locator:
    """Return what says that a file was viewed."""
    return page.get_by_role("checkbox", name=f"{file} is viewed", exact=True)


def test_comments_of_two_tabs_are_all_kept(diff: Page, visit: Visit) -> None:
    other = visit.another(DIFF)
    comment(other, "two", "from the other tab")
    comment(diff, "four", "from this tab")
    for page in (diff, other):  # At once, and behind a load.
        expect(lines(page)).to_contain_text("from the other tab")
        expect(lines(page)).to_contain_text("from this tab")
        page.reload()
        visit.live(page)
        expect(lines(page)).to_contain_text("from the other tab")
        expect(lines(page)).to_contain_text("from this tab")
    lines(diff).get_by_role("button", name="Delete").first.click()
    expect(lines(other)).not_to_contain_text("from the other tab")
    expect(lines(other)).to_contain_text("from this tab")


def test_a_comment_that_was_written_while_others_are_sent_stays(diff: Page, visit: Visit) -> None:
    comment(diff, "two", "this is sent")
    release = hold(diff, "**/resume")
    diff.get_by_role("button", name="Continue it with all").click()
    expect(diff.get_by_role("button", name="Sending…")).to_be_visible()
    other = visit.another(DIFF)
    comment(other, "four", "this is not sent")
    release()
    expect(lines(other)).not_to_contain_text("this is sent")
    other.reload()
    expect(lines(other)).to_contain_text("this is not sent")
    expect(lines(other)).not_to_contain_text("this is sent")


def test_marks_of_two_tabs_are_all_kept(diff: Page, visit: Visit) -> None:
    other = visit.another(DIFF)
    viewed(other, "a.txt").check()
    viewed(diff, "new.txt").check()
    for page in (diff, other):
        for file in ("a.txt", "new.txt"):
            expect(viewed(page, file)).to_be_checked()
        page.reload()
        for file in ("a.txt", "new.txt"):
            expect(viewed(page, file)).to_be_checked()


def test_what_was_kept_is_there_once_the_root_is_known(diff: Page) -> None:
    comment(diff, "two", "before the load")
    viewed(diff, "new.txt").check()
    diff.keyboard.press("n")
    diff.get_by_label("What it should do").fill("a draft from before")
    release = hold(diff, "**/api/v1/about")
    diff.reload()
    comment(diff, "four", "before the root was known")
    expect(lines(diff)).not_to_contain_text("before the load")
    diff.keyboard.press("n")
    prompt = diff.get_by_label("What it should do")
    expect(prompt).to_have_value("")
    release()
    expect(prompt).to_have_value("a draft from before")
    diff.keyboard.press("Escape")
    for _ in range(2):
        expect(lines(diff)).to_contain_text("before the load")
        expect(lines(diff)).to_contain_text("before the root was known")
        expect(viewed(diff, "new.txt")).to_be_checked()
        diff.reload()


def test_what_is_typed_before_the_root_is_known_stays(task: Task, visit: Visit) -> None:
    page = visit.open()
    release = hold(page, "**/api/v1/about")
    page.reload()
    page.get_by_role("banner").get_by_role("button", name="New worker").click()
    prompt = page.get_by_label("What it should do")
    prompt.press_sequentially("typed early")
    release()
    wait_until(
        lambda: page.evaluate("JSON.stringify(localStorage)"), accept=lambda all_: "typed early" in all_, what="it"
    )
    expect(prompt).to_have_value("typed early")
    page.reload()
    page.get_by_role("banner").get_by_role("button", name="New worker").click()
    expect(prompt).to_have_value("typed early")


def test_what_a_tab_has_folded_is_there_once_the_root_is_known(task: Task, visit: Visit) -> None:
    spawn(["true"], "--wait", name="over")
    page = visit.open()
    fold = group(page, "Done").get_by_role("button").first
    fold.click()
    expect(row(page, "over")).to_be_visible()
    release = hold(page, "**/api/v1/about")
    page.reload()
    expect(fold).to_have_attribute("aria-expanded", "false")
    release()
    expect(fold).to_have_attribute("aria-expanded", "true")


def test_a_server_that_could_not_say_its_root_is_asked_again(task: Task, site: Site, visit: Visit) -> None:
    page = visit.open()
    page.route("**/api/v1/about", lambda route: route.abort(), times=1)
    page.reload()
    visit.live()
    site.kill()
    site.again()
    visit.live()
    page.get_by_role("button", name="Settings").click()
    expect(page.get_by_role("dialog")).not_to_contain_text("unknown")


def test_a_server_that_says_late_of_which_root_it_is_is_asked_until_it_does(task: Task, visit: Visit) -> None:
    page = visit.open()
    page.route("**/api/v1/about", lambda route: route.abort(), times=3)
    page.reload()
    visit.live()
    page.get_by_role("button", name="Settings").click()
    expect(page.get_by_role("dialog")).not_to_contain_text("unknown")


def test_a_click_under_a_filter_folds_for_as_long_as_that_is_there(task: Task, visit: Visit) -> None:
    spawn(["true"], "--wait", name="over")
    page = visit.open()
    fold = group(page, "Done").get_by_role("button").first
    fold.click()
    leave_lines(page)
    expect(fold).to_have_attribute("aria-expanded", "true")
    field = page.get_by_role("searchbox", name="Filter the workers")
    field.fill("n:over")
    expect(row(page, "over")).to_be_visible()
    fold.click()
    expect(fold).to_have_attribute("aria-expanded", "false")
    leave_lines(page)
    expect(row(page, "over")).to_have_count(0)
    field.fill("n:ove")
    expect(fold).to_have_attribute("aria-expanded", "false")
    field.fill("")
    expect(fold).to_have_attribute("aria-expanded", "true")
    field.fill("n:over")
    expect(fold).to_have_attribute("aria-expanded", "true")
