"""Makes serve-*.png beside it: the page of `agentctl serve` over the real run of watch.py, in a real browser.

python -m tests.page.install
python docs/pictures/serve.py
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve()
REPOSITORY = HERE.parents[2]
sys.path[:0] = [str(REPOSITORY), str(HERE.parent)]

from playwright.sync_api import Browser, Page, expect  # noqa: E402
from stage import agentctl, repository, stage  # type: ignore[import-not-found]  # noqa: E402
from watch import FILES, run  # type: ignore[import-not-found]  # noqa: E402

from tests.page.visiting import running_browser  # noqa: E402

WIDE, PHONE = {"width": 1200, "height": 760}, {"width": 390, "height": 800}
#: The largest that a picture may be: they are in the repository.
MOST_BYTES = 150_000


@contextmanager
def served() -> Iterator[None]:
    """Run the server."""
    argv = [sys.executable, "-m", "agentctl", "serve", "--port", "0", "--json"]
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            server.stdout.readline()
            yield
        finally:
            server.terminate()


def need(page: Page) -> None:
    """The list, in which two agents ask."""
    expect(page.get_by_role("article", name=re.compile("^migrate"))).to_be_visible()
    expect(page.get_by_role("button", name="Allow").first).to_be_enabled()


def tree(page: Page) -> None:
    """The tree, opened to the calls of sub-agents."""
    page.get_by_role("treeitem").filter(has_text="passkeys").first.focus()
    for _ in range(8):
        page.keyboard.press("ArrowRight")
        folded = page.get_by_role("treeitem", expanded=False).filter(has_text=re.compile("web|Find the|Write the"))
        page.wait_for_timeout(400)
        if not folded.count():
            break
        folded.first.focus()
    page.keyboard.press("Home")
    page.wait_for_timeout(1000)


def transcript(page: Page) -> None:
    """What an agent did, with a sub-agent open."""
    log = page.get_by_role("log")
    for line in ("Find the places", "Write the form"):
        log.get_by_role("button", name=re.compile(line)).first.click()
    page.mouse.move(1, 1)


def diff(page: Page) -> None:
    """What an agent changed, with comments."""
    box = page.get_by_role("region", name="src/rows.ts", exact=True)
    for line, said in ((2, "Say in a comment what a row is."), (3, "What about quoted commas?")):
        box.get_by_role("button", name=re.compile(f"^Comment on line {line} ")).click()
        box.get_by_role("textbox").fill(said)
        page.keyboard.press("Control+Enter")
    page.get_by_role("region", name="Comments to be sent").scroll_into_view_if_needed()


def timeline(page: Page) -> None:
    """When each worker ran."""
    expect(page.get_by_role("main").locator("svg, img").last).to_be_visible()


def nothing(_page: Page) -> None:
    """Press nothing."""


#: Each picture: its name, the address, what is done first, and options of the browser.
PICTURES: list[tuple[str, str, Callable[[Page], None], dict[str, Any]]] = [
    ("need", "/", need, {}),
    ("tree", "/tree", tree, {"color_scheme": "dark"}),
    ("transcript", "/tasks/passkeys/workers/web", transcript, {}),
    ("diff", "/tasks/csv/workers/csv-rows/diff", diff, {"color_scheme": "dark"}),
    ("timeline", "/tasks/passkeys/timeline", timeline, {}),
    ("phone", "/", need, {"viewport": PHONE, "is_mobile": True, "has_touch": True, "color_scheme": "dark"}),
]


def new_link(path: str) -> str:
    """Return a link to a path of the page: each opens it once."""
    argv = [sys.executable, "-m", "agentctl", "serve", "--link"]
    link = subprocess.run(argv, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True).stdout.strip()
    return link.replace("/#", f"{path}#", 1)


def take(browser: Browser) -> None:
    """Take all pictures."""
    for name, path, prepare, options in PICTURES:
        context = browser.new_context(**{"viewport": WIDE, "locale": "en-GB", "reduced_motion": "reduce", **options})
        page = context.new_page()
        page.goto(new_link(path))
        expect(page.get_by_role("banner").get_by_text("live", exact=True)).to_be_attached()
        prepare(page)
        page.wait_for_timeout(700)
        file = HERE.with_name(f"serve-{name}.png")
        page.screenshot(path=str(file))
        context.close()
        assert file.stat().st_size < MOST_BYTES, f"{file.name} has {file.stat().st_size} bytes"


def main() -> None:
    """Make the pictures."""
    with stage("webapp", HERE.with_name("watch.py")):
        repository(FILES)
        run()
        try:
            with served(), running_browser() as browser:
                take(browser)
        finally:
            agentctl("cancel", "--all", check=False)


if __name__ == "__main__":
    main()
