"""At stake: the page can be read and used by whoever sees little, has a phone, or wants nothing to move."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.page.install import axe_script
from tests.page.seen import insist, pressed, question, row, settled, tree_item, unfold, until_said
from tests.page.visiting import PHONE, Visit
from tests.page.world import populate, views
from tests.steps import Task

SETTINGS: dict[str, dict[str, Any]] = {
    "light": {"color_scheme": "light", "viewport": {"width": 1440, "height": 900}},
    "dark": {"color_scheme": "dark", "viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True},
    "zoomed": {"viewport": {"width": 720, "height": 450}, "device_scale_factor": 2},
    "phone": {"viewport": PHONE, "has_touch": True, "is_mobile": True, "device_scale_factor": 2},
}
_AXE = """async () => (await axe.run(document, { resultTypes: ['violations'] })).violations
  .map(({ id, help, nodes }) => `${id} (${help}): ` + nodes.slice(0, 4).map((one) => one.target.join(' ')
    + ' ' + one.html.slice(0, 160) + ' ' + (one.any[0]?.message ?? one.all[0]?.message ?? '')).join(' | '))"""


@pytest.fixture(scope="session")
def axe() -> str:
    """The script of axe-core. The folder of the cache is known before a test has a home."""
    if not axe_script().exists():
        pytest.skip("axe-core is not in the cache: python -m tests.page.install fetches it")
    return axe_script().read_text(encoding="utf-8")


class Checker:
    """Runs axe-core on what is seen, and keeps what it finds."""

    def __init__(self, page: Page, script: str) -> None:
        self.page, self.script = page, script
        self.found: list[str] = []

    def look(self, where: str) -> None:
        """Look at the page as it is now."""
        expect(self.page.get_by_text("Loading…")).to_have_count(0)
        settled(self.page)
        if not self.page.evaluate("'axe' in window"):
            self.page.evaluate(self.script)
        self.found += [f"{where}: {one}" for one in self.page.evaluate(_AXE)]


def shown(page: Page) -> None:
    """Wait until a view is there, and not only its frame."""
    expect(page.get_by_role("main")).not_to_be_empty()
    expect(page.get_by_role("heading", level=1)).to_be_attached()


def dialogs(page: Page) -> dict[str, Callable[[], None]]:
    """Return how each dialog is opened where one worker is shown."""
    return {
        "the keys": lambda: page.keyboard.press("?"),
        "the settings": lambda: page.get_by_role("button", name="Settings").click(),
        "a new worker": lambda: page.keyboard.press("n"),
        "a cancel": lambda: page.keyboard.press("x"),
        "a message": lambda: page.keyboard.press("s"),
    }


@pytest.mark.timeout(240)
@pytest.mark.parametrize("setting", list(SETTINGS))
def test_axe_finds_nothing(task: Task, tmp_path: Path, visiting: Callable[..., Visit], setting: str, axe: str) -> None:
    populate(task, tmp_path)
    visit = visiting(bypass_csp=True, **SETTINGS[setting])
    page = visit.page
    checker = Checker(page, axe)
    page.goto(visit.site.url)
    expect(page.get_by_label("Link or token")).to_be_visible()
    checker.look("the login")
    page.get_by_role("button", name="Open").click()
    checker.look("the login, refused")
    visit.open()
    for path in views():
        visit.go(path)
        shown(page)
        checker.look(path)
    unfolded(visit, checker)
    opened(visit, checker)
    commented(visit, checker)
    marked(visit, checker)
    visit.go("/tasks/t1/workers/running")
    for name, open_ in dialogs(page).items():
        open_()
        expect(page.get_by_role("dialog")).to_be_visible()
        for summary in page.get_by_role("dialog").locator("summary").all():
            summary.click()
        checker.look(name)
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)
    visit.go("/")
    writes, permit = question(page, "writes"), question(page, "permit")
    insist(page, writes.get_by_role("button", name="Answer").click, writes.get_by_role("alert"))
    insist(page, permit.get_by_role("button", name="Deny with a reason").click, permit.get_by_role("textbox"))
    checker.look("questions that are answered")
    visit.site.kill()
    expect(page.get_by_role("banner")).to_contain_text("offline")
    checker.look("offline")
    assert checker.found == []


def unfolded(visit: Visit, checker: Checker) -> None:
    """Look at the list with every group unfolded, and at the raw output and arguments."""
    page = visit.go("/")
    folded = page.get_by_role("heading", level=2).get_by_role("button", expanded=False)
    expect(folded.first).to_be_attached()
    folded.evaluate_all("(all) => all.forEach((one) => one.click())")
    checker.look("all groups")
    visit.go("/tasks/t1/workers/permit")
    raw = page.get_by_role("button", name="Raw arguments")
    insist(page, raw.click, page.get_by_role("button", name="Raw arguments", pressed=True))
    checker.look("raw arguments")
    visit.go("/tasks/t1/workers/prints/output")
    page.get_by_role("button", name="Raw", exact=True).click()
    checker.look("raw output")


def opened(visit: Visit, checker: Checker) -> None:
    """Look at an open tree and an open transcript."""
    page = visit.go("/tree")
    unfold(page, "agent")
    expect(tree_item(page, "Find sessions")).to_be_visible()
    checker.look("the open tree")
    visit.go("/tasks/t1/workers/reviewed")
    folded = page.get_by_role("log").locator(".call-line[aria-expanded=false]")
    expect(folded.first).to_be_visible()
    while folded.count():
        folded.first.click()
    checker.look("the open transcript")


def marked(visit: Visit, checker: Checker) -> None:
    """Look at marked workers, at the question about them, and at what became of each."""
    page = visit.go("/")
    expect(row(page, "failed")).to_be_visible()
    page.keyboard.press("M")
    bar = page.get_by_role("region", name="The marked workers")
    expect(bar).to_be_visible()
    checker.look("marked workers")
    bar.get_by_role("button", name="Seen…").click()
    expect(page.get_by_role("dialog")).to_contain_text("Left alone")
    checker.look("a question about several")
    page.keyboard.press("Escape")
    page.keyboard.press("t")
    expect(tree_item(page, "failed")).to_have_attribute("aria-checked", "true")
    checker.look("marks in the tree")


def commented(visit: Visit, checker: Checker) -> None:
    """Look at a diff on which somebody comments."""
    page = visit.go("/tasks/t1/workers/reviewed/diff")
    page.get_by_role("region", name="a.txt", exact=True).get_by_role("button", name="Comment on line 2").click()
    page.keyboard.type("Why?")
    checker.look("a comment that is written")
    page.keyboard.press("Control+Enter")
    page.get_by_role("region", name="Comments to be sent").get_by_role("button", name="1 comment").click()
    checker.look("comments")


# -- a phone ---------------------------------------------------------------------------------------------------------

_WIDER = """() => {
  const wide = [];
  const main = document.getElementById('main');
  const top = document.scrollingElement;
  if (top.scrollWidth > innerWidth) wide.push(`the page is ${top.scrollWidth} wide`);
  if (main && main.scrollWidth > main.clientWidth + 1) {
    wide.push(`what is in main is ${main.scrollWidth} wide, of ${main.clientWidth}`);
    for (const one of main.querySelectorAll('*')) {
      if (one.getBoundingClientRect().right > innerWidth + 1 && !scrolls(one)) {
        wide.push(`${one.tagName}.${one.className} ${one.innerText?.slice(0, 40)}`);
      }
    }
  }
  function scrolls(one) {
    for (let at = one.parentElement; at && at !== main; at = at.parentElement) {
      if (['auto', 'scroll', 'hidden'].includes(getComputedStyle(at).overflowX)) return true;
    }
    return false;
  }
  return wide.slice(0, 5);
}"""
#: Links within a sentence are excepted, as in WCAG 2.5.8, and so are lines of code and the bars of a timeline: larger,
#: they would say less, and a table has the same links. A box to tick is as large as its label.
_SMALL = """(least) => [...document.querySelectorAll(
    'a[href], button, input, select, textarea, summary, [role=treeitem]')]
  .filter((one) => one.checkVisibility({ visibilityProperty: true, opacityProperty: true }))
  .filter((one) => !one.closest('.unseen, .skip, .code-line, svg'))
  .filter((one) => !(one.matches('p a, dd a, td a, .events a') && getComputedStyle(one).display === 'inline'))
  .map((one) => (one.matches('input[type=checkbox], input[type=radio]') ? one.closest('label') ?? one : one))
  .map((one) => [one, one.getBoundingClientRect()])
  .filter(([, box]) => box.width > 0 && box.height > 0 && (box.height < least - 0.5 || box.width < least - 0.5))
  .map(([one, box]) => `${one.tagName}.${one.className} "${(one.innerText || one.ariaLabel || '').slice(0, 40)}"`
    + ` ${Math.round(box.width)}x${Math.round(box.height)}`)"""


@pytest.mark.parametrize("width", [320, 360])
def test_a_phone_needs_no_sideways_scrolling_and_a_thumb_hits(
    task: Task, tmp_path: Path, visiting: Callable[..., Visit], width: int
) -> None:
    populate(task, tmp_path)
    visit = visiting(viewport={"width": width, "height": 740}, has_touch=True, is_mobile=True)
    page = visit.page
    wide: list[str] = []
    small: dict[str, str] = {}

    def look(where: str) -> None:
        expect(page.get_by_text("Loading…")).to_have_count(0)
        settled(page)
        wide.extend(f"{where}: {one}" for one in page.evaluate(_WIDER))
        for one in page.evaluate(_SMALL, 44):
            small.setdefault(one, where)

    page.goto(visit.site.url)
    expect(page.get_by_role("textbox").first).to_be_visible()
    look("the login")
    visit.open()
    for path in views():
        visit.go(path)
        shown(page)
        look(path)
    visit.go("/tasks/t1/workers/running")
    for name, open_ in dialogs(page).items():
        open_()
        expect(page.get_by_role("dialog")).to_be_visible()
        look(name)
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)
    assert wide == []
    assert small == {}


def test_a_phone_is_enough_to_answer_and_to_start(task: Task, visiting: Callable[..., Visit], tmp_path: Path) -> None:
    populate(task, tmp_path)
    visit = visiting(**SETTINGS["phone"])
    page = visit.open()
    until_said(page, question(page, "asks").get_by_role("button", name="Yes").tap, "Answered asks: Yes")
    page.get_by_role("navigation", name="Views, below").get_by_role("button", name="New").tap()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label(re.compile("^Agent")).select_option("a command")
    dialog.get_by_role("textbox", name="Command").fill("echo from a phone")
    dialog.get_by_role("button", name="Start").tap()
    expect(page.get_by_role("status").filter(has_text=re.compile("echo.* is (running|queued)"))).to_be_visible()
    page.get_by_role("navigation", name="Views, below").get_by_role("link", name="Tree").tap()
    expect(page.get_by_role("treeitem").first).to_be_visible()


# -- motion and colours ------------------------------------------------------------------------------------------------

_MOVING = """() => [...document.querySelectorAll('*')].map((one) => [one, getComputedStyle(one)])
  .filter(([, style]) => style.animationName !== 'none'
    || style.transitionDuration.split(',').some((one) => parseFloat(one) > 0.001) || style.scrollBehavior === 'smooth')
  .map(([one]) => `${one.tagName}.${one.className}`)"""


def test_nothing_moves_for_whoever_wants_that(task: Task, tmp_path: Path, visiting: Callable[..., Visit]) -> None:
    populate(task, tmp_path)
    page = visiting(reduced_motion="reduce").open()
    pressed(page, "asks", "No")
    assert page.evaluate(_MOVING) == []
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    assert page.evaluate(_MOVING) == []
    assert page.evaluate("document.getAnimations().length") == 0


def test_the_colours_can_be_chosen(task: Task, visiting: Callable[..., Visit]) -> None:
    visit = visiting(color_scheme="dark")
    page = visit.open()
    ground = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(ground)
    page.get_by_role("button", name="Settings").click()
    button = page.get_by_role("dialog").get_by_role("button", name="Colours")
    button.click()
    expect(button).to_contain_text("light")
    light = page.evaluate(ground)
    assert light != dark
    page.reload()
    visit.live()
    assert page.evaluate(ground) == light


def test_states_are_not_told_by_colour_alone(task: Task, tmp_path: Path, visiting: Callable[..., Visit]) -> None:
    populate(task, tmp_path)
    page = visiting(viewport={"width": 1280, "height": 2400}).open("/tasks/t1")
    words = {"asks": "asks", "running": "running", "paused": "paused", "queued": "queued", "failed": "failed"}
    for name, word in words.items():
        expect(row(page, name)).to_contain_text(word)


def test_what_happens_is_read_out(task: Task, visit: Visit) -> None:
    page = visit.open()
    region = page.locator("[role=status][aria-live=polite]")
    expect(region).to_be_attached()
    assert page.locator("html").get_attribute("lang") == "en"
    assert page.get_by_role("main").count() == 1
    assert page.get_by_role("banner").count() == 1
    expect(page.get_by_role("heading", level=1)).to_have_count(1)
