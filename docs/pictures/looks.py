"""Makes looks/*.jpg beside it: each view of the page in light and dark, on a phone, and at 200 %, side by side.

python -m tests.page.install
python docs/pictures/looks.py [VIEW...]

Its run is a real one. Only the model of its agents is a stand-in, which does what the last line of its prompt says.
"""

from __future__ import annotations

import base64
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve()
REPOSITORY = HERE.parents[2]
sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "tests" / "workers"), str(HERE.parent)]

from playwright.sync_api import Browser, Page, expect  # noqa: E402
from serve import new_link, served  # type: ignore[import-not-found]  # noqa: E402
from stage import agent, agentctl, command, repository, stage  # type: ignore[import-not-found]  # noqa: E402
from watch import StandIn as Base  # type: ignore[import-not-found]  # noqa: E402

from tests.page.visiting import running_browser  # noqa: E402

FOLDER = HERE.with_name("looks")
FILES = {
    "src/rows.ts": "".join(f"export const row{n} = (text) => text.split({n})\n" for n in range(40)),
    **{f"src/part{n}.ts": f"export const part = {n}\nexport const last = part - 1\n" for n in range(12)},
}
_ANSWER = """\
## What I found

Sessions begin in **three** places, all in `src/auth`. Only one of them checks the key:

| place | checks | tests |
|---|---|---:|
| `createSession` | yes | 14 |
| `resumeSession` | no | 3 |
| `adoptSession` | no | 0 |

1. `resumeSession` takes any cookie that parses.
2. `adoptSession` is called by [the importer](https://example.org/importer) alone.

- [x] read all callers
- [ ] write the missing tests

```ts
export function resumeSession(cookie: string): Session | null {
  const found = parse(cookie) // never checked
  return found ? sessions.get(found.id) ?? null : null
}
```

> The importer was written before there were keys.
"""
#: What a build prints on a terminal: colours, a spinner, a bar that moves.
_BUILD = r"""
printf '\033[1mvite v6.0.1\033[0m \033[32mbuilding for production...\033[0m\n'
i=0; while [ $i -lt 40 ]; do i=$((i+1)); printf '\r\033[K\033[36mtransforming\033[0m (%d/40) src/part%d.ts' $i $i; done
printf '\r\033[K\033[32m✓\033[0m 40 modules transformed.\n'
printf '\033[2mdist/\033[0m\033[36massets/index.js\033[0m   \033[1m142.31 kB\033[0m\n'
printf '\033[33mwarning\033[0m part9.ts: "last" is never used\n' >&2
printf '\033[31merror\033[0m src/auth/session.ts(31,7): Property "key" is missing\n' >&2
exit 2
"""


class StandIn(Base):  # type: ignore[misc]
    """The stand-in for a model."""

    def do_find(self, _rest: str) -> None:
        """Look around, and answer in Markdown."""
        self.call("TodoWrite", {"todos": [
            {"content": "Find where sessions begin", "status": "completed", "activeForm": "Finding"},
            {"content": "See who calls them", "status": "in_progress", "activeForm": "Looking"},
            {"content": "Write down what is missing", "status": "pending", "activeForm": "Writing"},
        ]}, "Todos have been modified", "t1")  # fmt: skip
        for number in range(5):
            self.call("Read", {"file_path": f"src/part{number}.ts"}, f"export const part = {number}", f"r{number}")
        self.call("Grep", {"pattern": "createSession"}, "src/auth/session.ts:31\nsrc/auth/login.ts:8", "g1")
        self.call("Bash", {"command": "npm test -- session", "description": "Run the tests of sessions"},
                  "\x1b[32m14 passed\x1b[0m, \x1b[31m1 failed\x1b[0m", "b1")  # fmt: skip
        self.call("Edit", {"file_path": "src/auth/session.ts",
                           "old_string": "const found = parse(cookie)\nreturn found",
                           "new_string": "const found = parse(cookie)\nif (!ok(found)) return null\nreturn found.id"},
                  "The file has been updated.", "e1")  # fmt: skip
        self.done(_ANSWER, 61_000)

    def do_configure(self, _rest: str) -> None:
        """Ask for the permission to change a file."""
        self.say_text("The service needs more memory in production. I would change **two** values.")
        self.ask("Edit", {
            "file_path": "config/production.yaml",
            "old_string": "replicas: 2\nmemory: 512Mi\nregion: eu",
            "new_string": "replicas: 3\nmemory: 1Gi\nregion: eu",
        }, "permission")  # fmt: skip

    def do_rewrite(self, _rest: str) -> None:
        """Change many files, and answer."""
        rows = Path("src/rows.ts")
        rows.write_text(rows.read_text(encoding="utf-8").replace("split(7)", 'split(",")'), encoding="utf-8")
        for number in range(12):
            file = Path(f"src/part{number}.ts")
            file.write_text(file.read_text(encoding="utf-8").replace("part - 1", "part - 2"), encoding="utf-8")
        self.call("Write", {"file_path": "src/rows.ts"}, "File created successfully.", "w1")
        self.done("I split rows at commas now.", 34_000)


