"""At stake: in the page a person looks at what a result names: as far as it is safe, and as it was when named."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.page.site import Site
from tests.page.visiting import Visit
from tests.steps import Task, spawn

pytestmark = pytest.mark.page

_DOT = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
_DIFF = "diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-old = 1\n+new = 1\n"


def told(site: Site, folder: Path, name: str, data: bytes) -> None:
    """Have a worker whose result names one file."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(data)
    worker = name.partition(".")[0]
    spawn(["agentctl", "report", "result", "--file", name], "--cwd", str(folder), name=worker)
    site.knows(worker, "completed")


def viewed(visit: Visit, name: str) -> Page:
    """Return the page with a file that is looked at."""
    page = visit.go(f"/tasks/t1/workers/{name.partition('.')[0]}/result")
    page.get_by_role("button", name=f"View {name}").click()
    return page


def test_a_text_is_looked_at_in_the_page_as_what_it_is(task: Task, site: Site, visit: Visit, tmp_path: Path) -> None:
    folder = tmp_path / "reported"
    told(site, folder, "report.md", b"# Found\n\n<img src=x onerror=alert(1)> [a](javascript:alert(1))")
    told(site, folder, "fix.patch", _DIFF.encode())
    told(site, folder, "large.txt", b"line of text\n" * 40_000)
    told(site, folder, "blob.bin", b"\0\1\2")
    visit.open()
    page = viewed(visit, "report.md")
    shown = page.get_by_role("region", name="report.md")
    expect(shown.get_by_role("heading", name="Found")).to_be_visible()
    expect(shown).to_contain_text("<img src=x")
    expect(shown.locator("img, a[href^=javascript]")).to_have_count(0)
    shown = viewed(visit, "fix.patch").get_by_role("region", name="fix.patch")
    expect(shown.locator(".code-line.add")).to_contain_text("new = 1")
    expect(shown.get_by_label("is viewed")).to_have_count(0)
    shown = viewed(visit, "large.txt").get_by_role("region", name="large.txt")
    expect(shown).to_contain_text("The first 262.1 kB of 520.0 kB")
    assert len(shown.inner_text()) < 300_000
    expect(viewed(visit, "blob.bin").get_by_role("region", name="blob.bin")).to_contain_text("It is not a text")


def test_an_image_is_drawn_if_its_bytes_are_one(task: Task, site: Site, visit: Visit, tmp_path: Path) -> None:
    folder = tmp_path / "reported"
    told(site, folder, "dot.png", _DOT)
    told(site, folder, "drawn.png", b'<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>')
    visit.open()
    image = viewed(visit, "dot.png").get_by_role("img", name="dot.png")
    expect(image).to_be_visible()
    assert image.evaluate("one => one.decode().then(() => one.naturalWidth)") == 1
    shown = viewed(visit, "drawn.png").get_by_role("region", name="drawn.png")
    expect(shown).to_contain_text("<svg xmlns=")
    expect(shown.locator("img, svg")).to_have_count(0)


def test_a_file_that_was_changed_since_is_told_as_such(task: Task, site: Site, visit: Visit, tmp_path: Path) -> None:
    folder = tmp_path / "reported"
    told(site, folder, "report.md", b"# Found")
    visit.open()
    page = viewed(visit, "report.md")
    expect(page.get_by_role("region", name="report.md").get_by_role("heading", name="Found")).to_be_visible()
    expect(page.get_by_text("Changed since")).to_have_count(0)
    (folder / "report.md").write_text("# Other", encoding="ascii")
    page = viewed(visit, "report.md")
    shown = page.get_by_role("region", name="report.md")
    expect(shown).to_contain_text("Changed since the result was given.")
    expect(shown.get_by_role("heading", name="Other")).to_be_visible()
