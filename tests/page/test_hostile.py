"""At stake: whatever a worker, an agent or a repository says is shown as text, and runs nowhere."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.agent_steps import agent, blocked, ends, plays
from tests.page.seen import question, settled, unfold, work_of
from tests.page.site import Site
from tests.page.visiting import Visit
from tests.repositories import git, new_repository
from tests.steps import Task, spawn
from tests.support import run, wait_until

MARKUP = (
    '</script><script>window.ran=1;alert(1)</script><img src=x onerror="window.ran=1;alert(1)"><svg onload="alert(1)">'
    '<a href="javascript:alert(1)">go</a><iframe srcdoc="<script>parent.ran=1</script>"></iframe>'
    '<style>*{display:none}</style><meta http-equiv=refresh content="0;url=http://evil.example/">'
    "<link rel=stylesheet href=//evil.example/a.css>{{constructor.constructor('alert(1)')()}}${alert(1)}&lt;b&gt;"
)
CONTROLS = (
    "\x1b[31mred\x1b[0m\x1b[2J\x1b]8;;http://evil.example/\x07link\x1b]8;;\x07\x1b]0;a title\x07\x1bP1$r\x1b\\"
    "\u202egnp.exe\u2066\u2067x\u2069\u200e\u061c \x07\x08\x7f\x85\u2028\u2029\ufeff"
)
#: Of these, none may be in the page as it is.
FORBIDDEN = r"[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
HOSTILE = f"{MARKUP} {CONTROLS}"
#: For whatever a name may not have.
NO_NUL = HOSTILE
WITH_NUL = f"{HOSTILE}\x00 \ud800 \udc00\ud800 end"

_LOOK = """() => ({
  ran: window.ran ?? 0,
  inserted: document.querySelectorAll('main script, main style, main iframe, main meta, main link, main object,'
    + ' main [onerror], main [onload], main img:not([src^="blob:"]), a[href^="javascript" i],'
    + ' a[href*="evil"]:not([rel="noreferrer noopener"])').length,
  bare: [...new Set(document.body.innerText.match(new RegExp(FORBIDDEN, 'g')) ?? [])]
    .map((one) => one.charCodeAt(0).toString(16)),
})"""
#: So long a view is at work, at most, with all that is done in it: then it never leaves anybody without an answer.
MOST_WORK_MS = 1000
Check = Callable[[], None]

_EVERYTHING = """
import json
HOSTILE = json.loads(open(FILE).read())

def block(one, parent=None):
    message = {"id": "msg", "type": "message", "role": "assistant", "model": HOSTILE,
               "usage": {"input_tokens": 1, "output_tokens": 1}, "content": [one], "stop_reason": None}
    say(type="assistant", message=message, parent_tool_use_id=parent, session_id=me.session)

def end(call, result, parent=None):
    content = [{"type": "tool_result", "tool_use_id": call, "content": result}]
    say(type="user", message={"role": "user", "content": content}, parent_tool_use_id=parent, session_id=me.session)

block({"type": "text", "text": HOSTILE})
block({"type": "thinking", "thinking": HOSTILE, "signature": ""})
block({"type": "tool_use", "id": "t1", "name": HOSTILE, "input": {HOSTILE: HOSTILE, "command": HOSTILE}})
end("t1", HOSTILE)
block({"type": "tool_use", "id": "a1", "name": "Task",
       "input": {"description": HOSTILE, "subagent_type": HOSTILE, "prompt": HOSTILE}})
block({"type": "tool_use", "id": HOSTILE, "name": "Bash", "input": {"command": HOSTILE}}, "a1")
end("a1", HOSTILE)
deep = HOSTILE
for _ in range(150):
    deep = {"deeper": [deep]}
block({"type": "tool_use", "id": "t2", "name": "Deep", "input": {"deep": deep}})
block({"type": "tool_use", "id": "t3", "name": "Huge", "input": {str(n): HOSTILE for n in range(2000)}})
block({"type": "text", "text": "x" * (5 << 20) + HOSTILE})
block({"type": "text", "text": "__proto__ constructor toString hasOwnProperty"})
block({"type": "tool_use", "id": "__proto__", "name": "constructor",
       "input": {"__proto__": {"a": 1}, "constructor": 2}})
