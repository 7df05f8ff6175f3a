"""At stake: what a search has found is seen where it leads to: the row in sight, its words marked, after a load too."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.agent_steps import agent, ends, plays
from tests.page.seen import hold, settled
from tests.page.visiting import PHONE, WIDE, Visit, text_of
from tests.steps import Task, spawn, spawn_batch
from tests.support import run, wait_until

#: Texts of all kinds among many others: what one searches for is in the middle of each, or deep within it.
_SCRIPT = """
def block(one, parent=None):
    message = {"id": "msg", "type": "message", "role": "assistant", "model": "none",
               "usage": {"input_tokens": 10, "output_tokens": 10}, "content": [one], "stop_reason": None}
    say(type="assistant", message=message, parent_tool_use_id=parent, session_id=me.session)

def call(id_, name, result, parent=None, **arguments):
    block({"type": "tool_use", "id": id_, "name": name, "input": arguments}, parent)
    if result is not None:
        content = [{"type": "tool_result", "tool_use_id": id_, "content": result}]
        say(type="user", message={"role": "user", "content": content}, parent_tool_use_id=parent, session_id=me.session)

def fill(count):
    for number in range(count):
        block({"type": "text", "text": f"A step of **{number}** that says nothing."})

fill(120)
block({"type": "text", "text": "Then the **cedar** stands\\nbeside a `cedar`."})
fill(60)
call("b", "Bash", "\\n".join(f"line {n}" for n in range(30)) + "\\nthe last one is a \\x1b[32mbirch\\x1b[m\\n",
     command="ls trees", description="Look at the trees")
for number in range(4):
    call(f"r{number}", "Read", "nothing", file_path=f"src/{'maple' if number == 2 else 'other'}-{number}.ts")
block({"type": "tool_use", "id": "s", "name": "Task",
       "input": {"description": "Look around", "subagent_type": "explore", "prompt": "Look around"}})
call("s1", "Grep", "no match", "s", pattern="juniper")
say(type="user", message={"role": "user", "content": [
    {"type": "tool_result", "tool_use_id": "s", "content": "Nothing there."}]}, parent_tool_use_id=None,
    session_id=me.session)
