"""At stake: what a program prints is seen as it would be in a terminal, and any place of it is found again."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.page.seen import said, says, settled
from tests.page.site import Site
from tests.page.visiting import DOUBLED, PHONE, Visit
from tests.steps import Task, spawn
from tests.support import wait_until, worker

#: As a build prints it: grep's colours, a progress bar, a sign that turns, several bars; and what nobody is to see.
COLOURED = (
    r"printf '\033]0;title\007src\033[K:\033[01;31m\033[Kold\033[m\033[K = 25\n';"
    r"printf '\033[?25l\033[2K\033[1G* installing\033[2K\033[1G+ installed\033[?25h\n';"
    r"printf '\033[38;2;255;250;0mtrue\033[0m \033[38;5;196m256\033[m \033[1;4mboth\033[m\n';"
    r"for n in 1 50 100; do printf '\rDownloading %d %%' $n; done"
)


def output(page: Page, stream: str = "stdout", name: str = "prints") -> Locator:
    return page.get_by_role("region", name=f"{stream} of {name}")


def lines(page: Page, stream: str = "stdout") -> list[str]:
    return [line for line in str(output(page, stream).inner_text()).splitlines() if line.strip()]


def test_colours_and_a_progress_bar(task: Task, visit: Visit) -> None:
    spawn(["sh", "-c", f"{COLOURED}; exec sleep 600"], name="prints")
    page = visit.open("/tasks/t1/workers/prints/output")
    expect(output(page)).to_contain_text("100 %")
    assert lines(page) == ["src:old = 25", "+ installed", "true 256 both", "Downloading 100 %"]
    ground, red = (output(page).get_by_text(text, exact=True).evaluate("(one) => getComputedStyle(one).color")
                   for text in ("+ installed", "old"))  # fmt: skip
    assert ground != red
    assert output(page).get_by_text("256").evaluate("(one) => one.style.getPropertyValue('--f')") == "#ff0000"
    expect(output(page).get_by_text("both")).to_have_css("font-weight", "700")
    # Yellow on white would not be seen: colours of a program's own are kept readable on the ground.
    colour = output(page).get_by_text("true").evaluate("(one) => getComputedStyle(one).color")
    assert re.search(r"oklch\(0\.[0-5]", colour), colour
    page.get_by_role("button", name="Raw").click()
    expect(output(page)).to_contain_text("\\x1b[01;31m\\x1b[Kold")
    expect(output(page)).to_contain_text("\\rDownloading 50 %")


def test_the_result_of_a_command_is_the_end_of_its_output_as_a_terminal_shows_it(task: Task, visit: Visit) -> None:
    filler = "seq 3000 | sed 's/^/step /'"
    spawn(["sh", "-c", f"{filler}; {COLOURED}"], "--wait", name="prints")
    page = visit.open("/tasks/t1/workers/prints/result")
    shown = page.locator(".answer")
    expect(shown).to_contain_text("100 %")
    expect(shown).not_to_contain_text("Downloading 50 %")
    said = str(shown.text_content()).splitlines()
    assert said[-5:-1] == ["step 3000", "src:old = 25", "+ installed", "true 256 both"]
    assert said[-1] == "Downloading 100 %"
    expect(shown.get_by_text("both")).to_have_css("font-weight", "700")
    page.locator("p", has_text="Cut: all of it").get_by_role("link", name="Output").click()
    expect(output(page)).to_contain_text("100 %")


#: The result of an output that is too large for a hash.
_NO_HASH = """
const real = window.fetch;
window.fetch = async (...args) => {
  const answer = await real(...args);
  if (!String(args[0]).endsWith('/workers/prints/result')) return answer;
  return new Response(JSON.stringify({ ...await answer.json(), sha256: null }), answer);
};
"""


def test_the_end_of_an_output_that_is_too_large_for_a_hash_goes_on(task: Task, visit: Visit, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    spawn(["sh", "-c", f"echo one; while [ ! -e {gate} ]; do sleep 0.1; done; echo two; exec sleep 600"], name="prints")
    visit.context.add_init_script(_NO_HASH)
    page = visit.open("/tasks/t1/workers/prints/result")
    expect(page.locator(".answer")).to_contain_text("one")
    gate.touch()
    expect(page.locator(".answer")).to_contain_text("two")


def test_an_output_of_which_a_terminal_shows_nothing_says_so(task: Task, visit: Visit) -> None:
    spawn(["sh", "-c", r"printf 'token-elm in work\r\033[K'"], "--wait", name="prints")
    page = visit.open("/tasks/t1/workers/prints/result")
    result = page.locator(".result")
    expect(result).to_contain_text("A terminal shows nothing of it.")
    expect(result).not_to_contain_text("token-elm")
    result.get_by_role("link", name="Output").click()
    page.get_by_role("button", name="Raw").click()
    expect(output(page)).to_contain_text("token-elm in work")


def test_a_progress_bar_is_one_line_while_it_grows(task: Task, visit: Visit, tmp_path: Path) -> None:
    go = tmp_path / "go"
    waits = f"while [ ! -e {go} ]; do sleep 0.1; done"
    spawn(["sh", "-c", rf"printf '\r1 %%'; {waits}; printf '\r99 %%\nend\n'"], name="prints")
    page = visit.open("/tasks/t1/workers/prints/output")
    expect(output(page)).to_contain_text("1 %")
    go.touch()
    expect(output(page)).to_contain_text("end")
    assert lines(page) == ["99 %", "end"]


def test_a_failed_worker_opens_on_what_it_wrote_to_stderr(task: Task, visit: Visit) -> None:
    spawn(["sh", "-c", "echo fine; echo 'GPL in a dependency' >&2; exit 1"], "--wait", name="prints", check=False)
    page = visit.open("/tasks/t1/workers/prints/output")
    expect(output(page, "stderr")).to_contain_text("GPL in a dependency")
    expect(page.get_by_role("button", name="stderr 20 B")).to_have_attribute("aria-pressed", "true")
    page.get_by_role("button", name="both").click()
    both = page.get_by_role("region", name="both streams of prints")
    expect(both).to_contain_text("GPL in a dependency")
    expect(both).to_contain_text("fine")
    expect(both).to_contain_text("Nothing tells in which order these two came")
    expect(page).to_have_url(re.compile("stream=both"))


def test_whoever_follows_is_shown_what_a_failed_worker_wrote_to_stderr(
    task: Task, visit: Visit, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    spawn(["sh", "-c", f"seq 300; while ! test -e {gate}; do sleep 0.1; done; echo why >&2; exit 1"], name="prints")
    page = visit.open("/tasks/t1/workers/prints/output")
    chosen = visit.another("/tasks/t1/workers/prints/output?stream=stdout")
    read = visit.another("/tasks/t1/workers/prints/output")
    for one in (page, chosen, read):
        expect(output(one).get_by_text("300", exact=True)).to_be_in_viewport()
    read.keyboard.press("k")
    expect(read).to_have_url(re.compile("at="))
    gate.touch()
    expect(output(page, "stderr")).to_contain_text("why")
    for one in (chosen, read):
        expect(one.locator(".worker-head")).to_contain_text("failed")
        expect(output(one)).to_be_visible()


def test_both_streams_as_they_come(task: Task, visit: Visit, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    waits = "while [ ! -e {} ]; do sleep 0.1; done"
    script = f"echo one; {waits.format(first)}; echo two >&2; {waits.format(second)}; echo three; exec sleep 600"
    spawn(["sh", "-c", script], name="prints")
    page = visit.open("/tasks/t1/workers/prints/output?stream=both")
    both = page.get_by_role("region", name="both streams of prints")
    for file, text in ((None, "one"), (first, "two"), (second, "three")):
        if file is not None:
            file.touch()
        expect(both).to_contain_text(text)
    assert [line for line in both.inner_text().splitlines() if line.strip()] == [
        "stdout", "one", "stderr", "two", "stdout", "three",
    ]  # fmt: skip


def test_any_place_of_a_large_log(task: Task, visit: Visit, site: Site) -> None:
    spawn(["true"], "--wait", name="prints")
    numbered = b"".join(b"step %08d of the build\n" % number for number in range(5000))
    filler = b"a line like any other line of a long build\n" * 25_000
    with (task.agent("prints") / "stdout.log").open("wb") as file:
        file.write(numbered)
        for _ in range(44):
            file.write(filler)
        file.write(b"\x1b[32mthe last line\x1b[m\n")
    page = visit.open("/tasks/t1/workers/prints/output")
    expect(output(page)).to_contain_text("the last line")
    page.keyboard.press("g")
    expect(output(page).get_by_text("step 00000000 of the build", exact=True)).to_be_in_viewport()
    page.keyboard.press("G")
    expect(output(page).get_by_text("the last line")).to_be_in_viewport()
    field = page.get_by_role("searchbox", name="Search in all of it")
    field.fill("STEP 00000123")
    expect(page.get_by_role("status").filter(has_text="1 of 1 line in")).to_be_visible()
    found = output(page).get_by_text("step 00000123")
    expect(found).to_be_in_viewport()
    expect(found).to_have_css("outline-style", "solid")
    expect(page).to_have_url(re.compile(r"at=[0-9]+"))
    page.reload()
    visit.live()
    expect(output(page).get_by_text("step 00000123")).to_be_in_viewport()
    expect(page.get_by_role("status").filter(has_text="1 of 1 line in")).to_be_visible()
    field.fill("step 0000012")
    expect(page.get_by_role("status").filter(has_text="of 10 lines in")).to_be_visible()
    expect(output(page).locator("mark")).to_have_count(10)
    field.fill("no such words")
    expect(page.get_by_role("status").filter(has_text="not found in")).to_be_visible()
    field.fill("")
    nodes = "() => document.querySelectorAll('*').length"
    for _ in range(12):
        page.get_by_role("main").evaluate("(one) => { one.scrollTop = one.scrollHeight; }")
        page.wait_for_function("() => document.querySelectorAll('.printed').length > 0")
        assert page.evaluate(nodes) < 3000
    expect(page).to_have_url(re.compile("at="))


def long_log(task: Task) -> None:
    """Make a log of several pages."""
    spawn(["true"], "--wait", name="prints")
    text = b"".join(b"step %08d of the build\n" % number for number in range(20_000))
    (task.agent("prints") / "stdout.log").write_bytes(text)


@pytest.mark.parametrize("screen", [PHONE, DOUBLED])
def test_the_tools_are_there_wherever_one_is_on_a_small_screen(
    task: Task, visiting: Callable[..., Visit], screen: dict[str, int]
) -> None:
    long_log(task)
    page = visiting(viewport=screen, has_touch=True).open("/tasks/t1/workers/prints/output")
    expect(output(page)).to_contain_text("step 00019999")
    field = page.get_by_role("searchbox", name="Search in all of it")
    for _ in range(3):
        expect(field).to_be_in_viewport(ratio=1)
        page.get_by_role("main").evaluate("(one) => one.scrollBy(0, -700)")
    box = page.locator(".log-tools").bounding_box()
    assert box
    assert box["height"] < 52
    field.tap()
    page.keyboard.type("step 00000150")
    expect(field).to_be_focused()
    expect(output(page).locator(".current")).to_be_in_viewport()
    expect(page.get_by_role("button", name="Hit below")).to_be_in_viewport(ratio=1)
    page.get_by_role("button", name="Wrap").tap()
    expect(page.get_by_role("button", name="Wrap")).to_have_attribute("aria-pressed", "false")


@pytest.mark.parametrize("tab", ["output", "output?stream=both", "transcript"])
def test_a_question_that_comes_at_the_end_is_seen_there(
    task: Task, visiting: Callable[..., Visit], tmp_path: Path, tab: str
) -> None:
    gate = tmp_path / "gate"
    ask = shlex.join(worker("asks", "--kind", "confirm", "Go on?"))
    says = 'for word in a b c d the-end; do agentctl report message "$(seq -s " " 150) $word"; done'
    spawn(["sh", "-c", f"seq 300; {says}; while ! test -e {gate}; do sleep 0.1; done; exec {ask}"], name="prints")
    page = visiting(viewport=PHONE, has_touch=True).open(f"/tasks/t1/workers/prints/{tab}")
    expect(page.get_by_role("main").get_by_text("the-end" if tab == "transcript" else "300").last).to_be_in_viewport()
    gate.touch()
    expect(page.get_by_role("article").filter(has_text="Go on?")).to_be_in_viewport(ratio=1)


def ask_for_the_beginning(page: Page) -> Route:
    """Press g, and return the question for the beginning, which waits."""
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/logs?**from=0**", hold)
    page.keyboard.press("g")
    return wait_until(lambda: page.evaluate("1") and held, what="the question for the beginning")[0]


def test_an_answer_that_comes_late_moves_nobody(task: Task, visit: Visit) -> None:
    long_log(task)
    page = visit.open("/tasks/t1/workers/prints/output")
    last = output(page).get_by_text("step 00019999 of the build")
    expect(last).to_be_in_viewport()
    asked = ask_for_the_beginning(page)
    page.keyboard.press("G")
    expect(last).to_be_in_viewport()
    with page.expect_event("requestfinished", lambda one: one.url == asked.request.url):
        asked.continue_()
    settled(page)
    expect(last).to_be_in_viewport()
    page.unroute("**/logs?**from=0**")
    page.keyboard.press("g")
    expect(output(page).get_by_text("step 00000000 of the build")).to_be_in_viewport()


def test_a_scroll_of_before_does_not_lead_away_from_the_beginning(task: Task, visit: Visit) -> None:
    """A browser tells of a scroll to the end in the next frame, which may come when one has asked for the beginning."""
    long_log(task)
    page = visit.open("/tasks/t1/workers/prints/output")
    expect(output(page).get_by_text("step 00019999 of the build")).to_be_in_viewport()
    asked = ask_for_the_beginning(page)
    page.get_by_role("main").dispatch_event("scroll")
    settled(page)
    expect(page.get_by_role("button", name="To the end")).to_be_visible()
    asked.continue_()
    expect(output(page).get_by_text("step 00000000 of the build")).to_be_in_viewport()
    settled(page)
    expect(output(page).get_by_text("step 00000000 of the build")).to_be_in_viewport()


def test_what_cannot_be_fetched_is_said(task: Task, visit: Visit) -> None:
    long_log(task)
    page = visit.open("/tasks/t1/workers/prints/output")
    expect(output(page)).to_contain_text("step 00019999")
    page.route("**/logs?**from=0**", lambda route: route.abort())
    page.keyboard.press("g")
    says(page, "Output: the server cannot be reached")
    said(page).get_by_role("button", name="Dismiss").click()
    page.route("**/logs/search?**", lambda route: route.abort())
    field = page.get_by_role("searchbox", name="Search in all of it")
    field.fill("build")
    says(page, "Search: the server cannot be reached")
    expect(page.get_by_role("search").get_by_role("status")).to_have_text("not searched")


def test_both_streams_come_once_the_server_can_be_reached(task: Task, visit: Visit) -> None:
    long_log(task)
    page = visit.open("/tasks/t1/workers/prints/output")
    expect(output(page)).to_contain_text("step 00019999")
    page.route("**/logs?**limit=32768**", lambda route: route.abort())
    page.get_by_role("button", name="both").click()
    expect(page.get_by_role("main").get_by_role("alert")).to_contain_text("the server cannot be reached")
    page.unroute("**/logs?**limit=32768**")
    both = page.get_by_role("region", name="both streams of prints")
    expect(both).to_contain_text("step 00019999")


def test_the_address_is_not_written_at_each_key(task: Task, visit: Visit) -> None:
    long_log(task)
    page = visit.open("/tasks/t1/workers/prints/output")
    expect(output(page)).to_contain_text("step 00019999")
    page.evaluate("""() => {
      const write = history.replaceState.bind(history);
      window.writes = 0;
      history.replaceState = (...given) => { window.writes += 1; write(...given); };
    }""")
    words = "no such words in all of this long text, however long one looks for them"
    begun = time.monotonic()
    page.get_by_role("searchbox", name="Search in all of it").press_sequentially(words, delay=5)
    expect(page).to_have_url(re.compile(r"find=no\+such.*for\+them"))
    # Browsers refuse more than some three in a second.
    assert page.evaluate("window.writes") <= 3 * (time.monotonic() - begun) + 2


_SCROLL = "document.getElementById('main')?.scrollTop"


@pytest.mark.parametrize("tab", ["result", "details", "output?stream=both"])
def test_a_reload_and_back_come_to_the_place(task: Task, visiting: Callable[..., Visit], tab: str) -> None:
    spawn(["sh", "-c", "seq 300 | sed 's/^/step /'; seq 300 >&2"], "--wait", name="prints")
    visit = visiting(viewport={"width": 1000, "height": 300})
    page = visit.open(f"/tasks/t1/workers/prints/{tab}")
    shown = page.get_by_text("step 290" if tab != "details" else "All of it, as JSON")
    expect(shown.first).to_be_attached()
    page.mouse.move(500, 180)  # Above the result, which scrolls by itself.
    page.mouse.wheel(0, -100_000)
    wait_until(lambda: page.evaluate(_SCROLL), accept=lambda at: at == 0, what="the beginning")
    page.mouse.wheel(0, 150)
    wait_until(lambda: page.evaluate("history.state?.scroll"), accept=lambda at: at == 150, what="it to rest")
    page.reload()
    visit.live()
    wait_until(lambda: page.evaluate(_SCROLL), accept=lambda at: at == 150, what="the place")
    page.get_by_role("navigation", name="Views").first.get_by_role("link", name="Tree").click()
    expect(page.get_by_role("tree")).to_be_visible()
    page.go_back()
    expect(shown.first).to_be_attached()
    wait_until(lambda: page.evaluate(_SCROLL), accept=lambda at: at == 150, what="the place")
