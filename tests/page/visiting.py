"""Opens the page as a person does: in a real browser, by the link that the server prints.

Whatever a test is about, nothing of it may leave this machine, break the rules that the page gives itself, open a
dialog of the browser, or end in an error that nobody catches: each visit notes these, and its test fails at the end.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from playwright.sync_api import Browser, BrowserContext, Page, Request, expect, sync_playwright

from tests.page.install import browser
from tests.page.site import Site

#: How long something may take to appear, on a machine that does other things too.
PATIENCE_MS = 30_000
WIDE, PHONE = {"width": 1280, "height": 800}, {"width": 360, "height": 740}
#: A window of 1280 by 800 whose text is shown twice as large.
DOUBLED = {"width": 640, "height": 400}
_FLAGS = (
    "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-default-apps", "--disable-dev-shm-usage",
)  # fmt: skip
_LISTEN = r"""
addEventListener('securitypolicyviolation', (event) => {
  window.tellTheTest(`${event.effectiveDirective} forbids ${event.blockedURI} ${event.sample}`);
});
// A module of the page, as the page has it: they are below a folder of this run of the server.
window.pageModule = (name) => import(document.querySelector('script[type=module]').src.replace(/open\.js$/, name));
"""
#: What the browser says by itself about an answer that is no success, or about a server that is not there.
_LOAD = re.compile(r"Failed to load resource|net::ERR_")

expect.set_options(timeout=PATIENCE_MS)


@contextlib.contextmanager
def running_browser() -> Iterator[Browser]:
    """Run the browser; its own files are in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="agentctl-browser-") as home, sync_playwright() as playwright:
        running = playwright.chromium.launch(**_launched(home))
        try:
            yield running
        finally:
            running.close()


@contextlib.contextmanager
def persistent(running: Browser, profile: Path) -> Iterator[BrowserContext]:
    """Run one more browser, which keeps what browsers keep, in a folder."""
    with tempfile.TemporaryDirectory(prefix="agentctl-browser-") as home:
        context = running.browser_type.launch_persistent_context(str(profile), **_launched(home))
        context.set_default_timeout(PATIENCE_MS)
        try:
            yield context
        finally:
            context.close()


def _launched(home: str) -> dict[str, Any]:
    program = browser()
    assert program is not None
    environ = {"HOME": home, "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
    flags = [*_FLAGS, *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    return {"executable_path": str(program), "args": flags, "env": environ}


class Visit:
    """A person's browser, with what it was told and what went wrong in it. Another visit shares nothing with it."""

    def __init__(self, browser: Browser, site: Site, **options: Any) -> None:
        self.site = site
        self.problems: list[str] = []
        #: The requests that were made, as METHOD PATH.
        self.requests: list[str] = []
        wanted = {"viewport": WIDE, "color_scheme": "light", "locale": "en-GB", **options}
        self.context: BrowserContext = browser.new_context(**wanted)
        self.context.set_default_timeout(PATIENCE_MS)
        self.context.expose_function("tellTheTest", self._tell)
        self.context.add_init_script(_LISTEN)
        self.context.on("request", self._note)
        self.context.on("dialog", self._refuse)
        self.context.on("weberror", lambda error: self.problems.append(f"an error: {error.error}"))
        self.context.on("console", self._hear)
        self.page: Page = self.context.new_page()

    def _note(self, request: Request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme in {"data", "blob", "about"}:
            return
        if f"{parts.scheme}://{parts.netloc}" != self.site.url:
            self.problems.append(f"a request to elsewhere: {request.url[:300]}")
        self.requests.append(f"{request.method} {parts.path}")

    def _tell(self, problem: str) -> None:
        self.problems.append(problem)

    def _refuse(self, dialog: Any) -> None:
        self.problems.append(f"a dialog of the browser: {dialog.message[:300]}")
        dialog.dismiss()

    def _hear(self, message: Any) -> None:
        if message.type == "error" and not _LOAD.search(message.text):
            self.problems.append(f"the console says: {message.text[:300]}")

    def read_modules(self) -> Visit:
        """Have the browser read the modules of the page, and not the script that is made of them: a test uses one."""
        script = "import './js/main.js';"
        self.context.route("**/page.js", lambda route: route.fulfill(content_type="text/javascript", body=script))
        return self

    def open(self, path: str = "/") -> Page:
        """Open a path of the page by a new link; return the page when it is up."""
        self.page.goto(self.site.new_link(path))
        expect(self.page.get_by_role("main")).to_be_visible()
        expect(self.page).to_have_url(re.compile(r"^[^#]*$"))
        self.live()
        return self.page

    def go(self, path: str) -> Page:
        """Go to a path of a page that has been let in."""
        self.page.goto(f"{self.site.url}{path}")
        self.live()
        return self.page

    def another(self, path: str = "/") -> Page:
        """Open one more tab; return its page when it is up."""
        page = self.context.new_page()
        page.goto(f"{self.site.url}{path}")
        self.live(page)
        return page

    def live(self, page: Page | None = None) -> None:
        """Wait until a page hears the server, and knows of which root it is: then it draws its view anew."""
        page = page or self.page
        expect(page.get_by_role("banner").get_by_text("live", exact=True)).to_be_attached()
        expect(page.get_by_role("main")).to_have_attribute("aria-busy", "false")

    def value(self, script: str, argument: Any = None) -> Any:
        """Return what a script in the page has as its value."""
        return self.page.evaluate(script, argument)

    def focused(self) -> str:
        """Return what has the focus, as a person would say it."""
        return str(self.page.evaluate(_FOCUSED))

    def picture(self, file: Path) -> None:
        """Keep what is seen."""
        for number, page in enumerate(self.context.pages):
            name = file if number == 0 else file.with_stem(f"{file.stem}-{number}")
            page.screenshot(path=str(name), timeout=5000)

    def close(self) -> None:
        """Leave, and fail with what went wrong."""
        self.context.close()
        assert self.problems == []


_FOCUSED = """() => {
  const at = document.activeElement;
  if (!at || at === document.body) return '';
  const inside = at.closest('[data-key], [data-id]');
  const key = at.dataset.key ?? at.dataset.id ?? (at.matches('a.main') ? inside?.dataset.key : undefined);
  return key ?? at.getAttribute('aria-label') ?? at.labels?.[0]?.innerText ?? at.innerText;
}"""


def text_of(locator: Any) -> str:
    """Return the text of an element."""
    return cast("str", locator.inner_text())