"""
#: Prints all of it, then a line of 5 MB, and it once more behind that, to both streams.
_PRINTS = """
import json, os, sys
text = json.loads(open(sys.argv[1]).read()).encode("utf-8", "surrogatepass")
for descriptor in (1, 2):
    os.write(descriptor, text + b"\\n\\xff\\xfe\\xed\\xa0\\x80\\n")
    with os.fdopen(os.dup(descriptor), "wb") as file:
        file.write(b"x" * (5 << 20) + text + b"\\n" + b"\\r".join([text] * 50) + b"\\n" + text + b"\\nlast\\n")
"""

#: What another page could send without being asked for permission first.
_TRIES = """async (url) => {
  for (const [path, options] of [
    ['/api/v1/tasks', {}], ['/api/v1/tasks', { credentials: 'include' }], ['/', { credentials: 'include' }],
    ['/api/v1/tasks/t1/spawn', { method: 'POST', credentials: 'include', body: '{"argv": ["true"]}' }],
    ['/session', { method: 'POST', credentials: 'include', body: '{"token": "x"}' }],
  ]) await fetch(url + path, { mode: 'no-cors', ...options }).catch(() => {});
}"""


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A file with the text."""
    file = tmp_path / "hostile.json"
    file.write_text(json.dumps(WITH_NUL), encoding="utf-8")
    return file


@pytest.fixture
def unharmed(visit: Visit) -> Check:
    """A check: nothing ran, nothing became a part of the page, no control character is as it is, and it was no work."""
    page, work = visit.page, work_of(visit.page)

    def check() -> None:
        settled(page)
        found = page.evaluate(_LOOK.replace("FORBIDDEN", json.dumps(FORBIDDEN)))
        assert found == {"ran": 0, "inserted": 0, "bare": []}
        assert work() < MOST_WORK_MS
        assert page.title().endswith("agentctl")

    return check


def everything(folder: Path, hostile: Path, more: str) -> str:
    return plays(folder, _EVERYTHING.replace("FILE", repr(str(hostile))) + more)


TABS = ("transcript", "output", "diff", "result", "questions", "timeline", "events", "why", "details")


def test_what_an_agent_says_and_does(task: Task, visit: Visit, unharmed: Check, tmp_path: Path, hostile: Path) -> None:
    agent(everything(tmp_path, hostile, "me.answer(HOSTILE)\n"))
    assert ends()["status"] == "completed"
    page = visit.open("/")
    unharmed()
    for tab in TABS:
        visit.go(f"/tasks/t1/workers/a/{tab}")
        expect(page.get_by_role("heading", level=1)).to_contain_text("a")
        unharmed()
    visit.go("/tasks/t1/workers/a")
    transcript = page.get_by_role("log")
    expect(transcript).to_contain_text("<script>window.ran=1;alert(1)</script>")
    expect(transcript).to_contain_text(r"\x1b[31mred")
    expect(transcript).to_contain_text(r"\u202egnp.exe")
    for number in range(transcript.locator(".call-line").count()):
        button = transcript.locator(".call-line").nth(number)
        if button.get_attribute("aria-expanded") == "false":
            button.click()
    unharmed()
    longer = transcript.get_by_role("button", name="Show all")
    for _ in range(8):
        if not longer.count():
            break
        longer.first.click()
        settled(page)
    unharmed()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    visit.go("/tree")
    unfold(page, "t1")
    unfold(page, "a")
    expect(page.get_by_role("treeitem").nth(4)).to_be_visible()
    page.get_by_role("treeitem").nth(4).focus()
    page.keyboard.press("*")
    unharmed()


def test_what_a_command_prints(task: Task, visit: Visit, unharmed: Check, tmp_path: Path, hostile: Path) -> None:
    spawn([sys.executable, "-c", _PRINTS, str(hostile)], "--wait", name="prints")
    page = visit.open("/tasks/t1/workers/prints")
    output = page.get_by_role("region", name="stdout of prints")
    expect(output).to_contain_text("last")
    expect(output).to_contain_text('<img src=x onerror="window.ran=1;alert(1)">')
    unharmed()
    page.get_by_role("button", name="To the beginning").click()
    settled(page)
    page.get_by_role("button", name="Raw").click()
    unharmed()
    page.get_by_role("button", name="stderr").click()
    expect(page.get_by_role("region", name="stderr of prints")).to_contain_text("last")
    page.get_by_role("searchbox", name="Search in all of it").fill("</script>")
    unharmed()
    visit.go("/")
    unharmed()
    visit.go("/tasks/t1/workers/prints/result")
    answer = page.locator(".answer")
    expect(answer).to_contain_text("last")  # It is what a terminal shows of the end.
    expect(answer).to_contain_text('<img src=x onerror="window.ran=1;alert(1)">')
    unharmed()


