"""At stake: the tree has every task, worker and sub-agent in its place; what is alive is open, the rest is folded."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.agent_steps import agent, plays
from tests.page.seen import row, tree_item, tree_lines, unfold
from tests.page.visiting import Visit
from tests.steps import Task, spawn
from tests.support import run, worker

#: An agent with a sub-agent, which has one itself, and calls in each; it goes on until it is cancelled.
NESTED = """
def begin(name, arguments, call, parent=None):
    block({"type": "tool_use", "id": call, "name": name, "input": arguments}, parent)

def end(call, result, parent=None):
    content = [{"type": "tool_result", "tool_use_id": call, "content": result}]
    say(type="user", message={"role": "user", "content": content}, parent_tool_use_id=parent, session_id=me.session)

def block(one, parent=None):
    message = {"id": "msg", "type": "message", "role": "assistant", "model": "none",
               "usage": {"input_tokens": 1, "output_tokens": 1}, "content": [one], "stop_reason": None}
    say(type="assistant", message=message, parent_tool_use_id=parent, session_id=me.session)

begin("Task", {"description": "Find sessions", "subagent_type": "explore", "prompt": "Find sessions"}, "a1")
begin("Grep", {"pattern": "createSession"}, "b1", "a1")
end("b1", "src/session.ts:31", "a1")
begin("Task", {"description": "Read one file", "subagent_type": "reader", "prompt": "Read one file"}, "a2", "a1")
begin("Read", {"file_path": "src/session.ts"}, "b2", "a2")
end("b2", "the file", "a2")
end("a2", "It was read.", "a1")
end("a1", "Three places.")
begin("Bash", {"command": "npm test"}, "b3")
me.waiting["hang"] = "hang"
"""


def opened(page: Page, *names: str) -> None:
    """Open lines by a click on what is before them."""
    for name in names:
        unfold(page, name)


def labels(page: Page) -> list[str]:
    return [line["label"] for line in tree_lines(page)]


def folded(page: Page, name: str) -> None:
    """Fold a line by a click on what is before it."""
    tree_item(page, name).locator(".twist").click()
    expect(tree_item(page, name)).to_have_attribute("aria-expanded", "false")


def test_what_is_alive_is_open_and_a_fold_stays(task: Task, visit: Visit, tmp_path: Path) -> None:
    run("new", "Over", "--id", "over")
    spawn(worker("exits", 0), "--wait", "--task", "over", name="ended")
    run("new", "Asking", "--id", "asking")
    spawn(worker("asks", "--kind", "confirm", "Really?"), "--task", "asking", name="asker")
    gate = tmp_path / "gate"
    spawn(worker("exits", 0, "--after-file", gate), "--task", "t1", name="works")
    page = visit.open("/tree")
    expect(tree_item(page, "asker")).to_be_visible()
    expect(tree_item(page, "works")).to_be_visible()
    expect(tree_item(page, "over")).to_have_attribute("aria-expanded", "false")
    folded(page, "asking")
    gate.touch()
    expect(tree_item(page, "works")).to_contain_text("completed")
    page.reload()
    expect(tree_item(page, "works")).to_be_visible()
    expect(tree_item(page, "asking")).to_have_attribute("aria-expanded", "false")


def test_it_opens_level_by_level(task: Task, visit: Visit, tmp_path: Path) -> None:
    agent(plays(tmp_path, NESTED))
    spawn(worker("exits", 3), "--wait", name="fails", check=False)
    page = visit.open("/tree")
    expect(page.get_by_role("treeitem")).to_have_count(3)
    top = tree_item(page, "t1")
    folded(page, "t1")
    expect(page.get_by_role("treeitem")).to_have_count(1)
    expect(top).to_contain_text(re.compile(r"1\s*run"))
    expect(top).to_contain_text(re.compile(r"1\s*failed"))
    opened(page, "t1")
    expect(top).not_to_contain_text("failed")
    expect(page.get_by_role("treeitem")).to_have_count(3)
    expect(tree_item(page, "a")).to_have_attribute("aria-expanded", "false")
    expect(tree_item(page, "a")).to_contain_text(re.compile(r"\d+s\s*$"))
    assert tree_item(page, "fails").get_attribute("aria-expanded") is None
    opened(page, "a")
    expect(tree_item(page, "Find sessions")).to_contain_text("explore")
    expect(tree_item(page, "Bash npm test")).to_be_visible()
    assert "Grep createSession" not in labels(page)
    expect(tree_item(page, "Find sessions")).to_have_attribute("aria-expanded", "false")
    opened(page, "Find sessions", "Read one file")
    expect(tree_item(page, "Read src/session.ts")).to_be_visible()
    levels = {line["label"]: line["level"] for line in tree_lines(page)}
    wanted = {"t1": 1, "a": 2, "Find sessions": 3, "Grep createSession": 4, "Read one file": 4}
    assert {name: levels.get(name) for name in wanted} == wanted
    assert levels["Read src/session.ts"] == 5
    tree_item(page, "Find sessions").locator(".twist").click()
    expect(tree_item(page, "Grep createSession")).to_have_count(0)
    expect(tree_item(page, "Bash npm test")).to_be_visible()


def test_a_row_has_the_words_of_an_agent_and_not_its_markdown(task: Task, visit: Visit, tmp_path: Path) -> None:
    said = "## What I found: **three** of `x`\n- [one](http://d.org/y)"
    agent(plays(tmp_path, f"me.assistant({{'type': 'text', 'text': {said!r}}})\nme.waiting['hang'] = 'hang'\n"))
    spawn(worker("asks", "--kind", "confirm", "Delete the **old** `logs`?"), name="asks")
    spawn(["sh", "-c", "# **a** `b`\nexec sleep 600"], name="c")
    words = "What I found: three of x: • one (d.org)"
    page = visit.open()
    expect(row(page, "a")).to_contain_text(words)
    expect(row(page, "c")).to_contain_text("**a** `b`")
    page = visit.open("/tree")
    opened(page, "t1", "a")
    expect(tree_item(page, "a")).to_contain_text(words)
    expect(tree_item(page, words)).to_be_visible()
    expect(tree_item(page, "asks")).to_contain_text("Delete the old logs?")


def test_what_is_open_stays_open(task: Task, visit: Visit, tmp_path: Path) -> None:
    agent(plays(tmp_path, NESTED))
    page = visit.open("/tree")
    opened(page, "t1", "a", "Find sessions")
    spawn(worker("exits", 0), "--wait", name="later")
    expect(tree_item(page, "later")).to_be_visible()
    expect(tree_item(page, "Grep createSession")).to_be_visible()
    page.reload()
    expect(tree_item(page, "Grep createSession")).to_be_visible()


def test_positions_and_sizes_are_right(task: Task, visit: Visit) -> None:
    run("new", "Another task", "--id", "t2")
    for name in ("a", "b", "c"):
        spawn(worker("exits", 0), "--wait", "--task", "t1", name=name)
    page = visit.open("/tree")
    expect(page.get_by_role("tree", name="Tasks and workers")).to_be_visible()
    opened(page, "t1")
    expect(page.get_by_role("treeitem")).to_have_count(5)
    lines = tree_lines(page)
    assert sorted(line["at"] for line in lines if line["level"] == 1) == [1, 2]
    assert {line["of"] for line in lines if line["level"] == 1} == {2}
    assert [line["at"] for line in lines if line["level"] == 2] == [1, 2, 3]
    assert {line["of"] for line in lines if line["level"] == 2} == {3}
    assert page.locator('[role=treeitem][tabindex="0"]').count() == 1
    assert page.locator("[role=treeitem][aria-selected=true]").count() == 1


def test_sub_tasks_are_below_the_worker_that_made_them(task: Task, visit: Visit) -> None:
    run("new", "Below", "--id", "below", env={"AGENTCTL_TASK": None})
    spawn(worker("sleeps", 60), name="asker")
    spawn(worker("asks", "--kind", "confirm", "Really?"), "--task", "below", name="deep")
    page = visit.open("/tree")
    folded(page, "below")
    expect(tree_item(page, "below")).to_contain_text(re.compile(r"1\s*blocked"))


def test_by_keys_alone(task: Task, visit: Visit, tmp_path: Path) -> None:
    agent(plays(tmp_path, NESTED))
    spawn(worker("exits", 0), "--wait", name="ends")
    page = visit.open("/tree")
    expect(tree_item(page, "t1")).to_be_visible()

    def at(label: str) -> None:
        expect(tree_item(page, label)).to_be_focused()

    page.keyboard.press("g")
    at("t1")
    for key, is_open in (("ArrowLeft", "false"), ("ArrowRight", "true")):
        page.keyboard.press(key)
        expect(tree_item(page, "t1")).to_have_attribute("aria-expanded", is_open)
    at("t1")
    page.keyboard.press("ArrowRight")
    at("a")
    page.keyboard.press("l")
    expect(tree_item(page, "Find sessions")).to_be_visible()
    page.keyboard.press("l")
    page.keyboard.press("*")
    expect(tree_item(page, "Grep createSession")).to_be_visible()
    page.keyboard.press("End")
    at("ends")
    page.keyboard.press("k")
    at("Bash npm test")
    page.keyboard.press("h")
    at("a")
    page.keyboard.press("h")
    expect(tree_item(page, "a")).to_have_attribute("aria-expanded", "false")
    page.keyboard.press("Home")
    at("t1")
    page.keyboard.press("f")
    page.keyboard.type("en")
    at("ends")
    page.keyboard.press("ArrowLeft")
    at("t1")
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_role("treeitem")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/tasks/t1$"))
    page.keyboard.press("Escape")
    expect(page).to_have_url(re.compile("/tree$"))
    at("t1")
