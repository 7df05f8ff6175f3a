"""At stake: whoever looks at the page sees at once who needs them, and comes back to what they saw."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect

from tests.agent_steps import agent, blocked, ends, plays
from tests.page.seen import group, hold, leave_lines, question, row, says, settled
from tests.page.visiting import Visit
from tests.repositories import new_repository
from tests.steps import Task, spawn
from tests.support import PROGRAM, run, wait_until, worker

#: A question whose options are explained, and which takes another answer too.
_CHOICE = """
told = {"Postgres": "It is there already.", "SQLite": "One file, and nothing to run.", "None": ""}
one = {"question": "Which database?", "header": "DB", "multiSelect": False,
       "options": [{"label": name, "description": text} for name, text in told.items()]}
me.ask("AskUserQuestion", {"questions": [one]}, "question")
"""
_CHANGES = "from pathlib import Path\nPath('a.txt').write_text('other\\n')\nme.answer('Done.')\n"


def size(locator: Locator) -> tuple[float, float]:
    """Return how wide and how high something is."""
    box = locator.bounding_box()
    assert box is not None
    return box["width"], box["height"]


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


@pytest.mark.parametrize("by", ["a filter", "unfolding what is over"])
def test_a_reload_comes_back_to_the_place(task: Task, visiting: Callable[..., Visit], by: str) -> None:
    for number in range(12):
        spawn(["true"], "--wait", name=f"w{number}")
    visit = visiting(viewport={"width": 1280, "height": 300})
    page = visit.open()
    if by == "a filter":
        page.get_by_role("searchbox", name="Filter the workers").fill("n:w")
    else:
        group(page, "Done").get_by_role("button").first.click()
    page.mouse.move(600, 250)
    page.mouse.wheel(0, 150)
    top = "document.getElementById('main').scrollTop"
    wait_until(lambda: page.evaluate(top), accept=lambda at: at > 100, what="the list to be scrolled")
    settled(page)
    place = page.evaluate(top)
    wait_until(lambda: page.evaluate("history.state?.scroll"), accept=lambda at: at == place, what="it to rest")
    page.reload()
    expect(row(page, "w3")).to_be_visible()
    wait_until(lambda: page.evaluate(top), accept=lambda at: abs(at - place) < 3, what="the place")


def test_a_question_is_a_card_of_a_readable_width(task: Task, visiting: Callable[..., Visit], tmp_path: Path) -> None:
    agent(plays(tmp_path, _CHOICE), name="database")
    blocked("database")
    visit = visiting(viewport={"width": 1440, "height": 900})
    page = visit.open()
    card = question(page, "database")
    expect(card).to_be_visible()
    width, height = size(card)
    assert width <= 860
    assert height < 190
    option = card.get_by_role("button", name=re.compile("Postgres"))
    expect(option.locator(".about")).to_have_text("It is there already.")
    about, name = option.locator(".about").bounding_box(), option.locator(".foreign").first.bounding_box()
    assert about is not None
    assert name is not None
    assert about["y"] > name["y"]
    expect(card.get_by_role("button", name="None").locator(".about")).to_have_count(0)
    # Another answer is one key away, and what was begun stays open.
    expect(card.get_by_role("textbox")).to_have_count(0)
    row(page, "database").focus()
    page.keyboard.press("i")
    expect(card.get_by_role("textbox", name="Another answer")).to_be_focused()
    page.keyboard.press("Escape")
    expect(card.get_by_role("textbox")).to_have_count(0)
    card.get_by_role("button", name="Other…").click()
    page.keyboard.type("DuckDB")
    page.keyboard.press("Escape")
    expect(card.get_by_role("textbox")).to_have_value("DuckDB")
    page.reload()
    visit.live()
    expect(card.get_by_role("textbox")).to_have_value("DuckDB")
    card.get_by_role("textbox").press("Enter")
    says(page, "Answered database: DuckDB")


def test_a_failure_stays_in_its_group_until_it_was_looked_at(task: Task, visit: Visit) -> None:
    for name in ("lint", "types"):
        spawn(["sh", "-c", "echo 'GPL in a dependency' >&2; exit 1"], "--wait", name=name, check=False)
    page = visit.open()
    expect(group(page, "Failed").get_by_role("listitem")).to_have_count(2)
    row(page, "lint").get_by_role("link").focus()
    page.keyboard.press("v")
    says(page, "lint counts as seen.")
    leave_lines(page)
    expect(group(page, "Failed").get_by_role("listitem")).to_have_count(1)
    row(page, "types").get_by_role("link").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("types")
    page.get_by_role("main").get_by_role("link", name="All").click()
    expect(group(page, "Done")).to_contain_text("2 failed")
    expect(group(page, "Failed")).to_have_count(0)


def test_the_next_step_is_the_blue_one(task: Task, visiting: Callable[..., Visit], tmp_path: Path) -> None:
    new_repository(Path.cwd())
    agent(plays(tmp_path, _CHANGES), "--worktree", name="changed")
    ends("changed")
    spawn(worker("exits", 3), "--wait", name="fails", check=False)
    spawn(worker("asks", "--kind", "confirm", "Really?"), name="asks")
    blocked("asks")
    phone = {"width": 390, "height": 844}
    for options in ({}, {"viewport": phone, "has_touch": True, "is_mobile": True}):
        visit = visiting(**options)
        page = visit.open("/tasks/t1/workers/changed")
        head = page.locator(".worker-head")
        head.get_by_role("button", name="Review diff").click()
        expect(page).to_have_url(re.compile("/changed/diff$"))
        expect(head.locator("button.primary")).to_have_count(0)
        visit.go("/tasks/t1/workers/fails")
        head.get_by_role("button", name="See the error").click()
        expect(page).to_have_url(re.compile("/fails/why$"))
        visit.go("/tasks/t1/workers/asks")
        head.get_by_role("button", name="Answer").click()
        expect(page.locator("article.question")).to_be_focused()
        tabs = page.get_by_role("navigation", name="About asks")
        expect(tabs.get_by_role("link", name="Transcript")).to_have_class("empty-tab")
        expect(tabs.get_by_role("link", name="Questions")).not_to_have_class("empty-tab")
        if options:
            assert size(head)[1] < 160
            expect(tabs).to_have_class(re.compile("more-behind"))
            expect(head.get_by_role("button", name="Cancel")).to_be_hidden()
            head.get_by_role("button", name="More actions").tap()
            page.get_by_role("dialog").get_by_role("button", name="Cancel…").tap()
            expect(page.get_by_role("dialog")).to_contain_text("Cancel asks?")


def test_the_question_gets_the_focus_once_it_is_there(task: Task, visit: Visit) -> None:
    spawn(worker("asks", "--kind", "confirm", "Really?"), name="asks")
    blocked("asks")
    page = visit.open("/")
    release = hold(page, "**/logs?**")
    visit.go("/tasks/t1/workers/asks")
    page.locator(".worker-head").get_by_role("button", name="Answer").click()
    release()
    expect(page.locator("article.question")).to_be_focused()


def test_answer_is_about_the_question_that_was_there(task: Task, visit: Visit, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    ask = shlex.join([*PROGRAM, "interact", "ask", "--kind", "confirm"])
    spawn(["sh", "-c", f"{ask} First?; while ! test -e {gate}; do sleep 0.1; done; {ask} Second?"], name="asks")
    blocked("asks")
    page = visit.open("/")
    release = hold(page, "**/logs?**")
    visit.go("/tasks/t1/workers/asks")
    answer = page.locator(".worker-head").get_by_role("button", name="Answer")
    answer.click()
    run("interact", "respond", "asks", "--id", "q1", "yes")
    expect(answer).to_have_count(0)
    release()
    expect(page.get_by_role("region", name="stdout of asks")).to_be_attached()
    gate.touch()
    expect(page.locator("article.question")).to_contain_text("Second?")
    settled(page)
    expect(page.locator("article.question")).not_to_be_focused()


def test_who_goes_on_is_not_called_to_the_question(task: Task, visit: Visit) -> None:
    spawn(worker("asks", "--kind", "confirm", "Really?"), name="asks")
    blocked("asks")
    page = visit.open("/")
    moves: list[Callable[[], None]] = [lambda: page.keyboard.press("Tab"), lambda: page.mouse.click(640, 700)]
    for go_on in moves:
        release = hold(page, "**/logs?**")
        visit.go("/tasks/t1/workers/asks")
        page.locator(".worker-head").get_by_role("button", name="Answer").click()
        go_on()
        release()
        expect(page.get_by_role("region", name="stdout of asks")).to_be_attached()
        expect(page.locator("article.question")).to_be_visible()
        settled(page)
        expect(page.locator("article.question")).not_to_be_focused()


def test_details_are_in_words(task: Task, visit: Visit) -> None:
    spawn(worker("exits", 3), "--wait", name="fails", check=False)
    page = visit.open("/tasks/t1/workers/fails/details")
    terms = page.locator(".details dt")
    expect(terms.get_by_text("Exit code", exact=True).first).to_be_visible()
    expect(terms.get_by_text("Pause between signals", exact=True)).to_be_visible()
    assert not [one for one in terms.all_inner_texts() if re.search("[a-z][A-Z]", one)]
    assert not {"false", "null", "none"} & set(page.locator(".details dd").all_inner_texts())


def test_a_new_worker_is_for_no_task_that_nobody_chose(task: Task, visit: Visit) -> None:
    run("new", "The newest of somebody", "--id", "newest")
    spawn(worker("sleeps", 60), "--task", "t1", name="build")
    page = visit.open()
    expect(row(page, "build")).to_be_visible()
    page.keyboard.press("n")
    dialog = page.get_by_role("dialog", name="New worker")
    expect(dialog.get_by_role("combobox", name="Task")).to_have_value("+")
    page.keyboard.press("Escape")
    visit.go("/tasks/t1")
    page.keyboard.press("n")
    expect(dialog.get_by_role("combobox", name="Task")).to_have_value("t1")
    dialog.get_by_text("More options").click()
    drivers = dialog.get_by_label("Driver").locator("option")
    expect(drivers.filter(has_text=re.compile("^opencode"))).to_have_count(1)
    expect(dialog.get_by_label("Effort").locator("option")).to_have_text(["by default", "low", "medium", "high"])
    dialog.get_by_label("Permissions").select_option("Rules, in JSON")
    dialog.get_by_role("textbox", name="Rules, in JSON").fill("[]")
    assert dialog.locator("#known-names option").evaluate_all("(all) => all.map((one) => one.value)") == ["build"]
    dialog.get_by_label("Effort").select_option("high")
    dialog.get_by_role("textbox", name="What it should do").fill("say It was thorough.")
    dialog.get_by_role("textbox", name="Name").fill("typed")
    dialog.get_by_label("Permissions").select_option("deny")
    page.keyboard.press("Control+Enter")
    says(page, re.compile("typed is (running|queued)"))
    order = run("show", "typed", "--task", "t1", "--json").json["spec"]["order"]
    assert (order["effort"], order["permissions"][0]["answer"]) == ("high", "deny")