def test_what_is_asked(task: Task, visit: Visit, unharmed: Check, tmp_path: Path, hostile: Path) -> None:
    agent(everything(tmp_path, hostile, "me.ask('Bash', {HOSTILE: HOSTILE, 'command': HOSTILE}, 'permission')\n"))
    blocked()
    spawn([sys.executable, "-m", "agentctl", "interact", "ask", "--kind", "input", NO_NUL], name="asks")
    blocked("asks")
    agent(plays(tmp_path, f"""
import json
HOSTILE = json.loads(open({str(hostile)!r}).read())
options = [{{"label": HOSTILE + str(n), "description": HOSTILE}} for n in range(3)]
one = {{"question": HOSTILE, "header": HOSTILE, "options": options, "multiSelect": False}}
me.ask("AskUserQuestion", {{"questions": [one]}}, "question")
"""), name="b")  # fmt: skip
    blocked("b")
    page = visit.open("/")
    expect(page).to_have_title("(3) agentctl")
    for name in ("a", "asks", "b"):
        expect(question(page, name)).to_contain_text('onerror="window.ran=1;alert(1)"')
    unharmed()
    question(page, "asks").get_by_role("textbox").fill(f"{MARKUP} answered")
    question(page, "asks").get_by_role("textbox").press("Enter")
    run("wait", "asks")
    unharmed()
    run("interact", "respond", "a", "--id", "q1", "deny")
    settled(page)
    unharmed()
    for name in ("a", "b", "asks"):
        visit.go(f"/tasks/t1/workers/{name}/questions")
        expect(page.get_by_role("main")).to_contain_text("onerror=")
        unharmed()
    visit.go("/tasks/t1/events")
    unharmed()


def test_what_is_in_a_repository(task: Task, visit: Visit, unharmed: Check, tmp_path: Path, hostile: Path) -> None:
    new_repository(Path.cwd())
    names = [
        '<img src=x onerror=alert(1)>.txt', "a\x1b[31m\u202ered.txt", '"quoted" \\ name', "a\nb.txt", "a\tb",
        " leading",
        "<script>.js", "--- a", "-", "{{x}}.txt", "\udcff.txt",
    ]  # fmt: skip
    script = tmp_path / "names.json"
    script.write_text(json.dumps(names), encoding="utf-8")
    agent(plays(tmp_path, f"""
import json
HOSTILE = json.loads(open({str(hostile)!r}).read()).encode("utf-8", "surrogatepass")
like_a_diff = b"\\n@@ -1 +1 @@\\n--- a/x\\n+++ b/x\\n"
for name in json.loads(open({str(script)!r}).read()):
    open(name.encode("utf-8", "surrogateescape"), "wb").write(HOSTILE.replace(b"\\0", b"") + like_a_diff)
open("a.txt", "wb").write(b"x" * (2 << 20) + HOSTILE.replace(b"\\0", b"") + b"\\n")
open("b.txt", "wb").write(HOSTILE)
open("sub/c.txt", "w").write("diff --git a/x b/x\\n" + "\\n".join("</script>" for _ in range(5000)))
me.answer("done")
"""), "--worktree")  # fmt: skip
    assert ends()["status"] == "completed"
    assert git(Path.cwd(), "status", "--porcelain") == ""
    page = visit.open("/tasks/t1/workers/a/diff")
    listed = page.get_by_role("navigation", name="Changed files").get_by_role("listitem")
    expect(listed.filter(has_text="<img src=x onerror=alert(1)>.txt")).to_be_visible()
    expect(listed.filter(has_text=r"a\x1b[31m\u202ered.txt")).to_be_visible()
    unharmed()
    box = page.get_by_role("region", name="<script>.js")
    expect(box).to_contain_text("+++ b/x")
    assert page.get_by_role("region", name="x", exact=True).count() == 0
    visit.go("/tasks/t1/workers/a/result")
    unharmed()