fill(60)
block({"type": "text", "text": "A long one. " + "word " * 3000 + "\\n\\nAnd an acacia.\\n\\n" + "more " * 2000})
fill(60)
"""
#: The texts that the browser marks, and whether the first one of them is on the screen.
_MARKED = """() => {
  const ranges = [...(CSS.highlights.get('found') ?? [])];
  const seen = document.getElementById('main').getBoundingClientRect();
  const box = ranges[0]?.getBoundingClientRect();
  return [ranges.map(String), Boolean(box) && box.height > 0 && box.top >= seen.top && box.bottom <= seen.bottom];
}"""

#: The marked texts that are on the screen.
_IN_SIGHT = """() => {
  const seen = document.getElementById('main').getBoundingClientRect();
  const isSeen = (box) => box.height > 0 && box.top >= seen.top && box.bottom <= seen.bottom;
  return [...(CSS.highlights.get('found') ?? [])].filter((one) => isSeen(one.getBoundingClientRect())).map(String);
}"""


def found(page: Page) -> Locator:
    """Return the row that the search has found."""
    return page.get_by_role("log").locator("[aria-current=true]")


def marked(page: Page, *texts: str) -> None:
    """Wait until these are marked, and the first one is seen."""
    wait_until(lambda: page.evaluate(_MARKED), accept=lambda now: now == [list(texts), True], what="marks in sight")


def seen(page: Page, text: str) -> None:
    """Wait until a mark with this text is on the screen."""
    wait_until(lambda: page.evaluate(_IN_SIGHT), accept=lambda texts: text in texts, what=f"{text} in sight")


def larches(task: Task, count: int) -> None:
    """Start workers whose command has the word, one of each, and wait for their ends."""
    spawn_batch([{"name": f"larch-{number}", "argv": ["true", f"larch {number}"]} for number in range(count)])
    task.ended(*(f"larch-{number}" for number in range(count)))


def at_a_hit(visit: Visit, steps: int) -> str:
    """Search, go down by so many hits, and open the one that is there; return what it says."""
    page = visit.open("/search?q=larch")
    page.get_by_role("listitem").first.wait_for()
    for _ in range(steps):
        page.keyboard.press("j")
    said = text_of(page.locator(".hit a:focus"))
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/workers/larch-"))
    return said


@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
def test_a_hit_in_a_transcript_is_marked_and_in_sight(
    task: Task, tmp_path: Path, visiting: Callable[..., Visit], size: dict[str, int]
) -> None:
    agent(plays(tmp_path, _SCRIPT + "me.answer('The elm is an answer.')\n"), name="a")
    ends("a")
    visit = visiting(viewport=size)
    page = visit.page
    hits = {
        "cedar": ("cedar", "cedar"), "birch": ("birch",), "maple": ("maple", "maple"),
        "juniper": ("juniper", "juniper"), "acacia": ("acacia",),
    }  # fmt: skip
    for word, texts in hits.items():
        visit.open(f"/search?q={word}")
        page.get_by_role("listitem").get_by_role("link").first.click()
        expect(page).to_have_url(re.compile(rf"/transcript\?at=[0-9]+&find={word}$"))
        marked(page, *texts)
        expect(found(page)).to_have_count(1)
        address = page.url
        page.reload()
        visit.live()
        marked(page, *texts)
        expect(found(page)).to_be_in_viewport()
        assert page.url == address
    page.get_by_role("button", name="To the end").click()
    expect(page.get_by_text("The elm is an answer.").last).to_be_in_viewport()
    expect(page).not_to_have_url(re.compile("at="))  # It is not written at each scroll.


def test_a_search_says_what_it_counts(task: Task, tmp_path: Path, visit: Visit) -> None:
    said = 'for _ in range(8):\n    block({"type": "text", "text": "A larch."})\n'
    for name in ("a", "b"):
        agent(plays(tmp_path, _SCRIPT + said + "me.answer('No.')\n"), name=name)
        ends(name)
    page = visit.open("/search?q=larch")
    expect(page.get_by_role("status").filter(has_text="16 lines in 2 workers")).to_be_visible()
    expect(page.get_by_role("listitem").filter(has_text="3 more lines of this worker")).to_have_count(2)


def test_every_word_of_a_search_is_marked(task: Task, tmp_path: Path, visit: Visit) -> None:
    agent(plays(tmp_path, "me.answer('A **rowan** beside t:yew, and a rowan.')\n"), name="a")
    ends("a")
    page = visit.open("/search?q=t:yew+Rowan")
    page.get_by_role("listitem").filter(has_text="result").get_by_role("link").first.click()
    marked(page, "rowan", "t:yew", "rowan")


def test_back_from_a_hit_is_at_the_hit(task: Task, visiting: Callable[..., Visit]) -> None:
    larches(task, 20)
    visit = visiting(viewport=PHONE)
    page = visit.open("/search?q=larch")
    page.get_by_role("listitem").first.wait_for()
    page.keyboard.press("G")
    for _ in range(14):
        page.keyboard.press("k")
    hit = page.locator(".hit a:focus")
    expect(hit).to_be_in_viewport()
    settled(page)  # Rows get their heights in the next frames.
    said, place = hit.inner_text(), page.evaluate("document.getElementById('main').scrollTop")
    assert place > 500
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/workers/larch-"))
    page.go_back()
    expect(page.locator(".hit a:focus")).to_have_text(re.compile(re.escape(said.splitlines()[0])))
    wait_until(lambda: page.locator(".hit a:focus").inner_text(), accept=lambda told: told == said, what="all of it")
    wait_until(
        lambda: page.evaluate("document.getElementById('main').scrollTop"),
        accept=lambda at: abs(at - place) < 2, what="the place that one left",
    )  # fmt: skip


def test_back_from_a_hit_is_at_it_where_more_was_found_meanwhile(task: Task, visit: Visit) -> None:
    larches(task, 6)
    said = at_a_hit(visit, 4)
    run("new", "A larch", "--id", "newer")
    spawn(["true", "larch"], "--wait", "--task", "newer", name="first")
    visit.page.go_back()
    expect(visit.page.get_by_role("listitem").filter(has_text="first")).not_to_have_count(0)
    expect(visit.page.locator(".hit a:focus")).to_have_count(1)
    assert visit.page.locator(".hit a:focus").inner_text() == said


def test_back_from_a_hit_that_is_gone_is_at_no_other(task: Task, visit: Visit) -> None:
    larches(task, 6)
    said = at_a_hit(visit, 4)
    run("rm", said.split()[0], "--yes")
    visit.page.go_back()
    visit.page.get_by_role("listitem").first.wait_for()
    settled(visit.page)
    expect(visit.page.locator(".hit a:focus")).to_have_count(0)


def test_back_takes_the_focus_from_nobody_who_types(task: Task, visit: Visit) -> None:
    larches(task, 6)
    at_a_hit(visit, 4)
    page = visit.page
    release = hold(page, "**/api/v1/search?**")
    page.go_back()
    field = page.get_by_role("searchbox", name="Search all tasks")
    field.click()
    field.press("End")
    page.keyboard.type(" mo")
    release()
    page.get_by_role("listitem").first.wait_for()
    settled(page)
    expect(field).to_be_focused()
    page.keyboard.type("n")
    expect(field).to_have_value("larch mon")


def test_what_was_found_is_in_sight_and_not_another_word_above_it(task: Task, tmp_path: Path, visit: Visit) -> None:
    """The agent of a worker stands above its prompt; and a word may stand somewhere more often than is marked."""
    agent("One.\n\n" * 90 + "Deep here an elm stands, with a claude beside it.", name="asked")
    ends("asked")
    agent(plays(tmp_path, "me.answer('a ' * 1050 + '\\n\\nOne.' * 60 + '\\n\\nAn elm.')\n"), name="answers")
    ends("answers")
    page = visit.open("/search?q=elm+claude")
    page.locator(".hit a[href*='/asked/details?find=elm']").first.click()
    seen(page, "elm")
    visit.go("/tasks/t1/workers/answers/result?find=elm&find=a")
    seen(page, "elm")


def test_a_hit_in_another_view_is_marked_there(task: Task, tmp_path: Path, visit: Visit) -> None:
    agent(plays(tmp_path, "me.answer('One.\\n\\n' * 60 + 'An **elm** of an answer.')\n"), name="a")
    ends("a")
    page = visit.open("/search?q=elm")
    page.get_by_role("listitem").filter(has_text="result").get_by_role("link").first.click()
    marked(page, "elm")
    page.get_by_role("navigation", name="About a").get_by_role("link", name="Why").click()
    assert page.evaluate("CSS.highlights.size") == 0
