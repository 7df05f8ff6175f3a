"""At stake: what agents say and would do is read at a terminal as it is meant, and nothing is obeyed or hidden."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.agent_steps import agent, agent_world, blocked, ends, plays
from tests.steps import Task, new_task, spawn
from tests.support import PROGRAM, run
from tests.tmux import TmuxWindow, needs_tmux, tmux_window

pytestmark = [needs_tmux, pytest.mark.screen]

#: Colours and attributes of what is drawn (SGR), as tmux writes them.
SGR = r"\x1b\[[\d;]*m"
SAID = """# What I *found*

- [x] `a.py` is **wrong**, see [the docs](https://docs.example.org/long/path)
- [ ] [mine](javascript:alert(1)) and <b>this</b>

| file | lines |
|---|--:|
| a.py | 12 |

```python
def f():
    return "x"
```
Beep \x07\x1b]8;;http://evil.example\x1b\\\\click\x1b]8;;\x1b\\\\ \u202etxt.exe
"""
OLD = "spec:\n  replicas: 2\n  memory: 512Mi\n"
NEW = "spec:\n  replicas: 3\n  memory: 1Gi\n"
#: What a command returned: a progress bar, a find with colours, a link.
PRINTED = "1 %\r100 %\n\x1b[31m\x1b[Kold\x1b[m\x1b[K = 25; \x1b]8;;http://evil.example\x07link\x1b]8;;\x07\n"
SCRIPT = """
def call(number, name, returns="done", **arguments):
    me.assistant({{"type": "tool_use", "id": f"call-{{number}}", "name": name, "input": arguments}})
    result = {{"type": "tool_result", "tool_use_id": f"call-{{number}}", "content": returns}}
    say(type="user", message={{"role": "user", "content": [result]}}, parent_tool_use_id=None, session_id=me.session)

for number in range(14):
    call(number, "Read", file_path=f"src/file{{number}}.py")
call(20, "Bash", {printed!r}, command="make test", description="Try it")
call(21, "TodoWrite", todos=[{{"content": "Look", "status": "completed"}}, {{"content": "Mend", "status": "pending"}}])
edit = {{"file_path": "config/production.yaml", "old_string": {old!r}, "new_string": {new!r}}}
me.ask("Edit", edit, lambda answer: me.answer({said!r} if answer["behavior"] == "allow" else "denied"))
"""


@pytest.fixture
def task(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    found = agent_world(tmp_path, monkeypatch)
    agent(plays(tmp_path, SCRIPT.format(old=OLD, new=NEW, said=SAID, printed=PRINTED)))
    blocked()
    return found


def styled(window: TmuxWindow, text: str) -> str:
    """Return the row with a text, as it is drawn."""
    found = (row for row in window.text(styled=True).split("\n") if text in re.sub(SGR, "", row))
    return next(found)


def is_coloured(window: TmuxWindow, row: str, part: str) -> bool:
    """Return whether a part of a row begins with another colour or attribute than what stands before it."""
    return re.search(rf"{SGR}{re.escape(part)}", styled(window, row)) is not None


@pytest.mark.parametrize(("width", "height"), [(80, 24), (160, 50)])
@pytest.mark.usefixtures("task")
def test_a_person_sees_what_an_edit_would_do_and_reads_what_the_agent_says(width: int, height: int) -> None:
    with tmux_window(width, height) as window:
        window.open_watch()
        window.shows("Edit config/production.yaml", "│ -   replicas: 2", "│ +   replicas: 3", "│     spec:"[:3])
        assert is_coloured(window, "+   replicas: 3", "3")
        assert "old_string" not in window.text()
        window.press("R")
        window.shows("old_string:", "new_string:")
        window.press("R")
        window.shows_no("old_string:")
        window.until(lambda: allowed(window), "the answer")
        ends()
        window.press("Enter")
        window.shows("1 transcript", "What I found")
        window.press("g")
        window.shows("Read 14 files: src/file0.py", "$ make test", "# Try it", "[x] Look", "[ ] Mend")
        window.shows("100 %", "old = 25; link")
        assert is_coloured(window, "old = 25", "old")
        assert [window.row_of(text).strip() for text in ("100 %", "old = 25")] == ["100 %", "old = 25; link"]
        window.press("5")
        window.shows(
            "What I found", "• [x] a.py is wrong, see the docs (docs.example.org)", "<b>this</b>", "a.py     12"
        )
        assert is_coloured(window, "return", "return")
        assert "](https" not in window.text()
        window.press("R")
        window.shows("](https://docs.example.org", "| a.py | 12 |")
        window.press("q")
        window.shows("⏎ Open")
        window.press("q")
        window.is_left(0)


def allowed(window: TmuxWindow) -> bool:
    """Press a digit, which does nothing more once the question is answered."""
    if "asks for permission" not in window.text():
        return True
    window.press("1")
    return False


@pytest.mark.usefixtures("task")
def test_result_and_logs_draw_markdown_at_a_terminal_and_give_its_source_to_a_pipe() -> None:
    with tmux_window(40, 50) as window:
        window.write(f"clear; {' '.join(PROGRAM)} interact list --raw; {' '.join(PROGRAM)} answer a")
        window.press("Enter")
        window.shows("| old_string: ", "| Edit config/production.yaml", "|   -   replicas: 2", "|   +   replicas: 3")
        window.shows("your answer:")
        window.write("allow")
        window.press("Enter")
        ends()
        assert run("result", "a").out.startswith("# What I *found*\n\n- [x] `a.py` is **wrong**")
        window.write(f"clear; {' '.join(PROGRAM)} result a")
        window.press("Enter")
        window.shows("What I found", "• [x] a.py is wrong, see the docs", "(docs.example.org)", "Beep")
        assert is_coloured(window, "What I found", "What")
        assert is_coloured(window, "return", "return")
        assert not re.search("\x1b]|https:", window.text(styled=True))
        window.write(f"clear; {' '.join(PROGRAM)} logs a")
        window.press("Enter")
        window.shows("Read 14 files", "$ make test", "100 %", "old = 25; link")
        window.shows("+   replicas: 3", "• [x] a.py is wrong")
        assert is_coloured(window, "old = 25", "old")
        window.write(f"clear; {' '.join(PROGRAM)} watch a")
        window.press("Enter")
        window.shows("$ make test", "+   replicas: 3", "• [x] a.py is wrong", "a completed")
        window.write(f"clear; NO_COLOR=1 {' '.join(PROGRAM)} result a --plain")
        window.press("Enter")
        window.shows("# What I *found*", "| a.py | 12 |")


@pytest.mark.usefixtures("root")
def test_the_result_of_a_command_is_what_a_terminal_would_show_of_it() -> None:
    new_task()
    spawn(["printf", "%s", PRINTED], "--wait", name="c")
    assert "\x1b]8;;http" in run("result", "c").out
    with tmux_window(80, 24) as window:
        window.write(f"clear; {' '.join(PROGRAM)} result c")
        window.press("Enter")
        shows_printed(window)
        window.write("clear")
        window.press("Enter")
        window.open_watch()
        window.press("Enter")  # The group is folded.
        window.shows("✓ c")
        window.press("j", "Enter")
        window.shows("5 result")
        window.press("5")
        shows_printed(window)


def shows_printed(window: TmuxWindow) -> None:
    window.shows("100 %", "old = 25; link")
    assert [window.row_of(text).strip() for text in ("100 %", "old = 25")] == ["100 %", "old = 25; link"]
    assert is_coloured(window, "old = 25", "old")