def test_the_names_of_tasks(task: Task, site: Site, visit: Visit, unharmed: Check) -> None:
    title = MARKUP[:200]
    made = site.ask("/tasks", {"title": f"{title}\u202egnp.exe"})
    assert "status" not in made or made.get("taskId"), made
    spawn(["true"], "--wait", "--task", made["taskId"], name="in-it")
    page = visit.open("/tree")
    expect(page.get_by_role("treeitem").filter(has_text="<script>window.ran=1")).to_be_visible()
    unharmed()
    visit.go(f"/tasks/{made['taskId']}")
    expect(page.get_by_role("main").get_by_text("<script>window.ran=1").first).to_be_visible()
    for tab in ("timeline", "usage", "events"):
        visit.go(f"/tasks/{made['taskId']}/{tab}")
        unharmed()
    visit.go("/")
    page.keyboard.press("n")
    expect(page.get_by_role("combobox", name="Task")).to_contain_text("<script>window.ran=1")
    unharmed()


def test_what_stands_in_the_address(task: Task, visit: Visit, unharmed: Check) -> None:
    page = visit.open()
    page.get_by_role("link", name="Search").click()
    page.get_by_role("searchbox", name="Search all tasks").fill(MARKUP)
    page.keyboard.press("Enter")
    expect(page.get_by_role("main")).to_contain_text("Nothing has")
    unharmed()
    for path in ("/tasks/%3Cimg%20src=x%20onerror=alert(1)%3E", "/tasks/t1/workers/%3Cscript%3E", "/tasks/../x",
                 "/tasks/t1/workers/a%2Fb", "/tasks/__proto__", "/tasks/t1/workers/__proto__",
                 "/tasks/constructor/workers/toString", "/search?q=%3Cscript%3Ealert(1)%3C/script%3E",
                 "/tasks/t1/workers/a?question=%22%5D%3Cimg%3E", "/%00"):  # fmt: skip
        page.goto(f"{visit.site.url}{path}")
        expect(page.get_by_role("main")).to_be_visible()
        unharmed()
    page.goto(f"{visit.site.url}//evil.example/")
    expect(page.locator("body")).to_contain_text("there is no such path")
    assert page.url.startswith(visit.site.url)


class _Elsewhere(BaseHTTPRequestHandler):
    """Another server of this machine: for a browser it is of the same site, so that it gets and sends all cookies."""

    def do_GET(self) -> None:
        """Answer with a page that does nothing by itself."""
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<p>another page</p>")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - a name of the base class
        """Say nothing."""


@pytest.fixture
def elsewhere() -> Iterator[str]:
    """Another server."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Elsewhere) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


#: Refused by the server, or kept from another page by the browser, as the server's headers want it.
_REFUSED = {
    403,
    "net::ERR_BLOCKED_BY_RESPONSE",
    "net::ERR_BLOCKED_BY_RESPONSE.NotSameOrigin",
    "net::ERR_BLOCKED_BY_ORB",
}


def heard(page: Page, answers: list[Any]) -> list[Any]:
    """Return the answers so far: the browser tells of them while it is asked something."""
    settled(page)
    return answers


def test_another_page_gets_nothing_and_may_not_frame_it(task: Task, site: Site, visit: Visit, elsewhere: str) -> None:
    """The browser has been let in, and its cookie goes along."""
    visit.open()
    page = visit.context.new_page()
    page.goto(elsewhere)
    answers: list[Any] = []
    page.on("response", lambda answer: answers.append(answer.status))
    page.on("requestfailed", lambda request: answers.append(request.failure))
    page.evaluate(_TRIES, site.url)
    wait_until(lambda: heard(page, answers)[4:], what="all answers")
    assert set(answers) <= _REFUSED
    page.set_content(f"<iframe src='{site.url}/'></iframe>")
    wait_until(lambda: heard(page, answers)[5:], what="the answer to the frame")
    assert set(answers) <= _REFUSED
    assert run("list", "--json").json == []
    visit.problems.clear()  # It was elsewhere.
