"""Makes readme.svg beside it: in `agentctl watch` one key answers an agent, and its diff is opened.

    python docs/pictures/readme.py [FILE]

It needs the extras `tui` and `acp`. The agents of three vendors are run by their drivers; their programs are stand-ins
without a model (tests/workers/vendors.py). The stills follow one another in one file, without a script; who wants no
motion sees the first one. What differs from run to run is not in it, the times of workers and the folder: so the same
screen makes the same bytes. `tests/screen/test_readme_picture.py` compares the texts with those of the present screen.
"""

from __future__ import annotations

import asyncio
import io
import itertools
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve()
REPOSITORY = HERE.parents[2]
sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "tests" / "workers"), str(HERE.parent)]

from rich.console import Console  # noqa: E402
from rich.segment import Segment, Segments  # noqa: E402
from stage import agentctl, put_script, repository, stage  # type: ignore[import-not-found]  # noqa: E402

from vendors import FILES, put_programs  # type: ignore[import-not-found]  # noqa: E402

SIZE = (100, 21)
#: How long each worker has been at work in the picture, and where that is.
TIMES, FOLDER = {"fix": "42s", "review": "1m 05s", "docs": "38s", "test": "3s"}, "/home/me/app"
_TIME = re.compile(r"(?<![\w.])(?:\d+m )?\d+(?:\.\d)?s(?!\w)")
_WORKER = re.compile(rf"\b({'|'.join(TIMES)})\b")

_PICTURE = """<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg" role="img">
<title>agentctl watch</title>
<style>
.text {{ font: 20px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; white-space: pre }}
.title, .key {{ font: bold 18px system-ui, sans-serif }}
.key {{ fill: #d0b344; text-anchor: end }}
.still {{ visibility: hidden; animation: {seconds}s step-end infinite }}
.first {{ visibility: visible }}
@media (prefers-reduced-motion: reduce) {{ .still {{ animation: none }} }}
{rules}
</style>
{drawings}
</svg>
"""


class Still(NamedTuple):
    """A screen, which key has led to it, and for how many seconds it is shown."""

    rows: list[list[Segment]]
    key: str
    seconds: int


def run() -> None:
    """Let the agents work until one has answered, one asks and one goes on."""
    agentctl("new", "Log in", "--id", "login")
    about = "Document the end of a session"
    agentctl("spawn", "--name", "docs", "--driver", "opencode", "--worktree", "--permissions", "allow", about)
    agentctl("wait", "docs")
    agentctl("spawn", "--name", "fix", "--driver", "claude", "--worktree", "Fix the flaky login test")
    agentctl("wait-any", "fix", "--for", "blocked")
    agentctl("spawn", "--name", "review", "--driver", "codex", "Review the large change of last night")
    agentctl("spawn", "--name", "test", "--after", "fix", "--", "make", "test")


async def take(go_on: Callable[[], None]) -> list[Still]:
    """Press keys, and take the stills.

    Args:
        go_on: Lets the agent that was answered go on.
    """
    from agentctl.adapters.taskdir import Root
    from agentctl.interfaces.screen.app import WatchApp
    from tests.screens import Screen

    app = WatchApp(Root(os.path.join(os.getcwd(), ".agentctl")))
    async with app.run_test(size=SIZE) as pilot:
        screen = Screen(app, pilot)

        def still(key: str, seconds: int) -> Still:
            return Still([settled([*strip]) for strip in screen.strips()], key, seconds)

        # How it stands in the list for each: what was read before is not looked at again.
        await screen.shows("needs you 1", "rg --line-number", "1 changed file", "after fix")
        await screen.go_to("fix")
        await screen.settle()
        stills = [still("", 5)]
        await screen.press("1")
        await screen.shows("fix was answered: Allow", "● fix", "general:claude It waits")
        stills.append(still("1: it is allowed", 3))
        go_on()
        await screen.shows("general:claude 1 changed file", "working 2")
        await screen.press("enter")
        await screen.shows("following")
        await screen.press("4")
        await screen.shows("1 file  +2 -1", "100%")
        stills.append(still("Enter, 4: what it has changed", 5))
        await screen.press("escape")
        await screen.shows_no("was answered")
        stills.append(still("Escape: the next one has begun", 4))
    return stills


