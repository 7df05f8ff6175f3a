"""At stake: a button of a message works on ntfy's web page, and that page can do nothing else with the server."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from agentctl.adapters.locks import is_alive_held
from tests.listener import Listener, configure
from tests.page.site import Site
from tests.steps import Task, spawn, statuses
from tests.support import PROGRAM, wait_until

ASK = [*PROGRAM, "interact", "ask", "--kind", "confirm", "Deploy?"]
#: What ntfy's page does for a button, `performHttpAction` in its Notifications.jsx: it shows a cross where this fails.
PRESS = """async (action) => {
  try {
    const response = await fetch(action.url, {
      method: action.method ?? 'POST', headers: action.headers ?? {}, body: action.body,
    });
    return [response.status, await response.text()];
  } catch (error) {
    return [0, String(error)];
  }
}"""
#: Returns of each request what the page could read of its answer, and whatever it has tried.
TRY_ALL = """async ([requests, ways]) => {
  const read = [];
  for (const [method, url] of requests) {
    for (const way of ways) {
      const body = method === 'POST' ? way.body ?? '{}' : undefined;
      try {
        const response = await fetch(url, { method, ...way, body });
        if (response.type !== 'opaque') read.push([method, url, response.status]);
      } catch { /* It is refused, or cannot be read. */ }
    }
  }
  return read;
}"""
WAYS: list[dict[str, Any]] = [
    {},
    {"credentials": "include"},
    {"credentials": "include", "mode": "no-cors", "headers": {"Content-Type": "text/plain"}},
    {"credentials": "include", "headers": {"Content-Type": "application/json"}},
    {"headers": {"Authorization": "Bearer x"}},
]


@pytest.fixture
def ntfy(task: Task) -> Iterator[Listener]:
    """Play a server of ntfy."""
    listener = Listener()
    yield listener
    listener.close()
    wait_until(lambda: not is_alive_held(task.path / "sender.json"), what="the sender to leave")


@pytest.fixture
def browser_page(chromium: Browser, site: Site) -> Iterator[Page]:
    """Return a page in a browser that the agents' page has let in."""
    context = chromium.new_context()
    own = context.new_page()
    own.goto(site.new_link())
    own.get_by_role("main").wait_for()
    yield context.new_page()
    context.close()


def actions_of(ntfy: Listener, tmp_path: Path) -> dict[str, dict[str, Any]]:
    """Have a worker ask; return the buttons of the message about it, by their labels."""
    phone = {"type": "ntfy", "url": f"http://localhost:{ntfy.port}/mine", "buttons": True, "events": ["blocked"]}
    configure(tmp_path / "home", {"phone": phone}, hosts=["localhost"])
    spawn(ASK, name="a")
    (post,) = ntfy.told(1)
    return {one["label"]: one for one in post["actions"]}


def test_a_button_is_pressed_on_the_page_of_ntfy(
    task: Task, site: Site, ntfy: Listener, browser_page: Page, tmp_path: Path
) -> None:
    actions, page = actions_of(ntfy, tmp_path), browser_page
    page.goto(f"http://127.0.0.1:{ntfy.port}/")  # Another name of that machine is another page.
    status, said = page.evaluate(PRESS, actions["Yes"])
    assert (status, "Failed to fetch" in said) == (0, True)
    assert not task.events("interaction.responded")
    page.goto(f"http://localhost:{ntfy.port}/")
    for _ in range(2):  # The first answer may have been lost.
        status, said = page.evaluate(PRESS, actions["Yes"])
        assert (status, '"answer":"yes"' in said.replace(" ", "")) == (200, True), said
    status, said = page.evaluate(PRESS, actions["No"])
    assert (status, "was answered already, with 'yes' by user" in said) == (409, True), said
    task.ended("a")
    assert len(task.events("interaction.responded")) == 1


def test_the_page_of_ntfy_can_do_nothing_else(
    task: Task, site: Site, ntfy: Listener, browser_page: Page, tmp_path: Path
) -> None:
    actions, page = actions_of(ntfy, tmp_path), browser_page
    places = {"task": "t1", "instance": "a", "id": "q1", "question": "q1"}
    paths = site.ask("/openapi.json")["paths"]
    asked = [
        (method.upper(), site.url + re.sub(r"{(\w+)}", lambda found: places.get(found[1], "x"), path))
        for path, methods in paths.items() for method in methods
    ]  # fmt: skip
    assert len(asked) > 40
    more = ["/", "/session", "/healthz", "/metrics", "/static/x", "/answer", "/answer/x", "/tasks/t1"]
    asked += [
        (method, site.url + path)
        for path in more
        for method in ("GET", "POST")
        if (method, path) != ("POST", "/answer/x")
    ]
    asked += [(method, actions["Yes"]["url"]) for method in ("GET", "PUT", "DELETE")]
    before = (statuses(), task.path.joinpath("events.jsonl").read_bytes(), site.ask("/tasks"))
    page.goto(f"http://localhost:{ntfy.port}/")
    assert page.evaluate(TRY_ALL, [asked, WAYS]) == []
    assert (statuses(), task.path.joinpath("events.jsonl").read_bytes(), site.ask("/tasks")) == before
