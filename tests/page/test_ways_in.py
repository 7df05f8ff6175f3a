"""At stake: whoever has the link is let in, nobody else; and each address leads to what it names."""

from __future__ import annotations

import hmac
import json
import re
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any
from urllib.parse import urljoin

import pytest
from playwright.sync_api import expect

from tests.agent_steps import agent, blocked, ends
from tests.page.seen import question, row, typed
from tests.page.site import Site
from tests.page.visiting import Visit
from tests.steps import Task, spawn
from tests.support import run, wait_until, worker

ASKS = worker("asks", "--kind", "confirm", "Delete the old logs?")


# -- the login ---------------------------------------------------------------------------------------------------------


def test_a_link_leaves_nothing_in_the_address_whenever_it_is_opened(task: Task, site: Site, visit: Visit) -> None:
    page = visit.open("/tree")
    assert page.url == f"{site.url}/tree"
    page.reload()
    expect(page.get_by_role("treeitem")).to_have_count(1)
    assert page.url == f"{site.url}/tree"
    page.goto(site.new_link("/search?q=x"))  # It is logged in by now, and this is another address.
    visit.live()
    assert page.url == f"{site.url}/search?q=x"
    another = site.new_link("/search?q=x")
    page.goto(another)  # This is the same one: nothing is loaded.
    expect(page).to_have_url(f"{site.url}/search?q=x")
    wait_until(lambda: _opens(site, another) == 401, what="the link to be used")
    page.goto(f"{site.url}/search?q=x#{site.token}")
    expect(page).to_have_url(f"{site.url}/search?q=x")
    visit.live()
    page.go_back()
    assert "#" not in page.url


