"""At stake: everything can be done by keys alone, and no key does anything that nobody meant."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.agent_steps import agent, blocked, ends, plays
from tests.page.seen import question, row, says, settled, typed, until_said
from tests.page.visiting import Visit
from tests.page.world import WORKER_TABS, populate
from tests.steps import Task, spawn
from tests.support import run, wait_until, worker

#: Each key of the help, and the test that presses it: whoever adds a key adds it here.
PRESSED = {
    "n / t Esc ?": "test_everywhere",
    "j ↓ k ↑ g Home G End Enter o Tab": "test_lists",
    "1 9 i D": "test_questions",
    "a": "tests/page/test_texts.py, test_an_edit_is_allowed_by_its_diff_and_its_arguments_are_a_key_away",
    "x p s r C": "test_a_worker",
    "v y d [ ]": "test_what_is_known_of_a_worker",
    "l → h ← * f": "tests/page/test_tree.py, test_by_keys_alone",
    "m w": "test_texts",
    "m M": "tests/page/test_marks.py, test_a_key_acts_on_what_is_marked_and_names_it_before and the one behind it",
    "c b": "tests/page/test_diff.py, test_since_the_last_turn_and_by_keys",
    "J K V": "tests/page/test_diff.py, test_many_files_have_a_list_beside_them",
}


def dialog_of(page: Page, name: str | re.Pattern[str]) -> None:
    expect(page.get_by_role("dialog", name=name)).to_be_visible()


def pressed_in_dialog(page: Page, name: str) -> None:
    """Press Enter once the dialog has put the focus on a button."""
    expect(page.get_by_role("dialog").get_by_role("button", name=name)).to_be_focused()
    page.keyboard.press("Enter")


def no_dialog(page: Page) -> None:
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_the_help_has_the_keys_that_are_tested(task: Task, visit: Visit) -> None:
    page = visit.open()
    page.keyboard.press("?")
    dialog_of(page, "Keys")
    shown = page.get_by_role("dialog").locator("dt kbd").all_inner_texts()
    assert sorted(shown) == sorted(key for keys in PRESSED for key in keys.split())
    page.get_by_role("dialog").get_by_role("button", name="Close").click()
    no_dialog(page)


def test_everywhere(task: Task, visit: Visit) -> None:
    spawn(worker("sleeps", 60), name="works")
    page = visit.open()
    expect(row(page, "works")).to_be_visible()
    page.keyboard.press("n")
    dialog_of(page, "New worker")
    page.keyboard.press("Escape")
    no_dialog(page)
    page.keyboard.press("/")
    field = page.get_by_role("searchbox", name="Filter the workers")
    expect(field).to_be_focused()
    page.keyboard.type("s:failed")
    expect(row(page, "works")).to_have_count(0)
    expect(page.get_by_role("main")).to_contain_text("No worker fits the filter")
    page.keyboard.press("Escape")
    expect(field).to_have_value("")
    expect(row(page, "works")).to_be_visible()
    page.keyboard.press("Escape")
    expect(field).not_to_be_focused()
    page.keyboard.press("t")
    expect(page).to_have_url(re.compile("/tree$"))
    page.keyboard.press("t")
    expect(row(page, "works")).to_be_visible()
    page.keyboard.press("?")
    dialog_of(page, "Keys")
    page.keyboard.press("Escape")
    no_dialog(page)
    visit.go("/tasks/t1/workers/works/why")
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox", name="Search all tasks")).to_be_focused()


#: Presses a key the moment a dialog is closed, before the browser tells so: what was typed in has the focus until then.
_BEFORE_IT_IS_TOLD = """() => {
  document.querySelector('dialog').close();
  document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key: '/', bubbles: true }));
}"""


def test_right_behind_a_dialog(task: Task, visit: Visit) -> None:
    page = visit.open()
    page.keyboard.press("n")
    expect(page.get_by_role("dialog").locator("textarea")).to_be_focused()
    page.evaluate(_BEFORE_IT_IS_TOLD)
    expect(page.get_by_role("searchbox", name="Filter the workers")).to_be_focused()


#: No frame comes: what the page does in the next one is held until `frames` lets it.
_NO_FRAMES = """() => {
  const [held, request] = [[], window.requestAnimationFrame.bind(window)];
  window.requestAnimationFrame = (one) => held.push(one);
  window.letFrames = () => {
    window.requestAnimationFrame = request;
    held.forEach((one) => request(one));
  };
}"""


def test_two_keys_within_a_frame_are_two(task: Task, visit: Visit) -> None:
    spawn(worker("sleeps", 60), name="a")
    page = visit.open()
    expect(row(page, "a")).to_be_visible()
    page.evaluate(_NO_FRAMES)
    page.keyboard.press("t")
    page.keyboard.press("t")
    page.evaluate("() => letFrames()")
    expect(row(page, "a")).to_be_visible()
    expect(page).to_have_url(re.compile(r"[0-9]/$"))
    page.keyboard.press("t")
    expect(page.get_by_role("main", name="Tree")).to_be_visible()
    page.evaluate(_NO_FRAMES)
    page.keyboard.press("Escape")
    expect(page).to_have_url(re.compile(r"[0-9]/$"))
    page.keyboard.press("t")
    expect(page).to_have_url(re.compile("/tree$"))
    page.evaluate("() => letFrames()")
    visit.go("/tasks/t1/workers/a/diff")
    expect(page.get_by_role("heading", name="a")).to_be_visible()
    page.evaluate(_NO_FRAMES)
    page.keyboard.press("]")
    page.keyboard.press("]")
    page.evaluate("() => letFrames()")
    at_tab(page, "questions")


#: The browser carries out steps back once it is told so; it may take several as one.
_STEPS_AS_ONE = """() => {
  let steps = 0;
  window.history.back = () => { steps -= 1; };
  window.carryOut = () => {
    history.go(steps);
    steps = 0;
  };
}"""


def test_escape_leaves_nothing_but_what_the_page_has_shown(task: Task, visit: Visit) -> None:
    spawn(worker("sleeps", 60), name="a")
    page = visit.open()
    page.evaluate(_STEPS_AS_ONE)
    for _ in range(3):  # To the tree, to the list, to the tree.
        page.keyboard.press("t")
    for _ in range(2):
        page.keyboard.press("Escape")
    page.evaluate("() => carryOut()")
    page.wait_for_function("() => history.state.depth === 1")
    settled(page)
    for _ in range(3):
        page.keyboard.press("Escape")
    page.evaluate("() => carryOut()")
    expect(row(page, "a")).to_be_visible()
    expect(page).to_have_url(re.compile(r"[0-9]/$"))


#: Presses a key the moment the page has drawn itself, before that is painted.
_AT_ONCE = """
new MutationObserver((_, observer) => {
  if (!document.getElementById('main')) return;
  observer.disconnect();
  document.body.dispatchEvent(new KeyboardEvent('keydown', { key: '?', bubbles: true }));
}).observe(document, { childList: true, subtree: true });
"""


#: Presses a key, and says whether a dialog is open before the next frame: what is typed behind it is no other key.
_OPENS_AT_ONCE = """async () => {
  let isPainted = false;
  requestAnimationFrame(() => { isPainted = true; });
  document.body.dispatchEvent(new KeyboardEvent('keydown', { key: '?', bubbles: true }));
  for (let turn = 0; turn < 100; turn += 1) await null;
  return !isPainted && Boolean(document.querySelector('dialog[open]'));
}"""


def test_a_dialog_opens_before_the_next_key(task: Task, visit: Visit) -> None:
    assert visit.open().evaluate(_OPENS_AT_ONCE)


def test_a_key_before_the_first_frame(task: Task, visit: Visit) -> None:
    visit.context.add_init_script(_AT_ONCE)
    dialog_of(visit.open(), "Keys")


#: Writes into the field of the search the moment that it is there; returns what is in it after the next frame.
_WRITES_AT_ONCE = """async () => {
  const written = new Promise((done) => new MutationObserver((_, observer) => {
    const field = document.getElementById('search-text');
    if (!field) return;
    observer.disconnect();
    field.value = 'early';
    field.dispatchEvent(new InputEvent('input', { bubbles: true }));
    done(field);
  }).observe(document.body, { childList: true, subtree: true }));
  document.querySelector('a[href="/search"]').click();
  const field = await written;
  for (let frame = 0; frame < 3; frame += 1) await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  return field.value;
}"""


def test_what_is_written_before_the_first_frame_stays(task: Task, visit: Visit) -> None:
    assert visit.open().evaluate(_WRITES_AT_ONCE) == "early"


def test_lists(task: Task, visit: Visit) -> None:
    for name in ("a", "b", "c"):
        spawn(worker("sleeps", 60), name=name)
        task.has("agent.started", name)
    page = visit.open()
    expect(row(page, "c")).to_be_visible()

    def at(name: str) -> None:
        expect(row(page, name).get_by_role("link")).to_be_focused()

    for key, name in (
        ("j", "a"), ("j", "b"), ("ArrowDown", "c"), ("j", "c"), ("k", "b"), ("ArrowUp", "a"), ("G", "c"), ("g", "a"),
        ("End", "c"), ("Home", "a"),
    ):  # fmt: skip
        page.keyboard.press(key)
        at(name)
    page.keyboard.press("j")
    at("b")
    page.keyboard.press("o")
    expect(page.get_by_role("heading", level=1)).to_contain_text("b")
    page.keyboard.press("Escape")
    at("b")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("b")
    page.keyboard.press("Escape")
    at("b")
    page.keyboard.press("Tab")
    expect(row(page, "b").get_by_role("link")).not_to_be_focused()


def asked(tmp_path: Path) -> None:
    """Ask in four ways."""
    spawn(worker("asks", "--kind", "confirm", "Delete the old logs?"), name="confirms")
    blocked("confirms")
    spawn(worker("asks", "--kind", "input", "Which branch?"), name="writes")
    blocked("writes")
    agent(plays(tmp_path, "me.ask('Bash', {'command': 'ls'}, lambda answer: me.answer(answer.get('message', '')))"))
    blocked()
    options = ", ".join(f"'o{number}'" for number in range(1, 10))
    agent(plays(tmp_path, f"""
