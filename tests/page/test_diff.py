"""At stake: what is said on the lines of a diff goes to the agent that changed them, all of it, as one message."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.agent_steps import activity, agent, ends, plays
from tests.agents.install import installed
from tests.agents.lab import PATIENCE_S, Lab
from tests.agents.standin import StandIn
from tests.page.seen import says
from tests.page.site import Site
from tests.page.visiting import PHONE, Visit
from tests.repositories import new_repository
from tests.steps import Task
from tests.support import run, wait_until

COMMENTS = {"two": "Say why here.", "four": "This line is <b>not</b> needed."}
EDIT = """
from pathlib import Path
Path("a.txt").write_text("one\\ntwo\\nthree\\nfour\\n")
Path("new.txt").write_text("fresh\\n")
me.answer("I have changed it.")
"""


def has_changed_it() -> None:
    """Wait until the agent has written all of its change."""
    wait_until(lambda: run("activity", "a").out, accept=lambda out: "I have changed it." in out, what="its answer")


def files(page: Page) -> Locator:
    return page.get_by_role("navigation", name="Changed files")


def comment(page: Page, line: str, text: str, file: str = "a.txt") -> None:
    """Write a comment on the line with a text."""
    box = page.get_by_role("region", name=file, exact=True)
    at = box.locator(".code-line", has_text=line)
    at.hover()
    at.get_by_role("button", name="Comment on").click()
    field = box.get_by_role("textbox")
    expect(field).to_be_focused()
    field.fill(text)
    field.press("Control+Enter")
    expect(box).to_contain_text(text)


def users_messages(task: Task, instance: str = "a") -> list[str]:
    """Return what the user has said to an agent, behind its order."""
    rows = [row for row in activity(task, instance) if row["type"] == "message" and row.get("name") == "user"]
    return [row["text"] for row in rows][1:]


def checked_message(text: str) -> None:
    """Check a message with both comments: each once, with its place and its line."""
    for line, said in COMMENTS.items():
        assert text.count(said) == 1, text
        assert f"> {line}\n" in text, text
    assert text.count("a.txt:2") == 1, text
    assert text.count("a.txt:4") == 1, text


@pytest.fixture(scope="session")
def claude() -> Path:
    """The real Claude Code; it is not fetched here. The folder of the cache is known before a test has a home."""
    program = installed().get("claude")
    if program is None:
        pytest.skip("the real Claude Code is not in the cache: make test-agents fetches it")
    return program


@pytest.fixture
def repository(task: Task) -> Path:
    return new_repository(Path.cwd())


def opened_after_its_end(visit: Visit, folder: Path) -> Page:
    """Let an agent change something and end; return the page of its diff."""
    agent(plays(folder, EDIT), "--worktree")
    ends()
    return visit.open("/tasks/t1/workers/a/diff")


def test_comments_go_to_a_live_agent_as_one_message(task: Task, repository: Path, visit: Visit, tmp_path: Path) -> None:
    agent(plays(tmp_path, EDIT), "--worktree", "--keep")
    has_changed_it()
    page = visit.open("/tasks/t1/workers/a/diff")
    expect(files(page)).to_contain_text("a.txt")
    expect(files(page)).to_contain_text("new.txt")
    for line, said in COMMENTS.items():
        comment(page, line, said)
    page.reload()
    visit.live()
    for said in COMMENTS.values():
        expect(page.get_by_role("region", name="a.txt", exact=True)).to_contain_text(said)
    assert users_messages(task) == []
    page.get_by_role("button", name="Send all").click()
    says(page, "Sent to a.")
    wait_until(lambda: users_messages(task), what="the message")
    expect(page.get_by_role("button", name="Send all")).to_have_count(0)
    (text,) = users_messages(task)
    checked_message(text)


#: Forty files in folders, of which each has a line that is changed in one word.
MANY_FILES = 40
EDIT_MANY = f"""
from pathlib import Path
for number in range({MANY_FILES}):
    file = Path(f"src/part{{number % 4}}/file{{number:02}}.py")
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = [f"line {{at}} of file {{number}}" for at in range(60)]
    file.write_text("\\n".join(lines) + "\\n")
