"""What the tests find in the page, by the names and roles that a screen reader has for it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from playwright.sync_api import Locator, Page, Route, expect

from tests.support import wait_until

NEEDS = ("Needs you", "Ready for review", "Failed", "Working", "Queued", "Done")


def group(page: Page, words: str) -> Locator:
    """Return a group of the list by need."""
    return page.get_by_role("region", name=re.compile(rf"^{words} \d"))


def row(page: Page, name: str, task: str = "t1") -> Locator:
    """Return the line of a worker in the list, or its question there."""
    return page.locator(f'[data-key="{task}/{name}"]')


def question(page: Page, name: str) -> Locator:
    """Return the first question of a worker."""
    return page.get_by_role("article", name=re.compile(rf"^{name}\b"))


def said(page: Page) -> Locator:
    """Return where the page says what happened."""
    return page.get_by_role("status").filter(has=page.get_by_role("button", name="Dismiss"))


def says(page: Page, text: str | re.Pattern[str]) -> None:
    """Wait until the page says something."""
    expect(said(page).get_by_text(text).first).to_be_visible()


def keys_in_order(page: Page) -> list[str]:
    """Return the workers in the order in which they stand on the screen."""
    found: list[str] = page.evaluate("""() => [...document.querySelectorAll('[data-key]')]
        .map((one) => [one.getBoundingClientRect().top, one.dataset.key])
        .sort((a, b) => a[0] - b[0]).map(([, key]) => key)""")
    return found


def groups_in_order(page: Page) -> list[str]:
    """Return the headings of the groups, from top to bottom."""
    return [
        " ".join(str(one).split()) for one in page.get_by_role("main").get_by_role("heading", level=2).all_inner_texts()
    ]


def tree_item(page: Page, name: str) -> Locator:
    """Return a line of the tree by its label."""
    return page.get_by_role("treeitem").filter(has=page.locator(".label", has_text=re.compile(rf"^{re.escape(name)}$")))


def unfold(page: Page, name: str) -> None:
    """Open a line of the tree, unless it is open: what is alive opens by itself."""
    line = tree_item(page, name)
    expect(line).to_have_attribute("aria-expanded", re.compile("true|false"))
    # Not by a press: it may open by itself between the look and the press, which would close it.
    line.evaluate("(one) => one.getAttribute('aria-expanded') === 'false' && one.querySelector('.twist').click()")
    expect(line).to_have_attribute("aria-expanded", "true")


def tree_lines(page: Page) -> list[dict[str, Any]]:
    """Return the lines of the tree: label, level, whether open, from top to bottom."""
    found: list[dict[str, Any]] = page.evaluate("""() => [...document.querySelectorAll('[role=treeitem]')]
        .sort((a, b) => a.getBoundingClientRect().top - b.getBoundingClientRect().top)
        .map((one) => ({ label: one.querySelector('.label').innerText, level: Number(one.getAttribute('aria-level')),
            open: one.getAttribute('aria-expanded'), at: Number(one.getAttribute('aria-posinset')),
            of: Number(one.getAttribute('aria-setsize')), text: one.innerText.replace(/\\s+/g, ' ') }))""")
    return found


def settled(page: Page) -> None:
    """Wait for two frames: what was drawn has its place."""
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def work_of(page: Page) -> Callable[[], float]:
    """Return what tells the milliseconds for which a document has had the processor: a wait for that is no work."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def told() -> float:
        metrics = session.send("Performance.getMetrics")["metrics"]
        return 1000 * float(next(one["value"] for one in metrics if one["name"] == "TaskDuration"))

    return told


def hold(page: Page, path: str) -> Callable[[], None]:
    """Keep the answers to requests from the page; return what lets them come, once there is one."""
    held: list[Route] = []

    def keep(route: Route) -> None:
        held.append(route)

    def asked() -> list[Route]:
        settled(page)  # The browser tells of a request while it is asked something.
        return held

    def release() -> None:
        wait_until(asked, what="a request")
        for route in held:
            route.continue_()
        page.unroute(path)

    page.route(path, keep)
    return release


def insist(page: Page, act: Callable[[], object], wanted: Locator) -> None:
    """Do something until that is seen: what has just come up, or has just moved, wants to be pressed again."""
    again = said(page).locator(".line", has_text=re.compile("press (the digit )?again"))
    for _ in range(20):
        act()
        expect(wanted.or_(again).first).to_be_visible()
        if wanted.count():
            return
        # As nobody can: neither the focus nor the pointer moves. What is wanted may be said just now: it stays.
        again.get_by_role("button", name="Dismiss").evaluate_all("(all) => all.forEach((one) => one.click())")
        expect(again).to_have_count(0)
    raise AssertionError("the page does not come to rest")


def until_said(page: Page, act: Callable[[], object], text: str | re.Pattern[str]) -> None:
    """Do something until the page says so."""
    insist(page, act, said(page).get_by_text(text))


def pressed(page: Page, name: str, answer: str) -> None:
    """Answer a question by a button."""
    button = question(page, name).get_by_role("button", name=answer, exact=True)
    until_said(page, button.click, f"Answered {name}: {answer}")


def typed(page: Page, key: str, text: str | re.Pattern[str]) -> None:
    """Answer a question by a digit."""
    until_said(page, lambda: page.keyboard.press(key), text)


def leave_lines(page: Page) -> None:
    """Take pointer and focus away from the lines: those that have one keep their place and their group."""
    page.mouse.move(400, 5)
    page.evaluate("document.activeElement.blur()")