def _opens(site: Site, link: str) -> int:
    """Return the status by which a server answers to who begins to enter by a link."""
    code = link.partition("#")[2]
    body = json.dumps({"as": f"code.{code[:16]}", "nonce": "n" * 22}).encode()
    request = urllib.request.Request(f"{site.url}/session", body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def test_nothing_that_the_page_keeps_is_secret_by_itself(task: Task, site: Site, visit: Visit) -> None:
    page = visit.open()
    kept = json.loads(page.evaluate("JSON.stringify({...localStorage, ...sessionStorage})"))
    again = json.loads(kept.pop("agentctl.again"))
    assert site.token not in f"{kept}{again}"
    cookie, asks = sorted(visit.context.cookies(), key=lambda one: str(one["name"]).startswith("agentctl-asks-"))
    assert (cookie["httpOnly"], cookie["sameSite"], cookie["expires"]) == (True, "Strict", -1)
    assert (asks["sameSite"], asks["expires"]) == ("Strict", -1)
    assert page.evaluate("document.cookie") == f"{asks['name']}={asks['value']}"
    assert asks["value"] == f"{again['name'].removeprefix('session.')}.{again['nonce']}", "that is what is sent anyway"
    assert page.evaluate("indexedDB.databases()") == []
    body = json.dumps({"as": again["name"], "nonce": "n" * 22}).encode()
    request = urllib.request.Request(f"{site.url}/session", body, {"Content-Type": "application/json"})
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(request)


def test_what_has_not_changed_is_not_sent_again_and_needs_no_new_proof(task: Task, visit: Visit) -> None:
    page = visit.open()
    script = "async () => (await (await pageModule('js/api.js')).get('/about')).root"
    page.evaluate(script)
    proofs, asked = (visit.requests.count(one) for one in ("POST /session", "GET /api/v1/about"))
    assert len({page.evaluate(script) for _ in range(5)}) == 1
    assert visit.requests.count("GET /api/v1/about") == asked + 5
    assert visit.requests.count("POST /session") == proofs, "each answer has proved whose it is"


_HASHES = """async (cases) => {
  const { hmac } = await pageModule('js/hmac.js');
  return cases.map((one) => hmac(...one));
}"""


def test_the_hash_of_the_page_is_the_one_of_everybody(task: Task, site: Site, visit: Visit) -> None:
    page = visit.open()
    cases = [
        ("k" * length, "é\n\U0001f511" * length) for length in (0, 1, 31, 32, 43, 55, 56, 63, 64, 65, 119, 128, 200)
    ]
    cases += [("token", "x" * length) for length in range(130)]
    assert page.evaluate(_HASHES, cases) == [
        hmac.new(key.encode(), text.encode(), "sha256").hexdigest() for key, text in cases
    ]


class TestUnencrypted:
    """A server whose pages browsers do not trust with their own cryptography, at an address of this machine."""

    @pytest.fixture
    def options(self) -> list[str]:
        return ["--insecure", "--host", "0.0.0.0"]

    def test_the_page_enters_there_too(self, site: Site, visit: Visit) -> None:
        if "127.0.0.1" in site.url:
            pytest.skip("this machine has no other address")
        page = visit.open()
        assert page.evaluate("[isSecureContext, typeof crypto.subtle]") == [False, "undefined"]
        page.reload()
        visit.live()
        assert all("Cross-Origin-Opener-Policy" in one for one in visit.problems), visit.problems
        visit.problems.clear()  # The browser says that this header needs encryption.


@pytest.mark.parametrize("what", ["link", "token"])
def test_a_link_that_is_pasted(task: Task, site: Site, visit: Visit, what: str) -> None:
    page = visit.page
    page.goto(f"{site.url}/tree?x=1")
    field = page.get_by_label("Link or token")
    expect(field).to_be_focused()
    field.fill(f"  {getattr(site, what)}\n")
    page.get_by_role("button", name="Open").click()
    expect(page.get_by_role("treeitem")).to_have_count(1)
    assert page.url == f"{site.url}/tree?x=1"


def test_a_wrong_token_is_told(task: Task, site: Site, visit: Visit) -> None:
    page = visit.page
    for odd in ("x" * 43, "x" * 38, site.token):  # A token does not belong into an address: it is not even tried.
        page.goto(f"{site.url}/#{odd}")
        expect(page.get_by_role("alert")).to_contain_text("That is not the link of this server")
        assert "#" not in page.url
        page.goto("about:blank")
    page.goto(f"{site.url}/")
    page.get_by_label("Link or token").fill("x" * 43)
    page.get_by_role("button", name="Open").click()
    expect(page.get_by_role("alert")).to_contain_text("That is not the link of this server")
    page.get_by_label("Link or token").fill("")
    page.get_by_role("button", name="Open").click()
    expect(page.get_by_role("alert")).to_contain_text("Nothing was pasted yet")
    assert page.evaluate("localStorage.length") == 0
    page.get_by_label("Link or token").fill(site.link)
    page.keyboard.press("Enter")
    visit.live()


def test_logging_out(task: Task, site: Site, visit: Visit) -> None:
    page = visit.open()
    page.get_by_role("button", name="Settings").click()
    page.get_by_role("button", name="Log out on this device").click()
    expect(page.get_by_label("Link or token")).to_be_visible()
    assert page.evaluate("localStorage.getItem('agentctl.again')") is None
    assert visit.context.cookies() == []
    page.goto(f"{site.url}/tree")
    expect(page.get_by_label("Link or token")).to_be_visible()


def test_an_open_page_whose_session_is_gone_asks_for_the_link(task: Task, site: Site, visit: Visit) -> None:
    spawn(worker("sleeps", 60), name="works")
    page = visit.open()
    expect(row(page, "works")).to_be_visible()
    site.kill()
    site.again("--new-token")
    expect(page.get_by_label("Link or token")).to_be_visible()
    expect(row(page, "works")).to_be_hidden()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.get_by_label("Link or token").fill(site.link)
    page.keyboard.press("Enter")
    expect(row(page, "works")).to_be_visible()
    visit.live()


def test_what_anybody_gets_has_nothing_of_the_tasks(task: Task, site: Site, visit: Visit) -> None:
    spawn(ASKS, name="secretly")
    page = visit.page
    answers: list[Any] = []
    page.on("response", lambda answer: answers.append(answer))  # noqa: PLW0108 - the library marks what it is given
    page.goto(f"{site.url}/tasks/t1/workers/secretly")
    expect(page.get_by_label("Link or token")).to_be_visible()
    paths = {answer.url.removeprefix(site.url) for answer in answers if not answer.url.startswith("data:")}
    assert {one for one in paths if not one.startswith("/static/")} == {"/tasks/t1/workers/secretly"}
    assert not any("secretly" in answer.text() for answer in answers if not answer.url.startswith("data:"))


# -- addresses ---------------------------------------------------------------------------------------------------------

TABS = ("transcript", "output", "diff", "result", "questions", "timeline", "events", "why", "details")


@pytest.mark.parametrize("tab", TABS)
def test_each_tab_of_a_worker_has_an_address(task: Task, visit: Visit, tab: str) -> None:
    agent("say All is well.", name="a")
    ends()
    page = visit.open(f"/tasks/t1/workers/a/{tab}")
    tabs = page.get_by_role("navigation", name="About a")
    expect(tabs.locator("[aria-current=page]")).to_have_text(re.compile(rf"^{tab.capitalize()}"))
    expect(page).to_have_title("a · agentctl")
    if tab == "diff":
        expect(page.get_by_role("main")).to_contain_text("has no worktree")
    else:
        expect(page.get_by_role("alert")).to_have_count(0)
    page.reload()
    expect(tabs.locator("[aria-current=page]")).to_have_text(re.compile(rf"^{tab.capitalize()}"))


@pytest.mark.parametrize("tab", ["", "timeline", "usage", "events"])
def test_each_tab_of_a_task_has_an_address(task: Task, visit: Visit, tab: str) -> None:
    spawn(worker("exits", 0), "--wait", name="a")
    page = visit.open(f"/tasks/t1/{tab}".rstrip("/"))
    expect(page.get_by_role("main", name="A task")).to_be_visible()
    expect(page.get_by_role("main")).to_contain_text("a")
    expect(page.get_by_role("alert")).to_have_count(0)
    expect(page.get_by_role("main").locator("[aria-current=page]")).to_have_text(
        re.compile(tab or "workers", re.IGNORECASE)
    )


def test_a_link_to_a_question_leads_to_it(task: Task, visit: Visit) -> None:
    spawn(["sh", "-c", "seq 5000; " + " ".join(map(_quoted, ASKS))], name="asks")
    blocked("asks")
    page = visit.open("/tasks/t1/workers/asks?question=q1")
    card = page.get_by_role("article")
    expect(card).to_be_in_viewport()
    expect(card).to_be_focused()
    typed(page, "2", "Answered asks: No")
    run("wait", "asks")
    assert "answer: no" in run("logs", "asks").out


def _quoted(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"


def test_addresses_of_nothing(task: Task, visit: Visit) -> None:
    page = visit.open("/tasks/t1/workers/nobody")
    expect(page.get_by_role("alert")).to_contain_text("nobody")
    expect(page.get_by_role("main").get_by_role("link", name="The task t1")).to_be_visible()
    visit.go("/tasks/nothing/workers/nobody")
    expect(page.get_by_role("alert")).to_contain_text("no task")
    expect(page.get_by_role("main").get_by_role("link", name="All tasks")).to_be_visible()
    expect(page.get_by_role("main").get_by_role("link", name="The task")).to_have_count(0)
    visit.go("/tasks/nothing")
    expect(page.get_by_role("main")).to_contain_text(re.compile("no task|nothing"))
    visit.go("/what/is/this")
    expect(page.get_by_role("heading", name="There is no such page")).to_be_visible()
    visit.go("/tasks/%E0%A4%A")
    expect(page.get_by_role("main")).to_be_visible()


def test_back_leads_to_the_place_in_the_list(task: Task, visit: Visit) -> None:
    for name in ("a", "b"):
        spawn(worker("sleeps", 60), name=name)
    page = visit.open()
    row(page, "b").get_by_role("link").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("b")
    page.keyboard.press("Escape")
    expect(row(page, "b").get_by_role("link")).to_be_focused()


# -- to look only ------------------------------------------------------------------------------------------------------


class TestReadOnly:
    """A server that only shows."""

    @pytest.fixture
    def options(self) -> list[str]:
        return ["--read-only"]

    def test_it_offers_nothing_to_do(self, site: Site, visit: Visit) -> None:
        spawn(ASKS, name="asks")
        spawn(worker("sleeps", 60), name="works")
        agent("say All is well.", name="a")
        ends()
        blocked("asks")
        page = visit.open()
        expect(page.get_by_role("banner")).to_contain_text("read only")
        expect(page.get_by_role("button", name="New worker")).to_have_count(0)
        expect(question(page, "asks")).to_contain_text("Delete the old logs?")
        expect(question(page, "asks").get_by_role("button")).to_have_count(0)
        expect(page.get_by_role("button", name=re.compile("^Seen"))).to_have_count(0)
        page.keyboard.press("n")
        expect(page.get_by_role("dialog")).to_have_count(0)
        row(page, "works").get_by_role("link").focus()
        for key in ("x", "p", "r", "s", "v"):
            page.keyboard.press(key)
            expect(page.get_by_role("dialog")).to_have_count(0)
        for name in ("works", "a", "asks"):
            visit.go(f"/tasks/t1/workers/{name}")
            expect(page.get_by_role("button", name="Copy name")).to_be_visible()
            doing = re.compile("Cancel|Pause|Send|Continue|Try again|Mark as seen|Remove")
            expect(page.get_by_role("button", name=doing)).to_have_count(0)
        assert {one for one in visit.requests if not one.startswith("GET ")} == {"POST /session"}
        assert site.ask("/tasks/t1/workers/works/cancel", {})["status"] == 403
        run("interact", "respond", "asks", "--id", "q1", "no")


# -- as an application -------------------------------------------------------------------------------------------------


def _size_of_png(data: bytes) -> tuple[int, int]:
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    return int.from_bytes(data[16:20]), int.from_bytes(data[20:24])


def test_it_can_be_installed(task: Task, site: Site, visit: Visit) -> None:
    page = visit.open()
    answer = page.request.get(f"{site.url}{page.locator('link[rel=manifest]').get_attribute('href')}")
    assert answer.headers["content-type"].startswith("application/manifest+json")
    manifest = answer.json()
    assert manifest["name"] == "agentctl"
    assert manifest["start_url"].startswith("/")
    assert manifest["display"] in {"standalone", "minimal-ui", "fullscreen"}
    assert {"background_color", "theme_color", "icons", "short_name"} <= set(manifest)
    sizes = set()
    for icon in manifest["icons"]:
        found = page.request.get(f"{site.url}{icon['src']}")
        assert found.ok, icon
        if icon["type"] == "image/png":
            width, height = _size_of_png(found.body())
            assert icon["sizes"] == f"{width}x{height}"
            sizes.add((width, icon.get("purpose", "any")))
    assert {(192, "any"), (512, "any")} <= sizes
    assert any("maskable" in purpose for _, purpose in sizes)
    touch = page.request.get(f"{site.url}{page.locator('link[rel=apple-touch-icon]').get_attribute('href')}")
    assert _size_of_png(touch.body()) == (180, 180)
    client = visit.context.new_cdp_session(page)
    found = client.send("Page.getAppManifest")
    assert found["errors"] == []
    errors = {one["errorId"] for one in client.send("Page.getInstallabilityErrors")["installabilityErrors"]}
    assert errors <= {"in-incognito"}  # As each context of a test is.


def _script_of(site: Site) -> str:
    with urllib.request.urlopen(site.url) as answer:
        return str(re.findall(r'src="(/static/[^"]*/open\.js)"', answer.read().decode())[0])


def test_its_files_come_with_their_rules(task: Task, site: Site) -> None:
    with urllib.request.urlopen(urljoin(site.url, _script_of(site))) as answer:
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert "require-trusted-types-for 'script'" in policy
        assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_nothing_that_the_page_fetches_lies_elsewhere(task: Task, visiting: Callable[..., Visit]) -> None:
    """What each visit checks, once over all views: the list of hosts is in `Visit`."""
    agent("say All is well.", name="a")
    ends()
    visit = visiting()
    visit.open()
    for path in ("/tree", "/search?q=well", "/tasks/t1", "/tasks/t1/timeline", "/tasks/t1/usage", "/tasks/t1/events",
                 *(f"/tasks/t1/workers/a/{tab}" for tab in TABS)):  # fmt: skip
        visit.go(path)
        visit.page.wait_for_load_state()
    assert visit.problems == []
    assert visit.context.service_workers == []