def run() -> None:
    """Let the workers run until each stands where the pictures want it."""
    agentctl("new", "Read CSV with empty cells", "--id", "csv")
    agent("rows", "general", "rewrite all", "--worktree", "--permissions", "allow")
    agentctl("wait", "rows")
    agentctl("new", "Passkeys beside passwords", "--id", "passkeys", "--max-concurrent", "8")
    agent("find", "general", "find all", "--permissions", "allow")
    command("build", _BUILD)
    command("licences", "echo 'GPL in a dependency' >&2; exit 1")
    agentctl("wait", "find", "build", "licences", check=False)
    agent("plan", "plan", "ask Shall passkeys stand beside passwords, or instead of them?")
    agent("config", "general", "configure it")
    agent("migrate", "general", "permit npm run migrate -- --database local --to 0042_passkeys")
    agent("web", "general", "build")
    command("unit", "while :; do echo ok; sleep 1; done")
    for name in ("plan", "config", "migrate"):
        agentctl("wait-any", name, "--for", "blocked")


def at_rest(_page: Page) -> None:
    """Press nothing."""


def asking(page: Page) -> None:
    """The list, in which agents ask."""
    expect(page.get_by_role("article", name=re.compile("^migrate"))).to_be_visible()


def dispatching(page: Page) -> None:
    """The form that starts a worker."""
    page.keyboard.press("n")
    expect(page.get_by_role("dialog")).to_be_visible()


def helping(page: Page) -> None:
    """The keys."""
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()


_WORKER = "/tasks/passkeys/workers"
#: Each view: its address, and what is done there first.
VIEWS: dict[str, tuple[str, Callable[[Page], None]]] = {
    "need": ("/", asking),
    "tree": ("/tree", at_rest),
    "search": ("/search?q=session", at_rest),
    "task": ("/tasks/passkeys", at_rest),
    "task-timeline": ("/tasks/passkeys/timeline", at_rest),
    "task-usage": ("/tasks/passkeys/usage", at_rest),
    "task-events": ("/tasks/passkeys/events", at_rest),
    "transcript": (f"{_WORKER}/find/transcript", at_rest),
    "result": (f"{_WORKER}/find/result", at_rest),
    "output": (f"{_WORKER}/build/output", at_rest),
    "why": (f"{_WORKER}/licences/why", at_rest),
    "diff": ("/tasks/csv/workers/rows/diff", at_rest),
    "permission": (f"{_WORKER}/config/questions", at_rest),
    "details": (f"{_WORKER}/find/details", at_rest),
    "dispatch": ("/", dispatching),
    "help": ("/", helping),
}


class Way(NamedTuple):
    """One way to look at a view."""

    name: str
    options: dict[str, Any]
    #: Its width in the picture.
    width: int


_WIDE = {"width": 1280, "height": 800}
WAYS = (
    Way("light", {"viewport": _WIDE, "color_scheme": "light"}, 640),
    Way("dark", {"viewport": _WIDE, "color_scheme": "dark"}, 640),
    Way("phone", {"viewport": {"width": 390, "height": 800}, "is_mobile": True, "has_touch": True}, 195),
    Way("200 %", {"viewport": {"width": 640, "height": 400}, "device_scale_factor": 2}, 640),
)
_SETTLES_MS = 900
#: Another folder each time would make another picture.
_AT_HOME = """(folder) => {
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) texts.currentNode.data = texts.currentNode.data.replaceAll(folder, '/home/me/webapp');
}"""


def take(browser: Browser, wanted: list[str]) -> None:
    """Take the pictures of some views, or of all."""
    FOLDER.mkdir(exist_ok=True)
    for name, (path, prepare) in VIEWS.items():
        if wanted and name not in wanted:
            continue
        panels = []
        for way in WAYS:
            context = browser.new_context(locale="en-GB", reduced_motion="reduce", **way.options)
            page = context.new_page()
            page.goto(new_link(path))
            expect(page.get_by_role("banner").get_by_text("live", exact=True)).to_be_attached()
            prepare(page)
            page.wait_for_timeout(_SETTLES_MS)
            page.evaluate(_AT_HOME, os.getcwd())
            panels.append((way, page.screenshot()))
            context.close()
        compose(browser, name, panels)


def compose(browser: Browser, name: str, panels: list[tuple[Way, bytes]]) -> None:
    """Put the pictures of a view side by side."""
    figures = "".join(
        f'<figure style="width:{way.width}px"><figcaption>{name}, {way.name}</figcaption>'
        f'<img width="{way.width}" src="data:image/png;base64,{base64.b64encode(data).decode()}"></figure>'
        for way, data in panels
    )
    style = (
        "body{margin:0;padding:12px;width:1304px;display:flex;flex-wrap:wrap;gap:12px;background:#777;"
        "font:13px sans-serif;color:#fff} figure{margin:0} img{display:block} figcaption{padding-bottom:4px}"
    )
    page = browser.new_page(viewport={"width": 1328, "height": 400})
    page.set_content(f"<style>{style}</style>{figures}")
    page.screenshot(path=str(FOLDER / f"{name}.jpg"), full_page=True, type="jpeg", quality=80)
    page.close()


def main() -> None:
    """Make the pictures, or be the agent program in them."""
    if sys.argv[1:2] == ["as-model"]:
        StandIn().run()
        return
    with stage("webapp", HERE):
        repository(FILES)
        run()
        try:
            with served(), running_browser() as browser:
                take(browser, sys.argv[1:])
        finally:
            agentctl("cancel", "--all", check=False)


if __name__ == "__main__":
    main()
