"""At stake: what a browser keeps and sends opens nothing, to whoever has its files or the port of the server."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import sqlite3
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from agentctl.adapters.served import kept_place
from agentctl.adapters.taskdir import Root
from agentctl.supervision.worker.environment import store_folder
from tests.page.seen import row
from tests.page.site import Site
from tests.page.visiting import Visit, persistent
from tests.snapshots import files_with
from tests.squatters import asked_by_another, needs_root, squatting
from tests.steps import Task, spawn
from tests.support import run, wait_until, worker

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux says who holds a socket")
FORM = "Link or token"
_GREETING = re.compile(r'<meta name="greeting" content="([^"]+)">')


def is_in(page: Page) -> bool:
    """Return whether the page was let in, once it knows."""
    expect(page.locator("#login:not([hidden]), #app:not([hidden])")).to_be_visible()
    return bool(page.get_by_label(FORM).is_hidden())


def test_a_profile_on_the_disk_opens_nothing(task: Task, site: Site, chromium: Any, tmp_path: Path) -> None:
    """Opened twice by links, by a deep one when it was logged in already; then somebody has a copy of all its files."""
    profile, links = tmp_path / "profile", [site.new_link("/"), site.new_link("/tree"), site.new_link("/tasks/t1")]
    with persistent(chromium, profile) as context:
        page = context.pages[0]
        for link in links:
            page.goto(link)
            assert is_in(page)
            expect(page).to_have_url(link.partition("#")[0])
            page = context.new_page()
        shutil.copytree(
            profile, tmp_path / "copied", symlinks=True, ignore=shutil.ignore_patterns("Singleton*"),
            copy_function=_copied_if_there,
        )  # fmt: skip
    secrets = [site.token, *(link.partition("#")[2][16:] for link in links)]
    visited = _history(profile)
    assert len(visited) >= 3
    for copy in (profile, tmp_path / "copied"):
        assert files_with(copy, site.token) == []
    assert not any(site.token in url for url in visited)
    for url in visited:  # The browser has written them down before any script ran: they were used by then.
        assert "#" not in url or any(secret in url for secret in secrets)
    for copy in (profile, tmp_path / "copied"):
        with persistent(chromium, copy) as context:
            page = context.pages[0]
            for url in [f"{site.url}/", *visited]:
                page.goto(url)
                assert not is_in(page), url
                page.goto("about:blank")


def test_a_browser_that_is_restored_with_its_cookies_asks_for_a_link(
    task: Task, site: Site, chromium: Any, tmp_path: Path
) -> None:
    """As browsers do that go on where they were left: they have all cookies of the session on their disk."""
    with persistent(chromium, tmp_path / "profile") as context:
        page = context.pages[0]
        page.goto(site.new_link("/"))
        assert is_in(page)
        page.reload()
        assert is_in(page), "what was kept opens it at once"
        cookies, kept = context.cookies(), json.loads(page.evaluate("localStorage.getItem('agentctl.again')"))
    asked = urllib.request.Request(f"{site.url}/session", json.dumps({"as": kept["name"], "nonce": "n" * 22}).encode())
    asked.add_header("Cookie", "; ".join(f"{one['name']}={one['value']}" for one in cookies))
    asked.add_header("Content-Type", "application/json")
    assert status_of(asked) == 200, "a page may be loaded anew"
    wait_until(lambda: status_of(asked) == 401, timeout_s=90, what="what was kept to be worth nothing")
    with persistent(chromium, tmp_path / "profile") as context:
        context.add_cookies(cookies)
        page = context.pages[0]
        page.goto(f"{site.url}/")
        assert not is_in(page)


def status_of(request: urllib.request.Request) -> int:
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def _copied_if_there(source: str, target: str) -> None:
    """Copy a file of a browser that runs, unless it has just removed it."""
    with contextlib.suppress(FileNotFoundError):
        shutil.copy2(source, target)


def _history(profile: Path) -> list[str]:
    with contextlib.closing(sqlite3.connect(f"file:{profile}/Default/History?immutable=1", uri=True)) as database:
        return [url for (url,) in database.execute("select url from urls") if url.startswith("http")]


@needs_root
@pytest.mark.parametrize("later", [[], ["--url", "http://127.0.0.1:{port}"]], ids=["plain", "url"])
def test_who_takes_the_port_gets_nothing_of_an_open_page(
    task: Task, site: Site, visit: Visit, tmp_path: Path, later: list[str]
) -> None:
    spawn(worker("sleeps", 60), name="works")
    page = visit.open()
    behind = visit.another("/tree")
    expect(row(page, "works")).to_be_visible()
    token, kept = site.token, page.evaluate("localStorage.getItem('agentctl.again')")
    site.kill()
    with squatting(site.port, tmp_path) as squatter:
        wait_until(lambda: squatter.got.count(b"POST /session") > 3, what="the page to try to come back")
        expect(page.get_by_label(FORM)).to_be_visible()
        expect(row(page, "works")).to_be_hidden()
        page.get_by_label(FORM).fill(token)
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("That is not the link of this server")
        behind.reload()  # Whatever that is now.
        got = squatter.got
        captured = [one for one in squatter.requests() if one[1].startswith(("/api/", "/session"))]
        assert token.encode() not in got
        assert json.loads(kept)["secret"].encode() not in got
        refused = run("serve", check=False)
        assert f"process {squatter.process.pid} (" in refused.err
        with Other(*(one.format(port=site.port) for one in later)) as elsewhere:
            assert set(asked_by_another(elsewhere.port, [*captured, *_as_the_page(captured)])) <= {401, 403}
    behind.close()
    site.again(*(one.format(port=site.port) for one in later))
    assert set(asked_by_another(site.port, [*captured, *_as_the_page(captured)])) <= {401, 403}
    assert site.token != token
    expect(page.get_by_label(FORM)).to_be_visible()
    page.get_by_label(FORM).fill(site.new_link())
    page.keyboard.press("Enter")
    expect(row(page, "works")).to_be_visible()
    visit.live()
    assert [row["agentInstance"] for row in run("list", "--json").json] == ["works"]


@needs_root
def test_what_a_squatter_has_left_in_the_browser_gets_no_link(
    task: Task, site: Site, visit: Visit, tmp_path: Path
) -> None:
    """It answers for the server at that port whenever it likes: so no server goes there by itself once it was seen."""
    site.kill()
    page = visit.page
    with squatting(site.port, tmp_path, "stays") as squatter:
        page.goto(site.url)
        expect(page).to_have_title("stays")
        assert str(squatter.port) in run("serve", check=False).err
    page.goto("about:blank")
    page.goto(f"{site.url}/#code")
    expect(page).to_have_title("the squatter has #code")
    visit.problems.clear()  # It has no rules, and says what it likes.
    spawn(worker("sleeps", 60), name="works")
    site.again_wherever()
    assert site.port != squatter.port
    visit.open()
    expect(row(page, "works")).to_be_visible()


def test_a_page_that_is_loaded_anew_tells_a_squatter_nothing(task: Task, site: Site, visit: Visit) -> None:
    """It gives out our own page, with a proof of its own making, or one that the server gave in an earlier visit."""
    page = visit.open()
    with page.expect_response(f"{site.url}/") as loaded:
        page.reload()
    visit.live()
    told = loaded.value.text()
    assert _GREETING.search(told)
    for greeting in ("x.y", f"{'x' * 22}.{'0' * 64}", _GREETING.findall(told)[0]):
        forged = _GREETING.sub(f'<meta name="greeting" content="{greeting}">', told)
        page.route(f"{site.url}/", partial(_give_out, forged))
        visit.requests.clear()
        page.reload()
        visit.live()
        asked = [one for one in visit.requests if "/static/" not in one]
        assert asked[:3] == ["GET /", "POST /session", "POST /session"], "who has proved nothing is asked to, first"
        page.unroute(f"{site.url}/")


def _give_out(text: str, route: Route) -> None:
    route.fulfill(body=text, content_type="text/html")


class Other:
    """A server of the same root, at a free port."""

    def __init__(self, *options: str) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="agentctl-other-")
        self._site = Site(Path(self._folder.name), *options)
        place = kept_place(store_folder(), Root(os.environ["AGENTCTL_ROOT"]))
        assert place is not None
        self.port = place.port

    def __enter__(self) -> Other:
        return self

    def __exit__(self, *_: object) -> None:
        self._site.stop()
        self._folder.cleanup()


def _as_the_page(captured: list[Any]) -> Iterator[Any]:
    """Yield requests for what there is to be had, with all that was captured."""
    for _, _, headers, _ in captured:
        for path in ("/api/v1/tasks", "/api/v1/events?since=start", "/api/v1/tasks/t1/workers/works/logs/stdout"):
            yield ("GET", path, headers, None)
        yield ("POST", "/api/v1/tasks/t1/spawn", {**headers, "content-type": "application/json"}, '{"argv": ["true"]}')