Path("a.txt").write_text("a b\\n")
me.answer("I have changed it.")
"""
_TOP = "(box) => box.getBoundingClientRect().top"


def at_the_top(page: Page, file: str) -> None:
    """Wait until the lines of a file are at the top of what is seen, and the list says so."""
    region = page.get_by_role("region", name=file, exact=True)
    item = files(page).locator("li button", has_text=file.rsplit("/", maxsplit=1)[-1])
    expect(item).to_have_attribute("aria-current", "true")  # Where the list is folded, too.
    wait_until(lambda: float(region.evaluate(_TOP)), accept=lambda top: 0 < top < 300, what=f"{file} to be at the top")


def test_many_files_have_a_list_beside_them(task: Task, repository: Path, visit: Visit, tmp_path: Path) -> None:
    agent(plays(tmp_path, EDIT_MANY), "--worktree")
    ends()
    visit.page.set_viewport_size({"width": 1440, "height": 900})
    page = visit.open("/tasks/t1/workers/a/diff")
    expect(files(page).get_by_role("listitem")).to_have_count(MANY_FILES + 1)
    first = page.get_by_role("region", name="a.txt", exact=True)
    beside, below = files(page).bounding_box(), first.bounding_box()
    assert beside
    assert below
    assert beside["x"] + beside["width"] <= below["x"]
    assert abs(beside["y"] - below["y"]) < 60
    expect(first.locator("mark")).to_have_text([" b"])
    # By key, by button and from the list; the address names the file, and a reload comes back to it.
    page.keyboard.press("J")
    at_the_top(page, "src/part0/file00.py")
    page.get_by_role("button", name="Next file").click()
    at_the_top(page, "src/part0/file04.py")
    page.keyboard.press("K")
    at_the_top(page, "src/part0/file00.py")
    files(page).get_by_role("button", name="file21.py").click()
    at_the_top(page, "src/part1/file21.py")
    expect(page).to_have_url(re.compile(r"\?file=src%2Fpart1%2Ffile21\.py$"))
    page.reload()
    visit.live()
    at_the_top(page, "src/part1/file21.py")
    # A file that was viewed is folded, here and after a reload, until it is looked at again.
    page.keyboard.press("V")
    expect(page.get_by_role("checkbox", name="src/part1/file21.py is viewed")).to_be_checked()
    expect(files(page).get_by_role("button", name="file21.py")).to_contain_text("viewed")
    page.reload()
    visit.live()
    region = page.get_by_role("region", name="src/part1/file21.py", exact=True)
    expect(region.locator(".code-line")).to_have_count(0)
    region.get_by_role("checkbox").click()
    expect(region.locator(".code-line")).to_have_count(60)


def test_each_file_can_be_the_current_one(task: Task, repository: Path, visit: Visit, tmp_path: Path) -> None:
    page = opened_after_its_end(visit, tmp_path)  # All of it is on the screen: nothing can be scrolled to its top.
    tools = page.get_by_role("button", name="Next file").locator("..")
    expect(tools).to_contain_text("1 of 2")
    page.keyboard.press("J")
    expect(tools).to_contain_text("2 of 2")
    expect(files(page).get_by_role("button", name="new.txt")).to_have_attribute("aria-current", "true")
    page.reload()
    visit.live()
    expect(tools).to_contain_text("2 of 2")
    page.keyboard.press("j")
    expect(page.get_by_role("region", name="new.txt", exact=True).get_by_role("button", name="line 1")).to_be_focused()
    page.keyboard.press("V")
    expect(page.get_by_role("checkbox", name="new.txt is viewed")).to_be_checked()
    expect(page.get_by_role("checkbox", name="a.txt is viewed")).not_to_be_checked()
    expect(tools).to_contain_text("2 of 2")
    page.keyboard.press("j")
    says(page, "there is no line from here on")
    expect(tools).to_contain_text("2 of 2")
    page.keyboard.press("ArrowLeft")  # Not a text: the next key counts.
    page.keyboard.press("K")
    expect(tools).to_contain_text("1 of 2")
    files(page).get_by_role("button", name="new.txt").click()
    expect(tools).to_contain_text("2 of 2")


def test_the_last_file_is_the_current_one_at_the_end(
    task: Task, repository: Path, visit: Visit, tmp_path: Path
) -> None:
    agent(plays(tmp_path, EDIT_MANY.replace("range(60)", "range(4)")), "--worktree")
    ends()
    page = visit.open("/tasks/t1/workers/a/diff?file=src/part3/file35.py")
    tools = page.get_by_role("button", name="Next file").locator("..")
    expect(tools).to_contain_text(f"{MANY_FILES} of {MANY_FILES + 1}")
    page.keyboard.press("J")
    expect(tools).to_contain_text(f"{MANY_FILES + 1} of {MANY_FILES + 1}")
    # Where the reader scrolls, it is the file at the top of the screen; at the end it is the last one.
    page.mouse.move(900, 500)
    page.mouse.wheel(0, -1000)
    expect(tools).not_to_contain_text(f"{MANY_FILES + 1} of")
    page.mouse.wheel(0, 5000)
    expect(tools).to_contain_text(f"{MANY_FILES + 1} of {MANY_FILES + 1}")


def test_a_file_that_changed_since_it_was_viewed_says_so(
    task: Task, repository: Path, visit: Visit, tmp_path: Path
) -> None:
    agent(plays(tmp_path, EDIT), "--worktree", "--keep")
    has_changed_it()
    page = visit.open("/tasks/t1/workers/a/diff")
    region = page.get_by_role("region", name="a.txt", exact=True)
    region.get_by_role("checkbox").click()
    expect(region.locator(".code-line")).to_have_count(0)
    (tree,) = [Path(row["path"]) for row in run("worktrees", "--json").json]
    with (tree / "a.txt").open("a", encoding="utf-8") as file:
        file.write("five\n")
    expect(region).to_contain_text("changed since")
    expect(region.locator(".code-line", has_text="five")).to_be_visible()
    expect(page.get_by_role("checkbox", name="new.txt is viewed")).not_to_be_checked()
    run("cancel", "a")


def test_on_a_phone_the_lines_are_the_first_thing(
    task: Task, repository: Path, visiting: Callable[..., Visit], tmp_path: Path
) -> None:
    agent(plays(tmp_path, EDIT_MANY), "--worktree")
    ends()
    visit = visiting(viewport=PHONE, has_touch=True, is_mobile=True)
    page = visit.open("/tasks/t1/workers/a/diff")
    line = page.get_by_role("region", name="a.txt", exact=True).locator(".code-line").first
    box = line.bounding_box()
    assert box is not None
    assert round(box["height"]) == 20
    assert box["y"] < PHONE["height"]
    fold = files(page).get_by_role("button", name=f"{MANY_FILES + 1} files")
    expect(fold).to_have_attribute("aria-expanded", "false")
    fold.tap()
    files(page).get_by_role("button", name="file21.py").tap()
    at_the_top(page, "src/part1/file21.py")
    expect(fold).to_have_attribute("aria-expanded", "false")
    # The step to the next file is one tap from anywhere.
    page.get_by_role("button", name="Next file").tap()
    at_the_top(page, "src/part1/file25.py")
    page.get_by_role("button", name="File before").tap()
    at_the_top(page, "src/part1/file21.py")
    # A finger on the text of a line is enough.
    page.get_by_role("region", name="src/part1/file21.py", exact=True).get_by_text("line 3 of file 21").tap()
    expect(page.get_by_role("textbox", name="Comment on line 4")).to_be_focused()


#: Clicks, and says whether a field has the focus before the next frame: what is typed at once is to arrive.
_HAS_FOCUS_AT_ONCE = """async (button) => {
  let isPainted = false;
  requestAnimationFrame(() => { isPainted = true; });
  button.click();
  for (let turn = 0; turn < 100; turn += 1) await null;
  return !isPainted && document.activeElement.matches('textarea');
}"""


def test_a_comment_can_be_typed_at_once(task: Task, repository: Path, visit: Visit, tmp_path: Path) -> None:
    page = opened_after_its_end(visit, tmp_path)
    line = page.get_by_role("region", name="a.txt", exact=True).get_by_role("button", name="Comment on line 2")
    assert line.evaluate(_HAS_FOCUS_AT_ONCE)


def test_a_comment_is_written_on_while_its_agent_ends(
    task: Task, repository: Path, visit: Visit, tmp_path: Path
) -> None:
    agent(plays(tmp_path, EDIT_MANY), "--worktree", "--keep")
    has_changed_it()
    page = visit.open("/tasks/t1/workers/a/diff?file=src%2Fpart1%2Ffile21.py")
    at_the_top(page, "src/part1/file21.py")
    region = page.get_by_role("region", name="src/part1/file21.py", exact=True)
    region.get_by_role("button", name="Comment on line 4 of").click()
    page.keyboard.type("Why not ")
    # What tells that it was another one in its place, also where that has the same text.
    region.get_by_role("textbox").evaluate("(field) => { field.dataset.test = 'same'; }")
    run("cancel", "a")
    expect(page.get_by_role("button", name="Remove the worktree")).to_have_count(1)
    page.keyboard.type("two?")
    field = region.get_by_role("textbox")
    expect(field).to_have_value("Why not two?")
    expect(field).to_be_focused()
    assert field.evaluate("(field) => field.dataset.test") == "same"
    at_the_top(page, "src/part1/file21.py")


def test_comments_continue_an_ended_agent(task: Task, repository: Path, visit: Visit, tmp_path: Path) -> None:
    page = opened_after_its_end(visit, tmp_path)
    for line, said in COMMENTS.items():
        comment(page, line, said)
    page.get_by_role("button", name="Continue it with all").click()
    says(page, "a is continued")
    (made,) = [row["agentInstance"] for row in run("list", "--json").json if row["agentInstance"] != "a"]
    ends(made)
    prompts = [row["text"] for row in activity(task, made) if row["type"] == "message" and row.get("name") == "user"]
    assert len(prompts) == 1
    checked_message(prompts[0])


def test_a_comment_can_be_changed_and_deleted(task: Task, repository: Path, visit: Visit, tmp_path: Path) -> None:
    page = opened_after_its_end(visit, tmp_path)
    for line, said in COMMENTS.items():
        comment(page, line, said)
    box = page.get_by_role("region", name="a.txt", exact=True)
    box.get_by_role("button", name="Delete").first.click()
    expect(box).not_to_contain_text(COMMENTS["two"])
    expect(box).to_contain_text(COMMENTS["four"])
    page.reload()
    expect(box).to_contain_text(COMMENTS["four"])
    expect(box).not_to_contain_text(COMMENTS["two"])


def test_since_the_last_turn_and_by_keys(task: Task, repository: Path, visit: Visit, tmp_path: Path) -> None:
    page = opened_after_its_end(visit, tmp_path)
    expect(page.get_by_role("button", name="Since the base")).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("c")
    field = page.get_by_role("region", name="a.txt", exact=True).get_by_role("textbox")
    expect(field).to_be_focused()
    page.keyboard.type("by keys: bjkc")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("region", name="a.txt", exact=True)).to_contain_text("by keys: bjkc")
    page.keyboard.press("b")
    expect(page.get_by_role("button", name="Since the last turn")).to_have_attribute("aria-pressed", "true")


def test_the_real_claude_code_gets_two_comments_as_one_message(
    claude: Path, task: Task, repository: Path, site: Site, visit: Visit, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    # The server was started with another one, but it only hands messages on.
    monkeypatch.setenv("PATH", f"{claude.parent}{os.pathsep}{os.environ['PATH']}")
    # What its model calls: a command that changes a file in its worktree.
    change = "printf 'one\\ntwo\\nthree\\nfour\\n' > a.txt"
    Path("steps.json").write_text(json.dumps([[["shell", change]]]), encoding="utf-8")
    with StandIn() as standin:
        lab = Lab("claude", tmp_path, task, standin)
        worker = lab.spawn("steps", "--worktree", "--keep", "--permissions", "allow", name="real")
        wait_until(
            lambda: lab.activity(worker, "message"), timeout_s=PATIENCE_S,
            accept=lambda rows: "Done: steps" in str(rows), what="its answer",
        )  # fmt: skip
        page = visit.open("/tasks/t1/workers/real/diff")
        for line, said in COMMENTS.items():
            comment(page, line, said)
        page.get_by_role("button", name="Send all").click()
        says(page, "Sent to real.")
        wait_until(
            lambda: [turn.text for request in standin.requests for turn in request.turns if turn.kind == "user"],
            timeout_s=PATIENCE_S,
            accept=lambda texts: any(COMMENTS["two"] in text for text in texts),
            what="the comments to reach the model",
        )
        with_comments = [
            [turn.text for turn in request.turns if turn.kind == "user" and "a.txt:" in turn.text]
            for request in standin.requests
        ]
        (text,) = max(with_comments, key=len)
        checked_message(text)
        wait_until(lambda: users_messages(task, "real"), what="the message in its activity")
        assert len(users_messages(task, "real")) == 1
        visit.go("/tasks/t1/workers/real")
        transcript = page.get_by_role("log", name="Transcript of real")
        for said in COMMENTS.values():
            expect(transcript).to_contain_text(said)
        run("cancel", worker)