options = [{{"label": label, "description": ""}} for label in ({options})]
one = {{"question": "Which?", "header": "W", "options": options, "multiSelect": False}}
me.ask("AskUserQuestion", {{"questions": [one]}}, "question")
"""), name="nine")  # fmt: skip
    blocked("nine")


def test_questions(task: Task, visit: Visit, tmp_path: Path) -> None:
    asked(tmp_path)
    page = visit.open()
    page.keyboard.press("j")
    expect(row(page, "confirms")).to_be_focused()
    typed(page, "1", "Answered confirms: Yes")
    expect(row(page, "writes")).to_be_focused()
    page.keyboard.press("i")
    expect(question(page, "writes").get_by_role("textbox")).to_be_focused()
    page.keyboard.type("n1D")
    page.keyboard.press("Escape")
    expect(row(page, "writes")).to_be_focused()
    expect(question(page, "writes").get_by_role("textbox")).to_have_value("n1D")
    page.keyboard.press("i")
    page.keyboard.press("Enter")
    says(page, "Answered writes: n1D")
    row(page, "a").focus()
    page.keyboard.press("D")
    expect(question(page, "a").get_by_role("textbox", name="Why it is denied")).to_be_focused()
    page.keyboard.type("not here")
    page.keyboard.press("Escape")
    expect(row(page, "a")).to_be_focused()
    page.keyboard.press("D")
    expect(question(page, "a").get_by_role("textbox", name="Why it is denied")).to_be_focused()
    until_said(page, lambda: page.keyboard.press("Enter"), re.compile("Answered a: denied"))
    row(page, "nine").focus()
    typed(page, "9", "Answered nine: o9")
    assert "answer: yes" in (run("wait", "confirms"), run("logs", "confirms"))[1].out
    assert "answer: n1D" in (run("wait", "writes"), run("logs", "writes"))[1].out
    assert "not here" in ends()["result"]["finalMessage"]
    assert ends("nine")["result"]["finalMessage"] == "o9"


def test_a_worker(task: Task, visit: Visit) -> None:
    visit.context.grant_permissions(["clipboard-read", "clipboard-write"])
    spawn(worker("sleeps", 60), name="works")
    page = visit.open()
    expect(row(page, "works")).to_be_visible()
    page.keyboard.press("G")
    expect(row(page, "works").get_by_role("link")).to_be_focused()
    page.keyboard.press("p")
    expect(row(page, "works")).to_contain_text("paused")
    page.keyboard.press("p")
    expect(row(page, "works")).not_to_contain_text("paused")
    page.keyboard.press("s")
    dialog_of(page, "Send to works")
    page.keyboard.type("hello, xpvn")
    page.keyboard.press("Control+Enter")
    says(page, re.compile("Sent to works|The message is there"))
    expect(row(page, "works").get_by_role("link")).to_be_focused()
    page.keyboard.press("C")
    says(page, "Copied: works --task t1")
    assert page.evaluate("navigator.clipboard.readText()") == "works --task t1"
    page.keyboard.press("x")
    dialog_of(page, "Cancel works?")
    expect(page.get_by_role("dialog").get_by_role("button", name="Cancel it")).to_be_focused()
    page.keyboard.press("Escape")
    expect(row(page, "works").get_by_role("link")).to_be_focused()
    page.keyboard.press("x")
    pressed_in_dialog(page, "Cancel it")
    says(page, re.compile("works.* cancelled; nothing of it is left"))
    expect(row(page, "works")).to_contain_text("cancelled")  # The stream tells it a moment after the answer.
    page.keyboard.press("r")
    dialog_of(page, "Try works again?")
    pressed_in_dialog(page, "Try again")
    says(page, re.compile("Started works"))


def test_a_further_run_that_would_be_refused_is_not_offered(task: Task, visit: Visit) -> None:
    """What continues an earlier run is no work of its own."""
    agent("say one", name="a")
    ends()
    run("resume", "a", "say two")
    ends("a-1")
    page = visit.open()
    expect(row(page, "a-1")).to_be_visible()
    row(page, "a-1").get_by_role("link").click()
    expect(page.get_by_role("button", name=re.compile("Continue"))).to_be_visible()
    expect(page.get_by_role("button", name=re.compile("Try again"))).to_have_count(0)


def at_tab(page: Page, tab: str) -> None:
    """Wait until a tab of the worker a is shown, and not only its address."""
    current = page.get_by_role("navigation", name="About a").locator("[aria-current=page]")
    expect(current).to_have_text(re.compile(rf"^{tab.capitalize()}"))
    expect(page).to_have_url(re.compile(f"/workers/a/{tab}$"))
    settled(page)


def test_what_is_known_of_a_worker(task: Task, visit: Visit) -> None:
    agent("say All is well.", name="a")
    ends()
    page = visit.open()
    expect(row(page, "a")).to_be_visible()
    page.keyboard.press("g")
    expect(row(page, "a").get_by_role("link")).to_be_focused()
    page.keyboard.press("v")
    says(page, "a counts as seen.")
    page.keyboard.press("y")
    at_tab(page, "why")
    page.keyboard.press("d")
    at_tab(page, "diff")
    place = WORKER_TABS.index("diff")
    page.keyboard.press("]")
    at_tab(page, WORKER_TABS[place + 1])
    page.keyboard.press("[")
    at_tab(page, WORKER_TABS[place])
    page.keyboard.press("[")
    at_tab(page, WORKER_TABS[place - 1])
    for number, tab in enumerate(WORKER_TABS, 1):
        page.keyboard.press(str(number))
        at_tab(page, tab)
    for _ in range(2):
        page.keyboard.press("Escape")
        settled(page)
    expect(page.get_by_role("main", name="Workers by need")).to_be_visible()


def test_texts(task: Task, visit: Visit) -> None:
    spawn(["sh", "-c", f"echo {'word ' * 300}; seq 500; exec sleep 60"], name="prints")
    page = visit.open("/tasks/t1/workers/prints/output")
    expect(page.get_by_role("region", name="stdout of prints")).to_contain_text("500")
    page.keyboard.press("m")
    expect(page.get_by_text(re.compile("^marked at"))).to_be_visible()
    wrap = page.get_by_role("button", name="Wrap")
    was = wrap.get_attribute("aria-pressed")
    page.keyboard.press("w")
    expect(wrap).not_to_have_attribute("aria-pressed", str(was))
    scroll = "document.getElementById('main').scrollTop"
    page.keyboard.press("g")
    wait_until(lambda: page.evaluate(scroll), accept=lambda top: top == 0, what="the beginning")
    page.keyboard.press("j")
    wait_until(lambda: page.evaluate(scroll), what="a step down")
    page.keyboard.press("G")
    wait_until(lambda: page.evaluate(scroll), accept=lambda top: top > 1000, what="the end")
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox", name="Search in all of it")).to_be_focused()


# -- focus -------------------------------------------------------------------------------------------------------------


def test_the_focus_goes_from_top_to_bottom_and_leaves_nothing_out(task: Task, visit: Visit, tmp_path: Path) -> None:
    populate(task, tmp_path)
    page = visit.open()
    expect(row(page, "asks")).to_be_visible()
    seen: list[str] = []
    page.evaluate("document.activeElement.blur()")
    for _ in range(80):
        page.keyboard.press("Tab")
        name = visit.focused()
        if not name:
            break
        seen.append(" ".join(name.split()))
    assert seen[:8] == [
        "To the content", "agentctl: all workers", "By need 3 need you", "Tree", "Search", "Filter the workers",
        "New worker n", "All keys",
    ]  # fmt: skip
    assert "t1/asks" in seen
    assert len(seen) < 80, "the focus does not come to an end"
    assert (
        page.evaluate('document.querySelectorAll(\'[tabindex]:not([tabindex="0"]):not([tabindex="-1"])\').length') == 0
    )


def test_the_focus_is_seen(task: Task, visit: Visit) -> None:
    spawn(worker("sleeps", 60), name="works")
    page = visit.open()
    expect(row(page, "works")).to_be_visible()
    for _ in range(9):
        page.keyboard.press("Tab")
        outline = page.evaluate(
            "(() => { const style = getComputedStyle(document.activeElement);"
            " return style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 1; })()"
        )
        assert outline, visit.focused()


@pytest.mark.parametrize("what", ["New worker", "All keys", "Settings"])
def test_the_focus_comes_back_from_a_dialog(task: Task, visit: Visit, what: str) -> None:
    page = visit.open()
    button = page.get_by_role("banner").get_by_role("button", name=what)
    button.click()
    expect(page.get_by_role("dialog")).to_be_visible()
    for _ in range(40):
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.matches('body, dialog, dialog *')"), visit.focused()
    page.keyboard.press("Escape")
    no_dialog(page)
    expect(button).to_be_focused()


def test_the_skip_link_leads_to_the_content(task: Task, visit: Visit) -> None:
    page = visit.open()
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("Tab")
    link = page.get_by_role("link", name="To the content")
    expect(link).to_be_focused()
    expect(link).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.get_by_role("main")).to_be_focused()


# -- what is typed is no key -------------------------------------------------------------------------------------------

EVERY_KEY = "n/t?jkgGo123456789iDaxpsrvydC[]lh*fmMwcbJKV"


def test_nothing_happens_while_one_types(task: Task, visit: Visit) -> None:
    spawn(worker("asks", "--kind", "input", "Which branch?"), name="writes")
    blocked("writes")
    page = visit.open()
    before = len(visit.requests)
    card = question(page, "writes").get_by_role("textbox")
    for field in (page.get_by_role("searchbox", name="Filter the workers"), card):
        field.click()
        page.keyboard.type(EVERY_KEY)
        expect(field).to_have_value(EVERY_KEY)
        no_dialog(page)
        assert page.url.partition("?")[0] == f"{visit.site.url}/"
        field.fill("")
    page.get_by_role("button", name="New worker").click()
    dialog = page.get_by_role("dialog")
    # What it has fetched by then makes selects of some of its fields.
    expect(dialog.get_by_label(re.compile("^Agent")).get_by_role("option", name="general")).to_be_attached()
    settled(page)
    for field in dialog.get_by_role("textbox").all():
        if not field.is_visible():
            continue
        field.click()
        page.keyboard.type(EVERY_KEY)
        expect(field).to_have_value(EVERY_KEY)
    expect(page.get_by_role("dialog")).to_have_count(1)
    settled(page)
    assert [one for one in visit.requests[before:] if not one.startswith("GET ")] == []


def test_keys_of_the_browser_are_left_to_it(task: Task, visit: Visit) -> None:
    spawn(worker("sleeps", 60), name="works")
    page = visit.open()
    row(page, "works").get_by_role("link").focus()
    for key in ("Control+x", "Control+n", "Meta+r", "Alt+x", "Control+Shift+D"):
        page.keyboard.press(key)
    settled(page)
    no_dialog(page)
    assert {one for one in visit.requests if not one.startswith("GET ")} == {"POST /session"}


# -- starting a worker -------------------------------------------------------------------------------------------------


def test_starting_workers_by_keys(task: Task, visit: Visit) -> None:
    page = visit.open()
    page.keyboard.press("n")
    dialog = page.get_by_role("dialog", name="New worker")
    prompt = dialog.get_by_role("textbox", name="What it should do")
    expect(prompt).to_be_focused()
    page.keyboard.press("Control+Enter")
    expect(dialog.get_by_role("alert")).to_contain_text("there is no work for the agent yet")
    expect(prompt).to_be_focused()
    page.keyboard.type("say It was started here.")
    page.reload()
    visit.live()
    page.keyboard.press("n")
    expect(prompt).to_have_value("say It was started here.")
    dialog.get_by_role("textbox", name="Name").fill("typed")
    page.keyboard.press("Control+Enter")
    no_dialog(page)
    says(page, re.compile("typed is (running|queued)"))
    assert ends("typed")["result"]["finalMessage"] == "It was started here."
    page.keyboard.press("n")
    dialog.get_by_label(re.compile("^Agent")).select_option("a command")
    dialog.get_by_role("textbox", name="Command").fill("echo 'one two' | tr o 0")
    dialog.get_by_label("Task").select_option("a new task")
    dialog.get_by_role("textbox", name="Title of the new task").fill("Made here")
    page.keyboard.press("Control+Enter")
    no_dialog(page)
    (made,) = [one for one in run("tasks", "--json").json if one["title"] == "Made here"]
    (name,) = [one["agentInstance"] for one in run("list", "--task", made["taskId"], "--json").json]
    run("wait", name, "--task", made["taskId"])
    assert run("logs", name, "--task", made["taskId"]).out == "0ne tw0\n"


def test_a_list_of_agents_that_did_not_come_decides_nothing(task: Task, visit: Visit) -> None:
    """As when the page is loaded again while the list is on its way: what was typed is still for an agent."""
    page = visit.open()
    page.route("**/agents", lambda route: route.abort())
    page.keyboard.press("n")
    dialog = page.get_by_role("dialog", name="New worker")
    prompt = dialog.get_by_role("textbox", name="What it should do")
    expect(dialog.get_by_role("alert")).to_be_visible()
    prompt.fill("say It was typed without the list.")
    dialog.get_by_label(re.compile("^Agent")).select_option("a command")
    expect(dialog.get_by_role("textbox", name="Command")).to_be_visible()
    dialog.get_by_label(re.compile("^Agent")).select_option("…")
    expect(prompt).to_have_value("say It was typed without the list.")
    page.unroute("**/agents")
    page.reload()
    visit.live()
    page.keyboard.press("n")
    expect(prompt).to_have_value("say It was typed without the list.")
    expect(dialog.get_by_label(re.compile("^Agent"))).to_have_value("general")


def test_what_is_refused_stays_in_the_form(task: Task, visit: Visit, tmp_path: Path) -> None:
    missing = str(tmp_path / "missing")
    page = visit.open()
    page.keyboard.press("n")
    dialog = page.get_by_role("dialog", name="New worker")
    dialog.get_by_label(re.compile("^Agent")).select_option("a command")
    dialog.get_by_role("textbox", name="Command").fill("true")
    dialog.get_by_role("textbox", name="Folder").fill(missing)
    page.keyboard.press("Control+Enter")
    expect(dialog.get_by_role("alert")).to_contain_text(missing)
    expect(dialog.get_by_role("textbox", name="Command")).to_have_value("true")
    dialog.get_by_text("More options").click()
    dialog.get_by_role("textbox", name="Folder").fill("")
    dialog.get_by_role("textbox", name="Priority").fill("high")
    page.keyboard.press("Control+Enter")
    expect(dialog.get_by_role("alert")).to_contain_text("high is not a number")
    expect(dialog.get_by_role("textbox", name="Priority")).to_be_focused()
    assert run("list", "--json").json == []


def test_what_is_pressed_keeps_the_focus_as_its_words_change(task: Task, visit: Visit) -> None:
    spawn(worker("sleeps", 60), name="works")
    page = visit.open("/tasks/t1/workers/works/why")
    main = page.get_by_role("main")
    main.get_by_role("button", name="Pause").focus()
    page.keyboard.press("Enter")
    # The first is that of the head: Why has one, too, as soon as it has been fetched.
    expect(main.get_by_role("button", name="Continue").first).to_be_focused()
    page.keyboard.press("Enter")
    expect(main.get_by_role("button", name="Pause").first).to_be_focused()
