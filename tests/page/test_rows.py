"""At stake: rows of a long list that need several lines neither overlap nor move the place of whoever reads."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.agent_steps import agent, plays
from tests.page.seen import group, leave_lines, settled
from tests.page.visiting import PHONE, WIDE, Visit
from tests.steps import Task
from tests.support import wait_until

#: Tells the page of workers that have ended, as the stream does; their commands need one to three lines on a phone.
_ENDED = """async ([from, to]) => {
  const { takeFleet } = await pageModule('js/store.js');
  const worker = (at) => ({ taskId: 't1', agentInstance: `w${at}`, agent: 'command', status: 'completed', need: 'done',
    needSince: String(at).padStart(5, '0'), durationSeconds: at,
    command: `step ${at} ${'of a long way '.repeat(at % 9)}` });
  const all = Array.from({ length: to - from }, (_, at) => worker(from + at));
  takeFleet({ tasks: {}, workers: Object.fromEntries(all.map((one) => [`t1/${one.agentInstance}`, one])) });
}"""
#: The rows on the screen, from top to bottom: [key, top, bottom, whether all of its text has room].
_ROWS = """() => {
  const seen = document.getElementById('main').getBoundingClientRect();
  return [...document.querySelectorAll('.virtual [data-key]')].map((one) => {
    const { top, bottom } = one.getBoundingClientRect();
    return [one.dataset.key, top, bottom, one.scrollHeight <= one.clientHeight + 1];
  }).filter(([, top, bottom]) => bottom > seen.top && top < seen.bottom).sort((a, b) => a[1] - b[1]);
}"""
_GO = "(path) => pageModule('js/router.js').then(({ go }) => go(path))"
#: Draws a view with an effect, then the same of something else, then nothing; tells what has ended right behind each.
_EFFECTS = """async () => {
  const { html, render, useEffect } = await pageModule('js/dom.js');
  const told = [];
  const View = ({ of }) => {
    useEffect(() => {
      told.push(`${of} begins`);
      return () => told.push(`${of} ends`);
    }, [of]);
  };
  const box = document.createElement('div');
  const pause = () => new Promise((go) => setTimeout(go, 200));
  for (const of of ['a', 'a', 'b']) {
    render(html`<${View} of=${of} />`, box);
    told.push(`${of} is shown`);
    await pause();
  }
  render(null, box);
  told.push('nothing is shown');
  await pause();
  return told;
}"""
_SCROLLED = "document.getElementById('main').scrollTop"


def rows(page: Page) -> list[tuple[str, float, float, bool]]:
    """Return the rows on the screen, once they rest."""
    settled(page)
    found: list[tuple[str, float, float, bool]] = page.evaluate(_ROWS)
    return found


def places(page: Page) -> dict[str, float]:
    """Return the upper edge of each row on the screen."""
    return {key: top for key, top, *_ in rows(page)}


def scroll(page: Page, by: int) -> None:
    """Scroll without a pointer: the row that one points at stays by other means."""
    page.evaluate("(by) => document.getElementById('main').scrollBy(0, by)", by)


def tell(page: Page, begin: int, end: int) -> None:
    page.evaluate(_ENDED, [begin, end])
    settled(page)


@pytest.fixture(params=["phone", "wide"])
def listed(task: Task, visiting: Callable[..., Visit], request: pytest.FixtureRequest) -> Page:
    """The list with four hundred workers that have ended, unfolded."""
    options: dict[str, Any] = {"viewport": PHONE if request.param == "phone" else WIDE}
    page = visiting(**options).read_modules().open()
    tell(page, 0, 400)
    group(page, "Done").get_by_role("button").first.click()
    expect(group(page, "Done").get_by_role("listitem").first).to_be_visible()
    leave_lines(page)
    return page


def test_rows_have_the_height_that_they_need_and_are_below_each_other(listed: Page) -> None:
    heights = set()
    for _ in range(12):
        scroll(listed, 500)
        found = rows(listed)
        assert len(found) > 5
        assert all(is_whole for *_, is_whole in found)
        assert all(abs(above[2] - below[1]) < 1 for above, below in pairwise(found)), found
        heights |= {round(bottom - top) for _, top, bottom, _ in found}
    is_phone = listed.viewport_size == PHONE
    assert len(heights) >= 3 if is_phone else heights == {34}, heights


def test_what_is_read_moves_as_far_as_one_scrolls(listed: Page) -> None:
    """Also upwards from the middle of a list, over rows that were never drawn."""
    scroll(listed, 12_000)
    before = places(listed)
    for _ in range(25):
        scroll(listed, -200)
        after = places(listed)
        same = before.keys() & after.keys()
        assert same
        assert {round(after[key] - before[key]) for key in same} == {200}
        before = after


def test_what_is_read_stays_while_rows_come_above_it(listed: Page) -> None:
    scroll(listed, 3000)
    before = places(listed)
    tell(listed, 400, 420)
    expect(group(listed, "Done")).to_contain_text("420")
    after = places(listed)
    assert before.keys() == after.keys()
    assert all(abs(after[key] - before[key]) <= 1 for key in before)


def test_new_rows_are_seen_at_the_top(listed: Page) -> None:
    tell(listed, 400, 403)
    expect(group(listed, "Done")).to_contain_text("403")
    assert list(places(listed))[:4] == ["t1/w402", "t1/w401", "t1/w400", "t1/w399"]


def test_one_comes_back_to_the_same_rows(listed: Page) -> None:
    scroll(listed, 4000)
    before = places(listed)
    key = list(before)[len(before) // 2]
    listed.locator(f'[data-key="{key}"] a').first.click()
    expect(listed.get_by_role("heading", level=1)).to_contain_text(key.partition("/")[2])
    listed.go_back()
    expect(listed.locator(f'[data-key="{key}"]')).to_be_in_viewport()

    def are_back(after: dict[str, float]) -> bool:
        return key in after and all(abs(after[one] - before[one]) <= 1 for one in before.keys() & after.keys())

    wait_until(lambda: places(listed), accept=are_back, what="the rows where they were")


@pytest.mark.parametrize("tab", ["output", "transcript"])
def test_one_comes_back_to_the_same_rows_from_a_text_that_follows(
    task: Task, visit: Visit, tmp_path: Path, tab: str
) -> None:
    lines = "\n".join(f"me.assistant({{'type': 'text', 'text': 'line {number}'}})" for number in range(60))
    agent(plays(tmp_path, f"print('a\\n' * 400, flush=True)\n{lines}\nme.waiting['hang'] = 'hang'\n"), name="agent")
    page = visit.read_modules().open()
    tell(page, 0, 400)
    group(page, "Done").get_by_role("button").first.click()
    expect(group(page, "Done").get_by_role("listitem").first).to_be_visible()
    leave_lines(page)
    scroll(page, 4000)
    before = places(page)
    page.evaluate(_GO, f"/tasks/t1/workers/agent/{tab}")
    expect(page.get_by_role("heading", level=1)).to_contain_text("agent")
    wait_until(lambda: page.evaluate(_SCROLLED), accept=lambda at: at > 500, what="its end")
    page.go_back()
    expect(group(page, "Done")).to_be_visible()
    wait_until(lambda: places(page), accept=lambda found: found == before, what="the rows that one left")


def test_an_effect_is_over_before_the_next_thing_is_shown(task: Task, visit: Visit) -> None:
    told = visit.read_modules().open().evaluate(_EFFECTS)
    assert told == [
        "a is shown", "a begins", "a is shown", "a ends", "b is shown", "b begins", "b ends", "nothing is shown",
    ]  # fmt: skip