def settled(row: list[Segment]) -> list[Segment]:
    """Return a row of the screen with what it says the next time, too."""
    text = "".join(segment.text for segment in row)
    found = _WORKER.search(text)
    said = [_fixed(segment, TIMES[found[1]] if found else "") for segment in row]
    lacks = len(text) - sum(len(segment.text) for segment in said)
    *before, last = said
    return [*before, Segment(last.text + " " * lacks if lacks > 0 else last.text[: len(last.text) + lacks], last.style)]


def _fixed(segment: Segment, time: str) -> Segment:
    text = segment.text.replace(os.path.realpath(os.getcwd()), FOLDER).replace(os.getcwd(), FOLDER)
    fixed = _TIME.sub(time, text) if time else text
    is_column = segment.text.startswith("  ")
    return Segment(fixed.strip().rjust(len(text)) if is_column and fixed != text else fixed, segment.style)


def picture(stills: list[Still]) -> str:
    """Return the stills as one picture, in which they follow one another."""
    whole = sum(still.seconds for still in stills)
    begins = 0
    width = height = "0"
    rules, drawings = [], []
    for number, still in enumerate(stills, 1):
        width, height, looks, drawing = _drawn(still, number)
        ends = begins + still.seconds
        times = {0: "hidden", begins: "visible", ends: "hidden"}
        steps = " ".join(
            f"{100 * at / whole:.4g}% {{ visibility: {what} }}" for at, what in times.items() if at < whole
        )
        rules += [looks, f"@keyframes still-{number} {{ {steps} }}"]
        drawings.append(drawing)
        begins = ends
    return _PICTURE.format(
        width=width, height=height, seconds=whole, rules="\n".join(rules), drawings="\n".join(drawings)
    )


def _drawn(still: Still, number: int) -> tuple[str, str, str, str]:
    """Return a still's width, height, rules of style and drawing."""
    console = Console(
        width=SIZE[0], height=SIZE[1], file=io.StringIO(), force_terminal=True, color_system="truecolor", record=True,
        legacy_windows=False, safe_box=False,
    )  # fmt: skip
    console.print(Segments(itertools.chain.from_iterable([*row, Segment.line()] for row in still.rows)), end="")
    begins = f'<g class="still {"first" * (number == 1)}" style="animation-name: still-{number}">'
    template = f"""{{width}}\0{{height}}\0{{styles}}\0{begins}
{{chrome}}
<text class="key" x="{{width}}" dx="-20" y="27">{still.key}</text>
<g class="text" transform="translate({{terminal_x}}, {{terminal_y}})">
{{backgrounds}}
{{matrix}}
</g></g>"""
    width, height, looks, drawing = console.export_svg(
        title="agentctl watch", unique_id=f"s{number}", code_format=template
    ).split("\0")
    # What lies beyond the end of a line is blank: to say that each is cut there takes a third of the bytes.
    drawing = re.sub(r' clip-path="url\([^"]*\)"', "", drawing).replace(f"s{number}-title", "title")
    return width, height, looks, drawing


def main(file: str = str(HERE.with_suffix(".svg"))) -> None:
    """Make the picture."""
    with stage("app") as folder:
        home = folder.parent
        put_programs(home / "bin", "claude", "codex", "opencode")
        put_script(home / "bin" / "make", "exec sleep 1000")
        for name in ("COLORFGBG", "NO_COLOR"):
            os.environ.pop(name, None)
        gate = home / "gate"
        os.environ["VENDORS_GATE"] = str(gate)
        repository(FILES)
        try:
            run()
            stills = asyncio.run(take(gate.touch))
        finally:
            agentctl("cancel", "--all", check=False)
    Path(file).write_text(picture(stills), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
