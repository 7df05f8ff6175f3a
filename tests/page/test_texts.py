"""At stake: what agents say and do is shown as what it says, and what asks to be allowed as what it would do."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.agent_steps import agent, blocked, define, ends, plays
from tests.page.install import axe_script
from tests.page.seen import insist, question, settled, until_said
from tests.page.visiting import DOUBLED, PHONE, WIDE, Visit
from tests.steps import Task
from tests.support import wait_until

SAID = """## What I found

Three places use **sessions**; `createSession` is called in each. See
[the docs](https://docs.example/sessions?x=1 "Sessions") and https://example.com/issues/12, not
[this](javascript:alert(1)).

- [x] the form
- [ ] the request
  1. register
  2. log in

| file | uses | kept |
|:-----|-----:|:----:|
| `src/auth/session.ts` | 31 | yes |
| `src/api/login.ts` | 4 | ~~yes~~ no |

> A key is *never* sent twice.

### How

```ts
// One session for each key.
export async function createSession(key: string): Promise<Session> {
  return await store.add({ key, at: 42 });
}
```

![a picture](https://pictures.example/a.png)

---

<b>markup</b> stays text.
"""
_BLOCKS = """
SAID = json.loads(open(FILE).read())

def block(one, parent=None):
    message = {"id": "msg", "type": "message", "role": "assistant", "model": "none",
               "usage": {"input_tokens": 41000, "output_tokens": 900}, "content": [one], "stop_reason": None}
    say(type="assistant", message=message, parent_tool_use_id=parent, session_id=me.session)

def call(id_, name, result, is_error=False, **arguments):
    block({"type": "tool_use", "id": id_, "name": name, "input": arguments})
    if result is not None:
        content = [{"type": "tool_result", "tool_use_id": id_, "content": result, "is_error": is_error}]
        say(type="user", message={"role": "user", "content": content}, parent_tool_use_id=None, session_id=me.session)
"""
_WORK = """
block({"type": "thinking", "thinking": "The **form** comes first.", "signature": ""})
block({"type": "text", "text": SAID})
call("p", "TodoWrite", "ok", todos=[
    {"content": "Find the sessions", "status": "completed", "activeForm": "Finding"},
    {"content": "Change the form", "status": "in_progress", "activeForm": "Changing"},
    {"content": "Run the tests", "status": "pending", "activeForm": "Running"}])
for number in range(5):
    call(f"r{number}", "Read", "1 export const session = 1;", file_path=f"src/part-{number}.ts")
call("g", "Grep", "\\n".join(f"src/auth/s{n}.ts:31: createSession()" for n in range(60)), pattern="createSession",
     path="src", output_mode="content")
call("e", "Edit", "ok", file_path="config/production.yaml", old_string="replicas: 2\\nmemory: 512Mi\\nname: web",
     new_string="replicas: 3\\nmemory: 1Gi\\nname: web")
call("w", "Write", "ok", file_path="src/new.py", content="def answer() -> int:\\n    return 42\\n")
call("b", "Bash", "Exit code 1\\n1 failing", is_error=True, command="npm test -- --grep 'a b'",
     description="Run the tests")
call("x", "Bash", "ok", **{"command": "git status", "description": "Look at the state"})
call("m", "MultiEdit", "ok", file_path="src/two.py", edits=[
    {"old_string": "a", "new_string": "b"}, {"old_string": "c", "new_string": "d", "replace_all": True}])
call("s", "Task", "**Three** places.", description="Find sessions", subagent_type="explore", model="small",
     prompt="Find *all* sessions.")
call("o", "mcp__db__query", "3 rows", sql="select 1", deep={"a": [1, 2]})
"""


@pytest.fixture
def playing(tmp_path: Path) -> Callable[[str], str]:
    """What makes the agent program say and do things."""
    file = tmp_path / "said.json"
    file.write_text(json.dumps(SAID), encoding="utf-8")
    return lambda script: plays(tmp_path, "import json\n" + _BLOCKS.replace("FILE", repr(str(file))) + script)


#: What asks to be allowed, with an argument that changes what it does.
EDIT = {
    "file_path": "config/production.yaml", "old_string": "replicas: 2\nname: web",
    "new_string": "replicas: 3\nname: web", "replace_all": True,
}  # fmt: skip
#: The folder of the cache is known before a test has a home.
_AXE = axe_script()
_NO_AXE = "axe-core is not in the cache: python -m tests.page.install fetches it"
#: Whether the page may still make nothing out of a text: it throws where that is enforced.
_MAKES_MARKUP = """() => {
  try {
    document.createElement('div').innerHTML = '<b>x</b>';
    return true;
  } catch (error) {
    return error.name;
  }
}"""
_LONG_TASKS = """
window.tasks = [];
new PerformanceObserver((list) => window.tasks.push(...list.getEntries().map((one) => one.duration)))
  .observe({ type: 'longtask', buffered: true });
"""


def asks(tool: str, arguments: dict[str, object]) -> str:
    """Return the script that asks for permission to make a call."""
    return f"me.ask({tool!r}, {arguments!r}, 'permission')\n"


def transcript(page: Page) -> Locator:
    return page.get_by_role("log")


def line(page: Page, text: str) -> Locator:
    """Return the line of a call."""
    return transcript(page).locator(".call-line").filter(has_text=text)


def accessible(page: Page) -> None:
    """Check what is seen by axe-core."""
    if not _AXE.exists():
        pytest.skip(_NO_AXE)
    page.evaluate(_AXE.read_text(encoding="utf-8"))
    found = page.evaluate("async () => (await axe.run()).violations.map((one) => `${one.id}: ${one.nodes[0].html}`)")
    assert found == []


def test_markdown_is_shown_as_what_it_says(
    task: Task, visiting: Callable[..., Visit], playing: Callable[[str], str]
) -> None:
    agent(playing("block({'type': 'text', 'text': SAID})\nme.answer(SAID)\n"))
    ends()
    visit = visiting(viewport={"width": 390, "height": 844}, color_scheme="dark")
    page = visit.open("/tasks/t1/workers/a")
    for place, level in ((transcript(page), 2), (page.get_by_role("main"), 3)):
        if level == 3:
            visit.go("/tasks/t1/workers/a/result")
        text = place.locator(".markdown").last
        expect(text.get_by_role("heading", name="What I found", level=level)).to_be_visible()
        expect(text.get_by_role("heading", name="How", level=level + 1)).to_be_visible()
        expect(text.get_by_role("table").get_by_role("columnheader")).to_have_text(["file", "uses", "kept"])
        expect(text.get_by_role("img", name="done")).to_have_count(1)
        expect(text.get_by_role("checkbox")).to_have_count(0)
        expect(text.locator("pre .code-word").first).to_have_text("export")
        expect(text).to_contain_text("the docs (docs.example “Sessions”)")
        expect(text).to_contain_text("this (javascript:alert(1))")
        expect(text).to_contain_text("picture: a picture (pictures.example)")
        expect(text).to_contain_text("<b>markup</b> stays text.")
        links = text.get_by_role("link")
        assert [one.get_attribute("href") for one in links.all()] == [
            "https://docs.example/sessions?x=1", "https://example.com/issues/12",
        ]  # fmt: skip
        for one in links.all():
            assert (one.get_attribute("rel"), one.get_attribute("target")) == ("noreferrer noopener", "_blank")
        accessible(page)
        assert page.evaluate("document.scrollingElement.scrollWidth") <= 390
    page.get_by_role("button", name="Source").click()
    expect(page.get_by_role("main")).to_contain_text("## What I found")
    page.reload()
    expect(page.get_by_role("main")).to_contain_text("## What I found")
    expect(page.get_by_role("button", name="Source", pressed=True)).to_be_visible()


def test_known_calls_have_their_own_look(task: Task, visit: Visit, playing: Callable[[str], str]) -> None:
    agent(playing(_WORK + "me.answer('done')\n"))
    ends()
    page = visit.open("/tasks/t1/workers/a")
    expect(line(page, "Plan")).to_contain_text("1 of 3 done")
    todos = transcript(page).locator(".todos").get_by_role("listitem")
    expect(todos).to_have_text(["☑ Find the sessions", "◐ Change the form", "☐ Run the tests"])
    expect(line(page, "Read 5 files")).to_have_count(1)
    expect(line(page, "src/part-3.ts")).to_have_count(1)
    line(page, "Read 5 files").press("Enter")
    expect(transcript(page).locator(".inside .call-line")).to_have_count(5)
    expect(line(page, "Search")).to_contain_text("60 matches")
    expect(line(page, "Run the tests")).to_contain_text("exit 1")
    expect(transcript(page).locator(".command-line").first).to_have_text("$ npm test -- --grep 'a b'")
    line(page, "config/production.yaml").press("Enter")
    change = transcript(page).locator(".change").first
    expect(change.locator(".change-line mark")).to_have_text(["2", "512Mi", "3", "1Gi"])
    expect(change.locator(".change-line.same")).to_have_text("name: web")
    line(page, "src/new.py").press("Enter")
    expect(transcript(page).locator(".change").nth(1).locator(".change-line.add")).to_have_count(2)
    line(page, "src/two.py").press("Enter")
    expect(transcript(page).locator(".change")).to_have_count(4)
    expect(transcript(page).locator(".call-look .argument")).to_have_text(["edits[1].replace_alltrue"])
    line(page, "Find sessions").press("Enter")
    told = transcript(page).locator(".sub-agent")
    expect(told.locator(".from-person em")).to_have_text("all")
    expect(told.locator(".argument")).to_have_text(["modelsmall"])
    expect(told.locator(".block.message strong")).to_have_text("Three")
    line(page, "mcp__db__query").press("Enter")
    expect(transcript(page).locator(".call-parts > .arguments .name")).to_have_text(["sql", "deep"])
    times = [one for one in transcript(page).locator("time").all_inner_texts() if one]
    assert len(times) == len(set(times)) <= 3, "a time is told where the minute changes"
    accessible(page)


def test_what_a_call_returned_is_told_where_it_failed(task: Task, visit: Visit, playing: Callable[[str], str]) -> None:
    """Of every kind of look."""
    todos = [{"content": "A", "status": "pending", "activeForm": "A"}]
    calls: dict[str, dict[str, object]] = {
        "TodoWrite": {"todos": todos}, "Read": {"file_path": "a"}, "Grep": {"pattern": "x"}, "Bash": {"command": "x"},
        "Edit": {"file_path": "a", "old_string": "a", "new_string": "b"}, "odd": {"a": 1},
    }  # fmt: skip
    said = [
        f"call({tool!r}, {tool!r}, 'Error: no {tool}', is_error=True, **{given!r})" for tool, given in calls.items()
    ]
    agent(playing("\n".join(said) + "\nme.answer('done')\n"))
    ends()
    page = visit.open("/tasks/t1/workers/a")
    for tool in calls:
        expect(transcript(page).locator(".returned").filter(has_text=f"Error: no {tool}")).to_be_visible()


_PART = """
call("g", "Grep", "\\n".join(f"src/auth/s{n}.ts:31: createSession()" for n in range(500)), pattern="createSession")
call("s", "Task", "done", description="odd prompt", subagent_type="explore", prompt={"a": 1}, instructions="i" * 54000)
call("t", "Task", "done", description="long context", subagent_type="explore", prompt="short", context="c " * 15000)
call("b", "Bash", "ok", command="ls", env="e " * 15000)
"""


def test_what_is_cut_or_long_is_told_where_it_is(task: Task, visit: Visit, playing: Callable[[str], str]) -> None:
    agent(playing(_PART + "me.answer('done')\n"))
    ends()
    page = visit.open("/tasks/t1/workers/a")
    expect(line(page, "Search")).to_contain_text(re.compile(r"1\d\d\+ matches"))
    for said in ("odd prompt", "long context", "$"):
        line(page, said).press("Enter")
    odd, long = transcript(page).locator(".sub-agent").all()
    expect(odd.locator(".argument .name")).to_have_text(["prompt", "instructions"])
    expect(odd.locator(".argument").first).to_contain_text('"a": 1')
    expect(long.locator(".from-person")).to_have_text(re.compile("short$"))
    command = transcript(page).locator(".look-command")
    for place, name, letter in ((odd, "instructions", "i"), (long, "context", "c"), (command, "env", "e")):
        given = place.locator(".argument").filter(has_text=name)
        assert len(given.inner_text()) < 3000, "it is folded"
        expect(place.get_by_role("button", name="Show all")).to_have_count(1)
        given.get_by_role("button", name="Show all").click()
        expect(given).to_contain_text(re.compile(rf"{letter} *\[cut: \d+ characters\]"))
        expect(given.get_by_role("button", name="Show less")).to_be_visible()


def test_an_edit_is_allowed_by_its_diff_and_its_arguments_are_a_key_away(
    task: Task, visit: Visit, playing: Callable[[str], str]
) -> None:
    agent(playing(asks("Edit", EDIT)))
    blocked()
    page = visit.open("/tasks/t1/workers/a")
    card = question(page, "a")
    call = card.get_by_role("group", name="Arguments of Edit")
    expect(call.locator(".change-head")).to_contain_text("Edit config/production.yaml")
    expect(call.locator(".change-line mark")).to_have_text(["2", "3"])
    expect(call.locator(".argument")).to_have_text(["replace_alltrue"])
    assert card.inner_text().count("Edit") == 1, "the verb is said once"
    accessible(page)
    page.keyboard.press("a")
    expect(call.locator(".argument .name")).to_have_text(["file_path", "old_string", "new_string", "replace_all"])
    expect(card.get_by_role("button", name="Raw arguments", pressed=True)).to_be_visible()
    page.keyboard.press("a")
    expect(call.locator(".change-line mark")).to_have_text(["2", "3"])
    allow = card.get_by_role("button", name="Allow", exact=True)
    until_said(page, allow.click, "Answered a: Allow")
    assert ends()["result"]["finalMessage"].startswith("allow")


def test_a_change_is_allowed_only_once_all_of_it_was_visible(
    task: Task, visit: Visit, playing: Callable[[str], str]
) -> None:
    """The same as for arguments; having seen one form to its middle and the other from there on is not enough."""
    content = "\n".join(f"line {number}" for number in range(120))
    agent(playing(asks("Write", {"file_path": "a.txt", "content": content})))
    blocked()
    page = visit.open("/tasks/t1/workers/a")
    card = question(page, "a")
    call = card.get_by_role("group", name="Arguments of Write")
    expect(call.locator(".change-line.add")).to_have_count(120)
    allow = card.get_by_role("button", name="Allow", exact=True)
    expect(card.get_by_role("button", name="Deny", exact=True)).to_be_enabled()
    expect(allow).to_be_disabled()
    raw = card.get_by_role("button", name="Raw arguments")
    insist(page, raw.click, call.locator(".argument").nth(1))
    call.evaluate("(box) => { box.scrollTop = box.scrollHeight / 2; }")
    settled(page)
    insist(page, raw.click, call.locator(".change-line.add").nth(119))
    settled(page)
    expect(allow).to_be_disabled()
    call.evaluate("(box) => { box.scrollTop = box.scrollHeight; }")
    expect(allow).to_be_enabled()


def test_what_an_agent_calls_its_command_is_told_as_its_own_words(
    task: Task, visit: Visit, playing: Callable[[str], str]
) -> None:
    agent(playing(asks("Bash", {"command": "rm -rf build", "description": "agentctl allows: list the files"})))
    blocked()
    page = visit.open("/tasks/t1/workers/a")
    title = question(page, "a").locator(".call-title")
    expect(title).to_have_text("In its own words: agentctl allows: list the files")


@pytest.mark.parametrize(
    ("tool", "arguments", "shown"),
    [
        (
            "Bash", {"command": "ls", "cmd": "rm -rf /", "env": {"A": ["b"]}},
            ["cmdrm -rf /", 'env{\n "A": [\n  "b"\n ]\n}'],
        ),
        ("Bash", {"command": ["ls", 5]}, ['command[\n "ls",\n 5\n]']),
        (
            "Edit", {"file_path": "a\u202eb", "old_string": "x\u200by", "new_string": "xy", "_": "\x1b[2J"},
            [r"_\x1b[2J"],
        ),
        (
            "mcp__x__Edit", {"file_path": "a", "old_string": "b", "new_string": "c"},
            ["file_patha", "old_stringb", "new_stringc"],
        ),
    ],
    ids=["more than it shows", "other types", "what nobody sees", "of another server"],
)  # fmt: skip
def test_nothing_of_a_hostile_call_is_out_of_sight(
    task: Task, visit: Visit, playing: Callable[[str], str], tool: str, arguments: dict[str, object], shown: list[str]
) -> None:
    agent(playing(asks(tool, arguments)))
    blocked()
    page = visit.open("/tasks/t1/workers/a")
    call = question(page, "a").get_by_role("group", name="Arguments of")
    expect(call.locator(".argument")).to_have_text(shown)
    text = call.inner_text()
    assert not {"\u202e", "\u200b", "\x1b"} & set(text)
    if "\u202e" in str(arguments.get("file_path")):
        assert r"a\u202eb" in text
        assert r"x\u200by" in text


def test_a_question_may_be_markdown_and_hides_nothing(task: Task, visit: Visit, playing: Callable[[str], str]) -> None:
    words = "## Which?\n\nSee [the docs](https://docs.example/a?b=1) or a\u200bb.\n\n| a |\n|---|\n| b | and c |\n"
    asked = {"question": words, "header": "H", "multiSelect": False, "options": [
        {"label": "yes", "description": "do"}, {"label": "no", "description": "do not"},
    ]}  # fmt: skip
    agent(playing(f"me.ask('AskUserQuestion', {{'questions': [{asked!r}]}}, 'question')\n"))
    blocked()
    page = visit.open("/")
    card = question(page, "a")
    expect(card.get_by_role("heading", name="Which?", level=4)).to_be_visible()
    expect(card.locator(".asked")).to_contain_text("the docs (https://docs.example/a?b=1)")
    expect(card.locator(".asked")).to_contain_text(r"a\u200bb")
    expect(card.locator(".asked")).to_contain_text("| b | and c |")
    accessible(page)


def shown_whole(visit: Visit) -> float:
    """Have a long text shown whole; return how long the page was busy at once, in ms."""
    visit.context.add_init_script(_LONG_TASKS)
    page = visit.open("/tasks/t1/workers/a")
    expect(transcript(page).get_by_role("heading", name="What I found").first).to_be_visible()
    assert transcript(page).locator("*").count() < 500
    transcript(page).get_by_role("button", name="Show all").press("Enter")
    expect(transcript(page).locator(".part").nth(20)).to_be_attached()
    settled(page)
    return float(page.evaluate("Math.max(0, ...tasks)"))


def test_a_text_of_a_megabyte_comes_in_parts(
    task: Task, visiting: Callable[..., Visit], playing: Callable[[str], str]
) -> None:
    agent(playing("big = (SAID + 'word ' * 200 + '\\n\\n') * 1000\nblock({'type': 'text', 'text': big[:499_000]})\n"
                  "me.answer('done')\n"))  # fmt: skip
    ends()
    visit = visiting()
    if shown_whole(visit) >= 1000:  # The machine may have been at other things.
        visit = visiting()
        assert shown_whole(visit) < 1000
    page = visit.page
    assert page.evaluate(_MAKES_MARKUP) == "TypeError", "no text becomes markup in this page"

    def told() -> list[str]:
        settled(page)
        return [*visit.problems]

    found = wait_until(told, accept=lambda told: len(told) == 2, what="what the browser tells")
    assert "require-trusted-types-for forbids trusted-types-sink Element innerHTML|<b>x</b>" in found
    visit.problems.clear()


def test_what_is_unfolded_stays_so_as_more_is_read(
    task: Task, visit: Visit, playing: Callable[[str], str], tmp_path: Path
) -> None:
    go = tmp_path / "go"
    first = "call('r1', 'Read', 'export const first = 1;', file_path='src/first.ts')\n"
    waits = f"import os, time\nwhile not os.path.exists({str(go)!r}): time.sleep(0.05)\n"
    second = "call('r2', 'Read', 'export const second = 2;', file_path='src/second.ts')\n"
    agent(playing(first + waits + second + "me.waiting['hang'] = 'hang'\n"))
    page = visit.open("/tasks/t1/workers/a")
    line(page, "src/first.ts").click()
    expect(transcript(page)).to_contain_text("export const first")
    go.touch()
    expect(line(page, "Read 2 files")).to_be_visible()
    expect(transcript(page)).to_contain_text("export const first")
    line(page, "Read 2 files").click()
    expect(transcript(page)).not_to_contain_text("export const first")


def test_a_slow_first_answer_is_waited_for(task: Task, visit: Visit, playing: Callable[[str], str]) -> None:
    agent(playing("block({'type': 'text', 'text': SAID})\nme.answer(SAID)\n"))
    ends()
    page = visit.open("/")
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/activity?**", hold)
    page.evaluate("history.pushState({}, '', '/tasks/t1/workers/a'); dispatchEvent(new PopStateEvent('popstate'))")
    # Longer than between two looks for what is new.
    page.wait_for_function("(began) => performance.now() - began > 2500", arg=page.evaluate("performance.now()"))
    assert len(held) == 1
    held[0].continue_()
    page.unroute("**/activity?**")
    expect(transcript(page)).to_contain_text("What I found")


def test_what_an_agent_is_to_do_is_markdown_in_its_details(task: Task, visit: Visit) -> None:
    long = "\n".join(f"- step {number}" for number in range(200))
    agent(f"## Move the **sessions**\n\n{long}\n\nThen a `linden`.\n")
    ends()
    page = visit.open("/tasks/t1/workers/a/details")
    fact = page.locator("dl > div", has=page.get_by_role("term").filter(has_text="Prompt"))
    told = fact.locator(".markdown")
    expect(told.get_by_role("heading", name="Move the sessions")).to_be_visible()
    expect(told).not_to_contain_text("linden")
    fact.get_by_role("button", name="Show all").click()
    expect(told.locator("code", has_text="linden")).to_be_visible()
    visit.go("/search?q=linden")
    page.get_by_role("listitem").filter(has_text="prompt").get_by_role("link").first.click()
    expect(told.locator("code", has_text="linden")).to_be_in_viewport()


def test_what_an_agent_is_for_is_markdown_where_one_is_chosen(task: Task, root: Path, visit: Visit) -> None:
    define(root, "reader", "true", description="Reads *only* `src`, without <b>network</b>.")
    page = visit.open()
    page.get_by_role("button", name="New worker").first.click()
    dialog = page.get_by_role("dialog", name="New worker")
    dialog.get_by_label("Agent").select_option("reader")
    expect(dialog.locator(".hint em")).to_have_text("only")
    expect(dialog.locator(".hint code")).to_have_text("src")
    expect(dialog.locator(".hint .markdown")).to_have_text("Reads only src, without <b>network</b>.")


@pytest.mark.parametrize("size", [WIDE, PHONE, DOUBLED], ids=["wide", "phone", "doubled"])
def test_a_transcript_opens_at_its_end(
    task: Task, visiting: Callable[..., Visit], playing: Callable[[str], str], size: dict[str, int]
) -> None:
    looks = "".join(f"call('r{n}', 'Read', 'export const part = {n};', file_path='src/part{n}.ts')\n" for n in range(5))
    told = "call('t', 'TodoWrite', 'ok', todos=[{'content': 'a', 'status': 'pending', 'activeForm': 'a'}])\n"
    agent(playing(f"{told}{looks}block({{'type': 'text', 'text': SAID}})\nme.answer(SAID)\n"))
    ends()
    visit = visiting(viewport=size)
    page = visit.open("/tasks/t1/workers/a")
    expect(page.get_by_text("It has ended.")).to_be_in_viewport(ratio=1)
